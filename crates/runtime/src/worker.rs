//! A worker: finding work, running it, waiting for what others run.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;

use poach_deque::split::{Claim, Exposure, Stolen};
use poach_deque::{Owner, Steal, Thief};
use poach_memory::{CachePadded, Machine, Memory};

use crate::fifo::Fifo;
use crate::job::fork::{self, Head, Worker};
use crate::job::task::{AbortOnUnwind, Task};
use crate::registry::{Priority, Registry, Remote, Spawns};
use crate::trace::Activity;
use crate::watch::Watch;

/// How often an idle worker looks at everything before it sleeps: first at once, then giving its
/// processor away after each look.
const LOOKS: u32 = 64;
/// How many of these looks come without giving the processor away.
const EAGER_LOOKS: u32 = 16;
/// Pauses between two eager looks.
const PAUSES: u32 = 8;

/// What this thread knows of itself as a worker.
pub(crate) struct Local {
    pub(crate) registry: Arc<Registry>,
    pub(crate) index: usize,
    pub(crate) watch: Arc<CachePadded<Watch>>,
    spawns: Spawns,
    /// Where the stack's top was when this thread last forked without a token.
    pub(crate) hint: Cell<Head>,
    /// What this worker has spawned in FIFO order.
    pub(crate) fifo: Arc<Fifo>,
    /// Whether the pool was made to use this thread, which has a life of its own.
    pub(crate) resident: Cell<bool>,
    random: Cell<u64>,
}

/// Something to run.
enum Work<'r> {
    /// The second half of a join, stolen from this worker.
    Fork(Stolen<'r, Machine>, usize, Activity),
    Task(Task, Activity),
}

