//! Thread pools: made by a builder, entered by `install` or `run`, closed when dropped.

use std::any::Any;
use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::panic;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::{self, JoinHandle as ThreadHandle};

use poach_deque::split::{MAX_SLOTS, Split, Stack};
use poach_memory::{CachePadded, Machine, Memory};

use crate::affinity;
use crate::build_error::{BuildError, MAX_THREADS};
use crate::handlers::Handlers;
use crate::home::Home;
use crate::job::current::Local;
use crate::job::fork::Worker;
use crate::job::guests::Guests;
use crate::job::shared::Shared;
use crate::job::unwind::dispose;
use crate::latch::Signal;
use crate::place::{Plan, Victims};
use crate::registry::{Parts, Registry, Remote, Spawns, WaitPolicy};
use crate::sleep::Sleep;
use crate::sleep::wake_policy::WakePolicy;
use crate::threads::{Place, ThreadBuilder};
use crate::topology::{Placement, Topology};
use crate::waiting::{NESTING, Waiting};
use crate::watch::Watch;

/// Pending forks a worker can hold unless the builder says otherwise. Each takes 64 bytes of address
/// space, and of memory once it has been used; a thread's call stack runs out long before.
const TASK_STACK: usize = if MAX_SLOTS < 1 << 20 { MAX_SLOTS } else { 1 << 20 };

/// Spawned tasks that a worker's queue has room for before it grows: 32 bytes each, and 56 for what is large in it.
const SPAWN_QUEUE: usize = 1 << 8;

/// Threads from outside that may work for a pool at the same time in places of their own.
const GUESTS: usize = 4;

/// Starts a worker's thread.
pub(crate) type Spawner = Box<dyn FnMut(ThreadBuilder) -> io::Result<()>>;
type Namer = Box<dyn FnMut(usize) -> String>;

/// How a [`ThreadPool`] is to be made: [`ThreadPool::builder`].
#[must_use = "a builder makes no pool before `build` is called"]
pub struct Builder {
    threads: Option<usize>,
    name: Option<Namer>,
    stack_size: Option<usize>,
    task_stack: usize,
    pin: Placement,
    victims: Option<Victims>,
    topology: Option<Topology>,
    callers_work: Option<bool>,
    wait_policy: WaitPolicy,
    handlers: Handlers,
    pub(crate) spares: usize,
    pub(crate) use_current_thread: bool,
    pub(crate) spawner: Option<Spawner>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("threads", &self.threads)
            .field("stack_size", &self.stack_size)
            .field("task_stack", &self.task_stack)
            .field("pin", &self.pin)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// How many workers: 1 to [`MAX_THREADS`]; another number is refused by [`build`](Builder::build). By default as
    /// many as the system says run in parallel, or [`MAX_THREADS`] where it says more.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Names the thread of each worker by its index. By default `poach-0`, `poach-1`, ...
    pub fn name(mut self, name: impl FnMut(usize) -> String + 'static) -> Self {
        self.name = Some(Box::new(name));
        self
    }

    /// Bytes of call stack a worker thread gets. By default 8 MiB of address space, since a worker
    /// runs other tasks on top of the one that waits.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// How many forks may be pending on one worker, by default 2^20, and at most 3 * 2^19 (on a machine
    /// of 32 bits, 24,576 for both): a [`join`](crate::join) inside that many others panics. Each takes
    /// 64 bytes of address space, of memory once used.
    pub fn task_stack(mut self, forks: usize) -> Self {
        self.task_stack = forks;
        self
    }

