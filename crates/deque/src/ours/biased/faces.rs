//! What the faces ask of the owner beside push and pop: batches, and a ring that does not grow.

use poach_memory::{Memory, Ordering, StoreLoad, Word};

use super::{Biased, NoMemory, RAISED, pack, unpack};
use crate::ring::Claim;

impl<T, P: StoreLoad<M>, M: Memory> Biased<T, P, M> {
    /// As [`Fifo::ends`](crate::Fifo::ends).
    #[inline(always)]
    pub(crate) fn ends(&self) -> [&M::Word; 2] {
        let owner = &self.shared.owner;
        [&owner.tail, &owner.floor]
    }

    /// As [`Fifo::places_of_ends`](crate::Fifo::places_of_ends).
    #[cfg(test)]
    pub(crate) fn places_of_ends(&self) -> [usize; 2] {
        let start = (&raw const *self.shared).addr();
        self.ends().map(|word| (&raw const *word).addr() - start)
    }

    /// Adds a task if there is a free slot in the ring as it is.
    #[inline]
    pub(crate) fn push_within(&self, task: T) -> Result<(), T> {
        let tail = self.tail();
        let buffer = &self.private().buffer;
        if !buffer.has(tail) && !buffer.find(&self.shared.thieves.rings, tail) {
            return Err(task);
        }
        // SAFETY: there is a free slot at `tail`, which is the owner's.
        unsafe { self.put(tail, task) };
        Ok(())
    }

    /// Adds the next `count` of `tasks`, shown to thieves at once. Ends the program as
    /// [`push`](Biased::push) does.
    #[inline]
    pub(crate) fn push_all(&self, count: usize, tasks: &mut impl Claim<Item = T>) {
        if count == 0 {
            return;
        }
        let tail = self.tail();
        let buffer = &self.private().buffer;
        // SAFETY: `tail` is the owner's, and `shared` keeps the rings.
        match unsafe {
            buffer.write_all(&self.shared.thieves.rings, tail, count, tasks, || self.len())
        } {
            Ok(tail) => self.publish(tail),
            Err(NoMemory) => crate::out_of_memory::<T>(),
        }
    }

    /// Adds tasks as long as there are free slots in the ring as it is. No more are taken from the
    /// iterator. If that unwinds, up to three tasks that it has given are dropped.
    #[inline]
    pub(crate) fn extend_within(&self, mut tasks: impl Iterator<Item = T>) {
        let shared = &*self.shared;
        let buffer = &self.private().buffer;
        let mut tail = self.tail();
        // The iterator may use this very queue. So what it has given is in no slot while it runs,
        // and goes there at the tail of then.
        loop {
            if buffer.has_several(tail, 4) {
                // One store of the tail shows four.
                let Some(first) = tasks.next() else { break };
                let Some(second) = tasks.next() else {
                    self.push_each([first]);
                    break;
                };
                let Some(third) = tasks.next() else {
                    self.push_each([first, second]);
                    break;
                };
                let Some(fourth) = tasks.next() else {
                    self.push_each([first, second, third]);
                    break;
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
                // Release: as in `publish`.
                shared.owner.tail.store(tail, Ordering::Release);
            } else if buffer.has(tail) || buffer.find(&shared.thieves.rings, tail) {
                let Some(task) = tasks.next() else { break };
                self.push_each([task]);
                tail = self.tail();
            } else {
                break;
            }
        }
        self.publish(self.tail());
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
        let tail = self.tail();
        if self.private().buffer.has_several(tail, count as u64) {
            return count;
        }
        count.min(self.free())
    }

    /// Free slots in the ring as it is.
    pub(crate) fn free(&self) -> usize {
        let tail = self.tail();
        self.private().buffer.free(&self.shared.thieves.rings, tail)
    }

    /// Opens all tasks.
    pub(crate) fn open_all(&self) {
        let shared = &*self.shared;
        // Relaxed, all: as in `answer`; the request is above any index before anything is open (see
        // "Opened by the owner").
        let (tag, _) = unpack(shared.thieves.head.load(Ordering::Relaxed));
        let tail = shared.owner.tail.load(Ordering::Relaxed);
        shared.request.store(RAISED, Ordering::Relaxed);
        let open = pack(tag, tail);
        // Release: pairs with the acquire in `claim`.
        shared.thieves.open.store(open, Ordering::Release);
        self.private().opened.set(open);
    }
}
