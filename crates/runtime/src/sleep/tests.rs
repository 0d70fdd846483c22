//! The decisions of `Sleep`, step by step on one thread: which worker is called, what is counted,
//! and what an answer depends on.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex};

use poach_memory::Machine;

use super::states::RESTING;
use super::*;

/// Runs during a sleep; returns whether a call ends the sleep.
type During = Box<dyn FnOnce(&Sleepers) -> bool + Send>;

/// A parking that does not sleep, and records its calls.
#[derive(Default)]
struct Noted {
    sleep: Mutex<Option<Arc<Sleepers>>>,
    during: Mutex<VecDeque<During>>,
    naps: Mutex<Vec<Duration>>,
    parks: Mutex<usize>,
    calls: Mutex<Vec<Caller>>,
}

impl Noted {
    fn passes(&self) -> bool {
        let (sleep, during) =
            (self.sleep.lock().unwrap().clone(), self.during.lock().unwrap().pop_front());
        during.is_none_or(|during| during(&sleep.expect("it has been given")))
    }
}

impl Parking for Noted {
    fn park(&self) {
        *self.parks.lock().unwrap() += 1;
        self.passes();
    }

    fn park_for(&self, time: Duration) -> bool {
        self.naps.lock().unwrap().push(time);
        self.passes()
    }

    fn unpark(&self, caller: Caller) {
        self.calls.lock().unwrap().push(caller);
    }
}

type Sleepers = Sleep<Machine, Noted>;

/// A pool of `workers` workers and `places` places of guests.
fn pool(workers: usize, places: usize) -> Arc<Sleepers> {
    let parking = (0..workers + places).map(|_| Noted::default()).collect();
    Arc::new(Sleep::new(parking, places, 2))
}

fn during(
    sleep: &Arc<Sleepers>,
    worker: usize,
    act: impl FnOnce(&Sleepers) -> bool + Send + 'static,
) {
    let parking = &sleep.parking[worker];
    *parking.sleep.lock().unwrap() = Some(Arc::clone(sleep));
    parking.during.lock().unwrap().push_back(Box::new(act));
}

/// Ends a test: breaks the cycle between the parkings and the pool.
fn end(sleep: &Sleepers) {
    for parking in &sleep.parking {
        assert!(parking.during.lock().unwrap().is_empty(), "a sleep that did not come");
        parking.sleep.lock().unwrap().take();
    }
}

/// The workers called since the last time, and their callers.
fn called(sleep: &Sleepers) -> Vec<(usize, Caller)> {
    let calls = |(worker, parking): (usize, &Noted)| {
        let calls = mem::take(&mut *parking.calls.lock().unwrap());
        calls.into_iter().map(move |caller| (worker, caller))
    };
    sleep.parking.iter().enumerate().flat_map(calls).collect()
}

fn searching(sleep: &Sleepers) -> u64 {
    sleep.searching.load(Ordering::Relaxed)
}

const GOES_ON: Caller = Caller::GoesOn;

#[test]
fn a_task_from_outside_calls_any_sleeper_unless_somebody_searches() {
    let sleep = pool(3, 0);
    sleep.wake_one(GOES_ON);
    assert_eq!(called(&sleep), [], "nobody sleeps");
    sleep.idle.enter(1, Idle::Resting);
    sleep.idle.enter(2, Idle::Asleep);
    sleep.search();
    sleep.wake_one(GOES_ON);
    assert_eq!(called(&sleep), [], "somebody searches");
    assert!(sleep.stop_search(), "the last searcher sees to one that is asleep");
    sleep.wake_one(GOES_ON);
    assert_eq!((called(&sleep), searching(&sleep)), (vec![(1, GOES_ON)], 1));
}

#[test]
fn the_called_are_searchers() {
    let sleep = pool(3, 0);
    sleep.idle.enter(1, Idle::Resting);
    sleep.idle.enter(2, Idle::Asleep);
    sleep.wake_one(Caller::Blocks);
    assert_eq!((called(&sleep), searching(&sleep)), (vec![(1, Caller::Blocks)], 1));
    sleep.wake_one(GOES_ON);
    assert_eq!((called(&sleep), searching(&sleep)), (vec![], 1));
    // A worker is called for what it waits for even if others search, and a follower is no
    // searcher.
    sleep.idle.enter(0, Idle::Following);
    sleep.wake_all();
    assert_eq!((called(&sleep), searching(&sleep)), (vec![(0, GOES_ON), (2, GOES_ON)], 2));
    sleep.wake_all();
    assert_eq!((called(&sleep), searching(&sleep)), (vec![], 2));
}

