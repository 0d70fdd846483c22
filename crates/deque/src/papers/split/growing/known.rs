//! What an owner knows of its split, and what it costs to take tasks back.

use super::*;
use crate::lock::tests::{Call, Told};

/// An owner with these tasks, all private.
fn with(tasks: core::ops::Range<u64>) -> Split<u64, Told> {
    let owner = Split::with_capacity(8).unwrap();
    tasks.for_each(|task| owner.push(task));
    owner
}

/// Where the split is, in truth and as the owner knows it.
fn split(owner: &Split<u64, Told>) -> (u32, u32) {
    let bounds = &owner.shared.thieves.sharing.bounds;
    (bounds.tail() + bounds.shared(), owner.known().get())
}

/// Else it would guess wrong the next time, and go round once more.
#[test]
fn an_owner_that_has_moved_its_split_knows_where_it_is() {
    let owner = with(0..4);
    let thief = owner.thief();
    assert_eq!(split(&owner), (0, 0));
    assert!(owner.share());
    assert_eq!(split(&owner), (4, 4));
    assert_eq!(owner.pop(), Some(3));
    assert_eq!(split(&owner), (2, 2), "half was taken back");
    assert_eq!((thief.steal(), thief.steal()), (Steal::Success(0), Steal::Success(1)));
    assert!(thief.steal().is_empty());
    owner.push(4);
    assert_eq!(split(&owner), (3, 3), "a request was answered");
}

#[test]
fn an_owner_that_takes_tasks_back_makes_no_fence() {
    let owner = with(0..4);
    assert!(owner.share());
    Told::at_a(Call::Full, || {});
    assert_eq!(owner.pop(), Some(3));
    assert!(Told::waits_still());
    // So that no other test of this thread has it.
    Told::full();
    assert!(!Told::waits_still());
}

#[test]
fn the_request_follows_the_split_and_is_not_taken_down_by_that() {
    let request = RequestWord::<Told>::new(4, false);
    assert!(request.follow(2));
    assert_eq!(request.value(), 2);
    request.stop_pops();
    assert!(!request.follow(1) && request.is_asked());
}
