//! Several tasks that a thief has claimed at once.

use core::iter::Rev;
use core::mem::needs_drop;
use core::ptr::NonNull;

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
/// To take the next one runs nobody's code but this crate's, which uses no queue for it. There are as many as the lower bound of
/// `size_hint` says.
pub(crate) unsafe trait Claim: Iterator {}

// SAFETY: `next` moves bits out of a ring, and `size_hint` is exact.
unsafe impl<T, M: Memory, S: Storage<T>> Claim for Claimed<'_, T, M, S> {}
// SAFETY: the same from the other end.
unsafe impl<C: Claim + DoubleEndedIterator> Claim for Rev<C> {}
// SAFETY: the same iterator.
unsafe impl<C: Claim> Claim for &mut C {}

impl<T, M: Memory, S: Storage<T>> Rings<T, M, S> {
    /// The tasks of `count` indices from `first` on. Wait-free.
    ///
    /// # Safety
    ///
    /// The caller has claimed these indices, one at least, for itself alone, having read (with acquire) a
    /// tail above them that the owner stored (with release) after it wrote the tasks.
    #[inline]
    pub(crate) unsafe fn claimed(&self, first: u64, count: u32) -> Claimed<'_, T, M, S> {
        // Acquire: pairs with the release in `Buffer::grow`, as in `take`.
        let ring = self.current.load(Ordering::Acquire);
        // SAFETY: the first index is claimed and not finished, so the owner keeps every ring that a thief could have
        // loaded since ("Reclamation").
        let heads = &unsafe { &*ring }.heads;
        let (mask, end) = (heads.len() as u64 - 1, first.wrapping_add(u64::from(count)));
        Claimed { rings: self, ring, heads: heads.as_ptr(), mask, first, count, next: first, end }
    }
}

impl<'a, T, M: Memory, S: Storage<T>> Claimed<'a, T, M, S> {
    /// Where the claimed tasks stand.
    pub(crate) fn rings(&self) -> &'a Rings<T, M, S> {
        self.rings
    }

    /// # Safety
    ///
    /// `index` is one of the claimed, and its task has not been taken out.
    #[inline(always)]
    unsafe fn read(&self, index: u64) -> T {
        // SAFETY: the mask keeps the offset inside the ring that `heads` is the start of.
        let head = unsafe { self.heads.add((index & self.mask) as usize) };
        // SAFETY: the first index is claimed and not finished, so the owner keeps every ring that a thief
        // could have loaded since ("Reclamation").
        let head = unsafe { &*head };
        head.with(|head| {
            let read = |rest: *const S::Rest| {
                // SAFETY: the slot holds the task of `index`, made visible by what `claimed` asks for, and
                // nobody writes it before they are finished; the caller says that its bits are used once.
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
                // SAFETY: the indices are claimed, all copies are over, and nobody makes more of them.
                unsafe { rings.finish(ring, first, count) };
            }
        }
        let Claimed { rings, ring, first, count, .. } = *self;
        let _finish = Finish { rings, ring, first, count };
        drop_rest(self);
    }
}

/// Drops the tasks that are left in a claim. If a destructor panics, the others are run while that panic unwinds; a second panic then ends the program.
#[inline]
pub(crate) fn drop_rest<T>(tasks: &mut impl Claim<Item = T>) {
    struct Rest<'a, C: Claim>(&'a mut C);
    impl<C: Claim> Drop for Rest<'_, C> {
        fn drop(&mut self) {
            self.0.for_each(drop);
        }
    }
    if const { needs_drop::<T>() } {
        let rest = Rest(tasks);
        rest.0.for_each(drop);
    }
}
