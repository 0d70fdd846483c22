//! Tasks that stand alone.

use std::sync::Arc;

use crate::handle::JoinHandle;
use crate::handle::packet::{InOrder, Packet, TaskContext};
use crate::pool::global;
use crate::shared::{OpenPool, PoolShared, Priority};
use crate::sleep::Caller;
use crate::task::value::{Ended, Fresh};
use crate::worker::current::WorkerThread;

/// Starts a task in the background and returns its handle at once. `f` runs on one of the own
/// threads of the calling worker's pool, or, if the caller is no worker, of the global pool.
///
/// The handle can be [joined](JoinHandle::join), awaited and [cancelled](JoinHandle::cancel). If it
/// is dropped, the task runs all the same. Dropping a pool waits for its tasks; the end of the
/// program does not wait for those of the global pool.
///
/// `f` is a closure that computes. It is not a future, and futures that it makes are not polled:
/// async code runs on its own executor, and awaits the handle.
///
/// ```
/// # use poach_runtime as poach;
/// let answer = poach::spawn(|| 6 * 7);
/// assert_eq!(answer.join().unwrap(), 42);
/// ```
#[doc(alias = "spawn_blocking")]
pub fn spawn<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    in_current(|shared| spawn_in(shared, f))
}

/// [`spawn`], but the task starts after all that this thread has spawned by `spawn_fifo` before.
///
/// Plain tasks of a worker start youngest first. A wait for the handle does not start the task out
/// of turn, unless the wait takes no other task (with [`Waiting::Sleep`](crate::Waiting::Sleep), or
/// in [`blocking`](crate::blocking())). Takes a lock for the time of a push or a pop.
///
/// ```
/// # use poach_runtime as poach;
/// let pool = poach::ThreadPool::builder().num_threads(1).build()?;
/// let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
/// pool.install(|| {
///     for i in 0..3 {
///         let seen = seen.clone();
///         drop(poach::spawn_fifo(move || seen.lock().unwrap().push(i)));
///     }
/// });
/// drop(pool); // waits for them
/// assert_eq!(*seen.lock().unwrap(), [0, 1, 2]);
/// # Ok::<(), poach::BuildError>(())
/// ```
pub fn spawn_fifo<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    in_current(|shared| spawn_fifo_in(shared, f))
}

/// [`spawn`] with a priority. The task goes to the pool's common queue, as if it came from outside,
/// where workers take tasks of high priority first.
///
/// ```
/// # use poach_runtime as poach;
/// use poach::{Priority, spawn_at};
///
/// assert_eq!(spawn_at(Priority::High, || 6 * 7).join().unwrap(), 42);
/// ```
pub fn spawn_at<R: Send + 'static>(
    priority: Priority,
    f: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    in_current(|shared| spawn_at_in(shared, priority, f))
}

/// [`spawn`] without a handle, for a task that nobody waits for.
///
/// A panic goes to the pool's [panic handler](crate::ThreadPoolBuilder::on_panic), as that of a
/// [`spawn`]ed task does if its handle was dropped before. Allocates nothing for a closure of up to
/// 48 bytes. Dropping the pool waits for the task;
/// [`shutdown_now`](crate::ThreadPool::shutdown_now) drops it if it has not started.
///
/// ```
/// # use poach_runtime as poach;
/// let (send, receive) = std::sync::mpsc::channel();
/// let pool = poach::ThreadPool::builder()
///     .num_threads(1)
///     .on_panic(move |payload| send.send(*payload.downcast::<&str>().unwrap()).unwrap())
///     .build()?;
/// pool.spawn_detached(|| panic!("nobody waits"));
/// assert_eq!(receive.recv(), Ok("nobody waits"));
/// # Ok::<(), poach::BuildError>(())
/// ```
///
/// # Panics
///
/// As [`spawn`]: in a process forked since the pool was made, or if the pool was dropped and its
/// workers have ended.
pub fn spawn_detached(f: impl FnOnce() + Send + 'static) {
    in_current(|shared| spawn_detached_in(shared, f));
}

