//! Thread pools.
//!
//! A handle is never freed, so that the use of a pool after its end is an error: 40 bytes for each
//! pool that was ever made. The pool itself is freed when it ends.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use poach_runtime::config::{MAX_THREADS, Waiting};
use poach_runtime::{BuildError, ThreadPool, ThreadPoolBuilder, Worker};

use crate::call::{Context, call};
use crate::fork::{Run, address, poach_worker, run_body};
use crate::shared;
use crate::status::poach_status::{
    POACH_BUSY, POACH_CLOSED, POACH_FORKED, POACH_INVALID, POACH_NO_MEMORY,
};
use crate::status::{Error, guard, poach_status};

/// What a worker does while a fork of its own runs elsewhere.
pub const POACH_WAIT_RANDOM: c_int = 0;
/// It takes forks of the thief and of those that the thief waits for.
pub const POACH_WAIT_TRANSITIVE: c_int = 1;
/// It takes forks of the thief.
pub const POACH_WAIT_LEAPFROG: c_int = 2;
/// It takes nothing.
pub const POACH_WAIT_SLEEP: c_int = 3;

/// How a pool is made. Set all to zero first: zero is each field's default.
#[repr(C)]
pub struct poach_pool_options {
    /// Workers; 0: one for each processor, or as many as `POACH_THREADS` says.
    pub threads: c_int,
    /// Of `POACH_WAIT_..`.
    pub waiting: c_int,
    /// Threads that take the places of those that block.
    pub spares: c_int,
    /// Not 0: `poach_run` and the like hand their body to the pool's own threads.
    pub callers_do_not_work: c_int,
    /// Bytes of a thread's call stack.
    pub stack_size: usize,
    /// Forks that may be pending on one worker.
    pub task_stack: usize,
}

/// A thread pool.
pub struct poach_pool {
    /// Calls under way; [`ENDED`] when the pool is gone.
    users: AtomicUsize,
    /// Null: the global pool.
    pool: AtomicPtr<ThreadPool>,
    /// The process in which it was made.
    forks: u64,
    /// The handle made before, so that a search for leaks finds them all.
    older: AtomicPtr<poach_pool>,
}

const ENDED: usize = usize::MAX;

// Any thread may use a pool, several at once, and end it.
const _: () = shared::<ThreadPool>();

/// How often this process was forked from the first one with a pool.
static FORKS: AtomicU64 = AtomicU64::new(0);
/// The handle made last.
static NEWEST: AtomicPtr<poach_pool> = AtomicPtr::new(ptr::null_mut());
static GLOBAL: poach_pool = poach_pool {
    users: AtomicUsize::new(0),
    pool: AtomicPtr::new(ptr::null_mut()),
    forks: 0,
    older: AtomicPtr::new(ptr::null_mut()),
};

/// Identifies this process: the number of forks since the first call.
pub(crate) fn process() -> u64 {
    watch_forks();
    // Relaxed: changed in a child that has one thread.
    FORKS.load(Ordering::Relaxed)
}

/// Counts forks from now on.
fn watch_forks() {
    #[cfg(unix)]
    {
        extern "C" fn in_the_child() {
            // Relaxed: the child has one thread.
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        // No `Once`, which a thread of the parent may be at when another forks: the child would
        // wait for it. Registered several times, the handler counts a fork several times,
        // which is as good.
        static WATCHED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
        // Acquire: pairs with the store below. A thread that sees `true` knows that the handler is
        // registered.
        if !WATCHED.load(Ordering::Acquire) {
            // SAFETY: the handler is a function that touches one atomic word.
            _ = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
            WATCHED.store(true, Ordering::Release);
        }
    }
}

/// A call that uses the pool. Dropped when it is over.
struct Use<'p>(&'p poach_pool);

impl Drop for Use<'_> {
    fn drop(&mut self) {
        // Release: what the call did with the pool comes before its end; pairs with
        // `poach_pool_end`.
        self.0.users.fetch_sub(1, Ordering::Release);
    }
}

impl poach_pool {
    fn begin(&self) -> Result<Use<'_>, Error> {
        if !ptr::eq(self, &raw const GLOBAL) && self.forks != FORKS.load(Ordering::Relaxed) {
            return Err(POACH_FORKED.into());
        }
        // Acquire: pairs with the release of the thread that made the pool.
        let begun = self.users.fetch_update(Ordering::Acquire, Ordering::Relaxed, |users| {
            (users != ENDED).then(|| users + 1)
        });
        begun.map_err(|_| Error::new(POACH_CLOSED, "the pool has ended"))?;
        Ok(Use(self))
    }
}

