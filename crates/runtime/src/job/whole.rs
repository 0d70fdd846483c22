//! Sleeping, waking, stealing, joins and tasks from outside, all at once, under shuttle.
//!
//! loom checks the [sleep protocol](crate::sleep) and the [deques](poach_deque::split) by themselves, every
//! interleaving of a few steps. Here they run together, in the loop of [`Local`](crate::scheduler::worker::Local) written
//! once more with nothing but what the protocol needs: some hundred steps on three workers, far too many to try
//! them all, so shuttle chooses among them, at random and by priorities that change a few times (PCT, Burckhardt
//! et al., ASPLOS 2010). It knows no weak memory: every access is sequentially consistent, and the fences do
//! nothing. What it finds are wake-ups that nobody sends, work that nobody looks for, and ends that nobody sees:
//! each shows as a deadlock, or as a program that goes on for ever.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use poach_deque::split::{Claim, Context, Exposure, Head, Popped, Stack, Status, Stolen};
use poach_memory::{Memory, Ordering, Word};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::AtomicU64;
use shuttle::sync::{Condvar, Mutex};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner, thread};

use crate::scheduler::sleep::{Caller, Parking, Sleep};

mod memory;

use memory::Shuttled;

struct ShuttledSeat {
    called: Mutex<bool>,
    changed: Condvar,
}

impl ShuttledSeat {
    fn new() -> Self {
        ShuttledSeat { called: Mutex::new(false), changed: Condvar::new() }
    }
}

impl Parking for ShuttledSeat {
    fn park(&self) {
        let mut called = self.called.lock().unwrap();
        while !*called {
            called = self.changed.wait(called).unwrap();
        }
        *called = false;
    }

    /// shuttle has no time: it is over at once.
    fn park_for(&self, _time: Duration) -> bool {
        Shuttled::pause();
        mem::take(&mut *self.called.lock().unwrap())
    }

    fn unpark(&self, _caller: Caller) {
        *self.called.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

/// What a model may leave out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// Who injects a task wakes nobody.
    CallForTheInjected,
    /// A thief that has finished a half does not wake its victim.
    CallForTheVictim,
    /// A worker sleeps without looking again.
    SecondLook,
    /// An owner that has shared tasks wakes nobody.
    CallForTheShared,
    /// A guest leaves without looking.
    LookOfTheGuest,
    /// An owner puts each request off while nobody searches, for which sleepers nap.
    Answers,
    /// The same, and sleepers do not nap.
    AnswersAndNaps,
}

/// What a worker's stack belongs to.
struct DequeEvents {
    index: usize,
    sleep: Arc<Sleep<Shuttled, ShuttledSeat>>,
    left: Left,
}

impl Context for DequeEvents {
    fn shared(&self) {
        if self.left != Left::CallForTheShared {
            self.sleep.wake_for(self.index);
        }
    }

    fn answers(&self, _private: u32) -> bool {
        let hesitates = matches!(self.left, Left::Answers | Left::AnswersAndNaps);
        !hesitates || self.sleep.is_anybody_searching()
    }
}

type Top = Head<Shuttled, DequeEvents>;

/// What a task or a half is.
#[derive(Clone, Copy)]
enum What {
    /// Two of these, one level lower; at level zero, a leaf.
    Tree(u32),
    /// `Wait` and `Begin`: a half that does not end before the other one has begun elsewhere.
    HandedOver,
    Wait,
    Begin,
}

#[repr(align(8))]
struct Descriptor;
static DESCRIPTOR: Descriptor = Descriptor;

fn descriptor() -> *mut () {
    (&raw const DESCRIPTOR).cast_mut().cast()
}

/// A pool: its workers' stacks, an inbox, and who sleeps.
struct Pool {
    sleep: Arc<Sleep<Shuttled, ShuttledSeat>>,
    forks: Vec<Stack<Shuttled, DequeEvents>>,
    inbox: Mutex<VecDeque<What>>,
    injected: AtomicU64,
    closing: AtomicU64,
    begun: AtomicU64,
    /// 1 for each worker as which somebody acts just now.
    acting: Vec<AtomicU64>,
    /// What the injected tasks came to; and who waits for it.
    results: Mutex<Vec<u64>>,
    more: Condvar,
    /// How many of the stacks are workers'; the others are places of guests.
    workers: usize,
    left: Left,
}

impl Pool {
    fn new(workers: usize, places: usize, left: Left) -> Arc<Pool> {
        let parking = workers + places;
        let seats = (0..parking).map(|_| ShuttledSeat::new()).collect();
        let sleep = Arc::new(Sleep::new(seats, places, 1));
        let stack = |index| {
            let home = DequeEvents { index, sleep: Arc::clone(&sleep), left };
            Stack::new(8, home).expect("a small stack")
        };
        Arc::new(Pool {
            forks: (0..parking).map(stack).collect(),
            inbox: Mutex::new(VecDeque::new()),
            injected: AtomicU64::new(0),
            closing: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            acting: (0..parking).map(|_| AtomicU64::new(0)).collect(),
            results: Mutex::new(Vec::new()),
            more: Condvar::new(),
            sleep,
            workers,
            left,
        })
    }

