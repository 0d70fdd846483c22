//! How a pool ends: by hand, with its last producer, with its last consumer.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use poach_pool::{Closed, GetTimeoutError, PutError, TaskPool, TryGetError};

use crate::watchdog::watched;

const TASKS: usize = if cfg!(miri) { 200 } else { 100_000 };

#[test]
fn a_closed_pool_is_drained_and_then_says_so() {
    watched(|| {
        let pool = TaskPool::new();
        let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        assert!(producer.put(1).is_ok());
        assert!(pool.close() && !pool.close() && pool.is_closed());
        assert_eq!(producer.put(2), Err(PutError::Closed(2)));
        assert_eq!(producer.try_put(3).map_err(PutError::into_inner), Err(3));
        assert_eq!(consumer.get(), Ok(1));
        assert_eq!(consumer.get(), Err(Closed));
        assert_eq!(consumer.try_get(), Err(TryGetError::Closed));
        assert_eq!(consumer.get_timeout(Duration::MAX), Err(GetTimeoutError::Closed));
        assert_eq!(consumer.get_many(5, &mut Vec::new()), Err(Closed));
        assert_eq!(consumer.iter().count(), 0);
    });
}

#[test]
fn a_put_that_meets_the_close_fails_or_is_found() {
    watched(|| {
        for _ in 0..TASKS / 100 {
            let pool = TaskPool::builder().chunk_length(2).build().unwrap();
            let (put, got) = thread::scope(|scope| {
                let mut producer = pool.producer().unwrap();
                let mut consumer = pool.consumer().unwrap();
                let put =
                    scope.spawn(move || (0..50).take_while(|&n| producer.put(n).is_ok()).count());
                let got = scope.spawn(move || consumer.iter().count());
                thread::yield_now();
                pool.close();
                (put.join().unwrap(), got.join().unwrap())
            });
            assert_eq!(put, got);
        }
    });
}

#[test]
fn a_close_releases_a_producer_that_waits_for_room() {
    watched(|| {
        let pool = TaskPool::builder().capacity(1).build().unwrap();
        let mut producer = pool.producer().unwrap();
        producer.put(1).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(move || producer.put(2));
            thread::yield_now();
            pool.close();
            assert_eq!(waiting.join().unwrap(), Err(PutError::Closed(2)));
        });
    });
}

#[test]
fn a_get_ends_when_all_that_could_put_are_gone() {
    watched(|| {
        let pool = TaskPool::new();
        let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        producer.put(1).unwrap();
        drop(pool);
        assert_eq!((consumer.get(), consumer.try_get()), (Ok(1), Err(TryGetError::Empty)));
        producer.put(2).unwrap();
        thread::scope(|scope| {
            let taken = scope.spawn(move || consumer.iter().count());
            drop(producer);
            assert_eq!(taken.join().unwrap(), 1);
        });
    });
}

