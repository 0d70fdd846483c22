//! Sleeping, waking, stealing, joins and tasks from outside, all at once, under shuttle.
//!
//! loom checks the [sleep protocol](crate::sleep) and the [deques](poach_deque::split) by
//! themselves, every interleaving of a few steps. Here they run together, in the
//! [loop](super::idle) and by the [rules](super::idle::Unrestricted) that ship, on words of
//! shuttle's: some hundred steps on three workers, far too many to try them all. So shuttle chooses
//! among them, at random and by priorities that change a few times (PCT, Burckhardt et al., ASPLOS
//! 2010). It knows no weak memory: every access is sequentially consistent, and the fences do
//! nothing. What it finds are wake-ups that nobody sends, work that nobody looks for, and ends that
//! nobody sees: each shows as a deadlock, or as a program that goes on for ever.
//!
//! The model has its own owners of queues, inboxes, guests that leave (`PoolShared::relieve`) and
//! waits of guests: a waiting guest sleeps, and takes nothing. Faults are put in there: a call that
//! is not made, a look that sees nothing. An idle worker looks twice before it sleeps, because the
//! model's clock says that it has looked for long enough. No worker naps unless a program is about
//! naps, because the end of a nap would hide a deadlock by a lost call.

use std::cell::Cell;
use std::collections::VecDeque;
use std::iter;
use std::mem;
use std::ops::Sub;
use std::sync::Arc;
use std::time::Duration;

use poach_deque::split::{Context, Exposure, Head, Popped, Stack, Status, Stolen};
use poach_memory::{Memory, Ordering, Word};
use shuttle::sync::atomic::AtomicU64;
use shuttle::sync::{Condvar, Mutex};

use crate::pace::{EAGER_LOOKS, PAUSES_BETWEEN_LOOKS, SPIN_LOOKS};
use crate::sleep::clock::Clock;
use crate::sleep::wake_policy::WakePolicy;
use crate::sleep::wake_policy::Wakes;
use crate::sleep::{Caller, Parking, Sleep};
use crate::worker::find::steal;
use crate::worker::idle::{GivesWay, SearchLoop, Searcher, Sees, Takes, Unrestricted};
use crate::worker::spin_time::SpinTime;
use crate::worker::steal_backoff::StealBackoff;

mod memory;
mod programs;

use memory::Shuttled;

struct ShuttledParking {
    called: Mutex<bool>,
    changed: Condvar,
}

impl ShuttledParking {
    fn new() -> Self {
        ShuttledParking { called: Mutex::new(false), changed: Condvar::new() }
    }
}

impl Parking for ShuttledParking {
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

/// A clock by which every moment is long after the last one.
struct Ticks;

/// The model's time, in milliseconds: a tick is more than an idle worker looks before it sleeps,
/// and more than a steal costs.
#[derive(Clone, Copy)]
struct Tick(u32);

impl Sub for Tick {
    type Output = Duration;

    fn sub(self, earlier: Tick) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).into())
    }
}

impl Clock for Ticks {
    type Instant = Tick;

    fn now() -> Tick {
        // shuttle runs all threads of a model on one.
        thread_local!(static NOW: Cell<u32> = const { Cell::new(0) });
        NOW.set(NOW.get().wrapping_add(1));
        Tick(NOW.get())
    }
}

/// A yield lets another thread run.
#[derive(Default)]
struct Yields;

impl GivesWay for Yields {
    fn yields(&mut self) -> bool {
        Shuttled::pause();
        true
    }

    fn is_contended(&self) -> bool {
        false
    }

    fn looked(&mut self, _found: bool) {}
}

/// A step that a model leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    /// The thread that injects a task wakes no worker.
    CallForTheInjected,
    /// A worker that wakes a future calls nobody.
    CallForTheWoken,
    /// A thief that has finished a half does not wake its victim.
    CallForTheVictim,
    /// A worker sleeps without looking again.
    SecondLook,
    /// An owner that has shared tasks wakes no worker.
    CallForTheShared,
    /// A guest leaves without looking.
    LookOfTheGuest,
    /// A guest that leaves does not look at private tasks.
    LookAtPrivateTasks,
    /// An owner puts each request off while no worker searches; sleepers nap.
    Answers,
    /// The same, and sleepers do not nap.
    AnswersAndNaps,
}

