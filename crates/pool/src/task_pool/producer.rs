//! [`Producer`]: one thread's handle to put tasks.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use poach_memory::Machine;

use super::admission::{Refused, Room, Wait};
use super::error::{PutError, PutManyError};
use super::putting::{Busy, Putting};
use super::shared::{Shared, of_the_pool};
use super::sides::Side;
use crate::mechanism::NoHandle;
use crate::policy::Feeder;
use crate::salsa::Salsa;

/// Puts tasks into a [`TaskPool`](crate::TaskPool).
///
/// One thread at a time uses it: it is `Send`, not `Sync`. A [clone](Producer::clone) is another
/// producer of the same pool. A chunk that it has begun when it is dropped is finished by the next
/// producer. With the last producer the pool is [closed](crate::TaskPool#who-closes-a-pool).
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

/// A put. The task is written to its place here and is not passed to any function, which would copy
/// a large one. `$task` is evaluated once there is a place, or there can be none. If the gate is
/// plain the only other check is for a place: a pool with a capacity never has a plain gate.
macro_rules! put {
    ($self:ident, $task:expr, $wait:expr) => {{
        let Producer { feeder, busy, shared, .. } = $self;
        let putting = Putting::<Machine>::begin(busy, &shared.admission.tasks);
        if putting.is_plain() && feeder.end().has_place() {
            putting.go_on();
        } else if let Err(why) = begin_slowly(feeder, shared, putting, $wait) {
            return refused(why, shared, $task);
        }
        let place = feeder.end().place();
        // SAFETY: this place was found, or prepared by `begin_slowly`. No consumer reads it before
        // `filled` is past it, and the reader of its last life was done before the chunk was reset.
        unsafe { place.slot.write($task) };
        // SAFETY: `place` is this producer's, and the task was written just now.
        unsafe { feeder.end().publish(&place) };
        if Putting::<Machine>::of(busy, &shared.admission.tasks).end() {
            put_into_closed(shared);
        }
        Ok(())
    }};
}

impl<T: Send> Producer<T> {
    pub(crate) fn new(feeder: Feeder<T, Salsa<T>>, shared: Arc<Shared<T>>) -> Self {
        let busy = shared.admission.new_producer();
        shared.admission.sides.join(Side::Puts);
        Producer { feeder, busy, shared, not_sync: PhantomData }
    }

    /// One more producer of the same pool and home. (`clone` panics where this gives an error.)
    ///
    /// # Errors
    ///
    /// [`NoHandle`]; the limit is 4096 producers at a time.
    pub fn try_clone(&self) -> Result<Self, NoHandle> {
        Ok(Producer::new(self.feeder.another()?, Arc::clone(&self.shared)))
    }

    /// Puts a task; sleeps while a pool with a capacity is full. Without a capacity it is
    /// wait-free, except for a chunk's memory and for waking a sleeping consumer.
    ///
    /// What one producer puts goes to several consumers in turn, so it comes out in no promised
    /// order, even if nobody steals ([what order is promised](crate#what-order-is-promised)).
    ///
    /// # Errors
    ///
    /// [`PutError::Closed`], [`PutError::NoConsumer`] and [`PutError::OutOfMemory`] give the task
    /// back.
    #[inline]
    #[doc(alias = "send")]
    pub fn put(&mut self, task: T) -> Result<(), PutError<T>> {
        put!(self, task, Wait::Until(None))
    }

    /// Puts a task, if there is room. Never waits.
    ///
    /// # Errors
    ///
    /// [`PutError`] gives the task back.
    #[inline]
    #[doc(alias = "try_send")]
    pub fn try_put(&mut self, task: T) -> Result<(), PutError<T>> {
        put!(self, task, Wait::No)
    }

