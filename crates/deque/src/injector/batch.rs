//! Several tasks that a thief has claimed from an injector at once.

use poach_memory::{Cell, Memory};

use super::{Injector, Place};

/// A run of indices of one block that a thief has claimed, as an iterator over the tasks.
///
/// Their slots are done with when this is dropped; tasks still in it are dropped then.
pub(crate) struct Batch<'a, T, M: Memory, const SLOTS: usize> {
    injector: &'a Injector<T, M, SLOTS>,
    place: Place,
    count: u64,
    next: u64,
    end: u64,
}

impl<'a, T, M: Memory, const SLOTS: usize> Batch<'a, T, M, SLOTS> {
    /// The head has been moved by this thread over `count` indices from `first` on, all of which were *written*.
    #[inline]
    pub(super) fn new(
        injector: &'a Injector<T, M, SLOTS>,
        place: Place,
        first: u64,
        count: u64,
    ) -> Self {
        Batch { injector, place, count, next: first, end: first.wrapping_add(count) }
    }

    /// # Safety
    ///
    /// `index` is one of those claimed, and is read once.
    #[inline(always)]
    unsafe fn read(&self, index: u64) -> T {
        self.injector.chain.slot(self.place, index).task.with(|task| {
            // SAFETY: the state was *written*, and the thief acquired it.
            let task = unsafe { &*task };
            // SAFETY: as above, and the caller says that the bits are used once.
            unsafe { task.assume_init_read() }
        })
    }
}

impl<T, M: Memory, const SLOTS: usize> Iterator for Batch<'_, T, M, SLOTS> {
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

impl<T, M: Memory, const SLOTS: usize> DoubleEndedIterator for Batch<'_, T, M, SLOTS> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        (self.next != self.end).then(|| {
            self.end = self.end.wrapping_sub(1);
            // SAFETY: between `next` and `end`, and `end` has come down to it.
            unsafe { self.read(self.end) }
        })
    }
}

impl<T, M: Memory, const SLOTS: usize> Drop for Batch<'_, T, M, SLOTS> {
    #[inline]
    fn drop(&mut self) {
        /// Finishes, even if a destructor panics.
        struct Finish<'a, T, M: Memory, const SLOTS: usize> {
            injector: &'a Injector<T, M, SLOTS>,
            place: Place,
            count: u64,
        }
        impl<T, M: Memory, const SLOTS: usize> Drop for Finish<'_, T, M, SLOTS> {
            #[inline]
            fn drop(&mut self) {
                self.injector.finish(self.place, self.count);
            }
        }
        let Batch { injector, place, count, .. } = *self;
        let finish = Finish { injector, place, count };
        self.for_each(drop);
        drop(finish);
    }
}
