//! [`TaskPool`] carries tasks from the threads that make them to the threads that do them, like a
//! channel of many producers and many consumers that promises no order.
//!
//! ```
//! use poach_pool::TaskPool;
//!
//! let pool = TaskPool::bounded(100); // `TaskPool::new()` has no bound
//! std::thread::scope(|scope| {
//!     let consumer = pool.consumer().unwrap();
//!     scope.spawn(move || {
//!         for task in consumer {
//!             std::hint::black_box(task);
//!         }
//!     });
//!     let mut producer = pool.producer().unwrap();
//!     producer.put_many(0..1000).unwrap();
//!     drop(producer); // the last one: the consumer ends when the last task is taken
//! });
//! ```
//!
//! It is built on SALSA, the pool of Gidron, Keidar, Perelman and Perez, whose puts and gets have
//! neither a fence nor a compare-and-swap on their fast paths.
//!
//! "Task pool" is the papers' name for a structure that holds tasks: it runs nothing. A pool of
//! threads that runs closures is `poach::ThreadPool`.
//!
//! # What order is promised
//!
//! None between producers, and none between the tasks of one producer, which spreads them over the
//! consumers ([`Builder::balancing`]). Tasks that go to one consumer come out in the order in which
//! they were put, unless another consumer steals them. A stolen chunk keeps its order, but is
//! emptied before or after other chunks. With one consumer and one producer, and while no others
//! come or go, the order is that of a queue. **If order matters, use a channel.** Use one, too, if
//! each task must go to the receiver that has waited longest, or to several receivers.
//!
//! # Waiting
//!
//! [`Consumer::get`] looks 64 times and then sleeps, and [`Producer::put`] does where there is no
//! room. Between the looks they yield, but not while yields run threads that compute something
//! else, nor when a timeout is nearly over. A put wakes one sleeping consumer, if there is one. The
//! consumer's `membarrier(2)` ensures that the two do not miss each other.
//!
//! # Memory
//!
//! Chunks are used again, and freed when the pool's last handle is dropped. So a pool keeps the
//! memory that it has used at its fullest.
//!
//! # Foreign code
//!
//! A pool holds no lock while it calls its user's code. That code may use the pool, and may panic:
//!
//! | code | where it runs | what was begun | if it panics |
//! |---|---|---|---|
//! | [`Builder::distance`] | a put or a get, when an access list is made | the put is under way, has room | the put ends, and wakes who waits for that; the room is given back; the task is dropped, or is with the future that puts it until its next poll |
//! | | a get that is about to sleep | it has entered itself as a sleeper | the entry goes, and a wake-up that was for it goes to the next |
//! | `Clone` of a waker | a get that is about to sleep | nothing | nothing has happened |
//! | `wake` and `Drop` of a waker | a put, a close, the drop of a future | the task is in the pool; sleepers are being woken | the others are woken while the panic unwinds |
//! | `wake` of a waker | a put that is refused | those are woken that wait for its end, or another in its place | the others are woken while the panic unwinds; the task is dropped, or is with the future that puts it |
//! | `wake` of a producer's waker | a get from a full pool | a task is taken | the task is kept for this consumer's next get |
//! | `wake` of another consumer's waker | a get that finds what it was not woken for | a task is taken | the task is kept for this consumer's next get |
//! | `Drop` of a task | the drop of the last consumer, or of the last handle; a put that the last consumer's drop meets | tasks are being dropped | the others are dropped while the panic unwinds |
//! | the iterator of `put_many` | between two puts | nothing | what was put is in the pool |
//! | the closure of [`Salsa::with_fences`](salsa::Salsa::with_fences) | a consumer that gets a new entry | nothing | nothing has happened |
//!
//! A second panic while one unwinds aborts the program, as everywhere. No other code of a user's
//! runs in here: a get or put never clones, compares or drops a task.
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
//! | [`baselines::ConcBag`] | ConcBag | one compare-and-swap, from any producer's list |
//! | [`baselines::WsMsq`] | WS-MSQ | a Michael-Scott queue for each consumer |
//! | [`baselines::WsLifo`] | WS-LIFO | a Treiber stack for each consumer |
#![doc = include_str!("readme.md")]

pub mod baselines;
#[cfg(doctest)]
mod compile_fail;
pub mod mechanism;
#[cfg(all(test, not(miri)))]
mod models;
pub mod policy;
mod registry;
pub mod salsa;
mod task_pool;

pub use mechanism::NoHandle;
pub use task_pool::{
    BuildError, Builder, CHUNK_LENGTH, CloseGuard, Closed, Consumer, Get, GetTimeoutError,
    IntoIter, Iter, OwnedGet, OwnedPut, Producer, Put, PutError, PutManyError, SelectTimeoutError,
    Selector, TaskPool, TryGetError, TryIter,
};
#[cfg(feature = "async")]
pub use task_pool::{TaskSink, TaskStream};
