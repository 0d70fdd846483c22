//! [`Consumer::get_async`]: a get for tasks of an async runtime, any of them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::consumer::Consumer;
use crate::error::Closed;
use crate::gate::Entry;

impl<T: Send> Consumer<T> {
    /// Takes a task, and waits for one without blocking the thread. Dropping the future before it is
    /// ready loses no task.
    ///
    /// # Errors
    ///
    /// [`Closed`], once the pool is closed and all its tasks are taken.
    pub fn get_async(&mut self) -> Get<'_, T> {
        Get { consumer: self, entry: None }
    }
}

/// The future of [`Consumer::get_async`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct Get<'a, T: Send> {
    consumer: &'a mut Consumer<T>,
    entry: Option<Entry>,
}

impl<T: Send> fmt::Debug for Get<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").finish_non_exhaustive()
    }
}

impl<T: Send> Future for Get<'_, T> {
    type Output = Result<T, Closed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(entry) = this.entry.take() {
            // Woken for something, or polled by chance.
            this.consumer.shared.admission.tasks.leave(&entry);
        }
        if let Some(found) = this.consumer.look() {
            return Poll::Ready(found);
        }
        // Kept before the look, which may panic: then `drop` gives the entry up.
        this.entry = Some(this.consumer.shared.admission.tasks.enter(context.waker()));
        match this.consumer.look() {
            Some(found) => {
                this.give_up();
                Poll::Ready(found)
            }
            None => Poll::Pending,
        }
    }
}

impl<T: Send> Get<'_, T> {
    /// If it was woken for something it will not take that: another may.
    fn give_up(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.consumer.shared.admission.tasks.left_with_something(&entry);
        }
    }
}

impl<T: Send> Drop for Get<'_, T> {
    fn drop(&mut self) {
        self.give_up();
    }
}