    fn inject(&self, task: What) {
        self.inbox.lock().unwrap().push_back(task);
        self.injected.fetch_add(1, Ordering::Relaxed);
        if self.left != Left::CallForTheInjected {
            self.sleep.wake_one(Caller::GoesOn);
        }
    }

    /// Waits for so many results, and takes them.
    fn results(&self, count: usize) -> Vec<u64> {
        let mut results = self.results.lock().unwrap();
        while results.len() < count {
            results = self.more.wait(results).unwrap();
        }
        mem::take(&mut *results)
    }

    fn take_injected(&self) -> Option<What> {
        if self.injected.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let task = self.inbox.lock().unwrap().pop_front()?;
        self.injected.fetch_sub(1, Ordering::Relaxed);
        Some(task)
    }

    fn visible(&self) -> bool {
        self.injected.load(Ordering::Relaxed) != 0
            || self.forks.iter().any(|forks| forks.shared() != 0)
    }

    fn request_everywhere(&self, but: usize) {
        for (_, forks) in self.forks.iter().enumerate().filter(|&(index, _)| index != but) {
            forks.request();
        }
    }

    /// Line L3.
    fn found(&self) {
        if self.sleep.found() {
            self.request_everywhere(usize::MAX);
            if self.visible() {
                self.sleep.wake_one(Caller::GoesOn);
            }
        }
    }

    /// Somebody begins to act as this worker.
    fn begin(&self, me: usize) {
        assert_eq!(self.acting[me].swap(1, Ordering::Relaxed), 0, "two are one worker");
    }

    fn end(&self, me: usize) {
        self.acting[me].store(0, Ordering::Relaxed);
    }

    /// `ThreadPool::enter`, of a guest.
    fn call(&self, task: What) -> Option<u64> {
        let place = self.sleep.enter()?;
        let me = self.workers + place;
        self.begin(me);
        // SAFETY: this thread has the place of the stack's owner, and keeps the pool that holds it.
        let bottom = unsafe { self.forks[me].bottom() };
        let result = self.run(me, bottom, task);
        self.end(me);
        assert!(self.sleep.leave(place, || self.relieve(me)));
        Some(result)
    }

    /// `Registry::relieve`.
    fn relieve(&self, me: usize) {
        if self.left != Left::LookOfTheGuest {
            self.request_everywhere(me);
            if self.visible() {
                self.sleep.wake_for(me);
            }
        }
    }

    /// `Local::work_until`, of a guest that takes nothing.
    fn doze_until(&self, me: usize, done: &dyn Fn() -> bool) {
        let place = me - self.workers;
        while !done() {
            self.sleep.doze(place, || self.relieve(me));
            self.sleep.sleep_following(me, None, done);
            self.sleep.rouse(place);
        }
    }

    fn others(&self, me: usize) -> impl Iterator<Item = usize> {
        (1..self.forks.len()).map(move |step| (me + step) % self.forks.len())
    }

    fn steal(&self, me: usize) -> Option<(Stolen<'_, Shuttled>, usize)> {
        self.others(me).find_map(|victim| {
            loop {
                match self.forks[victim].steal() {
                    Ok(stolen) => return Some((stolen, victim)),
                    Err(Claim::Lost) => Shuttled::pause(),
                    Err(_) => return None,
                }
            }
        })
    }

