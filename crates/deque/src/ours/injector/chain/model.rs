//! The chain under the memory model of C11: who uses a block has heard of its making.

use std::rc::Rc;

use poach_check::Simulated;

use super::*;
use crate::c11;

type Modelled = Chain<u64, Simulated, 1>;

#[test]
fn a_free_block_is_seen_made() {
    c11::clean_all(1, |threads| {
        let chain = Rc::new(Modelled::new(1).unwrap().0);
        let makes = Rc::clone(&chain);
        threads.spawn("makes", move || {
            let id = makes.obtain(1).unwrap();
            makes.put_back(Place::new(1, id));
        });
        let takes = Rc::clone(&chain);
        threads.spawn("takes", move || assert!(takes.obtain(2).is_ok()));
        threads.finally(move || drop(chain));
    });
}

/// It has tried to take another, which was faster.
#[test]
fn a_free_block_that_an_exchange_finds_is_seen_made() {
    c11::clean_all(1, |threads| {
        let chain = Rc::new(Modelled::new(1).unwrap().0);
        let first = chain.obtain(1).unwrap();
        chain.put_back(Place::new(1, first));
        let makes = Rc::clone(&chain);
        threads.spawn("makes", move || {
            let ids = [2, 3].map(|number| makes.obtain(number).unwrap());
            makes.put_back(Place::new(3, ids[1]));
        });
        let takes = Rc::clone(&chain);
        threads.spawn("takes", move || assert!(takes.obtain(4).is_ok()));
        threads.finally(move || drop(chain));
    });
}

/// What it is an array of has been made before.
#[test]
fn an_array_that_is_found_is_seen_made() {
    type Word = <Simulated as Memory>::Word;
    c11::clean_all(1, |threads| {
        let array = Rc::new(<Simulated as Memory>::Pointer::<Word>::new(ptr::null_mut()));
        let makes = Rc::clone(&array);
        threads.spawn("makes", move || {
            publish::<_, Simulated>(&makes, Box::new([Word::new(7)]));
        });
        let finds = Rc::clone(&array);
        threads.spawn("finds", move || {
            // Acquire: as the chain looks an array up.
            let first = finds.load(Ordering::Acquire);
            if !first.is_null() {
                // SAFETY: published of one word, and freed when both threads have ended.
                let word = unsafe { &*first };
                assert_eq!(word.load(Ordering::Relaxed), 7);
            }
        });
        threads.finally(move || {
            // SAFETY: published of one word, and nobody uses it any more.
            unsafe { free(array.load(Ordering::Relaxed), 1) };
        });
    });
}
