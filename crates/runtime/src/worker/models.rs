//! Sleeping, waking, stealing, joins and tasks from outside, all at once, under shuttle.
//!
//! loom checks the [sleep protocol](crate::sleep) and the [deques](poach_deque::split) by
//! themselves, every interleaving of a few steps. Here they run together, under the
//! [loop](super::idle) of a worker written once more with nothing but what the protocol needs: two
//! looks where 64 ship, and no back-off. So what is checked of the loop is its order (look,
//! request, expose, look again, sleep), and not its source. Some hundred steps on three workers are
//! far too many to try them all, so shuttle chooses among them, at random and by priorities that
//! change a few times (PCT, Burckhardt et al., ASPLOS 2010). It knows no weak memory: every access
//! is sequentially consistent, and the fences do nothing. What it finds are wake-ups that nobody
//! sends, work that nobody looks for, and ends that nobody sees: each shows as a deadlock, or as a
//! program that goes on for ever.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use poach_deque::split::{Claim, Context, Exposure, Head, Popped, Stack, Status, Stolen};
use poach_memory::{Memory, Ordering, Word};
use shuttle::sync::atomic::AtomicU64;
use shuttle::sync::{Condvar, Mutex};

use crate::sleep::{Caller, Parking, Sleep};

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
    /// A guest that leaves does not look at what owners keep private.
    LookAtPrivateTasks,
    /// An owner puts each request off while nobody searches, for which sleepers nap.
    Answers,
    /// The same, and sleepers do not nap.
    AnswersAndNaps,
}

/// What a worker's stack belongs to.
struct DequeEvents {
    index: usize,
    sleep: Arc<Sleep<Shuttled, ShuttledParking>>,
    left: Left,
}

impl Context for DequeEvents {
    fn shared(&self) {
        if self.left != Left::CallForTheShared {
            self.sleep.wake_for(self.index);
        }
    }

    fn should_share(&self, _private: u32) -> bool {
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
    /// `WaitInOneLeaf` and `Begin`: the first forks nothing.
    HandedOverBehindALeaf,
    WaitInOneLeaf,
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
    sleep: Arc<Sleep<Shuttled, ShuttledParking>>,
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
        let threads = (0..parking).map(|_| ShuttledParking::new()).collect();
        let sleep = Arc::new(Sleep::new(threads, places, 1));
        let stack = |index| {
            let events = DequeEvents { index, sleep: Arc::clone(&sleep), left };
            Stack::new(8, events).expect("a small stack")
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

    /// Whether there is something that anybody takes.
    fn visible(&self) -> bool {
        self.injected.load(Ordering::Relaxed) != 0
            || self.forks.iter().any(|forks| forks.shared() != 0)
    }

    /// Line L3.
    fn request_everywhere(&self, but: usize) {
        for (_, forks) in self.forks.iter().enumerate().filter(|&(index, _)| index != but) {
            forks.request();
        }
    }

    fn found(&self) {
        if self.sleep.stop_search() {
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
        let place = self.sleep.enter().ok()?;
        let me = self.workers + place;
        self.begin(me);
        // SAFETY: this thread has the place of the stack's owner, and keeps the pool that holds it.
        let bottom = unsafe { self.forks[me].bottom() };
        let result = self.run(me, bottom, task);
        self.end(me);
        assert!(self.sleep.leave(place, || self.relieve(me)));
        Some(result)
    }

    /// `PoolShared::relieve`.
    fn relieve(&self, me: usize) {
        if self.left != Left::LookOfTheGuest {
            self.request_everywhere(me);
            let private = |victim: usize| self.forks[victim].has_private_tasks();
            let looks = self.left != Left::LookAtPrivateTasks;
            if self.visible() || looks && self.others(me).any(private) {
                self.sleep.wake_for(me);
            }
        }
    }

    /// `WorkerThread::work_until`, of a guest that takes nothing.
    fn doze_until(&self, me: usize, done: &dyn Fn() -> bool) {
        let place = me - self.workers;
        while !done() {
            _ = self.sleep.doze(place, || self.relieve(me));
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
                    Ok(stolen) => {
                        return Some((stolen, victim));
                    }
                    Err(Claim::Lost) => Shuttled::pause(),
                    Err(_) => return None,
                }
            }
        })
    }

    /// `WorkerThread::work_until`; `idle` says that nothing is under way.
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
            let aside = idle && self.sleep.is_crowded();
            if !aside {
                if let Some((stolen, victim)) = self.steal(me) {
                    found(&mut looks);
                    self.run_stolen(me, top, &stolen);
                    if self.left != Left::CallForTheVictim {
                        self.sleep.wake(victim);
                    }
                    continue;
                }
            }
            if looks == 0 {
                self.sleep.search();
            }
            looks += 1;
            if aside {
                looks = 3;
            }
            let expose = |victim: usize| self.forks[victim].expose() == Exposure::Done;
            if looks == 2 && self.others(me).any(expose) {
                // Something to steal now.
            } else if looks <= 2 {
                Shuttled::pause();
            } else {
                if idle {
                    self.end(me);
                }
                let nap = (self.left == Left::Answers).then_some(Duration::ZERO);
                let look_again = || {
                    self.request_everywhere(me);
                    let aside = idle && self.sleep.stands_aside_for_guests();
                    let seen = || {
                        if aside {
                            return self.injected.load(Ordering::Relaxed) != 0;
                        }
                        let private = |victim: usize| self.forks[victim].has_private_tasks();
                        self.visible() || self.others(me).any(private)
                    };
                    self.left != Left::SecondLook && (done() || seen())
                };
                self.sleep.sleep(me, look_again, || nap);
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
            What::HandedOverBehindALeaf => {
                (0..30).for_each(|_| Shuttled::pause());
                // Requests are met before.
                self.join(me, top, What::Tree(0), What::Tree(0));
                self.join(me, top, What::WaitInOneLeaf, What::Begin)
            }
            What::WaitInOneLeaf => {
                while self.begun.load(Ordering::Relaxed) == 0 {
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
