//! The interface of rayon-core 1.13 on Poach's scheduler.
//!
//! A program replaces the original with it by a `[patch.crates-io]` block. Neither the program nor
//! `rayon` changes: see the README. Each item does what the original's documentation says. The
//! documentation here states what is added, and what differs.
//!
//! As with the original, a call from a thread outside of the pool runs on a thread of the pool. A
//! program can see the difference: by its thread-local variables, by the size of its call stack,
//! and by [`current_thread_index`], which is always less than [`current_num_threads`]. (Poach's own
//! `join` runs on the thread that calls it.)
//!
//! | module | what is in it |
//! |---|---|
//! | `builder` | [`ThreadPoolBuilder`], [`ThreadBuilder`], the environment variables |
//! | `pool` | [`ThreadPool`], and the global one |
//! | `error` | [`ThreadPoolBuildError`] |
//! | `deprecated` | [`Configuration`] and [`initialize`] |
//! | `observe` | the variables `POACH_STATS` and `POACH_TRACE`, which report what any program does |

mod builder;
#[cfg(doctest)]
mod compile_fail;
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
    current_thread_index, yield_local, yield_now,
};
pub use pool::ThreadPool;

use pool::{global, is_worker};

/// Runs both closures, perhaps in parallel, and returns both results.
///
/// # Panics
///
/// If either closure panics, after both have ended, with the payload of the panic. If both panic,
/// with that of the first.
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

/// [`join`], whose closures are told whether they run on another thread than the one that called.
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

/// Opens a scope, whose tasks may borrow what outlives it, and returns when all of them have ended.
///
/// # Panics
///
/// If `op` or a task panics, after all tasks have ended: with the payload of `op` if it panicked,
/// else with that of the first task that panicked.
pub fn scope<'scope, OP, R>(op: OP) -> R
where
    OP: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    if is_worker() { poach::scope(op) } else { global().run(|_| poach::scope(op)) }
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
    if is_worker() { poach::scope_fifo(op) } else { global().run(|_| poach::scope_fifo(op)) }
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

/// Starts `func` on this thread's pool, or on the global one, and returns at once. A panic goes to
/// the [panic handler](ThreadPoolBuilder::panic_handler), or ends the process.
pub fn spawn<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    if is_worker() { poach::spawn(func) } else { global().spawn(func) }
}

/// [`spawn`], for a task that starts after those that this thread has spawned with `spawn_fifo`
/// before.
pub fn spawn_fifo<F>(func: F)
where
    F: FnOnce() + Send + 'static,
{
    let task = if is_worker() { poach::task() } else { global().task() };
    task.in_order().spawn(func);
}

/// Runs `op` once on every thread of this thread's pool, or of the global one, and returns the
/// results in the order of the threads' indices.
///
/// # Panics
///
/// If a call of `op` panics, after all calls have ended, with the payload of one of the panics.
pub fn broadcast<OP, R>(op: OP) -> Vec<R>
where
    OP: Fn(BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    if is_worker() { poach::broadcast(op) } else { global().broadcast(op) }
}

/// Starts `op` once on every thread of this thread's pool, or of the global one, and returns at
/// once. Panics are handled as those of [`spawn`] are.
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

/// The largest number of threads that a pool can have.
pub fn max_num_threads() -> usize {
    poach::config::MAX_THREADS
}
