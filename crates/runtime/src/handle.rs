//! The handle to a spawned task: join it, await it, query it, cancel it. [`packet`] is what it
//! shares with the task.

pub(crate) mod error;
pub(crate) mod packet;
mod scoped;

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::worker::current::WorkerThread;
use crate::worker::signal::Signal;

pub use error::JoinError;
use packet::{Awaited, Waiter};
pub use scoped::ScopedJoinHandle;

/// The handle of a spawned task: it waits for the result, or cancels the task.
///
/// A thread waits by [`join`](JoinHandle::join). Async code awaits the handle, which is a
/// [`Future`] for any executor. Dropping the handle detaches the task, which runs all the same;
/// [`cancel_on_drop`](JoinHandle::cancel_on_drop) makes a handle whose drop cancels the task.
#[must_use = "dropping the handle detaches the task; use `drop` or `let _ =` to say so"]
pub struct JoinHandle<R>(Handle<'static, R>);

/// The handle of a task, in a pool or in a scope.
struct Handle<'t, R> {
    packet: Arc<dyn Awaited<R> + 't>,
}

impl<R> Handle<'_, R> {
    fn join(self) -> Result<R, JoinError> {
        self.packet.process_guard().check();
        WorkerThread::with(|local| {
            if local.is_some_and(|local| self.packet.run_on(local)) {
                return;
            }
            assert!(
                local.is_none() || !self.packet.is_below(),
                "a task waits for one that stands below it on its own call stack, and could never end"
            );
            let signal = Signal::new(local);
            if let Some(old) = self.packet.wait_by(Waiter::Thread(signal.clone())) {
                drop(old);
                signal.wait_or_begin(local, &|local| self.packet.run_on(local));
            }
        });
        self.packet.take()
    }

    fn cancel(&self) -> bool {
        self.packet.process_guard().check();
        self.packet.cancel()
    }

    fn is_finished(&self) -> bool {
        self.packet.is_finished()
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Result<R, JoinError>> {
        self.packet.process_guard().check();
        let (pending, registered) = self.packet.is_pending_for(context.waker());
        // A waker is the user's code: it is cloned and dropped without the lock, which the end of
        // its task takes.
        if pending && (registered || self.registers(context.waker().clone())) {
            return Poll::Pending;
        }
        Poll::Ready(self.packet.take())
    }

    /// Registers `waker` to be woken at the end of the task. False if the task has ended.
    fn registers(&self, waker: Waker) -> bool {
        // The waker registered before is dropped here.
        self.packet.wait_by(Waiter::Task(waker)).is_some()
    }

    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name).field("finished", &self.is_finished()).finish()
    }
}

impl<R> Drop for Handle<'_, R> {
    #[inline]
    fn drop(&mut self) {
        self.packet.detach();
    }
}

impl<R> JoinHandle<R> {
    pub(crate) fn new(packet: Arc<dyn Awaited<R>>) -> JoinHandle<R> {
        JoinHandle(Handle { packet })
    }
}

impl<R> JoinHandle<R> {
    /// Waits for the task.
    ///
    /// A thread that is no worker blocks. A worker runs other tasks on top of the caller meanwhile,
    /// and one of them may want a lock that the caller holds. To hold a lock across this call, wait
    /// with [`Waiting::Sleep`](crate::config::Waiting::Sleep) or in
    /// [`blocking`](crate::blocking()). Then the worker runs only the task itself, if that has not
    /// started and belongs to the same pool. The same holds for a worker that has used half of its
    /// call stack ([how deep waits nest](crate::config::Waiting)). Such a worker polls no future that
    /// it waits for: another must.
    ///
    /// A task may wait for tasks that were spawned before it, in chains and graphs of any length.
    /// No wait starts a task on top of a task that it will wait for, as long as each task has its
    /// handles from its closure. A handle that comes through a channel or a lock is not covered,
    /// nor is a wait in the poll of a [future](crate::spawn_future()). If its task is below the
    /// caller on the same call stack, this panics. If two workers each have such a task below the
    /// task that waits for the other's, both wait for ever.
    ///
    /// # Errors
    ///
    /// [`JoinError`]: the task panicked, or was cancelled before it started, or, if it is a future,
    /// before it ended.
    ///
    /// # Panics
    ///
    /// In a process forked since the task was spawned. If polling has already returned the outcome.
    /// If the task is the caller itself, or is below it on the same call stack, so that the
    /// wait could never end.
    pub fn join(self) -> Result<R, JoinError> {
        self.0.join()
    }

