//! A thief of an idempotent queue that loses its processor between its look at the queue and its exchange, while the owner
//! pushes and pops 2^20 times, so that the queue has come back to where the thief saw it: no task is lost.
//!
//! The double-ended queue's tag had 20 bits once, and the thief's exchange succeeded: it took the task that the owner had
//! popped long ago, and stepped over the one that stood there now. The tags of today, of 41 and of 32 bits, come back after an
//! hour and after six seconds of pushes; the queues' modules say how likely it is that a thief is deceived.

use std::rc::Rc;

use poach_deque::{IdempotentDeque, IdempotentFifo, IdempotentLifo, Owner, Steal, Thief};

use crate::interrupted::{Interrupted, Kind, before};

/// The tag of 20 bits came back after so many. Miri would take minutes.
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

/// The heads of one run are few enough that none comes again: the one that a thief has seen is there once more after 2^23 tasks.
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

/// A run is as long as there is room for at its first push, wherever the oldest task stands by then.
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

/// A thief takes the task that the owner pops: the head is above the tail then. The next run is as many tasks as there are slots, and no
/// more.
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