    /// Binds each worker to a processor, as the [`Placement`] says; `true` is
    /// [`Placement::Compact`]. By default they run wherever the system puts them.
    ///
    /// What a worker uses most, its task stack, its queue and its counters, then lies on the memory
    /// node of its processor. If there are more workers than processors, these are dealt out again.
    /// Linux only; elsewhere [`build`](Builder::build) answers [`BuildError::Topology`].
    ///
    /// ```
    /// # #[cfg(target_os = "linux")]
    /// # fn main() -> Result<(), poach_runtime::BuildError> {
    /// use poach_runtime::{Placement, ThreadPool};
    ///
    /// // Two workers on different nodes, if there are two; else under different caches; else on
    /// // different cores.
    /// let pool = ThreadPool::builder().threads(2).pin(Placement::Scatter).build()?;
    /// assert_eq!(pool.install(|| 6 * 7), 42);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(target_os = "linux"))]
    /// # fn main() {}
    /// ```
    pub fn pin(mut self, placement: impl Into<Placement>) -> Self {
        self.pin = placement.into();
        self
    }

    /// In which order a worker looks at the others for work. By default the nearest come first if
    /// the workers are [pinned](Builder::pin), and they come at random if not.
    pub fn victims(mut self, victims: Victims) -> Self {
        self.victims = Some(victims);
        self
    }

