//! How work finds a worker: queues, stealing, waiting and sleep.
//!
//! | module | what is in it |
//! |---|---|
//! | `search`, `unrestricted` | the one loop of a worker, and what it looks for where it takes any work; generic, for threads and for simulated processors |
//! | `worker` | a thread as a worker: running work, waiting |
//! | `registry`, `termination` | what the workers of a pool share, and when they end |
//! | `waiting` | what a worker may run while it waits |
//! | `sleep` | who sleeps, who searches, who wakes whom, with the proof |
//! | `lookout`, `steal_backoff`, `clock` | how long an idle worker looks for work; when a thief rests; by which clock |
//! | `inbox`, `fifo` | tasks from outside, for any worker or for one; tasks in the order of their spawning |
//! | `victim_order`, `affinity` | who runs where, and robs whom first |
//! | `deque_events` | what a worker's deques tell their pool |
//! | `latch`, `give_way` | one thread waits, another says when; when a thread that waits yields its processor |
//! | `spares` | spare workers for those that block |

pub(crate) mod affinity;
pub(crate) mod asked;
pub(crate) mod clock;
pub(crate) mod deque_events;
pub(crate) mod fifo;
mod give_way;
pub(crate) mod inbox;
pub(crate) mod latch;
pub(crate) mod lookout;
pub(crate) mod registry;
pub(crate) mod search;
pub(crate) mod sleep;
pub(crate) mod spares;
pub(crate) mod steal_backoff;
mod termination;
pub(crate) mod unrestricted;
pub(crate) mod victim_order;
pub(crate) mod waiting;
pub(crate) mod worker;