#[test]
fn work_in_a_deque_calls_one_that_is_asleep_or_else_a_follower_of_it() {
    let sleep = pool(5, 0);
    sleep.idle.enter(0, Idle::Resting);
    assert!(!sleep.wake_for(1), "one that rests is left alone");
    for (worker, thief) in [(1, None), (2, Some(1)), (4, Some(2))] {
        let following = sleep.follow(worker);
        following.set(thief);
        mem::forget(following);
        sleep.idle.enter(worker, Idle::Following);
    }
    assert!(!sleep.wake_for(3), "nobody follows it");
    sleep.idle.enter(3, Idle::Asleep);
    assert!(sleep.wake_for(1));
    assert_eq!((called(&sleep), searching(&sleep)), (vec![(3, GOES_ON)], 1));
    assert!(!sleep.wake_for(1), "somebody searches");
    sleep.stop_search();
    assert!(sleep.wake_for(1));
    assert_eq!((called(&sleep), searching(&sleep)), (vec![(2, GOES_ON)], 0));
    // Worker 4 follows 2, which follows 1.
    assert!(sleep.wake_for(1));
    assert_eq!(called(&sleep), [(4, GOES_ON)]);
    assert!(!sleep.wake_for(1));
    assert_eq!(called(&sleep), []);
}

#[test]
fn a_follower_says_whom_it_follows_and_then_what_it_said_before() {
    let sleep = pool(3, 0);
    let chain = || sleep.chain(Some(0)).collect::<Vec<_>>();
    let outer = sleep.follow(0);
    outer.set(Some(1));
    assert_eq!(chain(), [0, 1]);
    let inner = sleep.follow(0);
    inner.set(Some(2));
    assert_eq!(chain(), [0, 2]);
    inner.set(None);
    assert_eq!(chain(), [0]);
    drop(inner);
    assert_eq!(chain(), [0, 1]);
    drop(outer);
    assert_eq!(chain(), [0]);
}

#[test]
fn a_follower_sleeps_until_it_is_called_or_its_time_is_over() {
    const TIME: Duration = Duration::from_millis(3);
    let sleep = pool(1, 0);
    let parked = || {
        let naps = mem::take(&mut *sleep.parking[0].naps.lock().unwrap());
        (naps, mem::take(&mut *sleep.parking[0].parks.lock().unwrap()))
    };
    let is_following = |sleep: &Sleepers| sleep.idle.is(0, FOLLOWING);
    assert!(!sleep.sleep_following(0, Some(TIME), || true));
    assert_eq!((parked(), is_following(&sleep)), ((vec![], 0), false), "there was something");
    during(&sleep, 0, move |sleep| {
        assert!(is_following(sleep));
        sleep.wake(0);
        true
    });
    assert!(!sleep.sleep_following(0, None, || false));
    assert_eq!((parked(), called(&sleep)), ((vec![], 1), vec![(0, GOES_ON)]));
    during(&sleep, 0, |sleep| {
        sleep.wake(0);
        true
    });
    assert!(!sleep.sleep_following(0, Some(TIME), || false));
    assert_eq!((parked(), called(&sleep)), ((vec![TIME], 0), vec![(0, GOES_ON)]));
    during(&sleep, 0, |_| false);
    assert!(sleep.sleep_following(0, Some(TIME), || false), "nobody has called");
    assert_eq!((parked(), is_following(&sleep)), ((vec![TIME], 0), false));
    // A worker that is taken out just when its time is over waits for the call.
    during(&sleep, 0, |sleep| {
        sleep.wake(0);
        false
    });
    assert!(!sleep.sleep_following(0, Some(TIME), || false));
    assert_eq!(parked(), (vec![TIME], 1));
    // So does a worker that finds something and has been taken out.
    assert!(!sleep.sleep_following(0, None, || {
        sleep.wake(0);
        true
    }));
    assert_eq!((parked(), searching(&sleep)), ((vec![], 1), 0));
    end(&sleep);
}

