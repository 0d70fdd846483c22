//! Several tasks that a thief has claimed at once.

use core::iter::Rev;
use core::mem::{MaybeUninit, needs_drop};
use core::ptr::NonNull;
use core::slice;

use poach_memory::{Cell, Memory, Ordering, Pointer};

use super::{Ring, Rings, Slot, Storage, Whole};

/// A run of indices that a thief has claimed and not yet finished, as an iterator over the tasks.
///
/// They are finished together when this is dropped; tasks still in it are dropped then.
pub(crate) struct Claimed<'a, T, M: Memory, S: Storage<T> = Whole> {
    rings: &'a Rings<T, M, S>,
    ring: *const Ring<T, M, S>,
    // The slots and the mask of `ring`, at hand.
    heads: *const Slot<S::Head, M>,
    mask: u64,
    first: u64,
    count: u32,
    next: u64,
    end: u64,
}

/// Tasks that the calling thread has claimed.
///
/// # Safety
///
/// To take the next one runs nobody's code but this crate's, which uses no queue for it. There are
/// as many as the lower bound of `size_hint` says.
pub(crate) unsafe trait Claim: Iterator {
    /// Moves the next tasks to the slots of `to`, in order: how many. Fewer than there are slots
    /// does not mean that none is left; 0 does, unless `to` is empty.
    ///
    /// # Safety
    ///
    /// Nobody else reads or writes these slots meanwhile, and they hold no task that is still to be
    /// read.
    #[inline(always)]
    unsafe fn move_to<M: Memory>(&mut self, to: &[Slot<Self::Item, M>]) -> usize {
        for (moved, slot) in to.iter().enumerate() {
            let Some(task) = self.next() else { return moved };
            slot.with_mut(|slot| {
                // SAFETY: by this function's contract the slot is the caller's and free.
                unsafe { slot.write(MaybeUninit::new(task)) };
            });
        }
        to.len()
    }
}

// SAFETY: `next` and `move_to` move bits out of a ring, and `size_hint` is exact.
unsafe impl<T, M: Memory> Claim for Claimed<'_, T, M> {
    /// Slots that stand side by side in both rings are copied in one loop without a mask, which the
    /// compiler turns into moves of several words at a time.
    #[inline(always)]
    unsafe fn move_to<N: Memory>(&mut self, to: &[Slot<T, N>]) -> usize {
        let first = self.next & self.mask;
        let left = self.end.wrapping_sub(self.next);
        let count = left.min(self.mask + 1 - first).min(to.len() as u64) as usize;
        // SAFETY: the mask keeps the offset inside the ring that `heads` is the start of.
        let from = unsafe { self.heads.add(first as usize) };
        // SAFETY: there are `mask + 1` slots in the ring, so `count` from `first` on. The first
        // index is claimed and not finished, so the owner keeps every ring that a thief
        // could have loaded since ("Reclamation"), and slots are cells, which may be shared.
        let from = unsafe { slice::from_raw_parts(from, count) };
        self.next = self.next.wrapping_add(count as u64);
        for (from, to) in from.iter().zip(to) {
            from.with(|from| {
                to.with_mut(|to| {
                    // SAFETY: `from` holds a claimed task, made visible by what `claimed` asks for,
                    // which nobody writes before it is finished, and `next` has
                    // passed it, so its bits are used once. `to` is by this function's contract the
                    // caller's and free, so it is another slot.
                    unsafe { to.copy_from_nonoverlapping(from, 1) };
                });
            });
        }
        count
    }
}
// SAFETY: the same from the other end.
unsafe impl<C: Claim + DoubleEndedIterator> Claim for Rev<C> {}
// SAFETY: the same iterator.
unsafe impl<C: Claim> Claim for &mut C {
    #[inline(always)]
    unsafe fn move_to<M: Memory>(&mut self, to: &[Slot<Self::Item, M>]) -> usize {
        // SAFETY: by this function's contract.
        unsafe { (**self).move_to::<M>(to) }
    }
}

impl<T, M: Memory, S: Storage<T>> Rings<T, M, S> {
    /// The tasks of `count` indices from `first` on. Wait-free.
    ///
    /// # Safety
    ///
    /// The caller has claimed these indices, one at least, for itself alone, having read (with
    /// acquire) a tail above them that the owner stored (with release) after it wrote the
    /// tasks.
    #[inline]
    pub(crate) unsafe fn claimed(&self, first: u64, count: u32) -> Claimed<'_, T, M, S> {
        // Acquire: pairs with the release in `Buffer::grow`, as in `take`.
        let ring = self.current.load(Ordering::Acquire);
        // SAFETY: the first index is claimed and not finished, so the owner keeps every ring that a
        // thief could have loaded since ("Reclamation").
        let heads = &unsafe { &*ring }.heads;
        let (mask, end) = (heads.len() as u64 - 1, first.wrapping_add(u64::from(count)));
        Claimed { rings: self, ring, heads: heads.as_ptr(), mask, first, count, next: first, end }
    }
}

