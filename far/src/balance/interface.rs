//! What a balancer is told, what it asks of its rank, and what it answers.

use serde::{Deserialize, Serialize};

use super::termination::Waves;
use crate::message::{Failure, Parcel};

/// How ranks steal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stealing {
    /// The thief asks, the victim answers.
    #[default]
    Messages,
    /// The thief takes from a queue in the victim's window.
    Window,
}

/// How a job is balanced.
#[derive(Clone, Debug)]
pub struct Policy {
    /// How ranks steal.
    pub stealing: Stealing,
    /// Whether a rank that found nothing leaves word on its lifelines.
    pub lifelines: bool,
    /// How many victims of each distance are asked in a round.
    pub attempts: usize,
    /// Bytes of a parcel of tasks at most.
    pub parcel_bytes: usize,
    /// Nanoseconds that a rank rests after a round of failures, without lifelines.
    pub rest: u64,
    /// Nanoseconds of silence after which a rank is taken for lost; never, if `None`.
    pub silence: Option<u64>,
    /// For the choice of victims.
    pub seed: u64,
    /// For tests that must fail.
    pub waves: Waves,
    /// For tests that must fail: a checkpoint may come before anything was done since the last
    /// one.
    pub hasty: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            stealing: Stealing::Messages,
            lifelines: true,
            attempts: 4,
            parcel_bytes: 64 << 10,
            rest: 100_000,
            silence: None,
            seed: 1,
            waves: Waves::Two,
            hasty: false,
        }
    }
}

/// What a rank has done for the balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Parcels that came for a request or out of a window.
    pub steals: u64,
    /// Parcels that came by a lifeline.
    pub lifeline_parcels: u64,
    /// Requests that were refused, and looks at empty windows.
    pub failed_steals: u64,
    /// Tasks that came.
    pub tasks: u64,
    /// Bytes of tasks that came.
    pub bytes: u64,
    /// Messages sent, of all kinds.
    pub messages: u64,
}

impl Counters {
    /// Adds another rank's.
    pub fn add(&mut self, other: &Counters) {
        self.steals += other.steals;
        self.lifeline_parcels += other.lifeline_parcels;
        self.failed_steals += other.failed_steals;
        self.tasks += other.tasks;
        self.bytes += other.bytes;
        self.messages += other.messages;
    }
}

/// What a rank has to give.
#[derive(Debug)]
pub enum Given {
    /// These parcels.
    Parcels(Vec<Parcel>),
    /// Something soon: a worker was told to put it aside.
    Later,
    /// Nothing.
    Nothing,
}

/// The rank itself, as the balancer sees it.
pub trait Local {
    /// Whether no task waits here and none runs.
    fn is_idle(&self) -> bool;

    /// Whether it has use for tasks of other ranks: when it is idle, and when what runs here waits
    /// for other ranks.
    fn is_hungry(&self) -> bool {
        self.is_idle()
    }

    /// Whether it wants to run itself what it shares in its window.
    fn wants_back(&self) -> bool {
        self.is_hungry()
    }

    /// Whether none runs. Asked while the rank is paused.
    fn is_still(&self) -> bool;

    /// Returns up to half of the waiting tasks, within a number of parcels and a size of each in
    /// bytes. A rank that may not encode tasks now records the request, and is polled again.
    ///
    /// # Errors
    ///
    /// If a task alone is larger than that.
    fn give(&mut self, parcels: usize, bytes: usize) -> Result<Given, Failure>;

    /// Takes tasks that have arrived from a rank.
    ///
    /// # Errors
    ///
    /// If they are decoded at once and cannot be.
    fn take(&mut self, from: usize, parcel: Parcel) -> Result<(), Failure>;

    /// Stops running tasks, soon, or goes on.
    fn pause(&mut self, paused: bool);

    /// How many tasks were run here.
    fn tasks(&self) -> u64 {
        0
    }

    /// Takes what a call came to that waits here.
    ///
    /// # Errors
    ///
    /// If no call waits here, ever.
    fn returned(&mut self, from: usize, call: u64, result: &[u8]) -> Result<(), Failure> {
        let message = format!("{} bytes for call {call}, and no call waits", result.len());
        Err(Failure::Unreadable { rank: from, from, message })
    }

    /// How many tasks wait here, and all of them and what was found here so far, encoded. Called
    /// while the rank is paused and still. `None` if it comes later, by
    /// [`saved_here`](super::Balancer::saved_here).
    ///
    /// # Errors
    ///
    /// If it cannot be encoded.
    fn save(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure>;

    /// At rank 0: what all ranks have saved.
    ///
    /// # Errors
    ///
    /// If it cannot be kept.
    fn commit(&mut self, parts: Vec<Vec<u8>>) -> Result<(), Failure>;
}

/// Whether a job goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It does.
    Running,
    /// No task is left anywhere.
    Done,
    /// It has ended without a result.
    Failed(Failure),
}
