//! A thief of an idempotent queue that loses its processor between its look at the queue and its exchange, while the owner
//! pushes and pops 2^20 times, so that the queue has come back to where the thief saw it: no task is lost.
//!
//! The double-ended queue's tag had 20 bits once, and the thief's exchange succeeded: it took the task that the owner had
//! popped long ago, and stepped over the one that stood there now. The tags of today, of 41 and of 32 bits, come back after an
//! hour and after six seconds of pushes; the queues' modules say how likely it is that a thief is deceived.

use std::rc::Rc;

use poach_deque::{IdempotentDeque, IdempotentFifo, IdempotentLifo, Owner, Steal, Thief};

mod interrupted;

use interrupted::{Interrupted, Kind, before};

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
