//! What the faces ask of the owner beside push and pop: batches, a ring that does not grow, and a
//! queue that is opened for good. And the queue as an [`Owner`].

use poach_memory::Memory;

use super::{Fifo, NoMemory, OPEN, Thief};
use crate::ring::Claim;
use crate::{OutOfMemory, Owner};

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

    /// Adds a task if there is a free slot in the ring as it is.
    #[inline]
    pub(crate) fn push_within(&self, task: T) -> Result<(), T> {
        let tail = self.tail();
        if !self.has(tail) {
            return Err(task);
        }
        // SAFETY: there is a free slot at `tail`, which is the owner's.
        unsafe { self.put(tail, task) };
        Ok(())
    }

    /// Whether there is a free slot at `tail` in the ring as it is.
    #[inline(always)]
    fn has(&self, tail: u64) -> bool {
        self.private().buffer.has(tail) || self.find(tail)
    }

    /// As [`Buffer::find`].
    #[cold]
    #[inline(never)]
    fn find(&self, tail: u64) -> bool {
        self.finish_taken();
        self.private().buffer.find(&self.shared.rings, tail)
    }

    /// Adds the next `count` of `tasks`, shown to thieves at once. Ends the program as
    /// [`push`](Owner::push) does.
    #[inline]
    pub(crate) fn push_all(&self, count: usize, tasks: &mut impl Claim<Item = T>) {
        if count == 0 {
            return;
        }
        let tail = self.tail();
        let buffer = &self.private().buffer;
        if !buffer.has_several(tail, count as u64) {
            self.finish_taken();
        }
        // SAFETY: the tail is the owner's, and `shared` keeps the rings.
        match unsafe { buffer.write_all(&self.shared.rings, tail, count, tasks, || self.len()) } {
            Ok(tail) => self.publish(tail),
            Err(NoMemory) => crate::out_of_memory::<T>(),
        }
    }

    /// Adds tasks as long as there are free slots in the ring as it is. No more are taken from the
    /// iterator. If that unwinds, up to three tasks that it has given are dropped.
    #[inline]
    pub(crate) fn extend_within(&self, mut tasks: impl Iterator<Item = T>) {
        let buffer = &self.private().buffer;
        let mut tail = self.tail();
        // The iterator may use this very queue. So what it has given is in no slot while it runs,
        // and goes there at the tail of then.
        loop {
            if buffer.has_several(tail, 4) {
                // One store of the tail shows four.
                let Some(first) = tasks.next() else { return };
                let Some(second) = tasks.next() else { return self.push_each([first]) };
                let Some(third) = tasks.next() else { return self.push_each([first, second]) };
                let Some(fourth) = tasks.next() else {
                    return self.push_each([first, second, third]);
                };
                if self.tail() != tail {
                    self.push_each([first, second, third, fourth]);
                    tail = self.tail();
                    continue;
                }
                for task in [first, second, third, fourth] {
                    // SAFETY: there is a free slot at `tail`, which is the owner's, and `shared`
                    // keeps the rings.
                    unsafe { buffer.write(tail, task) };
                    tail = tail.wrapping_add(1);
                }
                self.publish(tail);
            } else if self.has(tail) {
                let Some(task) = tasks.next() else { return };
                self.push_each([task]);
                tail = self.tail();
            } else {
                return;
            }
        }
    }

    /// Adds tasks; those that find no free slot, because an iterator has filled the queue
    /// meanwhile, are dropped.
    #[cold]
    #[inline(never)]
    fn push_each<const COUNT: usize>(&self, tasks: [T; COUNT]) {
        for task in tasks {
            drop(self.push_within(task));
        }
    }

    /// How many of `count` tasks there are free slots for in the ring as it is.
    #[inline]
    pub(crate) fn free_up_to(&self, count: usize) -> usize {
        if self.private().buffer.has_several(self.tail(), count as u64) {
            return count;
        }
        count.min(self.free())
    }

    /// Free slots in the ring as it is.
    pub(crate) fn free(&self) -> usize {
        self.finish_taken();
        self.private().buffer.free(&self.shared.rings, self.tail())
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

impl<T: Send, M: Memory> Owner<T> for Fifo<T, M> {
    type Thief = Thief<T, M>;

    #[inline]
    fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        Fifo::try_push(self, task)
    }

    #[inline]
    fn pop(&self) -> Option<T> {
        Fifo::pop(self)
    }

    fn thief(&self) -> Thief<T, M> {
        Fifo::thief(self)
    }

    fn len(&self) -> usize {
        Fifo::len(self)
    }
}

#[cfg(test)]
mod tests {
    use poach_memory::{Machine, Ordering};

    use super::super::{LONGEST, SHORTEST, WORTH};
    use super::*;
    use crate::Steal;

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
        // A pop that meets a request, after so many that met none.
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
