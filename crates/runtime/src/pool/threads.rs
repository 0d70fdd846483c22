//! The threads of a pool: its own, other code's, or the current one.

use std::fmt;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle as ThreadHandle};

use crate::pool::build_error::BuildError;
use crate::pool::gate::Place;
use crate::pool::{ThreadPool, ThreadPoolBuilder, environment};
use crate::shared::handlers::IndexHandler;
use crate::shared::waiting::CallStack;
use crate::shared::{PoolShared, Spawns};
use crate::task::panic::dispose;
use crate::worker::current::WorkerThread;

/// A worker's slot in a pool, for the thread that takes it.
pub(crate) struct NewWorker {
    pub(crate) shared: Arc<PoolShared>,
    pub(crate) index: usize,
    pub(crate) spawns: Spawns,
    /// The size of the call stack, if the pool itself has set it.
    pub(crate) stack: Option<usize>,
}

impl NewWorker {
    pub(crate) fn local(self) -> WorkerThread {
        let local = WorkerThread::new(self.shared, self.index, self.spawns);
        local.nesting_depth.stack.set(CallStack::here(self.stack));
        local
    }
}

/// A worker that needs a thread: the argument of a [`ThreadPoolBuilder::spawn_handler`].
///
/// The handler must start a thread that calls [`run`](ThreadBuilder::run). If it drops this value
/// instead, broadcasts and interrupts of the pool wait for ever.
pub struct ThreadBuilder {
    pub(crate) name: Option<String>,
    pub(crate) stack_size: Option<usize>,
    pub(crate) slot: NewWorker,
    /// The processor to bind it to.
    pub(crate) processor: Option<usize>,
    /// Receives whether the binding was possible, and how the start handler ended.
    pub(crate) report: Option<mpsc::Sender<Result<(), BuildError>>>,
    /// The gate at which it waits until all have started, if there is one.
    pub(crate) gate: Option<Place>,
}

impl ThreadBuilder {
    /// The worker's index in its pool. Spare workers come after the regular ones.
    pub fn index(&self) -> usize {
        self.slot.index
    }

    /// The name that the pool's builder has for the thread, unless it is to be
    /// [unnamed](ThreadPoolBuilder::unnamed).
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Bytes of call stack that the pool's builder asks for, if it does.
    pub fn stack_size(&self) -> Option<usize> {
        self.stack_size
    }

    /// Works on this thread until the pool ends.
    pub fn run(self) {
        let tell = |answer| {
            if let Some(report) = self.report {
                _ = report.send(answer);
            }
        };
        let bound = self.processor.map(poach_topology::bind);
        let local = self.slot.local();
        if let Some(gate) = self.gate {
            gate.pass();
        }
        match bound {
            Some(Err(error)) => tell(Err(BuildError::Pin(error))),
            _ => work(local, tell),
        }
    }

    /// Starts a thread that works until the pool ends.
    pub(crate) fn spawn(mut self) -> io::Result<ThreadHandle<()>> {
        self.describe()?.spawn(move || self.run())
    }

    /// The settings of the thread; also tells its worker the resulting size of the call stack.
    fn describe(&mut self) -> io::Result<thread::Builder> {
        let bytes = self.stack_size.unwrap_or_else(environment::stack);
        // On Windows the standard library rounds it up past the largest number, and the thread has
        // a call stack of the default size, while its worker would rely on this size.
        if isize::try_from(bytes).is_err() {
            let why = format!("no address space has room for a call stack of {bytes} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.slot.stack = Some(bytes);
        let thread = thread::Builder::new().stack_size(bytes);
        Ok(match &self.name {
            Some(name) => thread.name(name.clone()),
            None => thread,
        })
    }
}

impl fmt::Debug for ThreadBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadBuilder")
            .field("index", &self.index())
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .finish_non_exhaustive()
    }
}

/// The main function of a worker's thread. It reports to `started` how the start handler has ended,
/// or, if no thread waits for that, that the thread runs.
fn work(local: WorkerThread, started: impl FnOnce(Result<(), BuildError>)) {
    let (shared, index) = (Arc::clone(&local.shared), local.index);
    let told = |handler: &Option<IndexHandler>| {
        let mut fine = handler.is_none();
        if let Some(handler) = handler {
            shared.handlers.told(|| {
                handler(index);
                fine = true;
            });
        }
        fine
    };
    // Handlers are called on the worker whose index they get.
    local.enter(|local| {
        if shared.handlers.start_is_awaited {
            let fine = told(&shared.handlers.start);
            started(if fine { Ok(()) } else { Err(BuildError::Start { index }) });
        } else {
            started(Ok(()));
            told(&shared.handlers.start);
        }
        if index < shared.threads {
            local.main_loop();
        } else {
            local.spare_loop();
        }
        told(&shared.handlers.exit);
    });
    drop(local);
    // With the pool's handlers, if this is the last reference to them.
    dispose(shared);
}

