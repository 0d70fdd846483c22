//! The state that the workers of one pool share: deques, inboxes, sleepers, and when the workers
//! end: [`Termination`].

pub(crate) mod handlers;
pub(crate) mod inbox;
pub(crate) mod spares;
mod termination;
pub(crate) mod victims;
pub(crate) mod waiting;

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use poach_deque::split::{Stack, Thief};
use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use crate::shared::handlers::Handlers;
use crate::shared::inbox::Inbox;
use crate::shared::spares::Spares;
use crate::shared::termination::Termination;
use crate::shared::victims::{Plan, VictimOrder};
use crate::shared::waiting::{DeepWaits, Waiting};
use crate::sleep::Caller;
use crate::sleep::wake_policy::{DequeEvents, PoolSleep, PoolWakePolicy};
use crate::stats::track::Recordings;
use crate::stats::watch::Watch;
use crate::system::process::ProcessGuard;
use crate::task::value::{InTwo, Queue, Task};

pub(crate) type Spawns = Queue<DequeEvents>;

/// A worker as the others see it.
pub(crate) struct WorkerSlot {
    pub(crate) forks: Stack<Machine, DequeEvents>,
    pub(crate) spawns: Thief<Task, Machine, InTwo>,
    /// Futures that were woken on this worker, which it polls once it has no task in its own
    /// queue. Others take them as well.
    pub(crate) ready: Inbox,
    /// Tasks that this worker alone may run, once it has none of its own.
    pub(crate) mail: Inbox,
    /// Tasks that this worker alone may run, at its next look at anything (`interrupt`).
    pub(crate) calls: Inbox,
    pub(crate) watch: Arc<CachePadded<Watch>>,
    pub(crate) deep_waits: DeepWaits,
    /// The order in which this worker robs the others, set at its first look.
    pub(crate) victim_order: OnceLock<VictimOrder>,
}

impl WorkerSlot {
    pub(crate) fn new(
        forks: Stack<Machine, DequeEvents>,
        spawns: Thief<Task, Machine, InTwo>,
        watch: Arc<CachePadded<Watch>>,
    ) -> WorkerSlot {
        WorkerSlot {
            forks,
            spawns,
            ready: Inbox::new(),
            mail: Inbox::new(),
            calls: Inbox::new(),
            watch,
            deep_waits: DeepWaits::new(),
            victim_order: OnceLock::new(),
        }
    }

    /// Whether there is something to steal from this worker.
    pub(crate) fn has_visible_work(&self) -> bool {
        self.forks.shared() != 0 || !self.spawns.is_empty() || !self.ready.is_empty()
    }

    /// Whether a thief that has asked and then fenced finds something to expose. Line S5.
    fn has_private_tasks(&self) -> bool {
        self.forks.has_private_tasks() || self.spawns.has_private_tasks()
    }

    /// Whether work has come that only this worker may take. Line S5.
    pub(crate) fn has_mail(&self) -> bool {
        !self.calls.is_empty() || !self.mail.is_empty()
    }
}

/// The priority of a task of a task: [`TaskBuilder::priority`](crate::TaskBuilder::priority).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Taken by a worker that has no task of its own left and finds nothing to steal.
    #[default]
    Normal,
    /// Taken at a worker's next look for work, before its own spawned tasks and before any
    /// stealing.
    High,
}

/// The parts of a pool's shared state; see [`PoolShared`].
pub(crate) struct Parts {
    pub(crate) sleep: Arc<PoolSleep>,
    pub(crate) wake_policy: Arc<PoolWakePolicy>,
    pub(crate) workers: Box<[WorkerSlot]>,
    pub(crate) threads: usize,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) wait_policy: WaitPolicy,
    /// The last slots are places of guests.
    pub(crate) guests: usize,
    pub(crate) parent: Option<Arc<PoolShared>>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) asleep: Range<usize>,
}

/// The order in which a worker runs the tasks that it has spawned:
/// [`ThreadPoolBuilder::spawn_order`](crate::ThreadPoolBuilder::spawn_order).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SpawnOrder {
    /// The youngest first: the cache has what it needs, and the queue stays short.
    #[default]
    Lifo,
    /// The oldest first, as in a queue.
    Fifo,
}

