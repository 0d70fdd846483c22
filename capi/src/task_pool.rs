//! A pool of tasks between threads that make them and threads that do them.

use std::ffi::c_void;
use std::ptr;
use std::time::Duration;

use poach_pool::{
    BuildError, Consumer, GetTimeoutError, NoHandle, Producer, PutError, TaskPool, TryGetError,
};

use crate::call::Context;
use crate::status::poach_status::{
    POACH_CLOSED, POACH_EMPTY, POACH_FULL, POACH_INVALID, POACH_NO_MEMORY, POACH_TIMEOUT,
};
use crate::status::{Error, guard, poach_status};
use crate::{sent, shared};

/// A pool of tasks: pointers, which any producer puts and any consumer gets.
pub struct poach_task_pool(TaskPool<Context>);

/// Puts tasks: one thread's at a time.
pub struct poach_producer(Producer<Context>);

/// Gets tasks: one thread's at a time.
pub struct poach_consumer(Consumer<Context>);

// What C hands from thread to thread can be handed so, and a pool is used by several at once.
const _: () = sent::<Producer<Context>>();
const _: () = sent::<Consumer<Context>>();
const _: () = shared::<TaskPool<Context>>();

impl From<NoHandle> for Error {
    fn from(error: NoHandle) -> Error {
        Error::new(POACH_NO_MEMORY, error.to_string())
    }
}

impl From<PutError<Context>> for Error {
    fn from(error: PutError<Context>) -> Error {
        Error::from(match error {
            PutError::Closed(_) | PutError::NoConsumer(_) => POACH_CLOSED,
            PutError::Full(_) => POACH_FULL,
            _ => POACH_NO_MEMORY,
        })
    }
}

/// Makes a pool of tasks, in `*pool`. A capacity other than 0 limits the number of its tasks.
/// It is open until `poach_task_pool_close`, or until the pool and all its producers, or the pool
/// and all its consumers, are freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_task_pool_new(
    capacity: usize,
    pool: *mut *mut poach_task_pool,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for a pointer.
        let out = unsafe { pool.as_mut() }.ok_or_else(|| Error::null("`pool`"))?;
        *out = ptr::null_mut();
        let builder = TaskPool::builder().stays_open(true);
        let builder = if capacity == 0 { builder } else { builder.capacity(capacity) };
        let made = builder.build().map_err(|error| {
            let status = match error {
                BuildError::OutOfMemory => POACH_NO_MEMORY,
                _ => POACH_INVALID,
            };
            Error::new(status, error.to_string())
        })?;
        *out = Box::into_raw(Box::new(poach_task_pool(made)));
        Ok(())
    })
}

unsafe fn pool_of<'p>(pool: *const poach_task_pool) -> Result<&'p TaskPool<Context>, Error> {
    // SAFETY: null or a pool.
    Ok(&unsafe { pool.as_ref() }.ok_or_else(|| Error::null("the task pool"))?.0)
}

/// Closes a pool: nothing can be put any more, and consumers are told when all that was put is
/// taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_task_pool_close(pool: *const poach_task_pool) -> poach_status {
    guard(|| {
        // SAFETY: null or a pool.
        unsafe { pool_of(pool) }?.close();
        Ok(())
    })
}

/// Frees a handle of the pool, which lasts until its producers and consumers are freed as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_task_pool_free(pool: *mut poach_task_pool) -> poach_status {
    // SAFETY: null or a pool that is given up.
    guard(|| unsafe { free(pool, "the task pool") })
}

/// Makes a producer, in `*producer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_producer_new(
    pool: *const poach_task_pool,
    producer: *mut *mut poach_producer,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for a pointer.
        let out = unsafe { producer.as_mut() }.ok_or_else(|| Error::null("`producer`"))?;
        *out = ptr::null_mut();
        // SAFETY: null or a pool.
        let made = unsafe { pool_of(pool) }?.producer()?;
        *out = Box::into_raw(Box::new(poach_producer(made)));
        Ok(())
    })
}

unsafe fn producer_of<'p>(
    producer: *mut poach_producer,
) -> Result<&'p mut Producer<Context>, Error> {
    // SAFETY: null or a producer of the calling thread's.
    Ok(&mut unsafe { producer.as_mut() }.ok_or_else(|| Error::null("the producer"))?.0)
}

