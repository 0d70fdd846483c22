//! [`TaskPool`]: SALSA with the interface of a channel.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::admission::Admission;
use super::consumer::Consumer;
use super::error::BuildError;
use super::producer::Producer;
use super::seats::Seats;
use super::shared::{Shared, of_the_pool};
use crate::mechanism::NoHandle;
use crate::policy::{Feeder, Policy};
use crate::salsa::Salsa;

/// The default number of tasks in a chunk: the paper's optimum (figure 8).
pub const CHUNK_LENGTH: usize = 1000;

/// A pool of tasks between threads that make them and threads that do them.
///
/// Make one, make a [`Producer`] or a [`Consumer`] of it for each thread, at any time, and drop
/// them at any time. The pool itself is a handle: clones are the same pool.
///
/// ```
/// use poach_pool::TaskPool;
///
/// let pool = TaskPool::new();
/// let sum: u64 = std::thread::scope(|scope| {
///     let workers: Vec<_> = (0..2)
///         .map(|_| {
///             let mut consumer = pool.consumer().unwrap();
///             scope.spawn(move || consumer.iter().sum::<u64>())
///         })
///         .collect();
///     let mut producer = pool.producer().unwrap();
///     producer.put_many(1..=1000).unwrap();
///     drop(producer); // the last: the consumers end when the last task is taken
///     workers.into_iter().map(|worker| worker.join().unwrap()).sum()
/// });
/// assert_eq!(sum, 500_500);
/// ```
///
/// # Who closes a pool
///
/// A pool is closed by [`close`](TaskPool::close), and as a channel when one side is gone, though a
/// `TaskPool` is kept:
///
/// - With the last [`Producer`] each get takes the remaining tasks, and then answers
///   [`Closed`](crate::Closed).
/// - With the last [`Consumer`] the remaining tasks are dropped, by the thread that drops the
///   consumer, and each put answers [`PutError::NoConsumer`](crate::PutError::NoConsumer). A put
///   that runs meanwhile may succeed; its task is dropped, too.
/// - With the last `TaskPool` a side is gone that has never had a handle.
///
/// A closed pool stays closed: the puts of a producer that is made later are refused. So make the
/// producers first, or clone one, and then start the threads. If each thread makes its own, the
/// first may have ended before the second begins. Build a pool to which producers or consumers come
/// later with [`stays_open`](Builder::stays_open): a side of it is gone when all handles of that
/// side *and all `TaskPool`s* have been dropped.
#[doc(alias = "channel")]
pub struct TaskPool<T: Send> {
    shared: Arc<Shared<T>>,
}

impl<T: Send> TaskPool<T> {
    /// A pool without a capacity.
    ///
    /// # Panics
    ///
    /// If there is no memory for it; [`builder`](TaskPool::builder) gives an error instead.
    #[doc(alias = "unbounded")]
    pub fn new() -> Self {
        match Self::builder().build() {
            Ok(pool) => pool,
            Err(error) => panic!("{error}"),
        }
    }

    /// A pool that holds at most `capacity` tasks, and one more for each consumer that waits in
    /// [`get`](Consumer::get), as [`Builder::capacity`] says: a put waits while it is full.
    ///
    /// ```
    /// use poach_pool::{PutError, TaskPool};
    ///
    /// let pool = TaskPool::bounded(1);
    /// let mut producer = pool.producer().unwrap();
    /// assert_eq!(producer.try_put("first"), Ok(()));
    /// assert_eq!(producer.try_put("second"), Err(PutError::Full("second")));
    /// ```
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, or if there is no memory. [`Builder::build`] gives an error instead.
    pub fn bounded(capacity: usize) -> Self {
        match Self::builder().capacity(capacity).build() {
            Ok(pool) => pool,
            Err(error) => panic!("{error}"),
        }
    }

    /// A builder of a pool with settings.
    pub fn builder() -> Builder<T> {
        let policy = Policy::default();
        Builder {
            capacity: None,
            chunk: CHUNK_LENGTH,
            stays_open: false,
            policy,
            task: PhantomData,
        }
    }

    fn of(shared: Arc<Shared<T>>) -> Self {
        shared.admission.sides.join_pool();
        TaskPool { shared }
    }

    /// A handle to put tasks. Thread-safe; takes a lock.
    ///
    /// # Errors
    ///
    /// [`NoHandle`]; the limit is 4096 producers at a time.
    #[doc(alias = "Sender")]
    pub fn producer(&self) -> Result<Producer<T>, NoHandle> {
        self.producer_at(0)
    }

    /// As [`producer`](TaskPool::producer), for a thread whose home is `home`: the first argument
    /// of the builder's [`distance`](Builder::distance).
    ///
    /// # Errors
    ///
    /// [`NoHandle`].
    pub fn producer_at(&self, home: usize) -> Result<Producer<T>, NoHandle> {
        let shared = &self.shared;
        let feeder = Feeder::at(&shared.pools, shared.policy.clone(), home)?;
        Ok(Producer::new(feeder, Arc::clone(shared)))
    }

    /// A handle to take tasks. Thread-safe. There is no limit to their number, but no more than 512
    /// threads take at the same time without waiting for each other.
    ///
    /// # Errors
    ///
    /// [`NoHandle::OutOfMemory`].
    #[doc(alias = "Receiver")]
    pub fn consumer(&self) -> Result<Consumer<T>, NoHandle> {
        self.consumer_at(0)
    }

    /// As [`consumer`](TaskPool::consumer), for a thread whose home is `home`.
    ///
    /// # Errors
    ///
    /// [`NoHandle`].
    pub fn consumer_at(&self, home: usize) -> Result<Consumer<T>, NoHandle> {
        Consumer::new(&self.shared, home)
    }

