//! What the faces ask of the owner beside what every [`OwnersEnd`](crate::owners_end) does, and a
//! queue that is opened for good.

use poach_memory::Memory;

use super::{Fifo, OPEN};

impl<T, M: Memory> Fifo<T, M> {
    /// The tail, and an index at or below that of the first task: two words that only the owner
    /// stores.
    ///
    /// Those of a [`Biased`](crate::Biased) deque stand as far from what its handle points to, so a
    /// worker that has one of the two kinds compares them before it asks which it is.
    #[inline(always)]
    pub(crate) fn ends(&self) -> [&M::Word; 2] {
        let owner = &self.shared.owner;
        [&owner.tail, &owner.taken]
    }

    /// How far the [`ends`](Fifo::ends) are from what the handle points to, in bytes.
    #[cfg(test)]
    pub(crate) fn places_of_ends(&self) -> [usize; 2] {
        let start = (&raw const *self.shared).addr();
        self.ends().map(|word| (&raw const *word).addr() - start)
    }

    /// Opens the queue, if it is closed.
    pub(crate) fn open(&self) {
        if self.private().closed.get() != OPEN {
            self.finish_below(self.taken());
            self.open_at(self.taken());
        }
    }
}

impl<T, M: Memory> Drop for Fifo<T, M> {
    /// No thief has to pay for a barrier from now on.
    fn drop(&mut self) {
        self.open();
    }
}

#[cfg(test)]
mod tests {
    use poach_memory::{Machine, Ordering};

    use super::super::{LONGEST, SHORTEST, WORTH};
    use super::*;
    use crate::owners_end::OwnersEnd as _;
    use crate::traits::Steal;

    /// A queue of four slots. An owner without patience has closed it from the start; thieves do
    /// not wait for its answer.
    fn fifo(patience: u32) -> Fifo<u64> {
        Fifo::with_patience(4, 0, patience, 0).unwrap()
    }

    impl Fifo<u64, Machine> {
        /// Adds `count` tasks from `first` on at once.
        fn push_several(&self, first: u64, count: u64) {
            let source: Fifo<u64> = Fifo::with_patience(8, 0, SHORTEST, 0).unwrap();
            (first..first + count).for_each(|task| source.push(task));
            let thief = source.thief();
            let Steal::Success(mut claimed) = thief.claim_unfenced(|_| count) else {
                panic!("nobody else takes them");
            };
            self.push_all(count as usize, &mut claimed);
        }

        fn is_open(&self) -> bool {
            let is_open = self.private().closed.get() == OPEN;
            let head = self.shared.thieves.head.load(Ordering::Relaxed);
            assert!(!is_open || head & OPEN != 0, "the owner knows that it is open");
            is_open
        }

        fn undisturbed(&self) -> u32 {
            self.private().undisturbed.get()
        }
    }

    #[test]
    fn an_owner_closes_the_queue_after_as_many_pops_as_its_patience_and_one() {
        let owner = fifo(2);
        (0..4).for_each(|task| owner.push(task));
        for pops in 1..=2 {
            assert_eq!(owner.pop(), Some(pops - 1));
            assert_eq!(
                (owner.is_open(), owner.undisturbed(), owner.taken()),
                (true, pops as u32, pops)
            );
        }
        assert_eq!(owner.pop(), Some(2));
        assert_eq!((owner.is_open(), owner.undisturbed(), owner.taken()), (false, 0, 3));
    }

    #[test]
    fn a_thief_between_two_pops_disturbs_the_owner() {
        let owner = fifo(2);
        let thief = owner.thief();
        (0..4).for_each(|task| owner.push(task));
        assert_eq!(
            (owner.pop(), thief.steal(), owner.pop()),
            (Some(0), Steal::Success(1), Some(2))
        );
        assert_eq!((owner.is_open(), owner.undisturbed(), owner.taken()), (true, 0, 3));
        assert_eq!((owner.pop(), owner.undisturbed()), (Some(3), 1));
        // It has all that is left.
        owner.push(4);
        assert_eq!((thief.steal(), owner.pop()), (Steal::Success(4), None));
        assert_eq!((owner.is_open(), owner.undisturbed(), owner.taken()), (true, 0, 5));
        // The same where the owner was about to close the queue.
        (5..7).for_each(|task| owner.push(task));
        assert_eq!((owner.pop(), owner.pop(), owner.undisturbed()), (Some(5), Some(6), 2));
        owner.push(7);
        assert_eq!((thief.steal(), owner.pop()), (Steal::Success(7), None));
        assert_eq!((owner.is_open(), owner.undisturbed(), owner.taken()), (true, 0, 8));
    }

