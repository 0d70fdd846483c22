//! What `lace.h` does not do in its macros: the one pool, the ways into it, and what all workers do together.
//!
//! Lace's functions return nothing, so what goes wrong here ends the process with a message.

use std::cell::Cell;
use std::ffi::{c_char, c_uint, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use poach_runtime::{
    Stats, ThreadPool, broadcast, check, current_num_threads, current_thread_index, yield_now,
};

use crate::call::{Context, check_frames, fatal};
use crate::fork::{Run, address, poach_worker, run_body};
use crate::pool::{poach_body, process};

/// How many frames (`NEWFRAME`, `TOGETHER`) are under way: what `lace_newframe.t` is.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name is C's")]
pub static poach_lace_frames: AtomicUsize = AtomicUsize::new(0);

/// What `lace_start` makes and `lace_stop` ends, with the process whose threads they are.
static POOL: Mutex<Option<(Arc<ThreadPool>, u64)>> = Mutex::new(None);
/// What the next pool's threads have as call stacks; 0: the default.
static STACK_SIZE: AtomicUsize = AtomicUsize::new(0);
/// The counters as they stood when they were reset.
static RESET: Mutex<Option<Stats>> = Mutex::new(None);
static BARRIER: Barrier = Barrier { state: Mutex::new((0, 0)), passed: Condvar::new() };

/// Where all workers wait for each other: how many have come, and which time it is.
struct Barrier {
    state: Mutex<(usize, u64)>,
    passed: Condvar,
}

impl Barrier {
    fn wait(&self, workers: usize) {
        let mut state = lock(&self.state);
        state.0 += 1;
        if state.0 >= workers {
            *state = (0, state.1.wrapping_add(1));
            self.passed.notify_all();
        } else {
            let time = state.1;
            let waits = |state: &mut (usize, u64)| state.1 == time;
            drop(self.passed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was started in this process. In a child of `fork` the parent's threads are not there: what it started is forgotten, as nothing can
/// be done with it.
fn started() -> MutexGuard<'static, Option<(Arc<ThreadPool>, u64)>> {
    let mut pool = lock(&POOL);
    if pool.as_ref().is_some_and(|(_, of)| *of != process()) {
        mem::forget(pool.take());
    }
    pool
}

fn pool() -> Arc<ThreadPool> {
    match &*started() {
        Some((pool, _)) => Arc::clone(pool),
        None => fatal("a task of Lace's before lace_start, after lace_stop, or in a child of fork"),
    }
}

fn stats() -> Option<Stats> {
    started().as_ref().map(|(pool, _)| pool.stats())
}

/// A frame that is under way, for those who wait for it to begin.
struct Frame;

impl Frame {
    fn begin() -> Frame {
        // Release: pairs with the load in `lace.h`.
        poach_lace_frames.fetch_add(1, Ordering::Release);
        Frame
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // Release: as above.
        poach_lace_frames.fetch_sub(1, Ordering::Release);
    }
}

/// `lace_start`: so many workers, or one for each processor, and so many slots for each, or 100,000.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_start(workers: c_uint, slots: usize) {
    check_frames();
    let mut pool = started();
    if pool.is_some() {
        fatal("lace_start twice, without lace_stop in between");
    }
    let workers = if workers == 0 { poach_lace_pu_count() } else { workers };
    let mut builder = ThreadPool::builder().threads(workers as usize).task_stack(if slots == 0 {
        100_000
    } else {
        slots
    });
    // Relaxed: set by the thread that calls this, if at all.
    let stack_size = STACK_SIZE.load(Ordering::Relaxed);
    if stack_size != 0 {
        builder = builder.stack_size(stack_size);
    }
    match builder.build() {
        Ok(made) => *pool = Some((Arc::new(made), process())),
        Err(error) => fatal(&format!("lace_start: {error}")),
    }
}

/// `lace_stop`. What another thread's `RUN` has begun comes to its end, there.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_stop() {
    check_frames();
    if current_thread_index().is_some() {
        fatal("lace_stop in a task");
    }
    let pool = started().take();
    *lock(&RESET) = None;
    drop(pool);
}

/// `RUN`: runs a body on one of the workers, which the calling thread may be itself, and waits for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_lace_run(body: poach_body, context: *mut c_void) {
    // SAFETY: by this function's contract.
    unsafe { enter(body, context, |pool, run| pool.install(|| poach_runtime::worker(run))) }
}

/// `NEWFRAME`: as `RUN`, while all workers leave what they do and take part in this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_lace_newframe(body: poach_body, context: *mut c_void) {
    let frame = Frame::begin();
    let run = |pool: &ThreadPool, run: &Run<'_>| {
        pool.interrupt(|| poach_runtime::worker(run));
    };
    // SAFETY: by this function's contract.
    unsafe { enter_frame(body, context, run) };
    drop(frame);
}

