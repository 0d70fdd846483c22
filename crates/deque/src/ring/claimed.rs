//! Several tasks that a thief has claimed at once.

use super::{Ring, Rings, Storage, Whole};
use poach_memory::{Memory, Ordering, Pointer};

/// A run of indices that a thief has claimed and not yet finished, as an iterator over the tasks.
///
/// They are finished together when this is dropped; tasks still in it are dropped then.
pub(crate) struct Claimed<'a, T, M: Memory, S: Storage<T> = Whole> {
    rings: &'a Rings<T, M, S>,
    ring: *const Ring<T, M, S>,
    first: u64,
    count: u32,
    next: u64,
    end: u64,
}

impl<T, M: Memory, S: Storage<T>> Rings<T, M, S> {
    /// The tasks of `count` indices from `first` on. Wait-free.
    ///
    /// # Safety
    ///
    /// The caller has claimed these indices, one at least, for itself alone, having read (with acquire) a
    /// tail above them that the owner stored (with release) after it wrote the tasks.
    #[inline]
    pub(crate) unsafe fn claimed(&self, first: u64, count: u32) -> Claimed<'_, T, M, S> {
        // Acquire: pairs with the release in `Room::grow`, as in `take`.
        let ring = self.current.load(Ordering::Acquire);
        let end = first.wrapping_add(u64::from(count));
        Claimed { rings: self, ring, first, count, next: first, end }
    }
}

impl<T, M: Memory, S: Storage<T>> Claimed<'_, T, M, S> {
    /// # Safety
    ///
    /// `index` is one of the claimed, and its task has not been taken out.
    #[inline(always)]
    unsafe fn read(&self, index: u64) -> T {
        // SAFETY: the first index is claimed and not finished, so the owner keeps every ring that a thief
        // could have loaded since ("Reclamation").
        let ring = unsafe { &*self.ring };
        // SAFETY: the slot holds the task of `index`, made visible by what `claimed` asks for, and
        // nobody writes it before they are finished; the caller says that its bits are used once.
        unsafe { ring.read(index) }
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

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.wrapping_sub(self.next) as usize;
        (left, Some(left))
    }
}

impl<T, M: Memory, S: Storage<T>> DoubleEndedIterator for Claimed<'_, T, M, S> {
    fn next_back(&mut self) -> Option<T> {
        (self.next != self.end).then(|| {
            self.end = self.end.wrapping_sub(1);
            // SAFETY: between `next` and `end`, and `end` has come down to it.
            unsafe { self.read(self.end) }
        })
    }
}

impl<T, M: Memory, S: Storage<T>> Drop for Claimed<'_, T, M, S> {
    fn drop(&mut self) {
        /// Finishes, even if a destructor panics.
        struct Finish<'a, T, M: Memory, S: Storage<T>> {
            rings: &'a Rings<T, M, S>,
            ring: *const Ring<T, M, S>,
            first: u64,
            count: u32,
        }
        impl<T, M: Memory, S: Storage<T>> Drop for Finish<'_, T, M, S> {
            fn drop(&mut self) {
                let Finish { rings, ring, first, count } = *self;
                // SAFETY: the indices are claimed, all copies are over, and nobody makes more of them.
                unsafe { rings.finish(ring, first, count) };
            }
        }
        let Claimed { rings, ring, first, count, .. } = *self;
        let finish = Finish { rings, ring, first, count };
        self.for_each(drop);
        drop(finish);
    }
}
