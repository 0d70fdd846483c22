//! Who sleeps, who searches, and who wakes whom. The protocol and its proof stand in
//! [`README.md`](https://docs.rs/poach-runtime) beside this file, included here:
#![doc = include_str!("README.md")]

use poach_memory::{CachePadded, Memory, Ordering, Word};

/// A place where one thread sleeps until it is called; a call that comes first is kept.
pub(crate) trait Seat: Send + Sync {
    fn new() -> Self;
    /// Sleeps until called. Only the seat's own worker.
    fn park(&self);
    /// Calls the sleeper, now or at its next `park`.
    fn unpark(&self);
}

/// The sleepers and searchers of one pool.
pub(crate) struct Sleep<M: Memory, S> {
    /// How many workers are looking for work. Those that were woken count from the moment at which
    /// somebody decided to wake them.
    searching: CachePadded<M::Word>,
    /// One bit a worker: set by the worker when it goes to sleep, cleared by whoever wakes it.
    asleep: CachePadded<Box<[M::Word]>>,
    seats: Box<[S]>,
}

const BITS: usize = 64;

impl<M: Memory, S: Seat> Sleep<M, S> {
    pub(crate) fn new(workers: usize) -> Self {
        Sleep {
            searching: CachePadded::new(M::Word::new(0)),
            asleep: CachePadded::new(
                (0..workers.div_ceil(BITS)).map(|_| M::Word::new(0)).collect(),
            ),
            seats: (0..workers).map(|_| S::new()).collect(),
        }
    }

    /// There is new work that every searcher can see. Wakes one worker, unless one is searching
    /// already or none sleeps.
    ///
    /// The work must have been made visible by a sequentially consistent read-modify-write.
    #[cold]
    pub(crate) fn wake_one(&self) {
        // SeqCst: line P2 of the proof.
        if self.searching.load(Ordering::SeqCst) != 0 {
            return;
        }
        for (group, word) in self.asleep.iter().enumerate() {
            loop {
                // SeqCst: line P3.
                let sleepers = word.load(Ordering::SeqCst);
                if sleepers == 0 {
                    break;
                }
                if self.wake(group * BITS + sleepers.trailing_zeros() as usize) {
                    return;
                }
            }
        }
    }

    /// Wakes this worker, if it sleeps. What it waits for must have been made visible by a
    /// sequentially consistent read-modify-write.
    #[inline]
    pub(crate) fn wake(&self, worker: usize) -> bool {
        let word = &self.asleep[worker / BITS];
        let bit = 1 << (worker % BITS);
        // SeqCst: as P3.
        word.load(Ordering::SeqCst) & bit != 0 && self.wake_sleeper(worker, word, bit)
    }

    #[cold]
    fn wake_sleeper(&self, worker: usize, word: &M::Word, bit: u64) -> bool {
        // SeqCst: P4. Whoever clears the bit, and nobody else, calls.
        if word.fetch_and(!bit, Ordering::SeqCst) & bit == 0 {
            return false;
        }
        // SeqCst: in the name of the worker that is about to run.
        self.searching.fetch_add(1, Ordering::SeqCst);
        self.seats[worker].unpark();
        true
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&self) {
        for worker in 0..self.seats.len() {
            self.wake(worker);
        }
    }

    /// A worker begins to search.
    pub(crate) fn search(&self) {
        // SeqCst: S1 counts from here on.
        self.searching.fetch_add(1, Ordering::SeqCst);
    }

    /// A searcher has found something. If it was the last and others sleep, they have lost their
    /// lookout: then `true`, and the caller must see to them as line L2 says.
    pub(crate) fn found(&self) -> bool {
        // SeqCst: L1.
        self.searching.fetch_sub(1, Ordering::SeqCst) == 1
            && self.asleep.iter().any(|word| word.load(Ordering::SeqCst) != 0)
    }

    /// A searcher has found nothing and goes to sleep, unless `look_again` says that there is
    /// something after all. It is a searcher still, or again, when this returns.
    ///
    /// `look_again` first leaves a request with every victim, and then looks, with sequentially
    /// consistent loads, at everything that anybody would wake it for.
    pub(crate) fn sleep(&self, worker: usize, look_again: impl FnOnce() -> bool) {
        let word = &self.asleep[worker / BITS];
        let bit = 1 << (worker % BITS);
        // SeqCst: S1.
        word.fetch_or(bit, Ordering::SeqCst);
        // SeqCst: S2.
        self.searching.fetch_sub(1, Ordering::SeqCst);
        // S3 and S4.
        if look_again() {
            // SeqCst: either this worker wakes itself, or somebody has called it already.
            if word.fetch_and(!bit, Ordering::SeqCst) & bit != 0 {
                self.searching.fetch_add(1, Ordering::SeqCst);
                return;
            }
        }
        self.seats[worker].park();
    }
}
