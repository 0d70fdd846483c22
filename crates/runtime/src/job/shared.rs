//! A closure in the frame of a thread that waits until another thread has run it.

use std::cell::UnsafeCell;
use std::panic::{self, AssertUnwindSafe};

use super::fork::Outcome;
use super::task::{AbortOnUnwind, Task};

/// A closure and, later, what it came to.
pub(crate) struct Shared<F, R> {
    closure: UnsafeCell<Option<F>>,
    outcome: UnsafeCell<Option<Outcome<R>>>,
}

// SAFETY: one thread runs the closure, another takes the outcome after it, and what passes between
// them is Send.
unsafe impl<F: Send, R: Send> Sync for Shared<F, R> {}

impl<F, R> Shared<F, R>
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    pub(crate) fn new(closure: F) -> Self {
        Shared { closure: UnsafeCell::new(Some(closure)), outcome: UnsafeCell::new(None) }
    }

    /// Makes a task that runs the closure and then calls `done`, and lends it to `wait`, which must not
    /// return before `done` was called; a `wait` that unwinds, or that returns too early, ends the
    /// process.
    pub(crate) fn hand_over(&self, done: impl FnOnce() + Send, wait: impl FnOnce(Task)) {
        let guard = AbortOnUnwind("a thread stopped waiting for a task in its own frame");
        let run = move || {
            // SAFETY: this task alone uses the closure.
            let closure = unsafe { &mut *self.closure.get() }.take();
            let outcome =
                panic::catch_unwind(AssertUnwindSafe(|| closure.expect("a task runs once")()));
            // SAFETY: nobody reads the outcome before `done`.
            unsafe { *self.outcome.get() = Some(outcome) };
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