    /// `Local::work_until`; `idle` says that nothing is under way.
    fn work_until(&self, me: usize, top: Top, idle: bool, done: &dyn Fn() -> bool) {
        let mut looks = 0;
        let found = |looks: &mut u32| {
            if mem::take(looks) != 0 {
                self.found();
            }
        };
        while !done() {
            if let Some(task) = self.take_injected() {
                found(&mut looks);
                let result = self.run(me, top, task);
                self.results.lock().unwrap().push(result);
                self.more.notify_one();
                continue;
            }
            if let Some((stolen, victim)) = self.steal(me) {
                found(&mut looks);
                self.run_stolen(me, top, &stolen);
                if self.left != Left::CallForTheVictim {
                    self.sleep.wake(victim);
                }
                continue;
            }
            if looks == 0 {
                self.sleep.search();
            }
            looks += 1;
            let aside = idle && self.sleep.is_crowded();
            if aside {
                looks = 3;
            }
            if looks == 2
                && self.others(me).any(|victim| self.forks[victim].expose() == Exposure::Done)
            {
                // Something to steal now.
            } else if looks <= 2 {
                Shuttled::pause();
            } else {
                if idle {
                    self.end(me);
                }
                let nap = (self.left == Left::Answers).then_some(Duration::ZERO);
                self.sleep.sleep(me, nap, || {
                    self.request_everywhere(me);
                    let aside = idle && self.sleep.leaves_it_to_guests();
                    let private = |victim: usize| self.forks[victim].has_private_tasks();
                    let seen = || {
                        if aside {
                            self.injected.load(Ordering::Relaxed) != 0
                        } else {
                            self.visible() || self.others(me).any(private)
                        }
                    };
                    self.left != Left::SecondLook && (done() || seen())
                });
                if idle {
                    self.begin(me);
                }
                looks = 1;
            }
        }
        found(&mut looks);
    }

    fn run(&self, me: usize, top: Top, what: What) -> u64 {
        match what {
            What::Tree(0) => 1,
            What::Tree(level) => self.join(me, top, What::Tree(level - 1), What::Tree(level - 1)),
            What::HandedOver => {
                // So that the other worker may be asleep by then.
                (0..30).for_each(|_| Shuttled::pause());
                self.join(me, top, What::Wait, What::Begin)
            }
            What::Wait => {
                while self.begun.load(Ordering::Relaxed) == 0 {
                    // A place at which a request is met.
                    self.join(me, top, What::Tree(0), What::Tree(0));
                    Shuttled::pause();
                }
                0
            }
            What::Begin => self.begun.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }

    /// `fork`, and the wait for what was stolen.
    fn join(&self, me: usize, head: Top, a: What, b: What) -> u64 {
        // SAFETY: this thread owns the stack, `head` is its top, a `What` fits; popped below.
        let above = unsafe { head.push(descriptor(), &raw const b) }.expect("the stack has room");
        let first = self.run(me, above, a);
        // SAFETY: this thread owns the stack, and what was pushed above has been popped.
        if unsafe { head.pop() } == Popped::Own {
            return first + self.run(me, head, b);
        }
        // SAFETY: this thread owns the stack, which it has pushed to at `head`.
        let slot = unsafe { head.slot() };
        let done = || slot.status().load(Ordering::Acquire) & Status::DONE != 0;
        // A stolen task keeps its slot.
        if me < self.workers {
            self.work_until(me, above, false, &done);
        } else {
            self.doze_until(me, &done);
        }
        // SAFETY: the thief has put its result there, and is done with it.
        let second = unsafe { slot.take::<u64>() };
        // SAFETY: stolen and done, the result is out, and nothing is above it.
        unsafe { head.retire() };
        first + second
    }

    fn run_stolen(&self, me: usize, top: Top, stolen: &Stolen<'_, Shuttled>) {
        // SAFETY: claimed by this thread, and a `What`.
        let what = unsafe { stolen.slot().take::<What>() };
        let result = self.run(me, top, what);
        // SAFETY: this thread's until it says that it is done; a u64 fits.
        unsafe { stolen.slot().put(result) };
        stolen.slot().status().store(Status::DONE, Ordering::Release);
    }
}

/// So many workers, tasks that are handed over, and calls from another thread, each of a tree of two; and an end.
fn program(workers: usize, tasks: &[What], expected: &[u64], calls: usize, left: Left) {
    let pool = Pool::new(workers, usize::from(calls > 0), left);
    let threads: Vec<_> = (0..workers)
        .map(|me| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                // SAFETY: this thread is the stack's owner, and keeps the pool that holds it.
                let bottom = unsafe { pool.forks[me].bottom() };
                pool.begin(me);
                pool.work_until(me, bottom, true, &|| pool.closing.load(Ordering::Relaxed) != 0);
            })
        })
        .collect();
    let caller = Arc::clone(&pool);
    let caller = (calls > 0).then(|| {
        thread::spawn(move || {
            for _ in 0..calls {
                while caller.call(What::Tree(1)).is_none_or(|result| result != 2) {
                    Shuttled::pause();
                }
            }
        })
    });
    for &task in tasks {
        (0..10 * calls).for_each(|_| Shuttled::pause());
        pool.inject(task);
    }
    assert_eq!(pool.results(tasks.len()), expected);
    if let Some(caller) = caller {
        caller.join().unwrap();
    }
    // Another one, when all may be asleep: they take some steps to be.
    (0..100).for_each(|_| Shuttled::pause());
    pool.inject(What::Tree(1));
    assert_eq!(pool.results(1), [2]);
    pool.closing.store(1, Ordering::Relaxed);
    pool.sleep.wake_all();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Two trees of joins.
