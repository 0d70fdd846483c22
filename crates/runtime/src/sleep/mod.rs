//! Who sleeps, who searches, and who wakes whom.
//!
#![doc = include_str!("README.md")]

use poach_memory::{CachePadded, Memory, Ordering, Word};

#[cfg(test)]
mod model;

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

// Relaxed, throughout: the fences order these words against each other and against visible work, and
// what is handed over is handed over by the work's own words and by the seats.
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
    #[cold]
    pub(crate) fn wake_one(&self) {
        // P2: pairs with S3 and with L2.
        M::full();
        // P3.
        if self.searching.load(Ordering::Relaxed) != 0 {
            return;
        }
        for (group, word) in self.asleep.iter().enumerate() {
            loop {
                // P4.
                let sleepers = word.load(Ordering::Relaxed);
                if sleepers == 0 {
                    break;
                }
                if self.call(group * BITS + sleepers.trailing_zeros() as usize) {
                    return;
                }
            }
        }
    }

    /// What `worker` waits for has happened: wakes it, if it sleeps.
    #[inline]
    pub(crate) fn wake(&self, worker: usize) {
        // P2: pairs with S3.
        M::full();
        if self.asleep[worker / BITS].load(Ordering::Relaxed) & Self::bit(worker) != 0 {
            self.call(worker);
        }
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&self) {
        for worker in 0..self.seats.len() {
            self.wake(worker);
        }
    }

    /// P5: wakes this sleeper, unless another has.
    #[cold]
    fn call(&self, worker: usize) -> bool {
        if !self.take_bit(worker) {
            return false;
        }
        self.seats[worker].unpark();
        true
    }

    /// Makes a sleeper a searcher. Whoever clears the bit, and nobody else, must see that it runs.
    fn take_bit(&self, worker: usize) -> bool {
        let bit = Self::bit(worker);
        let taken = self.asleep[worker / BITS].fetch_and(!bit, Ordering::Relaxed) & bit != 0;
        if taken {
            self.searching.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    fn bit(worker: usize) -> u64 {
        1 << (worker % BITS)
    }

    /// Whether some worker is looking for work, or sleeps for want of it. Any thread; wait-free; out of
    /// date at once.
    #[inline]
    pub(crate) fn is_anybody_hungry(&self) -> bool {
        self.searching.load(Ordering::Relaxed) != 0
            || self.asleep.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// A worker begins to search.
    pub(crate) fn search(&self) {
        self.searching.fetch_add(1, Ordering::Relaxed);
    }

    /// A searcher has found something. If it was the last and others sleep, they have lost their
    /// lookout: then `true`, and the caller must see to them as line L3 says.
    pub(crate) fn found(&self) -> bool {
        // L1.
        let last = self.searching.fetch_sub(1, Ordering::Relaxed) == 1;
        // L2: pairs with P2.
        M::full();
        last && self.asleep.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// A searcher has found nothing and goes to sleep, unless `look_again` says that there is
    /// something after all. It is a searcher still, or again, when this returns.
    ///
    /// `look_again` first leaves a request with every victim, and then looks at everything that
    /// anybody would wake it for.
    pub(crate) fn sleep(&self, worker: usize, look_again: impl FnOnce() -> bool) {
        // S1.
        self.asleep[worker / BITS].fetch_or(Self::bit(worker), Ordering::Relaxed);
        // S2.
        self.searching.fetch_sub(1, Ordering::Relaxed);
        // S3: pairs with P2.
        M::full();
        // S4 and S5.
        if look_again() && self.take_bit(worker) {
            return;
        }
        // S6. If the bit was gone, somebody has called already, and this returns at once.
        self.seats[worker].park();
    }
}