/// `TOGETHER`: all workers leave what they do and run the body, each once: they begin together and end together.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_lace_together(body: poach_body, context: *mut c_void) {
    let frame = Frame::begin();
    let run = |pool: &ThreadPool, run: &Run<'_>| {
        pool.interrupt(|| {
            broadcast(|at| {
                BARRIER.wait(at.num_threads());
                poach_runtime::worker(run);
                BARRIER.wait(at.num_threads());
            });
        });
    };
    // SAFETY: by this function's contract.
    unsafe { enter_frame(body, context, run) };
    drop(frame);
}

fn with_run<R>(body: poach_body, context: *mut c_void, f: impl FnOnce(&Run<'_>) -> R) -> R {
    check_frames();
    let Some(body) = body else { fatal("a task of Lace's that is NULL") };
    let context = Context(context);
    f(&|worker| run_body(body, address(worker), context.get()))
}

/// Runs the body as it is where the calling thread is a worker; else by `outside`.
unsafe fn enter(
    body: poach_body,
    context: *mut c_void,
    outside: impl FnOnce(&ThreadPool, &Run<'_>),
) {
    with_run(body, context, |run| {
        if current_thread_index().is_some() {
            poach_runtime::worker(run);
        } else {
            outside(&pool(), run);
        }
    });
}

/// Runs `frame`, with the pool.
unsafe fn enter_frame(
    body: poach_body,
    context: *mut c_void,
    frame: impl FnOnce(&ThreadPool, &Run<'_>),
) {
    with_run(body, context, |run| frame(&pool(), run));
}

/// `lace_barrier`: waits until all workers have come here.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_barrier() {
    check_frames();
    if current_thread_index().is_some() {
        BARRIER.wait(current_num_threads());
    }
}

/// `lace_workers`: how many there are; 0 before `lace_start`.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_workers() -> c_uint {
    started().as_ref().map_or(0, |(pool, _)| pool.threads() as c_uint)
}

/// `lace_get_pu_count`: the processors that this process may use.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_pu_count() -> c_uint {
    thread::available_parallelism().map_or(1, |count| count.get() as c_uint)
}

/// `lace_set_stacksize`: the call stack of the threads that the next `lace_start` makes, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_set_stacksize(bytes: usize) {
    STACK_SIZE.store(bytes, Ordering::Relaxed);
}

/// `lace_get_stacksize`: what was set; 0: the default.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_get_stacksize() -> usize {
    STACK_SIZE.load(Ordering::Relaxed)
}

/// `YIELD_NEWFRAME`: takes part in a frame, if there is one.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_yield() {
    check_frames();
    check();
}

/// `STEAL_RANDOM`: runs a task of somebody's, if there is one.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_steal() {
    check_frames();
    yield_now();
}

/// `LACE_TRNG`: a number from the thread's own series.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_random() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }
    STATE
        .try_with(|state| {
            let mut x = state.get();
            if x == 0 {
                // Where it stands differs from thread to thread.
                x = ptr::from_ref(state).addr() as u64 | 1;
            }
            // Marsaglia's xorshift, and Vigna's multiplier for the bits above.
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            state.set(x);
            x.wrapping_mul(0x2545_F491_4F6C_DD1D)
        })
        .unwrap_or(0)
}

/// `lace_count_reset`: the report counts from here.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_count_reset() {
    *lock(&RESET) = stats();
}

/// `lace_count_report_file`: what the workers have done, as a table. Writes `length` bytes to `buffer` at most, the last of which is 0, and returns how
/// many the whole has, without that 0: as `snprintf` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_lace_report(buffer: *mut c_char, length: usize) -> usize {
    let Some(stats) = stats() else { return 0 };
    let text = match &*lock(&RESET) {
        Some(earlier) => stats.since(earlier).to_string(),
        None => stats.to_string(),
    };
    if !buffer.is_null() && length != 0 {
        let written = text.len().min(length - 1);
        // SAFETY: the buffer has so many bytes, and is the caller's.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, written) };
        // SAFETY: as above: `written` is less than the length.
        let end = unsafe { buffer.add(written) };
        // SAFETY: as above.
        unsafe { end.write(0) };
    }
    text.len()
}

/// The worker of the calling thread, which must be one.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_head() -> *mut poach_worker {
    let worker = crate::fork::poach_current_worker();
    if worker.is_null() {
        fatal("SPAWN, SYNC or CALL on a thread that is no worker: use RUN");
    }
    worker
}
