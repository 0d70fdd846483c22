//! [`Consumer`]: one thread's way to a pool's tasks.

use std::cell::Cell;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::admission::Side;
use crate::error::{Closed, GetTimeoutError, TryGetError};
use crate::policy::Taker;
use crate::salsa::Salsa;
use crate::shared::Shared;

/// How often a get that finds nothing looks again before it sleeps.
const POLLS: u32 = 64;

/// Takes tasks from a [`TaskPool`](crate::TaskPool).
///
/// One thread at a time uses it; it may be sent to another, between two calls. Tasks that were meant
/// for it when it is dropped are stolen by other consumers, or left to the next.
///
/// It cannot go to another thread in the middle of its use:
///
/// ```compile_fail,E0505
/// let pool = poach_pool::TaskPool::<u8>::new();
/// let mut consumer = pool.consumer().unwrap();
/// let mut tasks = consumer.drain();
/// let other = std::thread::spawn(move || consumer.try_get()); // still borrowed by `tasks`
/// tasks.next();
/// ```
///
/// nor can two threads share one:
///
/// ```compile_fail,E0277
/// let pool = poach_pool::TaskPool::<u8>::new();
/// let consumer = pool.consumer().unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| println!("{:?}", &consumer)); // `Consumer` is not `Sync`
/// });
/// ```
pub struct Consumer<T: Send> {
    taker: Taker<T, Salsa<T>>,
    pub(crate) shared: Arc<Shared<T>>,
    /// Whether the pool has a capacity.
    bounded: bool,
    /// A task that a get had taken when a waker panicked.
    kept: Option<T>,
    not_sync: PhantomData<Cell<()>>,
}