impl<T, M: Memory, S: Storage<T>> Claimed<'_, T, M, S> {
    /// # Safety
    ///
    /// `index` is one of the claimed, and its task has not been taken out.
    #[inline(always)]
    unsafe fn read(&self, index: u64) -> T {
        // SAFETY: the mask keeps the offset inside the ring that `heads` is the start of.
        let head = unsafe { self.heads.add((index & self.mask) as usize) };
        // SAFETY: the first index is claimed and not finished, so the owner keeps every ring that a
        // thief could have loaded since ("Reclamation").
        let head = unsafe { &*head };
        head.with(|head| {
            let read = |rest: *const S::Rest| {
                // SAFETY: the slot holds the task of `index`, made visible by what `claimed` asks
                // for, and nobody writes it before they are finished; the caller
                // says that its bits are used once.
                unsafe { S::read(head.cast(), rest) }
            };
            if size_of::<S::Rest>() == 0 {
                return read(NonNull::dangling().as_ptr());
            }
            // SAFETY: as for the head.
            match unsafe { &*self.ring }.rest(index) {
                Some(rest) => rest.with(|rest| read(rest.cast())),
                None => read(NonNull::dangling().as_ptr()),
            }
        })
    }
}

impl<T, M: Memory, S: Storage<T>> Iterator for Claimed<'_, T, M, S> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        (self.next != self.end).then(|| {
            let index = self.next;
            self.next = index.wrapping_add(1);
            // SAFETY: between `next` and `end`, and `next` has passed it.
            unsafe { self.read(index) }
        })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.wrapping_sub(self.next) as usize;
        (left, Some(left))
    }
}

impl<T, M: Memory, S: Storage<T>> DoubleEndedIterator for Claimed<'_, T, M, S> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        (self.next != self.end).then(|| {
            self.end = self.end.wrapping_sub(1);
            // SAFETY: between `next` and `end`, and `end` has come down to it.
            unsafe { self.read(self.end) }
        })
    }
}

impl<T, M: Memory, S: Storage<T>> Drop for Claimed<'_, T, M, S> {
    #[inline]
    fn drop(&mut self) {
        /// Finishes, even if a destructor panics.
        struct Finish<'a, T, M: Memory, S: Storage<T>> {
            rings: &'a Rings<T, M, S>,
            ring: *const Ring<T, M, S>,
            first: u64,
            count: u32,
        }
        impl<T, M: Memory, S: Storage<T>> Drop for Finish<'_, T, M, S> {
            #[inline]
            fn drop(&mut self) {
                let Finish { rings, ring, first, count } = *self;
                // SAFETY: the indices are claimed, all copies are over, and nobody makes more of
                // them.
                unsafe { rings.finish(ring, first, count) };
            }
        }
        let Claimed { rings, ring, first, count, .. } = *self;
        let _finish = Finish { rings, ring, first, count };
        drop_rest(self);
    }
}

/// Drops the tasks that are left in a claim. If a destructor panics, the others are run while that
/// panic unwinds; a second panic then ends the program.
#[inline]
pub(crate) fn drop_rest<T>(tasks: &mut impl Iterator<Item = T>) {
    struct Rest<'a, C: Iterator>(&'a mut C);
    impl<C: Iterator> Drop for Rest<'_, C> {
        fn drop(&mut self) {
            self.0.for_each(drop);
        }
    }
    if const { needs_drop::<T>() } {
        let rest = Rest(tasks);
        rest.0.for_each(drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::Buffer;
    use poach_memory::Machine;

    /// Each length, from each slot of a ring of eight to each slot of a ring of four, which may
    /// have to grow, forwards and backwards. A copy ends where either array ends, and goes on from
    /// its start.
    #[test]
    fn a_claim_moves_past_the_ends_of_both_rings() {
        let step = if cfg!(miri) { 3 } else { 1 };
        for from in (0..8).step_by(step) {
            for to in (40..44).step_by(step) {
                for count in (1..=8).step_by(step) {
                    (0..=count).step_by(step).for_each(|moved| {
                        move_some(from, to, count, moved, false);
                        move_some(from, to, count, moved, true);
                    });
                }
            }
        }
    }

    fn move_some(from: u64, to: u64, count: u32, moved: u32, reversed: bool) {
        type Queue = (Rings<Box<u64>, Machine>, Buffer<Box<u64>, Machine>);
        let what = format!("{moved} of {count} from {from} to {to}, reversed: {reversed}");
        let (mut source, filler): Queue = Rings::new(8, from).unwrap();
        for index in from..from + 8 {
            // SAFETY: the slot is free, and `source` lives.
            unsafe { filler.write(index, Box::new(index)) };
        }
        let (rings, buffer): Queue = Rings::new(4, to).unwrap();
        // SAFETY: claimed once, and written.
        let mut claimed = unsafe { source.claimed(from, count) };
        let end = if reversed {
            // SAFETY: the tail of a new ring, whose `rings` live.
            unsafe { buffer.write_all(&rings, to, moved as usize, &mut (&mut claimed).rev(), || 0) }
        } else {
            // SAFETY: as above, the tail of a new ring.
            unsafe { buffer.write_all(&rings, to, moved as usize, &mut claimed, || 0) }
        };
        assert_eq!(end, Ok(to + u64::from(moved)), "{what}");
        for offset in 0..u64::from(moved) {
            // SAFETY: written just now, and read once.
            let task = unsafe { buffer.read(to + offset) };
            let nth = if reversed { u64::from(count) - 1 - offset } else { offset };
            assert_eq!(*task, from + nth, "{what}");
        }
        let first = if reversed { from } else { from + u64::from(moved) };
        let left = u64::from(count - moved);
        assert!(claimed.by_ref().map(|task| *task).eq(first..first + left), "{what}");
        drop(claimed);
        // SAFETY: these are written and not claimed, and nobody else has the ring.
        unsafe { source.drop_tasks(from + u64::from(count), from + 8) };
    }
}