/// Calls `f` with the pool of a handle.
pub(crate) unsafe fn with<R>(
    pool: *const poach_pool,
    f: impl FnOnce(&ThreadPool) -> Result<R, Error>,
) -> Result<R, Error> {
    // SAFETY: null or a handle, which is never freed.
    let handle = unsafe { pool.as_ref() }.ok_or_else(|| Error::null("the pool"))?;
    let begun = handle.begin()?;
    let pool = handle.pool.load(Ordering::Acquire);
    // SAFETY: null or a pool that lives as long as there are users, of whom this is one.
    let result = match unsafe { pool.as_ref() } {
        Some(pool) => f(pool),
        None => f(poach_runtime::global()),
    };
    drop(begun);
    result
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Error {
        let status = match error {
            BuildError::Threads(_) | BuildError::Environment { .. } => POACH_INVALID,
            _ => POACH_NO_MEMORY,
        };
        Error::new(status, error.to_string())
    }
}

fn non_negative(value: c_int, what: &str) -> Result<usize, Error> {
    usize::try_from(value)
        .map_err(|_| Error::new(POACH_INVALID, format!("{what}: {value} is less than 0")))
}

fn builder(options: &poach_pool_options) -> Result<ThreadPoolBuilder<'static>, Error> {
    let threads = non_negative(options.threads, "threads")?;
    let spares = non_negative(options.spares, "spares")?;
    if threads > MAX_THREADS {
        let message = format!("threads: {threads}, of {MAX_THREADS} at most");
        return Err(Error::new(POACH_INVALID, message));
    }
    let waiting = match options.waiting {
        POACH_WAIT_RANDOM => Waiting::Random,
        POACH_WAIT_TRANSITIVE => Waiting::Transitive,
        POACH_WAIT_LEAPFROG => Waiting::Leapfrog,
        POACH_WAIT_SLEEP => Waiting::Sleep,
        other => return Err(Error::new(POACH_INVALID, format!("waiting: there is no {other}"))),
    };
    let mut builder =
        ThreadPool::builder().waiting(waiting).callers_work(options.callers_do_not_work == 0);
    if threads != 0 {
        builder = builder.num_threads(threads);
    }
    if spares != 0 {
        builder = builder.spares(spares);
    }
    if options.stack_size != 0 {
        builder = builder.stack_size(options.stack_size);
    }
    if options.task_stack != 0 {
        builder = builder.task_stack(options.task_stack);
    }
    Ok(builder)
}

const DEFAULTS: poach_pool_options = poach_pool_options {
    threads: 0,
    waiting: POACH_WAIT_RANDOM,
    spares: 0,
    callers_do_not_work: 0,
    stack_size: 0,
    task_stack: 0,
};

/// Makes a pool, in `*pool`. `options` may be NULL: all defaults.
///
/// POACH_INVALID: threads below 0, or more than 1,024, or another option out of range;
/// POACH_NO_MEMORY: the system refuses threads or memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_pool_new(
    options: *const poach_pool_options,
    pool: *mut *mut poach_pool,
) -> poach_status {
    guard(|| {
        // SAFETY: null or options.
        let options = unsafe { options.as_ref() }.unwrap_or(&DEFAULTS);
        // SAFETY: null or a place for a pointer.
        let out = unsafe { pool.as_mut() }.ok_or_else(|| Error::null("`pool`"))?;
        *out = ptr::null_mut();
        watch_forks();
        let made = builder(options)?.build()?;
        let handle = Box::into_raw(Box::new(poach_pool {
            users: AtomicUsize::new(0),
            pool: AtomicPtr::new(Box::into_raw(Box::new(made))),
            forks: FORKS.load(Ordering::Relaxed),
            older: AtomicPtr::new(ptr::null_mut()),
        }));
        // Relaxed: the list is for nobody but a search for leaks.
        let older = NEWEST.swap(handle, Ordering::Relaxed);
        // SAFETY: made just now, and never freed.
        unsafe { &*handle }.older.store(older, Ordering::Relaxed);
        *out = handle;
        Ok(())
    })
}

/// The global pool, made when it is first used. It has no end.
#[unsafe(no_mangle)]
pub extern "C" fn poach_pool_global() -> *mut poach_pool {
    (&raw const GLOBAL).cast_mut()
}

/// Ends a pool: its workers finish what was spawned and end. Waits for them, unless the caller is
/// one of them. From here on every call with the pool is POACH_CLOSED.
///
/// POACH_BUSY, and nothing is done, while another call with this pool is under way; POACH_CLOSED if
/// it has ended; POACH_INVALID: the global pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_pool_end(pool: *mut poach_pool) -> poach_status {
    guard(|| {
        // SAFETY: null or a handle, which is never freed.
        let handle = unsafe { pool.as_ref() }.ok_or_else(|| Error::null("the pool"))?;
        if ptr::eq(handle, &raw const GLOBAL) {
            return Err(Error::new(POACH_INVALID, "the global pool does not end"));
        }
        // Acquire: what the last user did comes first; pairs with `Use::drop`.
        handle
            .users
            .compare_exchange(0, ENDED, Ordering::Acquire, Ordering::Relaxed)
            .map_err(|users| Error::from(if users == ENDED { POACH_CLOSED } else { POACH_BUSY }))?;
        let pool = handle.pool.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: made by `poach_pool_new`, and taken once, by the thread that has set ENDED.
        drop(unsafe { Box::from_raw(pool) });
        Ok(())
    })
}

