//! [`Producer`]: one thread's way into a pool.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use poach_memory::Ordering;

use crate::error::{PutError, PutManyError};
use crate::policy::Feeder;
use crate::salsa::Salsa;
use crate::shared::{Busy, Room, Shared};

/// Puts tasks into a [`TaskPool`](crate::TaskPool).
///
/// One thread at a time uses it; it may be sent to another, between two calls. A chunk that it has
/// begun when it is dropped is finished by the next producer.
///
/// Two threads cannot share one:
///
/// ```compile_fail,E0277
/// let pool = poach_pool::TaskPool::<u8>::new();
/// let producer = pool.producer().unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| println!("{:?}", &producer)); // `Producer` is not `Sync`
/// });
/// ```
pub struct Producer<T: Send> {
    feeder: Feeder<T, Salsa<T>>,
    busy: Arc<Busy>,
    shared: Arc<Shared<T>>,
    not_sync: PhantomData<Cell<()>>,
}

impl<T: Send> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").finish_non_exhaustive()
    }
}

impl<T: Send> Producer<T> {
    pub(crate) fn new(
        feeder: Feeder<T, Salsa<T>>,
        busy: Arc<Busy>,
        shared: Arc<Shared<T>>,
    ) -> Self {
        Producer { feeder, busy, shared, not_sync: PhantomData }
    }

    /// Puts a task; sleeps while a pool that has a capacity is full. Without a capacity wait-free
    /// but for a chunk's memory and for waking a sleeping consumer.
    ///
    /// # Errors
    ///
    /// [`PutError::Closed`] and [`PutError::OutOfMemory`] give the task back.
    #[inline]
    pub fn put(&mut self, task: T) -> Result<(), PutError<T>> {
        self.put_or(task, true)
    }

    /// Puts a task, if there is room. Never waits.
    ///
    /// # Errors
    ///
    /// [`PutError`] gives the task back.
    #[inline]
    pub fn try_put(&mut self, task: T) -> Result<(), PutError<T>> {
        self.put_or(task, false)
    }

    /// Where the gate is plain there is nothing else to ask: no capacity either, with which it never is.
    #[inline(always)]
    fn put_or(&mut self, task: T, wait: bool) -> Result<(), PutError<T>> {
        // Read once: the compiler would read them again after each fence.
        let (busy, gate) = (&**self.busy, &self.shared.tasks);
        // Relaxed: ordered before the look at the gate by its fence; see `Shared::is_settled`.
        busy.store(1, Ordering::Relaxed);
        if !gate.is_plain() {
            return self.put_guarded(task, wait);
        }
        let put = self.feeder.put(task);
        // Release pairs with the Acquire in `Shared::is_settled`.
        busy.store(0, Ordering::Release);
        gate.wake(1);
        put.map_err(PutError::OutOfMemory)
    }

    /// Out of line: a pool without a capacity shall not keep registers for one that has it.
    #[cold]
    #[inline(never)]
    fn put_guarded(&mut self, task: T, wait: bool) -> Result<(), PutError<T>> {
        // It may wait for room, and nobody who closes the pool shall wait for that. Release, as below.
        self.busy.store(0, Ordering::Release);
        let Some(room) = &self.shared.room else { return self.put_now(task) };
        if !room.reserve() {
            if self.shared.tasks.is_closed() {
                return Err(PutError::Closed(task));
            }
            if !wait {
                return Err(PutError::Full(task));
            }
            if !wait_for_room(room) {
                return Err(PutError::Closed(task));
            }
        }
        let put = self.put_now(task);
        if put.is_err()
            && let Some(room) = &self.shared.room
        {
            room.release();
        }
        put
    }

    fn put_now(&mut self, task: T) -> Result<(), PutError<T>> {
        let gate = &self.shared.tasks;
        // Relaxed: ordered before the look at the gate by the fence; see `Shared::is_settled`.
        self.busy.store(1, Ordering::Relaxed);
        gate.light();
        let put = if gate.is_closed() {
            Err(PutError::Closed(task))
        } else {
            self.feeder.put(task).map_err(PutError::OutOfMemory)
        };
        // Release pairs with the Acquire in `Shared::is_settled`.
        self.busy.store(0, Ordering::Release);
        gate.wake(1);
        put
    }

    /// Puts tasks, one after another, as [`put`](Producer::put) does. Returns how many.
    ///
    /// # Errors
    ///
    /// The task that could not be put, why, and how many were put before it. Those after it stay in
    /// the iterator: pass it by `&mut` to keep them.
    pub fn put_many(
        &mut self,
        tasks: impl IntoIterator<Item = T>,
    ) -> Result<usize, PutManyError<T>> {
        let mut put = 0;
        for task in tasks {
            self.put(task).map_err(|error| PutManyError { put, error })?;
            put += 1;
        }
        Ok(put)
    }
}

/// Sleeps until there is room for a task, and takes it; `false` if the pool is closed instead.
#[cold]
fn wait_for_room(room: &Room) -> bool {
    let look = || if room.gate.is_closed() { Some(false) } else { room.reserve().then_some(true) };
    // Without a deadline it sleeps until `look` has an answer.
    room.gate.sleep(None, look).unwrap_or(false)
}

impl<T: Send> Drop for Producer<T> {
    fn drop(&mut self) {
        self.shared.forget(&self.busy);
    }
}