/// The callbacks of a worker's stack.
struct DequeEvents {
    wakes: Wakes<Shuttled, ShuttledParking, Ticks>,
    sleep: Arc<Sleep<Shuttled, ShuttledParking>>,
    left: Left,
}

impl Context for DequeEvents {
    fn shared(&self) {
        if self.left != Left::CallForTheShared {
            self.wakes.shared();
        }
    }

    fn should_share(&self, private: u32) -> bool {
        // The policy hesitates as long as a sleeper naps.
        let hesitates = matches!(self.left, Left::Answers | Left::AnswersAndNaps);
        if hesitates { self.sleep.is_anybody_searching() } else { self.wakes.should_share(private) }
    }
}

type Top = Head<Shuttled, DequeEvents>;

/// A half of this number of steps lasts longer than its victim looks before it sleeps.
const LONGER_THAN_A_SEARCH: u32 = 4 * SPIN_LOOKS + 2 * EAGER_LOOKS * PAUSES_BETWEEN_LOOKS;

/// A task or a half.
#[derive(Clone, Copy)]
enum What {
    /// Two of these, one level lower; at level zero, a leaf.
    Tree(u32),
    /// `Wait` and `Begin`: a half that does not end before the other one has begun elsewhere.
    HandedOver,
    Wait,
    /// `WaitInOneLeaf` and `Begin`: the first forks nothing.
    HandedOverBehindALeaf,
    WaitInOneLeaf,
    /// Wakes a future, `Begin`, and does not end before that is polled elsewhere.
    Wake,
    Begin,
}

/// Tasks that anybody takes, the oldest first.
struct Inbox {
    tasks: Mutex<VecDeque<What>>,
    count: AtomicU64,
}

impl Inbox {
    fn new() -> Inbox {
        Inbox { tasks: Mutex::new(VecDeque::new()), count: AtomicU64::new(0) }
    }

    fn put(&self, task: What) {
        self.tasks.lock().unwrap().push_back(task);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    fn take(&self) -> Option<What> {
        if self.is_empty() {
            return None;
        }
        let task = self.tasks.lock().unwrap().pop_front()?;
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(task)
    }
}

#[repr(align(8))]
struct Descriptor;
static DESCRIPTOR: Descriptor = Descriptor;

fn descriptor() -> *mut () {
    (&raw const DESCRIPTOR).cast_mut().cast()
}

/// A pool: its workers' stacks and woken futures, an inbox, and the sleepers.
struct Pool {
    sleep: Arc<Sleep<Shuttled, ShuttledParking>>,
    policy: Arc<WakePolicy<Shuttled, Ticks>>,
    forks: Vec<Stack<Shuttled, DequeEvents>>,
    ready: Vec<Inbox>,
    injected: Inbox,
    closing: AtomicU64,
    begun: AtomicU64,
    /// 1 for each worker as which a thread acts just now.
    acting: Vec<AtomicU64>,
    /// The results of the injected tasks, and the thread that waits for them.
    results: Mutex<Vec<u64>>,
    more: Condvar,
    /// The number of stacks that are workers'; the others are places of guests.
    workers: usize,
    left: Left,
}

impl Pool {
    fn new(workers: usize, places: usize, left: Left) -> Arc<Pool> {
        let parking = workers + places;
        let threads = (0..parking).map(|_| ShuttledParking::new()).collect();
        let sleep = Arc::new(Sleep::new(threads, places, 1));
        let policy = Arc::new(WakePolicy::new());
        let stack = |index| {
            let wakes = Wakes::new(index, &sleep, &policy);
            let events = DequeEvents { wakes, sleep: Arc::clone(&sleep), left };
            Stack::new(8, events).expect("a small stack")
        };
        Arc::new(Pool {
            forks: (0..parking).map(stack).collect(),
            ready: (0..parking).map(|_| Inbox::new()).collect(),
            injected: Inbox::new(),
            closing: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            acting: (0..parking).map(|_| AtomicU64::new(0)).collect(),
            results: Mutex::new(Vec::new()),
            more: Condvar::new(),
            sleep,
            policy,
            workers,
            left,
        })
    }