impl<'h> ThreadPoolBuilder<'h> {
    /// How many spare threads the pool has, which work while regular ones are in
    /// [`blocking`](crate::blocking()): by default none. They are started with the others, and
    /// sleep. [`build`](ThreadPoolBuilder::build) refuses more than
    /// [`MAX_THREADS`](crate::config::MAX_THREADS) threads, the regular ones included.
    pub fn spares(mut self, spares: usize) -> Self {
        self.spares = spares;
        self
    }

    /// Makes the thread that calls [`build`](ThreadPoolBuilder::build) worker 0 of the pool, for
    /// ever.
    ///
    /// The thread runs tasks of the pool only while it waits in a call, or
    /// [yields](crate::yield_now): a [broadcast](crate::broadcast()) and an
    /// [interrupt](crate::interrupt()) wait until then. Other workers run the tasks that it spawns
    /// meanwhile, if there are any. Start and exit handlers are not called for this thread. Its
    /// part of the pool's memory is never freed.
    ///
    /// When it drops the pool, it runs the tasks that it has spawned and that have not started, and
    /// does not wait for the other workers. If another thread drops the pool, a broadcast or an
    /// interrupt that this thread has begun still finds all workers. A task that it spawns into a
    /// scope may then have to wait for this thread itself. Once the workers have ended, its spawns,
    /// broadcasts and interrupts panic.
    ///
    /// If the thread is a worker already, `build` returns [`BuildError::CurrentThreadInPool`].
    pub fn use_current_thread(mut self) -> Self {
        self.use_current_thread = true;
        self
    }

    /// Has `handler` start the workers' threads. [`build`](ThreadPoolBuilder::build) calls it once
    /// for each worker, in the order of their indices, on the thread that builds. It may borrow
    /// what outlives that call.
    ///
    /// The pool cannot wait for such threads, so when it is dropped they end in their own time.
    /// With [`pin`](ThreadPoolBuilder::pin), `build` waits until all of them run.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// let mut threads = Vec::new();
    /// let pool = poach::ThreadPool::builder()
    ///     .num_threads(2)
    ///     .spawn_handler(|worker| {
    ///         let name = worker.name().unwrap_or("worker").to_owned();
    ///         threads.push(std::thread::Builder::new().name(name).spawn(|| worker.run())?);
    ///         Ok(())
    ///     })
    ///     .build()?;
    /// assert_eq!(pool.run(|_| poach::join(|| 1, || 2)), (1, 2));
    /// drop(pool);
    /// for thread in threads {
    ///     thread.join().unwrap();
    /// }
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    ///
    /// If it returns an error, `build` returns [`BuildError::Spawn`], and the threads that were
    /// started end.
    pub fn spawn_handler(
        mut self,
        handler: impl FnMut(ThreadBuilder) -> io::Result<()> + 'h,
    ) -> Self {
        self.spawner = Some(Box::new(handler));
        self
    }

    /// Makes a pool that lasts while `with_pool` runs, with threads that may borrow what outlives
    /// this call. `wrapper` is called on each thread, and must call [`ThreadBuilder::run`].
    /// Waits for the threads.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use std::cell::Cell;
    ///
    /// thread_local!(static SEED: Cell<u64> = const { Cell::new(0) });
    /// let seed = 42;
    /// let seen = poach::ThreadPool::builder().num_threads(2).build_scoped(
    ///     |worker| {
    ///         SEED.set(seed); // borrowed
    ///         worker.run();
    ///     },
    ///     |pool| pool.broadcast(|_| SEED.get()),
    /// )?;
    /// assert_eq!(seen, [42, 42]);
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](ThreadPoolBuilder::build).
    ///
    /// # Panics
    ///
    /// With `with_pool`'s payload if it panics, else if `wrapper` does; in either case after all
    /// threads have ended.
    pub fn build_scoped<R>(
        self,
        wrapper: impl Fn(ThreadBuilder) + Sync,
        with_pool: impl FnOnce(&ThreadPool) -> R,
    ) -> Result<R, BuildError> {
        let wrapper = &wrapper;
        thread::scope(|scope| {
            let mut spawner = |mut worker: ThreadBuilder| {
                worker.describe()?.spawn_scoped(scope, move || wrapper(worker)).map(drop)
            };
            let pool = self.build_with(Some(&mut spawner))?;
            Ok(with_pool(&pool))
        })
    }
}
