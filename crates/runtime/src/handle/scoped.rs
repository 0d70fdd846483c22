//! Handles to tasks that borrow.

use std::fmt;

use std::sync::Arc;

use super::packet::{Awaited, Packet};
use super::{Handle, JoinError};
use crate::scope::Scope;
use crate::worker::tally::{Destination, ScopeKind, Tally};

/// The handle of a task of a scope: [`Scope::spawn_handle`].
///
/// If it is dropped, the task runs all the same, and the scope waits for it. A panic of the task is
/// then the scope's.
pub struct ScopedJoinHandle<'scope, R>(Handle<'scope, R>);

impl<'scope, R> ScopedJoinHandle<'scope, R> {
    pub(crate) fn new(packet: Arc<dyn Awaited<R> + 'scope>) -> ScopedJoinHandle<'scope, R> {
        ScopedJoinHandle(Handle { packet })
    }
}

impl<R> ScopedJoinHandle<'_, R> {
    /// Waits for the task, as [`JoinHandle::join`](crate::JoinHandle::join) does.
    ///
    /// # Errors
    ///
    /// [`JoinError`]: the task panicked, or was cancelled before it started.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn join(self) -> Result<R, JoinError> {
        self.0.join()
    }

    /// Cancels the task if it has not started, and returns whether it did. Its closure has been
    /// dropped when this returns. A future is cancelled as by
    /// [`JoinHandle::cancel`](crate::JoinHandle::cancel).
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// Whether the task has ended or was cancelled, so that [`join`](ScopedJoinHandle::join) will
    /// not wait.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<R> fmt::Debug for ScopedJoinHandle<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug("ScopedJoinHandle", f)
    }
}

impl<'scope> Scope<'scope> {
    /// [`spawn`](Scope::spawn), with a handle to the task's result. Allocates.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// let text = String::from("to be or not to be");
    /// let words = poach::scope(|s| {
    ///     let (first, second) = text.split_at(9);
    ///     let words = |part: &str| part.split_whitespace().count();
    ///     let handle = s.spawn_handle(move || words(first));
    ///     words(second) + handle.join().unwrap()
    /// });
    /// assert_eq!(words, 6);
    /// ```
    pub fn spawn_handle<R, F>(&self, task: F) -> ScopedJoinHandle<'scope, R>
    where
        R: Send + 'scope,
        F: FnOnce() -> R + Send + 'scope,
    {
        let tally = &self.base().tally;
        let (packet, promise) = Packet::new(tally.hold(), task);
        let run = move |_: &Scope<'scope>| {
            if let Some(payload) = promise.run() {
                std::panic::resume_unwind(payload);
            }
        };
        Tally::spawn(self, run, Destination::Own);
        ScopedJoinHandle(Handle { packet })
    }
}
