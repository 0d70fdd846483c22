//! What a program sees of a pool: blocking, closing, capacity, handles that come and go, bad input.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use poach_pool::{
    BuildError, Consumer, GetTimeoutError, IntoIter, Iter, Producer, PutError, TaskPool,
    TryGetError, TryIter,
};

use crate::watchdog::watched;

const TASKS: usize = if cfg!(miri) { 200 } else { 100_000 };

#[test]
fn what_is_put_comes_out_in_order_while_nobody_steals() {
    watched(|| {
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
    });
}

#[test]
fn tasks_may_come_before_any_consumer() {
    let pool = TaskPool::new();
    assert!(pool.producer().unwrap().put_many(0..10).is_ok());
    assert_eq!(pool.consumer().unwrap().drain().sum::<usize>(), 45);
}

#[test]
fn sleepers_are_woken_by_tasks_and_by_the_close() {
    watched(|| {
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
    });
}

#[test]
fn a_wait_ends_with_its_time() {
    watched(|| {
        let pool = TaskPool::<u8>::new();
        let mut consumer = pool.consumer().unwrap();
        let answer = consumer.get_timeout(Duration::from_millis(5));
        assert_eq!(answer, Err(GetTimeoutError::TimedOut));
        pool.producer().unwrap().put(9).unwrap();
        assert_eq!(consumer.get_timeout(Duration::ZERO), Ok(9));
    });
}

#[test]
fn a_full_pool_refuses_and_then_makes_room() {
    watched(|| {
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
    });
}

/// Each waiting consumer is room for a task, also if another consumer takes it.
#[test]
fn a_pool_holds_its_capacity_and_what_consumers_wait_for() {
    const CONSUMERS: usize = 3;
    const TASKS: u64 = if cfg!(miri) { 40 } else { 20_000 };
    for capacity in [1, 2, 8] {
        watched(move || {
            let pool = TaskPool::bounded(capacity);
            let consumers: Vec<_> = (0..CONSUMERS).map(|_| pool.consumer().unwrap()).collect();
            let producers: Vec<_> = (0..2).map(|_| pool.producer().unwrap()).collect();
            let [put, taken] = &[(); 2].map(|()| AtomicU64::new(0));
            let sum: u64 = thread::scope(|scope| {
                for (number, mut producer) in producers.into_iter().enumerate() {
                    scope.spawn(move || {
                        for task in (number as u64..TASKS).step_by(2) {
                            producer.put(task).unwrap();
                            let put = put.fetch_add(1, Relaxed) + 1;
                            // Each consumer may have a task that is not counted yet.
                            let most = (capacity + 2 * CONSUMERS) as u64;
                            assert!(put <= most + taken.load(Relaxed));
                        }
                    });
                }
                let takers = consumers.into_iter().enumerate().map(|(number, mut consumer)| {
                    scope.spawn(move || {
                        let patience = Duration::from_micros(10);
                        let mut sum = 0;
                        loop {
                            // One of them waits with deadlines, which is no room.
                            let got = match number {
                                0 => consumer.get_timeout(patience).ok(),
                                _ => consumer.get().ok(),
                            };
                            match got {
                                Some(task) => {
                                    taken.fetch_add(1, Relaxed);
                                    sum += task;
                                }
                                None if consumer.is_closed() && consumer.is_empty() => return sum,
                                None => {}
                            }
                        }
                    })
                });
                let takers: Vec<_> = takers.collect();
                takers.into_iter().map(|taker| taker.join().unwrap()).sum()
            });
            assert_eq!(sum, TASKS * (TASKS - 1) / 2);
        });
    }
}

#[test]
fn a_full_pool_holds_producers_back() {
    watched(|| {
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
    watched(|| {
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
    });
}

#[test]
fn tasks_of_any_kind_are_dropped_with_the_pool() {
    struct Large([Arc<()>; 4]);
    let witness = Arc::new(());
    let pool = TaskPool::builder().chunk_length(3).stays_open(true).build().unwrap();
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
    watched(|| {
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
    });
}

#[test]
fn a_bounded_pool_is_one_with_a_capacity() {
    let pool = TaskPool::bounded(2);
    assert_eq!(pool.capacity(), Some(2));
    let mut producer = pool.producer().unwrap();
    assert_eq!(producer.put_many([1, 2]), Ok(2));
    assert_eq!(pool.producer().unwrap().try_put(3), Err(PutError::Full(3)));
    let refused = std::panic::catch_unwind(|| TaskPool::<u8>::bounded(0));
    let payload = refused.unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&BuildError::ZeroCapacity.to_string()));
}

