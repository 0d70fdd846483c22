//! The length of searches. A search ends even if every chunk that it finds is taken away. An empty
//! get of SALSA looks at few pools when there are few consumers, whatever was before. The other
//! pools look at as many as there ever were at one time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use poach_memory::Machine;
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::salsa::{Salsa, SalsaCas};

use crate::stopping::{HOOK, Kind, LEFT, Stopping};

/// Chunks that are stolen from under a consumer in one search after the other.
const THEFTS: u64 = if cfg!(miri) { 100 } else { 100_000 };

#[test]
fn a_search_that_loses_each_chunk_it_finds_does_not_go_ever_deeper() {
    let pools = Arc::new(Salsa::<u64, Stopping>::new(1).expect("memory"));
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    let mut producer = pools.producer().expect("memory");
    assert!(producer.produce_force(0, 0).is_ok());
    let thefts = Rc::new(Cell::new(0));
    let stolen = Rc::new(RefCell::new(Vec::new()));
    // The owner sets its hazard pointer, with a fence, and reads the term; before its next load,
    // that of `taken`, a thief takes the chunk away, and another comes.
    let mut loads = 0;
    let (count, keep) = (Rc::clone(&thefts), Rc::clone(&stolen));
    HOOK.set(Some(Box::new(move |kind| match kind {
        Kind::Exchange => loads = 0,
        Kind::Load => {
            loads += 1;
            if loads == 2 && count.get() < THEFTS {
                let task = thief.steal(0);
                if task.is_some() {
                    keep.borrow_mut().extend(task);
                    count.set(count.get() + 1);
                    assert!(producer.produce_force(0, count.get()).is_ok());
                }
            }
        }
        Kind::Store | Kind::Heavy => {}
    })));
    let mut taken = Vec::new();
    while thefts.get() < THEFTS {
        taken.extend(owner.consume());
    }
    drop(HOOK.take());
    taken.extend(std::iter::from_fn(|| owner.consume()));
    taken.extend(stolen.take());
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..=THEFTS));
}

fn cost<P: Mechanism<u64>>(taker: &mut Taker<u64, P>) -> u64 {
    // The first may look for the last time at what has gone.
    assert!(taker.get().is_none());
    LEFT.set(u64::MAX);
    assert!(taker.get().is_none());
    u64::MAX - LEFT.replace(u64::MAX)
}

/// Consumers that come at once, and go.
const COMERS: usize = if cfg!(miri) { 10 } else { 1000 };

/// How often they do. An interpreter takes minutes for ten times.
const TIMES: usize = if cfg!(miri) { 2 } else { 10 };

/// The cost of an empty get at first, and after [`TIMES`] times as many consumers.
fn before_and_after<P: Mechanism<u64>>(make: impl Fn() -> Option<P>) -> (u64, u64) {
    let pools = Arc::new(make().expect("memory"));
    let mut taker = Taker::at(&pools, Policy::default(), 0).expect("memory");
    let mut feeder = Feeder::at(&pools, Policy::default(), 0).expect("memory");
    for task in 0..3 {
        assert!(feeder.put(task).is_ok());
        assert_eq!(taker.get(), Some(task));
    }
    let before = cost(&mut taker);
    for _ in 0..TIMES {
        let comers: Vec<_> =
            (0..COMERS).map(|_| Taker::at(&pools, Policy::default(), 0).expect("memory")).collect();
        for (task, mut comer) in comers.into_iter().enumerate() {
            if task % 100 == 0 {
                assert!(feeder.put(task as u64).is_ok());
                assert_eq!(comer.get(), Some(task as u64));
            }
        }
    }
    // The chunk that the producer has begun may be one of a consumer that has gone, whose pool
    // stays in sight until it is full.
    for task in 0..4 {
        assert!(feeder.put(task).is_ok());
        assert_eq!(taker.get(), Some(task));
    }
    (before, cost(&mut taker))
}

#[test]
fn an_empty_get_looks_at_few_pools_when_many_consumers_have_come_and_gone() {
    let salsa = before_and_after(|| Salsa::<u64, Stopping>::new(2));
    let cas = before_and_after(|| SalsaCas::<u64, Stopping>::new(2));
    let bag = before_and_after(|| ConcBag::<u64, Stopping>::new(2));
    let msq = before_and_after(WsMsq::<u64, Stopping>::new);
    let lifo = before_and_after(WsLifo::<u64, Stopping>::new);
    let all = [salsa, cas, bag, msq, lifo];
    println!("accesses before and after, of SALSA, SALSA+CAS, ConcBag, WS-MSQ, WS-LIFO: {all:?}");
    for (before, after) in [salsa, cas] {
        assert!(after < before + 100, "{before} accesses, and then {after}");
    }
    for (before, after) in [bag, msq, lifo] {
        assert!(after < before + AT_MOST * COMERS as u64, "{before} accesses, and then {after}");
    }
}

/// Accesses of an empty get for each pool or list, fewer than of [`TIMES`] times as many.
const AT_MOST: u64 = 50;

