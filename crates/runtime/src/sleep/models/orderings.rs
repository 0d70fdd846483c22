//! The data that words of idle workers and of guests hand over, in memory that loom watches.
//!
//! Each model fails if one of its two orderings is weaker, or one of its two fences is left out.

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicUsize;
use loom::thread;
use poach_memory::{Loom, Ordering};

use super::{LoomParking, check};
use crate::sleep::Sleep;
use crate::sleep::states::{ANY, Idle, States};

/// Never dropped, as the pools of the other models.
fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Memory that one thread at a time may use.
#[derive(Clone, Copy)]
struct Private(&'static UnsafeCell<()>);

impl Private {
    fn new() -> Private {
        Private(leaked(UnsafeCell::new(())))
    }

    fn act(self) {
        self.0.with_mut(|_| ());
    }
}

/// Of a worker, and the place of a guest.
fn sleepers() -> &'static Sleep<Loom, LoomParking> {
    leaked(Sleep::new(LoomParking::of(2), 1, 1))
}

/// `enter` and `take_out`.
#[test]
fn who_takes_a_worker_out_has_what_it_did_before() {
    check(|| {
        let (states, private) = (leaked(States::<Loom>::new(1)), Private::new());
        let worker = thread::spawn(move || {
            private.act();
            states.enter(0, Idle::Asleep);
        });
        if states.take_out(0, ANY) {
            private.act();
        }
        worker.join().unwrap();
    });
}

/// `enter` and `count_others`.
#[test]
fn who_counts_a_worker_as_asleep_has_what_it_did_before() {
    check(|| {
        let (states, private) = (leaked(States::<Loom>::new(2)), Private::new());
        let worker = thread::spawn(move || {
            private.act();
            states.enter(0, Idle::Asleep);
        });
        if states.count_others(1) == 1 {
            private.act();
        }
        worker.join().unwrap();
    });
}

/// `count_others` and `take_out`.
#[test]
fn who_takes_a_worker_out_has_what_was_done_before_it_was_counted_as_asleep() {
    check(|| {
        let (states, private) = (leaked(States::<Loom>::new(2)), Private::new());
        let counted = leaked(AtomicUsize::new(0));
        states.enter(0, Idle::Asleep);
        let searcher = thread::spawn(move || {
            private.act();
            counted.store(states.count_others(1), Ordering::Relaxed);
        });
        assert!(states.take_out(0, ANY));
        if counted.load(Ordering::Relaxed) == 1 {
            private.act();
        }
        searcher.join().unwrap();
    });
}

/// `leave` and `is_another_awake`.
#[test]
fn who_sees_a_guest_gone_has_what_it_did_before() {
    check(|| {
        let (sleep, private) = (sleepers(), Private::new());
        let place = sleep.enter().unwrap();
        let guest = thread::spawn(move || {
            private.act();
            assert!(sleep.leave(place, || ()));
        });
        if !sleep.is_another_awake(0, || 0) {
            private.act();
        }
        guest.join().unwrap();
    });
}

/// `is_another_awake` and `enter`.
#[test]
fn a_guest_that_comes_has_what_was_done_before_its_place_was_seen_free() {
    check(|| {
        let (sleep, private) = (sleepers(), Private::new());
        let seen_free = leaked(AtomicUsize::new(0));
        let searcher = thread::spawn(move || {
            private.act();
            let free = !sleep.is_another_awake(0, || 0);
            seen_free.store(usize::from(free), Ordering::Relaxed);
        });
        sleep.enter().unwrap();
        if seen_free.load(Ordering::Relaxed) == 1 {
            private.act();
        }
        searcher.join().unwrap();
    });
}

/// `leave` and `close_places`.
#[test]
fn who_closes_the_places_has_what_guests_did_that_are_gone() {
    check(|| {
        let (sleep, private) = (sleepers(), Private::new());
        let place = sleep.enter().unwrap();
        let guest = thread::spawn(move || {
            private.act();
            let _ = sleep.leave(place, || ());
        });
        if sleep.close_places().count() == 0 {
            private.act();
        }
        guest.join().unwrap();
    });
}

/// `open_places` and `enter`.
#[test]
fn a_guest_has_what_was_done_while_the_places_were_closed() {
    check(|| {
        let (sleep, private) = (sleepers(), Private::new());
        assert_eq!(sleep.close_places().count(), 0);
        let interrupter = thread::spawn(move || {
            private.act();
            sleep.open_places();
        });
        if sleep.enter().is_ok() {
            private.act();
        }
        interrupter.join().unwrap();
    });
}

/// G3, and P2 of a worker that leaves its work to guests.
fn a_guest_sees_what_was_left_to_it(away: fn(&Sleep<Loom, LoomParking>, usize, &dyn Fn())) {
    check(move || {
        let (sleep, visible) = (sleepers(), leaked(AtomicUsize::new(0)));
        let place = sleep.enter().unwrap();
        let other = thread::spawn(move || {
            visible.store(1, Ordering::Relaxed);
            sleep.wake_for(0);
        });
        away(sleep, place, &|| assert_eq!(visible.load(Ordering::Relaxed), 1));
        other.join().unwrap();
    });
}

#[test]
fn a_guest_that_leaves_sees_what_was_left_to_it() {
    a_guest_sees_what_was_left_to_it(|sleep, place, look| assert!(sleep.leave(place, look)));
}

#[test]
fn a_guest_that_dozes_sees_what_was_left_to_it() {
    a_guest_sees_what_was_left_to_it(|sleep, place, look| assert!(sleep.doze(place, look)));
}

/// L2 and P2.
#[test]
fn the_last_searcher_sees_the_work_or_its_producer_calls_one_that_is_asleep() {
    check(|| {
        let (sleep, visible) = (sleepers(), leaked(AtomicUsize::new(0)));
        sleep.idle.enter(0, Idle::Asleep);
        sleep.search();
        let producer = thread::spawn(move || {
            visible.store(1, Ordering::Relaxed);
            sleep.wake_for(1)
        });
        let sees = sleep.stop_search() && visible.load(Ordering::Relaxed) == 1;
        assert!(producer.join().unwrap() || sees);
    });
}
