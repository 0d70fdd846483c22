//! What the faces ask of the owner beside what every [`OwnersEnd`](crate::owners_end) does.

use poach_memory::{Memory, Ordering, StoreLoad, Word};

use super::{Biased, RAISED, pack, unpack};

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