    #[test]
    fn an_owner_is_more_patient_after_a_close_that_was_not_worth_it() {
        // A pop that meets a request, after `pops` pops that met none.
        let after = |patience, pops| {
            let owner = fifo(0);
            owner.private().patience.set(patience);
            for task in 0..pops {
                owner.push(task);
                assert_eq!((owner.pop(), owner.is_open()), (Some(task), false));
            }
            owner.shared.request.store(1, Ordering::Relaxed);
            owner.push(pops);
            assert_eq!((owner.pop(), owner.is_open()), (Some(pops), true));
            assert_eq!(owner.shared.request.load(Ordering::Relaxed), 0, "the request is answered");
            assert_eq!(owner.private().unfinished.get(), pops, "what it took before is finished");
            owner.private().patience.get()
        };
        assert_eq!(after(SHORTEST, 0), 2 * SHORTEST);
        assert_eq!(after(SHORTEST, WORTH - 1), 2 * SHORTEST);
        assert_eq!(after(LONGEST, 0), LONGEST);
        assert_eq!(after(4 * SHORTEST, WORTH), 2 * SHORTEST);
        assert_eq!(after(SHORTEST, WORTH), SHORTEST);
        assert_eq!(after(2, WORTH), 2);
    }

    #[test]
    fn an_owner_of_a_closed_queue_uses_the_slots_of_what_it_has_taken() {
        let pushes: [fn(&Fifo<u64>, u64); 3] = [
            |owner, first| (first..first + 4).for_each(|task| owner.push(task)),
            |owner, first| (first..first + 4).for_each(|task| owner.push_within(task).unwrap()),
            |owner, first| owner.push_several(first, 4),
        ];
        for push in pushes {
            let owner = fifo(0);
            for first in (0..40).step_by(4) {
                push(&owner, first);
                (first..first + 4).for_each(|task| assert_eq!(owner.pop(), Some(task)));
            }
            assert_eq!((owner.capacity(), owner.is_open()), (4, false));
        }
    }

    /// The thief's barrier may have been refused, and the owner may not pop again.
    #[test]
    fn an_owner_that_is_asked_opens_the_queue_when_it_looks_for_slots() {
        let pushes: [fn(&Fifo<u64>); 4] = [
            |owner| owner.push(4),
            |owner| owner.push_within(4).unwrap(),
            |owner| owner.push_several(4, 1),
            |owner| assert_eq!(owner.free(), 1),
        ];
        for push in pushes {
            let owner = fifo(0);
            (0..4).for_each(|task| owner.push(task));
            assert_eq!((owner.pop(), owner.is_open()), (Some(0), false));
            owner.shared.request.store(1, Ordering::Relaxed);
            push(&owner);
            assert_eq!((owner.is_open(), owner.private().unfinished.get()), (true, 1));
            assert_eq!(owner.shared.request.load(Ordering::Relaxed), 0, "the request is answered");
            assert_eq!((owner.thief().steal(), owner.pop()), (Steal::Success(1), Some(2)));
        }
    }

    #[test]
    fn slots_are_not_finished_as_long_as_there_are_free_ones() {
        let owner = fifo(0);
        owner.push_several(0, 2);
        assert_eq!((owner.pop(), owner.private().unfinished.get()), (Some(0), 0));
        owner.push_several(2, 2);
        assert_eq!(owner.private().unfinished.get(), 0);
        owner.push_several(4, 1);
        assert_eq!((owner.private().unfinished.get(), owner.capacity()), (1, 4));
    }

    #[test]
    fn an_owner_opens_a_closed_queue_above_what_it_has_taken() {
        let owner = fifo(0);
        (0..3).for_each(|task| owner.push(task));
        assert_eq!((owner.pop(), owner.pop(), owner.is_open()), (Some(0), Some(1), false));
        owner.open();
        assert_eq!((owner.is_open(), owner.private().unfinished.get()), (true, 2));
        owner.open();
        assert_eq!((owner.is_open(), owner.len(), owner.pop()), (true, 1, Some(2)));
    }

    #[test]
    fn an_owner_that_goes_leaves_the_queue_open() {
        let owner = fifo(0);
        owner.push(0);
        let thief = owner.thief();
        drop(owner);
        assert_ne!(thief.head() & OPEN, 0);
        assert_eq!((thief.steal(), thief.steal()), (Steal::Success(0), Steal::Empty));
    }
}