/// [`spawn_fifo`] without a handle; see [`spawn_detached`].
///
/// # Panics
///
/// As [`spawn_detached`].
pub fn spawn_detached_fifo(f: impl FnOnce() + Send + 'static) {
    in_current(|shared| spawn_detached_fifo_in(shared, f));
}

/// Calls `f` with the pool of this thread's worker, or with the global one.
fn in_current<R>(f: impl FnOnce(&Arc<PoolShared>) -> R) -> R {
    WorkerThread::with(|local| match local {
        Some(local) => f(&local.shared),
        None => f(global().shared()),
    })
}

/// Which way a task goes.
#[derive(Clone, Copy)]
enum Destination {
    /// Into the queue of the worker that spawns it, or, from outside, into the pool's.
    Own,
    /// The same, in its turn.
    InOrder,
    /// Into the pool's queue.
    Pool(Priority),
}

impl Destination {
    /// Takes a task that way, from the worker of the pool that this thread is, if it is one.
    #[inline(always)]
    fn take<R, F>(self, shared: &PoolShared, local: Option<&WorkerThread>, task: Fresh<F>)
    where
        R: Into<Ended>,
        F: FnOnce() -> R + Send,
    {
        let local = local.filter(|local| !local.is_guest());
        match (self, local) {
            (Destination::Own, Some(local)) => local.spawn_fresh(task),
            (Destination::InOrder, Some(local)) => local.spawn(local.fifo.ticket(task.task())),
            (Destination::Pool(priority), _) => {
                shared.inject_at(priority, task.task(), Caller::GoesOn);
            }
            (_, None) => shared.inject(task.task()),
        }
    }
}

pub(crate) fn spawn_in<R: Send + 'static>(
    shared: &Arc<PoolShared>,
    f: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    hand_out(shared, |context| context, f, Destination::Own)
}

pub(crate) fn spawn_fifo_in<R: Send + 'static>(
    shared: &Arc<PoolShared>,
    f: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    hand_out(shared, InOrder, f, Destination::InOrder)
}

pub(crate) fn spawn_at_in<R: Send + 'static>(
    shared: &Arc<PoolShared>,
    priority: Priority,
    f: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    hand_out(shared, InOrder, f, Destination::Pool(priority))
}

pub(crate) fn spawn_detached_in(pool: &Arc<PoolShared>, f: impl FnOnce() + Send + 'static) {
    let_go(pool, f, Destination::Own);
}

pub(crate) fn spawn_detached_fifo_in(pool: &Arc<PoolShared>, f: impl FnOnce() + Send + 'static) {
    let_go(pool, f, Destination::InOrder);
}

/// Makes a task of `f` that has no handle.
#[inline(always)]
fn let_go(pool: &Arc<PoolShared>, f: impl FnOnce() + Send + 'static, destination: Destination) {
    WorkerThread::with(|local| {
        let local = local.filter(|local| local.shared.serves(pool));
        // As in `hand_out`.
        let shared = local.map_or(pool, |local| &local.shared);
        let open = shared.keep_open();
        let task = Fresh::detached(move || {
            let shared = open.shared();
            let starts = !shared.is_dropping();
            shared.handlers.told(|| if starts { f() } else { drop(f) });
        });
        destination.take(shared, local, task);
    });
}

/// Makes a detached task of `f`, and its handle.
#[inline(always)]
fn hand_out<R: Send + 'static, H: TaskContext>(
    pool: &Arc<PoolShared>,
    context: impl FnOnce(OpenPool) -> H,
    f: impl FnOnce() -> R + Send + 'static,
    destination: Destination,
) -> JoinHandle<R> {
    WorkerThread::with(|local| {
        let local = local.filter(|local| local.shared.serves(pool));
        // A worker that has been interrupted spawns for what it was interrupted for.
        let shared = local.map_or(pool, |local| &local.shared);
        let (packet, promise) = Packet::new(context(shared.keep_open()), f);
        destination.take(shared, local, Fresh::detached(move || drop(promise.run())));
        JoinHandle::new(packet)
    })
}
