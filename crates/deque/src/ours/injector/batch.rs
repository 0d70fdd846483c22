//! Several tasks that a thief has claimed from an injector at once.

use poach_memory::Memory;

use super::{Block, Injector};
use crate::ring::{Claim, drop_rest};

/// A run of indices of one block that a thief has claimed, as an iterator over the tasks.
///
/// Their slots are done with when this is dropped; tasks still in it are dropped then.
pub(crate) struct Batch<'a, T, M: Memory, const SLOTS: usize> {
    injector: &'a Injector<T, M, SLOTS>,
    block: &'a Block<T, M, SLOTS>,
    first: u64,
    count: u64,
    next: u64,
    end: u64,
}

impl<'a, T, M: Memory, const SLOTS: usize> Batch<'a, T, M, SLOTS> {
    /// The head has been moved by this thread alone over `count` indices from `first` on, all of
    /// which were *written*.
    #[inline]
    pub(super) fn new(
        injector: &'a Injector<T, M, SLOTS>,
        block: &'a Block<T, M, SLOTS>,
        first: u64,
        count: u64,
    ) -> Self {
        Batch { injector, block, first, count, next: first, end: first.wrapping_add(count) }
    }
}

// SAFETY: `next` moves bits out of a block, and `size_hint` is exact.
unsafe impl<T, M: Memory, const SLOTS: usize> Claim for Batch<'_, T, M, SLOTS> {}

impl<T, M: Memory, const SLOTS: usize> Iterator for Batch<'_, T, M, SLOTS> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        (self.next != self.end).then(|| {
            let index = self.next;
            self.next = index.wrapping_add(1);
            // SAFETY: claimed and *written*, says `new`; `next` has passed it.
            unsafe { self.block.take(index) }
        })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.wrapping_sub(self.next) as usize;
        (left, Some(left))
    }
}

impl<T, M: Memory, const SLOTS: usize> DoubleEndedIterator for Batch<'_, T, M, SLOTS> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        (self.next != self.end).then(|| {
            self.end = self.end.wrapping_sub(1);
            // SAFETY: claimed and *written*, says `new`; `end` has come down to it.
            unsafe { self.block.take(self.end) }
        })
    }
}

impl<T, M: Memory, const SLOTS: usize> Drop for Batch<'_, T, M, SLOTS> {
    #[inline]
    fn drop(&mut self) {
        /// Finishes, even if a destructor panics.
        struct Finish<'a, 'b, T, M: Memory, const SLOTS: usize>(&'b mut Batch<'a, T, M, SLOTS>);
        impl<T, M: Memory, const SLOTS: usize> Drop for Finish<'_, '_, T, M, SLOTS> {
            #[inline]
            fn drop(&mut self) {
                let Batch { injector, block, first, count, .. } = *self.0;
                injector.finish(block, first, count);
            }
        }
        let finish = Finish(self);
        drop_rest(finish.0);
    }
}
