//! [`Producer`]: one thread's way into a pool.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use poach_memory::Ordering;

use crate::error::{PutError, PutManyError};
use crate::policy::Feeder;
use crate::salsa::Salsa;
use crate::task_pool::{Busy, Room, Shared};

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
        if let Some(room) = &self.shared.room
            && !room.reserve()
            && !wait_for_room(room)
        {
            return Err(PutError::Closed(task));
        }
        self.put_reserved(task)
    }

    /// Puts a task, if there is room. Never waits.
    ///
    /// # Errors
    ///
    /// [`PutError`] gives the task back.
    #[inline]
    pub fn try_put(&mut self, task: T) -> Result<(), PutError<T>> {
        if let Some(room) = &self.shared.room
            && !room.reserve()
        {
            let closed = self.shared.tasks.is_closed();
            return Err(if closed { PutError::Closed(task) } else { PutError::Full(task) });
        }
        self.put_reserved(task)
    }

    #[inline(always)]
    fn put_reserved(&mut self, task: T) -> Result<(), PutError<T>> {
        // Relaxed: ordered before the look at the gate by the fence; see `Shared::is_settled`.
        self.busy.store(1, Ordering::Relaxed);
        self.shared.tasks.light();
        let put = if self.shared.tasks.is_closed() {
            Err(PutError::Closed(task))
        } else {
            self.feeder.put(task).map_err(PutError::OutOfMemory)
        };
        // Release pairs with the Acquire in `Shared::is_settled`.
        self.busy.store(0, Ordering::Release);
        if put.is_err()
            && let Some(room) = &self.shared.room
        {
            room.release();
        }
        self.shared.tasks.wake(1);
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
