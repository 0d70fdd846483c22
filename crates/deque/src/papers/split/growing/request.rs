//! The word with which the owner of a split deque of values compares its head.

use poach_memory::{Memory, Ordering, Word};

use super::super::sharing::SplitRequest;

/// Above any head: these start below 2^32, and 2^62 pushes take a century.
const RAISED: u64 = 1 << 62;

/// The request of an owner that fences, if no thief asks: above any head, too.
const ALWAYS: u64 = RAISED + 1;

/// The index of the split, as the owner has last seen it, or [`ALWAYS`]; or [`RAISED`].
pub(super) struct RequestWord<M: Memory>(M::Word);

impl<M: Memory> RequestWord<M> {
    /// Of an empty queue, the next task at `index`.
    pub(super) fn new(index: u64, owner_fences: bool) -> Self {
        RequestWord(M::Word::new(if owner_fences { ALWAYS } else { index }))
    }

    /// What a head must be above to go on.
    #[inline(always)]
    pub(super) fn value(&self) -> u64 {
        // Relaxed: the owner's own value, or a request.
        self.0.load(Ordering::Relaxed)
    }
}

impl<M: Memory> SplitRequest for RequestWord<M> {
    type Place = u64;
    const ALWAYS: u64 = ALWAYS;

    #[inline]
    fn is_asked(&self) -> bool {
        // Relaxed: as the trait says.
        self.0.load(Ordering::Relaxed) == RAISED
    }

    #[inline]
    fn ask(&self) {
        // Release: nothing but what the trait says; one word is overwritten or not.
        if !self.is_asked() {
            self.0.store(RAISED, Ordering::Release);
        }
    }

    fn ask_again(&self) {
        // Relaxed: the owner's own request, seen by itself.
        self.0.store(RAISED, Ordering::Relaxed);
    }

    fn stop_pops(&self) {
        // Relaxed: fences on both sides order it.
        self.0.store(RAISED, Ordering::Relaxed);
    }

    fn take_down(&self, split: u64) -> bool {
        // AcqRel: acquires what it overwrites, and keeps a thief's release sequence going.
        self.0.swap(split, Ordering::AcqRel) == RAISED
    }

    fn follow(&self, split: u64) -> bool {
        // Relaxed, both: the owner's own value is replaced by its own, or a request stays as it is.
        let own = self.0.load(Ordering::Relaxed);
        own != RAISED
            && self.0.compare_exchange(own, split, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
