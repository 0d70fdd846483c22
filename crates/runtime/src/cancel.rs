//! Cancellation in which running tasks cooperate.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use poach_memory::{Machine, Memory, Ordering, Word};

pub use crate::handle::CancelOnDrop;
use crate::scope::{Scope, scope};

/// Tells running tasks that their work is no longer wanted. A task asks its token now and then, and
/// stops by itself.
///
/// Cancelling a token cancels its [children](CancellationToken::child_token), and leaves its parent
/// as it is. [`try_scope`](CancellationToken::try_scope) opens a scope that has a child token. A
/// clone is the same token.
///
/// ```
/// # use poach_runtime as poach;
/// use poach::cancel::{CancellationToken, Cancelled};
///
/// let token = CancellationToken::new();
/// let search = poach::spawn_handle({
///     let token = token.clone();
///     move || -> Result<u64, Cancelled> {
///         for n in 0.. {
///             token.check()?;
///             if n == u64::MAX {
///                 return Ok(n);
///             }
///         }
///         unreachable!()
///     }
/// });
/// token.cancel();
/// assert_eq!(search.join().unwrap(), Err(Cancelled));
/// ```
#[derive(Clone)]
pub struct CancellationToken(Arc<Node>);

struct Node {
    cancelled: <Machine as Memory>::Word,
    parent: Option<CancellationToken>,
}

/// The error of a task that stopped because its [token](CancellationToken) was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl CancellationToken {
    /// A token that has no parent.
    pub fn new() -> CancellationToken {
        CancellationToken::with_parent(None)
    }

    fn with_parent(parent: Option<CancellationToken>) -> CancellationToken {
        CancellationToken(Arc::new(Node { cancelled: Word::new(0), parent }))
    }

    /// A token that is cancelled with this one, or by itself.
    #[must_use]
    pub fn child_token(&self) -> CancellationToken {
        CancellationToken::with_parent(Some(self.clone()))
    }

    /// Cancels this token and its children, for good. Wait-free. Tasks that run are neither stopped
    /// nor waited for.
    pub fn cancel(&self) {
        // Release: a task that stops for it sees what came before.
        self.0.cancelled.store(1, Ordering::Release);
    }

    /// Whether this token or one of its ancestors has been cancelled. One load for each of them.
    pub fn is_cancelled(&self) -> bool {
        let mut token = Some(self);
        while let Some(CancellationToken(node)) = token {
            // Acquire: pairs with `cancel`.
            if node.cancelled.load(Ordering::Acquire) != 0 {
                return true;
            }
            token = node.parent.as_ref();
        }
        false
    }

    /// [`is_cancelled`](CancellationToken::is_cancelled), for `?`.
    ///
    /// # Errors
    ///
    /// [`Cancelled`].
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    /// Runs a future until this token is cancelled, which it asks at each poll. The cancellation
    /// does not wake the future.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use poach::cancel::{CancellationToken, Cancelled};
    /// use poach::future::{block_on, yield_now};
    ///
    /// let token = CancellationToken::new();
    /// let endless = poach::spawn_future({
    ///     let token = token.clone();
    ///     async move {
    ///         token.run_until_cancelled(async { loop { yield_now().await } }).await
    ///     }
    /// });
    /// token.cancel();
    /// assert_eq!(block_on(endless).unwrap(), Err::<(), _>(Cancelled));
    /// ```
    ///
    /// # Errors
    ///
    /// [`Cancelled`], once a poll finds that the token was.
    pub async fn run_until_cancelled<F: Future>(&self, future: F) -> Result<F::Output, Cancelled> {
        let mut future = pin!(future);
        poll_fn(|context| match self.check() {
            Ok(()) => future.as_mut().poll(context).map(Ok),
            Err(cancelled) => Poll::Ready(Err(cancelled)),
        })
        .await
    }

    /// A guard that cancels this token when it is dropped (by `?` or a panic, too), unless it is
    /// [disarmed](DropGuard::disarm) before.
    pub fn drop_guard(&self) -> DropGuard {
        DropGuard(Some(self.clone()))
    }

    /// [`scope`], with a child of this token that is cancelled if `f` returns an error or panics.
    /// Tasks that were [spawned with the child](Scope::spawn_unless) and have not started then
    /// do not start; those that run can ask it.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use poach::cancel::CancellationToken;
    ///
    /// let result = CancellationToken::new().try_scope(|s, token| {
    ///     for _ in 0..2 {
    ///         s.spawn_unless(token, |_, token| while !token.is_cancelled() {});
    ///     }
    ///     "12 apples".parse::<u32>() // an error, which ends the two
    /// });
    /// assert!(result.is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// `f`'s, when all tasks have ended.
    ///
    /// # Panics
    ///
    /// As [`scope`].
    pub fn try_scope<'scope, F, R, E>(&self, f: F) -> Result<R, E>
    where
        F: FnOnce(&Scope<'scope>, &CancellationToken) -> Result<R, E> + Send,
        R: Send,
        E: Send,
    {
        let child = self.child_token();
        scope(|s| {
            let guard = child.drop_guard();
            let result = f(s, &child);
            if result.is_ok() {
                guard.disarm();
            }
            result
        })
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        CancellationToken::new()
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken").field("cancelled", &self.is_cancelled()).finish()
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the work was cancelled")
    }
}

impl std::error::Error for Cancelled {}

/// Cancels a token when dropped: [`CancellationToken::drop_guard`].
#[derive(Debug)]
#[must_use = "dropping the guard cancels the token"]
pub struct DropGuard(Option<CancellationToken>);

impl DropGuard {
    /// Leaves the token as it is.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
    }
}

impl<'scope> Scope<'scope> {
    /// [`spawn`](Scope::spawn), but the task is dropped instead of started if `token` has been
    /// cancelled by then. It is given the token.
    pub fn spawn_unless<F>(&self, token: &CancellationToken, task: F)
    where
        F: FnOnce(&Scope<'scope>, &CancellationToken) + Send + 'scope,
    {
        let token = token.clone();
        self.spawn(move |s| {
            if !token.is_cancelled() {
                task(s, &token);
            }
        });
    }
}
