//! Chunks that are taken away in the middle of what their consumer does: nothing is taken twice,
//! and each chunk comes back to be filled again. One thread plays all, another's step before a
//! chosen access of one; or real threads, each stopped at the one place that matters.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use poach_memory::{Full, Machine, Memory, StoreLoad};
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::salsa::{Salsa, SalsaCas};

use crate::stopping::{HOOK, Kind, Stopping, start, stop_before};

fn chunks(pools: &impl Debug) -> usize {
    let text = format!("{pools:?}");
    let count = text.split("chunks: ").nth(1).expect("it says so").split(',').next();
    count.and_then(|count| count.trim().parse().ok()).expect("a number")
}

/// Runs `act`, and `step` once, before the first access at which `is_due`.
fn in_between<R>(
    mut is_due: impl FnMut(Kind) -> bool + 'static,
    step: impl FnOnce() + 'static,
    act: impl FnOnce() -> R,
) -> R {
    let mut step = Some(step);
    HOOK.set(Some(Box::new(move |kind| {
        if step.is_some() && is_due(kind) {
            step.take().expect("it is there")();
        }
    })));
    let result = act();
    drop(HOOK.take());
    result
}

/// A thief takes a chunk of one after the owner has put its hazard pointer on it.
#[test]
fn a_chunk_that_is_lost_before_it_is_begun_comes_back() {
    let pools = Arc::new(Salsa::<u64, Stopping>::new(1).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let thief = Rc::new(RefCell::new(pools.consumer().expect("memory")));
    assert!(producer.produce_force(0, 0).is_ok());
    let steals = Rc::clone(&thief);
    let steal = move || assert_eq!(steals.borrow_mut().steal(0), Some(0));
    assert_eq!(in_between(|kind| kind == Kind::Exchange, steal, || owner.consume()), None);
    // With the end of the next the first comes back too.
    assert!(producer.produce_force(1, 1).is_ok());
    assert_eq!(thief.borrow_mut().consume(), Some(1));
    assert!((2..4).all(|task| producer.produce_force(1, task).is_ok()));
    assert_eq!(chunks(&pools), 2);
}

/// A thief takes a chunk of three, and the third task, when the owner has published the second.
#[test]
fn a_chunk_that_is_lost_during_a_take_comes_back() {
    let pools = Arc::new(Salsa::<u64, Stopping>::new(3).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let thief = Rc::new(RefCell::new(pools.consumer().expect("memory")));
    assert!((0..3).all(|task| producer.produce_force(0, task).is_ok()));
    assert_eq!(owner.consume(), Some(0));
    let steals = Rc::clone(&thief);
    let steal = move || assert_eq!(steals.borrow_mut().steal(0), Some(2));
    let mut published = false;
    let second_look = move |kind| {
        let due = published && kind == Kind::Load;
        published |= kind == Kind::Store;
        due
    };
    assert_eq!(in_between(second_look, steal, || owner.consume()), Some(1));
    // It claimed the task.
    assert_eq!(owner.exchanges(), 1);
    assert!((3..6).all(|task| producer.produce_force(1, task).is_ok()));
    assert!(std::iter::from_fn(|| thief.borrow_mut().consume()).eq(3..6));
    assert!((6..12).all(|task| producer.produce_force(1, task).is_ok()));
    assert_eq!(chunks(&pools), 2);
}

/// The owner is about to publish the last task of a chunk. A thief makes the chunk its own, and is
/// about to claim that task. The owner has it: the chunk is the owner's to give back.
#[test]
fn a_chunk_whose_last_task_is_claimed_by_its_owner_comes_back() {
    let pools = Arc::new(Salsa::<u64, Stopping, Full>::new(2).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    assert!((0..2).all(|task| producer.produce_force(0, task).is_ok()));
    assert_eq!(owner.consume(), Some(0));
    let (owns, steals) = (&mut owner, &mut thief);
    thread::scope(|scope| {
        let owner = start(scope, move |stops| {
            // The announcement is the first, the take the second.
            stop_before(stops, Some(Kind::Store), 1);
            assert_eq!(owns.consume(), Some(1));
        });
        let thief = start(scope, move |stops| {
            // Six exchanges come before the claim: the fence of the hazard pointer, the theft, a
            // fence before the look for the owner and the policy's. Then come a fence before the
            // look whether the chunk is still its own, and the exchange that settles its count.
            stop_before(stops, Some(Kind::Exchange), 6);
            assert_eq!(steals.steal(0), None);
        });
        assert!(owner.stopped && thief.stopped);
        owner.wake();
        thief.wake();
    });
    // The claim, and two for the end of the chunk.
    assert_eq!((owner.exchanges(), thief.exchanges()), (3, 3));
    assert!((2..4).all(|task| producer.produce_force(0, task).is_ok()));
    assert!(std::iter::from_fn(|| owner.consume()).eq(2..4));
    assert!((4..8).all(|task| producer.produce_force(0, task).is_ok()));
    assert_eq!(chunks(&pools), 2);
}

/// Before the fence of the thief's hazard pointer the owner takes the chunk's last task.
#[test]
fn a_chunk_without_a_task_is_not_stolen() {
    let pools = Arc::new(Salsa::<u64, Stopping>::new(3).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    assert!((0..2).all(|task| producer.produce_force(0, task).is_ok()));
    assert_eq!(owner.consume(), Some(0));
    let owner = Rc::new(RefCell::new(owner));
    let owns = Rc::clone(&owner);
    let take = move || assert_eq!(owns.borrow_mut().consume(), Some(1));
    assert_eq!(in_between(|kind| kind == Kind::Exchange, take, || thief.steal(0)), None);
    assert_eq!(thief.exchanges(), 0);
    // It is the owner's still.
    assert!(producer.produce_force(0, 2).is_ok());
    assert_eq!(owner.borrow_mut().consume(), Some(2));
}

/// A consumer has emptied a chunk, and then works on it in its next life: it has its hazard pointer
/// on it again. A thief ends that life and goes, the chunk is begun anew, and one task is taken
/// from it, all before the consumer's exchange.
#[test]
fn a_chunk_is_not_filled_again_under_its_consumer() {
    let pools = Arc::new(SalsaCas::<u64, Stopping>::new(2).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    let mut second = pools.consumer().expect("memory");
    for tasks in [[0, 1], [2, 3]] {
        assert!(tasks.into_iter().all(|task| producer.produce_force(0, task).is_ok()));
        assert_eq!(owner.consume(), Some(tasks[0]));
        if tasks[0] == 0 {
            assert_eq!(owner.consume(), Some(1));
        }
    }
    assert_eq!(chunks(&pools), 1);
    let meanwhile = move || {
        assert_eq!(thief.steal(0), Some(3));
        drop(thief);
        assert!(producer.produce_force(0, 4).is_ok());
        assert_eq!(second.steal(0), Some(4));
    };
    let taken = in_between(|kind| kind == Kind::Exchange, meanwhile, || owner.consume());
    assert_eq!(taken, None);
}

/// Without a fence, too, where owners have none.
#[test]
fn a_thief_goes_on_in_its_chunk_without_an_exchange() {
    let pools = Arc::new(Salsa::<u64, Stopping>::new(3).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let _owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    assert!((0..3).all(|task| producer.produce_force(0, task).is_ok()));
    assert_eq!(thief.steal(0), Some(0));
    let dear = Rc::new(Cell::new(0));
    let counts = Rc::clone(&dear);
    HOOK.set(Some(Box::new(move |kind| {
        counts.set(counts.get() + u32::from(matches!(kind, Kind::Exchange | Kind::Heavy)));
    })));
    assert_eq!(thief.consume(), Some(1));
    drop(HOOK.take());
    // Elsewhere the owner's fence is full: after the look for tasks, and after the take.
    assert_eq!(dear.get(), if Stopping::asymmetric() { 0 } else { 2 });
}

/// The full fence, whose thief is sent to ask again a few times.
#[derive(Default)]
struct Late;

thread_local! {
    static LATE: Cell<u32> = const { Cell::new(0) };
}

// SAFETY: both ends are full fences; that a thief asks again takes nothing from them.
unsafe impl<M: Memory> StoreLoad<M> for Late {
    fn owner(&self) {
        M::full();
    }

    fn thief(&self) {
        M::full();
    }

    fn delta(&self) -> u64 {
        1
    }

    fn resolve(&self) -> bool {
        let left = LATE.get();
        LATE.set(left.saturating_sub(1));
        left == 0
    }
}

#[test]
fn a_thief_waits_until_it_knows_what_the_owner_took() {
    let pools = Arc::new(Salsa::<u64, Machine, Late>::new(2).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    assert!((0..2).all(|task| producer.produce_force(0, task).is_ok()));
    assert_eq!(owner.consume(), Some(0));
    LATE.set(3);
    assert_eq!(thief.steal(0), Some(1));
    assert_eq!(LATE.get(), 0);
}
