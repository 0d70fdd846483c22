//! One closure, run once on every worker of a pool.
//!
//! Source: Lace's TOGETHER, and rayon-core's `broadcast`, whose rules these are. A broadcast is a
//! scope with one task for each regular worker, in that worker's own inbox, from which no other
//! takes. A worker looks into its inbox when it has no task of its own left, before it steals: a
//! broadcast waits for busy workers.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use crate::pool::global;
use crate::scope::{self, Scope, ScopeFifo};
use crate::shared::PoolShared;
use crate::task::value::Task;
use crate::worker::current::WorkerThread;
use crate::worker::tally::{Destination, ScopeKind, Tally};

/// The worker on which a broadcast's closure runs.
pub struct BroadcastContext<'a> {
    index: usize,
    threads: usize,
    /// Neither `Send` nor `Sync`: it describes the thread that it was made on.
    life: PhantomData<&'a mut dyn Fn()>,
}

impl BroadcastContext<'_> {
    /// Calls `f` with the context of this thread, which is a worker.
    pub(crate) fn with<R>(f: impl FnOnce(BroadcastContext<'_>) -> R) -> R {
        let (index, threads) = WorkerThread::with(|local| {
            let local = local.expect("a broadcast runs on workers");
            (local.index, local.shared.threads)
        });
        f(BroadcastContext { index, threads, life: PhantomData })
    }

    /// This worker's index among those that the broadcast reaches, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// How many workers the broadcast reaches.
    pub fn num_threads(&self) -> usize {
        self.threads
    }
}

impl fmt::Debug for BroadcastContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastContext")
            .field("index", &self.index)
            .field("num_threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl<'scope> Scope<'scope> {
    /// Spawns `task` once on every worker of the pool, into the scope; see
    /// [`broadcast`](crate::broadcast()) for when they run it.
    ///
    /// # Panics
    ///
    /// As `broadcast`, if the pool has ended.
    pub fn spawn_broadcast<F>(&self, task: F)
    where
        F: Fn(&Scope<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        spawn_into(self, task);
    }
}

impl<'scope> ScopeFifo<'scope> {
    /// Spawns `task` once on every worker of the pool, into the scope; see
    /// [`broadcast`](crate::broadcast()) for when they run it.
    ///
    /// # Panics
    ///
    /// As `broadcast`, if the pool has ended.
    pub fn spawn_broadcast<F>(&self, task: F)
    where
        F: Fn(&ScopeFifo<'scope>, BroadcastContext<'_>) + Send + Sync + 'scope,
    {
        spawn_into(self, task);
    }
}

fn spawn_into<'scope, S, F>(scope: &S, task: F)
where
    S: ScopeKind<'scope> + 'scope,
    F: Fn(&S, BroadcastContext<'_>) + Send + Sync + 'scope,
{
    let task = Arc::new(task);
    spawn_each(scope, |_| {
        let task = Arc::clone(&task);
        move |scope: &S| BroadcastContext::with(|context| task(scope, context))
    });
}

/// Spawns a task of `make` for each worker into the scope. The tasks keep the pool open, since no
/// other worker could run them.
fn spawn_each<'scope, S, F>(scope: &S, make: impl Fn(usize) -> F)
where
    S: ScopeKind<'scope> + 'scope,
    F: FnOnce(&S) + Send + 'scope,
{
    let open = scope.base().tally.shared().keep_open();
    for index in 0..open.shared().threads {
        let (task, keeps) = (make(index), open.clone());
        let run = move |scope: &S| {
            let _open = keeps;
            task(scope);
        };
        Tally::spawn(scope, run, Destination::To(index, &open));
    }
}

/// Runs `f` once on every worker of this thread's pool, or of the global one, and returns what each
/// call has returned, by the workers' indices.
///
/// `f` runs on each of the pool's own threads, and never on a thread from outside. A worker runs it
/// when it has no task of its own left, before it steals. So the call waits for the longest task
/// that is running; [`interrupt`](crate::interrupt()) stops tasks instead. Spare workers are left
/// out.
///
/// ```
/// # use poach_runtime as poach;
/// let squares = poach::broadcast(|context| context.index() * context.index());
/// assert_eq!(squares.len(), poach::current_num_threads());
/// assert!(squares.iter().enumerate().all(|(i, &square)| square == i * i));
/// ```
///
/// # Panics
///
/// With the payload of one of the calls that panicked, once all have ended. If the pool has ended:
/// on a thread that it was made to [use](crate::ThreadPoolBuilder::use_current_thread), after it
/// was dropped, and in an exit handler.
#[doc(alias = "TOGETHER")]
pub fn broadcast<R: Send>(f: impl Fn(BroadcastContext<'_>) -> R + Sync) -> Vec<R> {
    WorkerThread::with(|local| match local {
        Some(local) => broadcast_in(&local.shared, f),
        None => broadcast_in(global().shared(), f),
    })
}

/// Starts `f` once on every worker of this thread's pool, or of the global one, and returns at
/// once. When they run it: see [`broadcast`]. A panic goes to the pool's panic handler.
///
/// ```
/// # use poach_runtime as poach;
/// let (send, receive) = std::sync::mpsc::channel();
/// poach::spawn_broadcast(move |context| send.send(context.index()).unwrap());
/// assert_eq!(receive.iter().count(), poach::current_num_threads());
/// ```
///
/// # Panics
///
/// As `broadcast`, if the pool has ended.
pub fn spawn_broadcast(f: impl Fn(BroadcastContext<'_>) + Send + Sync + 'static) {
    WorkerThread::with(|local| match local {
        Some(local) => spawn_broadcast_in(&local.shared, f),
        None => spawn_broadcast_in(global().shared(), f),
    });
}

pub(crate) fn broadcast_in<R: Send>(
    shared: &Arc<PoolShared>,
    f: impl Fn(BroadcastContext<'_>) -> R + Sync,
) -> Vec<R> {
    let results: Vec<_> = (0..shared.threads).map(|_| Mutex::new(None)).collect();
    scope::in_place_in(shared, |scope| {
        spawn_each(scope, |index| {
            let (f, result) = (&f, &results[index]);
            move |_: &_| {
                let answer = BroadcastContext::with(f);
                *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            }
        });
    });
    let answer = |result: Mutex<Option<R>>| {
        let result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.expect("a call that has not panicked has answered")
    };
    results.into_iter().map(answer).collect()
}

pub(crate) fn spawn_broadcast_in(
    shared: &Arc<PoolShared>,
    f: impl Fn(BroadcastContext<'_>) + Send + Sync + 'static,
) {
    let open = shared.keep_open();
    let f = Arc::new(f);
    for index in 0..shared.threads {
        let (f, keeps) = (Arc::clone(&f), open.clone());
        let task = Task::detached(move || {
            let shared = keeps.shared();
            if !shared.is_dropping() {
                shared.handlers.told(|| BroadcastContext::with(|context| f(context)));
            }
            // This may drop the last reference.
            shared.handlers.told(|| drop(f));
        });
        open.post(index, task);
    }
    shared.handlers.told(|| drop(f));
}
