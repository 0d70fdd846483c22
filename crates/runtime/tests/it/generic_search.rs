//! The worker's loop over another kind of worker: its deques are queues behind locks, its memory
//! the machine's, and it is safe code. Each task runs once, a worker without work sleeps until it
//! is called, and all workers end.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::ops::Sub;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use poach_deque::split::Stack;
use poach_memory::{Machine, Memory};
use poach_runtime::generic::{
    Caller, Clock, GivesWay, Parking, Random, SearchLoop, SearchRules, Searcher, Sees, Sleep,
    SpinTime, StealBackoff, Takes, Unrestricted, VictimOrder, WakePolicy, Wakes, begin_asleep,
    steal,
};

/// The system's clock, with an instant of its own.
struct Watch;

#[derive(Clone, Copy)]
struct Tick(Instant);

impl Sub for Tick {
    type Output = Duration;

    fn sub(self, earlier: Tick) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }
}

impl Clock for Watch {
    type Instant = Tick;

    fn now() -> Tick {
        Tick(Instant::now())
    }
}

/// A flag, and a condition to wait for it.
#[derive(Default)]
struct Bed {
    called: Mutex<bool>,
    changed: Condvar,
}

impl Parking for Bed {
    fn park(&self) {
        while !self.park_for(Duration::from_secs(1)) {}
    }

    fn park_for(&self, time: Duration) -> bool {
        let called = self.called.lock().unwrap();
        let (mut called, _) = self.changed.wait_timeout_while(called, time, |it| !*it).unwrap();
        std::mem::take(&mut *called)
    }

    fn unpark(&self, caller: Caller) {
        assert!(matches!(caller, Caller::GoesOn | Caller::Blocks));
        *self.called.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

#[derive(Default)]
struct Polite {
    looks: u32,
}

impl GivesWay for Polite {
    fn yields(&mut self) -> bool {
        thread::yield_now();
        true
    }

    fn is_contended(&self) -> bool {
        self.looks > 1_000_000
    }

    fn looked(&mut self, found: bool) {
        self.looks = if found { 0 } else { self.looks + 1 };
    }
}

/// What the workers share: a task is the number of tasks that it makes.
struct Pool {
    queues: Vec<Mutex<VecDeque<u32>>>,
    sleep: Sleep<Machine, Bed>,
    policy: WakePolicy<Machine, Watch>,
    /// Tasks that have not been run to their end.
    left: AtomicUsize,
    run: AtomicUsize,
    found: AtomicUsize,
    slept: AtomicUsize,
    looked: AtomicUsize,
    /// The system has not said whether it has a barrier.
    unanswered: AtomicBool,
}

fn sleep<S: Parking + Default>(workers: usize) -> Sleep<Machine, S> {
    Sleep::new((0..workers).map(|_| S::default()).collect(), 0, workers)
}

impl Pool {
    /// With one task that has not been run.
    fn new(workers: usize) -> Pool {
        Pool {
            queues: (0..workers).map(|_| Mutex::default()).collect(),
            sleep: sleep(workers),
            policy: WakePolicy::new(),
            left: AtomicUsize::new(1),
            run: AtomicUsize::new(0),
            found: AtomicUsize::new(0),
            slept: AtomicUsize::new(0),
            looked: AtomicUsize::new(0),
            unanswered: AtomicBool::new(false),
        }
    }

    fn is_done(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }
}

struct Worker<'p> {
    pool: &'p Pool,
    index: usize,
    order: VictimOrder,
    random: Random,
    backoff: StealBackoff<Watch>,
    spin_time: SpinTime<Watch>,
}

/// A task, and whether it was another's.
struct Task(u32, bool);

impl Worker<'_> {
    fn new(pool: &Pool, index: usize) -> Worker<'_> {
        let distance = |from: usize, to: usize| Some(from.abs_diff(to));
        Worker {
            pool,
            index,
            order: VictimOrder::nearest(index, &distance, pool.queues.len()),
            random: Random::of(index),
            backoff: StealBackoff::new(),
            spin_time: SpinTime::new(),
        }
    }

    fn push(&self, task: u32) {
        self.pool.queues[self.index].lock().unwrap().push_back(task);
        self.pool.sleep.wake_for(self.index);
    }

    fn run(&self, Task(children, _): Task) {
        self.pool.run.fetch_add(1, Ordering::Relaxed);
        self.pool.left.fetch_add(children as usize, Ordering::AcqRel);
        for _ in 0..children {
            self.push(children - 1);
        }
        if self.pool.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.pool.sleep.wake_all();
        }
    }
}

