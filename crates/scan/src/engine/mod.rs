//! Engines decide which thread visits which directory, and when: five ways to share one walk.
//!
//! An engine knows a `Job`: a task is visited by one worker, and may call a sink with further
//! tasks. It hands each task to exactly one worker, and returns when all have been visited. It
//! never looks into a task, so all engines report the same walk.
//!
//! | engine | file | source |
//! |---|---|---|
//! | `sequential` | `sequential.rs` | Phanes, part 1: depth first, one thread |
//! | `pool` | `pool.rs` | Phanes, part 2: threads that share one locked queue |
//! | `mutex-stealing` | `mutex_stealing.rs` | Phanes, part 3: a locked deque for each thread |
//! | `lock-free` | `lock_free.rs` | Phanes, part 4: a Chase-Lev deque for each thread |
//! | `split` | `split.rs` | the project's own runtime, on the split deque of Lace |
//!
//! A task never waits for another, and the sink runs none: the stack is as deep at the last
//! directory as at the first.

use std::fmt;
use std::panic::resume_unwind;
use std::str::FromStr;
use std::thread;

use poach_runtime::ThreadPool;

use crate::Error;

mod lock_free;
mod mutex_stealing;
mod pool;
mod sequential;
mod split;
mod stealing;

pub(crate) use split::refused;

/// Work that consists of tasks, where a task may create others.
pub(crate) trait Job: Sync {
    type Task: Send;
    /// The state of one thread while the job runs.
    type Worker: Send;

    /// Visits a task and gives the tasks that it creates to `sink`.
    ///
    /// The sink is a trait object, called once for each directory, so that a visit is compiled once
    /// and not once for each engine.
    fn visit(&self, worker: &mut Self::Worker, task: Self::Task, sink: &mut dyn FnMut(Self::Task));
}

/// A way to share a walk among threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// Depth first, on the calling thread.
    Sequential,
    /// Threads that share one locked queue.
    Pool,
    /// A locked deque for each thread; a thread with no task steals.
    MutexStealing,
    /// A Chase-Lev deque for each thread, with a growing circular buffer; a thread with no task
    /// steals.
    LockFree,
    /// The split deques of `poach-runtime`.
    #[default]
    Split,
}

impl Engine {
    /// Every engine, the plainest first.
    pub const ALL: [Engine; 5] =
        [Engine::Sequential, Engine::Pool, Engine::MutexStealing, Engine::LockFree, Engine::Split];

    /// The name that a user knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Sequential => "sequential",
            Engine::Pool => "pool",
            Engine::MutexStealing => "mutex-stealing",
            Engine::LockFree => "lock-free",
            Engine::Split => "split",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no engine has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no engine {0:?}; there are sequential, pool, mutex-stealing, lock-free, split")]
pub struct UnknownEngine(String);

impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Engine::ALL
            .into_iter()
            .find(|engine| engine.name() == name)
            .ok_or_else(|| UnknownEngine(name.to_owned()))
    }
}

/// Visits `tasks` and all tasks that they create, with one thread for each worker. Returns the
/// workers.
///
/// # Errors
///
/// [`Error::Thread`] if the system refuses one; the tasks are dropped.
pub(crate) fn run<J: Job>(
    engine: Engine,
    job: &J,
    workers: Vec<J::Worker>,
    tasks: Vec<J::Task>,
) -> Result<Vec<J::Worker>, Error> {
    match engine {
        Engine::Sequential => Ok(sequential::run(job, workers, tasks)),
        Engine::Pool => pool::run(job, workers, tasks),
        Engine::MutexStealing => mutex_stealing::run(job, workers, tasks),
        Engine::LockFree => lock_free::run(job, workers, tasks),
        Engine::Split => Ok(split::run(job, &split::pool(workers.len())?, workers, tasks)),
    }
}

/// A pool for [`run_in`].
///
/// # Errors
///
/// [`Error::Thread`] if the system refuses a thread.
pub(crate) fn pool(threads: usize) -> Result<ThreadPool, Error> {
    split::pool(threads)
}

/// [`run`] with the split engine, in a pool of as many threads as there are workers.
pub(crate) fn run_in<J: Job>(
    pool: &ThreadPool,
    job: &J,
    workers: Vec<J::Worker>,
    tasks: Vec<J::Task>,
) -> Vec<J::Worker> {
    split::run(job, pool, workers, tasks)
}

/// Runs `body` once for each worker, the first on this thread, each other on a thread of its own.
///
/// `abort` is called when a thread panics or cannot be had; it must make every `body` return.
fn crew<W: Send>(
    workers: Vec<W>,
    abort: impl Fn() + Sync,
    body: impl Fn(usize, &mut W) + Sync,
) -> Result<Vec<W>, Error> {
    let work = |number: usize, mut worker: W| {
        let guard = OnPanic(&abort);
        body(number, &mut worker);
        drop(guard);
        worker
    };
    let work = &work;
    thread::scope(|scope| {
        let mut refused = None;
        let mut workers = workers.into_iter().enumerate();
        let here = workers.next();
        let mut threads = Vec::new();
        for (number, worker) in workers {
            let thread = thread::Builder::new()
                .name(format!("poach-scan-{number}"))
                .spawn_scoped(scope, move || work(number, worker));
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    abort();
                    refused = Some(Error::Thread { number, error });
                    break;
                }
            }
        }
        let here = here.map(|(number, worker)| work(number, worker));
        let there = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        let workers = here.into_iter().chain(there).collect();
        refused.map_or(Ok(workers), Err)
    })
}

struct OnPanic<'a, F: Fn()>(&'a F);

impl<F: Fn()> Drop for OnPanic<'_, F> {
    fn drop(&mut self) {
        if thread::panicking() {
            (self.0)();
        }
    }
}

#[cfg(test)]
mod tests;
