//! A task that was taken, still in its slot. The final caller reads it: a large task would be
//! copied for each function that passes it on.

use core::hint::assert_unchecked;
use core::mem;
use core::ptr::NonNull;

/// A task that is the caller's. If this value is dropped, as by a panic, the task is dropped.
#[must_use]
pub(crate) struct Found<T>(NonNull<T>);

impl<T> Found<T> {
    /// The task at `place`.
    ///
    /// # Safety
    ///
    /// There is a task, it is the caller's, and `place` may be written through. Until this value is
    /// read or dropped, no other code moves or writes the place or takes a reference to it.
    #[inline(always)]
    pub(crate) unsafe fn at(place: *mut T) -> Self {
        // Without this the compiler tests each task for null. SAFETY: a place with a task is not
        // null.
        unsafe { assert_unchecked(!place.is_null()) };
        // SAFETY: `place` is not null, as asserted above.
        Found(unsafe { NonNull::new_unchecked(place) })
    }

    /// The task. The promise of `at` must still hold.
    #[inline(always)]
    pub(crate) fn read(self) -> T {
        let place = self.0;
        mem::forget(self);
        // SAFETY: `at` promised a task there; it is read once, as `self` is forgotten.
        unsafe { place.read() }
    }
}

impl<T> Drop for Found<T> {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: `at` promised a task there; it was not read.
        unsafe { self.0.drop_in_place() };
    }
}
