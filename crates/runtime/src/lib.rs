//! Fork-join task parallelism by work stealing: the scheduler of Poach.
//!
//! Programs use it through the crate `poach`, which re-exports all of it; the examples here say
//! `poach::`, too. The page of `poach` lists what there is to use for what, and what users of
//! rayon, crossbeam, tokio, chili and Lace will look for.
//!
//! ```
//! # use poach_runtime as poach;
//! let (a, b) = poach::join(|| 6 * 7, || "answers"); // two calls, perhaps at once
//! assert_eq!((a, b), (42, "answers"));
//!
//! let handle = poach::spawn_handle(|| "done"); // a task in the background
//! assert_eq!(handle.join()?, "done");
//! # Ok::<(), poach::JoinError>(())
//! ```
//!
//! # Modules
//!
//! Each imports from those below it only.
//!
//! | module | contents |
//! |---|---|
//! | `methods`, [`trace`] | what a [`ThreadPool`] does for a thread that is not its worker; a timeline |
//! | `foreign` | forks whose fast path is written in another language |
//! | `join`, `scope`, `spawn`, `handle`, `broadcast`, `interrupt`, `blocking`, `cancel`, `context` | what users call: each call, followed to its end |
//! | `pool` | pools: their builder, their threads, their memory, and threads from outside that work for them |
//! | `worker` | a thread as a worker: what it takes, the loop that looks for work, its waits |
//! | `shared` | what the workers of a pool share: slots, inboxes, spare workers, when they end |
//! | `task` | what moves between threads: a join's half, a spawned closure, a panic |
//! | `sleep` | who sleeps, who searches, who wakes whom, with the proof |
//! | `stats` | what each worker counts and records of itself |
//! | `pace` | every tuned constant of the scheduler |
//! | `system` | what the operating system is asked for: whether the process has forked, processors, address space |
//!
//! # Terms
//!
//! | term | what it means here |
//! |---|---|
//! | worker | a thread that runs tasks of a pool. The pool's *own* workers are its threads. *Spare* workers replace those that [block](blocking()). A *guest* is a thread from outside while it runs a region |
//! | slot | a worker's index in its pool, and what is stored under it: deques, inbox, counters. The regular workers come first, then the spare ones, then guests |
//! | place | a slot that a guest may take, for as long as its region lasts |
//! | frame | what a pool works in while it is [interrupted](interrupt()): the same workers, with other deques |
//! | fork, task | the second half of a join, until it is taken; a spawned closure |
//! | owner, victim, thief | the worker that a deque belongs to; the worker that is stolen from; the worker that steals |
//! | private, shared, split | a task that only the owner can take; a task that thieves can take, too; the index between the two parts of a deque |
//! | request, exposure | a thief asks the owner to share tasks; a thief moves the split itself, because the owner does not answer |
//! | region | what a program runs in parallel between two sequential parts: a join, a scope or a loop, with all that it calls |
//! | searcher, sleeper, follower | a worker that looks for work; a worker that sleeps; a worker that waits and takes forks of a few workers only |
//! | nap, rest | a sleep with a time limit; a pause of a thief whose steals were not worth their cost |
//! | wait | what a worker does until the other half of its join, its scope or its handle's task has ended: see [`Waiting`](config::Waiting) |
#![doc = include_str!("readme.md")]

mod blocking;
mod broadcast;
pub mod cancel;
#[cfg(doctest)]
mod compile_fail;
mod context;
#[doc(hidden)]
pub mod foreign;
pub mod future;
mod handle;
mod interrupt;
mod join;
mod methods;
mod pace;
mod pool;
mod scope;
mod shared;
mod sleep;
mod spawn;
pub mod stats;
mod system;
mod task;
pub mod trace;
mod worker;

/// The scheduler's parts that are generic over memory, clock and worker, for `poach-bench`, which
/// runs them in simulated time. No stable interface.
#[doc(hidden)]
pub mod generic {
    pub use crate::shared::victims::{Random, VictimOrder};
    pub use crate::sleep::clock::Clock;
    pub use crate::sleep::wake_policy::WakePolicy;
    pub use crate::sleep::wake_policy::Wakes;
    pub use crate::sleep::{Caller, Parking, Sleep};
    pub use crate::worker::find::steal;
    pub use crate::worker::idle::{
        GivesWay, SearchLoop, SearchRules, Searcher, Sees, Takes, Unrestricted, begin_asleep,
    };
    pub use crate::worker::spin_time::SpinTime;
    pub use crate::worker::steal_backoff::StealBackoff;
}

/// What the settings of a [`ThreadPoolBuilder`] are made of.
pub mod config {
    pub use crate::pool::build_error::MAX_THREADS;
    pub use crate::pool::threads::ThreadBuilder;
    pub use crate::shared::SpawnOrder;
    pub use crate::shared::victims::Victims;
    pub use crate::shared::waiting::Waiting;
}

/// The machine's processors, and the placement of workers on them. This is the crate
/// `poach_topology`, whose name its examples use.
pub use poach_topology as topology;

pub use crate::blocking::blocking;
pub use crate::broadcast::{BroadcastContext, broadcast, spawn_broadcast};
pub use crate::context::{
    Yield, current_num_threads, current_thread_has_pending_tasks, current_thread_index,
    yield_local, yield_now,
};
pub use crate::future::spawn_future;
pub use crate::handle::{JoinError, JoinHandle, ScopedJoinHandle};
pub use crate::interrupt::{check, interrupt};
pub use crate::join::forks::Forks;
pub use crate::join::{FnContext, join, join_context, join_context_or, join_or, worker};
pub use crate::scope::{Scope, ScopeFifo, in_place_scope, in_place_scope_fifo, scope, scope_fifo};
pub use crate::spawn::{TaskBuilder, spawn, spawn_handle, task};
pub use pool::build_error::BuildError;
pub use pool::{ThreadPool, ThreadPoolBuilder, global};
pub use shared::Priority;
pub use task::half::Worker;
