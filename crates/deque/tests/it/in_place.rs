//! Tasks that are made in their slots and taken apart there come out as others do.

use poach_deque::{Split, Steal};

fn push(queue: &Split<u64>, task: u64) -> Result<(), u64> {
    let write = |place: *mut u64, task: u64| {
        // SAFETY: the place of a task.
        unsafe { place.write(task) }
    };
    // SAFETY: a whole task is written, and the queue is not used.
    unsafe { queue.push_in_place(task, |place, _, task| write(place, task)) }
}

fn pop(queue: &Split<u64>) -> Option<u64> {
    let read = |place: *mut u64| {
        // SAFETY: a task stands there, and is taken once.
        unsafe { place.read() }
    };
    // SAFETY: the task is moved out, and the queue is not used before.
    unsafe { queue.pop_in_place(|place, _| read(place)) }
}

/// Pops tasks while they are not `last`.
fn pop_down_to(queue: &Split<u64>, last: u64) -> Vec<u64> {
    let mut taken = Vec::new();
    let mut take = |place: *mut u64| {
        // SAFETY: a task stands there, and is taken once.
        taken.push(unsafe { place.read() });
        taken.last() != Some(&last)
    };
    // SAFETY: the task is moved out, and the queue is not used before.
    unsafe { queue.pop_each_in_place(|place, _| take(place)) };
    taken
}

#[test]
fn they_come_out_in_reverse_and_a_full_ring_refuses() {
    let queue = Split::with_capacity(2).unwrap();
    assert_eq!((push(&queue, 1), push(&queue, 2), push(&queue, 3)), (Ok(()), Ok(()), Err(3)));
    assert_eq!((queue.len(), queue.top()), (2, 2));
    assert_eq!((pop(&queue), pop(&queue), pop(&queue)), (Some(2), Some(1), None));
    assert_eq!((queue.len(), queue.top()), (0, 0));
    assert_eq!((push(&queue, 4), pop(&queue), pop(&queue)), (Ok(()), Some(4), None));
}

#[test]
fn a_thief_that_asks_is_answered() {
    let queue = Split::with_capacity(8).unwrap();
    let thief = queue.thief();
    assert!(thief.steal().is_empty());
    push(&queue, 1).unwrap();
    assert_eq!(thief.steal(), Steal::Success(1));
    // By the next push that finds a task to share, and then by a pop.
    assert!(thief.steal().is_empty());
    (2..6).for_each(|task| push(&queue, task).unwrap());
    assert_eq!(thief.steal(), Steal::Success(2));
    assert!(thief.steal().is_empty());
    assert_eq!(pop(&queue), Some(5));
    assert_eq!(thief.steal(), Steal::Success(3));
    assert_eq!((pop(&queue), pop(&queue)), (Some(4), None));
}

#[test]
fn several_come_out_until_enough_were_taken_or_a_thief_could_take_them() {
    let queue = Split::with_capacity(8).unwrap();
    (1..6).for_each(|task| push(&queue, task).unwrap());
    assert_eq!(pop_down_to(&queue, 4), [5, 4]);
    assert_eq!((queue.len(), queue.top()), (3, 3));
    assert_eq!(pop_down_to(&queue, 0), [3, 2, 1]);
    assert_eq!((queue.len(), queue.top()), (0, 0));
    (6..9).for_each(|task| push(&queue, task).unwrap());
    assert!(queue.share());
    push(&queue, 9).unwrap();
    assert_eq!(pop_down_to(&queue, 0), [9]);
    assert_eq!((queue.len(), queue.top()), (3, 3));
    assert_eq!((pop(&queue), queue.thief().steal()), (Some(8), Steal::Success(6)));
}
