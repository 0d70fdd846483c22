//! The handle to a spawned task: wait for it, await it, ask, cancel.
//!
//! Task and handle share one packet under a lock. The task goes from queued to running to ended; a
//! handle that cancels a queued task ends it there, and the task that comes upon that when its turn
//! comes does nothing. A task that is dropped without having run (the pool is shut down at once) ends
//! as cancelled too, so nobody waits in vain.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::job::current::Local;
use crate::job::forked::ForkGuard;
use crate::job::unwind::catch;
use crate::scheduler::latch::Signal;
use crate::scheduler::registry::Registry;

/// Why a spawned task has no result: it panicked, or was cancelled before it started.
///
/// ```
/// use poach_runtime::ThreadPool;
///
/// let pool = ThreadPool::builder().threads(1).build()?;
/// let (start, wait) = std::sync::mpsc::channel::<()>();
/// let busy = pool.spawn(move || wait.recv());
/// let idle = pool.spawn(|| 1);
/// assert!(idle.cancel());
/// drop(start);
/// assert!(idle.join().unwrap_err().is_cancelled());
/// assert!(busy.join().unwrap().is_err());
///
/// let error = pool.spawn(|| panic!("no bread")).join().unwrap_err();
/// assert_eq!(error.to_string(), "the task panicked: no bread");
/// assert_eq!(*error.into_panic().downcast::<&str>().unwrap(), "no bread");
/// # Ok::<(), poach_runtime::BuildError>(())
/// ```
pub struct JoinError(Reason);

enum Reason {
    Cancelled,
    /// In a lock, so that the error is Sync, which a payload need not be.
    Panicked(Mutex<Box<dyn Any + Send>>),
}

impl JoinError {
    #[cold]
    fn panicked(payload: Box<dyn Any + Send>) -> JoinError {
        JoinError(Reason::Panicked(Mutex::new(payload)))
    }

    /// Whether the task was cancelled before it started: by [`JoinHandle::cancel`], or by
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
            _ if self.is_cancelled() => f.write_str("the task was cancelled before it started"),
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

type Outcome<R> = Result<R, JoinError>;

/// The result of a spawned task, perhaps still to come.
///
/// [`join`](JoinHandle::join) waits for it; as a [`Future`], for use under any executor, it is woken
/// once by the worker that ends the task. Dropping the handle lets the task go: it runs all the same.
#[must_use = "dropping the handle detaches the task; use `drop` or `let _ =` to say so"]
pub struct JoinHandle<R> {
    packet: Arc<Packet<R>>,
}

/// Where a task leaves its outcome.
struct Packet<R> {
    fork_guard: ForkGuard,
    inner: Mutex<Inner<R>>,
}

struct Inner<R> {
    state: State<R>,
    waiter: Waiter,
}

enum State<R> {
    Queued,
    Running,
    Ended(Outcome<R>),
    /// The outcome was handed out.
    Taken,
    /// The handle is gone, and the task has not ended.
    Detached,
}

enum Waiter {
    Nobody,
    /// A thread, in `join`.
    Thread(Signal),
    /// A future's task.
    Task(Waker),
}

/// The task's side of a packet, until it runs. Dropped before, it cancels.
pub(crate) struct Promise<R>(Option<Arc<Packet<R>>>);

/// A task's two sides.
pub(crate) fn packet<R>(fork_guard: ForkGuard) -> (JoinHandle<R>, Promise<R>) {
    let inner = Inner { state: State::Queued, waiter: Waiter::Nobody };
    let packet = Arc::new(Packet { fork_guard, inner: Mutex::new(inner) });
    (JoinHandle { packet: Arc::clone(&packet) }, Promise(Some(packet)))
}

impl<R> Inner<R> {
    fn is_pending(&self) -> bool {
        matches!(self.state, State::Queued | State::Running)
    }
}

impl<R> Packet<R> {
    fn lock(&self) -> MutexGuard<'_, Inner<R>> {
        self.fork_guard.lock(&self.inner)
    }

    /// Has the end of the task tell `waiter`. Returns who was told before; `None` if the task has ended.
    fn wait_by(&self, waiter: Waiter) -> Option<Waiter> {
        let mut inner = self.lock();
        // An unwanted `waiter` is dropped after the lock, as an argument.
        inner.is_pending().then(|| std::mem::replace(&mut inner.waiter, waiter))
    }

    /// Leaves the outcome and tells who waits. Returns what nobody will ask for.
    #[inline(always)]
    fn end(&self, outcome: Outcome<R>) -> Option<Outcome<R>> {
        let inner = self.lock();
        if !inner.is_pending() {
            return Some(outcome);
        }
        Self::settle(inner, outcome);
        None
    }

    /// Ends a task that has not started as cancelled.
    fn cancel(&self) -> bool {
        let inner = self.lock();
        let queued = matches!(inner.state, State::Queued);
        if queued {
            Self::settle(inner, Err(JoinError(Reason::Cancelled)));
        }
        queued
    }

    fn settle(mut inner: MutexGuard<'_, Inner<R>>, outcome: Outcome<R>) {
        inner.state = State::Ended(outcome);
        let waiter = std::mem::replace(&mut inner.waiter, Waiter::Nobody);
        // A waker is foreign code: not under the lock.
        drop(inner);
        match waiter {
            Waiter::Nobody => {}
            Waiter::Thread(signal) => signal.set(),
            Waiter::Task(waker) => waker.wake(),
        }
    }
}

