//! [`Consumer::get_async`] and [`Producer::put_async`], for any async runtime.
//!
//! Both are cancel safe: a future that is dropped before it is ready has taken and put nothing. So
//! they may stand in a `select!`, or in a [`Selector`](crate::Selector).

use std::fmt;
use std::future::Future;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::consumer::Consumer;
use super::error::{Closed, PutError};
use super::gate::Woken;
use super::producer::Producer;
use super::sleepers::Entry;
use crate::salsa::Found;

impl<T: Send> Consumer<T> {
    /// Takes a task; waits without blocking the thread. Dropping the future early loses no task.
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
    pub(crate) consumer: &'a mut Consumer<T>,
    pub(crate) entry: Option<Entry>,
}

impl<T: Send> fmt::Debug for Get<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").finish_non_exhaustive()
    }
}

impl<T: Send> Future for Get<'_, T> {
    type Output = Result<T, Closed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        /// Gives the seat back, also if foreign code panics.
        struct Polled<'g, 'a, T: Send>(&'g mut Get<'a, T>, bool);
        impl<T: Send> Drop for Polled<'_, '_, T> {
            fn drop(&mut self) {
                self.0.consumer.polled(self.1);
            }
        }
        let mut polled = Polled(&mut self, false);
        let found = polled.0.poll_seated(context);
        polled.1 = found.is_ready();
        found
    }
}

impl<T: Send> Get<'_, T> {
    fn poll_seated(&mut self, context: &mut Context<'_>) -> Poll<Result<T, Closed>> {
        let shared = Arc::clone(&self.consumer.shared);
        let gate = &shared.admission.tasks;
        if self.entry.as_ref().is_some_and(|entry| gate.renew(entry, context.waker())) {
            // A spurious poll: it has kept its entry, and one look is enough.
            return self.look_entered();
        }
        let woken = self.entry.take().map(|_| gate.woken());
        let mut place = MaybeUninit::uninit();
        let found = self.consumer.look(&mut place);
        woken.into_iter().for_each(Woken::looked);
        if let Some(found) = found {
            return Poll::Ready(found.map(Found::read));
        }
        // Stored before the look, which may panic: then `drop` gives the entry up.
        self.entry = Some(gate.enter(context.waker()));
        self.look_entered()
    }

    fn look_entered(&mut self) -> Poll<Result<T, Closed>> {
        let mut place = MaybeUninit::uninit();
        match self.consumer.look(&mut place) {
            Some(found) => {
                let (entry, shared) = (self.entry.take(), Arc::clone(&self.consumer.shared));
                let wakes = || {
                    if let Some(entry) = entry {
                        shared.admission.tasks.left_with_something(&entry);
                    }
                };
                Poll::Ready(self.consumer.wake_with(found, wakes).map(Found::read))
            }
            None => Poll::Pending,
        }
    }

    /// A future that was woken and does not take the task passes the wake-up on.
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

impl<T: Send> Producer<T> {
    /// Puts a task, and waits for room without blocking the thread, if the pool has a
    /// [capacity](crate::Builder::capacity). Dropping the future before it is ready drops the task,
    /// which was not put. The order is that of [`put`](Producer::put).
    ///
    /// # Errors
    ///
    /// As [`put`](Producer::put).
    pub fn put_async(&mut self, task: T) -> Put<'_, T> {
        Put { producer: self, task: Some(task), entry: None }
    }
}

/// The future of [`Producer::put_async`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct Put<'a, T: Send> {
    pub(crate) producer: &'a mut Producer<T>,
    pub(crate) task: Option<T>,
    pub(crate) entry: Option<Entry>,
}

// The task is moved in and out; no pointer leads to it.
impl<T: Send> Unpin for Put<'_, T> {}

impl<T: Send> fmt::Debug for Put<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Put").finish_non_exhaustive()
    }
}

/// # Panics
///
/// `poll` panics if it has been ready before.
impl<T: Send> Future for Put<'_, T> {
    type Output = Result<(), PutError<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Put { producer, task, entry } = &mut *self;
        assert!(task.is_some(), "a future that was ready is not polled again");
        poll_put(producer, task, entry, context)
    }
}

/// If it panics, the task is still there, or has been put.
pub(crate) fn poll_put<T: Send>(
    producer: &mut Producer<T>,
    task: &mut Option<T>,
    entry: &mut Option<Entry>,
    context: &mut Context<'_>,
) -> Poll<Result<(), PutError<T>>> {
    if task.is_none() {
        return Poll::Ready(Ok(()));
    }
    let shared = Arc::clone(producer.shared());
    let room = shared.admission.room.as_ref();
    let kept = entry.as_ref().zip(room);
    if !kept.is_some_and(|(entry, room)| room.gate.renew(entry, context.waker())) {
        let woken = entry.take().zip(room).map(|(_, room)| room.gate.woken());
        let done = producer.try_put_from(task);
        woken.into_iter().for_each(Woken::looked);
        if let Some(done) = done {
            return Poll::Ready(done);
        }
        *entry = room.map(|room| room.gate.enter(context.waker()));
    }
    let Some(done) = producer.try_put_from(task) else { return Poll::Pending };
    let mut over = Over { task, done: Some(done) };
    if let Some((entry, room)) = entry.take().zip(room) {
        room.gate.left_with_something(&entry);
    }
    Poll::Ready(over.done.take().expect("it is taken here or in the drop"))
}

/// If the wake-up of another in its place panics, a refused task is in `task` again.
struct Over<'a, T> {
    task: &'a mut Option<T>,
    done: Option<Result<(), PutError<T>>>,
}

impl<T> Drop for Over<'_, T> {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.done.take() {
            *self.task = Some(error.into_inner());
        }
    }
}

impl<T: Send> Put<'_, T> {
    /// A future that was woken for room and does not use it passes the wake-up on.
    fn give_up(&mut self) {
        if let (Some(entry), Some(room)) = (self.entry.take(), self.producer.room()) {
            room.gate.left_with_something(&entry);
        }
    }
}

impl<T: Send> Drop for Put<'_, T> {
    fn drop(&mut self) {
        self.give_up();
    }
}
