//! Requests that an owner puts off, for which a worker naps.
//!
//! An owner pushes a private task, puts the request for it off if it may, and does not come back to
//! its deque before the task has been taken. One worker naps when it finds nothing, the other
//! sleeps until it is called. Owners always hesitate here, and a task that no worker takes is a
//! deadlock.

use std::mem;
use std::time::Duration;

use loom::sync::atomic::AtomicUsize;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use poach_memory::{Loom, Memory, Ordering};

use super::check;
use crate::sleep::{Caller, Parking, Sleep};

/// The workers' numbers: of two sleepers the one with the lower is called.
const NAPPER: usize = 0;
const SLEEPER: usize = 1;
const OWNER: usize = 2;

#[derive(Default)]
struct State {
    called: bool,
    /// The time of the next nap, or of this one, is over.
    over: bool,
}

struct LoomParking {
    state: Mutex<State>,
    changed: Condvar,
}

impl LoomParking {
    fn new() -> Self {
        LoomParking { state: Mutex::new(State::default()), changed: Condvar::new() }
    }

    fn tell(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_one();
    }
}

impl Parking for LoomParking {
    fn park(&self) {
        let mut state = self.state.lock().unwrap();
        while !mem::take(&mut state.called) {
            state = self.changed.wait(state).unwrap();
        }
    }

    fn park_for(&self, _time: Duration) -> bool {
        let mut state = self.state.lock().unwrap();
        loop {
            if mem::take(&mut state.called) {
                return true;
            }
            if mem::take(&mut state.over) {
                return false;
            }
            state = self.changed.wait(state).unwrap();
        }
    }

    fn unpark(&self, _caller: Caller) {
        self.tell(|state| state.called = true);
    }
}

type Sleepers = Sleep<Loom, LoomParking>;

/// The variants of a model.
#[derive(Clone, Copy)]
struct Rules {
    may_put_off: fn(&Sleepers) -> bool,
    l3: bool,
}

const RULES: Rules = Rules { may_put_off: Sleep::may_put_off, l3: true };

struct Model {
    sleep: Sleepers,
    /// Tasks from outside.
    outside: AtomicUsize,
    /// 1 while the owner's task is there to be exposed, 2 when it has been taken.
    private: AtomicUsize,
    request: AtomicUsize,
    done: AtomicUsize,
    /// Where the owner waits for its task.
    taken: LoomParking,
    rules: Rules,
}

impl Model {
    /// Leaked, as the pools of the other models.
    fn new(rules: Rules) -> &'static Model {
        Box::leak(Box::new(Model {
            sleep: Sleep::new((0..3).map(|_| LoomParking::new()).collect(), 0, 1),
            outside: AtomicUsize::new(0),
            private: AtomicUsize::new(0),
            request: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            taken: LoomParking::new(),
            rules,
        }))
    }

    fn call_from_outside(&self) {
        self.outside.store(1, Ordering::Relaxed);
        self.sleep.wake_one(Caller::GoesOn);
    }

    /// Pushes a task, and waits until another worker has taken it.
    fn own(&self, me: usize) {
        self.private.store(1, Ordering::Release);
        Loom::full();
        if self.request.load(Ordering::Relaxed) == 1 && !(self.rules.may_put_off)(&self.sleep) {
            self.request.swap(0, Ordering::AcqRel);
            self.sleep.wake_for(me);
        }
        // A nap is over by some time.
        self.sleep.parking[NAPPER].tell(|state| state.over = true);
        self.taken.park();
        self.done.store(1, Ordering::Relaxed);
        self.sleep.wake_all();
    }

    /// S4 and S5 for the owner's deque: whether it has a private task.
    fn ask(&self) -> bool {
        self.request.store(1, Ordering::Release);
        Loom::full();
        self.private.load(Ordering::Acquire) == 1
    }

    /// L1 to L3.
    fn found(&self, me: usize) {
        if self.sleep.stop_search() && self.rules.l3 && self.ask() {
            self.sleep.wake_for(me);
        }
    }

    /// A worker that ends with the first task that it finds; `act` is an action from outside.
    fn work(&self, me: usize, nap: Option<Duration>, act: impl FnOnce()) {
        let is_set = |word: &AtomicUsize| word.load(Ordering::Relaxed) == 1;
        let take = |word: &AtomicUsize, new| {
            word.compare_exchange(1, new, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        self.sleep.search();
        while !is_set(&self.done) {
            if take(&self.outside, 0) {
                self.found(me);
                return act();
            }
            if take(&self.private, 2) {
                self.found(me);
                return self.taken.unpark(Caller::GoesOn);
            }
            let sees = || self.ask() || is_set(&self.outside) || is_set(&self.done);
            self.sleep.sleep(me, sees, || nap);
        }
        self.sleep.stop_search();
    }
}

/// A worker that is called out of its nap, or out of its sleep, becomes the owner.
fn a_worker_that_was_called_owns(rules: Rules) {
    check(move || {
        let model = Model::new(rules);
        let sleeper = thread::spawn(move || model.work(SLEEPER, None, || model.own(SLEEPER)));
        let napper = thread::spawn(move || {
            model.work(NAPPER, Some(Duration::ZERO), || model.own(NAPPER));
        });
        model.call_from_outside();
        napper.join().unwrap();
        sleeper.join().unwrap();
    });
}

/// A worker that is called out of its nap is away while the owner looks for a napping worker.
fn a_worker_is_called_out_of_its_nap(rules: Rules) {
    check(move || {
        let model = Model::new(rules);
        let sleeper = thread::spawn(move || model.work(SLEEPER, None, || ()));
        let napper = thread::spawn(move || model.work(NAPPER, Some(Duration::ZERO), || ()));
        let owner = thread::spawn(move || model.own(OWNER));
        model.call_from_outside();
        for thread in [owner, napper, sleeper] {
            thread.join().unwrap();
        }
    });
}

#[test]
fn an_owner_that_was_called_out_of_its_nap_answers() {
    a_worker_that_was_called_owns(RULES);
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_owner_that_asks_only_whether_somebody_searches_is_left_alone() {
    a_worker_that_was_called_owns(Rules {
        may_put_off: |sleep| !sleep.is_anybody_searching(),
        ..RULES
    });
}

#[test]
fn what_is_put_off_for_a_nap_is_seen_by_who_was_called_out_of_it() {
    a_worker_is_called_out_of_its_nap(RULES);
}

#[test]
#[should_panic(expected = "deadlock")]
fn who_was_called_out_of_its_nap_must_look_when_it_has_found_something() {
    a_worker_is_called_out_of_its_nap(Rules { l3: false, ..RULES });
}