/// How workers wait, and in which order they run their own tasks.
#[derive(Clone, Copy)]
pub(crate) struct WaitPolicy {
    pub(crate) waiting: Waiting,
    /// The number of tasks on top of waits beyond which waits are restricted.
    pub(crate) nesting: usize,
    pub(crate) order: SpawnOrder,
}

/// A pool's shared state without threads, and its workers' ends of their queues, for an interrupt.
pub(crate) struct Frame {
    pub(crate) shared: Arc<PoolShared>,
    pub(crate) owners: Vec<Option<Spawns>>,
}

/// The number of frames kept: while the last worker leaves one, the next interrupt may have begun.
const FRAMES: usize = 2;

pub(crate) struct PoolShared {
    pub(crate) workers: Box<[WorkerSlot]>,
    /// The number of regular workers, which come first. Spare ones follow, then the places of
    /// guests.
    pub(crate) threads: usize,
    pub(crate) sleep: Arc<PoolSleep>,
    pub(crate) wake_policy: Arc<PoolWakePolicy>,
    high: Inbox,
    normal: Inbox,
    /// The number of places of guests.
    guests: usize,
    /// Set if tasks that have not started when the pool closes are to be dropped.
    dropping: <Machine as Memory>::Word,
    termination: CachePadded<Termination>,
    /// The number of tasks under way that a thread may yet wait for by a handle: see "Tasks beside
    /// each other" in `waiting`.
    awaitable: CachePadded<<Machine as Memory>::Word>,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) spares: Spares,
    pub(crate) wait_policy: WaitPolicy,
    /// The pool whose workers have been interrupted and work for this frame.
    parent: Option<Arc<PoolShared>>,
    /// The processors of the workers, and their victims' order.
    pub(crate) plan: Arc<Plan>,
    /// The workers that begin asleep.
    asleep: Range<usize>,
    /// Frames of finished interrupts of this pool, for the next one. Locked on its workers' threads
    /// alone.
    frames: Mutex<Vec<Frame>>,
    pub(crate) process_guard: ProcessGuard,
    pub(crate) recordings: Recordings,
    /// The names of the threads, by their workers' indices; a frame has none.
    pub(crate) names: OnceLock<Vec<Option<String>>>,
}

impl PoolShared {
    pub(crate) fn new(parts: Parts) -> Arc<PoolShared> {
        let spares = parts.workers.len() - parts.threads - parts.guests;
        let shared = PoolShared {
            guests: parts.guests,
            workers: parts.workers,
            threads: parts.threads,
            sleep: parts.sleep,
            wake_policy: parts.wake_policy,
            high: Inbox::new(),
            normal: Inbox::new(),
            dropping: Word::new(0),
            termination: CachePadded::new(Termination::new()),
            awaitable: CachePadded::new(Word::new(0)),
            handlers: parts.handlers,
            spares: Spares::new(spares),
            wait_policy: parts.wait_policy,
            parent: parts.parent,
            plan: parts.plan,
            asleep: parts.asleep,
            frames: Mutex::new(Vec::new()),
            process_guard: ProcessGuard::here(),
            recordings: Recordings::new(),
            names: OnceLock::new(),
        };
        if !shared.asleep.is_empty() {
            shared.sleep.begin_asleep(shared.asleep.clone());
            // Each of them leaves requests: a single one with all but itself.
            let alone = (shared.asleep.len() == 1).then_some(shared.asleep.start);
            shared.request_everywhere(alone);
        }
        Arc::new(shared)
    }

    /// Whether this worker was asleep before its thread began: see "A pool begins asleep" in
    /// `sleep/README.md`.
    pub(crate) fn begins_asleep(&self, worker: usize) -> bool {
        self.asleep.contains(&worker)
    }

    /// Whether the workers of this pool are those of `pool`: this is `pool`, or a frame of an
    /// interrupt of it.
    #[inline]
    pub(crate) fn serves(&self, pool: &PoolShared) -> bool {
        std::ptr::eq(self, pool) || self.parent.as_ref().is_some_and(|parent| parent.serves(pool))
    }

