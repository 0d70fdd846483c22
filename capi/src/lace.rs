//! What `lace.h` does not do in its macros: the one pool, the ways into it, and what all workers do
//! together.
//!
//! Lace's functions return nothing, so what goes wrong here ends the process with a message.

use std::cell::Cell;
use std::ffi::{c_char, c_uint, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use poach_runtime::foreign::{self, Wake};
use poach_runtime::stats::Stats;
use poach_runtime::{
    ThreadPool, broadcast, check, current_num_threads, current_thread_index, yield_now,
};

use crate::call::{Context, check_frames, fatal};
use crate::fork::{Run, address, poach_worker, run_body};
use crate::pool::{poach_body, process};

/// How many frames (`NEWFRAME`, `TOGETHER`) are under way: what `lace_newframe.t` is.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name is C's")]
pub static poach_lace_frames: AtomicUsize = AtomicUsize::new(0);

/// What belongs to one process. A child of `fork` makes its own, and never looks at its parent's:
/// the threads of that pool are not there, and a lock may be held for ever by one of them.
pub(crate) struct Here {
    process: u64,
    /// What `lace_start` makes and `lace_stop` ends.
    pool: Mutex<Option<Arc<ThreadPool>>>,
    /// The counters as they stood when they were reset.
    reset: Mutex<Option<Stats>>,
    /// Where workers meet that are in no frame.
    barrier: Barrier,
    /// When `lace_gethrtime` began to count: the same in a child as in its parent.
    pub(crate) began: Instant,
    /// The parent's, so that a search for leaks finds it.
    _older: *mut Here,
}

static HERE: AtomicPtr<Here> = AtomicPtr::new(ptr::null_mut());

/// What the next pool's threads have as call stacks; 0: the default.
static STACK_SIZE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Where the workers of this thread's innermost `TOGETHER` meet; null if there is none.
    static MEETING: Cell<*const Barrier> = const { Cell::new(ptr::null()) };
}

/// A barrier of all workers, with the workers that have arrived. A waiting worker takes part in
/// frames that begin meanwhile.
struct Barrier(Mutex<Vec<Wake>>);

impl Barrier {
    const fn new() -> Barrier {
        Barrier(Mutex::new(Vec::new()))
    }

    fn wait(&self, workers: usize) {
        foreign::wait(|wake| {
            let mut here = lock(&self.0);
            here.push(wake);
            if here.len() >= workers {
                // They may come again while these are woken.
                let all = mem::take(&mut *here);
                drop(here);
                drop(all);
            }
        });
    }

    /// Runs `f` with this as the place where `lace_barrier` waits.
    fn within(&self, f: impl FnOnce()) {
        let outer = MEETING.replace(self);
        f();
        MEETING.set(outer);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This process's. Lock-free.
pub(crate) fn here() -> &'static Here {
    // Acquire: pairs with the exchange below, before which it was made.
    let current = HERE.load(Ordering::Acquire);
    // SAFETY: null, or stored below, and then never freed.
    match unsafe { current.as_ref() } {
        Some(here) if here.process == process() => here,
        _ => begin(current),
    }
}

/// `here` of a process in which nobody has asked for it.
#[cold]
fn begin(older: *mut Here) -> &'static Here {
    // SAFETY: null, or a box that was made by another call of this function, and is never freed.
    let began = unsafe { older.as_ref() }.map_or_else(Instant::now, |older| older.began);
    let own = Box::new(Here {
        process: process(),
        pool: Mutex::new(None),
        reset: Mutex::new(None),
        barrier: Barrier::new(),
        began,
        _older: older,
    });
    let own = Box::into_raw(own);
    // Release: a thread that loads the pointer sees what it points to. Acquire: as in `here`, if
    // another thread was first.
    match HERE.compare_exchange(older, own, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: it came from a box just now, and is never freed.
        Ok(_) => unsafe { &*own },
        Err(others) => {
            // SAFETY: it came from a box just now, and nobody else has seen it.
            drop(unsafe { Box::from_raw(own) });
            // SAFETY: stored by another thread of this process, here, and never freed.
            unsafe { &*others }
        }
    }
}

/// What was started in this process.
fn started() -> MutexGuard<'static, Option<Arc<ThreadPool>>> {
    lock(&here().pool)
}

fn pool() -> Arc<ThreadPool> {
    match &*started() {
        Some(pool) => Arc::clone(pool),
        None => fatal("a task of Lace's before lace_start, after lace_stop, or in a child of fork"),
    }
}

