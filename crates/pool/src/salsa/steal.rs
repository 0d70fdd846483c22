//! A thief of SALSA: the theft of one chunk, lines 108-138. The argument is in the module above.

use core::mem::MaybeUninit;
use core::ptr;

use poach_memory::{Memory, Ordering, Pointer, StoreLoad, Word};

use super::SalsaConsumer;
use super::chunk::{Chunk, Term, moved};
use super::core::{CURRENT, ConsumerRecord, Core, TARGET, is_protected, protect, unprotect};
use super::found::Found;

impl<T: Send, M: Memory, F: StoreLoad<M>> SalsaConsumer<T, M, F> {
    /// The oldest chunk with tasks that the victim does not work on, or else its current one.
    fn choose(victim: &ConsumerRecord<T, M, F>, from: usize) -> Option<&Chunk<T, M>> {
        // Relaxed: a hint, compared and not followed.
        let busy = victim.hazards[CURRENT].load(Ordering::Relaxed);
        let mut second_best = None;
        for chunk in victim.chunks().filter(|chunk| chunk.held_for(from) > 0) {
            if !ptr::eq(chunk, busy) {
                return Some(chunk);
            }
            second_best = Some(chunk);
        }
        second_best
    }

    /// Point 2: whether `from` alone published takes in the term `old`, which has ended, is not at
    /// the chunk, and will not come there in that term.
    fn is_left_alone(
        victim: &ConsumerRecord<T, M, F>,
        chunk: &Chunk<T, M>,
        old: Term,
        from: usize,
    ) -> bool {
        if !old.is_settled_on(from) {
            return false;
        }
        // Pairs with the fence in `protect`.
        M::full();
        !is_protected(victim, chunk)
    }

