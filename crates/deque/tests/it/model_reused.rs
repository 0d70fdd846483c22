//! A slot is written again only after the last read of it, in whatever order thieves finish.

#![forbid(unsafe_code)]

use loom::thread;
use poach_deque::ChaseLev;
use poach_memory::{Full, Loom};

use crate::model::explore;

fn reused(thieves: u64, pushes: u64) {
    explore(move || {
        let queue = ChaseLev::<u64, Full, Loom>::starting_at(Full, 2, 0).unwrap();
        (0..2).for_each(|task| queue.push(task));
        let handles: Vec<_> = (0..thieves)
            .map(|_| {
                let thief = queue.thief();
                thread::spawn(move || thief.steal().success())
            })
            .collect();
        // What the others leave.
        let mut taken: Vec<u64> =
            (thieves..2).filter_map(|_| queue.thief().steal().success()).collect();
        (2..2 + pushes).for_each(|task| queue.push(task));
        taken.extend(handles.into_iter().filter_map(|handle| handle.join().unwrap()));
        taken.extend(std::iter::from_fn(|| queue.pop()));
        taken.sort_unstable();
        assert_eq!(taken, (0..2 + pushes).collect::<Vec<_>>());
    });
}

#[test]
fn a_thief_and_the_owner_as_a_thief() {
    reused(1, 2);
}

/// The ring doubles while a thief is at a task, and the owner leaves the larger one again, in which
/// the thief may be at its next.
#[test]
fn a_ring_that_shrinks() {
    explore(|| {
        let queue = ChaseLev::<u64, Full, Loom>::starting_at(Full, 2, 0).unwrap();
        (0..2).for_each(|task| queue.push(task));
        let thief = queue.thief();
        let others = thread::spawn(move || [thief.steal().success(), thief.steal().success()]);
        let mut taken = Vec::new();
        for task in 2..6 {
            taken.extend(queue.thief().steal().success());
            queue.push(task);
        }
        taken.extend(others.join().unwrap().into_iter().flatten());
        taken.extend(std::iter::from_fn(|| queue.pop()));
        taken.sort_unstable();
        assert_eq!(taken, (0..6).collect::<Vec<_>>());
    });
}

#[test]
fn two_thieves() {
    reused(2, 1);
}
