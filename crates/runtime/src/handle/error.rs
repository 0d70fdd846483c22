//! Why a task has no result.

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Why a spawned task has no result: it panicked, or was cancelled before it ended.
///
/// ```
/// # use poach_runtime as poach;
/// use poach::ThreadPool;
///
/// let pool = ThreadPool::builder().num_threads(1).build()?;
/// let (start, wait) = std::sync::mpsc::channel::<()>();
/// let busy = pool.spawn_handle(move || wait.recv());
/// let idle = pool.spawn_handle(|| 1);
/// assert!(idle.cancel());
/// drop(start);
/// assert!(idle.join().unwrap_err().is_cancelled());
/// assert!(busy.join().unwrap().is_err());
///
/// let error = pool.spawn_handle(|| panic!("no bread")).join().unwrap_err();
/// assert_eq!(error.to_string(), "the task panicked: no bread");
/// assert_eq!(*error.into_panic().downcast::<&str>().unwrap(), "no bread");
/// # Ok::<(), poach::BuildError>(())
/// ```
pub struct JoinError(Reason);

enum Reason {
    Cancelled,
    /// In a lock, so that the error is Sync, which a payload need not be.
    Panicked(Mutex<Box<dyn Any + Send>>),
}

impl JoinError {
    #[cold]
    pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> JoinError {
        JoinError(Reason::Panicked(Mutex::new(payload)))
    }

    pub(crate) fn cancelled() -> JoinError {
        JoinError(Reason::Cancelled)
    }

    /// Whether the task was cancelled before it ended: by
    /// [`JoinHandle::cancel`](crate::JoinHandle::cancel), or by
    /// [`shutdown_now`](crate::ThreadPool::shutdown_now).
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0, Reason::Cancelled)
    }

    /// Whether the task panicked.
    pub fn is_panic(&self) -> bool {
        !self.is_cancelled()
    }

    /// The payload of the task's panic, for [`resume_unwind`](std::panic::resume_unwind).
    ///
    /// # Panics
    ///
    /// If the task was cancelled.
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(error) => panic!("no panic to return: {error}"),
        }
    }

    /// The payload of the task's panic.
    ///
    /// # Errors
    ///
    /// This error, if the task was cancelled.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, JoinError> {
        match self.0 {
            Reason::Panicked(payload) => {
                Ok(payload.into_inner().unwrap_or_else(PoisonError::into_inner))
            }
            Reason::Cancelled => Err(self),
        }
    }

    /// The message of the task's panic, if its payload is one.
    fn message(&self) -> Option<String> {
        let Reason::Panicked(payload) = &self.0 else {
            return None;
        };
        let payload = payload.lock().unwrap_or_else(PoisonError::into_inner);
        let message = payload.downcast_ref::<&str>().map(|&message| message.to_owned());
        message.or_else(|| payload.downcast_ref::<String>().cloned())
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message() {
            _ if self.is_cancelled() => f.write_str("the task was cancelled before it ended"),
            Some(message) => write!(f, "the task panicked: {message}"),
            None => f.write_str("the task panicked"),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message() {
            _ if self.is_cancelled() => f.write_str("JoinError::Cancelled"),
            Some(message) => write!(f, "JoinError::Panic({message:?}, ..)"),
            None => f.write_str("JoinError::Panic(..)"),
        }
    }
}

impl std::error::Error for JoinError {}