impl<R> Promise<R> {
    /// Runs `f`, unless it was cancelled or `registry` starts nothing any more, and leaves the outcome.
    /// Does not unwind: panics that have nobody else to travel to go to the pool's handler.
    pub(crate) fn run(mut self, registry: &Registry, f: impl FnOnce() -> R) {
        let Some(packet) = self.0.take() else { return };
        {
            let mut inner = packet.lock();
            match inner.state {
                State::Queued if !registry.is_dropping() => inner.state = State::Running,
                State::Detached if !registry.is_dropping() => {}
                _ => {
                    drop(inner);
                    registry.handlers.told(|| drop(f));
                    // A waker may panic here.
                    registry.handlers.told(|| _ = packet.cancel());
                    return;
                }
            }
        }
        let outcome = catch(f).map_err(JoinError::panicked);
        // And here, and so may the destructor of a result that nobody wants.
        registry.handlers.told(|| match packet.end(outcome) {
            Some(Ok(result)) => drop(result),
            // This task ran, so that it was not cancelled.
            Some(Err(error)) => registry.handlers.panicked(error.into_panic()),
            None => {}
        });
    }
}

impl<R> Drop for Promise<R> {
    fn drop(&mut self) {
        if let Some(packet) = &self.0 {
            packet.cancel();
        }
    }
}

impl<R> JoinHandle<R> {
    /// Waits for the task, working meanwhile if this thread is a worker.
    ///
    /// # Errors
    ///
    /// [`JoinError`]: the task panicked, or was cancelled before it started.
    ///
    /// # Panics
    ///
    /// In a process forked since the task was spawned. If the outcome was taken already, by polling.
    pub fn join(self) -> Result<R, JoinError> {
        self.packet.fork_guard.check();
        Local::with(|local| {
            let signal = Signal::new(local);
            if let Some(old) = self.packet.wait_by(Waiter::Thread(signal.clone())) {
                drop(old);
                signal.wait(local);
            }
        });
        self.take()
    }

    /// Cancels the task if it has not started, and says whether it did so: then it will not run, and
    /// the handle's outcome is a [`JoinError`] that says so. What its closure holds is dropped when its turn would have
    /// come.
    ///
    /// A task that has started, ended, or been cancelled before is left as it is: `false`.
    pub fn cancel(&self) -> bool {
        self.packet.fork_guard.check();
        self.packet.cancel()
    }

    /// Whether the task has ended or was cancelled, so that [`join`](JoinHandle::join) will not wait.
    pub fn is_finished(&self) -> bool {
        !self.packet.fork_guard.is_elsewhere()
            && matches!(self.packet.lock().state, State::Ended(_) | State::Taken)
    }

    /// Has the end of the task wake this one. False if it has ended.
    fn registers(&self, waker: Waker) -> bool {
        // What was there before is dropped here.
        self.packet.wait_by(Waiter::Task(waker)).is_some()
    }

    fn take(&self) -> Outcome<R> {
        let mut inner = self.packet.lock();
        match std::mem::replace(&mut inner.state, State::Taken) {
            State::Ended(outcome) => outcome,
            State::Taken => {
                drop(inner);
                panic!("a task's outcome is asked for a second time, after a poll had returned it");
            }
            _ => unreachable!("the task has ended, and this is its one handle"),
        }
    }
}

/// Ready when the task has ended, with the outcome that [`join`](JoinHandle::join) would have returned.
/// Never blocks; polled by a worker, it does not work meanwhile.
///
/// ```
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
/// assert_eq!(block_on(poach_runtime::spawn(|| 6 * 7)).unwrap(), 42);
/// ```
///
/// # Panics
///
/// `poll` panics if it has returned the outcome before, or in a process forked since the task was
/// spawned.
impl<R> Future for JoinHandle<R> {
    type Output = Result<R, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.packet.fork_guard.check();
        let (pending, registered) = {
            let inner = self.packet.lock();
            let waker = context.waker();
            let same = matches!(&inner.waiter, Waiter::Task(old) if old.will_wake(waker));
            (inner.is_pending(), same)
        };
        // A waker is the user's code: it is cloned and dropped without the lock, which its task's end takes.
        if pending && (registered || self.registers(context.waker().clone())) {
            return Poll::Pending;
        }
        Poll::Ready(self.take())
    }
}

impl<R> Drop for JoinHandle<R> {
    fn drop(&mut self) {
        // In a child process the lock may be held by a thread that is not there.
        if self.packet.fork_guard.is_elsewhere() {
            return;
        }
        let mut inner = self.packet.lock();
        let next = match inner.state {
            State::Queued | State::Running => State::Detached,
            _ => State::Taken,
        };
        let before = std::mem::replace(&mut inner.state, next);
        let waiter = std::mem::replace(&mut inner.waiter, Waiter::Nobody);
        // Foreign destructors: not under the lock. A panic's payload that is dropped here was not asked
        // for in time; the panic hook has reported it.
        drop(inner);
        drop(before);
        drop(waiter);
    }
}

impl<R> fmt::Debug for JoinHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("finished", &self.is_finished()).finish()
    }
}
