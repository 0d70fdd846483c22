//! A worker: it finds work, runs it, and waits for work that others run (as [`Waiting`] says).

use std::cell::Cell;
use std::sync::Arc;

use poach_deque::Steal;
use poach_deque::split::Stolen;
use poach_memory::{CachePadded, Machine, Memory, Ordering};

use crate::pace::{BURST_TASKS_AT_ONCE, PATIENCE};
use crate::shared::victims::Random;
use crate::shared::waiting::{NestingDepth, Waiting};
use crate::shared::{PoolShared, SpawnOrder, Spawns, WorkerSlot};
use crate::sleep::clock::SystemClock;
use crate::stats::track::Activity;
use crate::stats::watch::Watch;
use crate::task::half;
use crate::task::half::{Head, Worker};
use crate::task::value::{Ended, Fresh, Task, run_each, run_youngest};
use crate::worker::fifo::Fifo;
use crate::worker::find::find;
use crate::worker::idle::{SearchLoop, SearchRules, Unrestricted, begin_asleep};
use crate::worker::spin_time::SpinTime;
use crate::worker::steal_backoff::StealBackoff;

pub(crate) mod current;
pub(crate) mod fifo;
pub(crate) mod find;
mod give_way;
pub(crate) mod idle;
pub(crate) mod spin_time;
// shuttle brings its own stacks for its threads, which Miri cannot run.
#[cfg(all(test, not(miri)))]
mod models;
pub(crate) mod signal;
pub(crate) mod steal_backoff;
pub(crate) mod tally;
mod wait;

use wait::{Own, Restricted};

/// A thread's own record of itself as a worker.
pub(crate) struct WorkerThread {
    pub(crate) shared: Arc<PoolShared>,
    pub(crate) index: usize,
    pub(crate) watch: Arc<CachePadded<Watch>>,
    spawns: Spawns,
    /// The stack's top when this thread last forked without a token.
    pub(crate) hint: Cell<Head>,
    pub(crate) fifo: Arc<Fifo>,
    /// Whether the pool was made to use this thread, which has a life of its own.
    pub(crate) resident: Cell<bool>,
    /// The depth of its call stack.
    pub(crate) nesting_depth: NestingDepth,
    /// The top of this worker's queue when it last began a task by `run`, out of FIFO order's
    /// queue, or by `run_awaited`: tasks pushed since count as the task in hand's own. (A scope
    /// that runs its worker's youngest tasks leaves it as it is.)
    own_from: Cell<u64>,
    /// Whether the task in hand blocks, so that its waits take nothing.
    blocks: Cell<bool>,
    /// Its place among the guests, if it is one.
    guest: Option<usize>,
    backoff: StealBackoff<SystemClock>,
    spin_time: SpinTime<SystemClock>,
    random: Random,
}

/// Work to run.
pub(crate) enum Work<'r> {
    /// The second half of a join, stolen from this worker.
    Fork(Stolen<'r, Machine>, usize, Activity),
    Task(Task, Activity),
}

impl Work<'_> {
    fn is_stolen(&self) -> bool {
        matches!(self, Work::Fork(..) | Work::Task(_, Activity::StolenTask { .. }))
    }
}

impl WorkerThread {
    pub(crate) fn new(shared: Arc<PoolShared>, index: usize, spawns: Spawns) -> WorkerThread {
        let hint = Cell::new(WorkerThread::bottom(&shared, index));
        let random = Random::of(index);
        let (fifo, resident) = (Arc::new(Fifo::new()), Cell::new(false));
        let watch = Arc::clone(&shared.workers[index].watch);
        let (nesting_depth, backoff, spin_time) =
            (NestingDepth::new(), StealBackoff::new(), SpinTime::new());
        let guest = shared.guest(index);
        WorkerThread {
            shared,
            index,
            watch,
            spawns,
            hint,
            fifo,
            resident,
            nesting_depth,
            own_from: Cell::new(0),
            blocks: Cell::new(false),
            guest,
            backoff,
            spin_time,
            random,
        }
    }

