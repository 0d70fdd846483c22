//! Loops that split themselves, and what a worker may ask for.

use std::ffi::{c_int, c_void};

use poach_parallel::WorkerLoops as _;
use poach_runtime::{ThreadPool, yield_now};

use crate::call::{Context, call};
use crate::pool::{poach_pool, with};
use crate::status::poach_status::{POACH_INVALID, POACH_NO_WORKER};
use crate::status::{Error, guard, poach_status};

/// Calls `body` with each number from `begin` to before `end`, in parallel: no number twice, in no
/// order. Returns when all have returned.
///
/// The loop splits itself where a worker is idle, so short bodies are all right.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_par_for(
    pool: *const poach_pool,
    begin: usize,
    end: usize,
    body: Option<unsafe extern "C-unwind" fn(index: usize, context: *mut c_void)>,
    context: *mut c_void,
) -> poach_status {
    guard(|| {
        let body = body.ok_or_else(|| Error::null("the body"))?;
        let context = Context(context);
        let each = |index: usize| {
            // SAFETY: the body may be called with its context on any thread.
            call(|| unsafe { body(index, context.get()) });
        };
        let run = |pool: &ThreadPool| {
            pool.run(|mut worker| worker.par_for(begin..end, each));
            Ok(())
        };
        // SAFETY: null or a handle.
        unsafe { with(pool, run) }
    })
}

/// As `poach_par_for`, with ranges: `body` is called with each piece of `begin` to before `end`, of
/// `grain` numbers but for the last.
///
/// POACH_INVALID: a grain of 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_par_for_ranges(
    pool: *const poach_pool,
    begin: usize,
    end: usize,
    grain: usize,
    body: Option<unsafe extern "C-unwind" fn(begin: usize, end: usize, context: *mut c_void)>,
    context: *mut c_void,
) -> poach_status {
    guard(|| {
        let body = body.ok_or_else(|| Error::null("the body"))?;
        if grain == 0 {
            return Err(Error::new(
                POACH_INVALID,
                "ranges of no numbers: give a grain of at least 1",
            ));
        }
        let context = Context(context);
        let pieces = end.saturating_sub(begin).div_ceil(grain);
        let each = |piece: usize| {
            let first = begin + piece * grain;
            let last = first + grain.min(end - first);
            // SAFETY: the body may be called with its context on any thread.
            call(|| unsafe { body(first, last, context.get()) });
        };
        let run = |pool: &ThreadPool| {
            pool.run(|mut worker| worker.par_for(0..pieces, each));
            Ok(())
        };
        // SAFETY: null or a handle.
        unsafe { with(pool, run) }
    })
}

/// Runs one other task on the calling worker, if there is one: `*ran`, which may be NULL, is 1
/// then.
///
/// POACH_NO_WORKER: the thread is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_yield(ran: *mut c_int) -> poach_status {
    guard(|| {
        let outcome = yield_now().ok_or(Error::from(POACH_NO_WORKER))?;
        // SAFETY: null or a place for a number.
        if let Some(out) = unsafe { ran.as_mut() } {
            *out = c_int::from(outcome == poach_runtime::Yield::Executed);
        }
        Ok(())
    })
}