    fn inject(&self, task: What) {
        self.injected.put(task);
        if self.left != Left::CallForTheInjected {
            self.sleep.wake_one(Caller::GoesOn);
        }
    }

    /// Waits for `count` results, and takes them.
    fn results(&self, count: usize) -> Vec<u64> {
        let mut results = self.results.lock().unwrap();
        while results.len() < count {
            results = self.more.wait(results).unwrap();
        }
        mem::take(&mut *results)
    }

    /// Whether something has come from outside, or a future was woken.
    fn handed_something(&self) -> bool {
        !self.injected.is_empty() || self.ready.iter().any(|ready| !ready.is_empty())
    }

    /// Whether there is visible work.
    fn visible(&self) -> bool {
        self.handed_something() || self.forks.iter().any(|forks| forks.shared() != 0)
    }

    fn request_everywhere(&self, except: Option<usize>) {
        let all = self.forks.iter().enumerate();
        for (_, forks) in all.filter(|&(index, _)| Some(index) != except) {
            forks.request();
        }
    }

    /// A thread begins to act as this worker.
    fn begin(&self, me: usize) {
        assert_eq!(self.acting[me].swap(1, Ordering::Relaxed), 0, "two are one worker");
    }

    fn end(&self, me: usize) {
        self.acting[me].store(0, Ordering::Relaxed);
    }

    /// `ThreadPool::enter`, of a guest.
    fn call(&self, task: What) -> Option<u64> {
        let place = self.sleep.enter().ok()?;
        let me = self.workers + place;
        self.begin(me);
        // SAFETY: this thread has the place of the stack's owner, and keeps the pool that holds it.
        let bottom = unsafe { self.forks[me].bottom() };
        let result = Worker::new(self, me).run(bottom, task);
        self.end(me);
        assert!(self.sleep.leave(place, || self.relieve(me)));
        Some(result)
    }

    /// `PoolShared::relieve`.
    fn relieve(&self, me: usize) {
        if self.left != Left::LookOfTheGuest {
            self.request_everywhere(Some(me));
            let private = |victim: usize| self.forks[victim].has_private_tasks();
            let looks = self.left != Left::LookAtPrivateTasks;
            if self.visible() || looks && self.others(me).any(private) {
                self.sleep.wake_for(me);
            }
        }
    }

    fn others(&self, me: usize) -> impl Iterator<Item = usize> {
        (1..self.forks.len()).map(move |step| (me + step) % self.forks.len())
    }
}

/// A thread that acts as one of the workers, or as a guest.
struct Worker<'p> {
    pool: &'p Pool,
    me: usize,
    backoff: StealBackoff<Ticks>,
    spin_time: SpinTime<Ticks>,
}

enum Work<'p> {
    Injected(What),
    Future(What),
    Fork(Stolen<'p, Shuttled>, usize),
}

impl<'p> Worker<'p> {
    fn new(pool: &'p Pool, me: usize) -> Self {
        Worker { pool, me, backoff: StealBackoff::new(), spin_time: SpinTime::new() }
    }

    /// `WorkerThread::main_loop`.
    fn main_loop(&self) {
        self.pool.begin(self.me);
        // SAFETY: this thread is the stack's owner, and keeps the pool that holds it.
        let bottom = unsafe { self.pool.forks[self.me].bottom() };
        let done = || self.pool.closing.load(Ordering::Relaxed) != 0;
        let mut search = SearchLoop::idle(Unrestricted::idle(), 0);
        while let Some(work) = search.next(self, &done, &|| None) {
            self.run_work(bottom, work);
        }
    }

