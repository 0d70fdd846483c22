//! [`Producer`]: one thread's way into a pool.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use poach_memory::Machine;

#[cfg(feature = "async")]
use crate::admission::Room;
use crate::admission::{Admission, Busy, Putting, Refused, Side};
use crate::error::{PutError, PutManyError};
use crate::policy::Feeder;
use crate::salsa::Salsa;
use crate::shared::Shared;

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
    busy: Arc<Busy<Machine>>,
    shared: Arc<Shared<T>>,
    not_sync: PhantomData<Cell<()>>,
}

impl<T: Send> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("closed", &self.shared.admission.tasks.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T: Send> Producer<T> {
    pub(crate) fn new(
        feeder: Feeder<T, Salsa<T>>,
        busy: Arc<Busy<Machine>>,
        shared: Arc<Shared<T>>,
    ) -> Self {
        shared.admission.join(Side::Puts);
        Producer { feeder, busy, shared, not_sync: PhantomData }
    }

    /// Puts a task; sleeps while a pool that has a capacity is full. Without a capacity wait-free
    /// but for a chunk's memory and for waking a sleeping consumer.
    ///
    /// What one producer puts goes to several consumers in turn, so it comes out in no promised order, even if nobody steals
    /// ([what order is promised](crate#what-order-is-promised)).
    ///
    /// # Errors
    ///
    /// [`PutError::Closed`], [`PutError::NoConsumer`] and [`PutError::OutOfMemory`] give the task back.
    #[inline]
    #[doc(alias = "send")]
    pub fn put(&mut self, task: T) -> Result<(), PutError<T>> {
        self.put_or(task, true)
    }

    /// Puts a task, if there is room. Never waits.
    ///
    /// # Errors
    ///
    /// [`PutError`] gives the task back.
    #[inline]
    #[doc(alias = "try_send")]
    pub fn try_put(&mut self, task: T) -> Result<(), PutError<T>> {
        self.put_or(task, false)
    }

    #[cfg(feature = "async")]
    pub(crate) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    /// The capacity, if the pool has one.
    #[cfg(feature = "async")]
    pub(crate) fn room(&self) -> Option<&Room<Machine>> {
        self.shared.admission.room.as_ref()
    }

    /// Where the gate is plain there is nothing else to ask: no capacity either, with which it never is.
    #[inline(always)]
    fn put_or(&mut self, task: T, wait: bool) -> Result<(), PutError<T>> {
        let putting = Putting::<Machine>::begin(&self.busy, &self.shared.admission.tasks);
        if !putting.is_plain() {
            return put_guarded(&mut self.feeder, &self.shared.admission, putting, task, wait);
        }
        let put = self.feeder.put(task);
        drop(putting);
        put.map_err(PutError::OutOfMemory)
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

/// Out of line: a pool without a capacity shall not keep registers for one that has it.
#[cold]
#[inline(never)]
fn put_guarded<T: Send>(
    feeder: &mut Feeder<T, Salsa<T>>,
    admission: &Admission<Machine>,
    putting: Putting<'_, Machine>,
    task: T,
    wait: bool,
) -> Result<(), PutError<T>> {
    let (putting, reserved) = match admission.admit(putting, wait) {
        Ok(admitted) => admitted,
        Err(Refused::Closed) if admission.is_untaken() => return Err(PutError::NoConsumer(task)),
        Err(Refused::Closed) => return Err(PutError::Closed(task)),
        Err(Refused::Full) => return Err(PutError::Full(task)),
    };
    // If it panics, or there is no memory, the room is given back.
    feeder.put(task).map_err(PutError::OutOfMemory)?;
    if let Some(reserved) = reserved {
        reserved.keep();
    }
    drop(putting);
    Ok(())
}

// As the pool.
impl<T: Send> UnwindSafe for Producer<T> {}
impl<T: Send> RefUnwindSafe for Producer<T> {}

impl<T: Send> Drop for Producer<T> {
    fn drop(&mut self) {
        self.shared.admission.forget(&self.busy);
        self.shared.admission.leave(Side::Puts);
    }
}
