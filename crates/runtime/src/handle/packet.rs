//! The state that a spawned task and its handle share: first the closure, later the outcome.
//!
//! The task is *queued*, then *running*, then *ended*. The thread that takes its job out of the
//! packet, under the lock, begins it, and alone uses the closure from then on:
//!
//! - the worker that finds it in a queue or an inbox, and runs it;
//! - a worker of its pool that waits for it, and takes nothing else: it runs the task right there;
//! - the thread that cancels it, and drops the closure at once; or the queue that is dropped with
//!   it.
//!
//! For all other threads it has begun, so what is left of it in a queue does nothing.

use std::any::Any;
use std::mem;
use std::num::NonZeroUsize;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use super::error::JoinError;
use crate::shared::handlers::Handlers;
use crate::shared::{Awaitable, OpenPool, PoolShared};
use crate::system::process::ProcessGuard;
use crate::task::panic::catch;
use crate::worker::current::WorkerThread;
use crate::worker::signal::Signal;
use crate::worker::tally::Held;

/// The pool or scope that a task belongs to until it has ended.
pub(crate) trait TaskContext: Send + 'static {
    /// Whether a scope waits for it: then it always starts, and its panic is the scope's.
    const IN_SCOPE: bool;

    fn shared(&self) -> &Arc<PoolShared>;

    /// Whether the task has a turn. A wait begins it before its turn only if the wait takes nothing
    /// else.
    fn in_order(&self) -> bool;
}

/// A task of a pool, which waits for it.
pub(crate) struct PoolTask {
    pub(crate) pool: OpenPool,
    pub(crate) in_order: bool,
}

impl TaskContext for PoolTask {
    const IN_SCOPE: bool = false;

    #[inline(always)]
    fn shared(&self) -> &Arc<PoolShared> {
        self.pool.shared()
    }

    fn in_order(&self) -> bool {
        self.in_order
    }
}

impl TaskContext for Held {
    const IN_SCOPE: bool = true;

    fn shared(&self) -> &Arc<PoolShared> {
        Held::shared(self)
    }

    fn in_order(&self) -> bool {
        false
    }
}

/// A task as its handle knows it: the [`Packet`] of any closure. Each method is one virtual call.
pub(crate) trait Awaited<R>: Send + Sync + UnwindSafe + RefUnwindSafe {
    fn process_guard(&self) -> ProcessGuard;
    fn is_finished(&self) -> bool;
    /// The worker `local` waits for the task: runs it, if it has not begun, and `local` may.
    /// Returns whether it did.
    fn run_on(&self, local: &WorkerThread) -> bool;
    /// Ends a task that has not started as cancelled.
    fn cancel(&self) -> bool;
    /// Registers `waiter`, which the end of the task notifies. Returns the waiter before it; `None`
    /// if the task has ended.
    fn wait_by(&self, waiter: Waiter) -> Option<Waiter>;
    /// Whether the task is under way on the calling thread, below the caller, which is the first to
    /// wait for it.
    fn is_below(&self) -> bool;
    /// Whether the task has not ended, and whether its end wakes `waker`.
    fn is_pending_for(&self, waker: &Waker) -> (bool, bool);
    /// The outcome of the task that has ended.
    fn take(&self) -> Result<R, JoinError>;
    /// The handle is dropped. A panic's payload that is dropped here was not asked for in time; the
    /// panic hook has reported it.
    fn detach(&self);
}

pub(crate) struct Packet<R, F, H> {
    process_guard: ProcessGuard,
    inner: Mutex<Inner<R, F, H>>,
}

struct Inner<R, F, H> {
    state: State<R>,
    waiter: Waiter,
    /// The closure and its context, until the task begins.
    job: Option<(F, H)>,
    /// While the task runs, and has a handle by which no thread waits; with the thread that runs
    /// it.
    awaitable: Option<(Awaitable, Here)>,
}

