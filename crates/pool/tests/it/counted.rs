//! What a pool counts of itself, by one thread, where each count has one value. Chunks that are
//! lost, or counts that are wrong, harm no task, so that no other test notices.

#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::sync::Arc;

use poach_memory::Machine;
#[cfg(not(miri))] // As `most`.
use poach_pool::NoHandle;
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::salsa::{Salsa, SalsaCas};

fn put<P: Produce<u64>>(producer: &mut P, tasks: u64) {
    for task in 0..tasks {
        producer.produce_force(0, task).expect("memory");
    }
}

/// Of a consumer that takes four tasks, of a thief that takes the first of two, of an empty search.
fn exchanges<P: Mechanism<u64>>(pools: P) -> [u64; 3] {
    let pools = Arc::new(pools);
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    let mut idle = pools.consumer().expect("memory");
    put(&mut producer, 4);
    for _ in 0..4 {
        assert!(owner.consume().is_some());
    }
    put(&mut producer, 2);
    assert!(thief.steal(0).or_else(|| thief.consume()).is_some());
    let counts = [owner.exchanges(), thief.exchanges(), idle.exchanges()];
    assert!(thief.consume().or_else(|| thief.steal(0)).is_some());
    assert_eq!((idle.steal(0), idle.consume()), (None, None));
    counts
}

#[test]
fn exchanges_are_counted() {
    // The end of a chunk is two: it ends the term, and puts the chunk on the stack of free ones.
    // SALSA's thief makes the chunk its own, settles its count, and claims the slot.
    assert_eq!(exchanges(Salsa::<u64>::new(4).expect("memory")), [2, 3, 0]);
    assert_eq!(exchanges(SalsaCas::<u64>::new(4).expect("memory")), [6, 1, 0]);
    // The first chunk is exhausted: the thief moves the list's head.
    assert_eq!(exchanges(ConcBag::<u64>::new(4).expect("memory")), [4, 2, 0]);
    assert_eq!(exchanges(WsMsq::<u64, Machine>::new().expect("memory")), [4, 1, 0]);
    assert_eq!(exchanges(WsLifo::<u64, Machine>::new().expect("memory")), [4, 1, 0]);
}

fn chunks(pools: &impl Debug) -> usize {
    let text = format!("{pools:?}");
    let count = text.split("chunks: ").nth(1).expect("it says so").split(',').next();
    count.and_then(|count| count.trim().parse().ok()).expect("a number")
}

fn a_chunk_goes_round<P: Mechanism<u64>>(pools: P) {
    let pools = Arc::new(pools);
    let mut producer = pools.producer().expect("memory");
    let mut consumer = pools.consumer().expect("memory");
    for _ in 0..4 {
        put(&mut producer, 2);
        assert_eq!((consumer.consume(), consumer.consume()), (Some(0), Some(1)));
        assert_eq!(chunks(&pools), 1);
    }
}

#[test]
fn a_chunk_that_is_used_up_is_filled_again() {
    a_chunk_goes_round(Salsa::<u64>::new(2).expect("memory"));
    a_chunk_goes_round(SalsaCas::<u64>::new(2).expect("memory"));
}