    /// The processors to pin the workers to, and how far apart they are. By default those of
    /// [`Topology::read`]: all that the calling thread may use.
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = Some(topology);
        self
    }

    /// Whether a thread that is no worker runs the regions that it calls itself: by default yes, unless the workers are
    /// [pinned](Builder::pin).
    ///
    /// Then [`join`](ThreadPool::join), [`join_context`](ThreadPool::join_context), [`scope`](ThreadPool::scope),
    /// [`scope_fifo`](ThreadPool::scope_fifo), [`run`](ThreadPool::run), and in the global pool the functions of these names
    /// and the loops ([`par_for`](crate::par_for()) and the like), run their own body on the calling
    /// thread, always: with its thread-local variables, its call stack, its processor. The thread is one more worker for as
    /// long, with an [index](crate::current_thread_index) above those of the pool's own, and of the
    /// pool's workers that have nothing to do, one stands aside, so that no more threads are at work than the pool has
    /// workers. It takes no task of others, but forks of those that have stolen from it. Four threads may do so at the same time;
    /// the calls of more are handed to the pool's threads.
    ///
    /// [`install`](ThreadPool::install), [`broadcast`](ThreadPool::broadcast), [`interrupt`](ThreadPool::interrupt) and
    /// [`spawn`](ThreadPool::spawn) run what they are given on the pool's own threads, always. With `false` so does everything.
    pub fn callers_work(mut self, yes: bool) -> Self {
        self.callers_work = Some(yes);
        self
    }

    /// What a worker does while the second half of its join runs on another: by default
    /// [`Waiting::Random`].
    ///
    /// ```
    /// use poach_runtime::{ThreadPool, Waiting};
    ///
    /// // Joins hold locks here, so nothing foreign may run on top of them.
    /// let pool = ThreadPool::builder().waiting(Waiting::Sleep).build()?;
    /// assert_eq!(pool.join(|| 6, || 7), (6, 7));
    /// # Ok::<(), poach_runtime::BuildError>(())
    /// ```
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.wait_policy.waiting = waiting;
        self
    }

    /// How many tasks may be under way on one worker on top of its waits, by default 64, before a join that
    /// waits for a stolen half takes nothing foreign any more ([`Waiting::Transitive`] in the place of
    /// [`Waiting::Random`]). So it does as well when half of the worker's call stack is in use, however
    /// few they are; of a thread that is not the pool's own, and whose stack nobody knows, 512 KiB count
    /// as half.
    ///
    /// It bounds what *joins* pile up. Scopes and handles that wait take any work, however deep.
    pub fn nesting(mut self, tasks: usize) -> Self {
        self.wait_policy.nesting = tasks;
        self
    }

    /// Called on each worker's thread, with its index, before it takes work.
    pub fn on_start(mut self, handler: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.handlers.start = Some(Box::new(handler));
        self
    }

    /// Called on each worker's thread, with its index, when it ends.
    pub fn on_exit(mut self, handler: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.handlers.exit = Some(Box::new(handler));
        self
    }

    /// Called with the payload of a panic that has nobody to travel to: of a detached task, or of a
    /// start or exit handler. Without one such a panic ends with the message of the panic hook.
    pub fn on_panic(
        mut self,
        handler: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.panic = Some(Box::new(handler));
        self
    }

    /// Starts the workers.
    ///
    /// # Errors
    ///
    /// [`BuildError`]. No thread is left behind.
    pub fn build(mut self) -> Result<ThreadPool, BuildError> {
        match self.spawner.take() {
            Some(mut spawner) => self.build_with(Some(&mut *spawner)),
            None => self.build_with(None),
        }
    }

    /// As `build`; `spawner` starts the threads, if it is given.
    pub(crate) fn build_with(
        self,
        mut spawner: Option<&mut dyn FnMut(ThreadBuilder) -> io::Result<()>>,
    ) -> Result<ThreadPool, BuildError> {
        let threads = match self.threads {
            Some(threads) => threads,
            None => thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS),
        };
        let own = threads.saturating_add(self.spares);
        if threads == 0 || own > MAX_THREADS {
            return Err(BuildError::Threads(own));
        }
        if self.use_current_thread && Local::with(|local| local.is_some()) {
            return Err(BuildError::CurrentThreadInPool);
        }
        let callers_work = self.callers_work.unwrap_or(self.pin == Placement::Anywhere);
        let guests = if callers_work { GUESTS } else { 0 };
        let seats = own + guests;
        let plan = Plan::new(seats, threads, &self.pin, self.victims, self.topology)?;
        let handlers = Arc::new(self.handlers);
        let wait_policy = self.wait_policy;
        let config = PoolConfig { threads, guests, task_stack: self.task_stack, wait_policy };
        let (registry, mut owners) = allocate(&plan, config, handlers, None)?;
        let guests = Guests::new(&registry, owners.split_off(own));
        // Started workers are ended by this value's drop, should a later one fail to start.
        let mut pool =
            ThreadPool { registry, guests, threads: Mutex::new(Vec::with_capacity(own)) };
        let mut name = self.name.unwrap_or_else(|| Box::new(|index| format!("poach-{index}")));
        let (report, pinned) = mpsc::channel();
        let mut resident = None;
        for (index, spawns) in owners.into_iter().enumerate() {
            let local = Place { registry: Arc::clone(&pool.registry), index, spawns, stack: None };
            if index == 0 && self.use_current_thread {
                resident = Some(local);
                continue;
            }
            let processor = plan.processor(index).map(|processor| (processor, report.clone()));
            let builder = ThreadBuilder {
                name: name(index),
                stack_size: self.stack_size,
                place: local,
                processor,
            };
            let started = match &mut spawner {
                Some(spawner) => spawner(builder),
                None => builder.spawn().map(|thread| {
                    let threads = pool.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
                    threads.push(thread);
                }),
            };
            started.map_err(|source| BuildError::Spawn { index, source })?;
        }
        drop(report);
        pinned.iter().collect::<io::Result<()>>().map_err(BuildError::Pin)?;
        if let Some(place) = resident {
            if let Some(processor) = plan.processor(0) {
                affinity::bind(processor).map_err(BuildError::Pin)?;
            }
            place.local().reside();
        }
        Ok(pool)
    }

    /// Makes this the pool that functions outside any pool use.
    ///
    /// # Errors
    ///
    /// [`BuildError::GlobalExists`] if there is one already: made by an earlier call, or by the first
    /// use. Else as [`build`](Builder::build).
    pub fn build_global(self) -> Result<(), BuildError> {
        if GLOBAL.get().is_some() {
            return Err(BuildError::GlobalExists);
        }
        GLOBAL.set(self.build()?).map_err(|_| BuildError::GlobalExists)
    }
}

static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();

/// The pool that functions outside any pool use.
///
/// # Panics
///
/// At its first use, if the system refuses its threads.
pub(crate) fn global() -> &'static ThreadPool {
    GLOBAL.get_or_init(|| match ThreadPool::builder().build() {
        Ok(pool) => pool,
        Err(error) => panic!("the global thread pool could not be made: {error}"),
    })
}