enum State<R> {
    /// Queued or running.
    Pending,
    Ended(Result<R, JoinError>),
    /// The outcome was handed out.
    Taken,
    /// The handle is gone, and the task has not ended.
    Detached,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Here(NonZeroUsize);

impl Here {
    fn get() -> Here {
        thread_local!(static HERE: u8 = const { 0 });
        HERE.with(|here| Here(NonNull::from(here).addr()))
    }
}

pub(crate) enum Waiter {
    Nobody,
    /// A thread, in `join`.
    Thread(Signal),
    /// A future's task.
    Task(Waker),
}

/// The task's side of a packet, until it runs. Its drop before that cancels the task.
pub(crate) struct Promise<R, F: FnOnce() -> R, H: TaskContext>(Option<Arc<Packet<R, F, H>>>);

impl<R, F: FnOnce() -> R, H: TaskContext> Packet<R, F, H> {
    /// A task of this closure, and its two sides.
    #[inline(always)]
    pub(crate) fn new(context: H, closure: F) -> (Arc<Self>, Promise<R, F, H>) {
        let process_guard = context.shared().process_guard;
        let job = Some((closure, context));
        let waiter = Waiter::Nobody;
        let inner = Inner { state: State::Pending, waiter, job, awaitable: None };
        let packet = Arc::new(Packet { process_guard, inner: Mutex::new(inner) });
        (Arc::clone(&packet), Promise(Some(packet)))
    }

    /// The packet of a task that has begun, of which this is the one side.
    pub(crate) fn begun(process_guard: ProcessGuard) -> Self {
        let waiter = Waiter::Nobody;
        let inner = Inner { state: State::Pending, waiter, job: None, awaitable: None };
        Packet { process_guard, inner: Mutex::new(inner) }
    }

    /// The calling thread runs the task that has begun, until it ends or pauses.
    pub(crate) fn runs(&self, pool: &Arc<PoolShared>) {
        self.lock().runs(pool);
    }

    pub(crate) fn pauses(&self) {
        drop(self.lock().awaitable.take());
    }

    #[inline(always)]
    fn lock(&self) -> MutexGuard<'_, Inner<R, F, H>> {
        self.process_guard.lock(&self.inner)
    }

    /// Runs the closure of the begun task, or drops it, if the task must not start any more. Gives
    /// the outcome to `end`, which returns an outcome that no handle will ask for. Does not unwind.
    /// Passes to `unheard` a panic that no handle will ask for.
    #[inline(always)]
    fn run(
        closure: F,
        handlers: &Handlers,
        starts: bool,
        end: impl FnOnce(Result<R, JoinError>) -> Option<Result<R, JoinError>>,
        unheard: impl FnOnce(Box<dyn Any + Send>),
    ) {
        if !starts {
            handlers.told(|| drop(closure));
            // A waker may panic here.
            handlers.told(|| drop(end(Err(JoinError::cancelled()))));
            return;
        }
        let outcome = catch(closure).map_err(JoinError::panicked);
        // A waker may panic here, too, and so may the destructor of an unwanted result.
        handlers.told(|| match end(outcome) {
            Some(Ok(result)) => drop(result),
            // This task ran, so it was not cancelled.
            Some(Err(error)) => unheard(error.into_panic()),
            None => {}
        });
    }

    /// Stores the outcome and notifies the waiter. Returns an outcome that no handle will ask for.
    #[inline(always)]
    pub(crate) fn end(&self, outcome: Result<R, JoinError>) -> Option<Result<R, JoinError>> {
        let mut inner = self.lock();
        if !inner.is_pending() {
            return Some(outcome);
        }
        inner.state = State::Ended(outcome);
        let awaitable = inner.awaitable.take();
        let waiter = mem::replace(&mut inner.waiter, Waiter::Nobody);
        // A waker is foreign code: called after the lock is released.
        drop(inner);
        drop(awaitable);
        match waiter {
            Waiter::Nobody => {}
            Waiter::Thread(signal) => signal.set(),
            Waiter::Task(waker) => waker.wake(),
        }
        None
    }

