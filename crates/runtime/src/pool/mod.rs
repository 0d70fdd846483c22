//! Thread pools: made by a builder, entered by `install` or `run`, closed when dropped.

pub(crate) mod allocate;
pub(crate) mod build_error;
mod builder;
mod environment;
pub(crate) mod gate;
mod global;
pub(crate) mod guests;
pub(crate) mod threads;

use std::fmt;
use std::panic::{self, RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle as ThreadHandle;

pub use builder::ThreadPoolBuilder;
pub use global::global;

use build_error::BuildError;

use crate::pool::guests::Guests;
use crate::shared::{PoolShared, Priority};
use crate::sleep::Caller;
use crate::task::frame::FrameTask;
use crate::task::half::Worker;
use crate::task::panic::dispose;
use crate::worker::current::WorkerThread;
use crate::worker::signal::Signal;

/// A pool of workers.
///
/// Dropping it lets the workers finish what was spawned, ends them, and waits for them. A pool that
/// is dropped by one of its own workers, or was [told not to
/// wait](ThreadPoolBuilder::join_on_drop), does not wait. Pools nest: a worker that calls into
/// another pool works for its own pool while it waits.
pub struct ThreadPool {
    pub(crate) shared: Arc<PoolShared>,
    guests: Guests,
    threads: Mutex<Vec<ThreadHandle<()>>>,
    /// Whether its drop waits for the threads.
    pub(crate) joins_on_drop: bool,
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool").field("threads", &self.threads()).finish_non_exhaustive()
    }
}

// A panic of foreign code leaves a pool as it was: see the table in `task/panic`.
impl UnwindSafe for ThreadPool {}
impl RefUnwindSafe for ThreadPool {}

impl ThreadPool {
    /// A pool with a worker for each processor, or with as many as the environment variable
    /// `POACH_THREADS` says. For all other settings there is the
    /// [`builder`](ThreadPool::builder).
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// let pool = poach::ThreadPool::new()?;
    /// assert_eq!(pool.run(|_| poach::join(|| 1, || 2)), (1, 2));
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ThreadPoolBuilder::build`].
    pub fn new() -> Result<ThreadPool, BuildError> {
        ThreadPool::builder().build()
    }

    pub(crate) fn shared(&self) -> &Arc<PoolShared> {
        &self.shared
    }

    /// The number of regular workers. Spare workers and threads from outside have
    /// [indices](ThreadPool::index_limit) from this number on.
    pub fn threads(&self) -> usize {
        self.shared.threads
    }

    /// The length of an array with an element for each [index](crate::current_thread_index) in this
    /// pool. It is [`threads`](ThreadPool::threads), and one more for each
    /// [spare](ThreadPoolBuilder::spares) worker and each [thread from
    /// outside](ThreadPoolBuilder::callers) that can work for the pool at the same time.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// let pool = poach::ThreadPool::builder().num_threads(2).spares(1).build()?;
    /// let calls: Vec<_> = (0..pool.index_limit()).map(|_| std::sync::Mutex::new(0)).collect();
    /// let count = || *calls[poach::current_thread_index().unwrap()].lock().unwrap() += 1;
    /// pool.install(|| poach::scope(|s| (0..10).for_each(|_| s.spawn(|_| count()))));
    /// assert_eq!(calls.iter().map(|calls| *calls.lock().unwrap()).sum::<i32>(), 10);
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    pub fn index_limit(&self) -> usize {
        self.shared.workers.len()
    }

    /// Runs `f` on one of this pool's own threads and waits for its result. Inside it,
    /// [`join`](crate::join), [`scope`](crate::scope) and [`spawn`](crate::spawn) use this
    /// pool.
    ///
    /// So `f` has the pool's stack size and its threads' thread-local variables, not the caller's.
    /// On one of this pool's own threads this is a plain call. On any other thread `f` is handed
    /// over, which takes tens of microseconds if all workers sleep. [`run`](ThreadPool::run) stays
    /// on the calling thread instead, while the pool has a place for it: see
    /// [`ThreadPoolBuilder::callers`].
    ///
    /// A worker of another pool runs tasks of its own pool while it waits, on top of the caller.
    /// One of them may want a lock that the caller holds. To hold a lock across this call, wait
    /// with [`Waiting::Sleep`](crate::config::Waiting::Sleep) or in [`blocking`](crate::blocking()).
    ///
    /// # Panics
    ///
    /// With `f`'s payload, if `f` panics.
    #[doc(alias = "RUN")]
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        WorkerThread::with(|local| match local {
            Some(local) if local.shared.serves(&self.shared) && !local.is_guest() => f(),
            _ => self.install_from(local, f),
        })
    }

    /// Runs `f` on the calling thread, with a [`Worker`] of this pool, and returns its result. As
    /// inside [`install`](ThreadPool::install), joins, scopes and loops in `f` are this pool's.
    ///
    /// A thread that is no worker works for this pool until `f` returns, if the pool has a [place
    /// for another caller](ThreadPoolBuilder::callers); otherwise it hands `f` over, as
    /// [`install`](ThreadPool::install) does. On a worker of this pool this is
    /// a plain call. A worker of another pool hands `f` over, as [`install`](ThreadPool::install)
    /// does.
    ///
    /// # Panics
    ///
    /// With `f`'s payload, if `f` panics.
    #[doc(alias = "join")]
    #[doc(alias = "scope")]
    pub fn run<R: Send>(&self, f: impl FnOnce(Worker<'_>) -> R + Send) -> R {
        self.enter(|| crate::worker(f))
    }

    /// Calls `f` as a worker of this pool: on this thread, as its worker or as a guest, or else on
    /// one of the pool's.
    pub(crate) fn enter<R: Send, F: FnOnce() -> R + Send>(&self, f: F) -> R {
        WorkerThread::with(|local| match local {
            Some(local) if local.shared.serves(&self.shared) => f(),
            Some(_) => self.install_from(local, f),
            None => match self.guests.visit(&self.shared, f) {
                Ok(result) => result,
                Err(f) => self.install_from(None, f),
            },
        })
    }

    fn install_from<R: Send>(
        &self,
        local: Option<&WorkerThread>,
        f: impl FnOnce() -> R + Send,
    ) -> R {
        // The task cannot be taken back once it is lent out.
        self.shared.process_guard.check();
        let signal = Signal::new(local);
        let task = FrameTask::new(f);
        let told = signal.clone();
        task.hand_over(
            move || told.set(),
            |task| {
                let caller = if local.is_some() { Caller::GoesOn } else { Caller::Blocks };
                self.shared.inject_at(Priority::Normal, task, caller);
                signal.wait(local);
            },
        );
        match task.outcome() {
            Ok(result) => result,
            Err(payload) => panic::resume_unwind(payload),
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.end(PoolShared::close);
    }
}

impl ThreadPool {
    /// Closes the pool and waits for its threads, unless this is one of its workers.
    pub(crate) fn end(&mut self, close: impl FnOnce(&PoolShared)) {
        let threads =
            std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner));
        if self.shared.process_guard.is_elsewhere() {
            // The threads are in another process; this one must not touch their handles or locks.
            std::mem::forget(threads);
            return;
        }
        close(&self.shared);
        let own = WorkerThread::with(|local| {
            let local = local.filter(|local| local.shared.serves(&self.shared));
            if let Some(local) = local {
                local.run_rest_as_resident();
            }
            local.is_some()
        });
        if !own && self.joins_on_drop {
            for thread in threads {
                // It does not end by a panic: `threads::work` catches what it calls.
                dispose(thread.join());
            }
        }
    }
}