impl Searcher for Worker<'_> {
    type Memory = Machine;
    type Parking = Bed;
    type Clock = Watch;
    type GivesWay = Polite;

    fn index(&self) -> usize {
        self.index
    }

    fn sleep(&self) -> &Sleep<Machine, Bed> {
        &self.pool.sleep
    }

    fn wake_policy(&self) -> &WakePolicy<Machine, Watch> {
        &self.pool.policy
    }

    fn backoff(&self) -> &StealBackoff<Watch> {
        &self.backoff
    }

    fn spin_time(&self) -> &SpinTime<Watch> {
        &self.spin_time
    }

    fn victims(&self) -> impl Iterator<Item = usize> {
        self.pool.looked.fetch_add(1, Ordering::Relaxed);
        self.order.begun_at(self.random.next())
    }

    fn sleeps(&self) -> impl Sized {
        self.pool.slept.fetch_add(1, Ordering::Relaxed);
    }

    fn awaits_barrier(&self) -> bool {
        self.pool.unanswered.load(Ordering::Relaxed)
    }
}

impl Takes for Worker<'_> {
    type Work<'w>
        = Task
    where
        Self: 'w;

    fn steal_fork(&self, victim: usize, _leap: bool) -> Option<Task> {
        assert_ne!(victim, self.index);
        None
    }

    fn steal_tasks(&self, victim: usize) -> Option<Task> {
        self.pool.queues[victim].lock().unwrap().pop_front().map(|task| Task(task, true))
    }

    fn own_task(&self) -> Option<Task> {
        self.pool.queues[self.index].lock().unwrap().pop_back().map(|task| Task(task, false))
    }

    fn handed_over(&self, _at_once: bool) -> Option<Task> {
        None
    }

    fn injected(&self, _urgent: bool) -> Option<Task> {
        None
    }

    fn is_stolen(work: &Task) -> bool {
        work.1
    }
}

impl Sees for Worker<'_> {
    fn keeps_memory(&self) -> bool {
        self.pool.queues[self.index].lock().unwrap().capacity() > 64
    }

    fn gives_memory_back(&self) {
        self.pool.queues[self.index].lock().unwrap().shrink_to(64);
    }

    fn has_own_tasks(&self) -> bool {
        !self.pool.queues[self.index].lock().unwrap().is_empty()
    }

    fn is_handed_something(&self) -> bool {
        false
    }

    fn expose(&self, _victim: usize) -> bool {
        false
    }

    fn request_everywhere(&self, _except: Option<usize>) {}

    fn visible_work(&self) -> bool {
        self.pool.queues.iter().any(|queue| !queue.lock().unwrap().is_empty())
    }

    fn private_work(&self) -> bool {
        // Nothing is private here; the look alone orders what comes after it.
        if self.sleep().is_another_awake(self.index, || 0) {
            Machine::heavy();
        }
        false
    }

    fn call_for_visible_work(&self) -> bool {
        let visible = self.visible_work();
        if visible {
            self.sleep().wake_for(self.index);
        }
        visible
    }

    fn does_anybody_run(&self) -> bool {
        self.sleep().does_anybody_run(0)
    }
}

/// A search that counts what is found, and leaves everything else to another.
struct Counted<'c, S>(S, &'c AtomicUsize);

impl<W: Takes, S: SearchRules<W>> SearchRules<W> for Counted<'_, S> {
    fn prepare(&mut self, worker: &W, looks: u32, done: &dyn Fn() -> bool) -> u32 {
        self.0.prepare(worker, looks, done)
    }

    fn stands_aside(&self, worker: &W) -> bool {
        self.0.stands_aside(worker)
    }

    fn find<'w>(
        &self,
        worker: &'w W,
        thief: Option<usize>,
        stands_aside: bool,
    ) -> Option<W::Work<'w>> {
        self.0.find(worker, thief, stands_aside)
    }

    fn begin(&mut self, worker: &W) {
        self.0.begin(worker);
    }

    fn expose(&self, worker: &W, thief: Option<usize>) -> bool {
        self.0.expose(worker, thief)
    }

    fn spins(&self, worker: &W) -> Option<bool> {
        self.0.spins(worker)
    }

    fn sleep(&mut self, worker: &W, thief: Option<usize>, done: &dyn Fn() -> bool) -> Option<u32> {
        self.0.sleep(worker, thief, done)
    }

    fn end(&mut self, worker: &W, work: Option<&W::Work<'_>>, looks: u32) {
        self.1.fetch_add(usize::from(work.is_some()), Ordering::Relaxed);
        self.0.end(worker, work, looks);
    }
}