    /// The pool that is not a frame of another.
    pub(crate) fn outermost(self: &Arc<Self>) -> &Arc<PoolShared> {
        self.parent.as_ref().map_or(self, PoolShared::outermost)
    }

    /// A kept frame, for the next interrupt of this pool.
    pub(crate) fn kept_frame(self: &Arc<Self>) -> Option<Frame> {
        let mut frame = self.frames.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Arc::get_mut(&mut frame.shared)?.parent = Some(Arc::clone(self));
        Some(frame)
    }

    /// Keeps a frame whose last worker has left it, for the next interrupt of the same pool, with
    /// its stacks, its queues and the frames that it keeps itself. Does nothing if another thread
    /// still knows the frame, or something is left of what was done in it.
    pub(crate) fn keep_frame(mut frame: Frame) {
        let complete = frame.owners.iter().all(Option::is_some);
        let Some(shared) = Arc::get_mut(&mut frame.shared) else { return };
        let left = shared.has_injected()
            || shared.workers.iter().any(|worker| worker.has_mail() || worker.has_visible_work())
            || !shared.sleep.is_deserted();
        if !complete || left || !shared.termination.reopen() {
            return;
        }
        shared.spares = Spares::new(shared.first_guest() - shared.threads);
        // A kept frame does not hold a reference to its pool.
        let Some(parent) = shared.parent.take() else { return };
        let mut frames = parent.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if frames.len() < FRAMES {
            frames.push(frame);
        }
    }

    /// Hands a task to the pool from outside, or from a worker whose own queue is full.
    ///
    /// # Panics
    ///
    /// In a process forked since the pool was made.
    pub(crate) fn inject(&self, task: Task) {
        self.inject_at(Priority::Normal, task, Caller::GoesOn);
    }

    pub(crate) fn inject_at(&self, priority: Priority, task: Task, caller: Caller) {
        self.process_guard.check();
        match priority {
            Priority::Normal => self.normal.put(task),
            Priority::High => self.high.put(task),
        }
        self.sleep.wake_one(caller);
    }

    /// The oldest injected task of this priority.
    pub(crate) fn injected(&self, priority: Priority) -> Option<Task> {
        match priority {
            Priority::Normal => self.normal.take(),
            Priority::High => self.high.take(),
        }
    }

    /// The oldest injected task, if there is a burst.
    pub(crate) fn injected_of_burst(&self) -> Option<Task> {
        self.normal.has_burst().then(|| self.normal.take()).flatten()
    }

    /// Line S4: leaves a request with every worker but `except`, which asks.
    pub(crate) fn request_everywhere(&self, except: Option<usize>) {
        for (index, worker) in self.workers.iter().enumerate() {
            if Some(index) == except {
                continue;
            }
            worker.forks.request();
            worker.spawns.request();
        }
    }

    /// The guest's place that slot `index` is, if it is one.
    pub(crate) fn guest(&self, index: usize) -> Option<usize> {
        index.checked_sub(self.first_guest())
    }

    /// The slot of the first place of a guest.
    pub(crate) fn first_guest(&self) -> usize {
        self.workers.len() - self.guests
    }

    /// Whether the pool has spare workers.
    pub(crate) fn has_spares(&self) -> bool {
        self.first_guest() != self.threads
    }

    /// Whether any worker neither sleeps nor searches. An estimate.
    pub(crate) fn does_anybody_run(&self) -> bool {
        self.sleep.does_anybody_run(self.spares.idle() + self.sleep.free_places())
    }

    /// The number of tasks that the workers have begun so far. An estimate.
    pub(crate) fn tasks_begun(&self) -> u64 {
        let begun = self.workers.iter().map(|worker| worker.watch.counters.tasks.get());
        begun.fold(0, u64::wrapping_add)
    }

