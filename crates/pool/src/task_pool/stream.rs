//! A consumer as a `Stream`, and a producer as a `Sink`.

use std::borrow::BorrowMut;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;

use super::consumer::Consumer;
use super::error::PutError;
use super::future::{Get, Put, poll_put};
use super::owned::poll_get;
use super::producer::Producer;
use super::sleepers::Entry;

/// The tasks of a [`Consumer`], until the pool is closed and empty: [`Consumer::stream`],
/// [`Consumer::into_stream`].
#[must_use = "a stream does nothing unless it is polled"]
pub struct TaskStream<T: Send, C: BorrowMut<Consumer<T>> = Consumer<T>> {
    consumer: C,
    entry: Option<Entry>,
    ended: bool,
    task: PhantomData<fn() -> T>,
}

/// Puts what it is sent: [`Producer::sink`], [`Producer::into_sink`].
#[must_use = "a sink does nothing unless it is polled"]
pub struct TaskSink<T: Send, P: BorrowMut<Producer<T>> = Producer<T>> {
    producer: P,
    task: Option<T>,
    entry: Option<Entry>,
}

// No pointer leads to the handles or to a task.
impl<T: Send, C: BorrowMut<Consumer<T>>> Unpin for TaskStream<T, C> {}
impl<T: Send, P: BorrowMut<Producer<T>>> Unpin for TaskSink<T, P> {}

impl<T: Send> Consumer<T> {
    /// The tasks as a stream, in the order of [gets](Consumer::get). Dropping it loses no task.
    pub fn stream(&mut self) -> TaskStream<T, &mut Self> {
        TaskStream { consumer: self, entry: None, ended: false, task: PhantomData }
    }

    /// As [`stream`](Consumer::stream), as a stream that owns the consumer.
    pub fn into_stream(self) -> TaskStream<T> {
        TaskStream { consumer: self, entry: None, ended: false, task: PhantomData }
    }
}

impl<T: Send> Producer<T> {
    /// The producer as a sink, whose errors give the task back. Closing the sink flushes it, no
    /// more: the pool closes with its last producer, or by `close`.
    pub fn sink(&mut self) -> TaskSink<T, &mut Self> {
        TaskSink { producer: self, task: None, entry: None }
    }

    /// As [`sink`](Producer::sink), as a sink that owns the producer.
    pub fn into_sink(self) -> TaskSink<T> {
        TaskSink { producer: self, task: None, entry: None }
    }
}

impl<T: Send, C: BorrowMut<Consumer<T>>> Stream for TaskStream<T, C> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        let polled = poll_get(this.consumer.borrow_mut(), &mut this.entry, context);
        polled.map(|got| {
            this.ended = got.is_err();
            got.ok()
        })
    }
}

impl<T: Send, C: BorrowMut<Consumer<T>>> FusedStream for TaskStream<T, C> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<T: Send, P: BorrowMut<Producer<T>>> TaskSink<T, P> {
    fn poll_put(&mut self, context: &mut Context<'_>) -> Poll<Result<(), PutError<T>>> {
        poll_put(self.producer.borrow_mut(), &mut self.task, &mut self.entry, context)
    }
}

impl<T: Send, P: BorrowMut<Producer<T>>> Sink<T> for TaskSink<T, P> {
    type Error = PutError<T>;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        self.poll_put(context)
    }

    /// # Panics
    ///
    /// If it was not ready.
    fn start_send(mut self: Pin<&mut Self>, task: T) -> Result<(), Self::Error> {
        let this = &mut *self;
        assert!(this.task.is_none(), "a task is sent to a sink that is not ready");
        match this.producer.borrow_mut().try_put(task) {
            Err(PutError::Full(task)) => {
                this.task = Some(task);
                Ok(())
            }
            done => done,
        }
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        self.poll_put(context)
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        self.poll_put(context)
    }
}

impl<T: Send, C: BorrowMut<Consumer<T>>> fmt::Debug for TaskStream<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskStream").field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl<T: Send, P: BorrowMut<Producer<T>>> fmt::Debug for TaskSink<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskSink").field("full", &self.task.is_some()).finish_non_exhaustive()
    }
}

impl<T: Send, C: BorrowMut<Consumer<T>>> Drop for TaskStream<T, C> {
    fn drop(&mut self) {
        drop(Get { consumer: self.consumer.borrow_mut(), entry: self.entry.take() });
    }
}

impl<T: Send, P: BorrowMut<Producer<T>>> Drop for TaskSink<T, P> {
    fn drop(&mut self) {
        drop(Put { producer: self.producer.borrow_mut(), task: None, entry: self.entry.take() });
    }
}
