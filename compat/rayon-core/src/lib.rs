//! The interface of rayon-core 1.13 on Poach's scheduler.
//!
//! A program takes it in the place of the original with a `[patch.crates-io]` block; neither the program nor
//! `rayon` changes: see the README. Each item does what the documentation of the original says; what
//! is said here is what it does beyond that, or otherwise.
//!
//! Everything runs on the threads of a pool, as with the original, also what a thread outside calls: a program can tell by its
//! thread-local variables, its call stack, and [`current_thread_index`], which is always less than
//! [`current_num_threads`]. (Poach itself runs a `join` from outside on the thread that calls.)
//!
//! | module | what is in it |
//! |---|---|
//! | `builder` | [`ThreadPoolBuilder`], [`ThreadBuilder`], the environment variables |
//! | `pool` | [`ThreadPool`], and the global one |
//! | `error` | [`ThreadPoolBuildError`] |
//! | `deprecated` | [`Configuration`] and [`initialize`] |
//! | `observe` | what the variables `POACH_STATS` and `POACH_TRACE` print of any program |

mod builder;
mod deprecated;
mod error;
mod observe;
mod pool;

use poach_runtime as poach;

pub use builder::{ThreadBuilder, ThreadPoolBuilder};
#[expect(deprecated, reason = "they are part of the interface")]
pub use deprecated::{Configuration, initialize};
pub use error::ThreadPoolBuildError;
pub use poach_runtime::{
    BroadcastContext, FnContext, Scope, ScopeFifo, Yield, current_thread_has_pending_tasks,
    current_thread_index, max_num_threads, yield_local, yield_now,
};
pub use pool::ThreadPool;

use pool::{global, is_worker};

/// Runs both closures, perhaps in parallel, and returns both results.
///
/// # Panics
///
/// With the payload of the first closure if it panics, else with that of the second, once neither runs any more.
#[inline]
pub fn join<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    poach::join_or(global, oper_a, oper_b)
}

/// [`join`], with closures that are told whether they have come to another thread than the one that called.
///
/// # Panics
///
/// As [`join`].
#[inline]
pub fn join_context<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    poach::join_context_or(global, oper_a, oper_b)
}

/// Opens a scope for tasks that may borrow what outlives it, and returns when all of them have ended.
///
/// # Panics
///
/// With the payload of `op` if it panics, else with that of the first task that did.
pub fn scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    if is_worker() { poach::scope(op) } else { global().scope(op) }
}

/// [`scope`], whose tasks start in the order in which each thread spawns them.
///
/// # Panics
///
/// As [`scope`].
pub fn scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
    R: Send,
{
    if is_worker() { poach::scope_fifo(op) } else { global().scope_fifo(op) }
}

/// [`scope`], whose body runs on the thread that calls.
///
/// # Panics
///
/// As [`scope`].
pub fn in_place_scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R,
{
    if is_worker() { poach::in_place_scope(op) } else { global().in_place_scope(op) }
}

/// [`scope_fifo`], whose body runs on the thread that calls.
///
/// # Panics
///
/// As [`scope`].
pub fn in_place_scope_fifo<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&ScopeFifo<'scope>) -> R,
{
    if is_worker() { poach::in_place_scope_fifo(op) } else { global().in_place_scope_fifo(op) }
}

/// Starts `func` on this thread's pool, or on the global one, and returns at once. A panic goes to the
/// [panic handler](ThreadPoolBuilder::panic_handler), or ends the process.
pub fn spawn<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    if is_worker() { poach::spawn_detached(func) } else { global().spawn_detached(func) }
}

/// [`spawn`], to start after what this thread has spawned so before.
pub fn spawn_fifo<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    if is_worker() { poach::spawn_detached_fifo(func) } else { global().spawn_detached_fifo(func) }
}

/// Runs `op` once on every thread of this thread's pool, or of the global one, and returns all results, by the
/// threads' indices.
///
/// # Panics
///
/// With the payload of one of the calls that panicked, once all have ended.
pub fn broadcast<OP, R>(op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    if is_worker() { poach::broadcast(op) } else { global().broadcast(op) }
}

/// Starts `op` once on every thread of this thread's pool, or of the global one, and returns at once. A panic is as one of
/// [`spawn`].
pub fn spawn_broadcast<OP>(op: OP)
where
    OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
{
    if is_worker() { poach::spawn_broadcast(op) } else { global().spawn_broadcast(op) }
}

/// The number of threads of this thread's pool, or of the global one.
pub fn current_num_threads() -> usize {
    if is_worker() { poach::current_num_threads() } else { global().threads() }
}