    /// This worker's end of its queue, for its next holder.
    pub(crate) fn into_spawns(self) -> Spawns {
        self.spawns
    }

    /// Pushes a spawned task onto this worker's queue.
    #[inline]
    pub(crate) fn spawn(&self, task: Task) {
        self.spawns.push(task);
    }

    /// [`spawn`](WorkerThread::spawn), of a closure that becomes a task only in the queue.
    #[inline(always)]
    pub(crate) fn spawn_fresh<R, F>(&self, closure: Fresh<F>)
    where
        R: Into<Ended>,
        F: FnOnce() -> R + Send,
    {
        closure.push(&self.spawns);
    }

    /// The number of slots of its queue of spawned tasks.
    pub(crate) fn spawns_capacity(&self) -> usize {
        self.spawns.capacity()
    }

    /// Gives back the memory of that queue beyond `slots` slots, if it is empty.
    #[cold]
    pub(crate) fn shrink_spawns(&self, slots: usize) {
        self.spawns.shrink_to(slots);
    }

    /// The index above the youngest task of this worker's own.
    pub(crate) fn top(&self) -> u64 {
        self.spawns.top()
    }

    /// The next spawned task of this worker: the youngest, or the oldest.
    #[inline]
    pub(crate) fn pop_own(&self) -> Option<Task> {
        match self.shared.wait_policy.order {
            SpawnOrder::Lifo => self.spawns.pop(),
            SpawnOrder::Fifo => self.oldest_own(),
        }
    }

    /// The oldest spawned task of this worker's own.
    #[cold]
    fn oldest_own(&self) -> Option<Task> {
        self.spawns.share();
        loop {
            match self.slot().spawns.steal() {
                Steal::Success(task) => return Some(task),
                Steal::Empty => return None,
                Steal::Retry | Steal::Abort => Machine::pause(),
            }
        }
    }

    /// Runs this worker's next spawned task, if it has one. The caller takes the task off its
    /// count.
    #[inline(always)]
    pub(crate) fn run_next(&self) -> Option<Ended> {
        if self.shared.wait_policy.order == SpawnOrder::Fifo {
            let task = self.oldest_own()?;
            let _own = self.own_from_here();
            return Some(execute(self.watch.runs(Activity::OwnTask), || task.run()));
        }
        run_youngest(&self.spawns, |task| {
            execute(self.watch.runs(Activity::OwnTask), || task.run())
        })
    }

    /// Runs this worker's spawned tasks, the youngest first, as long as there is nothing else to
    /// do, not even a recording. `next` takes each off its count, and says whether to go on. Does
    /// nothing if the oldest are to be first.
    #[inline(always)]
    pub(crate) fn run_each(&self, mut next: impl FnMut(Ended) -> bool) {
        let Watch { counters, track, .. } = &**self.watch;
        if !track.is_on() && self.shared.wait_policy.order == SpawnOrder::Lifo {
            run_each(&self.spawns, |task| {
                counters.tasks.up();
                next(execute((), || task.run())) && !track.is_on()
            });
        }
    }

    /// Runs one spawned task of this worker's own, if it has one.
    #[inline]
    pub(crate) fn run_own(&self) -> bool {
        let ended = self.run_next();
        let any = ended.is_some();
        if let Some(ended) = ended {
            self.count_down(ended);
        }
        any
    }

    /// Works until the pool has ended and nothing is left to do here. Perhaps no other worker can
    /// take the tasks that this one has pushed for a scope of a thread that the pool uses.
    pub(crate) fn main_loop(&self) {
        let finished = || self.shared.has_ended() && self.spawns.is_empty();
        let begins_asleep = self.shared.begins_asleep(self.index);
        let looks = if begins_asleep { begin_asleep(self) } else { 0 };
        let mut search = SearchLoop::idle(Unrestricted::idle(), looks);
        while let Some(work) = search.next(self, &finished, &|| None) {
            let injected = matches!(work, Work::Task(_, Activity::InjectedTask));
            self.run(work, self.token());
            if injected || !self.slot().ready.is_empty() {
                self.run_of_burst();
            }
        }
    }

