//! A task that was taken, where it lies: it goes from there to who asked for it, and is not passed
//! from function to function, as a large one would be copied for each.

use core::hint::assert_unchecked;
use core::mem;
use core::ptr::NonNull;

/// A task that is the caller's. Dropped, as by a panic, it drops the task.
#[must_use]
pub(crate) struct Found<T>(NonNull<T>);

impl<T> Found<T> {
    /// The task at `place`.
    ///
    /// # Safety
    ///
    /// There is a task, it is the caller's, `place` may be written through, and until this is read
    /// or dropped nobody moves or writes to the place, or takes a reference to it.
    #[inline(always)]
    pub(crate) unsafe fn at(place: *mut T) -> Self {
        // Or the compiler asks, of each task, whether there is one.
        // SAFETY: a place in which there is a task is not null.
        unsafe { assert_unchecked(!place.is_null()) };
        // SAFETY: as just now: it is not null.
        Found(unsafe { NonNull::new_unchecked(place) })
    }

    /// The task. For who has promised that it lies there still.
    #[inline(always)]
    pub(crate) fn read(self) -> T {
        let place = self.0;
        mem::forget(self);
        // SAFETY: the promise of `at`; it is read once, as `self` is gone.
        unsafe { place.read() }
    }
}

impl<T> Drop for Found<T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: the promise of `at`; it was not read.
        unsafe { self.0.drop_in_place() };
    }
}
