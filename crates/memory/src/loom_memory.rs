//! The memory of loom, which explores a program's executions under the C11 memory model.
//!
//! loom has no process-wide barrier, so the policies fall back to full fences, and loom checks the
//! fenced form of each queue. `poach-check` checks the other forms.

use core::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicPtr, AtomicU64, fence};

use crate::{Cell, Memory, Pointer, Word};

/// loom's memory, for use inside `loom::model` only.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loom;

// SAFETY: all fences are loom's sequentially consistent one, and it claims neither an asymmetric
// fence nor total store order.
unsafe impl Memory for Loom {
    type Word = AtomicU64;
    type Pointer<T> = AtomicPtr<T>;
    type Cell<T> = UnsafeCell<T>;

    fn full() {
        fence(Ordering::SeqCst);
    }

    fn light() {
        fence(Ordering::SeqCst);
    }

    fn heavy() {
        fence(Ordering::SeqCst);
    }

    fn asymmetric() -> bool {
        false
    }

    fn pause() {
        loom::thread::yield_now();
    }

    fn patience(_looks: u32) -> u32 {
        1
    }
}

// SAFETY: loom's models of `core`'s atomics.
unsafe impl Word for AtomicU64 {
    #[track_caller]
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }

    #[track_caller]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    #[track_caller]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }

    #[track_caller]
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::swap(self, value, order)
    }

    #[track_caller]
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::fetch_add(self, value, order)
    }

    #[track_caller]
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::fetch_sub(self, value, order)
    }

    #[track_caller]
    fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::fetch_or(self, value, order)
    }

    #[track_caller]
    fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::fetch_and(self, value, order)
    }

    #[track_caller]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        AtomicU64::compare_exchange(self, current, new, success, failure)
    }
}

// SAFETY: as for the word.
unsafe impl<T> Pointer<T> for AtomicPtr<T> {
    #[track_caller]
    fn new(value: *mut T) -> Self {
        AtomicPtr::new(value)
    }

    #[track_caller]
    fn load(&self, order: Ordering) -> *mut T {
        AtomicPtr::load(self, order)
    }

    #[track_caller]
    fn store(&self, value: *mut T, order: Ordering) {
        AtomicPtr::store(self, value, order);
    }

    #[track_caller]
    fn swap(&self, value: *mut T, order: Ordering) -> *mut T {
        AtomicPtr::swap(self, value, order)
    }

    #[track_caller]
    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        AtomicPtr::compare_exchange(self, current, new, success, failure)
    }
}

// SAFETY: loom's `UnsafeCell` lends the one place of `core`'s, and watches.
unsafe impl<T> Cell<T> for UnsafeCell<T> {
    #[track_caller]
    fn new(value: T) -> Self {
        UnsafeCell::new(value)
    }

    #[track_caller]
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        UnsafeCell::with(self, read)
    }

    #[track_caller]
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        UnsafeCell::with_mut(self, write)
    }
}