    fn cancel_queued(&self) -> bool {
        let begun = self.lock().job.take();
        let Some((closure, context)) = begun else {
            return false;
        };
        context.shared().handlers.told(|| drop(closure));
        drop(self.end(Err(JoinError::cancelled())));
        true
    }
}

impl<R, F, H> Inner<R, F, H> {
    fn is_pending(&self) -> bool {
        matches!(self.state, State::Pending)
    }

    /// The calling thread runs the task.
    #[inline(always)]
    fn runs(&mut self, pool: &Arc<PoolShared>) {
        if self.is_pending() && !matches!(self.waiter, Waiter::Thread(_)) {
            self.awaitable = Some((pool.may_be_awaited(), Here::get()));
        }
    }
}

impl<R: Send, F: FnOnce() -> R + Send, H: TaskContext> Awaited<R> for Packet<R, F, H> {
    fn process_guard(&self) -> ProcessGuard {
        self.process_guard
    }

    fn is_finished(&self) -> bool {
        !self.process_guard.is_elsewhere()
            && matches!(self.lock().state, State::Ended(_) | State::Taken)
    }

    fn run_on(&self, local: &WorkerThread) -> bool {
        let begun = {
            let mut inner = self.lock();
            let lets = |(_, context): &(F, H)| local.begins(context.shared(), context.in_order());
            if inner.job.as_ref().is_some_and(lets) { inner.job.take() } else { None }
        };
        let Some((closure, context)) = begun else {
            return false;
        };
        let handlers = &context.shared().handlers;
        let starts = H::IN_SCOPE || !context.shared().is_dropping();
        let end = |outcome| self.end(outcome);
        // Its handle exists, and will ask for the outcome.
        local.run_awaited(|| Self::run(closure, handlers, starts, end, drop));
        true
    }

    fn cancel(&self) -> bool {
        self.cancel_queued()
    }

    fn wait_by(&self, waiter: Waiter) -> Option<Waiter> {
        let mut inner = self.lock();
        if matches!(waiter, Waiter::Thread(_)) {
            drop(inner.awaitable.take());
        }
        // An unwanted `waiter` is foreign: it is an argument, which is dropped after the lock is
        // released; a closure's capture would be dropped before.
        if inner.is_pending() { Some(mem::replace(&mut inner.waiter, waiter)) } else { None }
    }

    fn is_below(&self) -> bool {
        matches!(&self.lock().awaitable, Some((_, runner)) if *runner == Here::get())
    }

    fn is_pending_for(&self, waker: &Waker) -> (bool, bool) {
        let inner = self.lock();
        let same = matches!(&inner.waiter, Waiter::Task(old) if old.will_wake(waker));
        (inner.is_pending(), same)
    }

    fn take(&self) -> Result<R, JoinError> {
        let mut inner = self.lock();
        match mem::replace(&mut inner.state, State::Taken) {
            State::Ended(outcome) => outcome,
            State::Taken => {
                drop(inner);
                panic!("a task's outcome is asked for a second time, after a poll had returned it");
            }
            _ => unreachable!("the task has ended, and this is its one handle"),
        }
    }

    fn detach(&self) {
        // In a child process a thread that does not exist may hold the lock.
        if self.process_guard.is_elsewhere() {
            return;
        }
        let mut inner = self.lock();
        drop(inner.awaitable.take());
        // Mostly nothing is to be dropped.
        if inner.is_pending() && matches!(inner.waiter, Waiter::Nobody) {
            inner.state = State::Detached;
            return;
        }
        let next = if inner.is_pending() { State::Detached } else { State::Taken };
        let before = mem::replace(&mut inner.state, next);
        let waiter = mem::replace(&mut inner.waiter, Waiter::Nobody);
        // Foreign destructors: after the lock is released.
        drop(inner);
        drop((before, waiter));
    }
}

