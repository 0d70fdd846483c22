//! Fork-join parallelism by work stealing, without a fence in a fork that no thread steals.
//!
//! # Which function do I want?
//!
//! | you have | use |
//! |---|---|
//! | two computations | [`join`]; [`Worker::join`], which costs a nanosecond less |
//! | a loop over a range, a slice or a vector | [`par_for`], [`par_map`], [`par_reduce`], [`par_chunks`], [`par_chunks_mut`]; as methods of a [`Worker`], [`WorkerLoops`] |
//! | a loop that may fail, or over an iterator; a slice to sort | [`try_par_for`]; [`par_bridge`]; [`par_sort`] |
//! | any number of tasks that borrow | [`scope`]; in the order of their spawning, [`scope_fifo`]; with a body that stays on its thread, [`in_place_scope`] |
//! | a task that outlives the function | [`spawn`]; with a handle to join, await or cancel, [`spawn_handle`]; in order, or with a priority, [`task`] |
//! | a future to poll beside closures | [`spawn_future`], [`Scope::spawn_future`]; a wait for one, [`future::block_on`] |
//! | a closure to run on every worker | [`broadcast`]; while all other work is stopped, [`interrupt`] and [`check`] |
//! | a wait for something outside of the pool | [`blocking`]; for another task, [`yield_now`] |
//! | a choice of the number of threads, their names, handlers or creation | [`ThreadPool::builder`]; for the global pool, [`ThreadPoolBuilder::build_global`], or, in a library, [`ThreadPoolBuilder::set_global`] |
//! | a question about what the workers do | [`ThreadPool::stats`], [`ThreadPool::record`] |
//! | tasks from producer threads for consumer threads | [`pool::TaskPool`] |
//! | a scheduler of your own | [`deque`] |
//!
//! ```
//! fn sum(numbers: &[u64]) -> u64 {
//!     if numbers.len() <= 1000 {
//!         return numbers.iter().sum();
//!     }
//!     let (left, right) = numbers.split_at(numbers.len() / 2);
//!     let (a, b) = poach::join(|| sum(left), || sum(right));
//!     a + b
//! }
//!
//! let numbers: Vec<u64> = (0..100_000).collect();
//! assert_eq!(sum(&numbers), 4_999_950_000);
//!
//! // The same as a loop, which splits itself.
//! assert_eq!(poach::par_reduce(&numbers, || 0, |sum, n| sum + n, |a, b| a + b), 4_999_950_000);
//! ```
//!
//! Functions that are called outside of any pool use the [global pool](global). Its first use
//! creates it, with one worker for each processor, or with the number of workers in the environment
//! variable `POACH_THREADS`.
//!
//! # The names of other libraries
//!
//! | rayon | crossbeam | tokio | chili, Lace | Poach | what differs |
//! |---|---|---|---|---|---|
//! | `join` | | | | [`join`] | a fork costs 0.1 to 3.3 ns, so no cut-off is needed; on a worker the first closure always runs on the calling thread; from outside see [`ThreadPoolBuilder::callers`] |
//! | | | | `Scope::join`; `SPAWN`, `CALL`, `SYNC` | [`Worker::join`] | the worker is a value; each half uses the worker that it is given |
//! | `scope`, `s.spawn` | `thread::scope` | | | [`scope`], [`Scope::spawn`]; with a result, [`Scope::spawn_handle`] | tasks, not threads |
//! | `spawn` | | `task::spawn_blocking` | | [`spawn`]; with a handle, [`spawn_handle`] | the handle is a future; a thread can also [join](JoinHandle::join) it |
//! | | | `JoinHandle::abort`, `AbortOnDropHandle`, `CancellationToken` | | [`JoinHandle::cancel`], [`JoinHandle::cancel_on_drop`], [`CancellationToken`](cancel::CancellationToken) | a running task is not stopped; it can poll its token |
//! | `install` | | `Runtime::enter` | `RUN` | [`ThreadPool::install`], [`ThreadPool::run`] | `install` always runs on the pool's threads, `run` on the calling thread while the pool has [places](ThreadPoolBuilder::callers) |
//! | `par_iter`, `par_iter_mut`, `into_par_iter`: `.for_each`, `.map().collect()`, `.fold().reduce()` | | | | [`par_for`], [`par_map`], [`par_reduce`] of `&v`, `&mut v`, `v`, `a..b` | no other adaptors: for those use rayon over Poach's scheduler (`compat/rayon-core`) |
//! | `.zip()`, `.enumerate()` | | | | `(&a, &b)`, `(0..a.len(), &a)` as the [`Items`] of a loop | |
//! | `try_for_each`, `for_each_init`, `par_bridge`, `par_sort` | | | | [`try_par_for`], [`par_for_init`], [`par_bridge`], [`par_sort`] | |
//! | `ThreadPoolBuilder`, `build_global`, `RAYON_NUM_THREADS` | | `runtime::Builder` | `ThreadPool::new`, `with_config`; `lace_start` | [`ThreadPool::new`], [`ThreadPool::builder`], [`ThreadPoolBuilder::build_global`], `POACH_THREADS` | |
//! | `yield_now` | | `task::yield_now` | | [`yield_now`] | runs another task on top of this one |
//! | | | `block_in_place` | | [`blocking`] | another thread works meanwhile only if the pool has [spare](ThreadPoolBuilder::spares) workers |
//! | | `deque::{Worker, Stealer, Injector}` | | | [`deque`]; with crossbeam's own names, [`deque::crossbeam`] | the owner's pop has no fence |
//! | | `channel`, `select!` | `mpsc`, `select!` | | [`pool::TaskPool`], [`pool::Selector`]; its gets are also futures, for any `select!` | no order is promised |
//!
//! The crate's `examples/` has a program for each library.
//!
//! In async code await the handle of a [`spawn_handle`]. A [`join`], a [`scope`] or a loop that is
//! called on a thread of the executor keeps that thread until it ends.
#![doc = include_str!("readme.md")]

pub use poach_parallel::*;
pub use poach_runtime::{
    BroadcastContext, BuildError, FnContext, JoinError, JoinHandle, Priority, Scope, ScopeFifo,
    ScopedJoinHandle, TaskBuilder, ThreadPool, ThreadPoolBuilder, Worker, Yield, blocking,
    broadcast, cancel, check, config, current_num_threads, current_thread_has_pending_tasks,
    current_thread_index, future, global, in_place_scope, in_place_scope_fifo, interrupt, join,
    join_context, join_context_or, join_or, scope, scope_fifo, spawn, spawn_broadcast,
    spawn_future, spawn_handle, stats, task, topology, trace, worker, yield_local, yield_now,
};

/// Work-stealing queues: [`Split`](deque::Split), [`ChaseLev`](deque::ChaseLev),
/// [`The`](deque::The) and more, with their fence policies. This is the crate `poach_deque`,
/// whose name its examples use.
pub use poach_deque as deque;
/// A pool of tasks for producers and consumers: [`TaskPool`](pool::TaskPool). This is the
/// crate `poach_pool`, whose name its examples use.
pub use poach_pool as pool;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}
