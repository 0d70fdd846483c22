//! What can go wrong with a put or a get.

use std::error::Error;
use std::fmt;

/// A task that was not put, and why.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PutError<T> {
    /// The pool is closed: by `close`, or because its last producer was dropped before.
    Closed(T),
    /// All consumers are gone. What was in the pool has been dropped.
    NoConsumer(T),
    /// The pool is at its capacity. Only `try_put` gives this; `put` waits.
    Full(T),
    /// The time has passed, and the pool was full. Only `put_timeout` and `put_deadline` give this.
    TimedOut(T),
    /// There is no memory for another chunk.
    OutOfMemory(T),
}

impl<T> PutError<T> {
    /// The task.
    pub fn into_inner(self) -> T {
        match self {
            PutError::Closed(task)
            | PutError::NoConsumer(task)
            | PutError::Full(task)
            | PutError::TimedOut(task)
            | PutError::OutOfMemory(task) => task,
        }
    }
}

impl<T> fmt::Debug for PutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PutError::Closed(_) => "Closed(..)",
            PutError::NoConsumer(_) => "NoConsumer(..)",
            PutError::Full(_) => "Full(..)",
            PutError::TimedOut(_) => "TimedOut(..)",
            PutError::OutOfMemory(_) => "OutOfMemory(..)",
        })
    }
}

impl<T> fmt::Display for PutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PutError::Closed(_) => {
                "the task was not put: the pool is closed, by `close` or because its last producer was dropped before"
            }
            PutError::NoConsumer(_) => "the task was not put: no consumer is left",
            PutError::Full(_) => "the task was not put: the pool is full",
            PutError::TimedOut(_) => "the task was not put: the pool was full until the time was up",
            PutError::OutOfMemory(_) => {
                "the task was not put: there is no memory for another chunk"
            }
        })
    }
}

impl<T> Error for PutError<T> {}

/// The progress of a `put_many` that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PutManyError<T> {
    /// The number of tasks that were put.
    pub put: usize,
    /// The next task, and why it was not put.
    pub error: PutError<T>,
}

impl<T> fmt::Debug for PutManyError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutManyError").field("put", &self.put).field("error", &self.error).finish()
    }
}

impl<T> fmt::Display for PutManyError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} tasks: {}", self.put, self.error)
    }
}

impl<T> Error for PutManyError<T> {}

/// The pool is closed, or all producers are gone; and every task that was put has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the pool is closed, or has no producer any more, and all its tasks have been taken",
        )
    }
}

impl Error for Closed {}

/// Why `try_get` has no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryGetError {
    /// There was no task at an instant of the call.
    Empty,
    /// As [`Closed`].
    Closed,
}

impl fmt::Display for TryGetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryGetError::Empty => f.write_str("the pool is empty"),
            TryGetError::Closed => Closed.fmt(f),
        }
    }
}

impl Error for TryGetError {}

/// Why `get_timeout` has no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetTimeoutError {
    /// The timeout has passed, and there was no task.
    TimedOut,
    /// As [`Closed`].
    Closed,
}

impl fmt::Display for GetTimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GetTimeoutError::TimedOut => f.write_str("no task came in time"),
            GetTimeoutError::Closed => Closed.fmt(f),
        }
    }
}

impl Error for GetTimeoutError {}

/// Why there is no pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// A pool of capacity 0 could never hold a task.
    ZeroCapacity,
    /// A chunk of length 0 could never hold a task.
    ZeroChunk,
    /// There is no memory for the pool.
    OutOfMemory,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BuildError::ZeroCapacity => {
                "a pool of capacity 0 could never hold a task: give at least 1, or none at all"
            }
            BuildError::ZeroChunk => "a chunk of length 0 could never hold a task: give at least 1",
            BuildError::OutOfMemory => "there is no memory for a pool",
        })
    }
}

impl Error for BuildError {}