#[test]
fn clones_are_handles_of_their_own() {
    watched(|| {
        let pool = TaskPool::builder().chunk_length(4).build().unwrap();
        let (producer, consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        drop(pool);
        let sum: usize = thread::scope(|scope| {
            for part in 0..3 {
                let mut producer = producer.try_clone().unwrap();
                scope.spawn(move || producer.put_many((part..300).step_by(3)).unwrap());
            }
            let takes: Vec<_> = (0..2)
                .map(|_| {
                    let consumer = consumer.try_clone().unwrap();
                    scope.spawn(move || consumer.into_iter().sum::<usize>())
                })
                .collect();
            drop((producer, consumer.clone(), consumer));
            takes.into_iter().map(|take| take.join().unwrap()).sum()
        });
        assert_eq!(sum, (0..300).sum());
    });
}

#[test]
fn a_put_waits_no_longer_than_it_may() {
    watched(|| {
        let pool = TaskPool::bounded(1);
        let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        let past = Instant::now();
        assert_eq!(producer.put_timeout(1, Duration::ZERO), Ok(()));
        for timeout in [Duration::ZERO, Duration::from_millis(2)] {
            let began = Instant::now();
            assert_eq!(producer.put_timeout(2, timeout), Err(PutError::TimedOut(2)));
            assert!(began.elapsed() >= timeout);
        }
        assert_eq!(producer.put_deadline(2, past), Err(PutError::TimedOut(2)));
        thread::scope(|scope| {
            let waits = scope.spawn(|| producer.put_timeout(3, Duration::MAX));
            thread::yield_now();
            assert_eq!(consumer.get(), Ok(1));
            assert_eq!(waits.join().unwrap(), Ok(()));
        });
        assert_eq!(consumer.get_deadline(past), Ok(3));
        assert_eq!(consumer.get_deadline(past), Err(GetTimeoutError::TimedOut));
        pool.close();
        assert_eq!(producer.put_deadline(4, past), Err(PutError::Closed(4)));
        assert_eq!(consumer.get_deadline(past), Err(GetTimeoutError::Closed));
    });
}

#[test]
fn a_get_that_may_wait_for_ever_waits_until_there_is_a_task() {
    watched(|| {
        let pool = TaskPool::new();
        let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        thread::scope(|scope| {
            let waits = scope.spawn(move || consumer.get_timeout(Duration::MAX));
            // Long enough that a get that gives up at once has often done so.
            thread::sleep(Duration::from_millis(if cfg!(miri) { 1 } else { 50 }));
            producer.put(7).unwrap();
            assert_eq!(waits.join().unwrap(), Ok(7));
        });
    });
}

#[test]
fn handles_tell_of_their_pool_and_close_it() {
    let pool = TaskPool::bounded(2);
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    let told = |producer: &Producer<_>, consumer: &Consumer<_>| {
        let by_producer = (producer.len(), producer.is_empty(), producer.is_full());
        assert_eq!(by_producer, (consumer.len(), consumer.is_empty(), consumer.is_full()));
        assert_eq!(by_producer, (pool.len(), pool.is_empty(), pool.is_full()));
        assert_eq!((producer.capacity(), consumer.capacity()), (Some(2), Some(2)));
        by_producer
    };
    assert_eq!(told(&producer, &consumer), (0, true, false));
    producer.put(1).unwrap();
    assert_eq!(told(&producer, &consumer), (1, false, false));
    producer.put(2).unwrap();
    assert_eq!(told(&producer, &consumer), (2, false, true));
    assert!(consumer.try_iter().eq(1..=2));
    assert_eq!(told(&producer, &consumer), (0, true, false));
    assert!(!producer.is_closed() && !consumer.is_closed());
    assert!(producer.close() && !consumer.close() && !pool.close());
    assert!(producer.is_closed() && consumer.is_closed());
    assert!(TaskPool::<u8>::new().producer().unwrap().capacity().is_none());
    assert!(TaskPool::<u8>::new().consumer().unwrap().close());
}

#[test]
fn a_consumer_is_lent_to_a_loop() {
    watched(|| {
        let pool = TaskPool::new();
        let mut consumer = pool.consumer().unwrap();
        pool.producer().unwrap().put_many(1..=6).unwrap();
        let mut seen = Vec::new();
        for task in &mut consumer {
            seen.push(task);
            if task == 3 {
                break;
            }
        }
        seen.extend(consumer.try_iter().take(1));
        let mut rest: Iter<'_, _> = consumer.iter();
        assert_eq!(format!("{rest:?}"), "Iter(Consumer { closed: true, .. })");
        seen.extend(rest.by_ref());
        assert!(seen.into_iter().eq(1..=6));
        assert_eq!((rest.next(), rest.next()), (None, None));
        let tries: TryIter<'_, _> = consumer.drain();
        assert_eq!(format!("{tries:?}"), "TryIter(Consumer { closed: true, .. })");
    });
}

#[test]
fn the_room_of_each_task_is_given_back() {
    watched(|| {
        let pool = TaskPool::bounded(4);
        let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        let fill = |producer: &mut Producer<u8>| {
            (0..9).take_while(|_| producer.try_put(0).is_ok()).count()
        };
        let take: [fn(&mut Consumer<u8>); 7] = [
            |from| assert_eq!(from.get_many(4, &mut Vec::new()), Ok(4)),
            |from| assert_eq!(from.try_iter().count(), 4),
            |from| assert_eq!(from.iter().take(4).count(), 4),
            |from| (0..4).for_each(|_| _ = from.get().unwrap()),
            |from| (0..4).for_each(|_| _ = from.try_get().unwrap()),
            |from| (0..4).for_each(|_| _ = from.get_timeout(Duration::ZERO).unwrap()),
            |from| (0..4).for_each(|_| _ = from.get_deadline(Instant::now()).unwrap()),
        ];
        for (number, take) in take.iter().enumerate() {
            assert_eq!(fill(&mut producer), 4, "before {number}");
            take(&mut consumer);
            assert!(!pool.is_full(), "after {number}");
        }
        assert_eq!(fill(&mut producer), 4);
    });
}

/// A task of 64 KiB: a put and a get, with their callers' own task and result, have room on a stack
/// of four such tasks and a little, without optimisation.
#[test]
fn a_large_task_needs_little_stack() {
    const SIZE: usize = 1 << 16;
    type Large = [u8; SIZE];
    #[expect(clippy::large_stack_arrays, reason = "that is what is measured")]
    #[inline(never)]
    fn put(to: &mut Producer<Large>) {
        assert!(to.put([7; SIZE]).is_ok());
    }
    #[inline(never)]
    fn get(from: &mut Consumer<Large>) {
        assert!(from.get().is_ok_and(|task| task[9] == 7));
    }
    for capacity in [None, Some(3)] {
        let builder = TaskPool::builder().chunk_length(4);
        let builder = match capacity {
            Some(capacity) => builder.capacity(capacity),
            None => builder,
        };
        let pool = builder.build().unwrap();
        let mut producer = pool.producer().unwrap();
        let mut consumers = [(); 2].map(|()| pool.consumer().unwrap());
        // An overflow ends the program, and names the thread.
        let name = String::from("a_large_task_needs_little_stack");
        let small = thread::Builder::new().name(name).stack_size(4 * SIZE + (48 << 10));
        let run = move || {
            let [owner, thief] = &mut consumers;
            put(&mut producer);
            get(owner);
            put(&mut producer);
            get(owner);
            // Found, stolen, and the last of the chunk.
            put(&mut producer);
            get(thief);
            put(&mut producer);
            get(owner);
        };
        small.spawn(run).unwrap().join().unwrap();
    }
}

#[test]
fn there_may_be_more_consumers_than_single_consumer_pools() {
    const CONSUMERS: usize = if cfg!(miri) { 600 } else { 3_000 };
    let pool = TaskPool::builder().chunk_length(4).build().unwrap();
    let mut consumers: Vec<_> = (0..CONSUMERS).map(|_| pool.consumer().unwrap()).collect();
    let mut producer = pool.producer().unwrap();
    producer.put_many(0..CONSUMERS).unwrap();
    let mut got: Vec<_> =
        consumers.iter_mut().map(|consumer| consumer.try_get().unwrap()).collect();
    got.sort_unstable();
    assert!(got.into_iter().eq(0..CONSUMERS));
    assert!(consumers.iter_mut().all(|consumer| consumer.try_get() == Err(TryGetError::Empty)));
    producer.put(7).unwrap();
    assert_eq!(consumers[CONSUMERS - 1].get(), Ok(7));
    pool.close();
    assert!(consumers.into_iter().all(|consumer| consumer.into_iter().next().is_none()));
}

#[test]
fn a_pool_without_a_capacity_is_never_full() {
    let pool = TaskPool::builder().chunk_length(1).build().unwrap();
    let (mut producer, consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    for task in 0..10 {
        assert_eq!([producer.is_full(), consumer.is_full(), pool.is_full()], [false; 3]);
        producer.try_put(task).unwrap();
    }
    assert_eq!((pool.len(), pool.capacity()), (10, None));
}
