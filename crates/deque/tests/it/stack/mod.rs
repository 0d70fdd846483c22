//! What the loom models of the stack of forks share: how a fork is pushed, and loom's memory with a
//! fault.

use core::marker::PhantomData;

use loom::sync::atomic::{AtomicPtr, AtomicU64};
use poach_deque::split::{Context, Head};
use poach_memory::{Loom, Memory, Ordering, Word};

#[repr(align(8))]
struct Descriptor;
static DESCRIPTOR: Descriptor = Descriptor;

pub(crate) fn descriptor() -> *mut () {
    (&raw const DESCRIPTOR).cast_mut().cast()
}

pub(crate) fn push<M: Memory, C: Context>(head: Head<M, C>, task: u64) -> Head<M, C> {
    // SAFETY: the models' owner thread owns the stack, pops in reverse order; a u64 fits, and is
    // Copy.
    unsafe { head.push(descriptor(), &raw const task) }.expect("the model's stack has room")
}

/// What a word of [`Faulty`] does otherwise than loom's.
pub(crate) trait Fault: Copy + Send + Sync + 'static {
    fn store(word: &AtomicU64, value: u64, order: Ordering) {
        word.store(value, order);
    }

    fn compare_exchange(
        word: &AtomicU64,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        word.compare_exchange(current, new, success, failure)
    }
}

/// loom's memory with a fault.
#[derive(Clone, Copy)]
pub(crate) struct Faulty<F>(PhantomData<F>);

// SAFETY: loom's, but for its words.
unsafe impl<F: Fault> Memory for Faulty<F> {
    type Word = FaultyWord<F>;
    type Pointer<T> = AtomicPtr<T>;
    type Cell<T> = loom::cell::UnsafeCell<T>;

    fn full() {
        Loom::full();
    }

    fn light() {
        Loom::light();
    }

    fn heavy() {
        Loom::heavy();
    }

    fn asymmetric() -> bool {
        false
    }

    fn pause() {
        Loom::pause();
    }
}

pub(crate) struct FaultyWord<F>(AtomicU64, PhantomData<F>);

// SAFETY: loom's, but for the fault, which is there on purpose: for models that must fail, whose
// tasks are numbers.
unsafe impl<F: Fault> Word for FaultyWord<F> {
    fn new(value: u64) -> Self {
        FaultyWord(AtomicU64::new(value), PhantomData)
    }

    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        F::store(&self.0, value, order);
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
        F::compare_exchange(&self.0, current, new, success, failure)
    }
}