    /// Whether no worker but `me`, which waits deep, runs anything, or waits deep, too, with fewer
    /// deep waits, and so takes work first.
    pub(crate) fn is_alone_at_work(&self, me: usize) -> bool {
        let away = 1 + self.spares.idle() + self.sleep.free_places();
        let mine = self.workers[me].deep_waits.count();
        // In this order: a worker that is seen asleep in a deep wait is seen to have one.
        !self.sleep.does_anybody_run(away)
            && self.workers[..self.first_guest()]
                .iter()
                .all(|worker| !(1..mine).contains(&worker.deep_waits.count()))
    }

    /// Line S5: whether there is work that a searcher could take.
    pub(crate) fn visible_work(&self) -> bool {
        // S3 or L2 precedes.
        self.has_injected() || self.workers.iter().any(WorkerSlot::has_visible_work)
    }

    /// Lines S5 and L3: whether a worker other than `me` has private tasks that `me` should expose.
    /// `me` has left its requests (S4), so later pushes share their tasks. If any other worker is
    /// awake, this calls `fence` before it looks: a process-wide barrier, if there is one.
    pub(crate) fn private_work(&self, me: usize, fence: impl FnOnce()) -> bool {
        if self.sleep.is_another_awake(me, || self.spares.idle()) {
            fence();
        }
        self.workers
            .iter()
            .enumerate()
            .any(|(index, worker)| index != me && worker.has_private_tasks())
    }

    /// Whether a future waits that was woken on some worker.
    pub(crate) fn has_ready(&self) -> bool {
        self.workers.iter().any(|worker| !worker.ready.is_empty())
    }

    /// Whether a task has come from outside.
    pub(crate) fn has_injected(&self) -> bool {
        self.has_urgent() || !self.normal.is_empty()
    }

    /// Whether a task of high priority has come from outside.
    pub(crate) fn has_urgent(&self) -> bool {
        !self.high.is_empty()
    }

    /// Line G4, of a guest that has left the slot `left`, or goes to sleep: makes the calls that
    /// were deferred to guests.
    #[cold]
    pub(crate) fn relieve(&self, left: Option<usize>) {
        self.request_everywhere(left);
        if self.call_for_visible_work() {
            return;
        }
        // Without a barrier, which would cost the guest more than its call: a push of this moment
        // may be missed.
        if let Some(owner) = self.workers.iter().position(WorkerSlot::has_private_tasks) {
            self.sleep.wake_for(owner);
        }
    }

    /// Lines P2 to P5 for all visible work. Returns whether there is some.
    pub(crate) fn call_for_visible_work(&self) -> bool {
        let mut any = self.has_injected();
        if any {
            self.sleep.wake_one(Caller::GoesOn);
        }
        for (index, worker) in self.workers.iter().enumerate() {
            if worker.has_visible_work() {
                self.sleep.wake_for(index);
                any = true;
            }
        }
        any
    }

    /// Tells the workers to end once nothing keeps the pool open any more.
    pub(crate) fn close(&self) {
        if self.termination.close() {
            self.end_workers();
        }
    }

    #[cold]
    fn end_workers(&self) {
        // The change of the word before this is a P1.
        self.sleep.wake_all();
        self.spares.dismiss();
    }

    /// Closes, and lets no further detached task start.
    pub(crate) fn close_now(&self) {
        // Relaxed: a task that does not see it in time has started in time.
        self.dropping.store(1, Ordering::Relaxed);
        self.close();
    }

    /// Whether detached tasks are dropped rather than started.
    #[inline]
    pub(crate) fn is_dropping(&self) -> bool {
        // Relaxed: nothing is handed over with it.
        self.dropping.load(Ordering::Relaxed) != 0
    }

