//! Tasks that stand alone.
//!
//! Everywhere, in a pool as in a scope, `spawn` detaches the task, and `spawn_handle` returns a
//! handle to its result. A [`TaskBuilder`] has the other options; the functions of the crate and of
//! a pool are short for a builder without options.

use std::sync::Arc;

use crate::handle::JoinHandle;
use crate::handle::packet::{Packet, PoolTask};
use crate::pool::global;
use crate::shared::{PoolShared, Priority};
use crate::sleep::Caller;
use crate::task::value::{Ended, Fresh};
use crate::worker::current::WorkerThread;

/// Starts a task in the background and returns at once. `f` runs on one of the own threads of the
/// calling worker's pool, or, if the caller is no worker, of the global pool.
///
/// Nobody waits for the task: [`spawn_handle`] returns a handle to its result. A panic goes to the
/// pool's [panic handler](crate::ThreadPoolBuilder::on_panic). Allocates nothing for a closure of
/// up to 48 bytes. Dropping a pool waits for its tasks, and
/// [`shutdown_now`](crate::ThreadPool::shutdown_now) drops those that have not started; the end of
/// the program does not wait for those of the global pool.
///
/// ```
/// # use poach_runtime as poach;
/// let (send, receive) = std::sync::mpsc::channel();
/// let pool = poach::ThreadPool::builder()
///     .num_threads(1)
///     .on_panic(move |payload| send.send(*payload.downcast::<&str>().unwrap()).unwrap())
///     .build()?;
/// pool.spawn(|| panic!("nobody waits"));
/// assert_eq!(receive.recv(), Ok("nobody waits"));
/// # Ok::<(), poach::BuildError>(())
/// ```
///
/// # Panics
///
/// In a process forked since the pool was made, or if the pool was dropped and its workers have
/// ended.
#[doc(alias = "spawn_detached")]
pub fn spawn(f: impl FnOnce() + Send + 'static) {
    task().spawn(f);
}

/// [`spawn`], with a handle to the result, which can be [joined](JoinHandle::join), awaited and
/// [cancelled](JoinHandle::cancel). If the handle is dropped, the task runs all the same.
///
/// `f` is a closure that computes. A future is started by [`spawn_future`](crate::spawn_future).
///
/// ```
/// # use poach_runtime as poach;
/// let answer = poach::spawn_handle(|| 6 * 7);
/// assert_eq!(answer.join().unwrap(), 42);
/// ```
///
/// # Panics
///
/// As [`spawn`].
#[doc(alias = "spawn_blocking")]
pub fn spawn_handle<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    task().spawn_handle(f)
}

/// The options of a task in this thread's pool, or in the global one.
///
/// ```
/// # use poach_runtime as poach;
/// let task = poach::task().priority(poach::Priority::High);
/// assert_eq!(task.spawn_handle(|| 6 * 7).join().unwrap(), 42);
/// ```
pub fn task() -> TaskBuilder<'static> {
    TaskBuilder { pool: None, queue: Queue::Own }
}

/// The options of a task: [`task`], [`ThreadPool::task`](crate::ThreadPool::task).
///
/// Without options, a worker's task goes into its own queue, from which it takes the youngest
/// first, and thieves the oldest; another thread's task goes into the pool's common queue.
#[derive(Clone, Copy)]
#[must_use = "it spawns nothing by itself"]
pub struct TaskBuilder<'p> {
    /// `None` is the calling worker's pool, or the global one.
    pub(crate) pool: Option<&'p Arc<PoolShared>>,
    queue: Queue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    /// In the spawning worker's queue, or, from outside, in the pool's.
    Own,
    /// As `Own`, after the worker's earlier tasks in order.
    InOrder,
    /// In the pool's queue.
    Pool(Priority),
}