/// The number of tasks below a task with `children` children, itself included: each child has one
/// fewer.
fn size(children: u32) -> usize {
    1 + (0..children).map(|_| size(children - 1)).sum::<usize>()
}

/// `workers` run a task and all that come of it. The pool afterwards.
fn play(workers: usize, root: u32) -> Pool {
    let pool = Pool::new(workers);
    pool.queues[0].lock().unwrap().push_back(root);
    thread::scope(|scope| {
        for index in 0..workers {
            let pool = &pool;
            scope.spawn(move || {
                let worker = Worker::new(pool, index);
                let search = Counted(Unrestricted::idle(), &pool.found);
                let mut looking = SearchLoop::idle(search, 0);
                while let Some(task) = looking.next(&worker, &|| pool.is_done(), &|| None) {
                    if index != 0 {
                        // The others are slow, so that there is something to wait for.
                        thread::sleep(Duration::from_micros(50));
                    }
                    worker.run(task);
                }
            });
        }
    });
    pool
}

/// The first task's children: of 1,957 tasks, and of 65 in an interpreter.
const CHILDREN: u32 = if cfg!(miri) { 4 } else { 6 };

#[test]
fn each_task_runs_once_and_all_workers_end() {
    for workers in [1, 2, 5] {
        let pool = play(workers, CHILDREN);
        assert_eq!(pool.run.into_inner(), size(CHILDREN), "{workers} workers");
        assert_eq!(pool.found.into_inner(), size(CHILDREN), "{workers} workers");
        assert!(pool.queues.iter().all(|queue| queue.lock().unwrap().is_empty()));
    }
}

#[test]
fn whoever_finds_nothing_sleeps_and_is_called() {
    let pool = Pool::new(2);
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            let worker = Worker::new(&pool, 1);
            worker.backoff.waits();
            let mut looking = SearchLoop::wait(&worker, Unrestricted::wait());
            assert!(looking.next(&worker, &|| pool.is_done(), &|| Some(0)).is_none());
        });
        while pool.slept.load(Ordering::Relaxed) == 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not sleep");
            thread::yield_now();
        }
        pool.policy.exposed();
        pool.left.store(0, Ordering::Release);
        pool.sleep.wake(1);
    });
}

#[test]
fn a_worker_that_does_not_know_whether_there_is_a_barrier_looks_again_without_a_call() {
    let pool = Pool::new(1);
    pool.unanswered.store(true, Ordering::Relaxed);
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            let worker = Worker::new(&pool, 0);
            let mut looking = SearchLoop::idle(Unrestricted::idle(), 0);
            assert!(looking.next(&worker, &|| pool.is_done(), &|| None).is_none());
        });
        while pool.slept.load(Ordering::Relaxed) < 3 && began.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        pool.left.store(0, Ordering::Release);
        pool.sleep.wake_all();
    });
    assert!(pool.slept.into_inner() >= 3, "nobody runs anything, and it sleeps until it is called");
}

#[test]
fn whoever_begins_asleep_looks_at_nobody_before_it_is_called() {
    const WORKERS: usize = 3;
    let pool = Pool::new(WORKERS);
    pool.sleep.begin_asleep(0..WORKERS);
    let began = Instant::now();
    thread::scope(|scope| {
        for index in 0..WORKERS {
            let pool = &pool;
            scope.spawn(move || {
                let worker = Worker::new(pool, index);
                let mut looking = SearchLoop::idle(Unrestricted::idle(), begin_asleep(&worker));
                while let Some(task) = looking.next(&worker, &|| pool.is_done(), &|| None) {
                    worker.run(task);
                }
            });
        }
        while pool.slept.load(Ordering::Relaxed) != WORKERS {
            assert!(began.elapsed() < Duration::from_secs(60), "they do not sleep");
            thread::yield_now();
        }
        assert_eq!(pool.looked.load(Ordering::Relaxed), 0);
        pool.queues[0].lock().unwrap().push_back(CHILDREN);
        assert!(pool.sleep.wake_for(0), "one of them is called");
    });
    assert_eq!(pool.run.into_inner(), size(CHILDREN));
}

/// What the runtime tells of its own stacks, told of one of ours.
#[test]
fn a_stack_tells_its_pool_and_a_thief_asks_once() {
    let sleep = Arc::new(sleep::<Bed>(2));
    let policy = Arc::new(WakePolicy::<Machine, Watch>::new());
    let wakes = Wakes::new(0, &sleep, &policy);
    let forks = Stack::<Machine, _>::new(8, wakes).expect("a stack");
    assert!(steal(&forks).is_none());
    assert!(steal(&forks).is_none());
}
