//! The counters of each worker, kept by itself.
//!
//! Each worker has counters of its own, on cache lines of its own. Only the worker writes them, or
//! the guest in that place: a load, an addition and a store, all plain. Other threads read them
//! with plain loads. So counting takes no locked instruction, and moves no cache line while no
//! thread reads.
//!
//! Counting is always on, because it stands only on cold paths: where a worker takes a task out of
//! a queue, steals, shares, sleeps, calls another. A fork that no thief steals is not counted: it
//! costs a few stores in all, and one more would show. The program knows that number itself.

use poach_memory::{Machine, Memory, Ordering, Word};

/// A number that one thread writes and any thread reads.
pub(crate) struct Count(<Machine as Memory>::Word);

impl Default for Count {
    fn default() -> Self {
        Count(Word::new(0))
    }
}

impl Count {
    /// Adds one. Only on the thread of the worker whose counter it is.
    #[inline(always)]
    pub(crate) fn up(&self) {
        // Relaxed, both: one thread writes, so nothing is lost between the two; a reader wants only
        // a recent number.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one worker: the numbers of [`WorkerStats`](crate::stats::WorkerStats).
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) tasks: Count,
    pub(crate) steals: Count,
    pub(crate) leaps: Count,
    pub(crate) grows: Count,
    pub(crate) shrinks: Count,
    pub(crate) exposures: Count,
    pub(crate) sleeps: Count,
    pub(crate) wakes: Count,
    pub(crate) membarriers: Count,
}
