//! The settings of a pool.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use poach_memory::membarrier;

use super::allocate::{
    Made, PoolConfig, Sizes, TaskStacks, allocate_what_fits, for_thread, task_stack_beside,
};
use super::build_error::{BuildError, MAX_THREADS};
use super::gate::Gate;
use super::threads::{NewWorker, ThreadBuilder};
use super::{ThreadPool, environment, global};
use crate::pace::NESTING;
use crate::pool::guests::Guests;
use crate::shared::handlers::Handlers;
use crate::shared::victims::{Plan, Victims};
use crate::shared::waiting::Waiting;
use crate::shared::{SpawnOrder, WaitPolicy};
use crate::sleep::guests;
use crate::worker::current::WorkerThread;
use poach_topology::{Placement, Topology};

/// The default number of threads from outside that may work for a pool at the same time.
const CALLERS: usize = 4;

pub(crate) type Spawner<'h> = Box<dyn FnMut(ThreadBuilder) -> io::Result<()> + 'h>;
type Namer<'h> = Box<dyn FnMut(usize) -> Option<String> + 'h>;

/// The settings of a [`ThreadPool`]: [`ThreadPool::builder`].
///
/// `'h` is how long the handlers that run during [`build`](ThreadPoolBuilder::build) may borrow:
/// those of [`name`](ThreadPoolBuilder::name) and
/// [`spawn_handler`](ThreadPoolBuilder::spawn_handler).
#[doc(alias = "Builder")]
#[must_use = "a builder makes no pool before `build` is called"]
pub struct ThreadPoolBuilder<'h> {
    threads: Option<usize>,
    name: Namer<'h>,
    stack_size: Option<usize>,
    task_stack: Option<usize>,
    pin: Placement,
    victims: Option<Victims>,
    topology: Option<Topology>,
    callers: Option<usize>,
    wait_policy: WaitPolicy,
    handlers: Handlers,
    pub(crate) spares: usize,
    pub(crate) use_current_thread: bool,
    pub(crate) spawner: Option<Spawner<'h>>,
    joins_on_drop: bool,
    without_barrier: bool,
}

impl fmt::Debug for ThreadPoolBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPoolBuilder")
            .field("threads", &self.threads)
            .field("stack_size", &self.stack_size)
            .field("task_stack", &self.task_stack)
            .field("pin", &self.pin)
            .finish_non_exhaustive()
    }
}

impl<'h> ThreadPoolBuilder<'h> {
    /// The number of workers, from 1 to [`MAX_THREADS`]. Any other number is an error of
    /// [`build`](ThreadPoolBuilder::build).
    ///
    /// By default it is the number in the environment variable `POACH_THREADS`, for which the same
    /// holds. If the variable is unset or empty, it is as many threads as the system says can
    /// run in parallel, or `MAX_THREADS` if these are more. Nothing else in Poach reads the
    /// variable.
    #[doc(alias = "threads")]
    #[doc(alias = "worker_threads")]
    pub fn num_threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Names the thread of each worker by its index. By default `poach-0`, `poach-1`, ...
    #[doc(alias = "thread_name")]
    pub fn name(mut self, mut name: impl FnMut(usize) -> String + 'h) -> Self {
        self.name = Box::new(move |index| Some(name(index)));
        self
    }

    /// Leaves the workers' threads without a name. The system then shows them under the name of the
    /// program.
    pub fn unnamed(mut self) -> Self {
        self.name = Box::new(|_| None);
        self
    }

    /// Whether dropping the pool waits for its threads: by default yes.
    ///
    /// With `false` the threads finish what was spawned and end in their own time. Then the pool
    /// may be dropped anywhere: in a task of another pool, in its own
    /// [`on_exit`](ThreadPoolBuilder::on_exit), or under a lock that its tasks take.
    /// [`shutdown`](ThreadPool::shutdown) always waits.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use std::sync::{Arc, Mutex};
    /// use poach::ThreadPool;
    ///
    /// let pool = ThreadPool::builder().num_threads(1).join_on_drop(false).build()?;
    /// let lock = Arc::new(Mutex::new(0));
    /// let held = lock.lock().unwrap();
    /// let (send, done) = std::sync::mpsc::channel();
    /// let shared = Arc::clone(&lock);
    /// pool.spawn(move || send.send(*shared.lock().unwrap() + 1).unwrap());
    /// drop(pool); // would wait for the task, which waits for the lock
    /// drop(held);
    /// assert_eq!(done.recv(), Ok(1));
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    pub fn join_on_drop(mut self, yes: bool) -> Self {
        self.joins_on_drop = yes;
        self
    }

