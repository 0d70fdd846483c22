//! loom models of the split deque of values: every task comes out once, also when its ring is full
//! and grows under a thief.

#![forbid(unsafe_code)]

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;
use poach_deque::Steal;
use poach_deque::split::{Split, Thief};
use poach_memory::{Loom, Ordering};

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Steals at most `attempts` tasks and marks each one taken.
fn thief(queue: &Thief<usize, Loom>, taken: &[AtomicUsize], attempts: usize) {
    for _ in 0..attempts {
        match queue.steal() {
            Steal::Success(task) => mark(taken, task),
            Steal::Empty | Steal::Retry => thread::yield_now(),
            Steal::Abort => unreachable!("the split deque never aborts"),
        }
    }
}

fn mark(taken: &[AtomicUsize], task: usize) {
    assert_eq!(taken[task].fetch_add(1, Ordering::SeqCst), 0, "task {task} came out twice");
}

fn counters<const N: usize>() -> Arc<[AtomicUsize; N]> {
    Arc::new(std::array::from_fn(|_| AtomicUsize::new(0)))
}

/// An owner that pushes `N` tasks into a ring of `capacity` and pops what is left, against a thief
/// that has asked before.
fn every_task_once<const N: usize>(capacity: usize) {
    check(move || {
        let owner = Split::<usize, Loom>::with_capacity(capacity).unwrap();
        let taken = counters::<N>();
        let queue = owner.thief();
        queue.request();
        let marks = Arc::clone(&taken);
        let stealing = thread::spawn(move || thief(&queue, &*marks, 2));
        (0..N).for_each(|task| owner.push(task));
        while let Some(task) = owner.pop() {
            mark(&*taken, task);
        }
        stealing.join().unwrap();
        assert!(taken.iter().all(|count| count.load(Ordering::SeqCst) == 1), "a task was lost");
    });
}

#[test]
fn every_task_comes_out_once() {
    every_task_once::<2>(4);
}

#[test]
fn every_task_comes_out_once_of_a_ring_that_grows() {
    every_task_once::<3>(1);
}

/// An owner that shares all it has while a thief steals and one exposes.
#[test]
fn an_owner_shares_everything_at_once() {
    check(|| {
        let owner = Split::<usize, Loom>::with_capacity(4).unwrap();
        let taken = counters::<3>();
        let [queue, other] = [owner.thief(), owner.thief()];
        let marks = Arc::clone(&taken);
        let stealing = thread::spawn(move || {
            other.request();
            thief(&queue, &*marks, 2);
        });
        owner.push(0);
        owner.push(1);
        owner.share();
        assert!(owner.thief().len() >= owner.len(), "a task is private still");
        owner.push(2);
        while let Some(task) = owner.pop() {
            mark(&*taken, task);
        }
        stealing.join().unwrap();
        assert!(taken.iter().all(|count| count.load(Ordering::SeqCst) == 1), "a task was lost");
    });
}
