//! A worker: finding work, running it, waiting for what others run.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;

use poach_deque::split::{Claim, QueueOwner, Stolen};
use poach_memory::{Machine, Memory};

use crate::fifo::Fifo;
use crate::job::fork::{self, Head, Worker};
use crate::job::task::{AbortOnUnwind, Task};
use crate::registry::{Priority, Registry, Remote};

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
    spawns: QueueOwner<Task, Machine>,
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
    Fork(Stolen<'r, Machine>, usize),
    Task(Task),
}

impl Local {
    pub(crate) fn new(
        registry: Arc<Registry>,
        index: usize,
        spawns: QueueOwner<Task, Machine>,
    ) -> Local {
        let hint = Cell::new(Local::bottom(&registry, index));
        // Any odd number does; they only must differ.
        let random = Cell::new((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (fifo, resident) = (Arc::new(Fifo::new()), Cell::new(false));
        Local { registry, index, spawns, hint, fifo, resident, random }
    }

    /// Pushes a spawned task onto this worker's queue.
    #[inline]
    pub(crate) fn spawn(&self, task: Task) {
        match self.spawns.push(task) {
            Ok(false) => {}
            Ok(true) => self.registry.sleep.wake_one(),
            Err(task) => self.registry.inject(task),
        }
    }

    /// Runs one spawned task of this worker's own, if it has one.
    #[inline]
    pub(crate) fn run_own(&self) -> bool {
        let task = self.pop_own();
        let found = task.is_some();
        if let Some(task) = task {
            task.run();
        }
        found
    }

    #[inline]
    pub(crate) fn pop_own(&self) -> Option<Task> {
        let (task, shared) = self.spawns.pop()?;
        if shared {
            self.registry.sleep.wake_one();
        }
        Some(task)
    }

    /// Works until the pool has closed and nothing is left to do.
    pub(crate) fn main_loop(&self) {
        self.wait(&|| self.registry.is_finished(), &|| None, || self.token());
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
                self.run(Work::Task(task), self.token());
            }
        }
    }

    /// Takes work from wherever there is some until `done`: from `thief` first, the worker that runs
    /// what this one waits for (leapfrogging), then urgent ones from outside, this worker's own
    /// tasks, its mail, everybody's tasks in random order, and the others from outside. With no work, it looks a while, then sleeps; whoever makes
    /// `done` true must call [`Sleep::wake`](crate::sleep::Sleep::wake).
    ///
    /// `token` is this worker's token for what it runs.
    pub(crate) fn wait<'w>(
        &self,
        done: &dyn Fn() -> bool,
        thief: &dyn Fn() -> Option<usize>,
        token: impl Fn() -> Worker<'w>,
    ) {
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
            } else if looks < LOOKS {
                thread::yield_now();
            } else {
                self.registry.birth.check_or_abort();
                self.registry.sleep.sleep(self.index, || {
                    self.registry.request_everywhere();
                    done() || self.registry.visible_work() || self.has_mail()
                });
                looks = 1;
            }
        }
        if looks != 0 {
            self.registry.found();
        }
    }

    /// Whether something has come that only this worker may take. Line S5.
    fn has_mail(&self) -> bool {
        !self.remote().calls.is_empty() || !self.remote().mail.is_empty()
    }

    fn find(&self, thief: Option<usize>) -> Option<Work<'_>> {
        let workers = &self.registry.workers;
        if let Some(task) = self.remote().calls.take() {
            return Some(Work::Task(task));
        }
        if let Some(thief) = thief
            && let Some(stolen) = self.steal_fork(thief)
        {
            return Some(stolen);
        }
        if let Some(task) = self.registry.injected(Priority::High) {
            return Some(Work::Task(task));
        }
        if let Some(task) = self.pop_own() {
            return Some(Work::Task(task));
        }
        if let Some(task) = self.remote().mail.take() {
            return Some(Work::Task(task));
        }
        let start = self.next_random() as usize % workers.len();
        for victim in (start..workers.len()).chain(0..start) {
            if victim == self.index {
                continue;
            }
            if let Some(work) = self.steal_fork(victim) {
                return Some(work);
            }
            if let Some(task) = until_decided(|| workers[victim].spawns.steal()) {
                return Some(Work::Task(task));
            }
        }
        self.registry.injected(Priority::Normal).map(Work::Task)
    }

    fn steal_fork(&self, victim: usize) -> Option<Work<'_>> {
        let stolen = until_decided(|| self.registry.workers[victim].forks.steal())?;
        Some(Work::Fork(stolen, victim))
    }

    fn run(&self, work: Work<'_>, worker: Worker<'_>) {
        self.hint.set(worker.head());
        match work {
            Work::Task(task) => task.run(),
            Work::Fork(stolen, victim) => {
                let guard = AbortOnUnwind("a stolen half left its thief without an outcome");
                fork::run_stolen(&stolen, self.index, worker);
                guard.disarm();
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

/// Tries again while another thief was faster: each such loss is another's success.
fn until_decided<T>(steal: impl Fn() -> Result<T, Claim>) -> Option<T> {
    loop {
        match steal() {
            Ok(task) => return Some(task),
            Err(Claim::Lost) => Machine::pause(),
            Err(_) => return None,
        }
    }
}
