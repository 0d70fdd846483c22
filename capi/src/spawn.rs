//! Tasks that are let go, with a handle.

use std::ffi::{c_int, c_void};
use std::panic::resume_unwind;
use std::ptr;

use poach_runtime::{JoinHandle, ThreadPool};

use crate::call::{Context, call};
use crate::pool::{poach_pool, process, with};
use crate::shared;
use crate::status::poach_status::{POACH_CANCELLED, POACH_FORKED};
use crate::status::{Error, guard, poach_status};

/// A spawned task's result, to be. Given up by `poach_handle_join` or `poach_handle_free`.
pub struct poach_handle {
    task: JoinHandle<Context>,
    /// The process in which it was spawned.
    process: u64,
}

impl poach_handle {
    /// Whether this is the process in which the task was spawned.
    fn check(&self) -> Result<(), Error> {
        if self.process == process() { Ok(()) } else { Err(POACH_FORKED.into()) }
    }
}

// Any thread may join, cancel and free it.
const _: () = shared::<poach_handle>();

/// A task: what it returns is its result.
pub type poach_function = Option<unsafe extern "C-unwind" fn(context: *mut c_void) -> *mut c_void>;

/// Starts `task` on one of the pool's own threads. `handle` may be NULL: then nobody asks for the
/// result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_spawn(
    pool: *const poach_pool,
    task: poach_function,
    context: *mut c_void,
    handle: *mut *mut poach_handle,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for a pointer.
        let mut out = unsafe { handle.as_mut() };
        if let Some(out) = &mut out {
            **out = ptr::null_mut();
        }
        let task = task.ok_or_else(|| Error::null("the task"))?;
        let context = Context(context);
        // SAFETY: the task may be called with its context on any thread.
        let run = move || Context(call(|| unsafe { task(context.get()) }));
        let spawn = |pool: &ThreadPool| {
            match out {
                Some(out) => {
                    let handle = poach_handle { task: pool.spawn_handle(run), process: process() };
                    *out = Box::into_raw(Box::new(handle));
                }
                None => pool.spawn(move || _ = run()),
            }
            Ok(())
        };
        // SAFETY: null or a handle.
        unsafe { with(pool, spawn) }
    })
}

/// Waits for a task and frees its handle. `result` may be NULL. A worker that waits runs other
/// tasks meanwhile.
///
/// POACH_CANCELLED: it was cancelled, or its pool ended before it began. POACH_FORKED: it was
/// spawned in the parent of this process, and is the parent's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_handle_join(
    handle: *mut poach_handle,
    result: *mut *mut c_void,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a handle that is given up here.
        let handle = unsafe { take(handle) }?;
        handle.check()?;
        let value = handle.task.join().map_err(|error| match error.try_into_panic() {
            Ok(payload) => resume_unwind(payload),
            Err(_) => Error::from(POACH_CANCELLED),
        })?;
        // SAFETY: null or a place for a pointer.
        if let Some(out) = unsafe { result.as_mut() } {
            *out = value.get();
        }
        Ok(())
    })
}

/// Cancels a task, unless it has begun: `*cancelled`, which may be NULL, is 1 if it has not and
/// never will. The handle is still there.
///
/// POACH_FORKED: as for `poach_handle_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_handle_cancel(
    handle: *const poach_handle,
    cancelled: *mut c_int,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a handle.
        let handle = unsafe { handle.as_ref() }.ok_or_else(|| Error::null("the handle"))?;
        handle.check()?;
        let yes = handle.task.cancel();
        // SAFETY: null or a place for a number.
        if let Some(out) = unsafe { cancelled.as_mut() } {
            *out = c_int::from(yes);
        }
        Ok(())
    })
}

/// Whether a task has ended: 1 or 0; -1 for NULL; 0 in a child of the process in which it was
/// spawned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_handle_is_finished(handle: *const poach_handle) -> c_int {
    // SAFETY: null or a handle.
    unsafe { handle.as_ref() }.map_or(-1, |handle| c_int::from(handle.task.is_finished()))
}

/// Frees a handle: the task goes on, and nobody asks for its result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_handle_free(handle: *mut poach_handle) -> poach_status {
    guard(|| {
        // SAFETY: null or a handle that is given up here.
        drop(unsafe { take(handle) }?);
        Ok(())
    })
}

unsafe fn take(handle: *mut poach_handle) -> Result<Box<poach_handle>, Error> {
    if ptr::eq(handle, ptr::null()) {
        return Err(Error::null("the handle"));
    }
    // SAFETY: made by `poach_spawn`, and given up by who calls.
    Ok(unsafe { Box::from_raw(handle) })
}