    /// The loop of a spare worker's thread.
    pub(crate) fn spare_loop(&self) {
        let shared = &self.shared;
        let slot = self.index - shared.threads;
        while let Some(loan) = shared.spares.next_loan(slot) {
            // Acquire: pairs with the lender's return. Line S5.
            let over = || loan.load(Ordering::Acquire) != 0;
            self.work_for_lender(&over);
            loop {
                self.answer_calls();
                self.hand_over();
                if shared.spares.come_back(slot, || self.slot().calls.is_empty()) {
                    break;
                }
            }
        }
    }

    /// Polls one future that was woken on this worker, if there is one.
    fn run_future(&self) -> bool {
        let task = self.slot().ready.take();
        let any = task.is_some();
        if let Some(task) = task {
            self.run(Work::Task(task, Activity::OwnTask), self.token());
        }
        any
    }

    /// The pool was closed on this thread. If the thread is borrowed, and so may never look for
    /// work again, it runs the tasks that it has spawned and that have not started.
    pub(crate) fn run_rest_as_resident(&self) {
        while self.resident.get() && (self.run_own() || self.run_future()) {}
    }

    /// This worker, as the others see it.
    #[inline]
    pub(crate) fn slot(&self) -> &WorkerSlot {
        &self.shared.workers[self.index]
    }

    /// Whether it has spawned tasks that have not started, or joins that are not complete.
    pub(crate) fn has_pending_tasks(&self) -> bool {
        !self.spawns.is_empty() || self.token().head().depth() != 0
    }

    /// Runs one piece of work from anywhere, for a caller that does not wait.
    pub(crate) fn run_any(&self) -> bool {
        if self.nesting_depth.refuses_yield() {
            self.answer_calls();
            return false;
        }
        let found = if self.guest.is_some() {
            self.find_needed(None, Own::Taken)
        } else {
            find(self, None)
        };
        let any = found.is_some();
        if let Some(work) = found {
            self.run(work, self.token());
        }
        any
    }

    /// Answers a call, if there is one: a point at which this worker can be interrupted.
    #[inline(always)]
    pub(crate) fn answer_calls(&self) {
        if !self.slot().calls.is_empty() {
            self.answer_all_calls();
        }
    }

    #[cold]
    #[inline(never)]
    fn answer_all_calls(&self) {
        while let Some(task) = self.slot().calls.take() {
            self.run(Work::Task(task, Activity::InjectedTask), self.token());
        }
    }

