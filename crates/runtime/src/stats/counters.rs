//! What each worker has done, counted by itself.
//!
//! Each worker has counters of its own, on cache lines of its own, and is the only one that writes
//! them (or the guest whose place it is): a load, an addition and a store, all plain. Other threads
//! read them with plain loads. So counting takes no locked instruction, and moves no cache line
//! while nobody reads.
//!
//! Counting is always on, and there is no feature for it, because it stands on cold paths alone:
//! where a worker takes a task out of a queue, steals, shares, sleeps, calls another. A fork that
//! nobody steals is not counted: it costs a few stores in all, and one more would show. Its number
//! is the program's to know.

use poach_memory::{Machine, Memory, Ordering, Word};

/// A number that one thread writes and any thread reads.
pub(crate) struct Count(<Machine as Memory>::Word);

impl Count {
    fn new() -> Count {
        Count(Word::new(0))
    }

    /// One more. Only on the thread of the worker whose counter it is.
    #[inline(always)]
    pub(crate) fn up(&self) {
        // Relaxed, both: one thread writes, so nothing is lost between the two; a reader wants a
        // recent number, and nothing with it.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// What a worker counts.
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

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters {
            tasks: Count::new(),
            steals: Count::new(),
            leaps: Count::new(),
            grows: Count::new(),
            shrinks: Count::new(),
            exposures: Count::new(),
            sleeps: Count::new(),
            wakes: Count::new(),
            membarriers: Count::new(),
        }
    }
}