impl Local {
    pub(crate) fn new(registry: Arc<Registry>, index: usize, spawns: Spawns) -> Local {
        let hint = Cell::new(Local::bottom(&registry, index));
        // Any odd number does; they only must differ.
        let random = Cell::new((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (fifo, resident) = (Arc::new(Fifo::new()), Cell::new(false));
        let watch = Arc::clone(&registry.workers[index].watch);
        Local { registry, index, watch, spawns, hint, fifo, resident, random }
    }

    /// Pushes a spawned task onto this worker's queue.
    #[inline]
    pub(crate) fn spawn(&self, task: Task) {
        self.spawns.push(task);
    }

    /// This worker's youngest spawned task.
    #[inline]
    pub(crate) fn pop_own(&self) -> Option<Task> {
        self.spawns.pop()
    }

    /// Runs one spawned task of this worker's own, if it has one.
    #[inline]
    pub(crate) fn run_own(&self) -> bool {
        let task = self.pop_own();
        let found = task.is_some();
        if let Some(task) = task {
            let _running = self.watch.runs(Activity::OwnTask);
            task.run();
        }
        found
    }

    /// Works until the pool has closed and nothing is left to do.
    pub(crate) fn main_loop(&self) {
        self.publish();
        self.work_until(&|| self.registry.is_finished(), &|| None, || self.token(), true);
    }

    /// The pool was dropped on this thread: if nobody can be sure that it will ever look for work again,
    /// it runs now what it has spawned and not started.
    pub(crate) fn leave(&self) {
        while self.resident.get() && self.run_own() {}
    }

    /// This worker, as the others see it.
    #[inline]
    pub(crate) fn remote(&self) -> &Remote {
        &self.registry.workers[self.index]
    }

    /// Whether it has spawned tasks that have not started, or joins that are not complete.
    pub(crate) fn has_pending_tasks(&self) -> bool {
        !self.spawns.is_empty() || self.token().head().depth() != 0
    }

    /// Runs one piece of work from wherever there is some, for one who does not wait.
    pub(crate) fn run_any(&self) -> bool {
        let found = self.find(None);
        let any = found.is_some();
        if let Some(work) = found {
            self.run(work, self.token());
        }
        any
    }

    /// Runs what this worker is called to, if it is: a point at which it can be interrupted.
    #[inline]
    pub(crate) fn answer_calls(&self) {
        if !self.remote().calls.is_empty() {
            while let Some(task) = self.remote().calls.take() {
                self.run(Work::Task(task, Activity::InjectedTask), self.token());
            }
        }
    }

    /// Takes work from wherever there is some until `done`: from `thief` first, the worker that runs
    /// what this one waits for (leapfrogging), then urgent ones from outside, this worker's own tasks,
    /// its mail, everybody's tasks in the order of its rings, and the others from outside. With no
    /// work, it looks a while, then sleeps; whoever makes
    /// `done` true must call [`Sleep::wake`](crate::sleep::Sleep::wake).
    ///
    /// `token` is this worker's token for what it runs.
    pub(crate) fn wait<'w>(
        &self,
        done: &dyn Fn() -> bool,
        thief: &dyn Fn() -> Option<usize>,
        token: impl Fn() -> Worker<'w>,
    ) {
        self.work_until(done, thief, token, false);
    }

    /// Calls `f` in the place of a worker that sleeps with nothing under way, if there is one; else
    /// gives `f` back. For a thread that is no worker.
    pub(crate) fn in_place_of_a_sleeper<R, F: FnOnce() -> R>(
        registry: &Registry,
        f: F,
    ) -> Result<R, F> {
        /// Gives the place back, also when `f` unwinds.
        struct Place<'r> {
            registry: &'r Registry,
            index: usize,
            local: &'r Local,
        }
        impl Drop for Place<'_> {
            fn drop(&mut self) {
                let Place { registry, index, local } = *self;
                let left_behind = !local.spawns.is_empty();
                // From here on the Local is the worker's.
                registry.sleep.give_back(index, || {
                    registry.request_everywhere(Some(index));
                    left_behind
                        || registry.is_closing()
                        || registry.visible_work()
                        || registry.workers[index].has_mail()
                });
            }
        }
        registry.birth.check();
        let Some(index) = registry.sleep.take_place() else { return Err(f) };
        let place = Place { registry, index, local: Local::of_sleeper(registry, index) };
        Ok(place.local.enter(|local| {
            let _running = local.watch.runs(Activity::InPlace);
            f()
        }))
    }

    /// [`wait`](Local::wait); `vacant` says that nothing is under way on this worker.
    fn work_until<'w>(
        &self,
        done: &dyn Fn() -> bool,
        thief: &dyn Fn() -> Option<usize>,
        token: impl Fn() -> Worker<'w>,
        vacant: bool,
    ) {
        let _waiting = (!vacant).then(|| self.watch.waits());
        let mut looks = 0;
        while !done() {
            if let Some(work) = self.find(thief()) {
                if looks != 0 {
                    self.registry.found();
                    looks = 0;
                }
                self.run(work, token());
                continue;
            }
            if looks == 0 {
                self.registry.sleep.search();
            }
            looks += 1;
            if looks < EAGER_LOOKS {
                for _ in 0..PAUSES {
                    Machine::pause();
                }
            } else if (looks == EAGER_LOOKS || looks == LOOKS) && self.expose() {
                // Something to steal now.
            } else if looks < LOOKS {
                thread::yield_now();
            } else {
                self.registry.birth.check_or_abort();
                // Begun and ended outside of `sleep`: within, another may be in this worker's place.
                let sleeping = self.watch.sleeps();
                self.registry.sleep.sleep(self.index, vacant, || {
                    self.registry.request_everywhere(Some(self.index));
                    done() || self.registry.visible_work() || self.remote().has_mail()
                });
                drop(sleeping);
                looks = 1;
            }
        }
        if looks != 0 {
            self.registry.found();
        }
    }

    fn find(&self, thief: Option<usize>) -> Option<Work<'_>> {
        if let Some(task) = self.remote().calls.take() {
            return Some(Work::Task(task, Activity::InjectedTask));
        }
        if let Some(thief) = thief
            && let Some(stolen) = self.steal_fork(thief, true)
        {
            return Some(stolen);
        }
        if let Some(task) = self.registry.injected(Priority::High) {
            return Some(Work::Task(task, Activity::InjectedTask));
        }
        if let Some(task) = self.pop_own() {
            return Some(Work::Task(task, Activity::OwnTask));
        }
        if let Some(task) = self.remote().mail.take() {
            return Some(Work::Task(task, Activity::InjectedTask));
        }
        for victim in self.remote().rings.order(self.next_random()) {
            if let Some(work) = self.steal_fork(victim, false) {
                return Some(work);
            }
            if let Some(task) = self.steal_tasks(victim) {
                return Some(Work::Task(task, Activity::StolenTask { victim }));
            }
        }
        self.registry
            .injected(Priority::Normal)
            .map(|task| Work::Task(task, Activity::InjectedTask))
    }

    /// Steals the oldest fork of `victim`; each attempt that another thief beats is that one's success.
    fn steal_fork(&self, victim: usize, leap: bool) -> Option<Work<'_>> {
        loop {
            match self.registry.workers[victim].forks.steal() {
                Ok(stolen) => {
                    let kind = Activity::StolenFork { victim, leap };
                    return Some(Work::Fork(stolen, victim, kind));
                }
                Err(Claim::Lost) => Machine::pause(),
                Err(_) => return None,
            }
        }
    }

    /// Steals half of the spawned tasks of `victim`: one to run, the others into this worker's queue.
    fn steal_tasks(&self, victim: usize) -> Option<Task> {
        loop {
            match self.registry.workers[victim].spawns.steal_half(&self.spawns) {
                Steal::Success(task) => return Some(task),
                Steal::Retry => Machine::pause(),
                Steal::Empty | Steal::Abort => return None,
            }
        }
    }

    /// Nobody has answered this worker's requests for a while: moves the split of a worker that has
    /// private tasks and does not come back to its deque.
    #[cold]
    fn expose(&self) -> bool {
        let workers = &self.registry.workers;
        workers[self.index].rings.order(self.next_random()).any(|victim| {
            let exposure = workers[victim].forks.expose();
            self.watch.exposes(victim, exposure);
            exposure == Exposure::Done
        })
    }

    fn run(&self, work: Work<'_>, worker: Worker<'_>) {
        self.hint.set(worker.head());
        match work {
            Work::Task(task, kind) => {
                let _running = self.watch.runs(kind);
                task.run();
            }
            Work::Fork(stolen, victim, kind) => {
                let running = self.watch.runs(kind);
                let guard = AbortOnUnwind("a stolen half left its thief without an outcome");
                fork::run_stolen(&stolen, self.index, worker);
                guard.disarm();
                drop(running);
                self.registry.sleep.wake(victim);
            }
        }
    }

    /// Xorshift: which victim comes first.
    fn next_random(&self) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x
    }
}
