//! Any number of tasks that may borrow from the frame that opens the scope.
//!
//! Four functions open one: [`scope`] and [`scope_fifo`] make the calling thread a worker, if it is
//! none; the `in_place` ones do not. The tasks run on workers in any case, in last-in-first-out
//! order, or in the order in which each thread has spawned them.

use std::fmt;
use std::panic;
use std::sync::Arc;

use crate::pool::global;
use crate::shared::PoolShared;
use crate::task::panic::{catch, dispose};
use crate::worker::current::WorkerThread;
use crate::worker::fifo::Fifo;
use crate::worker::tally::{Base, Destination, ScopeKind, Tally};

/// Tasks that end before [`scope`] returns.
///
/// `'scope` is the lifetime that the tasks' borrows must outlive.
pub struct Scope<'scope> {
    base: Base<'scope>,
}

/// Tasks that end before [`scope_fifo`] returns, and start in the order in which each thread spawns
/// its own.
pub struct ScopeFifo<'scope> {
    base: Base<'scope>,
    /// A queue for each worker of the pool, of its tasks in this scope.
    fifos: Box<[Arc<Fifo>]>,
}

/// Opens a scope, runs `f` in it, and returns `f`'s result once all tasks spawned in it have ended.
///
/// On a worker `f` runs on the calling thread. A thread that is no worker becomes one of the global
/// pool until the scope ends, and runs tasks of the scope too (see
/// [`ThreadPoolBuilder::callers`](crate::ThreadPoolBuilder::callers)).
///
/// While a worker waits for the scope's tasks, it runs any other task as well, on top of the caller
/// and with every [`Waiting`](crate::config::Waiting). Such a task may want a lock that the caller holds. A
/// thread from outside runs only tasks that it has spawned itself.
///
/// ```
/// # use poach_runtime as poach;
/// let mut squares = vec![0; 100];
/// poach::scope(|s| {
///     for (i, square) in squares.iter_mut().enumerate() {
///         s.spawn(move |_| *square = i * i);
///     }
/// });
/// assert_eq!(squares[99], 9801);
/// ```
///
/// # Panics
///
/// Once all tasks have ended: with `f`'s payload if `f` panicked, else with that of the first task
/// that did.
pub fn scope<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    WorkerThread::with(|local| match local {
        Some(local) => open(Tally::new(local), Some(local), Scope::new, f),
        None => global().enter(|| scope(f)),
    })
}

/// [`scope`], with tasks that start in the order in which each thread spawns them.
///
/// A worker runs the tasks of a plain scope youngest first, which suits the cache and keeps the
/// queue short, but lets early tasks wait for late ones. Here every task goes through a second
/// queue, which has a lock. The lock is free unless a task is being stolen at that moment.
///
/// ```
/// # use poach_runtime as poach;
/// let seen = std::sync::Mutex::new(Vec::new());
/// let pool = poach::ThreadPool::builder().num_threads(1).build()?;
/// // `install`, so that the pool's one thread runs all tasks: `run` would make this thread a second worker.
/// pool.install(|| {
///     poach::scope_fifo(|s| {
///         for i in 0..5 {
///             let seen = &seen;
///             s.spawn_fifo(move |_| seen.lock().unwrap().push(i));
///         }
///     })
/// });
/// assert_eq!(seen.into_inner().unwrap(), [0, 1, 2, 3, 4]);
/// # Ok::<(), poach::BuildError>(())
/// ```
///
/// # Panics
///
/// As [`scope`].
pub fn scope_fifo<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&ScopeFifo<'scope>) -> R + Send,
    R: Send,
{
    WorkerThread::with(|local| match local {
        Some(local) => open(Tally::new(local), Some(local), ScopeFifo::new, f),
        None => global().enter(|| scope_fifo(f)),
    })
}

/// [`scope`], with a body that stays on the calling thread, and so need not be [`Send`]. The tasks
/// run in this thread's pool, or in the global one.
///
/// ```
/// # use poach_runtime as poach;
/// let log = std::rc::Rc::new(std::cell::Cell::new(0)); // not Send
/// let mut parts = [0; 2];
/// poach::in_place_scope(|s| {
///     for part in &mut parts {
///         s.spawn(move |_| *part = 21);
///         log.set(log.get() + 1);
///     }
/// });
/// assert_eq!((log.get(), parts.iter().sum()), (2, 42));
/// ```
///
/// # Panics
///
/// As [`scope`].
pub fn in_place_scope<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R,
{
    in_place(None, Scope::new, f)
}