impl<R, F: FnOnce() -> R + Send, H: TaskContext> Promise<R, F, H> {
    /// Runs the task, if it has not begun. Does not unwind. A panic that no handle will ask for
    /// goes to the pool's handler, or is returned, for the scope.
    #[inline(always)]
    pub(crate) fn run(mut self) -> Option<Box<dyn Any + Send>> {
        let packet = self.0.take()?;
        let (job, is_detached) = {
            let mut inner = packet.lock();
            let job = inner.job.take();
            if let Some((_, context)) = &job {
                inner.runs(context.shared());
            }
            (job, matches!(inner.state, State::Detached))
        };
        let (closure, context) = job?;
        let (handlers, mut for_scope) = (&context.shared().handlers, None);
        let starts = H::IN_SCOPE || !context.shared().is_dropping();
        // Without a handle no other thread has the packet.
        let end = |outcome| if is_detached { Some(outcome) } else { packet.end(outcome) };
        Packet::<R, F, H>::run(closure, handlers, starts, end, |payload| {
            if H::IN_SCOPE {
                for_scope = Some(payload);
            } else {
                handlers.panicked(payload);
            }
        });
        for_scope
    }
}

impl<R, F: FnOnce() -> R, H: TaskContext> Drop for Promise<R, F, H> {
    fn drop(&mut self) {
        if let Some(packet) = &self.0 {
            packet.cancel_queued();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::{JoinHandle, ThreadPool};

    /// A task that runs until it is released, in a pool of one; `act` is given its handle.
    fn under_way(act: impl FnOnce(&ThreadPool, JoinHandle<()>, mpsc::Sender<()>)) {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        let (tell, told) = mpsc::channel();
        let (release, held) = mpsc::channel::<()>();
        let handle = pool.spawn_handle(move || {
            tell.send(()).unwrap();
            _ = held.recv();
        });
        told.recv().unwrap();
        assert!(pool.shared().has_awaitable());
        act(&pool, handle, release);
        assert!(!pool.shared().has_awaitable());
    }

    /// A test is given up after a minute.
    fn nothing_is_awaitable(pool: &ThreadPool) -> bool {
        let began = Instant::now();
        while pool.shared().has_awaitable() && began.elapsed().as_secs() < 60 {
            thread::yield_now();
        }
        !pool.shared().has_awaitable()
    }

    #[test]
    fn a_task_under_way_is_awaitable_until_a_thread_waits_for_it() {
        under_way(|pool, handle, release| {
            let waits = thread::spawn(move || handle.join().unwrap());
            assert!(nothing_is_awaitable(pool), "though it has not ended");
            drop(release);
            waits.join().unwrap();
        });
    }

    #[test]
    fn a_task_under_way_is_awaitable_until_its_handle_is_dropped() {
        under_way(|pool, handle, release| {
            drop(handle);
            assert!(!pool.shared().has_awaitable());
            drop(release);
        });
    }

    #[test]
    fn a_task_that_has_ended_is_not_awaitable() {
        under_way(|pool, handle, release| {
            drop(release);
            while !handle.is_finished() {
                thread::yield_now();
            }
            assert!(nothing_is_awaitable(pool), "though its handle is there");
        });
    }

    #[test]
    fn a_task_that_a_thread_waits_for_or_none_will_is_not_awaitable_when_it_begins() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        for (waits, dropped) in [(false, false), (true, false), (false, true)] {
            let (shared, seen) = (Arc::clone(pool.shared()), Arc::new(AtomicBool::new(false)));
            let context = PoolTask { pool: shared.keep_open(), in_order: false };
            let sees = Arc::clone(&seen);
            let (packet, promise) =
                Packet::new(context, move || sees.store(shared.has_awaitable(), Relaxed));
            if waits {
                assert!(packet.wait_by(Waiter::Thread(Signal::new(None))).is_some());
            }
            if dropped {
                packet.detach();
            }
            assert!(promise.run().is_none());
            assert_eq!(seen.load(Relaxed), !waits && !dropped);
        }
    }
}