    /// Waits until the second half of a join is `done`. `thief` is the worker that runs it, once
    /// that is known. This worker works meanwhile, as [`Waiting`] says: a random wait takes forks
    /// of the thief, then of the workers that the thief waits for, and then what [`wait_for_any`]
    /// takes.
    /// The thread that makes `done` true must call [`Sleep::wake`](crate::sleep::Sleep::wake).
    ///
    /// `token` is this worker's token for the tasks that it runs.
    ///
    /// [`wait_for_any`]: WorkerThread::wait_for_any
    pub(crate) fn wait<'w>(
        &self,
        done: &dyn Fn() -> bool,
        thief: &dyn Fn() -> Option<usize>,
        token: impl Fn() -> Worker<'w>,
    ) {
        self.backoff.waits();
        let policy = self.shared.wait_policy;
        let may_take_any = matches!(policy.waiting, Waiting::Random | Waiting::Patient);
        let may_take_any = may_take_any && self.guest.is_none();
        if may_take_any && !self.nesting_depth.is_exceeded(policy.nesting) {
            let may_no_more = || done() || self.shared.has_awaitable();
            if policy.waiting == Waiting::Patient {
                self.work_until(&may_no_more, thief, &token, Restricted::wait_for(PATIENCE));
                if done() {
                    return;
                }
            }
            self.work_until(&may_no_more, thief, &token, Unrestricted::wait());
            if done() {
                return;
            }
        }
        self.work_until(done, thief, token, Restricted::wait(self.own_of_a_guest()));
    }

    /// Takes work from anywhere until `done`: urgent tasks from outside, this worker's own ones,
    /// its mail, tasks of others in its victim order, and the other tasks from outside. Without
    /// work, it looks a while, then sleeps. The thread that makes `done` true must call
    /// [`Sleep::wake`](crate::sleep::Sleep::wake).
    ///
    /// A guest takes only its own tasks: other tasks may have to run on the pool's own threads.
    /// `begin` begins the awaited task, if that has not begun and may begin here. It is called if
    /// the wait takes no more than it needs.
    pub(crate) fn wait_for_any(&self, done: &dyn Fn() -> bool, begin: &dyn Fn() -> bool) {
        if self.nesting_depth.is_deep() {
            return self.wait_deep(done);
        }
        if self.guest.is_some() {
            return self.work_until(done, &|| None, || self.token(), Restricted::wait(Own::Taken));
        }
        let may_no_more = || done() || self.shared.has_awaitable();
        while !done() {
            self.work_until(&may_no_more, &|| None, || self.token(), Unrestricted::wait());
            self.wait_beside(done, begin);
        }
    }

    /// Takes any work until `done`, with nothing under way on this call stack.
    pub(crate) fn work_for_lender(&self, done: &dyn Fn() -> bool) {
        self.work_until(done, &|| None, || self.token(), Unrestricted::wait());
    }

    /// Works until `done`, or until `search` has slept for its whole time. `thief` returns the
    /// worker that runs what this one waits for, once that is known. `token` is this worker's token
    /// for the tasks that it runs.
    fn work_until<'w>(
        &self,
        done: &dyn Fn() -> bool,
        thief: &dyn Fn() -> Option<usize>,
        token: impl Fn() -> Worker<'w>,
        rules: impl SearchRules<WorkerThread>,
    ) {
        let _waiting = self.watch.waits();
        let mut search = SearchLoop::wait(self, rules);
        while let Some(work) = search.next(self, done, thief) {
            let _on_top = self.on_top();
            self.run(work, token());
        }
    }

    /// With nothing under way, runs some more futures, and tasks of a burst from outside: see
    /// `inbox`.
    #[inline]
    fn run_of_burst(&self) {
        let goes_on = |_: &u32| self.spawns.is_empty() && !self.is_called();
        for _ in (0..BURST_TASKS_AT_ONCE).take_while(goes_on) {
            let ready = self.slot().ready.take().map(|task| Work::Task(task, Activity::OwnTask));
            let burst = || {
                let task = self.shared.injected_of_burst()?;
                Some(Work::Task(task, Activity::InjectedTask))
            };
            let Some(work) = ready.or_else(burst) else { return };
            self.run(work, self.token());
        }
    }

    /// Whether work has come that precedes other tasks from outside.
    fn is_called(&self) -> bool {
        self.slot().has_mail() || self.shared.has_urgent()
    }

    fn run(&self, work: Work<'_>, worker: Worker<'_>) {
        let _own = self.own_from_here();
        self.hint.set(worker.head());
        match work {
            Work::Task(task, kind) => {
                self.count_down(execute(self.watch.runs(kind), || task.run()));
            }
            Work::Fork(stolen, victim, kind) => {
                self.watch.is_here();
                let running = self.watch.runs(kind);
                execute(running, || half::run_stolen(&stolen, self.index, worker));
                self.shared.sleep.wake(victim);
            }
        }
    }
}

/// Runs any task that has been counted, and is recorded while `running` lives. `call` is the one
/// call of its code, through a pointer to a function that does not unwind: see `task::panic`.
#[inline(always)]
fn execute<G, R>(running: G, call: impl FnOnce() -> R) -> R {
    let result = call();
    drop(running);
    result
}
