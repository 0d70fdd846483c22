//! What a program sees of a pool: blocking, closing, capacity, handles that come and go, bad input.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use poach_pool::{BuildError, Closed, GetTimeoutError, IntoIter, PutError, TaskPool, TryGetError};

const TASKS: usize = if cfg!(miri) { 200 } else { 100_000 };

#[test]
fn what_is_put_comes_out_in_order_while_nobody_steals() {
    let pool = TaskPool::new();
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    assert_eq!(consumer.try_get(), Err(TryGetError::Empty));
    assert_eq!(producer.put_many(0..TASKS), Ok(TASKS));
    assert_eq!((pool.len(), pool.is_empty()), (TASKS, false));
    let mut first = Vec::new();
    assert_eq!(consumer.get_many(10, &mut first), Ok(10));
    assert!(first.into_iter().chain(consumer.drain()).eq(0..TASKS));
    assert_eq!((pool.len(), pool.is_empty()), (0, true));
    assert_eq!(consumer.get_many(0, &mut Vec::new()), Ok(0));
}

#[test]
fn tasks_may_come_before_any_consumer() {
    let pool = TaskPool::new();
    assert!(pool.producer().unwrap().put_many(0..10).is_ok());
    assert_eq!(pool.consumer().unwrap().drain().sum::<usize>(), 45);
}

#[test]
fn a_closed_pool_is_drained_and_then_says_so() {
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
}

#[test]
fn sleepers_are_woken_by_tasks_and_by_the_close() {
    let pool = TaskPool::new();
    let got = thread::scope(|scope| {
        let sleepers: Vec<_> = (0..3)
            .map(|_| {
                let mut consumer = pool.consumer().unwrap();
                scope.spawn(move || consumer.iter().count())
            })
            .collect();
        let mut producer = pool.producer().unwrap();
        for task in 0..TASKS {
            producer.put(task).unwrap();
            if task % 1000 == 0 {
                // Long enough for some to fall asleep, now and then.
                thread::sleep(Duration::from_micros(100));
            }
        }
        pool.close();
        sleepers.into_iter().map(|sleeper| sleeper.join().unwrap()).sum::<usize>()
    });
    assert_eq!(got, TASKS);
}

#[test]
fn a_put_that_meets_the_close_fails_or_is_found() {
    for _ in 0..TASKS / 100 {
        let pool = TaskPool::builder().chunk_length(2).build().unwrap();
        let (put, got) = thread::scope(|scope| {
            let mut producer = pool.producer().unwrap();
            let mut consumer = pool.consumer().unwrap();
            let put = scope.spawn(move || (0..50).take_while(|&n| producer.put(n).is_ok()).count());
            let got = scope.spawn(move || consumer.iter().count());
            thread::yield_now();
            pool.close();
            (put.join().unwrap(), got.join().unwrap())
        });
        assert_eq!(put, got);
    }
}

#[test]
fn a_wait_ends_with_its_time() {
    let pool = TaskPool::<u8>::new();
    let mut consumer = pool.consumer().unwrap();
    let answer = consumer.get_timeout(Duration::from_millis(5));
    assert_eq!(answer, Err(GetTimeoutError::TimedOut));
    pool.producer().unwrap().put(9).unwrap();
    assert_eq!(consumer.get_timeout(Duration::ZERO), Ok(9));
}

#[test]
fn a_full_pool_refuses_and_then_makes_room() {
    let pool = TaskPool::builder().capacity(3).build().unwrap();
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    assert_eq!(pool.capacity(), Some(3));
    assert!((0..3).all(|task| producer.try_put(task).is_ok()));
    assert_eq!(producer.try_put(3), Err(PutError::Full(3)));
    assert_eq!(consumer.get(), Ok(0));
    assert!(producer.try_put(3).is_ok());
    assert_eq!(producer.try_put(4), Err(PutError::Full(4)));
    pool.close();
    assert_eq!(producer.put(4), Err(PutError::Closed(4)));
    assert!(consumer.iter().eq(1..=3));
}

#[test]
fn a_full_pool_holds_producers_back() {
    for capacity in [1, 2, 100] {
        let pool = TaskPool::builder().capacity(capacity).chunk_length(8).build().unwrap();
        let got: usize = thread::scope(|scope| {
            let producers: Vec<_> = (0..2)
                .map(|_| {
                    let mut producer = pool.producer().unwrap();
                    scope.spawn(move || producer.put_many(0..TASKS / 10).unwrap())
                })
                .collect();
            let consumers: Vec<_> = (0..2)
                .map(|_| {
                    let mut consumer = pool.consumer().unwrap();
                    scope.spawn(move || consumer.iter().count())
                })
                .collect();
            for producer in producers {
                producer.join().unwrap();
            }
            pool.close();
            consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum()
        });
        assert_eq!(got, 2 * (TASKS / 10));
    }
}

#[test]
fn a_close_releases_a_producer_that_waits_for_room() {
    let pool = TaskPool::builder().capacity(1).build().unwrap();
    let mut producer = pool.producer().unwrap();
    producer.put(1).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(move || producer.put(2));
        thread::yield_now();
        pool.close();
        assert_eq!(waiting.join().unwrap(), Err(PutError::Closed(2)));
    });
}

#[test]
fn what_cannot_be_built_is_refused() {
    let builder = TaskPool::<u8>::builder;
    assert_eq!(builder().capacity(0).build().err(), Some(BuildError::ZeroCapacity));
    assert_eq!(builder().chunk_length(0).build().err(), Some(BuildError::ZeroChunk));
}

