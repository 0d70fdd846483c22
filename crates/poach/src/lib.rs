//! Work stealing without fences: fork-join parallelism for Rust.
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
//! ```
//!
//! | you have | use |
//! |---|---|
//! | two things to do | [`join`], or, where a fork must cost next to nothing, [`Worker::join`] |
//! | any number of things that borrow | [`scope`]; in the order of their spawning, [`scope_fifo`]; from a body that stays on its thread, [`in_place_scope`] |
//! | something that may take its time | [`spawn`], to be joined, awaited or cancelled; [`spawn_fifo`], [`spawn_at`]; with no handle, [`spawn_detached`] |
//! | something for every worker | [`broadcast`]; with everything else stopped meanwhile, [`interrupt`] and [`check`] |
//! | a loop | [`par_for`], [`par_reduce`], [`par_chunks`], [`par_chunks_mut`] |
//! | a wait for something outside | [`blocking`]; for another task, [`yield_now`] |
//! | your own number of threads, names, handlers, threads of your own | [`ThreadPool::builder`] |
//!
//! Functions called outside any pool use the global one, made at its first use with a worker for
//! each processor.

pub use poach_runtime::{
    BroadcastContext, BuildError, Builder, Cancelled, FnContext, JoinHandle, MAX_THREADS, Priority,
    Scope, ScopeFifo, ThreadBuilder, ThreadPool, Worker, Yield, blocking, broadcast, check,
    current_num_threads, current_thread_has_pending_tasks, current_thread_index, in_place_scope,
    in_place_scope_fifo, interrupt, join, join_context, max_num_threads, par_chunks,
    par_chunks_mut, par_for, par_reduce, scope, scope_fifo, spawn, spawn_at, spawn_broadcast,
    spawn_detached, spawn_fifo, worker, yield_local, yield_now,
};