    /// Whether the workers are to end: line S5.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.termination.has_ended()
    }

    /// Keeps all workers of the pool until the value is dropped: for a detached task, until it has
    /// ended, and for a call that waits for particular workers.
    ///
    /// # Panics
    ///
    /// If the pool has no workers any more: in a process forked since it was made, or after it was
    /// dropped, on a thread that it was made to use or in an exit handler.
    #[inline]
    pub(crate) fn keep_open(self: &Arc<Self>) -> OpenPool {
        self.process_guard.check();
        match self.try_keep_open() {
            Some(open) => open,
            None => panic!("the thread pool was dropped, and its workers have ended"),
        }
    }

    /// [`keep_open`](PoolShared::keep_open), if the pool has workers. Not in a process forked since
    /// it was made.
    #[inline]
    pub(crate) fn try_keep_open(self: &Arc<Self>) -> Option<OpenPool> {
        self.termination.hold().then(|| OpenPool(Arc::clone(self)))
    }

    /// Counts a task under way that a thread may yet wait for, until the value is dropped.
    pub(crate) fn may_be_awaited(self: &Arc<Self>) -> Awaitable {
        // Relaxed, as its other accesses: a worker has itself counted each task that matters to it,
        // or the count came before something that it has stolen since.
        self.awaitable.fetch_add(1, Ordering::Relaxed);
        Awaitable(Arc::clone(self))
    }

    #[inline]
    pub(crate) fn has_awaitable(&self) -> bool {
        self.awaitable.load(Ordering::Relaxed) != 0
    }
}

/// A task under way with a handle by which no thread waits.
pub(crate) struct Awaitable(Arc<PoolShared>);

