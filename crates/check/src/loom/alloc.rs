//! Memory and values that must be given back before an execution ends.
#![expect(unsafe_code, reason = "to allocate is unsafe")]

pub use std::alloc::Layout;

use super::execution;

/// As [`std::alloc::alloc`]; memory that is never given back is a violation.
///
/// # Safety
///
/// As [`GlobalAlloc::alloc`](std::alloc::GlobalAlloc::alloc).
#[track_caller]
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise is the same.
    let pointer = unsafe { std::alloc::alloc(layout) };
    execution::allocated(pointer.addr());
    pointer
}

/// As [`std::alloc::alloc_zeroed`]; memory that is never given back is a violation.
///
/// # Safety
///
/// As [`GlobalAlloc::alloc_zeroed`](std::alloc::GlobalAlloc::alloc_zeroed).
#[track_caller]
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise is the same.
    let pointer = unsafe { std::alloc::alloc_zeroed(layout) };
    execution::allocated(pointer.addr());
    pointer
}

/// As [`std::alloc::dealloc`], of memory of [`alloc`] or [`alloc_zeroed`].
///
/// # Safety
///
/// As [`GlobalAlloc::dealloc`](std::alloc::GlobalAlloc::dealloc).
///
/// # Panics
///
/// If the memory is not of this execution's [`alloc`], or is given back already.
#[track_caller]
pub unsafe fn dealloc(pointer: *mut u8, layout: Layout) {
    execution::deallocated(pointer.addr());
    // SAFETY: the caller's promise is the same.
    unsafe { std::alloc::dealloc(pointer, layout) };
}

/// A value whose leak is a violation.
#[derive(Debug)]
pub struct Track<T> {
    value: T,
    mark: Mark,
}

#[derive(Debug)]
pub(super) struct Mark(u64);

impl Mark {
    #[track_caller]
    pub(super) fn new(what: &'static str) -> Self {
        Mark(execution::made(what))
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        execution::dropped(self.0);
    }
}

impl<T> Track<T> {
    /// Tracks `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Track { value, mark: Mark::new("a tracked value") }
    }

    /// The value.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// The value.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// The value, which is tracked no more.
    pub fn into_inner(self) -> T {
        let Track { value, mark } = self;
        drop(mark);
        value
    }
}
