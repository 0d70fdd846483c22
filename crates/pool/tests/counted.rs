//! What a pool counts of itself, by one thread, where each count has one value: the exchanges of a handle, the chunks that were
//! made, the pools that are open. Chunks that are lost, or counts that are wrong, harm no task, so that no other test notices.

#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::sync::Arc;

use poach_memory::Machine;
use poach_pool::bag::ConcBag;
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::ms_queue::WsMsq;
use poach_pool::salsa::{Salsa, SalsaCas};
use poach_pool::stack::WsLifo;

/// Puts so many tasks into the first pool.
fn put<P: Produce<u64>>(producer: &mut P, tasks: u64) {
    for task in 0..tasks {
        producer.produce_force(0, task).expect("memory");
    }
}

/// The exchanges of a consumer that takes four tasks, of a thief that takes the first of two others, and of one that finds nothing.
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
    // The end of a chunk is two: it ends the term, and puts the chunk on the stack of free ones. SALSA's thief makes the chunk its
    // own, settles its count, and claims the slot.
    assert_eq!(exchanges(Salsa::<u64>::new(4).expect("memory")), [2, 3, 0]);
    assert_eq!(exchanges(SalsaCas::<u64>::new(4).expect("memory")), [6, 1, 0]);
    // The first chunk is exhausted: the thief moves the list's head.
    assert_eq!(exchanges(ConcBag::<u64>::new(4).expect("memory")), [4, 2, 0]);
    assert_eq!(exchanges(WsMsq::<u64, Machine>::new().expect("memory")), [4, 1, 0]);
    assert_eq!(exchanges(WsLifo::<u64, Machine>::new().expect("memory")), [4, 1, 0]);
}

/// How many chunks a pool of SALSA's has made.
fn chunks(pools: &impl Debug) -> usize {
    let text = format!("{pools:?}");
    let count = text.split("chunks: ").nth(1).expect("it says so").split(',').next();
    count.and_then(|count| count.trim().parse().ok()).expect("a number")
}

fn a_chunk_goes_round<P: Mechanism<u64>>(pools: P) {
    let pools = Arc::new(pools);
    let mut producer = pools.producer().expect("memory");
    let mut consumer = pools.consumer().expect("memory");
    // Made, then taken from the stack of free ones, each time.
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

/// A thief has its hazard pointer on a chunk that is used up, and goes: the chunk comes back with the next one.
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
    a_pool_is_open_while_it_has_a_consumer(ConcBag::<u64>::new(4).expect("memory"));
    a_pool_is_open_while_it_has_a_consumer(WsMsq::<u64, Machine>::new().expect("memory"));
    a_pool_is_open_while_it_has_a_consumer(WsLifo::<u64, Machine>::new().expect("memory"));
}
