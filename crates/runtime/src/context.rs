//! A thread's questions about itself, and yields.

use crate::pool::global;
use crate::task::half::Worker;
use crate::worker::current::WorkerThread;

/// The result of a yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// A task was found and run.
    Executed,
    /// None was found.
    Idle,
}

impl Yield {
    fn of(executed: bool) -> Yield {
        if executed { Yield::Executed } else { Yield::Idle }
    }
}

/// Runs one other task, this worker's or another's, if there is one. `None` on a thread that is no
/// worker.
///
/// For a task that waits for something that another task of the pool will do. The other task runs
/// on top of the caller, on the same call stack, and the call returns when it has ended. It may be
/// any task, even a task that waits for the caller, and then neither ever ends: tasks that wait for
/// each other should [join](crate::JoinHandle::join) handles instead. Once half of the worker's
/// call stack is in use, only one yield in a thousand runs a task, and the others return
/// [`Idle`](Yield::Idle). A yield is a point at which the worker can be
/// [interrupted](crate::interrupt()).
///
/// ```
/// # use poach_runtime as poach;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use poach::{ThreadPool, Yield, yield_now};
///
/// let pool = ThreadPool::builder().num_threads(1).build()?;
/// assert_eq!(yield_now(), None);
/// pool.install(|| {
///     assert_eq!(yield_now(), Some(Yield::Idle));
///     poach::spawn(|| ());
///     assert_eq!(yield_now(), Some(Yield::Executed));
/// });
/// # Ok::<(), poach::BuildError>(())
/// ```
pub fn yield_now() -> Option<Yield> {
    WorkerThread::with(|local| local.map(|local| Yield::of(local.run_any())))
}

/// [`yield_now`], but runs only tasks that this worker itself has spawned.
///
/// Pending halves of a [`join`](crate::join()) are not spawned tasks, and are left to their join.
pub fn yield_local() -> Option<Yield> {
    WorkerThread::with(|local| {
        local.map(|local| {
            local.answer_calls();
            Yield::of(!local.nesting_depth.refuses_yield() && local.run_own())
        })
    })
}

/// The number of workers of this thread's pool, or of the global one. Spare workers do not count.
///
/// ```
/// # use poach_runtime as poach;
/// let pool = poach::ThreadPool::builder().num_threads(3).build()?;
/// assert_eq!(pool.install(poach::current_num_threads), 3);
/// # Ok::<(), poach::BuildError>(())
/// ```
pub fn current_num_threads() -> usize {
    WorkerThread::with(|local| match local {
        Some(local) => local.shared.threads,
        None => global().threads(),
    })
}

/// This worker's index in its pool, from 0; `None` on a thread that is no worker.
///
/// The pool's regular workers have indices below [`current_num_threads`]. A spare worker that works
/// for one in [`blocking`](crate::blocking()) has a higher one, and so has a thread from outside
/// while it runs a region (see [`ThreadPoolBuilder::callers`](crate::ThreadPoolBuilder::callers)).
/// All are below [`ThreadPool::index_limit`](crate::ThreadPool::index_limit). A worker keeps its
/// index as long as it lives, a thread from outside as long as the region lasts.
pub fn current_thread_index() -> Option<usize> {
    WorkerThread::with(|local| local.map(|local| local.index))
}

/// Whether this worker has tasks of its own that have not ended: spawned ones not yet started, or
/// halves of a join that is not complete. `None` on a thread that is no worker.
///
/// A task may ask this to decide whether to spawn more. The answer is an estimate: others steal
/// meanwhile.
pub fn current_thread_has_pending_tasks() -> Option<bool> {
    WorkerThread::with(|local| local.map(WorkerThread::has_pending_tasks))
}

impl Worker<'_> {
    /// Whether to fork now: another worker of the pool looks for work, or sleeps, and would find no
    /// fork of this one's to steal. For code that runs a sequential form of its work as long as
    /// nobody asks for a part of it, as parallel loops do. Answers an
    /// [interrupt](crate::interrupt()), as [`check`](crate::check) does.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// fn count(mut w: poach::Worker<'_>, numbers: std::ops::Range<u32>) -> usize {
    ///     let mut found = 0;
    ///     for n in numbers.clone() {
    ///         if numbers.end - n > 100 && w.should_fork() {
    ///             let middle = n + (numbers.end - n) / 2;
    ///             let (a, b) = w.join(|w| count(w, n..middle), |w| count(w, middle..numbers.end));
    ///             return found + a + b;
    ///         }
    ///         found += usize::from(n % 7 == 3);
    ///     }
    ///     found
    /// }
    /// assert_eq!(poach::worker(|w| count(w, 0..7_000)), 1_000);
    /// ```
    #[inline]
    pub fn should_fork(&self) -> bool {
        WorkerThread::with(|local| {
            // A token is used on its own thread, which is a worker.
            local.is_some_and(|local| {
                local.answer_calls();
                local.shared.sleep.is_anybody_hungry() && local.slot().forks.shared() == 0
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadPool;

    #[test]
    fn a_worker_should_fork_while_another_is_hungry_and_finds_no_fork_of_this_one() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        pool.install(|| {
            let should = || crate::worker(|worker| worker.should_fork());
            WorkerThread::with(|local| {
                let local = local.unwrap();
                assert!(!should(), "nobody is hungry");
                // As a second worker that looks for work, and has left its request.
                local.shared.sleep.search();
                local.slot().forks.request();
                assert!(should());
                crate::join(|| assert!(!should(), "there is one to be stolen"), || ());
                assert!(should());
                local.shared.sleep.stop_search();
            });
        });
    }

    #[test]
    fn a_worker_that_asks_whether_to_fork_answers_calls() {
        use crate::task::value::Task;
        use std::sync::mpsc;

        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        let (send, answered) = mpsc::channel();
        pool.install(move || {
            WorkerThread::with(|local| {
                local.unwrap().slot().calls.put(Task::detached(move || send.send(()).unwrap()));
            });
            crate::worker(|worker| worker.should_fork());
            assert_eq!(answered.try_recv(), Ok(()));
        });
    }
}
