//! Fork-join task parallelism on the split deque.
//!
//! The runtime of Poach: [`join`], [`scope`] and [`spawn`] on a [`ThreadPool`] whose workers steal
//! from each other, and the worker-passing form, [`Worker::join`], which costs a fork a few plain
//! stores. Programs name it through `poach`, which re-exports all of it; so do the examples here.
//!
//! | module | what is in it |
//! |---|---|
//! | `api` | what users call: `join`, `scope`, `spawn`, `broadcast`, loops |
//! | `pool` | pools: how they are made, where their threads come from, what they do |
//! | `job` | closures that leave the frame or the thread that made them; all unsafe code |
//! | `scheduler` | workers: finding work, stealing, waiting, sleeping |
//! | `observe` | counters, and a timeline |
//! | [`topology`] | the machine's processors |
//! | [`on_queue`] | the papers' plain scheduler on any queue, to compare queues |

//!
//! # Terms
//!
//! | term | what it means here |
//! |---|---|
//! | worker | a thread that runs tasks of a pool. The pool's *own* workers are its threads; *spare* ones replace those that [block](blocking()); a *guest* is a thread from outside, while it runs a region |
//! | slot | a worker's index in its pool, and what stands there: its deques, its mail, its counters. First the regular workers', then the spare ones', then those of guests |
//! | place | a slot that a guest may take, for as long as its region lasts |
//! | frame | what a pool works in while it is [interrupted](interrupt()): the same workers, with other deques |
//! | fork, task | the second half of a join, until it is taken; a spawned closure |
//! | owner, victim, thief | the worker whose deque it is; the same, seen by the worker that steals; the worker that steals |
//! | private, shared, split | a task that only its owner can take; one that thieves can; the index between them |
//! | request, exposure | a thief asks the owner to share; a thief moves the split itself, because the owner does not come to its deque |
//! | region | what a program runs in parallel between two sequential parts: a join, a scope, a loop, with all that it calls |
//! | searcher, sleeper, follower | a worker that looks for work; one that sleeps; one that waits and may take only forks of a few workers |
//! | nap, rest | a sleep that ends by itself; a pause of a thief whose steals were not worth their cost |
//! | wait | what a worker does while the other half of its join, its scope or its handle is not done: see [`Waiting`] |
//! | registry | what the workers of a pool share |

mod api;
#[cfg(doctest)]
mod compile_fail;
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
mod job;
mod observe;
pub mod on_queue;
mod pool;
mod scheduler;
pub mod topology;

pub use api::blocking::blocking;
pub use api::broadcast::{BroadcastContext, broadcast, spawn_broadcast};
pub use api::cancel::{CancellationToken, Cancelled, DropGuard};
pub use api::collect::{
    par_bridge, par_for_init, par_map, par_map_init, try_par_for, try_par_map, try_par_reduce,
};
pub use api::context::{
    Yield, current_num_threads, current_thread_has_pending_tasks, current_thread_index,
    max_num_threads, yield_local, yield_now,
};
pub use api::grain::Grain;
pub use api::handle::{CancelOnDrop, JoinError, JoinHandle, ScopedJoinHandle};
pub use api::index::Index;
pub use api::interrupt::{check, interrupt};
pub use api::join::{FnContext, join, join_context, join_context_or, join_or, worker};
pub use api::parallel::{par_chunks, par_chunks_mut, par_for, par_reduce};
pub use api::scope::{Scope, ScopeFifo, in_place_scope, in_place_scope_fifo, scope, scope_fifo};
pub use api::sort::{
    par_sort, par_sort_by, par_sort_by_key, par_sort_unstable, par_sort_unstable_by,
    par_sort_unstable_by_key,
};
pub use api::spawn::{spawn, spawn_at, spawn_detached, spawn_detached_fifo, spawn_fifo};
#[doc(hidden)]
pub use job::foreign;
pub use job::token::Worker;
pub use observe::stats::{Stats, WorkerStats};
pub use observe::trace;
pub use pool::build_error::{BuildError, MAX_THREADS};
pub use pool::threads::ThreadBuilder;
pub use pool::{Builder, ThreadPool, global, global_if_made, set_global_builder};
pub use scheduler::registry::{Priority, SpawnOrder};
pub use scheduler::victim_order::Victims;
pub use scheduler::waiting::Waiting;
pub use topology::{Placement, Topology, TopologyError};
