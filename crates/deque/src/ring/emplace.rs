//! Writing a task into its slot piece by piece, rather than as a value.

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
}
