//! The network as MPI has it.

mod delays;
mod raw;

use std::time::{Duration, Instant};

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _};

use crate::balance::window::SLOTS;
use crate::balance::{Message, Stealing};
use crate::transport::{Transport, Word};
use delays::Delays;
use raw::{Port, Window};

/// How long a rank that has no window waits for the others.
const PATIENCE: Duration = Duration::from_secs(3);

/// A rank has no window.
pub(crate) struct Windowless {
    /// The rank without a window: this rank, if it has none itself.
    pub(crate) rank: usize,
    /// Why.
    pub(crate) message: String,
    /// The others do not answer.
    pub(crate) alone: bool,
}

/// A rank's connection to the others, over a communicator of its own.
///
/// A call of MPI that fails is noted in [`error`](Link::error), and nothing is sent or received
/// from then on.
pub(crate) struct Link {
    port: Port,
    window: Option<Window>,
    rank: usize,
    ranks: usize,
    began: Instant,
    /// The job that messages belong to: those of an earlier one are dropped.
    job: u32,
    /// How many messages went to and came from each rank, over all jobs.
    sent: Vec<u64>,
    received: Vec<u64>,
    delays: Delays,
    /// What went wrong first.
    pub(crate) error: Option<String>,
}

impl Link {
    /// Over a communicator that nothing else uses. Collective.
    pub(crate) fn new(comm: SimpleCommunicator) -> Link {
        let (rank, ranks) = (comm.rank() as usize, comm.size() as usize);
        Link {
            port: Port::new(comm),
            window: None,
            rank,
            ranks,
            began: Instant::now(),
            job: 0,
            sent: vec![0; ranks],
            received: vec![0; ranks],
            delays: Delays::none(ranks),
            error: None,
        }
    }

    /// The communicator, for what is collective.
    pub(crate) fn comm(&self) -> &SimpleCommunicator {
        self.port.comm()
    }

    /// Begins a job. Collective: it waits for all ranks.
    ///
    /// # Errors
    ///
    /// If a window is wanted and cannot be had, on some rank.
    pub(crate) fn begin(
        &mut self,
        stealing: Stealing,
        parcel_bytes: usize,
    ) -> Result<(), Windowless> {
        self.job += 1;
        let mut window = Ok(None);
        if stealing == Stealing::Window && self.ranks > 1 {
            window = match self.window.take() {
                Some(window) => self.clear(window).map(Some),
                None => Window::new(&mut self.port, SLOTS, parcel_bytes).map(Some),
            };
        }
        // With Open MPI's `osc_sm`, if one rank cannot make a window, the other ranks wait in its
        // making for ever. So that rank waits for a moment only, and the others until it ends the
        // job.
        let patience = window.is_err().then_some(PATIENCE);
        let all = self.port.exchange(window.is_ok().into(), patience);
        let rank = self.rank;
        let without = |rank, message| Windowless { rank, message, alone: false };
        let all = all.map_err(|message| without(rank, message))?;
        let alone = all.is_none();
        let window = window.map_err(|message| Windowless { rank, message, alone })?;
        if let Some(first) = all.and_then(|all| all.iter().position(|&well| well == 0)) {
            // A window that not all ranks have is never freed, since they would have to do so
            // together.
            return Err(without(first, "it has no window".to_owned()));
        }
        // A window of earlier jobs stays for later ones, and is freed in the end, whatever this job
        // has asked for.
        self.window = window.or(self.window.take());
        Ok(())
    }

    /// This rank's window as it was when it was made: the one of an earlier job is used again,
    /// since making one takes milliseconds.
    ///
    /// No operation of that job is under way: each was over when its rank went on. A thief copies
    /// and counts a claim before it counts the claim as received, and no job ends before that. A
    /// look that comes late finds an empty queue.
    fn clear(&mut self, mut window: Window) -> Result<Window, String> {
        for word in [Word::Ends, Word::Copied] {
            let old = window.fetch_add(self.rank, word, 0)?;
            window.fetch_add(self.rank, word, old.wrapping_neg())?;
        }
        Ok(window)
    }

    /// From now on delays each message and each one-sided operation by at most this time, as the
    /// seed and the rank decide.
    pub(crate) fn delay(&mut self, most: Duration, seed: u64) {
        self.delays.begin(most, seed.wrapping_add((self.rank as u64) << 32));
    }

    /// Frees the window. Collective; after the last job.
    pub(crate) fn free(&mut self) {
        if let Some(window) = self.window.take() {
            window.free();
        }
    }

    /// Waits until everything that any rank has sent has arrived. Collective; after the last job.
    pub(crate) fn drain(&mut self) {
        let mut expected = vec![0; self.ranks];
        self.comm().all_to_all_into(&self.sent[..], &mut expected[..]);
        while self.error.is_none() && self.received != expected {
            self.arrived();
        }
        while self.port.pending().is_ok_and(|pending| pending > 0) {
            std::thread::yield_now();
        }
    }

    fn note<T>(&mut self, outcome: Result<T, String>) -> Option<T> {
        outcome.map_err(|error| self.error.get_or_insert(error)).ok()
    }

    /// A message that has arrived, its job, and its sender.
    fn arrived(&mut self) -> Option<(usize, u32, Message)> {
        if self.error.is_some() {
            return None;
        }
        let received = self.port.receive();
        let (from, bytes) = self.note(received)??;
        self.received[from] += 1;
        let decoded = postcard::from_bytes::<(u32, Message)>(&bytes)
            .map_err(|error| format!("what rank {from} sent is no message: {error}"));
        let (job, message) = self.note(decoded)?;
        Some((from, job, message))
    }

    /// Before an operation on a rank's window: the delay, if it is another rank's.
    fn wait(&mut self, rank: usize) {
        if rank != self.rank {
            self.delays.wait();
        }
    }

    fn window(&mut self) -> &mut Window {
        self.window.as_mut().expect("one-sided operations are for jobs with windows")
    }
}

impl Transport for Link {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn now(&mut self) -> u64 {
        // Never 0, which stands for never.
        self.began.elapsed().as_nanos() as u64 + 1
    }

    fn send(&mut self, to: usize, message: Message) {
        if self.error.is_some() {
            return;
        }
        let encoded =
            postcard::to_allocvec(&(self.job, message)).map_err(|error| error.to_string());
        let outcome = encoded.and_then(|bytes| self.port.send(to, bytes));
        if self.note(outcome).is_some() {
            self.sent[to] += 1;
        }
    }

    fn receive(&mut self) -> Option<(usize, Message)> {
        let delayed = self.delays.are_there();
        if delayed {
            while let Some((from, job, message)) = self.arrived() {
                self.delays.hold(from, job, message);
            }
        }
        loop {
            // What has come is held back, all of it.
            let next = if delayed { self.delays.due() } else { self.arrived() };
            let (from, job, message) = next?;
            if job == self.job {
                return Some((from, message));
            }
        }
    }

    fn fetch_add(&mut self, rank: usize, word: Word, number: u64) -> u64 {
        self.wait(rank);
        let outcome = self.window().fetch_add(rank, word, number);
        self.note(outcome).unwrap_or(0)
    }

    fn get(&mut self, rank: usize, slot: usize) -> Vec<u8> {
        self.wait(rank);
        let outcome = self.window().get(rank, slot);
        self.note(outcome).unwrap_or_default()
    }

    fn put_own(&mut self, slot: usize, bytes: &[u8]) {
        let rank = self.rank;
        let outcome = self.window().put(rank, slot, bytes);
        self.note(outcome);
    }
}