    /// `None` if there is no room. If foreign code panics the task is still there, or has been put.
    pub(crate) fn try_put_from(&mut self, task: &mut Option<T>) -> Option<Result<(), PutError<T>>> {
        let put = |from: &mut Option<T>| from.take().expect("there is a task");
        let done: Result<(), PutError<T>> = (|| put!(self, put(task), Wait::No))();
        match done {
            Err(PutError::Full(again)) => {
                *task = Some(again);
                None
            }
            done => Some(done),
        }
    }

    /// Puts a task; waits up to `timeout` for room. A timeout beyond the clock's range is for ever.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = poach_pool::TaskPool::bounded(1);
    /// let mut producer = pool.producer().unwrap();
    /// assert!(producer.put_timeout(1, Duration::ZERO).is_ok());
    /// assert!(producer.put_timeout(2, Duration::from_millis(1)).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`PutError`], with [`TimedOut`](PutError::TimedOut) in place of `Full`, gives the task back.
    #[doc(alias = "send_timeout")]
    pub fn put_timeout(&mut self, task: T, timeout: Duration) -> Result<(), PutError<T>> {
        put!(self, task, Wait::Until(Instant::now().checked_add(timeout)))
    }

    /// Puts a task; waits for room until `deadline`, which may have passed.
    ///
    /// # Errors
    ///
    /// As [`put_timeout`](Producer::put_timeout).
    #[doc(alias = "send_deadline")]
    pub fn put_deadline(&mut self, task: T, deadline: Instant) -> Result<(), PutError<T>> {
        put!(self, task, Wait::Until(Some(deadline)))
    }

    of_the_pool!();

    pub(crate) fn shared(&self) -> &Arc<Shared<T>> {
        &self.shared
    }

    pub(crate) fn room(&self) -> Option<&Room<Machine>> {
        self.shared.admission.room.as_ref()
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

/// Out of line: the fast path keeps no registers for it.
#[cold]
#[inline(never)]
fn begin_slowly<T: Send>(
    feeder: &mut Feeder<T, Salsa<T>>,
    shared: &Shared<T>,
    putting: Putting<'_, Machine>,
    wait: Wait,
) -> Result<(), Refused> {
    let (putting, reserved) = if putting.is_plain() {
        (putting, None)
    } else {
        shared.admission.admit(putting, wait, || shared.pools.taken())?
    };
    // If it panics, or there is no memory, the room is given back.
    if !feeder.prepare() {
        return Err(Refused::OutOfMemory);
    }
    if let Some(reserved) = reserved {
        reserved.keep();
    }
    putting.go_on();
    Ok(())
}

#[cold]
#[inline(never)]
fn put_into_closed<T: Send>(shared: &Shared<T>) {
    if shared.admission.sides.is_abandoned() {
        shared.discard();
    }
}

#[cold]
#[inline(never)]
fn refused<T: Send>(why: Refused, shared: &Shared<T>, task: T) -> Result<(), PutError<T>> {
    // First the variant, then the task: a large task is not copied for each.
    let error: fn(T) -> PutError<T> = match why {
        Refused::Closed if shared.admission.sides.is_untaken() => PutError::NoConsumer,
        Refused::Closed => PutError::Closed,
        Refused::Full => PutError::Full,
        Refused::TimedOut => PutError::TimedOut,
        Refused::OutOfMemory => PutError::OutOfMemory,
    };
    Err(error(task))
}

/// As [`TaskPool::producer`](crate::TaskPool::producer), with the same home.
///
/// # Panics
///
/// If there are 4096 producers already, or there is no memory; [`try_clone`](Producer::try_clone)
/// gives an error instead.
impl<T: Send> Clone for Producer<T> {
    fn clone(&self) -> Self {
        match self.try_clone() {
            Ok(producer) => producer,
            Err(error) => panic!("{error}"),
        }
    }
}

// As for the pool.
impl<T: Send> UnwindSafe for Producer<T> {}
impl<T: Send> RefUnwindSafe for Producer<T> {}

impl<T: Send> Drop for Producer<T> {
    fn drop(&mut self) {
        self.shared.admission.forget(&self.busy);
        self.shared.admission.leave(Side::Puts);
    }
}