    /// Bytes of call stack a worker thread gets. By default 8 MiB of address space, since a worker
    /// runs other tasks on top of the one that waits; or as many as the environment variable
    /// `RUST_MIN_STACK` says, if these are more. If address space is short (see
    /// [`task_stack`](ThreadPoolBuilder::task_stack)), the 8 MiB become less, but no less than 256
    /// KiB.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// How many forks can be pending on one worker, at most 3 * 2^19 (on a 32-bit machine, 24,576).
    /// A [`join`](crate::join) inside that many others panics. Each takes 64 bytes of address
    /// space, and of memory once it is used.
    ///
    /// By default it is as many as fit in the thread's call stack, at 32 bytes each, from 2^14 to
    /// 2^20: 2^18 with the default [`stack_size`](ThreadPoolBuilder::stack_size), and 2^20 if the
    /// pool does not know the call stack. If address space is short (`ulimit -v`, or a system that
    /// does not overcommit), it is less than that, but no less than 2^14. Next the call stacks
    /// become smaller, down to 2 MiB, and then both do, down to 2^11 forks and 256 KiB. A value
    /// that was set by `task_stack` or `stack_size` stays as it is. If there is not enough even
    /// then, [`build`](ThreadPoolBuilder::build) returns [`BuildError::AddressSpace`]. The answer
    /// does not depend on how the threads run: what all of them need is reserved before the first
    /// one starts.
    pub fn task_stack(mut self, forks: usize) -> Self {
        self.task_stack = Some(forks);
        self
    }

    /// Binds each worker to a processor, as the [`Placement`] says; `true` is
    /// [`Placement::Compact`]. By default they run wherever the system puts them.
    ///
    /// What a worker uses most, its task stack, its queue and its counters, then lies on the memory
    /// node of its processor. If there are more workers than processors, some processors have
    /// several. Linux only; elsewhere [`build`](ThreadPoolBuilder::build) returns
    /// [`BuildError::Topology`].
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// # #[cfg(target_os = "linux")]
    /// # fn main() -> Result<(), poach::BuildError> {
    /// use poach::topology::Placement;
    /// use poach::ThreadPool;
    ///
    /// // Two workers on different nodes, if there are two; else under different caches; else on
    /// // different cores.
    /// let pool = ThreadPool::builder().num_threads(2).pin(Placement::Scatter).build()?;
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

    /// The order in which a worker looks at the others for work. By default it is
    /// [`Victims::Nearest`] if the workers are [pinned](ThreadPoolBuilder::pin), and
    /// [`Victims::Random`] if not.
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

    /// How many threads from outside the pool can work for it at the same time, during their own
    /// calls: at most 20, by default four, or none if the workers are
    /// [pinned](ThreadPoolBuilder::pin). It decides which thread runs what:
    ///
    /// | call, by a thread that is no worker | runs on |
    /// |---|---|
    /// | [`run`](ThreadPool::run); in the global pool also [`join`](crate::join()), [`scope`](crate::scope()) and the loops (`par_for` and the others) | the calling thread, if fewer than `most` others are in such a call: with its thread-local variables, its call stack and its processor. Second halves, a scope's tasks and parts of loops may be taken by the pool's threads. The calls of further threads are handed over, and run on the pool's own threads |
    /// | [`install`](ThreadPool::install), [`spawn`](ThreadPool::spawn), [`broadcast`](ThreadPool::broadcast), [`interrupt`](ThreadPool::interrupt) | the pool's own threads, always |
    /// | [`in_place_scope`](ThreadPool::in_place_scope), [`in_place_scope_fifo`](ThreadPool::in_place_scope_fifo) | the calling thread, always; the scope's tasks run on the pool's own threads |
    ///
    /// A further caller does not wait for a place: callers may wait for each other within their
    /// calls, as those of the example do, and then no place would become free.
    ///
    /// So a server whose 16 request threads rely on thread-local variables (a tracing span, say) in
    /// these calls needs `callers(16)`. Each place takes address space for a task stack, and
    /// workers that look for work look into it, too.
    ///
    /// While it works for the pool, the calling thread has an [index](crate::current_thread_index)
    /// above those of the pool's own workers. It takes no tasks of others, except forks of
    /// workers that have stolen from it. A call that begins during an
    /// [interrupt](crate::interrupt()) waits until that has ended.
    ///
    /// One idle worker of the pool stands aside for each such thread, so that no more threads work
    /// than the pool has workers. A busy worker goes on. A worker that is just looking for work
    /// may first take a share of the thread's tasks, up to half of them, and run these before it
    /// stands aside.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use std::sync::Barrier;
    /// use std::thread;
    ///
    /// let pool = poach::ThreadPool::builder().num_threads(2).callers(6).build()?;
    /// let all_inside = Barrier::new(6);
    /// thread::scope(|s| {
    ///     for _ in 0..6 {
    ///         s.spawn(|| {
    ///             let here = thread::current().id();
    ///             pool.run(|_| {
    ///                 all_inside.wait();
    ///                 assert_eq!(thread::current().id(), here);
    ///             });
    ///         });
    ///     }
    /// });
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    pub fn callers(mut self, most: usize) -> Self {
        self.callers = Some(most);
        self
    }

