//! loom models of sleep and wake. A lost wake-up is a deadlock, and loom reports it.

use std::mem::{self, ManuallyDrop};
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use poach_memory::{Loom, Memory, Ordering};

use super::follow::Following;
use super::{Seat, Sleep};

struct LoomSeat {
    called: Mutex<bool>,
    changed: Condvar,
    napped: Mutex<bool>,
}

impl Seat for LoomSeat {
    fn new() -> Self {
        LoomSeat { called: Mutex::new(false), changed: Condvar::new(), napped: Mutex::new(false) }
    }

    fn park(&self) {
        let mut called = self.called.lock().unwrap();
        while !*called {
            called = self.changed.wait(called).unwrap();
        }
        *called = false;
    }

    /// loom has no time: that of the first nap is over at once, whatever the others have done till then, and
    /// that of the next never.
    fn park_for(&self, _time: Duration) -> bool {
        if mem::replace(&mut *self.napped.lock().unwrap(), true) {
            self.park();
            return true;
        }
        mem::take(&mut *self.called.lock().unwrap())
    }

    fn unpark(&self) {
        *self.called.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

/// A pool reduced to its sleep: visible work is a number of tasks, taken by decrementing it.
struct Pool<M: Memory> {
    sleep: Sleep<M, LoomSeat>,
    visible: AtomicUsize,
    /// What a sleeper is to be told even if there is no work.
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
            sleep: Sleep::new(workers, 1),
            visible: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            lines,
        }))
    }

    /// Never dropped: as the pool.
    fn follow(&self, worker: usize) -> ManuallyDrop<Following<'_, M, LoomSeat>> {
        ManuallyDrop::new(self.sleep.follow(worker))
    }

    fn produce(&self, tasks: usize) {
        self.visible.fetch_add(tasks, Ordering::Relaxed);
        self.sleep.wake_one();
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
            self.sleep.sleep(worker, true, None, || {
                self.lines.s5 && self.visible.load(Ordering::Relaxed) > 0
            });
        }
        self.found();
    }

    fn found(&self) {
        if self.sleep.found() && self.lines.l3 && self.visible.load(Ordering::Relaxed) > 0 {
            self.sleep.wake_one();
        }
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
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

/// Two tasks, made visible one after the other, for two workers: the one that is woken, or that is
/// searching when the second task comes, must see to the other.
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
                pool.sleep.sleep(0, false, None, || pool.done.load(Ordering::Relaxed) != 0);
            }
            pool.sleep.found();
        });
        pool.done.fetch_add(1, Ordering::Relaxed);
        pool.sleep.wake(0);
        worker.join().unwrap();
    });
}

/// A caller takes the sleeper's place, if it sleeps, and leaves; a task comes at any moment. `look`
/// says whether the caller looks for it before it leaves.
fn a_caller_in_a_sleepers_place(look: bool) {
    check(move || {
        let pool = Pool::<Loom>::new(1, ALL);
        // What only the acting worker touches.
        let private: &'static UnsafeCell<()> = Box::leak(Box::new(UnsafeCell::new(())));
        // An access that loom watches, and reports if another is not ordered with it.
        let act = || private.with_mut(|_| ());
        let worker = thread::spawn(move || {
            act();
            pool.take(0);
            act();
        });
        let caller = thread::spawn(move || {
            if let Some(place) = pool.sleep.take_place() {
                act();
                pool.sleep.give_back(place, || look && pool.visible.load(Ordering::Relaxed) > 0);
            }
        });
        pool.produce(1);
        worker.join().unwrap();
        caller.join().unwrap();
    });
}

