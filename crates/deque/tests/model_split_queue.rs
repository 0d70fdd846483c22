//! loom models of the split queue of values: every task comes out once, and a slot is written again
//! only after its thief has read it.

use std::sync::Arc as StdArc;

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;
use poach_deque::split::{Claim, Queue, QueueOwner};
use poach_memory::{Loom, Ordering};

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Steals at most `attempts` tasks and marks each one taken.
fn thief(queue: &Queue<usize, Loom>, taken: &[AtomicUsize], attempts: usize) {
    for _ in 0..attempts {
        match queue.steal() {
            Ok(task) => mark(taken, task),
            Err(Claim::Empty | Claim::Lost) => thread::yield_now(),
            Err(Claim::Taken { .. }) => unreachable!("a taken claim is a success"),
        }
    }
}

fn mark(taken: &[AtomicUsize], task: usize) {
    assert_eq!(taken[task].fetch_add(1, Ordering::SeqCst), 0, "task {task} came out twice");
}

fn counters<const N: usize>() -> Arc<[AtomicUsize; N]> {
    Arc::new(std::array::from_fn(|_| AtomicUsize::new(0)))
}

#[test]
fn every_task_comes_out_once() {
    check(|| {
        let owner = QueueOwner::<usize, Loom>::new(4);
        let taken = counters::<2>();
        owner.queue().request();
        let (queue, marks) = (StdArc::clone(owner.queue()), Arc::clone(&taken));
        let stealing = thread::spawn(move || thief(&queue, &*marks, 2));
        assert!(owner.push(0).is_ok());
        assert!(owner.push(1).is_ok());
        while let Some((task, _)) = owner.pop() {
            mark(&*taken, task);
        }
        stealing.join().unwrap();
        assert!(taken.iter().all(|count| count.load(Ordering::SeqCst) == 1), "a task was lost");
    });
}

#[test]
fn a_slot_is_written_again_only_after_its_thief_has_read_it() {
    check(|| {
        let owner = QueueOwner::<usize, Loom>::new(1);
        let taken = counters::<2>();
        owner.queue().request();
        let (queue, marks) = (StdArc::clone(owner.queue()), Arc::clone(&taken));
        let stealing = thread::spawn(move || thief(&queue, &*marks, 1));
        assert!(owner.push(0).is_ok());
        // The ring has one slot: the second push must wait until the first task was popped or copied.
        let second = owner.push(1).is_ok();
        while let Some((task, _)) = owner.pop() {
            mark(&*taken, task);
        }
        stealing.join().unwrap();
        assert_eq!(taken[0].load(Ordering::SeqCst), 1);
        assert_eq!(taken[1].load(Ordering::SeqCst), usize::from(second));
    });
}
