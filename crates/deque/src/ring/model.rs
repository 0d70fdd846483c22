//! A ring under the memory model of C11: what its owner must have seen of thieves before it frees a
//! ring.

use std::rc::Rc;

use poach_check::{Simulated, Threads};

use super::*;
use crate::c11;

/// The second thief says that the task of the first, too, is finished: its owner then frees the
/// ring that both have read.
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
                // SAFETY: each index has one thief here, and its task was written before the
                // threads began.
                assert_eq!(unsafe { rings.take(task as u64) }, task as u64);
            });
        }
        let owner = Rc::clone(&rings);
        threads.spawn("owner", move || {
            buffer.reserve(&owner, 2, || 0).unwrap();
            buffer.find(&owner, 4);
        });
        threads.finally(move || drop(rings));
    };
    c11::clean_all(1, model);
}

/// While a thief has its task the ring grows, and shrinks when the owner sees that it is finished.
/// A thread that comes to a task of the larger ring, or of the smaller one, finds it there, and a
/// ring is freed after its last use.
#[test]
fn a_ring_that_shrinks_has_the_tasks_of_the_larger_one() {
    let model = |threads: &mut Threads| {
        let (rings, buffer) = Rings::<u64, Simulated>::new(2, 0).unwrap();
        let rings = Rc::new(rings);
        let tail = Rc::new(<Simulated as Memory>::Word::new(1));
        // SAFETY: the slot of the index is free, and the rings live.
        unsafe { buffer.write(0, 0) };
        let (first, second) = (Rc::clone(&rings), Rc::clone(&rings));
        threads.spawn("first", move || {
            // SAFETY: each index has one thief here, and this task was written before the threads
            // began.
            assert_eq!(unsafe { first.take(0) }, 0);
        });
        let seen = Rc::clone(&tail);
        threads.spawn("second", move || {
            for index in [3, 6] {
                // Acquire: pairs with the release of the owner below.
                if seen.load(Ordering::Acquire) > index {
                    // SAFETY: the thief of this index, whose task was written before the tail that
                    // was acquired.
                    assert_eq!(unsafe { second.take(index) }, index);
                }
            }
        });
        let owner = Rc::clone(&rings);
        threads.spawn("owner", move || {
            for index in 1..8 {
                if !buffer.has(index) {
                    buffer.reserve(&owner, index, || 0).unwrap();
                }
                // SAFETY: the slot of the index is free, as was asked, and the rings live.
                unsafe { buffer.write(index, index) };
                if index % 3 != 0 {
                    // SAFETY: the owner's, written just now.
                    assert_eq!(unsafe { buffer.read(index) }, index);
                    // SAFETY: the owner's, and read.
                    unsafe { buffer.finish_privately(index) };
                }
                // Release: pairs with the acquire of the second thief.
                tail.store(index + 1, Ordering::Release);
            }
        });
        threads.finally(move || drop(rings));
    };
    c11::clean_all(3, model);
}