/// A thief has its hazard pointer on a used-up chunk, and goes: it comes back with the next one.
#[test]
fn a_chunk_that_a_thief_has_left_is_filled_again() {
    let pools = Arc::new(SalsaCas::<u64>::new(2).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    put(&mut producer, 2);
    assert_eq!((thief.steal(0), owner.consume()), (Some(0), Some(1)));
    drop(thief);
    put(&mut producer, 2);
    assert_eq!(chunks(&pools), 2);
    assert_eq!((owner.consume(), owner.consume()), (Some(0), Some(1)));
    put(&mut producer, 4);
    assert_eq!(chunks(&pools), 2);
}

fn a_pool_is_open_while_it_has_a_consumer<P: Mechanism<u64>>(pools: P) {
    let pools = Arc::new(pools);
    let first = pools.consumer().expect("memory");
    let second = pools.consumer().expect("memory");
    assert_eq!(pools.pools(), 2, "{pools:?}");
    drop(second);
    assert_eq!(pools.pools(), 1, "{pools:?}");
    drop(first);
}

#[test]
fn a_pool_is_closed_with_its_last_consumer() {
    a_pool_is_open_while_it_has_a_consumer(Salsa::<u64>::new(4).expect("memory"));
    a_pool_is_open_while_it_has_a_consumer(SalsaCas::<u64>::new(4).expect("memory"));
}

/// A thief takes a chunk's last task: the chunk is the thief's to fill.
#[test]
fn a_chunk_whose_last_task_is_stolen_is_filled_again() {
    let pools = Arc::new(Salsa::<u64>::new(1).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let _owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    put(&mut producer, 1);
    assert_eq!(thief.steal(0), Some(0));
    // Three for the theft, as above, and two for the end of the chunk.
    assert_eq!(thief.exchanges(), 5);
    assert!(producer.produce_force(1, 1).is_ok());
    assert_eq!(chunks(&pools), 1);
}

#[test]
fn a_chunk_that_a_thief_has_emptied_is_filled_again() {
    let pools = Arc::new(Salsa::<u64>::new(2).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let _owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    put(&mut producer, 2);
    assert_eq!((thief.steal(0), thief.consume()), (Some(0), Some(1)));
    assert!(producer.produce_force(1, 2).is_ok());
    assert_eq!(chunks(&pools), 1);
}

#[test]
fn a_chunk_that_its_owner_has_left_is_filled_again() {
    let pools = Arc::new(Salsa::<u64>::new(2).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    put(&mut producer, 2);
    assert_eq!(owner.consume(), Some(0));
    drop(owner);
    assert_eq!(thief.steal(0), Some(1));
    assert!(producer.produce_force(1, 2).is_ok());
    assert_eq!(chunks(&pools), 1);
}

/// A consumer finds that the chunk it was working on is another's, and that there is no other.
#[test]
fn a_chunk_that_its_owner_has_lost_is_filled_again() {
    let pools = Arc::new(Salsa::<u64>::new(3).expect("memory"));
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    put(&mut producer, 3);
    assert_eq!((owner.consume(), thief.steal(0), thief.consume()), (Some(0), Some(1), Some(2)));
    assert_eq!(owner.consume(), None);
    // With the end of the next the first comes back too.
    assert!((3..6).all(|task| producer.produce_force(1, task).is_ok()));
    assert!(std::iter::from_fn(|| thief.consume()).eq(3..6));
    assert!((0..6).all(|task| producer.produce_force(1, task).is_ok()));
    assert_eq!(chunks(&pools), 2);
}

/// The second, which puts one more task, has the number of the first.
fn two_producers<P: Mechanism<u64>>(pools: P) -> Arc<P> {
    let pools = Arc::new(pools);
    let mut first = pools.producer().expect("memory");
    let number = first.number();
    put(&mut first, 1);
    drop(first);
    let mut next = pools.producer().expect("memory");
    assert_eq!(next.number(), number, "{pools:?}");
    put(&mut next, 1);
    pools
}

#[test]
fn the_next_producer_goes_on_where_the_last_has_gone() {
    assert_eq!(chunks(&two_producers(Salsa::<u64>::new(2).expect("memory"))), 1);
    assert_eq!(chunks(&two_producers(SalsaCas::<u64>::new(2).expect("memory"))), 1);
    two_producers(ConcBag::<u64>::new(2).expect("memory"));
    two_producers(WsMsq::<u64, Machine>::new().expect("memory"));
    two_producers(WsLifo::<u64, Machine>::new().expect("memory"));
}

/// The last pool is left with a task in it. Another consumer takes that, and looks there once.
fn a_pool_is_open_while_it_has_a_task<P: Mechanism<u64>>(pools: P) {
    let pools = Arc::new(pools);
    let mut first = pools.consumer().expect("memory");
    let second = pools.consumer().expect("memory");
    let mut producer = pools.producer().expect("memory");
    assert!(producer.produce_force(1, 0).is_ok());
    drop(second);
    assert!(!first.is_empty(1));
    assert_eq!(pools.pools(), 2, "{pools:?}");
    assert_eq!(first.steal(1), Some(0));
    assert!(first.is_empty(1));
    assert_eq!(pools.pools(), 1, "{pools:?}");
}

#[test]
fn a_pool_is_closed_by_who_finds_it_left_and_empty() {
    a_pool_is_open_while_it_has_a_task(Salsa::<u64>::new(1).expect("memory"));
    a_pool_is_open_while_it_has_a_task(SalsaCas::<u64>::new(1).expect("memory"));
}

/// Claims handles up to the first that cannot be had: how many, and why.
#[cfg(not(miri))] // Each claim looks at all entries: hours by an interpreter.
fn most<H>(claim: impl Fn() -> Result<H, NoHandle>) -> (usize, NoHandle) {
    let mut held = Vec::new();
    loop {
        match claim() {
            Ok(handle) => held.push(handle),
            Err(error) => return (held.len(), error),
        }
    }
}

#[cfg(not(miri))] // As `most`.
fn are_limited<P: Mechanism<u64>>(pools: P, producers: usize) {
    let pools = Arc::new(pools);
    let limit = producers;
    assert_eq!(most(|| pools.producer()), (limit, NoHandle::TooMany { limit }), "{pools:?}");
    let limit = 1024;
    assert_eq!(most(|| pools.consumer()), (limit, NoHandle::TooMany { limit }), "{pools:?}");
    assert!(pools.producer().is_ok() && pools.consumer().is_ok());
}

#[cfg(not(miri))] // As `most`.
#[test]
fn a_handle_too_many_of_salsa_is_refused_as_such() {
    are_limited(Salsa::<u64>::new(4).expect("memory"), 4096);
}

#[cfg(not(miri))] // As `most`.
#[test]
fn a_handle_too_many_of_a_bag_is_refused_as_such() {
    are_limited(ConcBag::<u64>::new(4).expect("memory"), 1024);
}

#[cfg(not(miri))] // As `most`.
#[test]
fn a_handle_too_many_of_a_shared_queue_is_refused_as_such() {
    are_limited(WsLifo::<u64, Machine>::new().expect("memory"), 1024);
}
