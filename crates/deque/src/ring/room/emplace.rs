//! Writing a task into its slot, and taking it out, piece by piece, rather than as a value.

use poach_memory::{Cell, Memory};

use super::Room;

impl<T, M: Memory> Room<T, M> {
    /// As [`write`](Room::write), but `write` puts the task there itself. If it unwinds, nothing is there.
    ///
    /// # Safety
    ///
    /// As [`write`](Room::write), and what `write` leaves in its place when it returns is a `T`.
    #[inline(always)]
    pub(crate) unsafe fn write_with(&self, tail: u64, write: impl FnOnce(*mut T)) {
        // SAFETY: the mask keeps the offset inside the ring that `slots` is the start of.
        let slot = unsafe { self.slots.get().add((tail & self.mask.get()) as usize) };
        // SAFETY: the current ring lives as long as its `Rings`, and its cells are shared.
        let slot = unsafe { &*slot };
        slot.with_mut(|slot| write(slot.cast::<T>()));
    }

    /// As [`read`](Room::read), but `take` moves the task out itself.
    ///
    /// # Safety
    ///
    /// As [`read`](Room::read), and `take` moves the task out before the slot is written again.
    #[inline(always)]
    pub(crate) unsafe fn read_with<R>(&self, index: u64, take: impl FnOnce(*mut T) -> R) -> R {
        // SAFETY: the mask keeps the offset inside the ring that `slots` is the start of.
        let slot = unsafe { self.slots.get().add((index & self.mask.get()) as usize) };
        // SAFETY: the current ring lives as long as its `Rings`, and its cells are shared.
        let slot = unsafe { &*slot };
        // Only the pointer is had from the cell: what `take` does after it has moved the task out may push.
        let place = slot.with_mut(<*mut _>::cast::<T>);
        take(place)
    }
}
