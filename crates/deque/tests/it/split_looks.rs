//! A thief of a split deque that finds nothing shared waits a little and looks again, before it
//! asks.

use std::rc::Rc;

use poach_deque::{Split, Steal};

use crate::interrupted::{Interrupted, Kind, before};

#[test]
fn a_thief_takes_what_is_shared_after_its_first_look() {
    // It looks at the bounds, at the request, and at the bounds again.
    for looked in 0..3 {
        let owner = Rc::new(Split::<u64, Interrupted>::with_capacity(4).unwrap());
        let thief = owner.thief();
        owner.push(7);
        owner.push(8);
        let shares = Rc::clone(&owner);
        before(Kind::Load, looked, move || assert!(shares.share()));
        assert_eq!(thief.steal(), Steal::Success(7), "it had looked {looked} times");
        assert_eq!(owner.pop(), Some(8));
        owner.push(9);
        assert!(!owner.poll() && thief.is_empty(), "it left a request");
    }
}