#[test]
fn a_put_ends_when_all_that_could_take_are_gone() {
    watched(|| {
        let pool = TaskPool::builder().capacity(1).build().unwrap();
        let (mut producer, consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        producer.put(1).unwrap();
        drop(pool);
        thread::scope(|scope| {
            let waiting = scope.spawn(move || (producer.put(2), producer.try_put(3)));
            drop(consumer);
            let gone = (Err(PutError::NoConsumer(2)), Err(PutError::NoConsumer(3)));
            assert_eq!(waiting.join().unwrap(), gone);
        });
    });
}

#[test]
fn a_pool_that_stays_open_is_of_both_sides() {
    watched(|| {
        let pool = TaskPool::builder().stays_open(true).build().unwrap();
        let mut producer = pool.producer().unwrap();
        let clone = pool.clone();
        drop((pool.consumer().unwrap(), pool));
        assert_eq!(producer.put(1), Ok(()));
        drop(producer);
        let mut consumer = clone.consumer().unwrap();
        assert_eq!((consumer.try_get(), consumer.try_get()), (Ok(1), Err(TryGetError::Empty)));
        let mut producer = clone.producer().unwrap();
        drop(clone.close_guard());
        drop((clone, consumer));
        assert_eq!(producer.put(2), Err(PutError::Closed(2)));
    });
}

#[test]
fn the_last_producer_closes_a_pool_that_is_kept() {
    watched(|| {
        for stays_open in [false, true] {
            let pool = TaskPool::builder().stays_open(stays_open).build().unwrap();
            let mut consumer = pool.consumer().unwrap();
            let mut producer = pool.producer().unwrap();
            let mut clone = producer.clone();
            producer.put(1).unwrap();
            drop(producer);
            clone.put(2).unwrap();
            assert!(!pool.is_closed());
            drop(clone);
            assert_eq!(pool.is_closed(), !stays_open);
            let late = if stays_open { Ok(()) } else { Err(PutError::Closed(3)) };
            assert_eq!(pool.producer().unwrap().put(3), late);
            drop(pool);
            let mut taken: Vec<_> = consumer.iter().collect();
            taken.sort_unstable();
            assert!(taken.into_iter().eq(1..=2 + i32::from(stays_open)));
        }
    });
}

#[test]
fn a_get_ends_with_the_last_producer_though_the_pool_is_kept() {
    watched(|| {
        let pool = TaskPool::<u8>::new();
        let mut consumer = pool.consumer().unwrap();
        let producers = [(); 2].map(|()| pool.producer().unwrap());
        thread::scope(|scope| {
            let waits = scope.spawn(move || consumer.get());
            thread::yield_now();
            drop(producers);
            assert_eq!(waits.join().unwrap(), Err(Closed));
        });
        assert!(pool.is_closed());
    });
}

#[test]
fn a_put_ends_with_the_last_consumer_though_the_pool_is_kept() {
    watched(|| {
        let pool = TaskPool::bounded(1);
        let mut producer = pool.producer().unwrap();
        let consumers = [(); 2].map(|()| pool.consumer().unwrap());
        producer.put(1).unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(move || producer.put(2));
            thread::yield_now();
            drop(consumers);
            assert_eq!(waits.join().unwrap(), Err(PutError::NoConsumer(2)));
        });
        assert!(pool.is_closed() && pool.is_empty());
    });
}

#[test]
fn a_side_that_never_had_a_handle_is_gone_with_the_last_pool() {
    watched(|| {
        let pool = TaskPool::<u8>::new();
        let (clone, mut consumer) = (pool.clone(), pool.consumer().unwrap());
        drop(pool);
        assert_eq!(consumer.try_get(), Err(TryGetError::Empty));
        drop(clone);
        assert_eq!(consumer.get(), Err(Closed));

        let pool = TaskPool::new();
        let (clone, mut producer) = (pool.clone(), pool.producer().unwrap());
        producer.put(1).unwrap();
        drop(pool);
        producer.put(2).unwrap();
        drop(clone);
        assert_eq!(producer.put(3), Err(PutError::NoConsumer(3)));
        assert!(producer.is_empty(), "nobody can take what is in it");
    });
}

/// The one that waits for the answer to a request learns that nobody will give it.
#[test]
fn what_the_last_consumer_leaves_is_dropped() {
    let reply = Arc::new(());
    for (capacity, stays_open) in [(None, false), (Some(100), false), (None, true)] {
        let builder = TaskPool::builder().chunk_length(3).stays_open(stays_open);
        let builder = match capacity {
            Some(capacity) => builder.capacity(capacity),
            None => builder,
        };
        let pool = builder.build().unwrap();
        let mut producers = [(); 2].map(|()| pool.producer().unwrap());
        let mut consumers = [(); 3].map(|()| pool.consumer().unwrap());
        for producer in &mut producers {
            producer.put_many((0..10).map(|_| Arc::clone(&reply))).unwrap();
        }
        drop(consumers[1].get());
        assert_eq!(Arc::strong_count(&reply), 20);
        let [first, second, last] = consumers;
        drop((first, second));
        assert_eq!(Arc::strong_count(&reply), 20, "one is left");
        if stays_open {
            drop(last);
            assert_eq!(Arc::strong_count(&reply), 20, "another could be made");
            drop(pool);
        } else {
            drop(last);
        }
        assert_eq!(Arc::strong_count(&reply), 1);
        let [first, _] = &mut producers;
        assert!(matches!(first.put(Arc::clone(&reply)), Err(PutError::NoConsumer(_))));
        assert_eq!((first.len(), first.is_full()), (0, false));
    }
}

