//! What a spawned task and its handle share: first the closure, later what it came to.
//!
//! The task is *queued*, then *running*, then *ended*. Whoever takes its [job](Job) out of the packet, under the lock, is the one
//! that begins it, and alone uses the closure from then on:
//!
//! - the worker that comes upon it in a queue or an inbox, and runs it;
//! - a worker of its pool that waits for it, and is to take nothing else: it runs it right there;
//! - whoever cancels it, and drops the closure at once; or the queue that is dropped with it.
//!
//! For all others it has begun, so that what is left of it in a queue does nothing.

use std::any::Any;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use super::error::JoinError;
use crate::job::current::Local;
use crate::job::forked::ForkGuard;
use crate::job::scoped::Held;
use crate::job::unwind::catch;
use crate::pool::handlers::Handlers;
use crate::scheduler::latch::Signal;
use crate::scheduler::registry::{Detached, Registry};

pub(super) type Outcome<R> = Result<R, JoinError>;

/// What a task belongs to until it has ended.
pub(crate) trait Home: Send + 'static {
    /// Whether the task has a turn, before which no wait begins it but one that is to take nothing else.
    const IN_ORDER: bool = false;
    /// Whether a scope waits for it: then it is never dropped rather than started, and its panic is the scope's.
    const IN_SCOPE: bool = false;

    fn registry(&self) -> &Arc<Registry>;
}

/// A pool, which waits for it.
impl Home for Detached {
    #[inline(always)]
    fn registry(&self) -> &Arc<Registry> {
        Detached::registry(self)
    }
}

/// A task of a pool that has a turn.
pub(crate) struct InOrder(pub(crate) Detached);

impl Home for InOrder {
    const IN_ORDER: bool = true;

    #[inline(always)]
    fn registry(&self) -> &Arc<Registry> {
        self.0.registry()
    }
}

impl Home for Held {
    const IN_SCOPE: bool = true;

    fn registry(&self) -> &Arc<Registry> {
        Held::registry(self)
    }
}

/// A task's closure and its home, until it begins.
pub(crate) trait Job<'t, R>: Send {
    /// Whether the worker `local`, which waits for the task, begins it.
    fn lets_begin(&self, local: &Local) -> bool;
    /// Takes it out, if it is there.
    fn take(&mut self) -> Option<Begun<'t, R>>;
}

/// What only the one that begins a task has.
pub(crate) struct Begun<'t, R> {
    closure: Box<dyn FnOnce() -> R + Send + 't>,
    registry: Arc<Registry>,
    /// Dropped when the task has ended.
    _home: Box<dyn Any + Send>,
}

impl<'t, R, F: FnOnce() -> R + Send + 't, H: Home> Job<'t, R> for Option<(F, H)> {
    fn lets_begin(&self, local: &Local) -> bool {
        let lets = |(_, home): &(F, H)| local.begins(home.registry(), H::IN_ORDER);
        self.as_ref().is_some_and(lets)
    }

    #[cold]
    fn take(&mut self) -> Option<Begun<'t, R>> {
        let (closure, home) = Option::take(self)?;
        let registry = Arc::clone(home.registry());
        Some(Begun { closure: Box::new(closure), registry, _home: Box::new(home) })
    }
}

pub(crate) struct Packet<R, J: ?Sized> {
    pub(super) fork_guard: ForkGuard,
    inner: Mutex<Inner<R, J>>,
}

pub(super) struct Inner<R, J: ?Sized> {
    pub(super) state: State<R>,
    pub(super) waiter: Waiter,
    job: J,
}

pub(super) enum State<R> {
    /// Queued or running.
    Pending,
    Ended(Outcome<R>),
    /// The outcome was handed out.
    Taken,
    /// The handle is gone, and the task has not ended.
    Detached,
}

pub(super) enum Waiter {
    Nobody,
    /// A thread, in `join`.
    Thread(Signal),
    /// A future's task.
    Task(Waker),
}

/// The task's side of a packet, until it runs. Dropped before, it cancels.
pub(crate) struct Promise<R, F: FnOnce() -> R + Send, H: Home>(Option<Arc<Own<R, F, H>>>);

/// A packet, as its task knows it.
type Own<R, F, H> = Packet<R, Option<(F, H)>>;

impl<R, F: FnOnce() -> R + Send, H: Home> Packet<R, Option<(F, H)>> {
    /// A task of this closure, and its two sides.
    #[inline(always)]
    pub(crate) fn new(home: H, closure: F) -> (Arc<Self>, Promise<R, F, H>) {
        let fork_guard = home.registry().fork_guard;
        let job = Some((closure, home));
        let inner = Inner { state: State::Pending, waiter: Waiter::Nobody, job };
        let packet = Arc::new(Packet { fork_guard, inner: Mutex::new(inner) });
        (Arc::clone(&packet), Promise(Some(packet)))
    }
}

