//! Task pools: between threads that make tasks and threads that do them.
//!
//! [`TaskPool`] is what most programs want: SALSA, the pool of Gidron, Keidar, Perelman and Perez,
//! with neither a fence nor a compare-and-swap on the fast path of a put or a get, and around it
//! what a channel has: blocking, closing, a capacity, timeouts, async (feature `async`). It runs nothing: "task pool" is the papers' name
//! for what holds tasks, and a program's own threads take them and run them. What runs tasks is `poach-runtime`'s `ThreadPool`. The name
//! stays for that, and since a `WorkPool` would promise workers just as much.
//!
//! # What order is promised
//!
//! None between producers, and none between the tasks of one: a producer spreads them over the consumers, theft or not
//! ([`Builder::balancing`]). Those that go to one consumer come out in the order
//! in which they were put, as long as nobody steals them; a stolen chunk is still emptied in its
//! order, but by another consumer and before or after others. With one consumer, one producer and nobody that comes or goes, that is
//! a queue's order. **If order matters, use a channel.**
//! Use one, too, where tasks are few and each must be seen at once by whoever waits longest, or
//! where a value must reach all of several receivers. A pool is for many tasks that anybody may do.
//!
//! # Waiting
//!
//! `get` looks 64 times and then sleeps. A put looks whether anybody sleeps, and then wakes one. The
//! order between the two is kept by `membarrier(2)`, paid by who goes to sleep.
//!
//! # Memory
//!
//! Chunks are recycled, and given back when the pool's last handle is dropped: a pool is as large as
//! it was at its fullest.
//!
//! # Foreign code
//!
//! Where code that is not the pool's runs inside of a pool, no lock is held, and what was begun ends in order
//! if it panics or uses the pool:
//!
//! | code | where it runs | what was begun | if it panics |
//! |---|---|---|---|
//! | [`Builder::distance`] | a put or a get, when an access list is made | the put is under way, has room | the put ends, and wakes who waits for that; the room is given back; the task is dropped |
//! | | a get that is about to sleep | it has entered itself as a sleeper | the entry goes, and a wake-up that was for it goes to the next |
//! | `Clone` of a waker | a get that is about to sleep | nothing | nothing has happened |
//! | `wake` and `Drop` of a waker | a put, a close, the drop of a future | the task is in the pool; sleepers are being woken | the others are woken while the panic unwinds |
//! | `wake` of a producer's waker | a get, which has made room | a task is taken | the task is kept for this consumer's next get |
//! | `Drop` of a task | the drop of the last handle | tasks are being dropped | the others are dropped while the panic unwinds |
//! | the iterator of `put_many` | between two puts | nothing | what was put is in the pool |
//! | the closure of [`Salsa::with_fences`](salsa::Salsa::with_fences) | a consumer that takes a new seat | nothing | nothing has happened |
//!
//! A second panic while one unwinds ends the program, as everywhere. No other code of a user's runs in here: a
//! get or put never clones, compares or drops a task.
//!
//! # For authors of schedulers
//!
//! [`mechanism`] is the paper's interface of a single-consumer pool (Algorithm 1), [`policy`] its
//! framework (Algorithm 2); both, and the pools, are generic over [`poach_memory::Memory`], so that
//! models run the lines that ship:
//!
//! | module | the paper's | how a task is taken |
//! |---|---|---|
//! | [`salsa::Salsa`] | SALSA | plain loads and stores; thieves take chunks |
//! | [`salsa::SalsaCas`] | SALSA+CAS | one compare-and-swap |
//! | [`bag::ConcBag`] | ConcBag | one compare-and-swap, from any producer's list |
//! | [`ms_queue::WsMsq`] | WS-MSQ | a Michael-Scott queue for each consumer |
//! | [`stack::WsLifo`] | WS-LIFO | a Treiber stack for each consumer |

mod admission;
pub mod bag;
#[cfg(doctest)]
mod compile_fail;
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
mod consumer;
mod error;
mod extent;
#[cfg(feature = "async")]
mod future;
mod gate;
mod hazard;
pub mod mechanism;
pub mod ms_queue;
pub mod policy;
mod producer;
mod registry;
pub mod salsa;
mod shared;
mod shared_queue;
pub mod stack;
mod task_pool;

pub use consumer::Consumer;
pub use error::{BuildError, Closed, GetTimeoutError, PutError, PutManyError, TryGetError};
#[cfg(feature = "async")]
pub use future::{Get, Put};
pub use hazard::Retention;
pub use mechanism::NoHandle;
pub use producer::Producer;
pub use task_pool::{Builder, CHUNK_LENGTH, CloseGuard, TaskPool};
