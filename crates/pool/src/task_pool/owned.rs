//! Futures that own their handle and give it back, to be kept in a struct or sent to another task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::consumer::Consumer;
use super::error::{Closed, PutError};
use super::future::{Get, Put, poll_put};
use super::producer::Producer;
use super::sleepers::Entry;

/// Polls a get whose entry is kept elsewhere. If it panics, the entry is given up.
pub(crate) fn poll_get<T: Send>(
    consumer: &mut Consumer<T>,
    entry: &mut Option<Entry>,
    context: &mut Context<'_>,
) -> Poll<Result<T, Closed>> {
    let mut get = Get { consumer, entry: entry.take() };
    let polled = Pin::new(&mut get).poll(context);
    *entry = get.entry.take();
    polled
}

/// The future of [`Consumer::into_get_async`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct OwnedGet<T: Send> {
    consumer: Option<Consumer<T>>,
    entry: Option<Entry>,
}

/// The future of [`Producer::into_put_async`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct OwnedPut<T: Send> {
    producer: Option<Producer<T>>,
    task: Option<T>,
    entry: Option<Entry>,
}

// Tasks are moved in and out; no pointer leads to them.
impl<T: Send> Unpin for OwnedGet<T> {}
impl<T: Send> Unpin for OwnedPut<T> {}

impl<T: Send> Consumer<T> {
    /// As [`get_async`](Consumer::get_async), as a future that owns the consumer and gives it back.
    #[doc(alias = "into_recv_async")]
    pub fn into_get_async(self) -> OwnedGet<T> {
        OwnedGet { consumer: Some(self), entry: None }
    }
}

impl<T: Send> Producer<T> {
    /// As [`put_async`](Producer::put_async), as a future that owns the producer and gives it back.
    #[doc(alias = "into_send_async")]
    pub fn into_put_async(self, task: T) -> OwnedPut<T> {
        OwnedPut { producer: Some(self), task: Some(task), entry: None }
    }
}

/// # Panics
///
/// `poll` panics if it has been ready before.
impl<T: Send> Future for OwnedGet<T> {
    type Output = (Consumer<T>, Result<T, Closed>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let consumer = this.consumer.as_mut().expect("a future that was ready is not polled again");
        let Poll::Ready(got) = poll_get(consumer, &mut this.entry, context) else {
            return Poll::Pending;
        };
        let consumer = this.consumer.take().expect("it was there");
        Poll::Ready((consumer, got))
    }
}

/// # Panics
///
/// `poll` panics if it has been ready before.
impl<T: Send> Future for OwnedPut<T> {
    type Output = (Producer<T>, Result<(), PutError<T>>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let producer = this.producer.as_mut().expect("a future that was ready is not polled again");
        let Poll::Ready(put) = poll_put(producer, &mut this.task, &mut this.entry, context) else {
            return Poll::Pending;
        };
        let producer = this.producer.take().expect("it was there");
        Poll::Ready((producer, put))
    }
}

impl<T: Send> fmt::Debug for OwnedGet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedGet").finish_non_exhaustive()
    }
}

impl<T: Send> fmt::Debug for OwnedPut<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPut").finish_non_exhaustive()
    }
}

impl<T: Send> Drop for OwnedGet<T> {
    fn drop(&mut self) {
        if let Some(consumer) = &mut self.consumer {
            drop(Get { consumer, entry: self.entry.take() });
        }
    }
}

impl<T: Send> Drop for OwnedPut<T> {
    fn drop(&mut self) {
        if let Some(producer) = &mut self.producer {
            drop(Put { producer, task: None, entry: self.entry.take() });
        }
    }
}
