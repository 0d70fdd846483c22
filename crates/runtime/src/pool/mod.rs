//! Thread pools: made by a builder, entered by `install` or `run`, closed when dropped.

pub(crate) mod allocate;
pub(crate) mod build_error;
mod builder;
mod environment;
mod global;
pub(crate) mod handlers;
mod methods;
pub(crate) mod threads;

use std::fmt;
use std::panic::{self, RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle as ThreadHandle;

pub use builder::Builder;
pub use global::{global, global_if_made, set_global_builder};

use crate::job::current::Local;
use crate::job::guests::Guests;
use crate::job::shared::Shared;
use crate::job::token::Worker;
use crate::job::unwind::dispose;
use crate::scheduler::latch::Signal;
use crate::scheduler::registry::{Priority, Registry};
use crate::scheduler::sleep::Caller;

/// A pool of workers.
///
/// Dropping it lets the workers finish what was spawned, ends them, and waits for them, unless it is
/// dropped by one of them, or was [told not to wait](Builder::join_on_drop). Pools nest: a worker that installs into another pool keeps working for its
/// own while it waits.
pub struct ThreadPool {
    pub(crate) registry: Arc<Registry>,
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

// A panic of foreign code leaves a pool as it was: see the table in `job/unwind`.
impl UnwindSafe for ThreadPool {}
impl RefUnwindSafe for ThreadPool {}

impl ThreadPool {
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The number of workers; spare ones and guests have [indices](ThreadPool::index_limit) from there on.
    pub fn threads(&self) -> usize {
        self.registry.threads
    }

    /// What every [index](crate::current_thread_index) in this pool is below: [`threads`](ThreadPool::threads), and one more for each
    /// [spare](Builder::spares) worker and each place of a [guest](Builder::callers_work). How long an array is that has an element for each.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// let pool = poach::ThreadPool::builder().threads(2).spares(1).build()?;
    /// let calls: Vec<_> = (0..pool.index_limit()).map(|_| std::sync::Mutex::new(0)).collect();
    /// pool.scope(|s| {
    ///     for _ in 0..10 {
    ///         s.spawn(|_| *calls[poach::current_thread_index().unwrap()].lock().unwrap() += 1);
    ///     }
    /// });
    /// assert_eq!(calls.iter().map(|calls| *calls.lock().unwrap()).sum::<i32>(), 10);
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    pub fn index_limit(&self) -> usize {
        self.registry.workers.len()
    }

    /// Runs `f` on one of this pool's own threads and waits for its result. Inside it, [`join`](crate::join),
    /// [`scope`](crate::scope) and [`spawn`](crate::spawn) use this pool.
    ///
    /// So `f` has the stack size, the thread-local variables and the handlers that the pool was built with, and
    /// none of the caller's. On one of this pool's own threads it is a plain call; on any other it is handed over, which
    /// takes tens of microseconds if all workers sleep. A worker of another pool runs any task of its own pool while it waits, on top of
    /// the caller, which may hold a lock that the task wants; not with [`Waiting::Sleep`](crate::Waiting::Sleep), nor in [`blocking`](crate::blocking()).
    /// [`run`](ThreadPool::run), [`join`](ThreadPool::join), [`scope`](ThreadPool::scope) and the loops stay on the
    /// calling thread: see [`Builder::callers_work`].
    ///
    /// # Panics
    ///
    /// With `f`'s payload, if `f` panics.
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        Local::with(|local| match local {
            Some(local) if local.registry.serves(&self.registry) && !local.is_guest() => f(),
            _ => self.install_from(local, f),
        })
    }

    /// Runs `f` as a worker of this pool, with the worker's token, on the calling thread, and returns its result.
    ///
    /// As [`join`](ThreadPool::join): on a thread that is nobody's worker, `f` runs there, and the thread is one
    /// more worker of this pool for as long; see [`Builder::callers_work`] for the exceptions. On a worker of this pool it is a plain
    /// call. A worker of another pool hands `f` over, and works for its own pool while it waits, as in [`install`](ThreadPool::install).
    ///
    /// # Panics
    ///
    /// With `f`'s payload, if `f` panics.
    pub fn run<R: Send>(&self, f: impl FnOnce(Worker<'_>) -> R + Send) -> R {
        self.enter(|| crate::worker(f))
    }

    /// Calls `f` as a worker of this pool: on this thread, as its worker or as a guest, or else on one of the pool's.
    pub(crate) fn enter<R: Send, F: FnOnce() -> R + Send>(&self, f: F) -> R {
        Local::with(|local| match local {
            Some(local) if local.registry.serves(&self.registry) => f(),
            Some(_) => self.install_from(local, f),
            None => match self.guests.visit(&self.registry, f) {
                Ok(result) => result,
                Err(f) => self.install_from(None, f),
            },
        })
    }

    fn install_from<R: Send>(&self, local: Option<&Local>, f: impl FnOnce() -> R + Send) -> R {
        // Once the task is lent out there is no way back.
        self.registry.check_usable();
        let signal = Signal::new(local);
        let shared = Shared::new(f);
        let told = signal.clone();
        shared.hand_over(
            move || told.set(),
            |task| {
                let caller = if local.is_some() { Caller::GoesOn } else { Caller::Blocks };
                self.registry.inject_at(Priority::Normal, task, caller);
                signal.wait(local);
            },
        );
        match shared.outcome() {
            Ok(result) => result,
            Err(payload) => panic::resume_unwind(payload),
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.end(Registry::close);
    }
}

impl ThreadPool {
    /// Closes the pool and waits for its threads, unless this is one of its workers.
    pub(crate) fn end(&mut self, close: impl FnOnce(&Registry)) {
        let threads =
            std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner));
        if self.registry.fork_guard.is_elsewhere() {
            // The threads are in another process; nobody here must touch their handles or locks.
            std::mem::forget(threads);
            return;
        }
        close(&self.registry);
        let own = Local::with(|local| {
            let local = local.filter(|local| local.registry.serves(&self.registry));
            if let Some(local) = local {
                local.leave();
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
