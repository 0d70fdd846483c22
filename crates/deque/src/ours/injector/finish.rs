//! Finished slots and blocks: "Finishing" in the module comment.

use poach_memory::{Memory, Ordering, Word};

use super::{Block, Chain, Injector, Place, marked};

impl<T, M: Memory, const SLOTS: usize> Injector<T, M, SLOTS> {
    /// Finishes `count` indices from `first` on, which are this thread's, all of one block. The
    /// head has passed them. Wait-free.
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
            // Release: hands on what the finishers of the marked indices had done. If the exchange
            // fails another thread has moved the word over marks.
            let _ = self.finished.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        }
        let Ok(Some(next)) = self.chain.next(oldest, false) else { return false };
        // Acquire: pairs with the release in `lead`.
        let hint = Place::from(self.head.hint.load(Ordering::Acquire));
        if hint == oldest {
            // A thief that starts from a hint must find the chain there.
            self.lead(hint, next);
        }
        // Release: pairs with the acquire in `oldest`. If the exchange fails another thread has
        // given the block back.
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

#[cfg(test)]
mod tests {
    use poach_memory::Machine;

    use super::super::open;
    use super::*;

    #[test]
    fn indices_may_be_finished_in_any_order() {
        let injector = Injector::<u32, Machine, 4>::new();
        (0..5).for_each(|task| injector.push(task));
        assert!(injector.move_head(open(0), 4));
        let block = injector.chain.block(injector.oldest());
        injector.finish(block, 2, 2);
        injector.finish(block, 1, 1);
        assert!(!injector.give_back());
        injector.finish(block, 0, 1);
        assert!(injector.give_back());
        assert_eq!(injector.oldest().number(), 1);
    }

    // Miri cannot use loom's stacks.
    #[cfg(not(miri))]
    mod models {
        use std::sync::Arc;

        use super::super::super::{Batch, explore};
        use super::*;
        use poach_memory::Loom;

        type Modelled = Injector<u64, Loom, 1>;

        /// Two tasks that the head has passed, and the places of their blocks.
        fn claimed() -> (Arc<Modelled>, [Place; 2]) {
            let injector = Arc::new(Modelled::new());
            let places = [0, 1].map(|index| {
                injector.push(index);
                injector.place_of(index).unwrap().unwrap()
            });
            assert!(injector.move_head(open(0), 2));
            (injector, places)
        }

        /// A thief marks its index, moves the word over the mark, or finishes it by a store.
        #[test]
        fn a_slot_is_written_again_after_the_last_read_of_it() {
            explore(|| {
                let (injector, places) = claimed();
                let other = Arc::clone(&injector);
                let thief = loom::thread::spawn(move || {
                    let mut batch = Batch::new(&other, other.chain.block(places[1]), 1, 1);
                    assert_eq!(batch.next(), Some(1));
                    drop(batch);
                    other.give_back();
                });
                injector.finish(injector.chain.block(places[0]), 0, 1);
                (2..4).for_each(|task| injector.push(task));
                thief.join().unwrap();
                let left: Vec<_> = (0..9).filter_map(|_| injector.steal().success()).collect();
                assert_eq!(left, [2, 3]);
            });
        }

        #[test]
        fn a_block_is_not_given_back_while_the_hint_names_it() {
            explore(|| {
                let (injector, places) = claimed();
                injector.push(2);
                for (place, index) in places.into_iter().zip(0..) {
                    injector.finish(injector.chain.block(place), index, 1);
                }
                let other = Arc::clone(&injector);
                let giver = loom::thread::spawn(move || other.give_back());
                injector.give_back();
                giver.join().unwrap();
                let hint = Place::from(injector.head.hint.load(Ordering::Relaxed));
                assert!(injector.oldest().distance_to(hint.number()) >= 0);
            });
        }
    }
}