#[test]
fn a_handle_goes_to_another_thread_in_the_middle_of_a_chunk() {
    let pool = TaskPool::new();
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    let mut sum = 0;
    for turn in 0..20 {
        producer.put_many(turn * 3..turn * 3 + 3).unwrap();
        sum += consumer.get().unwrap();
        (producer, consumer, sum) = thread::spawn(move || {
            producer.put(1000).unwrap();
            sum += consumer.get().unwrap();
            (producer, consumer, sum)
        })
        .join()
        .unwrap();
    }
    sum += consumer.drain().sum::<u64>();
    assert_eq!(sum, (0..60).sum::<u64>() + 20 * 1000);
}

#[test]
fn tasks_of_a_consumer_that_left_are_taken_by_others() {
    let pool = TaskPool::builder().chunk_length(4).build().unwrap();
    let mut producer = pool.producer().unwrap();
    let mut gone = pool.consumer().unwrap();
    producer.put_many(0..10).unwrap();
    assert_eq!(gone.get(), Ok(0));
    let mut other = pool.consumer().unwrap();
    drop(gone);
    producer.put_many(10..20).unwrap();
    let mut rest: Vec<_> = other.drain().collect();
    rest.sort_unstable();
    assert!(rest.into_iter().eq(1..20));
}

#[test]
fn tasks_of_any_kind_are_dropped_with_the_pool() {
    struct Large([Arc<()>; 4]);
    let witness = Arc::new(());
    let pool = TaskPool::builder().chunk_length(3).build().unwrap();
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    for _ in 0..10 {
        producer.put(Large([(); 4].map(|()| Arc::clone(&witness)))).unwrap();
    }
    drop(consumer.get().unwrap().0);
    assert_eq!(Arc::strong_count(&witness), 1 + 9 * 4);
    let clone = pool.clone();
    drop((pool, producer, consumer));
    assert_eq!(Arc::strong_count(&witness), 1 + 9 * 4);
    drop(clone);
    assert_eq!(Arc::strong_count(&witness), 1);

    let nothing = TaskPool::new();
    assert!(nothing.producer().unwrap().put_many([(); 5000]).is_ok());
    assert_eq!(nothing.consumer().unwrap().drain().count(), 5000);
}

#[test]
fn handles_say_what_they_are_and_no_more() {
    let pool = TaskPool::<String>::new();
    let text = format!("{pool:?} {:?} {:?}", pool.producer().unwrap(), pool.consumer().unwrap());
    let expected = "TaskPool { len: 0, capacity: None, closed: false, .. } \
                    Producer { closed: false, .. } Consumer { closed: false, .. }";
    assert_eq!(text, expected);
    assert_eq!(format!("{:?}", PutError::Full("secret")), "Full(..)");
    assert!(PutError::Closed(1).to_string().contains("closed"));
    let builder = TaskPool::<u8>::builder();
    assert!(format!("{builder:?}").contains("balancing: true"), "{builder:?}");
    let builder = builder.balancing(false);
    assert!(format!("{builder:?}").contains("balancing: false"), "{builder:?}");
}

#[test]
fn a_consumer_is_iterated_over_until_the_pool_is_closed() {
    let pool = TaskPool::new();
    thread::scope(|scope| {
        let consumer = pool.consumer().unwrap();
        let sum = scope.spawn(move || {
            let mut sum = 0;
            for task in consumer {
                sum += task;
            }
            sum
        });
        pool.producer().unwrap().put_many(0..TASKS).unwrap();
        pool.close();
        assert_eq!(sum.join().unwrap(), TASKS * (TASKS - 1) / 2);
    });
    let mut rest: IntoIter<usize> = pool.consumer().unwrap().into_iter();
    assert_eq!((rest.next(), rest.next()), (None, None));
    assert_eq!(format!("{rest:?}"), "IntoIter(Consumer { closed: true, .. })");
}

#[test]
fn a_bounded_pool_is_one_with_a_capacity() {
    let pool = TaskPool::bounded(2);
    assert_eq!(pool.capacity(), Some(2));
    assert_eq!(pool.producer().unwrap().put_many([1, 2]), Ok(2));
    assert_eq!(pool.producer().unwrap().try_put(3), Err(PutError::Full(3)));
    let refused = std::panic::catch_unwind(|| TaskPool::<u8>::bounded(0));
    let payload = refused.unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&BuildError::ZeroCapacity.to_string()));
}

#[test]
fn a_get_ends_when_all_that_could_put_are_gone() {
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
}

#[test]
fn a_put_ends_when_all_that_could_take_are_gone() {
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
}

#[test]
fn a_pool_is_of_both_sides() {
    let pool = TaskPool::new();
    let mut producer = pool.producer().unwrap();
    let clone = pool.clone();
    drop((pool.consumer().unwrap(), pool));
    assert_eq!(producer.put(1), Ok(()));
    drop(producer);
    let mut consumer = clone.consumer().unwrap();
    assert_eq!((consumer.try_get(), consumer.try_get()), (Ok(1), Err(TryGetError::Empty)));
    // By hand it is closed, and stays so.
    let mut producer = clone.producer().unwrap();
    drop(clone.close_guard());
    drop((clone, consumer));
    assert_eq!(producer.put(2), Err(PutError::Closed(2)));
}

/// As channels' ends do, without `AssertUnwindSafe`.
#[test]
fn handles_go_through_a_panic() {
    let pool = TaskPool::new();
    let mut consumer = pool.consumer().unwrap();
    let produced = std::panic::catch_unwind(|| {
        let _closes = pool.close_guard();
        pool.producer().unwrap().put(1).unwrap();
        panic!("in the midst of it");
    });
    assert!(produced.is_err() && pool.is_closed());
    let taken = std::panic::catch_unwind(move || (consumer.get(), consumer.get()));
    assert_eq!(taken.unwrap(), (Ok(1), Err(Closed)));
}
