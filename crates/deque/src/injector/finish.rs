//! Which slots are of no more use, and which blocks: "Finishing" in the module comment.

use poach_memory::{Memory, Ordering, Word};

use super::{Block, Chain, Injector, Place, marked};

impl<T, M: Memory, const SLOTS: usize> Injector<T, M, SLOTS> {
    /// Finishes `count` indices from `first` on, which are this thread's, all of one block. The head has passed them. Wait-free.
    #[inline(always)]
    pub(super) fn finish(&self, block: &Block<T, M, SLOTS>, first: u64, count: u64) {
        // Acquire: the store below hands on what the finishers before this one had done.
        if self.finished.load(Ordering::Acquire) == first {
            // Release: pairs with the acquire in `give_back`; the slots are read before it.
            self.finished.store(first.wrapping_add(count), Ordering::Release);
            return;
        }
        for step in 0..count {
            let index = first.wrapping_add(step);
            // Release: pairs with the acquire in `give_back`; the slot is read before it.
            block.slot(index).state.store(marked(index), Ordering::Release);
        }
    }

    /// Gives the oldest block back, if all its indices are finished and there is a block after it.
    pub(super) fn give_back(&self) -> bool {
        let oldest = self.oldest();
        let block = self.chain.block(oldest);
        let here = |index: u64| oldest.distance_to(Chain::<T, M, SLOTS>::number(index)) == 0;
        loop {
            // Acquire: pairs with the release in `finish`.
            let from = self.finished.load(Ordering::Acquire);
            let mut to = from;
            // Acquire: as above.
            while here(to) && block.slot(to).state.load(Ordering::Acquire) == marked(to) {
                to = to.wrapping_add(1);
            }
            if to == from {
                if here(to) {
                    return false;
                }
                break;
            }
            // Release: hands on what the finishers of the marked indices had done. If the exchange fails another thread has moved
            // the word over marks.
            let _ = self.finished.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        }
        let Ok(Some(next)) = self.chain.next(oldest, false) else { return false };
        // Acquire: pairs with the release in `lead`.
        let hint = Place::from(self.head.hint.load(Ordering::Acquire));
        if hint == oldest {
            // A thief that starts from a hint must find the chain there.
            self.lead(hint, next);
        }
        // Release: pairs with the acquire in `oldest`. If the exchange fails another thread has given the block back.
        let passed = self.rare.oldest.compare_exchange(
            oldest.word(),
            next.word(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if passed.is_ok() {
            self.chain.put_back(oldest);
        }
        passed.is_ok()
    }
}
