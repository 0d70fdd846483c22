//! loom models of sleep and wake. A lost wake-up is a deadlock, and loom reports it.

use std::mem::{self, ManuallyDrop};
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use poach_memory::{Loom, Memory, Ordering};

use super::{Caller, Following, Parking, Sleep};

mod orderings;
mod put_off;

struct LoomParking {
    called: Mutex<bool>,
    changed: Condvar,
    napped: Mutex<bool>,
}

impl LoomParking {
    fn new() -> Self {
        LoomParking {
            called: Mutex::new(false),
            changed: Condvar::new(),
            napped: Mutex::new(false),
        }
    }

    fn of(workers: usize) -> Box<[LoomParking]> {
        (0..workers).map(|_| LoomParking::new()).collect()
    }
}

impl Parking for LoomParking {
    fn park(&self) {
        let mut called = self.called.lock().unwrap();
        while !*called {
            called = self.changed.wait(called).unwrap();
        }
        *called = false;
    }

    /// loom has no time: the first nap is over at once, whatever the others have done till then,
    /// and the time of the next one is never over: a call ends it.
    fn park_for(&self, _time: Duration) -> bool {
        if mem::replace(&mut *self.napped.lock().unwrap(), true) {
            self.park();
            return true;
        }
        mem::take(&mut *self.called.lock().unwrap())
    }

    fn unpark(&self, _caller: Caller) {
        *self.called.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

/// A pool reduced to its sleep: visible work is a number of tasks, taken by decrementing it.
struct Pool<M: Memory> {
    sleep: Sleep<M, LoomParking>,
    visible: AtomicUsize,
    /// An event for a sleeper that is no work.
    done: AtomicUsize,
    lines: Lines,
}

/// Lines of the protocol that a model may leave out.
#[derive(Clone, Copy)]
struct Lines {
    s5: bool,
    l3: bool,
}

const ALL: Lines = Lines { s5: true, l3: true };

impl<M: Memory> Pool<M> {
    /// Leaked: loom's own types panic when they are dropped by the unwinding of a deadlock.
    fn new(workers: usize, lines: Lines) -> &'static Self {
        Box::leak(Box::new(Pool {
            sleep: Sleep::new(LoomParking::of(workers), 2, 1),
            visible: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            lines,
        }))
    }

    /// Never dropped: as the pool.
    fn follow(&self, worker: usize) -> ManuallyDrop<Following<'_, M, LoomParking>> {
        ManuallyDrop::new(self.sleep.follow(worker))
    }

    fn produce(&self, tasks: usize) {
        self.visible.fetch_add(tasks, Ordering::Relaxed);
        self.sleep.wake_one(Caller::GoesOn);
    }