    /// Whether threads from outside the pool work for it: four at the same time, or
    /// [none](ThreadPoolBuilder::callers).
    pub fn callers_work(self, yes: bool) -> Self {
        self.callers(if yes { CALLERS } else { 0 })
    }

    /// What a worker does while it waits, for the second half of a join above all: by default
    /// [`Waiting::Random`].
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use poach::config::Waiting;
    /// use poach::ThreadPool;
    ///
    /// // This program holds locks across joins, so no other task may run on top of them.
    /// let pool = ThreadPool::builder().waiting(Waiting::Sleep).build()?;
    /// assert_eq!(pool.run(|_| poach::join(|| 6, || 7)), (6, 7));
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.wait_policy.waiting = waiting;
        self
    }

    /// How many tasks a worker can run on top of its own waits, by default 64. From then on a join
    /// that waits for a stolen half takes only parts of that half ([`Waiting::Transitive`]
    /// instead of [`Waiting::Random`]). It also does so, with fewer tasks, once half of the
    /// worker's call stack is in use. The stack of a thread that is not the pool's own is
    /// unknown, and 512 KiB count as half of it.
    ///
    /// This limits how deep *joins* nest. Waits for scopes, handles and calls into other pools take
    /// any task until half of the call stack is in use: see [`Waiting`].
    pub fn nesting(mut self, tasks: usize) -> Self {
        self.wait_policy.nesting = tasks;
        self
    }

    /// The order in which a worker runs the tasks that it has itself spawned: by default
    /// [`SpawnOrder::Lifo`].
    ///
    /// Thieves take the oldest task in either case, and joins have no order. In `Fifo` order a
    /// worker takes each of its tasks as a thief does, with a compare-and-swap. For the tasks
    /// of one scope, or single tasks, there are [`scope_fifo`](crate::scope_fifo) and
    /// [`TaskBuilder::in_order`](crate::TaskBuilder::in_order).
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use std::sync::Mutex;
    /// use poach::config::SpawnOrder;
    /// use poach::ThreadPool;
    ///
    /// let pool = ThreadPool::builder().num_threads(1).spawn_order(SpawnOrder::Fifo).build()?;
    /// let seen = Mutex::new(Vec::new());
    /// // On the pool's one thread: with `pool.run` this thread would be a second worker.
    /// pool.install(|| {
    ///     poach::scope(|s| {
    ///         for i in 0..5 {
    ///             let seen = &seen;
    ///             s.spawn(move |_| seen.lock().unwrap().push(i));
    ///         }
    ///     })
    /// });
    /// assert_eq!(seen.into_inner().unwrap(), [0, 1, 2, 3, 4]);
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    pub fn spawn_order(mut self, order: SpawnOrder) -> Self {
        self.wait_policy.order = order;
        self
    }

    /// Called on each worker, with its index, before the worker takes work. Calls of `join` and the
    /// like in it use this pool.
    ///
    /// [`build`](ThreadPoolBuilder::build) waits until it has ended on all workers. If it panics,
    /// the [panic handler](ThreadPoolBuilder::on_panic) is called, and `build`
    /// returns [`BuildError::Start`], so that no pool has workers that are not initialised;
    /// [`wait_for_start`](ThreadPoolBuilder::wait_for_start) changes that. It is not called on a
    /// thread from outside that [works for the pool](ThreadPoolBuilder::callers).
    #[doc(alias = "start_handler")]
    pub fn on_start(mut self, handler: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.handlers.start = Some(Box::new(handler));
        self
    }

    /// Whether [`build`](ThreadPoolBuilder::build) waits until the [start
    /// handler](ThreadPoolBuilder::on_start) has returned on every worker. The default is yes.
    ///
    /// With `false`, `build` returns while start handlers may still run. A handler may then wait
    /// for the thread that builds the pool. If a handler panics, the [panic
    /// handler](ThreadPoolBuilder::on_panic) is told, and its worker takes work all the same.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use std::sync::{Arc, Barrier};
    /// use poach::ThreadPool;
    ///
    /// let started = Arc::new(Barrier::new(3));
    /// let here = Arc::clone(&started);
    /// let pool = ThreadPool::builder()
    ///     .num_threads(2)
    ///     .on_start(move |_| drop(here.wait()))
    ///     .wait_for_start(false)
    ///     .build()?;
    /// started.wait(); // `build` would have waited for the handlers, and they wait for this
    /// assert_eq!(pool.run(|_| poach::join(|| 1, || 2)), (1, 2));
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    pub fn wait_for_start(mut self, yes: bool) -> Self {
        self.handlers.start_is_awaited = yes;
        self
    }

    /// Called on each worker, with its index, when the worker ends. The pool has no other workers
    /// for certain then: a spawn, a broadcast and an interrupt in it panic, and joins and
    /// scopes run on this thread.
    #[doc(alias = "exit_handler")]
    pub fn on_exit(mut self, handler: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.handlers.exit = Some(Box::new(handler));
        self
    }

    /// Called with the payload of a panic that nobody waits for: of a detached task, or of a
    /// start or exit handler. Without a handler such a panic does no more than print the panic
    /// hook's message.
    #[doc(alias = "panic_handler")]
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

    /// As `build`, with `spawner` to start the threads, if it is given.
    pub(crate) fn build_with(
        self,
        mut spawner: Option<&mut dyn FnMut(ThreadBuilder) -> io::Result<()>>,
    ) -> Result<ThreadPool, BuildError> {
        let without_barrier = environment::without_barrier()? || self.without_barrier;
        let threads = match self.threads {
            Some(threads) => threads,
            None => environment::threads()?,
        };
        let own = if threads == 0 { 0 } else { threads.saturating_add(self.spares) };
        if !(1..=MAX_THREADS).contains(&own) {
            return Err(BuildError::Threads(own));
        }
        if self.use_current_thread && WorkerThread::with(|local| local.is_some()) {
            return Err(BuildError::CurrentThreadInPool);
        }
        let anywhere = self.pin == Placement::Anywhere;
        let guests = self.callers.unwrap_or(if anywhere { CALLERS } else { 0 });
        if guests > guests::MOST_PLACES {
            return Err(BuildError::Callers(guests));
        }
        let slots = own + guests;
        let plan = Plan::new(slots, threads, &self.pin, self.victims, self.topology)?;
        let plan = Arc::new(plan);
        // It cannot be undone, so it is not done for settings that are refused.
        if without_barrier {
            membarrier::switch_off();
        }
        let handlers = Arc::new(self.handlers);
        let wait_policy = self.wait_policy;
        let call_stack = self.stack_size.unwrap_or_else(environment::stack);
        let task_stacks = if let Some(forks) = self.task_stack {
            TaskStacks::all(forks)
        } else {
            // A handler that is given no size uses call stacks of its own.
            let known = (spawner.is_none() || self.stack_size.is_some()).then_some(call_stack);
            TaskStacks {
                own: task_stack_beside(known),
                foreign: task_stack_beside(None),
                resident: self.use_current_thread,
            }
        };
        let sizes = Sizes {
            task_stacks,
            task_stacks_set: self.task_stack.is_some(),
            call_stack,
            call_stack_set: self.stack_size.is_some() || environment::is_stack_set(),
            handler: spawner.is_some(),
        };
        // A handler may use the pool on a worker that does not look for work yet, or start no
        // thread for a worker.
        let asleep = match (&spawner, &handlers.start) {
            (None, None) => usize::from(self.use_current_thread)..threads,
            _ => 0..0,
        };
        let config = PoolConfig { threads, guests, asleep, task_stacks, wait_policy };
        let Made { shared, mut owners, call_stack, mut reserved } =
            allocate_what_fits(&plan, config, &handlers, own, sizes)?;
        let guests = Guests::new(&shared, owners.split_off(own));
        // If a later worker fails to start, this value's drop ends the started ones.
        let started = Mutex::new(Vec::with_capacity(own));
        let mut pool = ThreadPool { shared, guests, threads: started, joins_on_drop: true };
        let mut name = self.name;
        let (report, started) = mpsc::channel();
        let waits = plan.processor(0).is_some() || pool.shared.handlers.awaited_start().is_some();
        let (mut resident, mut names) = (None, Vec::with_capacity(own));
        // Dropped before the pool, whose threads wait at it.
        let mut gate = reserved.as_ref().filter(|_| spawner.is_none()).map(|_| Gate::closed());
        for (index, spawns) in owners.into_iter().enumerate() {
            let local = NewWorker { shared: Arc::clone(&pool.shared), index, spawns, stack: None };
            if index == 0 && self.use_current_thread {
                resident = Some(local);
                names.push(thread::current().name().map(str::to_owned));
                continue;
            }
            let processor = plan.processor(index);
            let report = waits.then(|| report.clone());
            let name = name(index);
            if name.as_ref().is_some_and(|name| name.contains('\0')) {
                return Err(BuildError::Name { index });
            }
            names.push(name.clone());
            if let Some(reserved) = &mut reserved {
                reserved.release(for_thread(call_stack));
            }
            let gate_place = gate.as_ref().map(Gate::place);
            let stack_size = self.stack_size.or_else(|| spawner.is_none().then_some(call_stack));
            let builder = ThreadBuilder {
                name,
                stack_size,
                slot: local,
                processor,
                report,
                gate: gate_place,
            };
            let thread = match &mut spawner {
                Some(spawner) => spawner(builder),
                None => builder.spawn().map(|thread| {
                    let threads = pool.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
                    threads.push(thread);
                }),
            };
            thread.map_err(|source| BuildError::Spawn { index, source })?;
            if let Some(gate) = &mut gate {
                gate.wait();
            }
        }
        drop((gate, reserved));
        drop(report);
        started.iter().collect::<Result<(), _>>()?;
        if let Some(place) = resident {
            if let Some(processor) = plan.processor(0) {
                poach_topology::bind(processor).map_err(BuildError::Pin)?;
            }
            place.local().reside();
        }
        // No other thread has the shared state.
        _ = pool.shared.names.set(names);
        pool.joins_on_drop = self.joins_on_drop;
        Ok(pool)
    }

    /// Uses no [process-wide barrier](poach_memory::membarrier): owners fence each pop of a fork or
    /// task, and thieves need no system call.
    ///
    /// For a program that will install a seccomp filter against `membarrier(2)` once it has
    /// started, and for measurements. The barrier is the process's, so this holds for all pools of
    /// the process, existing ones included, and cannot be undone. An existing pool may still make a
    /// few barriers, to take tasks of workers that have not come to their queues since. So if the
    /// filter kills, build the first pool with this. The environment variable `POACH_BARRIER` does
    /// the same if it is `off`; if it is neither that nor `on` nor empty,
    /// [`build`](ThreadPoolBuilder::build) returns [`BuildError::Environment`].
    ///
    /// Without this, a filter that returns an error does little harm. If it is on all threads, the
    /// tasks that a worker had pushed before it learnt of it wait until the worker comes back to
    /// its deque.
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// let pool = poach::ThreadPool::builder().num_threads(2).without_barrier().build()?;
    /// assert_eq!(pool.run(|_| poach::join(|| 1, || 2)), (1, 2));
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    pub fn without_barrier(mut self) -> Self {
        self.without_barrier = true;
        self
    }

    /// Makes this the global pool, which functions called outside any pool use.
    ///
    /// # Errors
    ///
    /// [`BuildError::GlobalExists`] if there is one already: from an earlier call, or because the
    /// global pool has been used. Else as [`build`](ThreadPoolBuilder::build).
    pub fn build_global(self) -> Result<(), BuildError> {
        global::set(|| self.build())
    }
}

impl ThreadPool {
    /// A pool with settings: [`ThreadPoolBuilder`].
    pub fn builder<'h>() -> ThreadPoolBuilder<'h> {
        ThreadPoolBuilder {
            threads: None,
            name: Box::new(|index| Some(format!("poach-{index}"))),
            stack_size: None,
            task_stack: None,
            pin: Placement::Anywhere,
            victims: None,
            topology: None,
            callers: None,
            wait_policy: WaitPolicy {
                waiting: Waiting::default(),
                nesting: NESTING,
                order: SpawnOrder::default(),
            },
            handlers: Handlers::default(),
            spares: 0,
            use_current_thread: false,
            spawner: None,
            joins_on_drop: true,
            without_barrier: false,
        }
    }
}
