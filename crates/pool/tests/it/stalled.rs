//! Handles that stay unused for ever, each in a state that an operation leaves behind: the others
//! get all tasks that these have not made their own. (`stress_stalls.rs` stops threads anywhere.)

#![forbid(unsafe_code)]

use std::sync::Arc;

use poach_memory::Machine;
use poach_pool::TaskPool;
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::salsa::{Salsa, SalsaCas};

#[test]
fn a_consumer_that_stops_in_the_middle_of_a_chunk_loses_the_chunk() {
    let pool = TaskPool::builder().chunk_length(8).build().unwrap();
    let mut producer = pool.producer().unwrap();
    let mut stalled = pool.consumer().unwrap();
    producer.put_many(0..100).unwrap();
    assert_eq!(stalled.get(), Ok(0));
    let mut other = pool.consumer().unwrap();
    let mut rest: Vec<_> = other.drain().collect();
    rest.sort_unstable();
    assert!(rest.into_iter().eq(1..100));
    // It wakes up, and finds what there is: nothing, and then something.
    assert!(stalled.try_get().is_err());
    producer.put(100).unwrap();
    assert_eq!(stalled.get(), Ok(100));
}

#[test]
fn chunks_under_a_stalled_consumers_hazard_pointer_are_not_used_again() {
    let pool = TaskPool::builder().chunk_length(2).build().unwrap();
    let mut producer = pool.producer().unwrap();
    let mut stalled: Vec<_> = (0..4).map(|_| pool.consumer().unwrap()).collect();
    for (task, consumer) in stalled.iter_mut().enumerate() {
        producer.put(task).unwrap();
        assert_eq!(consumer.get(), Ok(task));
    }
    let mut other = pool.consumer().unwrap();
    for task in 0..if cfg!(miri) { 100 } else { 10_000 } {
        producer.put(task).unwrap();
        assert_eq!(other.get(), Ok(task));
    }
    for consumer in &mut stalled {
        assert!(consumer.try_get().is_err());
    }
}

fn ping_pong<P: Mechanism<u64>>(pools: &Arc<P>) {
    let mut producer = pools.producer().unwrap();
    let mut consumers = [pools.consumer().unwrap(), pools.consumer().unwrap()];
    for task in 0..if cfg!(miri) { 50 } else { 1000 } {
        assert!(producer.produce_force(0, task).is_ok());
        let (me, other) = (task as usize % 2, 1 - task as usize % 2);
        let found = consumers[me].consume().or_else(|| consumers[me].steal(other));
        assert_eq!(found, Some(task));
        assert!(consumers[other].consume().is_none() && consumers[other].steal(me).is_none());
        assert!(consumers[0].is_empty(0) && consumers[0].is_empty(1));
    }
}

#[test]
fn a_chunk_may_be_stolen_once_for_each_task() {
    ping_pong(&Arc::new(Salsa::<u64>::new(7).unwrap()));
    ping_pong(&Arc::new(SalsaCas::<u64>::new(7).unwrap()));
    ping_pong(&Arc::new(ConcBag::<u64>::new(7).unwrap()));
    ping_pong(&Arc::new(WsMsq::<u64, Machine>::new().unwrap()));
    ping_pong(&Arc::new(WsLifo::<u64, Machine>::new().unwrap()));
}

#[test]
fn more_consumers_than_a_chunk_has_words_for() {
    let pools = Arc::new(Salsa::<usize>::new(100).unwrap());
    let taker = || Taker::at(&pools, Policy::default(), 0);
    let mut feeder = Feeder::at(&pools, Policy::default(), 0).unwrap();
    // 7 words stand in a chunk, the next 57 in one block, the others in a second.
    let (most, step) = if cfg!(miri) { (80, 9) } else { (1024, 97) };
    let mut takers: Vec<_> = (0..most).map(|_| taker().unwrap()).collect();
    if !cfg!(miri) {
        let refused = taker().unwrap_err().to_string();
        assert!(refused.contains("1024"), "{refused}");
    }
    for (task, taker) in takers.iter_mut().enumerate().step_by(step) {
        feeder.put(task).unwrap();
        assert_eq!(taker.get(), Some(task));
    }
    takers.truncate(1);
    assert!(taker().is_ok());
}