/// [`scope_fifo`], with a body that runs on the calling thread; see [`in_place_scope`].
///
/// # Panics
///
/// As [`scope`].
pub fn in_place_scope_fifo<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&ScopeFifo<'scope>) -> R,
{
    in_place(None, ScopeFifo::new, f)
}

/// Opens a scope in place, with tasks for `shared`, or without it for this thread's pool.
fn in_place<'scope, S, F, R>(
    shared: Option<&Arc<PoolShared>>,
    form: impl FnOnce(Base<'scope>) -> S,
    f: F,
) -> R
where
    S: ScopeKind<'scope>,
    F: FnOnce(&S) -> R,
{
    WorkerThread::with(|local| {
        let worker = local.filter(|local| shared.is_none_or(|pool| local.shared.serves(pool)));
        if let Some(local) = worker {
            return open(Tally::new(local), Some(local), form, f);
        }
        let shared = shared.unwrap_or_else(|| global().shared());
        shared.process_guard.check();
        open(Tally::outside(shared, local), local, form, f)
    })
}

pub(crate) fn in_place_in<'scope, R>(
    shared: &Arc<PoolShared>,
    f: impl FnOnce(&Scope<'scope>) -> R,
) -> R {
    in_place(Some(shared), Scope::new, f)
}

pub(crate) fn in_place_fifo_in<'scope, R>(
    shared: &Arc<PoolShared>,
    f: impl FnOnce(&ScopeFifo<'scope>) -> R,
) -> R {
    in_place(Some(shared), ScopeFifo::new, f)
}

fn open<'scope, S, F, R>(
    tally: Tally,
    local: Option<&WorkerThread>,
    form: impl FnOnce(Base<'scope>) -> S,
    f: F,
) -> R
where
    S: ScopeKind<'scope>,
    F: FnOnce(&S) -> R,
{
    let scope = form(Base::new(tally));
    let result = catch(|| f(&scope));
    scope.base().tally.wait(local);
    let task_panic = scope.base().take_panic();
    match (result, task_panic) {
        (Ok(result), None) => result,
        (Err(payload), late) => {
            dispose(late);
            panic::resume_unwind(payload)
        }
        (Ok(result), Some(payload)) => {
            dispose(result);
            panic::resume_unwind(payload)
        }
    }
}

impl<'scope> Scope<'scope> {
    #[inline(always)]
    fn new(base: Base<'scope>) -> Self {
        Scope { base }
    }

    /// Spawns a task into the scope. It may spawn others.
    ///
    /// Allocates nothing for a closure of up to 48 bytes. Wait-free while the worker's queue has
    /// room and no other worker is hungry. Called on a thread of another pool, or of none, the
    /// task goes to the pool that opened the scope.
    ///
    /// A task that panics ends only itself; the scope panics with its payload when all have ended.
    #[inline]
    pub fn spawn<F>(&self, task: F)
    where
        F: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        Tally::spawn(self, task, Destination::Own);
    }
}

impl<'scope> ScopeFifo<'scope> {
    fn new(base: Base<'scope>) -> Self {
        let fifos = base.tally.shared().workers.iter().map(|_| Arc::new(Fifo::new())).collect();
        ScopeFifo { base, fifos }
    }

    /// Spawns a task into the scope, to start after those that this thread has spawned into it
    /// before.
    ///
    /// Blocking, by a lock that is held for a push or a pop. Called on a thread of another pool, or
    /// of none, the task goes to the pool that opened the scope, after all earlier tasks from
    /// outside.
    ///
    /// A task that panics ends only itself; the scope panics with its payload when all have ended.
    pub fn spawn_fifo<F>(&self, task: F)
    where
        F: FnOnce(&ScopeFifo<'scope>) + Send + 'scope,
    {
        Tally::spawn(self, task, Destination::InOrder(&self.fifos));
    }
}

impl<'scope> ScopeKind<'scope> for Scope<'scope> {
    #[inline(always)]
    fn base(&self) -> &Base<'scope> {
        &self.base
    }
}

impl<'scope> ScopeKind<'scope> for ScopeFifo<'scope> {
    #[inline(always)]
    fn base(&self) -> &Base<'scope> {
        &self.base
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl fmt::Debug for ScopeFifo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeFifo").finish_non_exhaustive()
    }
}