impl<R, J: ?Sized> Inner<R, J> {
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.state, State::Pending)
    }
}

impl<R, J: ?Sized> Packet<R, J> {
    #[inline(always)]
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner<R, J>> {
        self.fork_guard.lock(&self.inner)
    }

    /// Runs the closure of the task that was begun, or drops it, if it is not to start any more, and leaves the outcome. Does not
    /// unwind. Tells `unheard` of a panic that nobody will ask for.
    #[inline(always)]
    fn run(
        &self,
        closure: impl FnOnce() -> R,
        handlers: &Handlers,
        starts: bool,
        unheard: impl FnOnce(Box<dyn Any + Send>),
    ) {
        if !starts {
            handlers.told(|| drop(closure));
            // A waker may panic here.
            handlers.told(|| drop(self.end(Err(JoinError::cancelled()))));
            return;
        }
        let outcome = catch(closure).map_err(JoinError::panicked);
        // And here, and so may the destructor of a result that nobody wants.
        handlers.told(|| match self.end(outcome) {
            Some(Ok(result)) => drop(result),
            // This task ran, so that it was not cancelled.
            Some(Err(error)) => unheard(error.into_panic()),
            None => {}
        });
    }

    /// The handle goes. A panic's payload that is dropped here was not asked for in time; the panic hook has reported it.
    #[inline(always)]
    pub(super) fn detach(&self) {
        let mut inner = self.lock();
        let next = match inner.state {
            State::Pending => State::Detached,
            _ => State::Taken,
        };
        let before = mem::replace(&mut inner.state, next);
        let waiter = mem::replace(&mut inner.waiter, Waiter::Nobody);
        // Foreign destructors: not under the lock.
        drop(inner);
        drop((before, waiter));
    }

    /// Has the end of the task tell `waiter`. Returns who was told before; `None` if the task has ended.
    pub(super) fn wait_by(&self, waiter: Waiter) -> Option<Waiter> {
        let mut inner = self.lock();
        // An unwanted `waiter` is dropped after the lock, as an argument.
        inner.is_pending().then(|| mem::replace(&mut inner.waiter, waiter))
    }

    /// Leaves the outcome and tells who waits. Returns what nobody will ask for.
    #[inline(always)]
    fn end(&self, outcome: Outcome<R>) -> Option<Outcome<R>> {
        let mut inner = self.lock();
        if !inner.is_pending() {
            return Some(outcome);
        }
        inner.state = State::Ended(outcome);
        let waiter = mem::replace(&mut inner.waiter, Waiter::Nobody);
        // A waker is foreign code: not under the lock.
        drop(inner);
        match waiter {
            Waiter::Nobody => {}
            Waiter::Thread(signal) => signal.set(),
            Waiter::Task(waker) => waker.wake(),
        }
        None
    }
}

impl<'t, R, J: Job<'t, R> + ?Sized> Packet<R, J> {
    /// The worker `local` waits for the task: runs it, if it has not begun, and this one may.
    pub(super) fn run_on(&self, local: &Local) {
        let mut inner = self.lock();
        if !inner.job.lets_begin(local) {
            return;
        }
        let begun = inner.job.take();
        drop(inner);
        if let Some(Begun { closure, registry, _home }) = begun {
            // Its handle is there, so that somebody will ask.
            local.run_awaited(|| self.run(closure, &registry.handlers, true, drop));
        }
    }

    /// Ends a task that has not started as cancelled.
    pub(super) fn cancel(&self) -> bool {
        let begun = self.lock().job.take();
        let Some(Begun { closure, registry, _home }) = begun else {
            return false;
        };
        registry.handlers.told(|| drop(closure));
        drop(self.end(Err(JoinError::cancelled())));
        true
    }
}

impl<R, F: FnOnce() -> R + Send, H: Home> Promise<R, F, H> {
    /// Runs the task, if nobody has begun it. Does not unwind. A panic that nobody will ask for is told to the pool, or
    /// returned, for the scope.
    #[inline(always)]
    pub(crate) fn run(mut self) -> Option<Box<dyn Any + Send>> {
        let packet = self.0.take()?;
        let (closure, home) = packet.lock().job.take()?;
        let (handlers, mut for_scope) = (&home.registry().handlers, None);
        let starts = H::IN_SCOPE || !home.registry().is_dropping();
        packet.run(closure, handlers, starts, |payload| {
            if H::IN_SCOPE {
                for_scope = Some(payload);
            } else {
                handlers.panicked(payload);
            }
        });
        for_scope
    }
}

impl<R, F: FnOnce() -> R + Send, H: Home> Drop for Promise<R, F, H> {
    fn drop(&mut self) {
        if let Some(packet) = &self.0 {
            packet.cancel();
        }
    }
}