/// Puts a task; waits while the pool is full. POACH_CLOSED: nobody will get it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_producer_put(
    producer: *mut poach_producer,
    task: *mut c_void,
) -> poach_status {
    // SAFETY: null or a producer of the calling thread's.
    guard(|| Ok(unsafe { producer_of(producer) }?.put(Context(task))?))
}

/// Puts a task, unless the pool is full: POACH_FULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_producer_try_put(
    producer: *mut poach_producer,
    task: *mut c_void,
) -> poach_status {
    // SAFETY: null or a producer of the calling thread's.
    guard(|| Ok(unsafe { producer_of(producer) }?.try_put(Context(task))?))
}

/// Frees a producer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_producer_free(producer: *mut poach_producer) -> poach_status {
    // SAFETY: null or a producer that is given up.
    guard(|| unsafe { free(producer, "the producer") })
}

/// Makes a consumer, in `*consumer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_consumer_new(
    pool: *const poach_task_pool,
    consumer: *mut *mut poach_consumer,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for a pointer.
        let out = unsafe { consumer.as_mut() }.ok_or_else(|| Error::null("`consumer`"))?;
        *out = ptr::null_mut();
        // SAFETY: null or a pool.
        let made = unsafe { pool_of(pool) }?.consumer()?;
        *out = Box::into_raw(Box::new(poach_consumer(made)));
        Ok(())
    })
}

/// Runs `get` with a consumer, and stores the task that it gives.
unsafe fn get(
    consumer: *mut poach_consumer,
    task: *mut *mut c_void,
    get: impl FnOnce(&mut Consumer<Context>) -> Result<Context, poach_status>,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for a pointer.
        let out = unsafe { task.as_mut() }.ok_or_else(|| Error::null("`task`"))?;
        // SAFETY: null or a consumer of the calling thread's.
        let consumer = unsafe { consumer.as_mut() }.ok_or_else(|| Error::null("the consumer"))?;
        *out = get(&mut consumer.0)?.get();
        Ok(())
    })
}

/// Gets a task, in `*task`; waits until there is one. POACH_CLOSED: there will be none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_consumer_get(
    consumer: *mut poach_consumer,
    task: *mut *mut c_void,
) -> poach_status {
    // SAFETY: as this function's contract.
    unsafe { get(consumer, task, |consumer| consumer.get().map_err(|_| POACH_CLOSED)) }
}

/// Gets a task if there is one, in `*task`. POACH_EMPTY: there is none; POACH_CLOSED: there will be
/// none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_consumer_try_get(
    consumer: *mut poach_consumer,
    task: *mut *mut c_void,
) -> poach_status {
    let status = |error| match error {
        TryGetError::Empty => POACH_EMPTY,
        TryGetError::Closed => POACH_CLOSED,
    };
    // SAFETY: as this function's contract.
    unsafe { get(consumer, task, |consumer| consumer.try_get().map_err(status)) }
}

/// Gets a task, in `*task`; waits for at most `milliseconds`. POACH_TIMEOUT: there was no task;
/// POACH_CLOSED: there will be no task.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_consumer_get_timeout(
    consumer: *mut poach_consumer,
    milliseconds: u64,
    task: *mut *mut c_void,
) -> poach_status {
    let status = |error| match error {
        GetTimeoutError::TimedOut => POACH_TIMEOUT,
        GetTimeoutError::Closed => POACH_CLOSED,
    };
    let time = Duration::from_millis(milliseconds);
    // SAFETY: as this function's contract.
    unsafe { get(consumer, task, |consumer| consumer.get_timeout(time).map_err(status)) }
}

/// Frees a consumer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_consumer_free(consumer: *mut poach_consumer) -> poach_status {
    // SAFETY: null or a consumer that is given up.
    guard(|| unsafe { free(consumer, "the consumer") })
}

unsafe fn free<T>(pointer: *mut T, what: &'static str) -> Result<(), Error> {
    if pointer.is_null() {
        return Err(Error::null(what));
    }
    // SAFETY: made from a box by this module, and given up by who calls.
    drop(unsafe { Box::from_raw(pointer) });
    Ok(())
}
