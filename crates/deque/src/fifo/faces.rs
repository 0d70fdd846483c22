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

    /// Adds tasks as long as there are free slots in the ring as it is. No more are taken from the iterator.
    #[inline]
    pub(crate) fn extend_within(&self, mut tasks: impl Iterator<Item = T>) {
        let mut tail = self.tail();
        while self.has(tail) {
            let Some(task) = tasks.next() else { return };
            // The iterator may have used this very queue, and filled it: then the task is dropped.
            if self.tail() != tail {
                tail = self.tail();
                if !self.has(tail) {
                    return;
                }
            }
            // SAFETY: there is a free slot at `tail`, which is the owner's.
            unsafe { self.put(tail, task) };
            tail = tail.wrapping_add(1);
        }
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