    /// Cancels the task if it has not started. Returns whether it did: then the task will not run,
    /// and [`join`](JoinHandle::join) returns a [`JoinError`] that [is one of
    /// cancellation](JoinError::is_cancelled). Its closure has been dropped when this returns.
    ///
    /// A task that has started, ended, or been cancelled before is left as it is, and the answer is
    /// `false`. A task that runs can be stopped by a
    /// [`CancellationToken`](crate::cancel::CancellationToken) that it asks.
    ///
    /// A future is cancelled also after its first poll: a worker drops it instead of the next poll.
    /// That is later than this returns, on a thread of the pool. Its drop ends it, as `join` says.
    /// The answer is whether it had not ended. A poll that is under way may still end it with a
    /// result.
    #[doc(alias = "abort")]
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// Whether the task has ended or was cancelled, so that [`join`](JoinHandle::join) will not
    /// wait.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Makes the drop of this handle [cancel](JoinHandle::cancel) the task.
    #[doc(alias = "abort_on_drop")]
    pub fn cancel_on_drop(self) -> CancelOnDrop<R> {
        CancelOnDrop(self)
    }
}

/// Ready when the task has ended, with the outcome that [`join`](JoinHandle::join) would have
/// returned. `poll` never blocks, and never runs another task. The worker that ends the task wakes
/// the future once.
///
/// ```
/// # use poach_runtime as poach;
/// use std::{pin::pin, sync::Arc, task, thread};
///
/// /// The smallest executor: one future, one thread.
/// fn block_on<F: Future>(future: F) -> F::Output {
///     struct Unpark(thread::Thread);
///     impl task::Wake for Unpark {
///         fn wake(self: Arc<Self>) {
///             self.0.unpark();
///         }
///     }
///     let waker = Arc::new(Unpark(thread::current())).into();
///     let mut future = pin!(future);
///     loop {
///         if let task::Poll::Ready(output) = future.as_mut().poll(&mut task::Context::from_waker(&waker)) {
///             return output;
///         }
///         thread::park();
///     }
/// }
///
/// assert_eq!(block_on(poach::spawn_handle(|| 6 * 7)).unwrap(), 42);
/// ```
///
/// # Panics
///
/// `poll` panics if it has returned the outcome before, or in a process forked since the task was
/// spawned.
impl<R> Future for JoinHandle<R> {
    type Output = Result<R, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context)
    }
}

impl<R> fmt::Debug for JoinHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug("JoinHandle", f)
    }
}

/// A [`JoinHandle`] whose drop [cancels](JoinHandle::cancel) the task if it has not started. A task
/// that has started goes on.
///
/// ```
/// # use poach_runtime as poach;
/// use poach::ThreadPool;
///
/// let pool = ThreadPool::builder().num_threads(1).build()?;
/// let (release, wait) = std::sync::mpsc::channel::<()>();
/// let busy = pool.spawn_handle(move || wait.recv());
/// let idle = pool.spawn_handle(|| unreachable!()).cancel_on_drop();
/// drop(idle);
/// drop(release);
/// assert!(busy.join().unwrap().is_err());
/// # Ok::<(), poach::BuildError>(())
/// ```
#[doc(alias = "AbortOnDropHandle")]
#[must_use = "dropping the handle cancels the task"]
pub struct CancelOnDrop<R>(JoinHandle<R>);

impl<R> CancelOnDrop<R> {
    /// [`JoinHandle::join`].
    ///
    /// # Errors
    ///
    /// As it has.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn join(self) -> Result<R, JoinError> {
        // As `into_inner`, except for the drop, which then finds nothing to cancel.
        let JoinHandle(Handle { packet }) = &self.0;
        JoinHandle(Handle { packet: Arc::clone(packet) }).join()
    }
}

impl<R> Deref for CancelOnDrop<R> {
    type Target = JoinHandle<R>;

    fn deref(&self) -> &JoinHandle<R> {
        &self.0
    }
}

/// As of the [`JoinHandle`].
impl<R> Future for CancelOnDrop<R> {
    type Output = Result<R, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<R> Drop for CancelOnDrop<R> {
    fn drop(&mut self) {
        if !self.0.0.packet.process_guard().is_elsewhere() {
            self.0.cancel();
        }
    }
}

impl<R> fmt::Debug for CancelOnDrop<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.0.debug("CancelOnDrop", f)
    }
}
