//! A thief of an idempotent queue loses its processor between its look at the queue and its
//! exchange. Meanwhile the owner pushes and pops 2^20 times, so that the queue has come back to
//! where the thief saw it: no task is lost.
//!
//! The double-ended queue's tag had 20 bits once, and the thief's exchange succeeded: it took the
//! task that the owner had popped long ago, and stepped over the one that stood there now. The tags
//! of today, of 41 and of 32 bits, come back after an hour and after six seconds of pushes; the
//! queues' modules say how likely it is that a thief is deceived.

use std::rc::Rc;

use poach_deque::{
    IdempotentDeque, IdempotentFifo, IdempotentLifo, Multiplicity, Owner, Steal, Thief,
};

use crate::interrupted::{Interrupted, Kind, before};

/// A tag of 20 bits would return after this number of pushes. Miri would take minutes.
const PUSHES: u64 = if cfg!(miri) { 1 << 10 } else { 1 << 20 };

fn no_task_is_lost(owner: impl Owner<u64> + 'static) {
    let owner = Rc::new(owner);
    let thief = owner.thief();
    owner.push(0);
    let pushes = Rc::clone(&owner);
    before(Kind::Exchange, 0, move || {
        for task in 1..=PUSHES {
            assert!(pushes.pop().is_some());
            pushes.push(task);
        }
    });
    let mut out = Vec::new();
    if let Steal::Success(task) = thief.steal() {
        out.push(task);
    }
    out.extend(std::iter::from_fn(|| owner.pop()));
    assert!(out.contains(&PUSHES), "task {PUSHES} is lost; what came out: {out:?}");
}

#[test]
fn deque() {
    no_task_is_lost(IdempotentDeque::<u64, Interrupted>::default());
}

#[test]
fn lifo() {
    no_task_is_lost(IdempotentLifo::<u64, Interrupted>::default());
}

#[test]
fn fifo() {
    no_task_is_lost(IdempotentFifo::<u64, Interrupted>::default());
}

/// Pushes of one run leave the thieves' word alone.
#[test]
fn a_thief_is_not_disturbed_by_pushes_alone() {
    let owner = Rc::new(IdempotentDeque::<u64, Interrupted>::default());
    let thief = owner.thief();
    owner.push(0);
    let pushes = Rc::clone(&owner);
    before(Kind::Exchange, 0, move || (1..4).for_each(|task| pushes.push(task)));
    assert_eq!(thief.steal(), Steal::Success(0));
    assert_eq!(std::iter::from_fn(|| owner.pop()).collect::<Vec<_>>(), [3, 2, 1]);
}

/// The heads of one run are few enough that none comes again: the one that a thief has seen is
/// there once more after 2^23 tasks.
#[test]
fn a_head_that_comes_again_has_another_tag() {
    const HEADS: u64 = if cfg!(miri) { 1 << 10 } else { 1 << 23 };
    let owner = Rc::new(IdempotentDeque::<u64, Interrupted>::default());
    let thief = owner.thief();
    owner.push(0);
    let (pushes, other) = (Rc::clone(&owner), owner.thief());
    before(Kind::Exchange, 0, move || {
        for task in 1..=HEADS {
            pushes.push(task);
            assert_eq!(other.steal(), Steal::Success(task - 1));
        }
    });
    assert_eq!(thief.steal(), Steal::Retry);
    assert_eq!(owner.pop(), Some(HEADS));
}

/// A run is as long as there is room for at its first push, wherever the oldest task stands by
/// then.
#[test]
fn a_run_that_fills_the_queue_is_followed_by_another() {
    let owner = IdempotentDeque::<u64>::with_capacity(4).unwrap();
    let thief = owner.thief();
    let mut out = Vec::new();
    for task in 0..32 {
        owner.push(task);
        if task % 3 == 0 {
            out.extend(thief.steal().success());
        }
    }
    assert_eq!(out, (0..11).collect::<Vec<_>>());
    out.extend(std::iter::from_fn(|| owner.pop()));
    assert_eq!(out[11..], (11..32).rev().collect::<Vec<_>>());
}

/// A thief takes the task that the owner pops: the head is above the tail then. The next run is as
/// many tasks as there are slots, and no more.
#[test]
fn a_run_that_begins_below_the_head_is_no_longer_than_the_queue() {
    let owner = Rc::new(IdempotentDeque::<u64, Interrupted>::with_capacity(4).unwrap());
    let thief = owner.thief();
    owner.push(0);
    let pops = Rc::clone(&owner);
    before(Kind::Exchange, 0, move || assert_eq!(pops.pop(), Some(0)));
    // It comes out twice.
    assert_eq!(thief.steal(), Steal::Success(0));
    (1..9).for_each(|task| owner.push(task));
    let out: Vec<_> = std::iter::from_fn(|| owner.pop()).collect();
    assert_eq!(out, (1..9).rev().collect::<Vec<_>>());
}

/// A thief of a queue with multiplicity reads an old word, array or index: it gets the task of the
/// index that it means, once, or none.
#[test]
fn a_thief_takes_no_task_of_a_reused_slot() {
    // At each of its loads: of the two indices, the tail, the array, the slot and the tail again.
    for load in 0..6 {
        for pushed in [1, 3, 4, 5, 7, 9, 40] {
            let owner = Rc::new(Multiplicity::<u64, Interrupted>::with_capacity(2).unwrap());
            let thief = owner.thief();
            owner.push(0);
            let works = Rc::clone(&owner);
            before(Kind::Load, load, move || {
                for task in 1..=pushed {
                    assert_eq!(works.pop(), Some(task - 1));
                    works.push(task);
                }
                // One more at a time than fits, so that the array grows.
                (1..=3).for_each(|more| works.push(pushed + more));
            });
            let mut out = Vec::new();
            for _ in 0..2 * (pushed + 4) {
                out.extend(thief.steal().success());
            }
            let what = format!("{pushed} pushed before load {load}: {out:?}");
            // In order, so none twice; and all that are there.
            assert!(out.is_sorted_by(|one, other| one < other), "{what}");
            assert!((pushed..=pushed + 3).all(|task| out.contains(&task)), "{what}");
        }
    }
}

/// What a thief stores as the head may be long past. A handle that has been further does not go
/// back, and another goes on where slots are left.
#[test]
fn a_head_that_goes_back_loses_no_task() {
    let owner = Rc::new(Multiplicity::<u64, Interrupted>::with_capacity(2).unwrap());
    let [slow, fresh] = [owner.thief(), owner.thief()];
    owner.push(0);
    let works = Rc::clone(&owner);
    before(Kind::Store, 1, move || {
        for task in 1..=40 {
            assert_eq!(works.pop(), Some(task - 1));
            works.push(task);
        }
    });
    assert_eq!(slow.steal(), Steal::Success(0));
    let other = fresh.clone();
    let took = |thief: &poach_deque::mult::Thief<u64, Interrupted>| {
        (0..9).filter_map(|_| thief.steal().success()).collect::<Vec<_>>()
    };
    let out = took(&fresh);
    assert!(out.is_sorted_by(|one, other| one < other) && out.ends_with(&[40]), "{out:?}");
    assert_eq!(took(&other), []);
    assert_eq!(owner.pop(), None);
}
