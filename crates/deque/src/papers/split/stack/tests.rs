//! The words of a request, one step after the other.

use poach_memory::Machine;

use super::*;

#[test]
fn a_request_that_was_put_off_is_told_of_once() {
    let stack = Stack::<Machine>::new(1, ()).unwrap();
    let hot = &stack.head().hot;
    assert!(!hot.was_put_off());
    hot.put_off();
    assert!(hot.was_put_off());
    assert!(!hot.was_put_off());
}

#[test]
fn the_floor_follows_the_split_unless_something_is_up() {
    let stack = Stack::<Machine>::new(2, ()).unwrap();
    let (hot, place) = (&stack.head().hot, stack.slot_at(1).as_ptr().cast());
    assert!(hot.follow(place));
    assert_eq!(hot.floor.load(Ordering::Relaxed), place);
    hot.stop_pops();
    assert!(!hot.follow(place), "a thief exposes");
    hot.take_down(place);
    hot.ask();
    assert!(!hot.follow(place), "a thief has asked");
    hot.take_down(place);
    hot.put_off();
    assert!(!hot.follow(place), "a request was put off");
}