impl<'p> TaskBuilder<'p> {
    pub(crate) fn of(pool: &'p Arc<PoolShared>) -> TaskBuilder<'p> {
        TaskBuilder { pool: Some(pool), queue: Queue::Own }
    }

    /// The task starts after all that this thread has spawned in order before.
    ///
    /// A wait for the handle does not start the task out of turn, unless the wait takes no other
    /// task (with [`Waiting::Sleep`](crate::config::Waiting::Sleep), or in [`blocking`](crate::blocking())).
    /// Takes a lock for the time of a push or a pop. It replaces a
    /// [`priority`](TaskBuilder::priority).
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// let pool = poach::ThreadPool::builder().num_threads(1).build()?;
    /// let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    /// pool.install(|| {
    ///     for i in 0..3 {
    ///         let seen = seen.clone();
    ///         poach::task().in_order().spawn(move || seen.lock().unwrap().push(i));
    ///     }
    /// });
    /// drop(pool); // waits for them
    /// assert_eq!(*seen.lock().unwrap(), [0, 1, 2]);
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    #[doc(alias = "spawn_fifo")]
    #[doc(alias = "spawn_detached_fifo")]
    pub fn in_order(self) -> TaskBuilder<'p> {
        TaskBuilder { queue: Queue::InOrder, ..self }
    }

    /// The task goes into the pool's common queue, as if it came from outside, where workers take
    /// tasks of high priority first. A wait for the handle does not start the task out of turn, as
    /// with [`in_order`](TaskBuilder::in_order), which this replaces.
    #[doc(alias = "spawn_at")]
    pub fn priority(self, priority: Priority) -> TaskBuilder<'p> {
        TaskBuilder { queue: Queue::Pool(priority), ..self }
    }

    /// Starts the task, as [`spawn`].
    ///
    /// # Panics
    ///
    /// As it does.
    #[inline(always)]
    pub fn spawn(self, f: impl FnOnce() + Send + 'static) {
        self.start(|shared| {
            let open = shared.keep_open();
            let run = move || {
                let shared = open.shared();
                let starts = !shared.is_dropping();
                shared.handlers.told(|| if starts { f() } else { drop(f) });
            };
            (Fresh::detached(run), ())
        });
    }

    /// Starts the task, as [`spawn_handle`].
    ///
    /// # Panics
    ///
    /// As it does.
    #[inline(always)]
    pub fn spawn_handle<R: Send + 'static>(
        self,
        f: impl FnOnce() -> R + Send + 'static,
    ) -> JoinHandle<R> {
        let in_order = self.queue != Queue::Own;
        self.start(|shared| {
            let context = PoolTask { pool: shared.keep_open(), in_order };
            let (packet, promise) = Packet::new(context, f);
            (Fresh::detached(move || drop(promise.run())), JoinHandle::new(packet))
        })
    }

    /// Queues the task of `make` for the pool. An interrupted worker spawns into the interrupt's
    /// frame.
    #[inline(always)]
    pub(crate) fn start<R, F, H>(self, make: impl FnOnce(&Arc<PoolShared>) -> (Fresh<F>, H)) -> H
    where
        R: Into<Ended>,
        F: FnOnce() -> R + Send,
    {
        WorkerThread::with(|local| {
            let local = local.filter(|local| self.pool.is_none_or(|it| local.shared.serves(it)));
            let shared = match (local, self.pool) {
                (Some(local), _) => &local.shared,
                (None, Some(pool)) => pool,
                (None, None) => global().shared(),
            };
            let (task, handle) = make(shared);
            match (self.queue, local.filter(|local| !local.is_guest())) {
                (Queue::Own, Some(local)) => local.spawn_fresh(task),
                (Queue::InOrder, Some(local)) => local.spawn(local.fifo.ticket(task.task())),
                (Queue::Pool(priority), _) => {
                    shared.inject_at(priority, task.task(), Caller::GoesOn);
                }
                (_, None) => shared.inject(task.task()),
            }
            handle
        })
    }
}

impl std::fmt::Debug for TaskBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskBuilder").field("queue", &self.queue).finish_non_exhaustive()
    }
}