    fn run_work(&self, top: Top, work: Work<'_>) {
        match work {
            Work::Injected(task) => {
                let result = self.run(top, task);
                self.pool.results.lock().unwrap().push(result);
                self.pool.more.notify_one();
            }
            Work::Future(task) => _ = self.run(top, task),
            Work::Fork(stolen, victim) => {
                self.run_stolen(top, &stolen);
                if self.pool.left != Left::CallForTheVictim {
                    self.pool.sleep.wake(victim);
                }
            }
        }
    }

    fn run(&self, top: Top, what: What) -> u64 {
        let begun = &self.pool.begun;
        match what {
            What::Tree(0) => 1,
            What::Tree(level) => self.join(top, What::Tree(level - 1), What::Tree(level - 1)),
            What::HandedOver => {
                // So that the other worker may be asleep by then.
                (0..30).for_each(|_| Shuttled::pause());
                self.join(top, What::Wait, What::Begin)
            }
            What::Wait => {
                while begun.load(Ordering::Relaxed) == 0 {
                    // A place at which a request is met.
                    self.join(top, What::Tree(0), What::Tree(0));
                    Shuttled::pause();
                }
                0
            }
            What::HandedOverBehindALeaf => {
                (0..30).for_each(|_| Shuttled::pause());
                // Requests are met before.
                self.join(top, What::Tree(0), What::Tree(0));
                self.join(top, What::WaitInOneLeaf, What::Begin)
            }
            What::WaitInOneLeaf => {
                while begun.load(Ordering::Relaxed) == 0 {
                    Shuttled::pause();
                }
                0
            }
            What::Wake => {
                (0..30).for_each(|_| Shuttled::pause());
                self.pool.ready[self.me].put(What::Begin);
                if self.pool.left != Left::CallForTheWoken {
                    self.pool.sleep.wake_one(Caller::GoesOn);
                }
                self.run(top, What::WaitInOneLeaf)
            }
            What::Begin => {
                let number = begun.fetch_add(1, Ordering::Relaxed) + 1;
                (0..LONGER_THAN_A_SEARCH).for_each(|_| Shuttled::pause());
                number
            }
        }
    }

    /// `fork`, and the wait for what was stolen.
    fn join(&self, head: Top, a: What, b: What) -> u64 {
        // SAFETY: this thread owns the stack, `head` is its top, a `What` fits; popped below.
        let above = unsafe { head.push(descriptor(), &raw const b) }.expect("the stack has room");
        let first = self.run(above, a);
        // SAFETY: this thread owns the stack, and what was pushed above has been popped.
        if unsafe { head.pop() } == Popped::Own {
            return first + self.run(head, b);
        }
        // SAFETY: this thread owns the stack, which it has pushed to at `head`.
        let slot = unsafe { head.slot() };
        let done = || slot.status().load(Ordering::Acquire) & Status::DONE != 0;
        let thief = || {
            let status = slot.status().load(Ordering::Relaxed);
            ((status >> Status::THIEF_SHIFT) as usize).checked_sub(1)
        };
        // A stolen task keeps its slot.
        if self.me < self.pool.workers {
            self.backoff.waits();
            let mut search = SearchLoop::wait(self, Unrestricted::wait());
            while let Some(work) = search.next(self, &done, &thief) {
                self.run_work(above, work);
            }
        } else {
            self.doze_until(&done);
        }
        // SAFETY: the thief has put its result there, and is done with it.
        let second = unsafe { slot.take::<u64>() };
        // SAFETY: stolen and done, the result is out, and nothing is above it.
        unsafe { head.retire() };
        first + second
    }

    fn run_stolen(&self, top: Top, stolen: &Stolen<'_, Shuttled>) {
        let slot = stolen.slot();
        slot.status().store((self.me as u64 + 1) << Status::THIEF_SHIFT, Ordering::Relaxed);
        // SAFETY: claimed by this thread, and a `What`.
        let what = unsafe { slot.take::<What>() };
        let result = self.run(top, what);
        // SAFETY: this thread's until it says that it is done; a u64 fits.
        unsafe { slot.put(result) };
        slot.status().store(Status::DONE, Ordering::Release);
    }

