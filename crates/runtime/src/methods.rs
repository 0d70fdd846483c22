//! A pool's methods that do not enter it: they spawn tasks, open scopes whose body stays on the
//! calling thread, broadcast, interrupt, query and end the pool.
//!
//! All else is the crate's functions, called inside of the pool: [`ThreadPool::install`] and
//! [`ThreadPool::run`] enter it, and then a `join`, a `scope`, a loop or a yield is the pool's.
//! By these two, a call would first wait for a worker, or move the body to another thread. Of the
//! methods here, `broadcast` and `interrupt` do so: they wait for workers, and run `f` there. The
//! others do neither.

use std::sync::Arc;

use crate::broadcast::{self, BroadcastContext};
use crate::context;
use crate::handle::JoinHandle;
use crate::interrupt;
use crate::pool::ThreadPool;
use crate::scope::{self, Scope, ScopeFifo};
use crate::shared::{PoolShared, WorkerSlot};
use crate::spawn::TaskBuilder;
use crate::stats::Stats;
use crate::stats::counters::Counters;
use crate::worker::current::WorkerThread;

impl ThreadPool {
    /// [`in_place_scope`](crate::in_place_scope) with tasks for this pool.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// let pool = poach::ThreadPool::builder().num_threads(2).build()?;
    /// let here = std::thread::current().id();
    /// let mut sum = 0;
    /// pool.in_place_scope(|s| {
    ///     assert_eq!(std::thread::current().id(), here);
    ///     s.spawn(|_| sum += 42);
    /// });
    /// assert_eq!(sum, 42);
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn in_place_scope<'scope, F, R>(&self, f: F) -> R
    where
        F: FnOnce(&Scope<'scope>) -> R,
    {
        scope::in_place_in(self.shared(), f)
    }

    /// [`in_place_scope_fifo`](crate::in_place_scope_fifo) with tasks for this pool.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn in_place_scope_fifo<'scope, F, R>(&self, f: F) -> R
    where
        F: FnOnce(&ScopeFifo<'scope>) -> R,
    {
        scope::in_place_fifo_in(self.shared(), f)
    }

    /// [`spawn`](crate::spawn()) on one of this pool's own threads.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn spawn(&self, f: impl FnOnce() + Send + 'static) {
        self.task().spawn(f);
    }

    /// [`spawn_handle`](crate::spawn_handle) on one of this pool's own threads.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn spawn_handle<R: Send + 'static>(
        &self,
        f: impl FnOnce() -> R + Send + 'static,
    ) -> JoinHandle<R> {
        self.task().spawn_handle(f)
    }

    /// [`spawn_future`](crate::spawn_future) on this pool's own threads.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.task().spawn_future(future)
    }

    /// The options of a task for this pool's own threads, as [`task`](crate::task()).
    pub fn task(&self) -> TaskBuilder<'_> {
        TaskBuilder::of(self.shared())
    }

    /// [`broadcast`](crate::broadcast()) to this pool's own threads, each of them.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn broadcast<R: Send>(&self, f: impl Fn(BroadcastContext<'_>) -> R + Sync) -> Vec<R> {
        self.here(|shared| broadcast::broadcast_in(shared, f))
    }

    /// [`spawn_broadcast`](crate::spawn_broadcast) to this pool's own threads, each of them.
    pub fn spawn_broadcast(&self, f: impl Fn(BroadcastContext<'_>) + Send + Sync + 'static) {
        self.here(|shared| broadcast::spawn_broadcast_in(shared, f));
    }

    /// [`interrupt`](crate::interrupt()) of this pool. One of its own threads runs `f`.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn interrupt<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        WorkerThread::with(|local| match local {
            Some(own) if own.shared.serves(self.shared()) => interrupt::interrupt(f),
            _ => interrupt::interrupt_from(self.shared(), local, f),
        })
    }

    /// This worker's index; `None` on a thread that is no worker of this pool.
    pub fn current_thread_index(&self) -> Option<usize> {
        self.is_here().then(context::current_thread_index).flatten()
    }

    /// Lets the workers finish everything that was spawned, ends them, and waits for them. Dropping
    /// the pool does the same, unless it was [told not to
    /// wait](crate::ThreadPoolBuilder::join_on_drop).
    ///
    /// A call by one of the pool's own workers does not wait.
    pub fn shutdown(mut self) {
        self.joins_on_drop = true;
    }

    /// [`shutdown`](ThreadPool::shutdown), but spawned tasks that have not started are dropped.
    /// Their handles return a [`JoinError`](crate::JoinError) that [is one of
    /// cancellation](crate::JoinError::is_cancelled).
    ///
    /// Tasks that have started are finished, with the joins, scopes and broadcasts that they wait
    /// for. Tasks that they spawn from now on are dropped, too.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use poach::ThreadPool;
    ///
    /// let pool = ThreadPool::builder().num_threads(1).build()?;
    /// let (send, started) = std::sync::mpsc::channel();
    /// // Busy until the pool is being shut down: from then on what it spawns is dropped.
    /// let busy = pool.spawn_handle(move || {
    ///     send.send(()).unwrap();
    ///     while poach::spawn_handle(|| ()).join().is_ok() {}
    /// });
    /// let waiting = pool.spawn_handle(|| ());
    /// started.recv().unwrap();
    /// pool.shutdown_now();
    /// assert!(busy.join().is_ok());
    /// assert!(waiting.join().unwrap_err().is_cancelled());
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    pub fn shutdown_now(mut self) {
        self.joins_on_drop = true;
        self.end(PoolShared::close_now);
    }

    /// What the workers have done until now. Any thread; wait-free; linear in the number of
    /// workers.
    ///
    /// The workers go on meanwhile, so numbers of different workers, and of different columns, need
    /// not belong to one moment. What a task did before its result came to this thread is in.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// let pool = poach::ThreadPool::builder().num_threads(2).build()?;
    /// let before = pool.stats();
    /// pool.install(|| poach::scope(|s| (0..10).for_each(|_| s.spawn(|_| ()))));
    /// let stats = pool.stats().since(&before);
    /// // The ten, and what was installed.
    /// assert_eq!(stats.total().tasks, 11);
    /// println!("{stats}");
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    pub fn stats(&self) -> Stats {
        fn of(worker: &WorkerSlot) -> &Counters {
            &worker.watch.counters
        }
        let (own, places) = self.shared.workers.split_at(self.shared.first_guest());
        Stats::of(own.iter().map(of), places.iter().map(of))
    }

    fn is_here(&self) -> bool {
        WorkerThread::with(|local| local.is_some_and(|local| local.shared.serves(self.shared())))
    }

    /// Calls `f` with the shared state of this pool, or of the frame that this thread works for.
    fn here<R>(&self, f: impl FnOnce(&Arc<PoolShared>) -> R) -> R {
        WorkerThread::with(|local| {
            let local = local.filter(|local| local.shared.serves(self.shared()));
            f(local.map_or(self.shared(), |local| &local.shared))
        })
    }
}
