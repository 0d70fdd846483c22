//! What ranks say to each other.

use serde::{Deserialize, Serialize};

/// Some tasks, encoded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Parcel {
    /// How many tasks.
    pub tasks: u32,
    /// One encoded task after another.
    pub bytes: Vec<u8>,
}

/// Why a job ends without a result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Failure {
    /// A task panicked.
    #[error("rank {rank}: a task panicked: {message}")]
    Panicked {
        /// Where.
        rank: usize,
        /// With what.
        message: String,
    },
    /// A task does not fit into a message.
    #[error(
        "rank {rank}: a task of {bytes} bytes is too large to be given away; the limit is {limit}"
    )]
    TooLarge {
        /// Where.
        rank: usize,
        /// The encoded task's bytes.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A rank holds more tasks than it may.
    #[error("rank {rank}: a worker's bag holds {tasks} tasks; the limit is {limit}")]
    BagFull {
        /// Where.
        rank: usize,
        /// How many there are.
        tasks: usize,
        /// The limit.
        limit: usize,
    },
    /// What arrived cannot be decoded.
    #[error("rank {rank}: what rank {from} sent is no task of this program: {message}")]
    Unreadable {
        /// The rank that received it.
        rank: usize,
        /// The rank that sent it.
        from: usize,
        /// What is wrong with it.
        message: String,
    },
    /// Something cannot be encoded, or a file cannot be written.
    #[error("rank {rank}: {message}")]
    Other {
        /// Where.
        rank: usize,
        /// What is wrong.
        message: String,
    },
    /// Nothing was heard from a rank.
    #[error(
        "rank {rank} is lost: rank {watcher} has heard nothing from it for {seconds} s; its tasks and what they had found are lost with it"
    )]
    Silent {
        /// The lost rank.
        rank: usize,
        /// The rank that noticed.
        watcher: usize,
        /// The length of the silence.
        seconds: u64,
    },
}

impl Failure {
    /// The rank that it is about.
    pub fn rank(&self) -> usize {
        match self {
            Failure::Panicked { rank, .. }
            | Failure::TooLarge { rank, .. }
            | Failure::BagFull { rank, .. }
            | Failure::Unreadable { rank, .. }
            | Failure::Other { rank, .. }
            | Failure::Silent { rank, .. } => *rank,
        }
    }
}

/// A message between two ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Message {
    /// Asks for tasks now. The answer is a parcel or [`Refuse`](Message::Refuse).
    Steal,
    /// Asks for tasks as soon as there are some.
    Lifeline,
    /// There are none.
    Refuse,
    /// Tasks, for a request (`false`) or by a lifeline (`true`).
    Tasks(Parcel, bool),
    /// A wave goes down the tree of ranks.
    Ask {
        /// Even or odd.
        wave: u8,
    },
    /// A wave comes back up.
    Report {
        /// Even or odd.
        wave: u8,
        /// Parcels that the ranks below have sent.
        sent: u64,
        /// Parcels that they have received.
        received: u64,
    },
    /// No task is left anywhere.
    Done,
    /// The job ends without a result.
    Failed(Failure),
    /// The sender is alive.
    Alive,
    /// How many tasks the ranks at and below the sender have run.
    Count(u64),
    /// What a call came to that the receiver waits for.
    Returned {
        /// Its number at the receiver.
        call: u64,
        /// What it came to, encoded.
        result: Vec<u8>,
    },
    /// Work stops, so that a checkpoint can be taken.
    Pause,
    /// No task is under way between ranks: each rank saves what it has.
    Save,
    /// What the ranks at and below the sender have saved.
    Saved {
        /// Tasks that wait there.
        tasks: u64,
        /// What each of them has saved.
        parts: Vec<Vec<u8>>,
    },
    /// Work goes on.
    Resume,
    /// The result of the ranks at and below the sender, encoded, after the end.
    Result(Vec<u8>),
    /// Rank 0 has all results.
    Final,
}
