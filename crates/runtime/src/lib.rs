//! Fork-join task parallelism on the split deque.
//!
//! The runtime of Poach: [`join`], [`scope`] and [`spawn`] on a [`ThreadPool`] whose workers steal
//! from each other, and the worker-passing form, [`Worker::join`], which costs a fork a few plain
//! stores.
//!
//! | room | what is in it |
//! |---|---|
//! | `job` | closures that leave the frame or the thread that made them; all unsafe code |
//! | `worker` | finding work, running it, waiting for what others run |
//! | `sleep` | who sleeps, who searches, who wakes whom, with the proof |
//! | `registry` | what the workers of a pool share |
//! | `watch`, `stats`, [`trace`] | what can be seen of the workers: counters and a timeline |
//! | [`topology`], `place` | the machine's processors; who runs where, and robs whom first |
//! | `latch` | one thread waits, another says when |
//! | `join`, `scope`, `spawn`, `pool` | what users call |

mod affinity;
mod job;
mod join;
mod latch;
mod place;
mod pool;
mod registry;
mod scope;
mod sleep;
mod spawn;
mod stats;
pub mod topology;
pub mod trace;
mod watch;
mod worker;

pub use job::fork::Worker;
pub use join::{join, worker};
pub use place::Victims;
pub use pool::{BuildError, Builder, ThreadPool};
pub use registry::MAX_THREADS;
pub use scope::{Scope, scope};
pub use spawn::{JoinHandle, spawn};
pub use stats::{Stats, WorkerStats};
pub use topology::{Placement, Topology, TopologyError};
