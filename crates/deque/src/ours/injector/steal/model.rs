//! Thieves under the memory model of C11: what they must have seen of the pushers and of each
//! other.

use std::rc::Rc;

use poach_check::{Simulated, Threads};

use super::*;
use crate::c11;

type Modelled<const SLOTS: usize> = Injector<u64, Simulated, SLOTS>;

/// This number of executions takes less than a second.
const MOST: u64 = 10_000;

/// No execution is wrong in which the threads run one after the other, but for one change between
/// steps; each load may read what is not the latest. All of them, but where there are more than
/// [`MOST`].
fn clean(model: impl Fn(&mut Threads)) {
    c11::clean(1, MOST, model);
}

fn injector<const SLOTS: usize>() -> Rc<Modelled<SLOTS>> {
    Rc::new(Modelled::new().with_patience(0))
}

fn push<const SLOTS: usize>(injector: &Modelled<SLOTS>, task: u64) {
    assert!(injector.try_push(task).is_ok(), "memory");
}

/// The thread that has linked a block tells thieves of it, in two ways; and a push.
#[test]
fn a_block_that_is_found_is_seen_made() {
    type Show = fn(&Modelled<1>, [Place; 2]);
    let leads: Show = |injector, [first, second]| injector.lead(first, second);
    let waits: Show = |injector, [_, second]| {
        injector.wait_at(1, injector.chain.block(second), second);
    };
    for show in [leads, waits] {
        clean(move |threads| {
            let injector = injector::<1>();
            push(&injector, 0);
            let first = injector.place_of(0).unwrap().unwrap();
            assert_eq!(injector.steal(), Steal::Success(0));
            let shows = Rc::clone(&injector);
            threads.spawn("shows", move || {
                let second = shows.place_of(1).unwrap().unwrap();
                push(&shows, 1);
                show(&shows, [first, second]);
            });
            let steals = Rc::clone(&injector);
            threads.spawn("steals", move || _ = steals.steal());
            threads.finally(move || drop(injector));
        });
    }
    clean(|threads| {
        let injector = injector::<1>();
        push(&injector, 0);
        let makes = Rc::clone(&injector);
        threads.spawn("makes", move || assert!(makes.place_of(1).is_ok_and(|at| at.is_some())));
        let pushes = Rc::clone(&injector);
        threads.spawn("pushes", move || push(&pushes, 1));
        threads.finally(move || drop(injector));
    });
}

#[test]
fn all_tasks_of_a_claim_are_seen_written() {
    clean(|threads| {
        let injector = injector::<4>();
        push(&injector, 0);
        let pushes = Rc::clone(&injector);
        threads.spawn("pushes", move || (1..3).for_each(|task| push(&pushes, task)));
        let claims = Rc::clone(&injector);
        threads.spawn("claims", move || {
            if let Steal::Success(claimed) = claims.claim(2) {
                let count = claimed.size_hint().0 as u64;
                assert!(claimed.eq(0..count));
            }
        });
        threads.finally(move || drop(injector));
    });
}

#[test]
fn the_head_does_not_pass_the_tickets() {
    clean(|threads| {
        let injector = injector::<2>();
        let both = Rc::clone(&injector);
        threads.spawn("both", move || {
            push(&both, 0);
            let _ = both.steal();
        });
        let steals = Rc::clone(&injector);
        threads.spawn("steals", move || _ = steals.steal());
        threads.finally(move || {
            let head = index_of(injector.head.index.load(Ordering::Relaxed));
            assert!(head <= injector.tickets.load(Ordering::Relaxed));
        });
    });
}
