//! Whom producers serve and consumers rob: the order of the access lists, and when they are made.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use poach_memory::Machine;
use poach_pool::CHUNK_LENGTH;
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::salsa::{Salsa, SalsaCas};

fn at_distances(distance: impl Fn(usize) -> u64 + Send + Sync + 'static) -> Policy {
    let mut policy = Policy::default();
    policy.distance = Arc::new(move |_, pool| distance(pool));
    policy
}

/// Of three pools the last is the nearest, and then the first.
fn the_nearest_first<P: Mechanism<u64>>(pools: P) {
    let pools = Arc::new(pools);
    let policy = at_distances(|pool| [1, 2, 0][pool]);
    let mut taker = Taker::at(&pools, Policy::default(), 0).expect("memory");
    let mut others = [(); 2].map(|()| pools.consumer().expect("memory"));
    let mut feeder = Feeder::at(&pools, policy, 0).expect("memory");
    assert!(feeder.put(1).is_ok());
    assert_eq!((others[0].consume(), others[1].consume()), (None, Some(1)), "{pools:?}");
    let mut thief = Taker::at(&pools, at_distances(|pool| [2, 1, 0, 3][pool]), 0).expect("memory");
    let mut producers = [(); 3].map(|()| pools.producer().expect("memory"));
    for (pool, producer) in producers.iter_mut().enumerate() {
        assert!(producer.produce_force(pool, pool as u64).is_ok());
    }
    assert_eq!((thief.get(), thief.get(), thief.get()), (Some(2), Some(1), Some(0)), "{pools:?}");
    assert_eq!((taker.get(), thief.get()), (None, None));
}

#[test]
fn the_nearest_pool_is_served_and_robbed_first() {
    the_nearest_first(Salsa::<u64>::new(1).expect("memory"));
    the_nearest_first(SalsaCas::<u64>::new(1).expect("memory"));
    the_nearest_first(WsMsq::<u64, Machine>::new().expect("memory"));
    the_nearest_first(WsLifo::<u64, Machine>::new().expect("memory"));
}

/// Of two pools the first is nearer, and the second has a spare chunk.
fn served<P: Mechanism<u64>>(pools: P, balancing: bool) -> Option<usize> {
    let pools = Arc::new(pools);
    let mut consumers = [(); 2].map(|()| pools.consumer().expect("memory"));
    let mut other = pools.producer().expect("memory");
    assert!(other.produce_force(1, 0).is_ok());
    assert_eq!(consumers[1].consume(), Some(0));
    let mut policy = at_distances(|pool| pool as u64);
    policy.balancing = balancing;
    let mut feeder = Feeder::at(&pools, policy, 0).expect("memory");
    assert!(feeder.put(1).is_ok());
    consumers.iter_mut().position(|consumer| consumer.consume() == Some(1))
}

#[test]
fn a_consumer_that_has_a_chunk_to_spare_is_served_unless_that_is_not_wanted() {
    assert_eq!(served(Salsa::<u64>::new(1).expect("memory"), true), Some(1));
    assert_eq!(served(Salsa::<u64>::new(1).expect("memory"), false), Some(0));
    assert_eq!(served(SalsaCas::<u64>::new(1).expect("memory"), true), Some(1));
    assert_eq!(served(SalsaCas::<u64>::new(1).expect("memory"), false), Some(0));
}

#[test]
fn a_list_is_made_once_until_consumers_come_or_go() {
    let pools = Arc::new(Salsa::<u64>::new(1).expect("memory"));
    let calls = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&calls);
    let policy = at_distances(move |_| counts.fetch_add(1, Ordering::Relaxed) as u64);
    let mut taker = Taker::at(&pools, policy, 0).expect("memory");
    let _other = pools.consumer().expect("memory");
    assert_eq!((taker.get(), taker.get()), (None, None));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    let _third = pools.consumer().expect("memory");
    assert_eq!((taker.get(), taker.get()), (None, None));
    assert_eq!(calls.load(Ordering::Relaxed), 2 + 3);
}

fn is_sent_to_look<P: Mechanism<u64>>(pools: P) {
    let pools = Arc::new(pools);
    let mut producer = pools.producer().expect("memory");
    assert_eq!(producer.produce(0, 0), Err(0));
    for _ in 0..2 {
        let puts = (0..3 * CHUNK_LENGTH).take_while(|_| producer.produce(0, 0).is_ok()).count();
        assert_eq!(puts, CHUNK_LENGTH, "{pools:?}");
    }
}

#[test]
fn a_producer_of_shared_queues_looks_once_in_a_chunks_puts() {
    is_sent_to_look(WsMsq::<u64, Machine>::new().expect("memory"));
    is_sent_to_look(WsLifo::<u64, Machine>::new().expect("memory"));
}

#[test]
fn a_consumer_of_a_bag_looks_at_every_list() {
    let bag = Arc::new(ConcBag::<u64>::new(2).expect("memory"));
    let mut producers = [(); 3].map(|()| bag.producer().expect("memory"));
    let mut consumers = [(); 4].map(|()| bag.consumer().expect("memory"));
    for consumer in &mut consumers {
        for (number, producer) in (0..).zip(&mut producers) {
            assert!(producer.produce_force(0, number).is_ok());
            assert_eq!((consumer.consume(), consumer.consume()), (Some(number), None));
        }
    }
}
