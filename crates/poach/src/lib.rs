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
//! | your own number of threads, names, handlers, threads of your own | [`ThreadPool::builder`]; for the global pool, [`set_global_builder`] |
//! | a question about what the workers do | [`ThreadPool::stats`], [`ThreadPool::record`] |
//! | a scheduler of your own | [`deque`] |
//! | producers and consumers | [`pool`] |
//!
//! Functions called outside any pool use the [global one](global), made at its first use with a worker for
//! each processor, or as many as the environment variable `POACH_THREADS` says.

pub use poach_runtime::{
    BroadcastContext, BuildError, Builder, CancelOnDrop, CancellationToken, Cancelled, DropGuard,
    FnContext, Grain, Index, JoinError, JoinHandle, MAX_THREADS, Placement, Priority, Scope,
    ScopeFifo, ScopedJoinHandle, SpawnOrder, Stats, ThreadBuilder, ThreadPool, Topology,
    TopologyError, Victims, Waiting, Worker, WorkerStats, Yield, blocking, broadcast, check,
    current_num_threads, current_thread_has_pending_tasks, current_thread_index, global,
    global_if_made, in_place_scope, in_place_scope_fifo, interrupt, join, join_context,
    join_context_or, join_or, max_num_threads, par_bridge, par_chunks, par_chunks_mut, par_for,
    par_for_init, par_map, par_map_init, par_reduce, par_sort, par_sort_by, par_sort_by_key,
    par_sort_unstable, par_sort_unstable_by, par_sort_unstable_by_key, scope, scope_fifo,
    set_global_builder, spawn, spawn_at, spawn_broadcast, spawn_detached, spawn_detached_fifo,
    spawn_fifo, topology, trace, try_par_for, try_par_map, try_par_reduce, worker, yield_local,
    yield_now,
};

/// Work-stealing queues: [`Split`](deque::Split), [`ChaseLev`](deque::ChaseLev), [`The`](deque::The) and more, each with its
/// fence policies.
pub use poach_deque as deque;
/// A pool of tasks for producers and consumers: [`TaskPool`](pool::TaskPool).
pub use poach_pool as pool;
