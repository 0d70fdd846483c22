//! A slot is written again only after the last read of it, in whatever order thieves finish.

#![forbid(unsafe_code)]

#[path = "model/explore.rs"]
mod explore;

use explore::explore;
use loom::thread;
use poach_deque::ChaseLev;
use poach_memory::{Full, Loom};

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

#[test]
fn two_thieves() {
    reused(2, 1);
}