    fn try_take(&self) -> bool {
        let mut seen = self.visible.load(Ordering::Relaxed);
        while seen > 0 {
            match self.visible.compare_exchange(
                seen,
                seen - 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// A worker that takes one task, sleeping until there is one.
    fn take(&self, worker: usize) {
        self.sleep.search();
        self.take_as_searcher(worker);
    }

    fn take_as_searcher(&self, worker: usize) {
        while !self.try_take() {
            let sees = || self.lines.s5 && self.visible.load(Ordering::Relaxed) > 0;
            self.sleep.sleep(worker, sees, || None);
        }
        self.found();
    }

    fn found(&self) {
        if self.sleep.stop_search() && self.lines.l3 && self.visible.load(Ordering::Relaxed) > 0 {
            self.sleep.wake_one(Caller::GoesOn);
        }
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    check_with(2, model);
}

/// As `check`, with at most `preemptions` preemptions in an execution.
fn check_with(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// One task for one worker, made visible at any moment.
fn one_sleeper<M: Memory>(lines: Lines) {
    check(move || {
        let pool = Pool::<M>::new(1, lines);
        let worker = thread::spawn(move || pool.take(0));
        pool.produce(1);
        worker.join().unwrap();
    });
}

/// Two tasks, made visible one after the other, for two workers. The worker that is woken, or that
/// searches when the second task comes, must see to the other worker.
fn two_sleepers<M: Memory>(lines: Lines) {
    check(move || {
        let pool = Pool::<M>::new(2, lines);
        let workers: Vec<_> =
            (0..2).map(|worker| thread::spawn(move || pool.take(worker))).collect();
        pool.produce(1);
        pool.produce(1);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn a_sleeper_is_woken_for_a_task() {
    one_sleeper::<Loom>(ALL);
}

#[test]
fn two_sleepers_are_woken_for_two_tasks() {
    two_sleepers::<Loom>(ALL);
}

#[test]
fn a_sleeper_is_woken_for_what_it_waits_for() {
    check(|| {
        let pool = Pool::<Loom>::new(1, ALL);
        let worker = thread::spawn(move || {
            pool.sleep.search();
            while pool.done.load(Ordering::Relaxed) == 0 {
                pool.sleep.sleep(0, || pool.done.load(Ordering::Relaxed) != 0, || None);
            }
            pool.sleep.stop_search();
        });
        pool.done.fetch_add(1, Ordering::Relaxed);
        pool.sleep.wake(0);
        worker.join().unwrap();
    });
}

/// Two threads that want one place; one of them comes twice.
fn guests(stays: bool) {
    check(move || {
        let sleep: &'static Sleep<Loom, LoomParking> =
            Box::leak(Box::new(Sleep::new(LoomParking::of(2), 1, 1)));
        // Data that only the guest touches; loom watches the accesses.
        let private: &'static UnsafeCell<()> = Box::leak(Box::new(UnsafeCell::new(())));
        let act = || private.with_mut(|_| ());
        let visit = move || {
            if let Ok(place) = sleep.enter() {
                act();
                assert!(sleep.leave(place, || ()));
                if stays {
                    act();
                }
            }
        };
        let other = thread::spawn(visit);
        visit();
        visit();
        other.join().unwrap();
    });
}

#[test]
fn a_guest_is_alone_in_its_place() {
    guests(false);
}

#[test]
#[should_panic(expected = "Concurrent write accesses to `UnsafeCell`")]
fn a_guest_that_acts_when_it_has_left_is_not_alone() {
    guests(true);
}

/// Places are closed while a guest comes and goes: it is seen, and stays, or it is turned away.
#[test]
fn a_guest_is_seen_by_who_closes_the_places_or_turned_away() {
    check(|| {
        let sleep: &'static Sleep<Loom, LoomParking> =
            Box::leak(Box::new(Sleep::new(LoomParking::of(2), 1, 1)));
        let closed: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
        let guest = thread::spawn(move || {
            if let Ok(place) = sleep.enter() {
                let inside = closed.load(Ordering::Relaxed) == 2;
                assert!(!inside, "nobody is in when it has been said that nobody is");
                if !sleep.leave(place, || ()) {
                    assert_ne!(closed.load(Ordering::Relaxed), 2, "it has been seen");
                }
            }
        });
        let seen = sleep.close_places().count();
        closed.store(2 - seen, Ordering::Relaxed);
        guest.join().unwrap();
    });
}

/// The lines of the guests' protocol that are kept.
#[derive(Clone, Copy)]
struct Aside {
    /// A worker decides whether it stands aside after S3, not before S1.
    after_s3: bool,
    /// A guest looks when it leaves.
    g4: bool,
}

const KEPT: Aside = Aside { after_s3: true, g4: true };

impl Pool<Loom> {
    /// Comes as a guest, makes a task visible to thieves if it `produces`, and leaves the task to
    /// the worker.
    fn visit(&self, produces: bool, lines: Aside) {
        let Ok(place) = self.sleep.enter() else {
            if produces {
                self.produce(1);
            }
            return;
        };
        if produces {
            self.visible.fetch_add(1, Ordering::Relaxed);
            self.sleep.wake_for(1);
        }
        let left = self.sleep.leave(place, || {
            if lines.g4 && self.visible.load(Ordering::Relaxed) > 0 {
                self.sleep.wake_for(1);
            }
        });
        assert!(left, "nobody has closed the places");
    }

    /// `take`, of a worker that stands aside for guests.
    fn take_unless_full(&self, worker: usize, lines: Aside) {
        self.sleep.search();
        while !self.try_take() {
            let before = self.sleep.is_full() || self.sleep.is_crowded();
            let sees = || {
                let aside =
                    if lines.after_s3 { self.sleep.stands_aside_for_guests() } else { before };
                !aside && self.visible.load(Ordering::Relaxed) > 0
            };
            self.sleep.sleep(worker, sees, || None);
        }
        self.found();
    }
}

/// One worker, and a guest that leaves a task to it, or two guests that come and go at any moment.
fn a_worker_stands_aside(guests: usize, lines: Aside) {
    check(move || {
        let pool = Pool::<Loom>::new(1, ALL);
        let worker = thread::spawn(move || pool.take_unless_full(0, lines));
        let other = (guests > 1).then(|| thread::spawn(move || pool.visit(false, lines)));
        pool.visit(true, lines);
        worker.join().unwrap();
        if let Some(other) = other {
            other.join().unwrap();
        }
    });
}

#[test]
fn a_worker_that_stands_aside_is_called_when_the_guest_has_left() {
    a_worker_stands_aside(1, KEPT);
}

#[test]
fn of_two_guests_the_last_calls_the_worker() {
    a_worker_stands_aside(2, KEPT);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_guest_that_leaves_without_looking_loses_a_task() {
    a_worker_stands_aside(1, Aside { g4: false, ..KEPT });
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_worker_that_stands_aside_for_a_guest_of_before_loses_a_task() {
    a_worker_stands_aside(1, Aside { after_s3: false, ..KEPT });
}

/// A guest leaves while a worker stands aside for it, and another comes at any moment.
fn one_guest_comes_when_another_leaves<M: Memory + 'static>() {
    check_with(3, || {
        let pool = Pool::<M>::new(1, ALL);
        let leave = |place| {
            let look = || {
                if pool.visible.load(Ordering::Relaxed) > 0 {
                    pool.sleep.wake_for(1);
                }
            };
            assert!(pool.sleep.leave(place, look), "nobody has closed the places");
        };
        pool.sleep.search();
        let first = pool.sleep.enter().unwrap();
        let worker = thread::spawn(move || {
            let sees = || {
                !pool.sleep.stands_aside_for_guests() && pool.visible.load(Ordering::Relaxed) > 0
            };
            while !pool.try_take() {
                pool.sleep.sleep(0, sees, || None);
            }
            pool.found();
        });
        let second = thread::spawn(move || leave(pool.sleep.enter().unwrap()));
        pool.visible.fetch_add(1, Ordering::Relaxed);
        pool.sleep.wake_for(1);
        leave(first);
        worker.join().unwrap();
        second.join().unwrap();
    });
}

#[test]
fn of_two_guests_one_of_which_comes_late_one_looks() {
    one_guest_comes_when_another_leaves::<Loom>();
}

/// A worker in a restricted wait, for the end of a half that worker 1 runs. Worker 1 shares a task
/// that the waiting worker takes if it comes in time.
fn a_follower(look: bool) {
    check(move || {
        let pool = Pool::<Loom>::new(2, ALL);
        let waiter = thread::spawn(move || {
            let following = pool.follow(0);
            following.set(Some(1));
            while pool.done.load(Ordering::Relaxed) == 0 {
                if !pool.try_take() {
                    pool.sleep.sleep_following(0, None, || {
                        look && (pool.done.load(Ordering::Relaxed) != 0
                            || pool.visible.load(Ordering::Relaxed) > 0)
                    });
                }
            }
        });
        pool.visible.fetch_add(1, Ordering::Relaxed);
        pool.sleep.wake_for(1);
        pool.try_take();
        pool.done.fetch_add(1, Ordering::Relaxed);
        pool.sleep.wake(0);
        waiter.join().unwrap();
    });
}

#[test]
fn a_follower_is_woken_for_the_end_of_what_it_follows() {
    a_follower(true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_follower_that_does_not_look_again_sleeps_for_ever() {
    a_follower(false);
}

/// Worker 1 shares a task and leaves it: only its follower takes it.
fn a_follower_takes_what_its_chain_shares(reach: usize) {
    check(move || {
        let pool: &'static Pool<Loom> = Box::leak(Box::new(Pool {
            sleep: Sleep::new(LoomParking::of(3), 0, reach),
            visible: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            lines: ALL,
        }));
        // Worker 2 waits for worker 1, and the waiter for worker 2.
        let link = pool.follow(2);
        link.set(Some(1));
        let waiter = thread::spawn(move || {
            let following = pool.follow(0);
            following.set(Some(2));
            while !pool.try_take() {
                pool.sleep.sleep_following(0, None, || pool.visible.load(Ordering::Relaxed) > 0);
            }
        });
        pool.visible.fetch_add(1, Ordering::Relaxed);
        pool.sleep.wake_for(1);
        waiter.join().unwrap();
    });
}

#[test]
fn a_follower_is_woken_for_what_its_chain_shares() {
    a_follower_takes_what_its_chain_shares(2);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_follower_of_short_reach_is_not_woken_for_the_end_of_a_chain() {
    a_follower_takes_what_its_chain_shares(1);
}

/// A worker that rests before it sleeps, and a task from outside.
fn a_rest() {
    check(move || {
        let pool = Pool::<Loom>::new(1, ALL);
        let worker = thread::spawn(move || {
            pool.sleep.search();
            let visible = || pool.visible.load(Ordering::Relaxed) > 0;
            pool.sleep.rest(0, Duration::ZERO, visible);
            while !pool.try_take() {
                pool.sleep.sleep(0, visible, || None);
            }
            pool.sleep.stop_search();
        });
        pool.produce(1);
        worker.join().unwrap();
    });
}

#[test]
fn one_that_rests_is_called_for_what_comes_from_outside() {
    a_rest();
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_second_look_a_wake_up_is_lost() {
    one_sleeper::<Loom>(Lines { s5: false, ..ALL });
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_a_last_searcher_that_looks_back_a_wake_up_is_lost() {
    two_sleepers::<Loom>(Lines { l3: false, ..ALL });
}

/// loom's memory with its full fences left out.
#[derive(Clone, Copy)]
struct Fenceless;

// SAFETY: its fences are none, on purpose, and only the sleep protocol under loom uses it, which is
// safe code.
unsafe impl Memory for Fenceless {
    type Word = AtomicU64;
    type Pointer<T> = AtomicPtr<T>;
    type Cell<T> = loom::cell::UnsafeCell<T>;

    fn full() {}
    fn light() {}
    fn heavy() {}

    fn asymmetric() -> bool {
        false
    }

    fn pause() {
        Loom::pause();
    }
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_fences_a_wake_up_is_lost() {
    one_sleeper::<Fenceless>(ALL);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_fences_a_guest_that_leaves_does_not_see_what_was_left() {
    one_guest_comes_when_another_leaves::<Fenceless>();
}
