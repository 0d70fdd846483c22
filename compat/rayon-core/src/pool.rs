//! A pool, and the global one.

use poach_runtime as poach;
use std::error::Error;
use std::fmt;

use crate::builder;
use crate::observe::Observed;
use crate::{BroadcastContext, Scope, ScopeFifo, Yield};

/// Whether this thread belongs to a pool.
pub(crate) fn is_worker() -> bool {
    poach::current_thread_index().is_some()
}

/// The process's global pool, which runs what is called outside of any pool. Poach and this package
/// share it.
#[cold]
pub(crate) fn global() -> &'static poach::ThreadPool {
    poach::ThreadPool::global_if_made().unwrap_or_else(|| {
        if let Err(error) = builder::ensure_global() {
            // As the original says it.
            panic!("The global thread pool has not been initialized.: {error:?}");
        }
        poach::global()
    })
}

/// A pool of threads. Dropping it does not wait: the threads finish what was spawned, and then end.
pub struct ThreadPool {
    pool: poach::ThreadPool,
    observed: Option<Observed>,
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        if let Some(observed) = self.observed.take() {
            observed.report(&self.pool);
        }
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("num_threads", &self.current_num_threads())
            .finish_non_exhaustive()
    }
}

impl ThreadPool {
    pub(crate) fn of(pool: poach::ThreadPool) -> ThreadPool {
        let observed = Observed::begin(&pool);
        ThreadPool { pool, observed }
    }

    /// As [`ThreadPoolBuilder::build`](crate::ThreadPoolBuilder::build).
    ///
    /// # Errors
    ///
    /// As there.
    #[deprecated(note = "use `ThreadPoolBuilder::build`")]
    #[expect(deprecated, reason = "it is as old")]
    pub fn new(configuration: crate::Configuration) -> Result<ThreadPool, Box<dyn Error>> {
        Ok(configuration.into_builder().build()?)
    }

    /// Runs `op` on one of the pool's threads and returns its result. Inside `op`, the functions of
    /// this crate use this pool.
    ///
    /// On one of the pool's own threads this is a plain call. A thread of another pool runs that
    /// pool's tasks while it waits.
    ///
    /// # Panics
    ///
    /// With the payload of `op`.
    pub fn install<OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce() -> R + Send,
        R: Send,
    {
        self.pool.install(op)
    }

    /// [`broadcast`](crate::broadcast) in this pool.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn broadcast<OP, R>(&self, op: OP) -> Vec<R>
    where
        OP: Fn(BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        self.pool.broadcast(op)
    }

    /// The number of threads.
    pub fn current_num_threads(&self) -> usize {
        self.pool.threads()
    }

    /// The index of this thread in this pool, from 0; `None` if it is not one of the pool's
    /// threads.
    pub fn current_thread_index(&self) -> Option<usize> {
        self.pool.current_thread_index()
    }

    /// [`current_thread_has_pending_tasks`](crate::current_thread_has_pending_tasks); `None` if
    /// this is not one of the pool's threads.
    pub fn current_thread_has_pending_tasks(&self) -> Option<bool> {
        self.pool.current_thread_index().and_then(|_| poach::current_thread_has_pending_tasks())
    }

    /// [`join`](crate::join) in this pool.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn join<A, B, RA, RB>(&self, oper_a: A, oper_b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.pool.run(|_| poach::join(oper_a, oper_b))
    }

    /// [`scope`](crate::scope) in this pool.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        self.pool.run(|_| poach::scope(op))
    }

    /// [`scope_fifo`](crate::scope_fifo) in this pool.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
        R: Send,
    {
        self.pool.run(|_| poach::scope_fifo(op))
    }

    /// [`in_place_scope`](crate::in_place_scope) with tasks for this pool.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn in_place_scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R,
    {
        self.pool.in_place_scope(op)
    }

    /// [`in_place_scope_fifo`](crate::in_place_scope_fifo) with tasks for this pool.
    ///
    /// # Panics
    ///
    /// As it does.
    pub fn in_place_scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R,
    {
        self.pool.in_place_scope_fifo(op)
    }

    /// [`spawn`](crate::spawn) in this pool.
    pub fn spawn<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        self.pool.spawn(op);
    }

    /// [`spawn_fifo`](crate::spawn_fifo) in this pool.
    pub fn spawn_fifo<OP>(&self, op: OP)
    where
        OP: FnOnce() + Send + 'static,
    {
        self.pool.task().in_order().spawn(op);
    }

    /// [`spawn_broadcast`](crate::spawn_broadcast) in this pool.
    pub fn spawn_broadcast<OP>(&self, op: OP)
    where
        OP: Fn(BroadcastContext<'_>) + Send + Sync + 'static,
    {
        self.pool.spawn_broadcast(op);
    }

    /// [`yield_now`](crate::yield_now); `None` if this is not one of the pool's threads.
    pub fn yield_now(&self) -> Option<Yield> {
        self.pool.current_thread_index().and_then(|_| poach::yield_now())
    }

    /// [`yield_local`](crate::yield_local); `None` if this is not one of the pool's threads.
    pub fn yield_local(&self) -> Option<Yield> {
        self.pool.current_thread_index().and_then(|_| poach::yield_local())
    }
}
