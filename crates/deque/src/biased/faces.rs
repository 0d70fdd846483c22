//! What the faces ask of the owner beside push and pop: batches, and a ring that does not grow.

use poach_memory::{Memory, Ordering, StoreLoad, Word};

use super::{Biased, NoMemory, RAISED, pack, unpack};
use crate::ring::Claim;

impl<T, P: StoreLoad<M>, M: Memory> Biased<T, P, M> {
    /// Adds a task if there is a free slot in the ring as it is.
    #[inline]
    pub(crate) fn push_within(&self, task: T) -> Result<(), T> {
        // Relaxed: only the owner stores it.
        let tail = self.shared.owner.tail.load(Ordering::Relaxed);
        let buffer = &self.private().buffer;
        if !buffer.has(tail) && !buffer.find(&self.shared.thieves.rings, tail) {
            return Err(task);
        }
        // SAFETY: there is a free slot at `tail`, which is the owner's.
        unsafe { self.put(tail, task) };
        Ok(())
    }

    /// Adds the next `count` of `tasks`, shown to thieves at once. Ends the program as [`push`](Biased::push) does.
    #[inline]
    pub(crate) fn push_all(&self, count: usize, tasks: &mut impl Claim<Item = T>) {
        if count == 0 {
            return;
        }
        // Relaxed: only the owner stores it.
        let tail = self.shared.owner.tail.load(Ordering::Relaxed);
        let buffer = &self.private().buffer;
        // SAFETY: `tail` is the owner's, and `shared` keeps the rings.
        match unsafe { buffer.write_all(&self.shared.thieves.rings, tail, count, tasks) } {
            Ok(tail) => self.publish(tail),
            Err(NoMemory) => crate::out_of_memory::<T>(),
        }
    }

    /// Adds tasks as long as there are free slots in the ring as it is. No more are taken from the iterator.
    #[inline]
    pub(crate) fn extend_within(&self, mut tasks: impl Iterator<Item = T>) {
        let shared = &*self.shared;
        let buffer = &self.private().buffer;
        let is_free = |tail| buffer.has(tail) || buffer.find(&shared.thieves.rings, tail);
        // Relaxed, here and below: only the owner stores it.
        let mut tail = shared.owner.tail.load(Ordering::Relaxed);
        while is_free(tail) {
            let Some(task) = tasks.next() else { break };
            // The iterator may have used this very queue, and filled it: then the task is dropped.
            let now = shared.owner.tail.load(Ordering::Relaxed);
            if now != tail {
                tail = now;
                if !is_free(tail) {
                    break;
                }
            }
            // SAFETY: there is a free slot at `tail`, which is the owner's, and `shared` keeps the rings.
            unsafe { buffer.write(tail, task) };
            tail = tail.wrapping_add(1);
            // Release: as in `publish`.
            shared.owner.tail.store(tail, Ordering::Release);
        }
        self.publish(shared.owner.tail.load(Ordering::Relaxed));
    }

    /// Free slots in the ring as it is.
    pub(crate) fn free(&self) -> usize {
        // Relaxed: only the owner stores it.
        let tail = self.shared.owner.tail.load(Ordering::Relaxed);
        self.private().buffer.free(&self.shared.thieves.rings, tail)
    }

    /// Opens all tasks.
    pub(crate) fn open_all(&self) {
        let shared = &*self.shared;
        // Relaxed, all: as in `answer`; the request is above any index before anything is open (see "Opened by the owner").
        let (tag, _) = unpack(shared.thieves.head.load(Ordering::Relaxed));
        let tail = shared.owner.tail.load(Ordering::Relaxed);
        shared.request.store(RAISED, Ordering::Relaxed);
        let open = pack(tag, tail);
        // Release: pairs with the acquire in `claim`.
        shared.thieves.open.store(open, Ordering::Release);
        self.private().opened.set(open);
    }
}