fn stats() -> Option<Stats> {
    started().as_ref().map(|pool| pool.stats())
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

/// `lace_start`: starts `workers` workers (0: one for each processor), with `slots` slots each (0:
/// 100,000).
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_start(workers: c_uint, slots: usize) {
    check_frames();
    let mut pool = started();
    if pool.is_some() {
        fatal("lace_start twice, without lace_stop in between");
    }
    let workers = if workers == 0 { poach_lace_pu_count() } else { workers };
    let mut builder = ThreadPool::builder()
        .num_threads(workers as usize)
        .task_stack(if slots == 0 { 100_000 } else { slots });
    // Relaxed: set by the thread that calls this, if at all.
    let stack_size = STACK_SIZE.load(Ordering::Relaxed);
    if stack_size != 0 {
        builder = builder.stack_size(stack_size);
    }
    match builder.build() {
        Ok(made) => *pool = Some(Arc::new(made)),
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
    *lock(&here().reset) = None;
    drop(pool);
}

/// `RUN`: runs a body on one of the workers, which the calling thread may be itself, and waits for
/// it.
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

/// `TOGETHER`: all workers interrupt their work and run the body, each once. They begin together and
/// end together. A worker that has run the body works for the others, and takes part in their frames,
/// until all have run it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_lace_together(body: poach_body, context: *mut c_void) {
    let frame = Frame::begin();
    let run = |pool: &ThreadPool, run: &Run<'_>| {
        pool.interrupt(|| {
            let (start, barrier) = (Barrier::new(), Barrier::new());
            broadcast(|at| {
                start.wait(at.num_threads());
                barrier.within(|| poach_runtime::worker(run));
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

/// `lace_barrier`: waits until all workers have come here, each in its call of the innermost
/// `TOGETHER`'s task, which has a barrier of its own. It takes part in frames that begin meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_barrier() {
    check_frames();
    if current_thread_index().is_some() {
        // SAFETY: null, or that of a `TOGETHER` whose call on this thread is under way.
        let barrier = unsafe { MEETING.get().as_ref() }.unwrap_or(&here().barrier);
        barrier.wait(current_num_threads());
    }
}

/// `lace_workers`: how many there are; 0 before `lace_start`.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_workers() -> c_uint {
    started().as_ref().map_or(0, |pool| pool.threads() as c_uint)
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
    let now = stats();
    *lock(&here().reset) = now;
}

/// `lace_count_report_file`: what the workers have done, as a table. Writes `length` bytes to
/// `buffer` at most, the last of which is 0, and returns how many the whole has, without that 0: as
/// `snprintf` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_lace_report(buffer: *mut c_char, length: usize) -> usize {
    let Some(stats) = stats() else { return 0 };
    let text = match &*lock(&here().reset) {
        Some(earlier) => stats.since(earlier).to_string(),
        None => stats.to_string(),
    };
    if !buffer.is_null() && length != 0 {
        let written = text.len().min(length - 1);
        // SAFETY: the buffer has `length` bytes, and belongs to the caller.
        unsafe { ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, written) };
        // SAFETY: `written` is less than the length.
        let end = unsafe { buffer.add(written) };
        // SAFETY: `written` is less than the length, so the end is within the buffer.
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

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::c_int;

    use super::*;

    /// What a child says that runs `f`, with some seconds for it: its exit status as `waitpid` has
    /// it.
    fn in_a_child(f: impl FnOnce() -> bool) -> c_int {
        // SAFETY: the child goes on in this function alone, and leaves without any destructor.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: a call of the system's without conditions.
            unsafe { libc::alarm(60) };
            let code = if f() { 7 } else { 1 };
            // SAFETY: a call of the system's without conditions.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: a child of this process, and a place for its status.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        status
    }

    #[test]
    fn a_child_waits_for_no_lock_of_its_parent() {
        let (pool, reset, barrier) = (started(), lock(&here().reset), lock(&here().barrier.0));
        let before = crate::lace2::poach_lace_time();
        let status = in_a_child(|| {
            poach_lace_count_reset();
            poach_lace_workers() == 0
                && lock(&here().barrier.0).is_empty()
                // The clock goes on as in the parent.
                && crate::lace2::poach_lace_time() >= before
        });
        assert_eq!(status, 7 << 8, "{status:#x}");
        drop((pool, reset, barrier));
        assert_eq!(poach_lace_workers(), 0);
    }
}
