//! What a thread may ask about itself, and what it may do when it has a moment.

use crate::job::current::Local;
use crate::pool::build_error::MAX_THREADS;
use crate::pool::global;

/// What a yield came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// A task was found and run.
    Executed,
    /// None was found.
    Idle,
}

impl Yield {
    fn of(executed: bool) -> Yield {
        if executed { Yield::Executed } else { Yield::Idle }
    }
}

/// Runs one task, of this worker's own or of another's, if there is one. `None` on a thread that is no
/// worker.
///
/// For a task that waits for something that another task of the pool will do. It may be any task, also one that waits for the very task that
/// calls this, which then waits for ever: where tasks wait for each other, [join](crate::JoinHandle::join) their handles. Returns when the task has
/// ended, which stands on top of this one: with half of the worker's call stack in use it runs none, but once in a thousand
/// times, and says [`Idle`](Yield::Idle). A point at which the worker can be [interrupted](crate::interrupt()).
///
/// ```
/// # use poach_runtime as poach;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use poach::{ThreadPool, Yield, yield_now};
///
/// let pool = ThreadPool::builder().threads(1).build()?;
/// assert_eq!(yield_now(), None);
/// pool.install(|| {
///     assert_eq!(yield_now(), Some(Yield::Idle));
///     drop(poach::spawn(|| ()));
///     assert_eq!(yield_now(), Some(Yield::Executed));
/// });
/// # Ok::<(), poach::BuildError>(())
/// ```
pub fn yield_now() -> Option<Yield> {
    Local::with(|local| local.map(|local| Yield::of(local.run_any())))
}

/// As [`yield_now`], but takes only what this worker itself has spawned.
///
/// Pending halves of a [`join`](crate::join()) are not spawned tasks: their join runs them.
pub fn yield_local() -> Option<Yield> {
    Local::with(|local| {
        local.map(|local| {
            local.answer_calls();
            Yield::of(!local.nesting_depth.refuses_yield() && local.run_own())
        })
    })
}

/// The number of workers of this thread's pool, or of the global one. Spare ones do not count.
///
/// ```
/// # use poach_runtime as poach;
/// let pool = poach::ThreadPool::builder().threads(3).build()?;
/// assert_eq!(pool.install(poach::current_num_threads), 3);
/// # Ok::<(), poach::BuildError>(())
/// ```
pub fn current_num_threads() -> usize {
    Local::with(|local| match local {
        Some(local) => local.registry.threads,
        None => global().threads(),
    })
}

/// This worker's index in its pool, from 0; `None` on a thread that is no worker.
///
/// Below [`current_num_threads`], but for a spare worker that [`blocking`](crate::blocking()) has lent
/// out, and for a thread from outside that runs a region itself (see
/// [`Builder::callers_work`](crate::Builder::callers_work)): always below [`ThreadPool::index_limit`](crate::ThreadPool::index_limit). It stays the same while the worker lives, or the region.
pub fn current_thread_index() -> Option<usize> {
    Local::with(|local| local.map(|local| local.index))
}

/// Whether this worker has tasks of its own that have not ended: spawned ones not yet started, or
/// halves of a join that is not complete. `None` on a thread that is no worker.
///
/// For a task that wonders whether to make more. Out of date at once: others steal.
pub fn current_thread_has_pending_tasks() -> Option<bool> {
    Local::with(|local| local.map(Local::has_pending_tasks))
}

/// The largest number of workers that a pool can have: [`MAX_THREADS`].
pub fn max_num_threads() -> usize {
    MAX_THREADS
}
