//! What is the split deque's own: thieves get what the owner shares, in halves if they like.

#![forbid(unsafe_code)]

use poach_deque::split::{Exposure, NoTask};
use poach_deque::{Split, Steal};
use poach_memory::membarrier;

/// Asks, and lets the owner answer with a push.
fn request(owner: &Split<u64>, next: u64) {
    assert!(owner.thief().steal().is_empty(), "nothing was shared");
    owner.push(next);
}

#[test]
fn thieves_take_the_oldest_of_what_is_shared() {
    let owner = Split::new();
    (0..9).for_each(|task| owner.push(task));
    request(&owner, 9);
    let thief = owner.thief();
    assert_eq!((owner.len(), thief.len()), (10, 5));
    for task in 0..5 {
        assert_eq!(thief.steal(), Steal::Success(task));
    }
    assert_eq!(thief.steal(), Steal::Empty);
    // The last attempt asked again; a pop answers as a push does.
    assert_eq!(owner.pop(), Some(9));
    assert_eq!(thief.len(), 2);
    assert_eq!(thief.steal(), Steal::Success(5));
}

#[test]
fn a_thief_is_told_of_private_tasks() {
    let owner = Split::new();
    let thief = owner.thief();
    (0..10).for_each(|task| owner.push(task));
    assert_eq!(thief.steal(), Steal::Empty);
    assert_eq!(thief.try_steal(), Err(NoTask::Private));
    // It has asked.
    assert!(owner.poll());
    assert_eq!(thief.try_steal(), Ok(0));
    while owner.pop().is_some() {}
    assert_eq!(thief.try_steal(), Err(NoTask::Empty));
}

#[test]
fn a_thief_takes_half_at_once() {
    let (owner, mine): (Split<u64>, Split<u64>) = (Split::new(), Split::new());
    (0..199).for_each(|task| owner.push(task));
    request(&owner, 199);
    let thief = owner.thief();
    assert_eq!(thief.steal_half(&mine), Steal::Success(0));
    assert_eq!((mine.len(), thief.len()), (49, 50));
    assert_eq!((mine.pop(), thief.steal()), (Some(49), Steal::Success(50)));
}

#[test]
fn a_steal_of_half_into_oneself_loses_nothing() {
    let owner = Split::new();
    (0..199).for_each(|task| owner.push(task));
    request(&owner, 199);
    let first = owner.thief().steal_half(&owner).success();
    let mut seen: Vec<u64> = first.into_iter().chain(std::iter::from_fn(|| owner.pop())).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
}

#[test]
fn the_owner_takes_back_what_it_shared() {
    let owner = Split::new();
    (0..99).for_each(|task| owner.push(task));
    request(&owner, 99);
    for task in (0..100).rev() {
        assert_eq!(owner.pop(), Some(task));
    }
    assert_eq!(owner.pop(), None);
    assert_eq!(owner.thief().steal(), Steal::Empty);
}

/// 32-bit indices wrap within the word that thieves swap, and within the ring, while tasks are
/// stolen.
#[test]
fn indices_wrap_around() {
    let start = u64::from(u32::MAX) - 99;
    let owner = Split::<u64>::starting_at(16, start).unwrap();
    let thief = owner.thief();
    let (mut next, mut oldest) = (0, 0);
    for _ in 0..400 {
        owner.push(next);
        next += 1;
        match thief.steal() {
            Steal::Success(task) => {
                assert_eq!(task, oldest);
                oldest += 1;
            }
            none => assert!(none.is_empty()),
        }
    }
    assert!(oldest > 150, "the test must take the indices past the wrap, not to {oldest}");
    while let Some(task) = owner.pop() {
        next -= 1;
        assert_eq!(task, next);
    }
    assert_eq!(next, oldest);
}

/// Of an owner that fences, too: it knows from the beginning if the process has been refused the
/// barrier by then. (If not, at its first answer: `tests/it/seccomp.rs`.)
#[test]
fn a_thief_exposes_half_of_what_an_owner_keeps() {
    let _ = membarrier::register();
    let owner = Split::new();
    let thief = owner.thief();
    assert_eq!(thief.expose(), Exposure::Refused, "there is nothing");
    (0..9).for_each(|task| owner.push(task));
    assert!(thief.has_private_tasks());
    assert_eq!(thief.expose(), Exposure::Done);
    assert_eq!((thief.len(), owner.len()), (5, 9));
    assert_eq!(thief.expose(), Exposure::Refused, "something is shared");
    for task in 0..5 {
        assert_eq!(thief.steal(), Steal::Success(task));
    }
    for task in (5..9).rev() {
        assert_eq!(owner.pop(), Some(task));
    }
    assert_eq!((owner.pop(), thief.expose()), (None, Exposure::Refused));
}

#[test]
fn a_poll_answers_a_request_and_nothing_else() {
    let owner: Split<u64> = Split::new();
    let thief = owner.thief();
    assert!(!owner.poll());
    thief.request();
    assert!(!owner.poll(), "there is nothing to share");
    (0..8).for_each(|task| owner.push(task));
    // The first push was asked; the rest is private.
    assert_eq!(thief.steal(), Steal::Success(0));
    assert!(!owner.poll());
    assert!(thief.steal().is_empty(), "and it has asked");
    assert!(owner.poll() && !owner.poll());
    assert_eq!(thief.steal(), Steal::Success(1));
    assert_eq!(owner.pop(), Some(7));
}

#[test]
fn the_top_says_what_was_pushed_since() {
    let owner: Split<u64> = Split::starting_at(2, u64::from(u32::MAX) - 1).unwrap();
    (0..5).for_each(|task| owner.push(task));
    let below = owner.top();
    assert!(owner.share());
    (5..8).for_each(|task| owner.push(task));
    assert!(owner.thief().steal().is_success());
    let popped: Vec<_> =
        std::iter::from_fn(|| owner.pop().filter(|_| owner.top() >= below)).collect();
    assert_eq!(popped, [7, 6, 5]);
}
