//! A closure in the frame of a thread that waits until another thread has run it.

use std::cell::UnsafeCell;
use std::ptr;

use crate::system::process::AbortOnUnwind;
use crate::task::panic::{Outcome, catch};
use crate::task::value::Task;

/// An address that goes with a task to another thread.
pub(crate) struct Address<T>(*const T);

// SAFETY: an address by itself may go anywhere; what is done with it is justified where it is used.
unsafe impl<T> Send for Address<T> {}

impl<T> Address<T> {
    pub(crate) fn new(place: &T) -> Self {
        Address(ptr::from_ref(place))
    }

    pub(crate) fn address(&self) -> *const T {
        self.0
    }

    /// By value, so that a closure captures the address and not the bare pointer in it.
    #[inline(always)]
    pub(crate) fn get(self) -> *const T {
        self.0
    }
}

/// A closure and, later, what it came to.
pub(crate) struct FrameTask<F, R> {
    closure: UnsafeCell<Option<F>>,
    outcome: UnsafeCell<Option<Outcome<R>>>,
}

// SAFETY: one thread runs the closure, another takes the outcome after it, and what passes between
// them is Send.
unsafe impl<F: Send, R: Send> Sync for FrameTask<F, R> {}

impl<F, R> FrameTask<F, R>
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    pub(crate) fn new(closure: F) -> Self {
        FrameTask { closure: UnsafeCell::new(Some(closure)), outcome: UnsafeCell::new(None) }
    }

    /// Makes a task that runs the closure and then calls `done`, and lends it to `wait`, which must
    /// not return before `done` was called; a `wait` that unwinds, or that returns too early,
    /// ends the process.
    pub(crate) fn hand_over(&self, done: impl FnOnce() + Send, wait: impl FnOnce(Task)) {
        let guard = AbortOnUnwind("a thread stopped waiting for a task in its own frame");
        let this = Address::new(self);
        let run = move || {
            // A reference would have to be valid until this closure returns; the frame is only sure
            // to stand until `done`.
            let this = this.get();
            // SAFETY: the frame stands until `done`.
            let closure = unsafe { &raw const (*this).closure };
            // SAFETY: the frame stands until `done`.
            let outcome = unsafe { &raw const (*this).outcome };
            // SAFETY: this task alone uses the closure.
            let closure = unsafe { &mut *UnsafeCell::raw_get(closure) }.take();
            let result = catch(|| closure.expect("a task runs once")());
            // SAFETY: nobody reads the outcome before `done`.
            unsafe { *UnsafeCell::raw_get(outcome) = Some(result) };
            done();
        };
        // SAFETY: the frame of `self` stands until `wait` has returned, which is after `done`, the
        // last that the task does here.
        wait(unsafe { Task::new(run) });
        guard.disarm();
    }

    /// What the closure came to.
    pub(crate) fn outcome(self) -> Outcome<R> {
        self.outcome.into_inner().expect("the outcome is asked for after the task has ended")
    }
}