/// How a registry's workers are made.
#[derive(Clone, Copy)]
pub(crate) struct PoolConfig {
    /// Regular workers: the first.
    pub(crate) threads: usize,
    /// Places of guests: the last of the plan's seats.
    pub(crate) guests: usize,
    pub(crate) task_stack: usize,
    pub(crate) wait_policy: WaitPolicy,
}

/// Makes a registry and its workers' own ends of their queues, with nobody in it yet.
pub(crate) fn allocate(
    plan: &Plan,
    config: PoolConfig,
    handlers: Arc<Handlers>,
    parent: Option<Arc<Registry>>,
) -> Result<(Arc<Registry>, Vec<Spawns>), BuildError> {
    // Thieves will want it; the first call is slow.
    Machine::asymmetric();
    let seats = plan.seats();
    let PoolConfig { threads, guests, task_stack, wait_policy } = config;
    let sleep = Arc::new(Sleep::new(seats, guests, wait_policy.waiting.reach(seats)));
    let wake_policy = Arc::new(WakePolicy::new());
    let mut owners = Vec::with_capacity(seats);
    let mut workers = Vec::with_capacity(seats);
    for index in 0..seats {
        let make = || {
            // In a frame within another, a worker is the same thread as outside.
            let watch = match &parent {
                Some(parent) => Arc::clone(&parent.workers[index].watch),
                None => Arc::new(CachePadded::new(Watch::new())),
            };
            let home = || Home::new(index, &sleep, &watch, &wake_policy);
            let forks = Stack::new(task_stack, home()).map_err(BuildError::TaskStack)?;
            let spawns: Spawns =
                Split::with_context(SPAWN_QUEUE, 0, home()).map_err(BuildError::SpawnQueue)?;
            let rings = plan.rings(index);
            Ok((Remote::new(forks, spawns.thief(), watch, rings), spawns))
        };
        let (worker, spawns) = plan.near(index, make).map_err(BuildError::Pin)??;
        workers.push(worker);
        owners.push(spawns);
    }
    let workers = workers.into();
    let parts =
        Parts { sleep, wake_policy, workers, threads, guests, handlers, wait_policy, parent };
    Ok((Registry::new(parts), owners))
}

/// A pool of workers.
///
/// Dropping it lets the workers finish what was spawned, ends them, and waits for them, unless it is
/// dropped by one of them. Pools nest: a worker that installs into another pool keeps working for its
/// own while it waits.
pub struct ThreadPool {
    pub(crate) registry: Arc<Registry>,
    guests: Guests,
    threads: Mutex<Vec<ThreadHandle<()>>>,
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool").field("threads", &self.threads()).finish_non_exhaustive()
    }
}

impl ThreadPool {
    /// How the pool is to be made.
    pub fn builder() -> Builder {
        Builder {
            threads: None,
            name: None,
            stack_size: None,
            task_stack: TASK_STACK,
            pin: Placement::Anywhere,
            victims: None,
            topology: None,
            callers_work: None,
            wait_policy: WaitPolicy { waiting: Waiting::default(), nesting: NESTING },
            handlers: Handlers::default(),
            spares: 0,
            use_current_thread: false,
            spawner: None,
        }
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The number of workers.
    pub fn threads(&self) -> usize {
        self.registry.threads
    }

    /// Runs `f` on one of this pool's own threads and waits for its result. Inside it, [`join`](crate::join),
    /// [`scope`](crate::scope) and [`spawn`](crate::spawn) use this pool.
    ///
    /// So `f` has the stack size, the thread-local variables and the handlers that the pool was built with, and
    /// none of the caller's. On one of this pool's own threads it is a plain call; on any other it is handed over, which
    /// takes tens of microseconds if all workers sleep. A worker of another pool works for that one while it waits.
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
    /// call. A worker of another pool hands `f` over, and works for that one while it waits.
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
                self.registry.inject(task);
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
        if self.registry.birth.is_elsewhere() {
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
        if !own {
            for thread in threads {
                // It does not end by a panic: `threads::work` catches what it calls.
                dispose(thread.join());
            }
        }
    }
}