/// Whichever comes first, no task stays in the pool.
#[test]
fn a_put_that_meets_the_last_consumers_drop_leaves_nothing() {
    watched(|| {
        for round in 0..TASKS / 500 {
            let reply = Arc::new(());
            let pool = TaskPool::builder().chunk_length(2).build().unwrap();
            let producers = [(); 2].map(|()| pool.producer().unwrap());
            let consumer = pool.consumer().unwrap();
            let kept = thread::scope(|scope| {
                let putters = producers.map(|mut producer| {
                    let reply = &reply;
                    scope.spawn(move || {
                        (0..200).all(|_| producer.put(Arc::clone(reply)).is_ok());
                        producer
                    })
                });
                for _ in 0..round % 4 {
                    thread::yield_now();
                }
                drop(consumer);
                putters.map(|putter| putter.join().unwrap())
            });
            assert_eq!(Arc::strong_count(&reply), 1, "round {round}");
            drop(kept);
        }
    });
}

#[test]
fn a_close_wakes_all_that_wait() {
    watched(|| {
        let pool = TaskPool::bounded(1);
        let mut producers = [(); 3].map(|()| pool.producer().unwrap());
        producers[0].put(0).unwrap();
        // The consumers wait at another pool, which nothing is put to.
        let idle = TaskPool::<u8>::new();
        let consumers = [(); 3].map(|()| idle.consumer().unwrap());
        let _producer = idle.producer().unwrap();
        thread::scope(|scope| {
            let puts = producers.map(|mut producer| scope.spawn(move || producer.put(1)));
            let gets = consumers.map(|mut consumer| scope.spawn(move || consumer.get()));
            // Long enough for all to fall asleep, now and then.
            thread::sleep(Duration::from_millis(if cfg!(miri) { 1 } else { 50 }));
            pool.close();
            idle.close();
            for put in puts {
                assert_eq!(put.join().unwrap(), Err(PutError::Closed(1)));
            }
            for get in gets {
                assert_eq!(get.join().unwrap(), Err(Closed));
            }
        });
    });
}

/// As channels' ends do, without `AssertUnwindSafe`.
#[test]
fn handles_go_through_a_panic() {
    watched(|| {
        let pool = TaskPool::new();
        let (mut consumer, others) = (pool.consumer().unwrap(), pool.producer().unwrap());
        let produced = std::panic::catch_unwind(|| {
            let _closes = pool.close_guard();
            others.clone().put(1).unwrap();
            panic!("in the midst of it");
        });
        assert!(produced.is_err() && pool.is_closed() && others.is_closed());
        let taken = std::panic::catch_unwind(move || (consumer.get(), consumer.get()));
        assert_eq!(taken.unwrap(), (Ok(1), Err(Closed)));
    });
}

#[test]
fn put_many_says_how_far_it_came_and_takes_no_more() {
    let pool = TaskPool::new();
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    let mut tasks = (0..6).inspect(|&task| {
        if task == 3 {
            pool.close();
        }
    });
    let error = producer.put_many(&mut tasks).unwrap_err();
    assert_eq!((error.put, error.error), (3, PutError::Closed(3)));
    assert!(tasks.eq(4..6) && consumer.try_iter().eq(0..3));
}
