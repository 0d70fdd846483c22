//! Fork-join task parallelism on the split deque.
//!
//! The runtime of Poach: [`join`], [`scope`] and [`spawn`] on a [`ThreadPool`] whose workers steal
//! from each other, and the worker-passing form, [`Worker::join`], which costs a fork a few plain
//! stores.
//!
//! | room | what is in it |
//! |---|---|
//! | `job` | closures that leave the frame or the thread that made them; all unsafe code |
//! | `worker`, `waiting` | finding work, running it, waiting for what others run |
//! | `lookout`, `steal_backoff` | how long an idle worker looks for work; when a thief rests |
//! | `sleep` | who sleeps, who searches, who wakes whom, with the proof |
//! | `registry`, `home` | what the workers of a pool share, and when they end; what their queues know of it |
//! | `inbox`, `fifo` | tasks from outside, for any worker or for one; tasks in the order of their spawning |
//! | `watch`, `counters`, `track` | what each worker notes of what it does |
//! | `stats`, [`trace`] | what can be seen of that: a table, and a timeline |
//! | [`topology`], `place` | the machine's processors; who runs where, and robs whom first |
//! | `latch` | one thread waits, another says when |
//! | [`on_queue`] | the papers' plain scheduler on any queue, to compare queues |
//! | `join`, `scope`, `spawn`, `handle`, `broadcast`, `context`, `parallel` | what users call |
//! | `interrupt`, `blocking`, `spares` | all workers for one task; a spare worker for one that blocks |
//! | `pool`, `threads`, `ways` | pools: how they are made, where their threads come from, what they do |
//! | `build_error`, `handlers` | why one cannot be made; what its owner is told |

mod affinity;
mod blocking;
mod broadcast;
mod build_error;
#[cfg(doctest)]
mod compile_fail;
mod context;
mod counters;
mod fifo;
mod handle;
mod handlers;
mod home;
mod inbox;
mod interrupt;
mod job;
mod join;
mod latch;
mod lookout;
pub mod on_queue;
mod parallel;
mod place;
mod pool;
mod registry;
mod scope;
mod seat;
mod sleep;
mod spares;
mod spawn;
mod stats;
mod steal_backoff;
mod threads;
pub mod topology;
pub mod trace;
mod track;
mod waiting;
mod watch;
mod ways;
mod worker;

pub use blocking::blocking;
pub use broadcast::{BroadcastContext, broadcast, spawn_broadcast};
pub use build_error::{BuildError, MAX_THREADS};
pub use context::{
    Yield, current_num_threads, current_thread_has_pending_tasks, current_thread_index,
    max_num_threads, yield_local, yield_now,
};
pub use handle::{Cancelled, JoinHandle};
pub use interrupt::{check, interrupt};
pub use job::fork::Worker;
pub use join::{FnContext, join, join_context, worker};
pub use parallel::{par_chunks, par_chunks_mut, par_for, par_reduce};
pub use place::Victims;
pub use pool::{Builder, ThreadPool};
pub use registry::Priority;
pub use scope::{Scope, ScopeFifo, in_place_scope, in_place_scope_fifo, scope, scope_fifo};
pub use spawn::{spawn, spawn_at, spawn_detached, spawn_fifo};
pub use stats::{Stats, WorkerStats};
pub use threads::ThreadBuilder;
pub use topology::{Placement, Topology, TopologyError};
pub use waiting::Waiting;