#[test]
fn only_a_nap_of_an_owners_length_lets_owners_put_requests_off() {
    let longer = LONGEST_OWNERS_NAP + Duration::from_nanos(1);
    for (time, counts) in [(Duration::ZERO, true), (LONGEST_OWNERS_NAP, true), (longer, false)] {
        let sleep = pool(1, 0);
        sleep.search();
        assert!(!sleep.may_put_off(), "it searches");
        during(&sleep, 0, move |sleep| {
            assert_eq!((sleep.may_put_off(), searching(sleep)), (counts, 0), "{time:?}");
            false
        });
        assert_eq!(sleep.sleep(0, || false, || Some(time)), Slept::ToTheEnd);
        assert_eq!((searching(&sleep), sleep.idle.any(ANY)), (1, false));
        during(&sleep, 0, |sleep| {
            sleep.wake(0);
            true
        });
        assert_eq!(sleep.sleep(0, || false, || Some(time)), Slept::Called);
        assert_eq!(*sleep.parking[0].naps.lock().unwrap(), [time, time]);
        sleep.stop_search();
        assert!(!sleep.may_put_off() && sleep.is_deserted(), "the nap is over");
        end(&sleep);
    }
}

#[test]
fn one_that_is_taken_out_at_the_end_of_its_nap_waits_twice_as_long_for_the_call() {
    let start = LONGEST_NAP / 4 * 3;
    let sleep = pool(1, 0);
    sleep.search();
    during(&sleep, 0, |sleep| {
        sleep.wake(0);
        false
    });
    during(&sleep, 0, |_| false);
    during(&sleep, 0, |_| true);
    assert_eq!(sleep.sleep(0, || false, || Some(start)), Slept::Called);
    assert_eq!(*sleep.parking[0].naps.lock().unwrap(), [start, LONGEST_NAP, LONGEST_NAP]);
    assert_eq!(searching(&sleep), 1, "the caller has counted it, once");
    end(&sleep);
}

#[test]
fn one_that_sees_something_before_it_sleeps_searches_on() {
    let sleep = pool(1, 0);
    sleep.search();
    assert_eq!(sleep.sleep(0, || true, || unreachable!("it does not sleep")), Slept::NotAtAll);
    assert_eq!((searching(&sleep), sleep.idle.any(ANY)), (1, false));
    // Unless another thread has called it.
    let sees = || {
        assert!(sleep.idle.is(0, ASLEEP) && searching(&sleep) == 0);
        sleep.wake(0);
        true
    };
    assert_eq!(sleep.sleep(0, sees, || None), Slept::Called);
    assert_eq!((searching(&sleep), *sleep.parking[0].parks.lock().unwrap()), (1, 1));
    sleep.rest(0, LONGEST_OWNERS_NAP, || true);
    assert_eq!(*sleep.parking[0].naps.lock().unwrap(), []);
    during(&sleep, 0, |sleep| {
        assert!(sleep.idle.is(0, RESTING));
        false
    });
    sleep.rest(0, LONGEST_OWNERS_NAP, || false);
    assert_eq!((searching(&sleep), sleep.idle.any(ANY)), (1, false));
    assert_eq!(*sleep.parking[0].naps.lock().unwrap(), [LONGEST_OWNERS_NAP]);
    end(&sleep);
}

#[test]
fn the_last_searcher_that_finds_something_sees_to_those_that_are_asleep_or_follow() {
    for (state, sees) in [(Idle::Asleep, true), (Idle::Following, true), (Idle::Resting, false)] {
        let sleep = pool(2, 0);
        sleep.idle.enter(0, state);
        sleep.search();
        sleep.search();
        assert!(!sleep.stop_search(), "it is not the last");
        assert_eq!(sleep.stop_search(), sees, "{state:?}");
        assert_eq!(searching(&sleep), 0);
    }
    let sleep = pool(1, 1);
    sleep.search();
    assert!(!sleep.stop_search(), "nobody sleeps");
    // A guest that is awake looks in place of the worker that stands aside.
    sleep.enter().unwrap();
    sleep.idle.enter(0, Idle::Asleep);
    sleep.search();
    assert!(!sleep.stop_search());
}

#[test]
fn the_hungry_are_those_that_search_or_sleep_and_do_not_stand_aside() {
    let sleep = pool(2, 1);
    assert!(!sleep.is_anybody_hungry() && sleep.is_deserted());
    sleep.search();
    assert!(sleep.is_anybody_hungry() && sleep.is_anybody_searching() && !sleep.is_deserted());
    sleep.stop_search();
    assert!(!sleep.is_anybody_hungry() && !sleep.is_anybody_searching());
    for state in [Idle::Asleep, Idle::Resting, Idle::Following] {
        sleep.idle.enter(0, state);
        assert!(sleep.is_anybody_hungry() && !sleep.is_deserted(), "{state:?}");
        // A guest replaces a worker that sleeps, and none that follows.
        let place = sleep.enter().unwrap();
        assert_eq!(sleep.is_anybody_hungry(), state == Idle::Following, "{state:?}");
        assert!(sleep.leave(place, || ()));
        assert!(sleep.idle.take_out(0, ANY) && sleep.is_deserted());
    }
    let place = sleep.enter().unwrap();
    assert!(!sleep.is_deserted());
    assert!(sleep.leave(place, || ()));
    sleep.napping.fetch_add(1, Ordering::Relaxed);
    assert!(!sleep.is_deserted());
}

