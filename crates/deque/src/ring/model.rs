//! A ring under the memory model of C11: what its owner must have seen of thieves before it frees a ring.

use std::rc::Rc;

use poach_explore::{Simulated, Threads};

use super::*;
use crate::c11;

/// The second thief says that the task of the first, too, is finished: its owner then frees the ring that both have read.
#[test]
fn what_one_thief_has_finished_another_hands_on() {
    let model = |threads: &mut Threads| {
        let (rings, buffer) = Rings::<u64, Simulated>::new(2, 0).unwrap();
        let rings = Rc::new(rings);
        for task in 0..2 {
            assert!(buffer.has(task));
            // SAFETY: the slot of the index is free, as was asked, and the rings live.
            unsafe { buffer.write(task, task) };
        }
        for (task, name) in ["first", "second"].into_iter().enumerate() {
            let rings = Rc::clone(&rings);
            threads.spawn(name, move || {
                // SAFETY: each index has one thief here, and its task was written before the threads began.
                assert_eq!(unsafe { rings.take(task as u64) }, task as u64);
            });
        }
        let owner = Rc::clone(&rings);
        threads.spawn("owner", move || {
            buffer.reserve(&owner, 2).unwrap();
            buffer.find(&owner, 4);
        });
        threads.finally(move || drop(rings));
    };
    c11::clean_all(1, model);
}