impl<T: Send> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("closed", &self.shared.admission.tasks.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T: Send> Consumer<T> {
    pub(crate) fn new(taker: Taker<T, Salsa<T>>, shared: Arc<Shared<T>>) -> Self {
        let bounded = shared.admission.room.is_some();
        shared.admission.join(Side::Takes);
        Consumer { taker, shared, bounded, kept: None, not_sync: PhantomData }
    }

    /// Takes a task; sleeps while there is none, after a bounded number of looks. Any task: the oldest of a chunk, and which chunk is not
    /// promised.
    ///
    /// # Errors
    ///
    /// [`Closed`], once the pool is closed, or all that could put are gone, and all its tasks are taken.
    ///
    /// # Panics
    ///
    /// If the waker of a producer's future does, which is told that the pool is no longer full. The task that was taken is kept, and is what this
    /// consumer's next get takes; if there is none, it is dropped with the consumer.
    #[inline]
    #[doc(alias = "recv")]
    pub fn get(&mut self) -> Result<T, Closed> {
        match self.take() {
            Some(task) => Ok(task),
            None => self.wait(None).unwrap_or(Err(Closed)),
        }
    }

    /// Takes a task if there is one. Lock-free, but for a mutex once the pool is closed.
    ///
    /// # Errors
    ///
    /// [`TryGetError::Empty`] if there was no task at an instant of this call;
    /// [`TryGetError::Closed`] if there will never be one.
    #[inline]
    #[doc(alias = "try_recv")]
    pub fn try_get(&mut self) -> Result<T, TryGetError> {
        match self.take() {
            Some(task) => Ok(task),
            None if !self.shared.admission.tasks.is_closed() => Err(TryGetError::Empty),
            None => match self.look() {
                Some(got) => got.map_err(|Closed| TryGetError::Closed),
                None => Err(TryGetError::Empty),
            },
        }
    }

    /// Takes a task; waits for one no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// [`GetTimeoutError::TimedOut`] or [`GetTimeoutError::Closed`].
    #[doc(alias = "recv_timeout")]
    pub fn get_timeout(&mut self, timeout: Duration) -> Result<T, GetTimeoutError> {
        if let Some(task) = self.take() {
            return Ok(task);
        }
        // A time beyond what the clock can tell is for ever.
        let deadline = Instant::now().checked_add(timeout);
        match self.wait(deadline) {
            Some(got) => got.map_err(|Closed| GetTimeoutError::Closed),
            None => Err(GetTimeoutError::TimedOut),
        }
    }

    /// Takes up to `most` tasks and appends them to `into`; waits for the first, not for the rest.
    /// Returns how many. In the order in which as many [gets](Consumer::get) would have taken them.
    ///
    /// # Errors
    ///
    /// [`Closed`], if there is not even one and there never will be.
    pub fn get_many(&mut self, most: usize, into: &mut Vec<T>) -> Result<usize, Closed> {
        if most == 0 {
            return Ok(0);
        }
        into.push(self.get()?);
        let before = into.len();
        into.extend(self.drain().take(most - 1));
        Ok(into.len() - before + 1)
    }

    /// Takes tasks until there are none, in the order of [gets](Consumer::get).
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        core::iter::from_fn(|| self.take())
    }

    /// Takes tasks, and waits for them, until the pool is closed and empty, in the order of [gets](Consumer::get). `for task in consumer` does
    /// the same.
    ///
    /// The pool is closed by [`close`](crate::TaskPool::close), and when all producers *and all [`TaskPool`](crate::TaskPool)s*, which could make
    /// another producer, have been dropped.
    pub fn iter(&mut self) -> impl Iterator<Item = T> {
        core::iter::from_fn(|| self.get().ok())
    }

    #[inline(always)]
    fn take(&mut self) -> Option<T> {
        if self.bounded { self.take_and_release() } else { self.taker.get() }
    }

    /// Out of line, and cold, as in `Producer`: a call that was as likely as the other way had a loop around a get keep its variables in
    /// memory, 44 instructions for 36.
    #[cold]
    #[inline(never)]
    fn take_and_release(&mut self) -> Option<T> {
        /// A task that is not lost if a waker panics.
        struct Taken<'a, T> {
            kept: &'a mut Option<T>,
            task: Option<T>,
        }
        impl<T> Drop for Taken<'_, T> {
            fn drop(&mut self) {
                *self.kept = self.task.take();
            }
        }
        if self.kept.is_some() {
            // The pool counted it out when it was taken.
            return self.kept.take();
        }
        let task = Some(self.taker.get()?);
        let mut taken = Taken { kept: &mut self.kept, task };
        if let Some(room) = &self.shared.admission.room {
            room.release();
        }
        taken.task.take()
    }

    /// A task, or that there will never be one; nothing if neither is known.
    pub(crate) fn look(&mut self) -> Option<Result<T, Closed>> {
        // In this order: what is not there once all puts are over will never be.
        let settled = self.shared.admission.is_settled();
        match self.take() {
            Some(task) => Some(Ok(task)),
            None => settled.then_some(Err(Closed)),
        }
    }

    #[cold]
    fn wait(&mut self, deadline: Option<Instant>) -> Option<Result<T, Closed>> {
        for _ in 0..POLLS {
            if let Some(found) = self.look() {
                return Some(found);
            }
            thread::yield_now();
        }
        let shared = Arc::clone(&self.shared);
        shared.admission.tasks.sleep(deadline, || self.look())
    }
}

/// The tasks of a [`Consumer`], until the pool is closed and empty: [`Consumer::iter`].
pub struct IntoIter<T: Send>(Consumer<T>);

impl<T: Send> Iterator for IntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.get().ok()
    }
}

impl<T: Send> FusedIterator for IntoIter<T> {}

impl<T: Send> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IntoIter").field(&self.0).finish()
    }
}

/// As [`Consumer::iter`].
///
/// ```
/// let pool = poach_pool::TaskPool::new();
/// pool.producer().unwrap().put_many(1..=3).unwrap();
/// let consumer = pool.consumer().unwrap();
/// pool.close();
/// let mut sum = 0;
/// for task in consumer {
///     sum += task;
/// }
/// assert_eq!(sum, 6);
/// ```
impl<T: Send> IntoIterator for Consumer<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

// As the pool.
impl<T: Send> UnwindSafe for Consumer<T> {}
impl<T: Send> RefUnwindSafe for Consumer<T> {}

impl<T: Send> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.shared.admission.leave(Side::Takes);
    }
}
