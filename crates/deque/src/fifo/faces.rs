//! What the faces ask of the owner beside push and pop: batches, and a ring that does not grow.

use poach_memory::{Memory, Ordering, Word};

use super::{Fifo, NoMemory, OPEN};
use crate::ring::Claim;

impl<T, M: Memory> Fifo<T, M> {
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

    /// Adds the next `count` of `tasks`, shown to thieves at once. Ends the program as [`push`](Owner::push) does.
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
        match unsafe { buffer.write_all(&self.shared.rings, tail, count, tasks) } {
            Ok(tail) => self.publish(tail),
            Err(NoMemory) => crate::out_of_memory::<T>(),
        }
    }

    /// Adds tasks as long as there are free slots in the ring as it is. No more are taken from the iterator. If that unwinds, up to three
    /// tasks that it has given are dropped.
    #[inline]
    pub(crate) fn extend_within(&self, mut tasks: impl Iterator<Item = T>) {
        let buffer = &self.private().buffer;
        let mut tail = self.tail();
        // The iterator may use this very queue. So what it has given is in no slot while it runs, and goes there at the tail of then.
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
                    // SAFETY: there is a free slot at `tail`, which is the owner's, and `shared` keeps the rings.
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

    /// Adds tasks; those that find no free slot, because an iterator has filled the queue meanwhile, are dropped.
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
            self.finish_taken();
            // Relaxed: only the owner stores it.
            self.open_at(self.shared.owner.taken.load(Ordering::Relaxed));
        }
    }
}