#[test]
fn all_others_are_asleep_or_away_or_one_is_awake() {
    let sleep = pool(3, 1);
    let is_another_awake = |away| sleep.is_another_awake(0, || away);
    assert!(is_another_awake(0) && is_another_awake(1) && !is_another_awake(2));
    sleep.idle.enter(1, Idle::Asleep);
    assert!(is_another_awake(0) && !is_another_awake(1));
    // A worker does not count itself as another.
    sleep.idle.enter(0, Idle::Asleep);
    assert!(is_another_awake(0) && !is_another_awake(1));
    sleep.idle.enter(2, Idle::Following);
    assert!(!is_another_awake(0));
    sleep.enter().unwrap();
    assert!(is_another_awake(0), "the guest");

    let sleep = pool(3, 0);
    assert!(sleep.does_anybody_run(2) && !sleep.does_anybody_run(3));
    sleep.idle.enter(0, Idle::Resting);
    sleep.search();
    assert!(sleep.does_anybody_run(0) && !sleep.does_anybody_run(1));
    sleep.idle.enter(2, Idle::Following);
    assert!(!sleep.does_anybody_run(0));
}

#[test]
fn guests_come_while_places_are_free_and_open() {
    let sleep = pool(1, 2);
    assert_eq!(sleep.free_places(), 2);
    assert_eq!((sleep.enter(), sleep.enter()), (Ok(0), Ok(1)));
    assert_eq!(sleep.enter(), Err(guests::NoPlace::Taken));
    assert_eq!(sleep.free_places(), 0);
    assert!(sleep.leave(0, || unreachable!("nothing was left")));
    assert_eq!(sleep.free_places(), 1);
    assert_eq!(sleep.close_places().collect::<Vec<_>>(), [1]);
    assert_eq!(sleep.enter(), Err(guests::NoPlace::Closed));
    assert!(!sleep.leave(1, || unreachable!("it stays")));
    assert_eq!(sleep.free_places(), 1);
    sleep.open_places();
    assert_eq!(sleep.enter(), Ok(0));
    assert!(sleep.leave(0, || ()) && sleep.leave(1, || ()) && sleep.is_deserted());
}

#[test]
fn a_guest_looks_for_what_was_left_to_it_once() {
    for dozes in [false, true] {
        let sleep = pool(1, 2);
        let [first, second] = [(); 2].map(|()| sleep.enter().unwrap());
        let looked = std::cell::Cell::new(0);
        let look = || looked.set(looked.get() + 1);
        sleep.idle.enter(0, Idle::Asleep);
        assert!(sleep.stands_aside_for_guests() && sleep.stands_aside_for_guests());
        if dozes {
            assert!(sleep.doze(first, look));
            assert!(!sleep.doze(first, look), "it was not awake");
        } else {
            assert!(sleep.leave(first, look));
        }
        assert_eq!(looked.get(), 1);
        assert!(sleep.leave(second, look));
        assert_eq!(looked.get(), 1, "nothing was left since");
    }
}

#[test]
fn a_pool_is_full_and_then_crowded() {
    let sleep = pool(2, 3);
    let is = || (sleep.is_full(), sleep.is_crowded(), sleep.stands_aside_for_guests());
    sleep.idle.enter(0, Idle::Asleep);
    assert_eq!(is(), (false, false, false));
    sleep.enter().unwrap();
    assert_eq!(is(), (true, false, true));
    sleep.enter().unwrap();
    assert_eq!(is(), (true, true, true));
    sleep.idle.enter(1, Idle::Resting);
    assert_eq!(is(), (true, false, true));
    assert!(sleep.idle.take_out(0, ANY) && sleep.idle.take_out(1, ANY));
    assert_eq!(is(), (true, true, true));
}

#[test]
fn while_as_many_guests_are_in_as_workers_sleep_their_work_calls_none_of_those() {
    let sleep = pool(2, 1);
    sleep.idle.enter(0, Idle::Asleep);
    sleep.enter().unwrap();
    assert!(!sleep.wake_for(2));
    assert_eq!(called(&sleep), []);
    sleep.idle.enter(1, Idle::Asleep);
    assert!(sleep.wake_for(2));
    assert_eq!(called(&sleep), [(0, GOES_ON)]);
}