/// The number of a pool's workers, in `*threads`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_pool_threads(
    pool: *const poach_pool,
    threads: *mut usize,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for a number.
        let out = unsafe { threads.as_mut() }.ok_or_else(|| Error::null("`threads`"))?;
        // SAFETY: null or a handle.
        *out = unsafe { with(pool, |pool| Ok(pool.threads())) }?;
        Ok(())
    })
}

/// What is run as a worker.
pub type poach_body =
    Option<unsafe extern "C-unwind" fn(worker: *mut poach_worker, context: *mut c_void)>;

/// Runs `body` with the pool in some `way`.
unsafe fn run_by(
    pool: *const poach_pool,
    body: poach_body,
    context: *mut c_void,
    way: impl FnOnce(&ThreadPool, &Run<'_>),
) -> poach_status {
    guard(|| {
        let body = body.ok_or_else(|| Error::null("the body"))?;
        let context = Context(context);
        let run = |worker: Worker<'_>| run_body(body, address(worker), context.get());
        let way = |pool: &ThreadPool| {
            way(pool, &run);
            Ok(())
        };
        // SAFETY: null or a handle, by this function's contract.
        unsafe { with(pool, way) }
    })
}

/// Runs `body` as a worker of the pool: on the calling thread, which is one more worker for as
/// long, unless the pool is full of callers or was made otherwise. Returns when it has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_run(
    pool: *const poach_pool,
    body: poach_body,
    context: *mut c_void,
) -> poach_status {
    // SAFETY: by this function's contract.
    unsafe { run_by(pool, body, context, |pool, run| pool.run(run)) }
}

/// As `poach_run`, always on one of the pool's own threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_install(
    pool: *const poach_pool,
    body: poach_body,
    context: *mut c_void,
) -> poach_status {
    let install = |pool: &ThreadPool, run: &Run<'_>| pool.install(|| poach_runtime::worker(run));
    // SAFETY: by this function's contract.
    unsafe { run_by(pool, body, context, install) }
}

/// Stops what all workers of the pool do, at their next cooperation point, runs `body` to its end
/// with all of them, and resumes.
///
/// A worker comes to a cooperation point where it waits for a stolen fork, between two tasks, and
/// in `poach_check`. Forks and tasks of the body are shared by all workers; none of the suspended
/// tasks runs meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_interrupt(
    pool: *const poach_pool,
    body: poach_body,
    context: *mut c_void,
) -> poach_status {
    let interrupt = |pool: &ThreadPool, run: &Run<'_>| {
        pool.interrupt(|| poach_runtime::worker(run));
    };
    // SAFETY: by this function's contract.
    unsafe { run_by(pool, body, context, interrupt) }
}

/// A point at which the calling thread, if it is a worker, can be interrupted.
#[unsafe(no_mangle)]
pub extern "C" fn poach_check() -> poach_status {
    guard(|| {
        poach_runtime::check();
        Ok(())
    })
}

/// Runs `body` once on each of the pool's own threads, and waits for all. It is given the thread's
/// index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_broadcast(
    pool: *const poach_pool,
    body: Option<unsafe extern "C-unwind" fn(index: usize, threads: usize, context: *mut c_void)>,
    context: *mut c_void,
) -> poach_status {
    guard(|| {
        let body = body.ok_or_else(|| Error::null("the body"))?;
        let context = Context(context);
        let broadcast = |pool: &ThreadPool| {
            pool.broadcast(|at| {
                let (index, threads) = (at.index(), at.num_threads());
                // SAFETY: the body may be called with its context on any thread.
                call(|| unsafe { body(index, threads, context.get()) });
            });
            Ok(())
        };
        // SAFETY: null or a handle.
        unsafe { with(pool, broadcast) }
    })
}

/// What the workers of a pool have done since it was made.
#[repr(C)]
pub struct poach_stats {
    /// Spawned tasks that were run.
    pub tasks: u64,
    /// Forks and tasks that were stolen.
    pub steals: u64,
    /// Of them, while waiting for a stolen fork.
    pub leaps: u64,
    /// How often owners shared forks.
    pub grows: u64,
    /// How often owners took shared ones back.
    pub shrinks: u64,
    /// How often a worker fell asleep.
    pub sleeps: u64,
}

/// What the workers of a pool have done, in `*stats`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poach_pool_stats(
    pool: *const poach_pool,
    stats: *mut poach_stats,
) -> poach_status {
    guard(|| {
        // SAFETY: null or a place for them.
        let out = unsafe { stats.as_mut() }.ok_or_else(|| Error::null("`stats`"))?;
        // SAFETY: null or a handle.
        let total = unsafe { with(pool, |pool| Ok(pool.stats().total())) }?;
        *out = poach_stats {
            tasks: total.tasks,
            steals: total.steals,
            leaps: total.leaps,
            grows: total.grows,
            shrinks: total.shrinks,
            sleeps: total.sleeps,
        };
        Ok(())
    })
}
