//! SALSA's chunks: which of them a consumer goes to, and a thief; and that each stays to be found.

#![forbid(unsafe_code)]

use std::sync::Arc;

use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::salsa::Salsa;

#[test]
fn an_owner_that_has_lost_its_chunk_goes_to_its_next() {
    let pools = Arc::new(Salsa::<u64>::new(3).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    assert!((0..3).all(|task| producer.produce_force(0, task).is_ok()));
    assert_eq!((owner.consume(), thief.steal(0)), (Some(0), Some(1)));
    assert!(producer.produce_force(0, 3).is_ok());
    assert_eq!(owner.consume(), Some(3));
}

#[test]
fn a_thief_leaves_the_owner_the_chunk_that_it_works_on() {
    let pools = Arc::new(Salsa::<u64>::new(3).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    assert!((0..6).all(|task| producer.produce_force(0, task).is_ok()));
    assert_eq!((owner.consume(), thief.steal(0)), (Some(0), Some(3)));
    assert_eq!((owner.consume(), owner.consume(), owner.consume()), (Some(1), Some(2), None));
    assert_eq!((thief.consume(), thief.consume(), thief.consume()), (Some(4), Some(5), None));
}

#[test]
fn a_consumer_takes_the_producers_chunks_by_turns() {
    let pools = Arc::new(Salsa::<u64>::new(1).expect("memory"));
    let mut producers = [(); 2].map(|()| pools.producer().expect("memory"));
    let mut owner = pools.consumer().expect("memory");
    for (number, producer) in (0..).zip(&mut producers) {
        assert!((0..3).all(|_| producer.produce_force(0, number).is_ok()));
    }
    let whose: Vec<_> = std::iter::from_fn(|| owner.consume()).collect();
    assert!(whose == [0, 1, 0, 1, 0, 1] || whose == [1, 0, 1, 0, 1, 0], "{whose:?}");
}

/// More chunks than a thief's list has places for at first, each with a task in it.
#[test]
fn a_thief_finds_each_of_the_chunks_that_it_has_stolen() {
    let pools = Arc::new(Salsa::<u64>::new(2).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let _owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    assert!((0..40).all(|task| producer.produce_force(0, task).is_ok()));
    let stolen: Vec<_> = std::iter::from_fn(|| thief.steal(0)).collect();
    assert_eq!(stolen.len(), 20, "one of each chunk");
    let mut taken: Vec<_> = std::iter::from_fn(|| thief.consume()).chain(stolen).collect();
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..40));
}