    of_the_pool!();

    /// A guard that [closes](TaskPool::close) the pool when it is dropped. With it a producer that
    /// panics leaves no consumer waiting for tasks that will not come, even if there are other
    /// producers:
    ///
    /// ```
    /// use poach_pool::TaskPool;
    ///
    /// let pool = TaskPool::new();
    /// std::thread::scope(|scope| {
    ///     let (mut consumer, others) = (pool.consumer().unwrap(), pool.producer().unwrap());
    ///     let taken = scope.spawn(move || consumer.iter().count());
    ///     let produced = std::panic::catch_unwind(|| {
    ///         let _closes = pool.close_guard();
    ///         others.clone().put(1).unwrap();
    ///         panic!("and is not closed by hand");
    ///     });
    ///     assert!(produced.is_err());
    ///     assert_eq!(taken.join().unwrap(), 1);
    /// });
    /// ```
    pub fn close_guard(&self) -> CloseGuard<T> {
        CloseGuard(self.clone())
    }
}

// A panic leaves a pool whole: see "Foreign code" in the crate's page.
impl<T: Send> UnwindSafe for TaskPool<T> {}
impl<T: Send> RefUnwindSafe for TaskPool<T> {}

impl<T: Send> Default for TaskPool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send> Clone for TaskPool<T> {
    fn clone(&self) -> Self {
        TaskPool::of(Arc::clone(&self.shared))
    }
}

impl<T: Send> Drop for TaskPool<T> {
    fn drop(&mut self) {
        /// Drops tasks that no handle can take, also if a waker panics during the close.
        struct Discards<'a, T: Send>(&'a Shared<T>);
        impl<T: Send> Drop for Discards<'_, T> {
            fn drop(&mut self) {
                if self.0.admission.sides.is_abandoned() {
                    self.0.discard();
                }
            }
        }
        let discards = Discards(&self.shared);
        discards.0.admission.leave_pool();
    }
}

/// Closes a pool when it is dropped, also while a panic unwinds.
#[must_use = "it closes the pool when it is dropped, which is at once if nobody keeps it"]
pub struct CloseGuard<T: Send>(TaskPool<T>);

impl<T: Send> fmt::Debug for CloseGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloseGuard").finish_non_exhaustive()
    }
}

impl<T: Send> Drop for CloseGuard<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T: Send> fmt::Debug for TaskPool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskPool")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Settings of a [`TaskPool`].
pub struct Builder<T> {
    capacity: Option<usize>,
    chunk: usize,
    stays_open: bool,
    policy: Policy,
    task: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("capacity", &self.capacity)
            .field("chunk_length", &self.chunk)
            .field("stays_open", &self.stays_open)
            .field("policy", &self.policy)
            .finish()
    }
}

impl<T: Send> Builder<T> {
    /// The most tasks that the pool may hold: a [put](Producer::put) waits, or fails, while the
    /// pool is full. A consumer that waits in [`get`](Consumer::get) is room for one task more,
    /// which it is about to take. Costs one atomic read-modify-write for each put and each get.
    #[must_use]
    pub fn capacity(mut self, tasks: usize) -> Self {
        self.capacity = Some(tasks);
        self
    }

    /// Tasks in a chunk, which a thief steals at once: the unit of allocation. The default is 1000.
    #[must_use]
    pub fn chunk_length(mut self, tasks: usize) -> Self {
        self.chunk = tasks;
        self
    }

    /// Whether the pool stays open while a [`TaskPool`] is kept, even after all producers or all
    /// consumers have gone. The default is `false`: [who closes a
    /// pool](TaskPool#who-closes-a-pool).
    ///
    /// ```
    /// use poach_pool::{Closed, TaskPool};
    ///
    /// let pool = TaskPool::builder().stays_open(true).build().unwrap();
    /// pool.producer().unwrap().put(1).unwrap(); // and this producer is gone
    /// pool.producer().unwrap().put(2).unwrap();
    /// let mut consumer = pool.consumer().unwrap();
    /// assert_eq!(consumer.drain().count(), 2);
    /// drop(pool);
    /// assert_eq!(consumer.get(), Err(Closed));
    /// ```
    #[must_use]
    pub fn stays_open(mut self, stays_open: bool) -> Self {
        self.stays_open = stays_open;
        self
    }

    /// Whether producers pass over consumers that have fallen behind. The default is `true`.
    #[must_use]
    pub fn balancing(mut self, balancing: bool) -> Self {
        self.policy.balancing = balancing;
        self
    }

    /// The distance of consumer number `.1` from a handle whose home is `.0`; nearer ones are
    /// served and robbed first. By default all are equally distant.
    #[must_use]
    pub fn distance(
        mut self,
        distance: impl Fn(usize, usize) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.policy.distance = Arc::new(distance);
        self
    }

    /// The pool.
    ///
    /// # Errors
    ///
    /// [`BuildError`], for a capacity or chunk length of 0, or for lack of memory.
    pub fn build(self) -> Result<TaskPool<T>, BuildError> {
        if self.capacity == Some(0) {
            return Err(BuildError::ZeroCapacity);
        }
        if self.chunk == 0 {
            return Err(BuildError::ZeroChunk);
        }
        let pools = Salsa::new(self.chunk).ok_or(BuildError::OutOfMemory)?;
        let admission = Admission::new(self.capacity, self.stays_open);
        let seats = Seats::new();
        let shared = Shared { pools: Arc::new(pools), seats, admission, policy: self.policy };
        Ok(TaskPool::of(Arc::new(shared)))
    }
}