impl Drop for Awaitable {
    fn drop(&mut self) {
        self.0.awaitable.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A pool whose workers stay while the value lives.
pub(crate) struct OpenPool(Arc<PoolShared>);

impl OpenPool {
    pub(crate) fn shared(&self) -> &Arc<PoolShared> {
        &self.0
    }

    /// Hands a task to one worker, for when it has none of its own.
    ///
    /// # Panics
    ///
    /// In a process forked since the pool was made; so does `call`.
    pub(crate) fn post(&self, worker: usize, task: Task) {
        self.0.process_guard.check();
        self.0.workers[worker].mail.put(task);
        self.0.sleep.wake(worker);
    }

    /// Hands a task to one worker, for its next look at anything.
    pub(crate) fn call(&self, worker: usize, task: Task) {
        self.0.process_guard.check();
        self.0.workers[worker].calls.put(task);
        self.0.sleep.wake(worker);
    }
}

impl Clone for OpenPool {
    fn clone(&self) -> OpenPool {
        self.0.termination.hold_again();
        OpenPool(Arc::clone(&self.0))
    }
}

impl Drop for OpenPool {
    fn drop(&mut self) {
        if self.0.termination.release() {
            self.0.end_workers();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::ThreadPool;

    /// Whether a condition comes true before a test is given up.
    fn soon(condition: impl Fn() -> bool) -> bool {
        let began = Instant::now();
        while !condition() && began.elapsed().as_secs() < 60 {
            thread::yield_now();
        }
        condition()
    }

    #[test]
    fn idle_spares_and_places_without_a_guest_run_nothing() {
        let pool = ThreadPool::builder().num_threads(1).spares(2).callers(3).build().unwrap();
        let shared = pool.shared();
        assert!(soon(|| !shared.does_anybody_run()));
        assert!(pool.install(|| shared.does_anybody_run()));
        // An estimate while the worker lies down.
        assert!(pool.run(|_| soon(|| shared.does_anybody_run())), "the guest");
        assert!(pool.install(|| shared.is_alone_at_work(0)));
    }

    #[test]
    fn a_worker_is_not_alone_while_another_runs_or_has_fewer_deep_waits() {
        let pool = ThreadPool::builder().num_threads(2).build().unwrap();
        let (tell, told) = mpsc::channel();
        let (release, held) = mpsc::channel::<()>();
        let pool = &pool;
        pool.install(move || {
            let me = crate::current_thread_index().unwrap();
            let (shared, other) = (pool.shared(), 1 - me);
            assert!(soon(|| shared.is_alone_at_work(me)));
            // Two deep waits here.
            let mine = [(); 2].map(|()| shared.workers[me].deep_waits.begin());
            assert!(soon(|| shared.is_alone_at_work(me)));
            let one = shared.workers[other].deep_waits.begin();
            assert!(!shared.is_alone_at_work(me), "the other takes work first");
            let two = shared.workers[other].deep_waits.begin();
            assert!(soon(|| shared.is_alone_at_work(me)));
            drop((two, one));
            drop(mine);
            pool.spawn_broadcast(move |context| {
                if context.index() == other {
                    tell.send(()).unwrap();
                }
            });
            told.recv().unwrap();
            shared.inject(Task::detached(move || _ = held.recv()));
            assert!(soon(|| !shared.is_alone_at_work(me)));
            drop(release);
        });
    }

    #[test]
    fn a_frame_in_which_something_is_left_is_not_kept() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        let kept = || pool.shared().kept_frame();
        let again = |frame: Frame| {
            frame.shared.close();
            PoolShared::keep_frame(frame);
        };
        pool.interrupt(|| ());
        again(kept().unwrap());
        let frame = kept().unwrap();
        let known = Arc::clone(&frame.shared);
        again(frame);
        assert!(kept().is_none(), "another thread knows it");
        drop(known);
        for in_mail in [false, true] {
            pool.interrupt(|| ());
            let frame = kept().unwrap();
            let (mail, normal) = (&frame.shared.workers[0].mail, &frame.shared.normal);
            let inbox = if in_mail { mail } else { normal };
            inbox.put(Task::detached(|| ()));
            again(frame);
            assert!(kept().is_none(), "a task is left");
        }
        pool.interrupt(|| ());
        let mut frame = kept().unwrap();
        frame.owners[0] = None;
        again(frame);
        assert!(kept().is_none(), "a worker has not come back");
        pool.interrupt(|| ());
        let frame = kept().unwrap();
        PoolShared::keep_frame(frame);
        assert!(kept().is_none(), "its workers have not ended");
        // While none is kept, an interrupt makes one.
        let frames = [(); FRAMES + 1].map(|()| {
            pool.interrupt(|| ());
            kept().unwrap()
        });
        frames.into_iter().for_each(again);
        assert_eq!(std::iter::from_fn(kept).count(), FRAMES);
    }

    #[test]
    fn no_spare_of_a_kept_frame_is_lent() {
        let pool = ThreadPool::builder().num_threads(1).spares(1).build().unwrap();
        pool.interrupt(|| crate::blocking(|| ()));
        let frame = pool.shared().kept_frame().unwrap().shared;
        assert_eq!(frame.spares.idle(), frame.first_guest() - frame.threads);
    }

    #[test]
    fn a_frame_waits_and_orders_its_tasks_as_its_pool_does() {
        let builder = ThreadPool::builder().num_threads(1).waiting(Waiting::Leapfrog);
        let pool = builder.nesting(7).spawn_order(SpawnOrder::Fifo).build().unwrap();
        let policy = pool.interrupt(|| {
            crate::worker::current::WorkerThread::with(|local| local.unwrap().shared.wait_policy)
        });
        assert_eq!(policy.waiting, Waiting::Leapfrog);
        assert_eq!((policy.nesting, policy.order), (7, SpawnOrder::Fifo));
    }

    #[test]
    fn a_request_is_left_with_every_worker_but_the_one_that_asks() {
        use crate::worker::current::WorkerThread;

        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        pool.install(|| {
            WorkerThread::with(|local| {
                let (shared, local) = (pool.shared(), local.unwrap());
                let slot = local.slot();
                let shares = || crate::join(|| slot.forks.shared() != 0, || ()).0;
                // Requests of earlier sleepers.
                shares();
                assert!(!shares());
                shared.request_everywhere(Some(local.index));
                assert!(!shares());
                shared.request_everywhere(Some(1));
                assert!(shares());
            });
        });
    }

    #[test]
    fn a_sleeper_is_called_for_a_task_from_outside_that_is_there() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        let (shared, (send, ran)) = (pool.shared(), mpsc::channel());
        assert!(soon(|| !shared.does_anybody_run() && !shared.sleep.is_anybody_searching()));
        // Put in, and nobody is called.
        shared.normal.put(Task::detached(move || send.send(()).unwrap()));
        shared.call_for_visible_work();
        assert_eq!(ran.recv_timeout(std::time::Duration::from_secs(60)), Ok(()));
    }
}