#[test]
fn a_caller_in_a_sleepers_place_loses_nothing() {
    a_caller_in_a_sleepers_place(true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_caller_that_does_not_look_back_loses_a_task() {
    a_caller_in_a_sleepers_place(false);
}

/// A worker that looks for a task, offers its place once, and sleeps; a caller that takes the place, if it
/// meets the offer or the sleeper; and a task that comes at any moment.
fn a_caller_meets_an_offer(takes_back: bool, look: bool) {
    check(move || {
        let pool = Pool::<Loom>::new(1, ALL);
        // What only the acting worker touches.
        let private: &'static UnsafeCell<()> = Box::leak(Box::new(UnsafeCell::new(())));
        // An access that loom watches, and reports if another is not ordered with it.
        let act = || private.with_mut(|_| ());
        let worker = thread::spawn(move || {
            let visible = || pool.visible.load(Ordering::Relaxed) > 0;
            pool.sleep.search();
            act();
            let looks = || {
                if !takes_back {
                    act();
                }
            };
            pool.sleep.offer(0, Duration::ZERO, looks);
            act();
            while !pool.try_take() {
                pool.sleep.sleep(0, true, None, visible);
                act();
            }
            pool.sleep.found();
        });
        let caller = thread::spawn(move || {
            let offer = pool.sleep.take_offer().inspect(|_| _ = pool.sleep.found());
            if let Some(place) = offer.or_else(|| pool.sleep.take_place()) {
                act();
                pool.sleep.give_back(place, || look && pool.visible.load(Ordering::Relaxed) > 0);
            }
        });
        pool.produce(1);
        worker.join().unwrap();
        caller.join().unwrap();
    });
}

#[test]
fn a_caller_that_meets_an_offer_is_alone_in_the_place_and_loses_nothing() {
    a_caller_meets_an_offer(true, true);
}

#[test]
#[should_panic(expected = "Concurrent write accesses to `UnsafeCell`")]
fn a_worker_that_does_not_take_its_place_back_before_it_looks_is_not_alone() {
    a_caller_meets_an_offer(false, true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_caller_that_met_an_offer_and_does_not_look_back_loses_a_task() {
    a_caller_meets_an_offer(true, false);
}

/// Two tasks for two workers, one of which offers its place. The caller that takes it does not end before the
/// other worker has taken a task. `found` is what it does about the searcher that it is no more.
fn a_caller_takes_the_place_of_a_lookout(found: fn(&Pool<Loom>)) {
    check(move || {
        let pool = Pool::<Loom>::new(2, ALL);
        // Loom's own types are not to be dropped by an unwinding.
        let ended: &'static LoomSeat = Box::leak(Box::new(LoomSeat::new()));
        let visible = || pool.visible.load(Ordering::Relaxed) > 0;
        pool.sleep.search();
        let other = thread::spawn(move || {
            pool.take(1);
            ended.unpark();
        });
        let caller = thread::spawn(move || {
            if let Some(place) = pool.sleep.take_offer() {
                found(pool);
                ended.park();
                pool.sleep.give_back(place, visible);
            }
        });
        let producer = thread::spawn(|| pool.produce(2));
        pool.sleep.offer(0, Duration::ZERO, || ());
        pool.take_as_searcher(0);
        for thread in [other, caller, producer] {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_caller_in_the_place_of_a_lookout_loses_nothing() {
    a_caller_takes_the_place_of_a_lookout(Pool::found);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_caller_that_is_still_counted_as_a_searcher_loses_a_task() {
    a_caller_takes_the_place_of_a_lookout(|_| ());
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_caller_that_leaves_sleepers_without_a_lookout_loses_a_task() {
    a_caller_takes_the_place_of_a_lookout(|pool| _ = pool.sleep.found());
}

/// A worker in a restricted wait, for the end of a half that worker 1 runs; and worker 1 shares a task
/// that the other takes if it comes in time.
fn a_follower(look: bool) {
    check(move || {
        let pool = Pool::<Loom>::new(2, ALL);
        let waiter = thread::spawn(move || {
            let following = pool.follow(0);
            following.set(Some(1));
            while pool.done.load(Ordering::Relaxed) == 0 {
                if !pool.try_take() {
                    pool.sleep.sleep_following(0, || {
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

/// Worker 1 shares a task and leaves it: nobody but the one that follows it will take it.
fn a_follower_takes_what_its_chain_shares(reach: usize) {
    check(move || {
        let pool: &'static Pool<Loom> = Box::leak(Box::new(Pool {
            sleep: Sleep::new(3, reach),
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
                pool.sleep.sleep_following(0, || pool.visible.load(Ordering::Relaxed) > 0);
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
fn a_rest(caller: bool) {
    check(move || {
        let pool = Pool::<Loom>::new(1, ALL);
        let worker = thread::spawn(move || {
            pool.sleep.search();
            let visible = || pool.visible.load(Ordering::Relaxed) > 0;
            pool.sleep.rest(0, Duration::ZERO, visible);
            while !pool.try_take() {
                pool.sleep.sleep(0, true, None, visible);
            }
            pool.sleep.found();
        });
        if caller && let Some(place) = pool.sleep.take_place() {
            pool.sleep.give_back(place, || pool.visible.load(Ordering::Relaxed) > 0);
        }
        pool.produce(1);
        worker.join().unwrap();
    });
}

/// A caller comes into the place of a worker that naps, and sleeps there itself, until it is woken. The nap is
/// over at any moment, or the worker sees at S5 that it need not sleep at all.
fn a_caller_sleeps_in_a_place(task: bool) {
    check(move || {
        let pool = Pool::<Loom>::new(1, ALL);
        // What only the acting worker touches.
        let private: &'static UnsafeCell<()> = Box::leak(Box::new(UnsafeCell::new(())));
        let act = || private.with_mut(|_| ());
        let visible = || pool.visible.load(Ordering::Relaxed) > 0;
        if task {
            pool.visible.fetch_add(1, Ordering::Relaxed);
        }
        let worker = thread::spawn(move || {
            pool.sleep.search();
            pool.sleep.sleep(0, true, Some(Duration::ZERO), visible);
            act();
            pool.sleep.found();
        });
        let caller = thread::spawn(move || {
            if let Some(place) = pool.sleep.take_place() {
                act();
                pool.sleep.search();
                while pool.done.load(Ordering::Relaxed) == 0 {
                    pool.sleep.sleep(place, false, None, || pool.done.load(Ordering::Relaxed) != 0);
                    act();
                }
                pool.sleep.found();
                pool.sleep.give_back(place, || true);
            }
        });
        pool.done.fetch_add(1, Ordering::Relaxed);
        pool.sleep.wake(0);
        for thread in [worker, caller] {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_caller_that_sleeps_in_the_place_of_one_that_naps_is_alone_there() {
    a_caller_sleeps_in_a_place(false);
}

#[test]
fn a_caller_that_sleeps_in_the_place_of_one_that_has_found_something_is_alone_there() {
    a_caller_sleeps_in_a_place(true);
}

#[test]
fn one_that_rests_is_called_for_what_comes_from_outside() {
    a_rest(false);
}

#[test]
fn one_that_rests_may_be_replaced_by_a_caller() {
    a_rest(true);
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

// SAFETY: its fences are none, on purpose, and only the sleep protocol under loom uses it, which is safe code.
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
