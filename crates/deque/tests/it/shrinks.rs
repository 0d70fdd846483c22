//! A thief that sleeps over a task that it has claimed: the ring grows meanwhile, and shrinks
//! afterwards to what tasks have needed.

// Its memory is the machine's in other words, of which Miri would say the same.
#![cfg(not(miri))]

use std::cell::Cell;
use std::rc::Rc;

use poach_deque::{Biased, ChaseLev, Fifo, Full, Owner, Split, Steal, Thief};

use crate::interrupted::{Interrupted, Kind, before};

/// Tasks that the owner pushes, and another thief takes, while the first sleeps.
const MEANWHILE: usize = 1000;

/// A task that `thief` or the owner takes.
fn taken<O: Owner<usize>>(owner: &O, thief: &O::Thief) -> usize {
    loop {
        if let Steal::Success(task) = thief.steal() {
            return task;
        }
        // A thief of shared tasks alone has asked for some: the owner's next push or pop answers.
        if owner.len() < 4 {
            // It adds nothing to the sum.
            owner.push(0);
        } else if let Some(task) = owner.pop() {
            return task;
        }
    }
}

/// A thief of a queue that `make` made with room for eight is stopped before each of its first
/// loads in turn, while the owner has a few tasks at a time. Of some queues one stop is with a task
/// that the thief has claimed and not finished: the ring then grows.
fn sleeps<O>(what: &str, make: impl Fn() -> O, capacity: fn(&O) -> usize)
where
    O: Owner<usize> + 'static,
{
    let mut largest = 0;
    for load in 0..40 {
        let owner = Rc::new(make());
        let (first, second) = (owner.thief(), owner.thief());
        let all = Rc::new(Cell::new(0));
        let push = |owner: &O, all: &Cell<usize>| {
            all.set(all.get() + 1);
            owner.push(all.get());
        };
        (0..3).for_each(|_| push(&owner, &all));
        let (pushes, tasks, grown) = (Rc::clone(&all), Rc::clone(&owner), Rc::new(Cell::new(0)));
        let most = Rc::clone(&grown);
        let sum = Rc::new(Cell::new(0));
        let others = Rc::clone(&sum);
        before(Kind::Load, load, move || {
            for _ in 0..MEANWHILE {
                push(&tasks, &pushes);
                others.set(others.get() + taken(&*tasks, &second));
            }
            most.set(capacity(&tasks));
        });
        let task = taken(&*owner, &first);
        sum.set(sum.get() + task);
        // In case it has fewer loads than that: what has not been done is not done by the loads
        // below.
        before(Kind::Load, u32::MAX, || {});
        largest = largest.max(grown.get());
        for _ in 0..64 {
            push(&owner, &all);
            sum.set(sum.get() + taken(&*owner, &first));
        }
        assert!(capacity(&owner) <= 16, "{what}, before load {load}: {} slots", capacity(&owner));
        while let Some(task) = owner.pop() {
            sum.set(sum.get() + task);
        }
        assert_eq!(sum.get(), (1..=all.get()).sum(), "{what}, before load {load}: a task is lost");
    }
    assert!(largest >= MEANWHILE, "{what}: no thief was stopped with a task");
}

#[test]
fn a_ring_that_grew_for_a_sleeping_thief_shrinks_when_it_has_its_task() {
    sleeps(
        "ChaseLev",
        || ChaseLev::<_, _, Interrupted>::starting_at(Full, 8, 0).unwrap(),
        ChaseLev::capacity,
    );
    sleeps(
        "Biased",
        || Biased::<_, _, Interrupted>::starting_at(Full, 8, 0, 4).unwrap(),
        Biased::capacity,
    );
    sleeps("Fifo", || Fifo::<_, Interrupted>::starting_at(8, 0).unwrap(), Fifo::capacity);
    sleeps("Split", || Split::<_, Interrupted>::starting_at(8, 0).unwrap(), Split::capacity);
}

/// A queue that grew for a burst keeps its ring until its owner gives that back, which it can do
/// while no task and no thief is there, at any index below the limit.
#[test]
fn a_queue_gives_its_memory_back_when_it_is_empty() {
    let owner = Split::<usize>::with_capacity(8).unwrap();
    let thief = owner.thief();
    let mut most = 0;
    for burst in 1..=3 {
        (0..burst * 1000).for_each(|task| owner.push(task));
        most = owner.capacity();
        assert!(most >= burst * 1000 && !owner.shrink_to(8), "it has tasks");
        let mut came_out = 0;
        for from in 0.. {
            let task = if from % 7 == 0 { thief.steal().success() } else { owner.pop() };
            came_out += usize::from(task.is_some());
            if came_out == burst * 1000 {
                break;
            }
        }
        assert_eq!(owner.capacity(), most, "pops do not ask");
        assert!(owner.shrink_to(8) && owner.capacity() == 8);
        assert!(!owner.shrink_to(8), "it has done so");
    }
    assert!(most > 2048);
    // The tails from now on are below the limits of the rings before.
    for round in 0..100 {
        (0..20).for_each(|task| owner.push(round * 20 + task));
        assert_eq!((owner.share(), thief.steal().success()), (true, Some(round * 20)));
        (1..20).rev().for_each(|task| assert_eq!(owner.pop(), Some(round * 20 + task)));
        assert!(owner.pop().is_none() && owner.capacity() <= 64);
        owner.shrink_to(8);
    }
}

/// A thief that has claimed a task and not finished it has the ring in which that stands.
#[test]
fn a_thief_at_the_ring_keeps_it() {
    let (mut kept, mut given) = (0, 0);
    for load in 0..40 {
        let owner = Rc::new(Split::<usize, Interrupted>::starting_at(8, 0).unwrap());
        (0..20).for_each(|task| owner.push(task));
        owner.share();
        let (thief, other) = (owner.thief(), owner.thief());
        let (empties, shrunk) = (Rc::clone(&owner), Rc::new(Cell::new(None)));
        let says = Rc::clone(&shrunk);
        before(Kind::Load, load, move || {
            while !empties.is_empty() {
                _ = other.steal();
            }
            says.set(Some(empties.shrink_to(8)));
        });
        let stolen = thief.steal().success();
        before(Kind::Load, u32::MAX, || {});
        match (shrunk.get(), stolen) {
            (Some(true), _) => given += 1,
            (Some(false), stolen) => {
                assert_eq!(stolen, Some(0), "it had none");
                kept += 1;
            }
            (None, _) => {}
        }
        (20..40).for_each(|task| owner.push(task));
        (20..40).rev().for_each(|task| assert_eq!(owner.pop(), Some(task)));
    }
    assert!(kept > 0 && given > 0, "{kept}, {given}");
}