    /// A guest's wait, which takes nothing.
    fn doze_until(&self, done: &dyn Fn() -> bool) {
        let (sleep, place) = (&self.pool.sleep, self.me - self.pool.workers);
        while !done() {
            _ = sleep.doze(place, || self.pool.relieve(self.me));
            sleep.sleep_following(self.me, None, done);
            sleep.rouse(place);
        }
    }
}

impl Searcher for Worker<'_> {
    type Memory = Shuttled;
    type Parking = ShuttledParking;
    type Clock = Ticks;
    type GivesWay = Yields;

    fn index(&self) -> usize {
        self.me
    }

    fn sleep(&self) -> &Sleep<Shuttled, ShuttledParking> {
        &self.pool.sleep
    }

    fn wake_policy(&self) -> &WakePolicy<Shuttled, Ticks> {
        &self.pool.policy
    }

    fn backoff(&self) -> &StealBackoff<Ticks> {
        &self.backoff
    }

    fn spin_time(&self) -> &SpinTime<Ticks> {
        &self.spin_time
    }

    fn victims(&self) -> impl Iterator<Item = usize> {
        self.pool.others(self.me)
    }

    /// No other thread acts as this worker while it sleeps. Others run before it sleeps: with fixed
    /// priorities, a worker that sees work which another is about to take would look again for
    /// ever.
    fn sleeps(&self) -> impl Sized {
        struct Acts<'p>(&'p Pool, usize);
        impl Drop for Acts<'_> {
            fn drop(&mut self) {
                self.0.begin(self.1);
            }
        }
        self.pool.end(self.me);
        Shuttled::pause();
        Acts(self.pool, self.me)
    }
}

impl<'p> Takes for Worker<'p> {
    type Work<'w>
        = Work<'p>
    where
        Self: 'w;

    fn steal_fork(&self, victim: usize, _leap: bool) -> Option<Work<'p>> {
        Some(Work::Fork(steal(&self.pool.forks[victim])?, victim))
    }

    fn injected(&self, urgent: bool) -> Option<Work<'p>> {
        if urgent { None } else { self.pool.injected.take().map(Work::Injected) }
    }

    fn future(&self) -> Option<Work<'p>> {
        let mut all = iter::once(self.me).chain(self.pool.others(self.me));
        all.find_map(|worker| self.pool.ready[worker].take()).map(Work::Future)
    }

    fn is_stolen(work: &Work<'p>) -> bool {
        matches!(work, Work::Fork(..))
    }
}

impl Worker<'_> {
    /// Whether its looks see the work that is there.
    fn sees(&self) -> bool {
        self.pool.left != Left::SecondLook
    }
}

impl Sees for Worker<'_> {
    fn is_handed_something(&self) -> bool {
        self.sees() && self.pool.handed_something()
    }

    fn expose(&self, victim: usize) -> bool {
        let done = self.pool.forks[victim].expose() == Exposure::Done;
        if done {
            self.pool.policy.exposed();
        }
        done
    }

    fn request_everywhere(&self, except: Option<usize>) {
        self.pool.request_everywhere(except);
    }

    fn visible_work(&self) -> bool {
        self.sees() && self.pool.visible()
    }

    fn private_work(&self) -> bool {
        let private = |victim: usize| self.pool.forks[victim].has_private_tasks();
        self.sees() && self.pool.others(self.me).any(private)
    }

    fn call_for_visible_work(&self) -> bool {
        let visible = self.pool.visible();
        if visible {
            self.pool.sleep.wake_one(Caller::GoesOn);
        }
        visible
    }

    /// While any worker runs something, sleepers nap.
    fn does_anybody_run(&self) -> bool {
        self.pool.left == Left::Answers
    }
}