fn trees(left: Left) {
    program(3, &[What::Tree(2), What::Tree(2)], &[4, 4], 0, left);
}

/// A join that needs two workers, the second of which sleeps, or is about to, or looks for work.
fn handed_over(left: Left) {
    program(2, &[What::HandedOver], &[1], 0, left);
}

fn one_worker_and_a_guest(left: Left) {
    program(1, &[What::Tree(1)], &[2], 8, left);
}

fn two_workers_and_a_guest(left: Left) {
    program(2, &[What::Tree(2), What::Tree(2)], &[4, 4], 3, left);
}

/// A join that needs two workers, one of which may stand aside for a guest just then.
fn handed_over_beside_a_guest(left: Left) {
    program(2, &[What::HandedOver], &[1], 3, left);
}

/// With each of the two ways to choose.
const ITERATIONS: usize = 300;
/// More than any of these programs takes.
const STEPS: usize = 50_000;

fn config() -> Config {
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(STEPS);
    config.failure_persistence = FailurePersistence::None;
    config
}

fn check(program: fn(Left), left: Left) {
    let random = RandomScheduler::new_from_seed(1, ITERATIONS);
    Runner::new(random, config()).run(move || program(left));
    let changes = PctScheduler::new_from_seed(1, 3, ITERATIONS);
    Runner::new(changes, config()).run(move || program(left));
}

#[test]
fn every_task_is_run_once_and_everybody_comes_home() {
    check(trees, Left::Nothing);
}

#[test]
fn a_half_that_waits_for_the_other_meets_a_thief() {
    check(handed_over, Left::Nothing);
}

#[test]
fn guests_come_and_go_and_nothing_is_lost() {
    check(one_worker_and_a_guest, Left::Nothing);
    check(two_workers_and_a_guest, Left::Nothing);
    check(handed_over_beside_a_guest, Left::Nothing);
}

#[test]
fn an_owner_that_puts_requests_off_meets_one_that_naps() {
    check(trees, Left::Answers);
    check(handed_over, Left::Answers);
}

#[test]
#[should_panic(expected = "max_steps")]
fn an_owner_that_puts_requests_off_waits_for_ever_if_nobody_naps() {
    check(handed_over, Left::AnswersAndNaps);
}

#[test]
#[should_panic(expected = "max_steps")]
fn a_guest_that_leaves_without_looking_leaves_a_half_alone() {
    check(handed_over_beside_a_guest, Left::LookOfTheGuest);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_task_from_outside_that_calls_nobody_is_left_alone() {
    check(trees, Left::CallForTheInjected);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_victim_that_is_not_called_sleeps_for_ever() {
    check(trees, Left::CallForTheVictim);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeper_that_does_not_look_again_loses_a_call() {
    check(trees, Left::SecondLook);
}

#[test]
#[should_panic(expected = "max_steps")]
fn an_owner_that_answers_a_request_and_calls_nobody_waits_for_ever() {
    check(handed_over, Left::CallForTheShared);
}