#[test]
fn an_empty_get_of_a_bag_looks_at_the_lists_of_so_many_producers_as_were_there_at_one_time() {
    let bag = Arc::new(ConcBag::<u64, Stopping>::new(2).expect("memory"));
    let mut taker = Taker::at(&bag, Policy::default(), 0).expect("memory");
    let mut first = bag.producer().expect("memory");
    assert!(first.produce_force(0, 0).is_ok());
    assert_eq!(taker.get(), Some(0));
    let before = cost(&mut taker);
    for _ in 0..TIMES {
        let mut comers: Vec<_> = (0..COMERS - 1).map(|_| bag.producer().expect("memory")).collect();
        for (task, comer) in (0..).zip(&mut comers).step_by(100) {
            assert!(comer.produce_force(0, task).is_ok());
        }
    }
    let left = std::iter::from_fn(|| taker.get()).count();
    assert_eq!(left, TIMES * (COMERS - 1).div_ceil(100));
    let after = cost(&mut taker);
    println!("accesses before and after: {before} and {after}");
    assert!(after < before + AT_MOST * COMERS as u64, "{before} accesses, and then {after}");
}

/// As in `an_empty_get_looks_at_few_pools`, but tasks stand in the last pool when its consumer
/// goes: it is looked at until they are taken, and no longer.
#[test]
fn a_pool_that_is_left_with_tasks_is_looked_at_until_they_are_taken() {
    fn ask<P: Mechanism<u64>>(make: impl Fn() -> Option<P>) {
        let pools = Arc::new(make().expect("memory"));
        let mut taker = Taker::at(&pools, Policy::default(), 0).expect("memory");
        let mut feeder = pools.producer().expect("memory");
        let comers: Vec<_> = (1..10).map(|_| pools.consumer().expect("memory")).collect();
        assert!((0..4).all(|task| feeder.produce_force(9, task).is_ok()));
        drop(comers);
        assert_eq!(pools.pools(), 10);
        let mut taken: Vec<_> = std::iter::from_fn(|| taker.get()).collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2, 3]);
        assert!(taker.get().is_none());
        assert_eq!(pools.pools(), 1);
        assert!(feeder.produce_force(9, 4).is_ok());
        assert_eq!((pools.pools(), taker.get()), (10, Some(4)));
    }
    ask(|| Salsa::<u64, Stopping>::new(2));
    ask(|| SalsaCas::<u64, Stopping>::new(2));
}

#[test]
fn a_producer_of_shared_queues_serves_the_consumers_that_are_there() {
    fn ask<P: Mechanism<u64>>(make: impl Fn() -> Option<P>) {
        let pools = Arc::new(make().expect("memory"));
        let mut consumers: Vec<_> = (0..3).map(|_| pools.consumer().expect("memory")).collect();
        let mut feeders: Vec<_> =
            (0..3).map(|_| Feeder::at(&pools, Policy::default(), 0).expect("memory")).collect();
        for (task, feeder) in (0..).zip(&mut feeders) {
            assert!(feeder.put(task).is_ok());
        }
        let mut served: Vec<_> = consumers.iter_mut().map(Consume::consume).collect();
        served.sort_unstable();
        assert_eq!(served, [Some(0), Some(1), Some(2)], "one each");
        // All but the first go: in this number of puts all producers have noticed.
        consumers.truncate(1);
        for feeder in &mut feeders {
            assert!((0..1100).all(|task| feeder.put(task).is_ok()));
        }
        let first = std::iter::from_fn(|| consumers[0].consume()).count();
        assert!(first >= 300, "{first}");
    }
    // On the machine's own memory: it counts no accesses, and an interpreter needs a minute.
    ask(WsMsq::<u64, Machine>::new);
    ask(WsLifo::<u64, Machine>::new);
}

#[test]
fn an_empty_get_looks_at_no_chunk_that_is_gone() {
    let pools = Arc::new(Salsa::<u64, Stopping>::new(1).expect("memory"));
    let mut taker = Taker::at(&pools, Policy::default(), 0).expect("memory");
    let mut producer = pools.producer().expect("memory");
    assert!(producer.produce_force(0, 0).is_ok());
    assert_eq!(taker.get(), Some(0));
    let before = cost(&mut taker);
    assert!((0..100).all(|task| producer.produce_force(0, task).is_ok()));
    assert!(std::iter::from_fn(|| taker.get()).eq(0..100));
    let after = cost(&mut taker);
    assert!(after < before + 100, "{before} accesses, and then {after}");
}

/// Consumers that are all there. An interpreter takes minutes for 50.
const PRESENT: u64 = if cfg!(miri) { 5 } else { 50 };

/// An empty get of the first of [`PRESENT`] consumers, and of twice as many: what each more costs.
fn cost_of_one_more<P: Mechanism<u64>>(make: impl Fn() -> Option<P>) -> [u64; 2] {
    [PRESENT, 2 * PRESENT].map(|count| {
        let pools = Arc::new(make().expect("memory"));
        let at = || Taker::at(&pools, Policy::default(), 0).expect("memory");
        let mut takers: Vec<_> = (0..count).map(|_| at()).collect();
        cost(&mut takers[0]) / count
    })
}

#[test]
fn an_empty_get_looks_at_each_pool_a_few_times() {
    let salsa = cost_of_one_more(|| Salsa::<u64, Stopping>::new(2));
    let cas = cost_of_one_more(|| SalsaCas::<u64, Stopping>::new(2));
    let msq = cost_of_one_more(WsMsq::<u64, Stopping>::new);
    let lifo = cost_of_one_more(WsLifo::<u64, Stopping>::new);
    println!(
        "accesses a pool, of so many and of twice as many: {salsa:?} {cas:?} {msq:?} {lifo:?}"
    );
    for [few, many] in [salsa, cas, msq, lifo] {
        assert!(many <= few + 1, "{few} accesses a pool of {PRESENT}, {many} of twice as many");
    }
}
