//! The memory of the models: shuttle's words.

use poach_memory::{Machine, Memory, Ordering, Pointer, Word};
use shuttle::sync::atomic::{AtomicPtr, AtomicU64};
use shuttle::thread;

/// shuttle's memory.
#[derive(Clone, Copy)]
pub(super) struct Shuttled;
pub(super) struct ShuttledWord(AtomicU64);
pub(super) struct ShuttledPointer<T>(AtomicPtr<T>);

// SAFETY: shuttle's accesses are all sequentially consistent, one thread at a time, so every fence
// is there already.
unsafe impl Memory for Shuttled {
    type Word = ShuttledWord;
    type Pointer<T> = ShuttledPointer<T>;
    type Cell<T> = <Machine as Memory>::Cell<T>;

    fn full() {}

    fn light() {}

    fn heavy() {}

    /// So that thieves expose.
    fn asymmetric() -> bool {
        true
    }

    fn pause() {
        thread::yield_now();
    }
}

// SAFETY: shuttle's models of `core`'s atomics.
unsafe impl Word for ShuttledWord {
    fn new(value: u64) -> Self {
        ShuttledWord(AtomicU64::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.0.swap(value, order)
    }

    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_add(value, order)
    }

    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(value, order)
    }

    fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_or(value, order)
    }

    fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_and(value, order)
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

// SAFETY: as for the word.
unsafe impl<T> Pointer<T> for ShuttledPointer<T> {
    fn new(value: *mut T) -> Self {
        ShuttledPointer(AtomicPtr::new(value))
    }

    fn load(&self, order: Ordering) -> *mut T {
        self.0.load(order)
    }

    fn store(&self, value: *mut T, order: Ordering) {
        self.0.store(value, order);
    }

    fn swap(&self, value: *mut T, order: Ordering) -> *mut T {
        self.0.swap(value, order)
    }

    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.0.compare_exchange(current, new, success, failure)
    }
}
