//! The network as MPI has it.

mod raw;

use std::time::Instant;

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _};

use crate::balance::window::SLOTS;
use crate::balance::{Message, Stealing};
use crate::transport::{Transport, Word};
use raw::{Port, Window};

/// Bytes that an encoded parcel takes beside its tasks, at most: two numbers of postcard's.
const PARCEL_HEAD: usize = 16;

/// A rank's connection to the others, over a communicator of its own.
///
/// A call of MPI that fails is noted in [`error`](Link::error), and nothing is sent or received from then on.
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
    pub(crate) fn begin(&mut self, stealing: Stealing, parcel_bytes: usize) -> Result<(), String> {
        self.job += 1;
        let mut window = Ok(None);
        if stealing == Stealing::Window && self.ranks > 1 {
            window = Window::new(&mut self.port, SLOTS, parcel_bytes + PARCEL_HEAD).map(Some);
        }
        let mut well = vec![0u8; self.ranks];
        self.comm().all_gather_into(&u8::from(window.is_ok()), &mut well[..]);
        self.window = window?;
        match well.iter().position(|&well| well == 0) {
            Some(rank) => Err(format!("rank {rank} has no window")),
            None => Ok(()),
        }
    }

    /// Ends a job. Collective.
    pub(crate) fn end(&mut self) {
        if let Some(window) = self.window.take() {
            window.free();
        }
    }

    /// Waits until everything that any rank has sent has arrived. Collective; after the last job.
    pub(crate) fn drain(&mut self) {
        let mut expected = vec![0; self.ranks];
        self.comm().all_to_all_into(&self.sent[..], &mut expected[..]);
        while self.error.is_none() && self.received != expected {
            self.receive();
        }
        while self.port.pending().is_ok_and(|pending| pending > 0) {
            std::thread::yield_now();
        }
    }

    fn note<T>(&mut self, outcome: Result<T, String>) -> Option<T> {
        outcome.map_err(|error| self.error.get_or_insert(error)).ok()
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
        while self.error.is_none() {
            let received = self.port.receive();
            let (from, bytes) = self.note(received)??;
            self.received[from] += 1;
            let decoded = postcard::from_bytes::<(u32, Message)>(&bytes)
                .map_err(|error| format!("what rank {from} sent is no message: {error}"));
            let (job, message) = self.note(decoded)?;
            if job == self.job {
                return Some((from, message));
            }
        }
        None
    }

    fn fetch_add(&mut self, rank: usize, word: Word, number: u64) -> u64 {
        let outcome = self.window().fetch_add(rank, word, number);
        self.note(outcome).unwrap_or(0)
    }

    fn compare_swap(&mut self, rank: usize, word: Word, old: u64, new: u64) -> u64 {
        let outcome = self.window().compare_swap(rank, word, old, new);
        // Not what was expected: nothing was claimed.
        self.note(outcome).unwrap_or(!old)
    }

    fn get(&mut self, rank: usize, slot: usize) -> Vec<u8> {
        let outcome = self.window().get(rank, slot);
        self.note(outcome).unwrap_or_default()
    }

    fn put_own(&mut self, slot: usize, bytes: &[u8]) {
        let rank = self.rank;
        let outcome = self.window().put(rank, slot, bytes);
        self.note(outcome);
    }
}