    /// Lines 108-138. Leaves hazard pointer [`TARGET`] set. The task goes to `place`.
    #[cold]
    pub(super) fn steal_chunk(
        &mut self,
        victim: &ConsumerRecord<T, M, F>,
        core: &Core<T, M, F>,
        from: usize,
        place: &mut MaybeUninit<T>,
    ) -> Option<Found<T>> {
        let chunk = Self::choose(victim, from)?;
        protect(self.record(), TARGET, chunk);
        // Acquire: what follows is read in this term or a later one.
        let old = Term(chunk.term().load(Ordering::Acquire));
        if old.owner() != from || from == self.number {
            return None;
        }
        // Lines 112-114.
        let before = chunk.taken_in(old)?;
        // Acquire pairs with the producer's Release.
        if chunk.filled().load(Ordering::Acquire) <= before {
            return None;
        }
        let mine = chunk.make_taken(self.number)?;
        let stolen = old.next(self.number, old.source());
        // Line 115: "make it stealable from my list".
        self.record().held.add(chunk, stolen)?;
        // Section 5.5: the victim's pool may become empty. `steal` makes the number even again.
        self.announce_move();
        // Line 116. AcqRel: releases the list's entry to thieves of this consumer; acquires what
        // the victim did as the owner. Relaxed on failure: nothing is read then.
        self.exchanges += 1;
        chunk.term().compare_exchange(old.0, stolen.0, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        if !Self::is_left_alone(victim, chunk, old, from) {
            // Point 1. The fence of the consumer whose `taken` word counts: it publishes there.
            let fence = &core.consumers.get(old.source())?.fence;
            fence.thief();
            while fence.delta() > 0 && !fence.resolve() {
                // The victim's takes are not known yet. The chunk can be stolen from this thief.
                if chunk.term().load(Ordering::Relaxed) != stolen.0 {
                    return None;
                }
                M::pause();
            }
        }
        // Line 119.
        let taken = chunk.taken_in(stolen)?;
        // Line 120: exhausted; the consumer that took the last slot returns the chunk.
        if taken == chunk.length() {
            return None;
        }
        // Line 123. Acquire pairs with the producer's Release.
        let filled = chunk.filled().load(Ordering::Acquire);
        let has_task = filled > taken;
        if has_task {
            // Point 4: `filled` was read before the term is looked at again.
            M::full();
            // Line 125.
            if taken != before && chunk.term().load(Ordering::Relaxed) != stolen.0 {
                return None;
            }
        }
        // Lines 128-131. Release, as in `take_task`; the exchange makes `mine` the word that
        // counts. If it fails the chunk was stolen again, and the new thief uses the old word.
        let next = taken + u64::from(has_task);
        // The next step may empty this consumer's pool.
        self.announce_move();
        mine.store(next, Ordering::Release);
        self.exchanges += 1;
        let settled = stolen.settled();
        let is_mine = chunk
            .term()
            .compare_exchange(stolen.0, settled.0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        // Line 133.
        if !has_task {
            return None;
        }
        // Line 134.
        self.exchanges += 1;
        let task = chunk.claim(taken).then(|| moved::<T, M>(chunk.slots(), taken, place));
        if next == chunk.length() {
            // Line 135, but only for the consumer that has the last task.
            if task.is_some() {
                unprotect(self.record(), TARGET);
                self.core.retire(self.record(), chunk);
                self.exchanges += 2;
            }
        } else if is_mine {
            // Line 136. `CURRENT` before `TARGET` is cleared: the chunk is protected throughout.
            protect(self.record(), CURRENT, chunk);
            self.make_current(chunk, settled);
        }
        task
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use poach_memory::Machine;

    use super::super::Salsa;
    use super::*;
    use crate::mechanism::{Consume, Mechanism, Produce};

    #[test]
    fn no_term_comes_twice() {
        let pools = Arc::new(Salsa::<u32, Machine>::new(4).expect("memory"));
        let mut producer = pools.producer().expect("memory");
        let mut consumers = [(); 2].map(|()| pools.consumer().expect("memory"));
        assert!((0..4).all(|task| producer.produce_force(0, task).is_ok()));
        let term =
            || pools.core.chunks.get(0).expect("it was filled").term().load(Ordering::Relaxed);
        let first = term();
        assert_eq!(consumers[1].steal(0), Some(0));
        assert_eq!(consumers[0].steal(1), Some(1));
        assert!(Term(term()).is_settled_on(0) && term() != first);
    }

    #[cfg(not(miri))]
    #[test]
    fn who_sees_a_step_of_a_theft_sees_the_others() {
        use std::cell::RefCell;
        use std::rc::Rc;

        use crate::models::clean;
        use poach_check::{Kind, Simulated, Threads, fail};

        let model = |threads: &mut Threads| {
            let pools = Arc::new(Salsa::<u32, Simulated>::new(4).expect("memory"));
            let mut producer = pools.producer().expect("memory");
            let [owner, mut thief] = [(); 2].map(|()| pools.consumer().expect("memory"));
            assert!((0..2).all(|task| producer.produce_force(0, task).is_ok()));
            // Kept: the thief's drop is none of the steps.
            let kept = Rc::new(RefCell::new(None));
            let keep = Rc::clone(&kept);
            threads.spawn("thief", move || {
                assert_eq!(thief.steal(0), Some(0));
                *keep.borrow_mut() = Some(thief);
            });
            let sees = Arc::clone(&pools);
            threads.spawn("looker", move || {
                let chunk = sees.core.chunks.get(0).expect("it was filled");
                let taken = chunk.taken(1).expect("it is one of the first");
                // Odd before the theft, again before it takes, and even in the end.
                if taken.load(Ordering::Acquire) != 0 && sees.announced(1) < 3 {
                    fail(Kind::FalseEmpty, "it has taken a task that it did not announce");
                }
            });
            let sees = Arc::clone(&pools);
            threads.spawn("another", move || {
                let chunk = sees.core.chunks.get(0).expect("it was filled");
                if sees.announced(1) == 4 {
                    // Relaxed, here and below: known by the announcement.
                    let term = Term(chunk.term().load(Ordering::Relaxed));
                    let taken = chunk.taken(1).expect("it is one of the first");
                    if !term.is_settled_on(1) || taken.load(Ordering::Relaxed) != 1 {
                        fail(Kind::FalseEmpty, "the theft is said to be over, and is not");
                    }
                }
            });
            threads.finally(move || drop((pools, producer, owner, kept)));
        };
        clean(model);
    }

    #[cfg(not(miri))]
    mod models {
        use std::cell::RefCell;
        use std::rc::Rc;

        use crate::models::clean;
        use poach_check::{Kind, Simulated, Threads, fail};

        use super::*;

        type Pools = Salsa<u32, Simulated>;
        type Flag = <Simulated as Memory>::Word;

        /// The owner of a pool takes its only task. A thief comes when that has ended, and may read
        /// what was there before; and another does something.
        fn taken_during_a_theft(
            threads: &mut Threads,
            chunk_length: usize,
            another: (&'static str, fn(&Pools, &Flag)),
            check: fn(&Pools),
        ) {
            let pools = Arc::new(Pools::new(chunk_length).expect("memory"));
            let mut producer = pools.producer().expect("memory");
            let [mut owner, mut thief] = [(); 2].map(|()| pools.consumer().expect("memory"));
            assert!(producer.produce_force(0, 0).is_ok());
            let (kept, ended) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Flag::new(0)));
            let (keep, ends) = (Rc::clone(&kept), Rc::clone(&ended));
            threads.spawn("owner", move || {
                owner.consume();
                keep.borrow_mut().push(owner);
                // Relaxed: nothing is handed on by it.
                ends.store(1, Ordering::Relaxed);
            });
            let (keep, sees) = (Rc::clone(&kept), Rc::clone(&ended));
            threads.spawn("thief", move || {
                // The model asks about no other order. Relaxed: nothing is acquired by it.
                if sees.load(Ordering::Relaxed) != 0 {
                    thief.steal(0);
                }
                keep.borrow_mut().push(thief);
            });
            let (uses, sees) = (Arc::clone(&pools), Rc::clone(&ended));
            threads.spawn(another.0, move || (another.1)(&uses, &sees));
            threads.finally(move || {
                check(&pools);
                drop((producer, kept, ended));
            });
        }

        fn chunk(pools: &Pools) -> &Chunk<u32, Simulated> {
            pools.core.chunks.get(0).expect("it was filled")
        }

        /// No full fence stands between the last step of such a theft and its end.
        #[test]
        fn a_theft_that_found_no_task_is_over_when_it_is_said_to_be() {
            let looks = |pools: &Pools, _: &Flag| {
                // Relaxed: known by the announcement, which is even and behind all steps.
                if pools.announced(1) == 4
                    && !Term(chunk(pools).term().load(Ordering::Relaxed)).is_settled_on(1)
                {
                    fail(Kind::FalseEmpty, "the theft is said to be over, and is not");
                }
            };
            clean(|threads| taken_during_a_theft(threads, 4, ("looker", looks), |_| ()));
        }

        /// The owner takes the last task of the thief's chunk, and a producer begins the chunk's
        /// next life. Point 4: a thief that has stolen a chunk has seen a task in it.
        #[test]
        fn a_chunk_that_nothing_is_in_yet_is_not_stolen() {
            let begins = |pools: &Pools, ended: &Flag| {
                // Relaxed, as in the thief.
                if ended.load(Ordering::Relaxed) == 0 {
                    return;
                }
                let record = pools.core.consumers.get(0).expect("it is there");
                let mine = pools.core.producers.get(0).expect("it is there");
                if let Some(chunk) = pools.core.pop_free(record, mine) {
                    // As the producer's `try_get_chunk` does.
                    let old = Term(chunk.term().load(Ordering::Relaxed));
                    chunk.term().store(old.next(0, 0).0, Ordering::Release);
                }
            };
            let check = |pools: &Pools| {
                assert!(!chunk(pools).is_owned_by(1), "the thief has seen no task in its chunk");
            };
            clean(|threads| taken_during_a_theft(threads, 1, ("producer", begins), check));
        }
    }
}
