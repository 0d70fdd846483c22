//! Futures, streams, sinks and selections: woken by a task, by room, by the close.

#![forbid(unsafe_code)]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use futures_core::Stream;
use futures_core::stream::FusedStream;
use futures_sink::Sink;
use poach_pool::{
    Closed, Get, OwnedGet, OwnedPut, Put, PutError, SelectTimeoutError, Selector, TaskPool,
    TaskSink, TaskStream, TryGetError,
};

use crate::watchdog::watched;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counted() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

#[test]
fn a_put_wakes_one_that_waits() {
    let pool = TaskPool::new();
    let (mut first, mut second) = (pool.consumer().unwrap(), pool.consumer().unwrap());
    let mut producer = pool.producer().unwrap();
    let ((woken_first, first_waker), (woken_second, second_waker)) = (counted(), counted());
    let (mut first, mut second) = (pin!(first.get_async()), pin!(second.get_async()));
    assert!(first.as_mut().poll(&mut Context::from_waker(&first_waker)).is_pending());
    assert!(second.as_mut().poll(&mut Context::from_waker(&second_waker)).is_pending());
    producer.put(1).unwrap();
    let woken = || (woken_first.0.load(Ordering::Relaxed), woken_second.0.load(Ordering::Relaxed));
    assert_eq!(woken(), (1, 0));
    assert_eq!(first.as_mut().poll(&mut Context::from_waker(&first_waker)), Poll::Ready(Ok(1)));
    assert_eq!(woken(), (1, 0));
    pool.close();
    assert_eq!(woken(), (1, 1));
    assert_eq!(
        second.as_mut().poll(&mut Context::from_waker(&second_waker)),
        Poll::Ready(Err(Closed))
    );
}

#[test]
fn a_future_that_is_dropped_wakes_another_in_its_place() {
    let pool = TaskPool::new();
    let (mut first, mut second) = (pool.consumer().unwrap(), pool.consumer().unwrap());
    let mut producer = pool.producer().unwrap();
    let ((_, first_waker), (woken_second, second_waker)) = (counted(), counted());
    let mut second = pin!(second.get_async());
    {
        let mut first = pin!(first.get_async());
        assert!(first.as_mut().poll(&mut Context::from_waker(&first_waker)).is_pending());
        assert!(second.as_mut().poll(&mut Context::from_waker(&second_waker)).is_pending());
        producer.put(5).unwrap();
    }
    assert_eq!(woken_second.0.load(Ordering::Relaxed), 1);
    assert_eq!(second.as_mut().poll(&mut Context::from_waker(&second_waker)), Poll::Ready(Ok(5)));
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

#[test]
fn every_task_is_awaited_once() {
    watched(|| {
        const TASKS: u64 = if cfg!(miri) { 100 } else { 50_000 };
        let pool = TaskPool::new();
        let sum: u64 = thread::scope(|scope| {
            let consumers: Vec<_> = (0..2)
                .map(|_| {
                    let mut consumer = pool.consumer().unwrap();
                    scope.spawn(move || {
                        block_on(async {
                            let mut sum = 0;
                            while let Ok(task) = consumer.get_async().await {
                                sum += task;
                            }
                            sum
                        })
                    })
                })
                .collect();
            let mut producer = pool.producer().unwrap();
            for task in 0..TASKS {
                producer.put(task).unwrap();
                if task % 500 == 0 {
                    thread::yield_now();
                }
            }
            pool.close();
            consumers.into_iter().map(|consumer| consumer.join().unwrap()).sum()
        });
        assert_eq!(sum, (0..TASKS).sum());
    });
}

#[test]
fn room_wakes_a_put_that_waits_and_one_that_is_dropped_wakes_another() {
    watched(|| {
        let pool = TaskPool::builder().capacity(1).build().unwrap();
        let mut producers = [(); 3].map(|()| pool.producer().unwrap());
        let mut consumer = pool.consumer().unwrap();
        let [first, second, third] = &mut producers;
        first.put(1).unwrap();
        let ((_, first_waker), (woken, second_waker)) = (counted(), counted());
        let mut second = pin!(second.put_async(2));
        {
            let mut dropped = pin!(third.put_async(3));
            assert!(dropped.as_mut().poll(&mut Context::from_waker(&first_waker)).is_pending());
            assert!(second.as_mut().poll(&mut Context::from_waker(&second_waker)).is_pending());
            assert_eq!(consumer.get(), Ok(1));
            assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        }
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        let done = second.as_mut().poll(&mut Context::from_waker(&second_waker));
        assert!(matches!(done, Poll::Ready(Ok(()))));
        assert_eq!(consumer.get(), Ok(2));
        assert!(
            format!("{pool:?}").contains("len: 0, capacity: Some(1), closed: false"),
            "{pool:?}"
        );
        pool.close();
        let late = pin!(first.put_async(4)).poll(&mut Context::from_waker(&first_waker));
        assert!(matches!(late, Poll::Ready(Err(PutError::Closed(4)))));
    });
}

#[test]
fn a_put_that_was_woken_for_room_and_has_it_wakes_no_other() {
    let pool = TaskPool::builder().capacity(1).build().unwrap();
    let mut producers = [(); 3].map(|()| pool.producer().unwrap());
    let mut consumer = pool.consumer().unwrap();
    let [first, second, third] = &mut producers;
    first.put(1).unwrap();
    let ((woken_second, second_waker), (woken_third, third_waker)) = (counted(), counted());
    let (mut second, mut third) = (pin!(second.put_async(2)), pin!(third.put_async(3)));
    assert!(second.as_mut().poll(&mut Context::from_waker(&second_waker)).is_pending());
    assert!(third.as_mut().poll(&mut Context::from_waker(&third_waker)).is_pending());
    assert_eq!(consumer.get(), Ok(1));
    assert!(second.as_mut().poll(&mut Context::from_waker(&second_waker)).is_ready());
    let woken = [woken_second, woken_third].map(|count| count.0.load(Ordering::Relaxed));
    assert_eq!(woken, [1, 0]);
}

struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("a waker panics");
    }
}

#[test]
fn a_waker_that_panics_takes_no_task_with_it() {
    watched(|| {
        let pool = TaskPool::builder().capacity(1).build().unwrap();
        let mut producers = [(); 2].map(|()| pool.producer().unwrap());
        let mut consumer = pool.consumer().unwrap();
        let [first, second] = &mut producers;
        first.put(Box::new(1)).unwrap();
        let mut waits = pin!(second.put_async(Box::new(2)));
        let bomb = Waker::from(Arc::new(Bomb));
        assert!(waits.as_mut().poll(&mut Context::from_waker(&bomb)).is_pending());
        assert!(catch_unwind(AssertUnwindSafe(|| consumer.try_get())).is_err());
        // The pool counts the task out all the same, and once.
        first.try_put(Box::new(3)).unwrap();
        assert!(matches!(first.try_put(Box::new(4)), Err(PutError::Full(_))));
        pool.close();
        let taken: Vec<_> = consumer.iter().map(|task| *task).collect();
        assert_eq!(taken, [1, 3]);
    });
}

/// Polls with a waker that counts how often it is woken, and another.
fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

fn woken(count: &Arc<Count>) -> usize {
    count.0.load(Ordering::Relaxed)
}

#[test]
fn who_polls_last_is_woken() {
    let pool = TaskPool::bounded(1);
    let mut producers = [(); 2].map(|()| pool.producer().unwrap());
    let mut consumer = pool.consumer().unwrap();
    let ((old, old_waker), (new, new_waker)) = (counted(), counted());
    let [first, second] = &mut producers;
    {
        let mut get: Get<'_, _> = consumer.get_async();
        assert!(poll(&mut get, &old_waker).is_pending() && poll(&mut get, &new_waker).is_pending());
        first.put(1).unwrap();
        assert_eq!((woken(&old), woken(&new)), (0, 1));
        assert_eq!(poll(&mut get, &old_waker), Poll::Ready(Ok(1)));
    }
    first.put(2).unwrap();
    let mut put: Put<'_, _> = second.put_async(3);
    assert!(poll(&mut put, &old_waker).is_pending() && poll(&mut put, &new_waker).is_pending());
    assert_eq!(consumer.get(), Ok(2));
    assert_eq!((woken(&old), woken(&new)), (0, 2));
    assert_eq!(poll(&mut put, &old_waker), Poll::Ready(Ok(())));
}

#[test]
fn the_close_wakes_each_future() {
    let (full, empty) = (TaskPool::bounded(1), TaskPool::<u8>::new());
    let mut producers = [(); 4].map(|()| full.producer().unwrap());
    let _consumer = full.consumer().unwrap();
    let mut consumers = [(); 3].map(|()| empty.consumer().unwrap());
    let _producer = empty.producer().unwrap();
    let [first, others @ ..] = &mut producers;
    first.put(0).unwrap();
    let wakers = [(); 6].map(|()| counted());
    let mut puts = others.each_mut().map(|producer| producer.put_async(1));
    let mut gets = consumers.each_mut().map(|consumer| consumer.get_async());
    for (put, (_, waker)) in puts.iter_mut().zip(&wakers) {
        assert!(poll(put, waker).is_pending());
    }
    for (get, (_, waker)) in gets.iter_mut().zip(&wakers[3..]) {
        assert!(poll(get, waker).is_pending());
    }
    assert!(full.close() && empty.close());
    assert_eq!(wakers.each_ref().map(|(count, _)| woken(count)), [1; 6]);
    for (put, (_, waker)) in puts.iter_mut().zip(&wakers) {
        assert_eq!(poll(put, waker), Poll::Ready(Err(PutError::Closed(1))));
    }
    for (get, (_, waker)) in gets.iter_mut().zip(&wakers) {
        assert_eq!(poll(get, waker), Poll::Ready(Err(Closed)));
    }
}

#[test]
fn an_owned_future_gives_its_handle_back() {
    watched(|| {
        let pool = TaskPool::bounded(1);
        let ((count, waker), (other, other_waker)) = (counted(), counted());
        let mut get: OwnedGet<_> = pool.consumer().unwrap().into_get_async();
        assert!(poll(&mut get, &waker).is_pending());
        let mut put: OwnedPut<_> = pool.producer().unwrap().into_put_async(1);
        let Poll::Ready((producer, Ok(()))) = poll(&mut put, &waker) else {
            panic!("there is room")
        };
        assert_eq!(woken(&count), 1);
        let Poll::Ready((consumer, Ok(1))) = poll(&mut get, &waker) else {
            panic!("there is a task")
        };
        assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut get, &waker))).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut put, &waker))).is_err());
        // A dropped future passes its wake-up on.
        let mut dropped = consumer.clone().into_get_async();
        let mut get = consumer.into_get_async();
        assert!(
            poll(&mut dropped, &waker).is_pending() && poll(&mut get, &other_waker).is_pending()
        );
        let Poll::Ready((mut producer, Ok(()))) = poll(&mut producer.into_put_async(2), &waker)
        else {
            panic!("there is room")
        };
        assert_eq!((woken(&count), woken(&other)), (2, 0));
        drop(dropped);
        assert_eq!(woken(&other), 1);
        let Poll::Ready((mut consumer, Ok(2))) = poll(&mut get, &waker) else { panic!("a task") };
        producer.put(3).unwrap();
        let mut dropped = producer.clone().into_put_async(4);
        let mut put = producer.into_put_async(5);
        assert!(
            poll(&mut dropped, &waker).is_pending() && poll(&mut put, &other_waker).is_pending()
        );
        assert_eq!(consumer.get(), Ok(3));
        drop(dropped);
        assert_eq!(woken(&other), 2);
        assert!(poll(&mut put, &waker).is_ready());
        assert!(consumer.iter().eq([5]));
    });
}

#[test]
fn a_future_that_has_been_ready_is_not_polled_again() {
    let pool = TaskPool::new();
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    let mut put = producer.put_async(1);
    assert_eq!(poll(&mut put, Waker::noop()), Poll::Ready(Ok(())));
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut put, Waker::noop()))).is_err());
    drop(put);
    producer.put(2).unwrap();
    let mut select = Selector::new().get(&mut consumer, |task| task);
    assert_eq!(poll(&mut select, Waker::noop()), Poll::Ready(Ok(1)));
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut select, Waker::noop()))).is_err());
    drop(select);
    assert_eq!(consumer.try_get(), Ok(2));
}

fn next<S: Stream + Unpin>(stream: &mut S, waker: &Waker) -> Poll<Option<S::Item>> {
    Pin::new(stream).poll_next(&mut Context::from_waker(waker))
}

#[test]
fn a_stream_has_all_tasks_and_then_ends() {
    let pool = TaskPool::new();
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    let (count, waker) = counted();
    {
        let mut stream: TaskStream<_, &mut _> = consumer.stream();
        assert!(next(&mut stream, &waker).is_pending() && !stream.is_terminated());
        producer.put_many([1, 2]).unwrap();
        assert_eq!((woken(&count), next(&mut stream, &waker)), (1, Poll::Ready(Some(1))));
    }
    // A waiting stream that is dropped passes its wake-up on.
    let (other, other_waker) = counted();
    let mut dropped = consumer.clone().into_stream();
    let mut stream: TaskStream<_> = consumer.into_stream();
    assert_eq!(next(&mut stream, &waker), Poll::Ready(Some(2)));
    assert!(
        next(&mut dropped, &waker).is_pending() && next(&mut stream, &other_waker).is_pending()
    );
    producer.put(3).unwrap();
    assert_eq!((woken(&count), woken(&other)), (2, 0));
    drop(dropped);
    assert_eq!((woken(&other), next(&mut stream, &other_waker)), (1, Poll::Ready(Some(3))));
    assert!(next(&mut stream, &other_waker).is_pending());
    drop(producer);
    assert_eq!((woken(&other), next(&mut stream, &other_waker)), (2, Poll::Ready(None)));
    assert!(stream.is_terminated() && next(&mut stream, &other_waker) == Poll::Ready(None));
    assert_eq!(format!("{stream:?}"), "TaskStream { ended: true, .. }");
}

#[test]
fn a_sink_puts_what_it_is_sent() {
    let pool = TaskPool::bounded(1);
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    let (count, waker) = counted();
    let mut context = Context::from_waker(&waker);
    {
        let mut sink: TaskSink<_, &mut _> = producer.sink();
        for task in [1, 2] {
            assert_eq!(Pin::new(&mut sink).poll_ready(&mut context), Poll::Ready(Ok(())));
            assert_eq!(Pin::new(&mut sink).start_send(task), Ok(()));
        }
        assert_eq!(format!("{sink:?}"), "TaskSink { full: true, .. }");
        assert!(Pin::new(&mut sink).poll_ready(&mut context).is_pending());
        assert!(Pin::new(&mut sink).poll_flush(&mut context).is_pending());
        assert_eq!((consumer.get(), woken(&count)), (Ok(1), 1));
        assert_eq!(Pin::new(&mut sink).poll_flush(&mut context), Poll::Ready(Ok(())));
        assert_eq!(Pin::new(&mut sink).poll_close(&mut context), Poll::Ready(Ok(())));
    }
    assert_eq!((consumer.get(), consumer.try_get()), (Ok(2), Err(TryGetError::Empty)));
    let mut sink: TaskSink<_> = producer.into_sink();
    assert_eq!(Pin::new(&mut sink).start_send(3), Ok(()));
    assert_eq!(Pin::new(&mut sink).start_send(4), Ok(()));
    assert!(catch_unwind(AssertUnwindSafe(|| Pin::new(&mut sink).start_send(5))).is_err());
    assert!(Pin::new(&mut sink).poll_close(&mut context).is_pending());
    // A dropped future passes its wake-up on, and its task is dropped with it.
    let (other, other_waker) = counted();
    let mut producer = pool.producer().unwrap();
    let mut put = producer.put_async(6);
    assert!(poll(&mut put, &other_waker).is_pending());
    assert_eq!(consumer.get(), Ok(3));
    drop(sink);
    assert_eq!((woken(&other), poll(&mut put, &other_waker)), (1, Poll::Ready(Ok(()))));
    drop(put);
    drop(consumer);
    let mut sink = producer.into_sink();
    assert_eq!(Pin::new(&mut sink).start_send(7), Err(PutError::NoConsumer(7)));
    assert_eq!(Pin::new(&mut sink).poll_ready(&mut context), Poll::Ready(Ok(())));
}

#[test]
fn a_selection_does_the_first_that_can_be_done_and_no_other() {
    watched(|| {
        let (left, right) = (TaskPool::new(), TaskPool::bounded(1));
        let (mut to_left, mut to_right) = (left.producer().unwrap(), right.producer().unwrap());
        let (mut from_left, mut from_right) = (left.consumer().unwrap(), right.consumer().unwrap());
        to_left.put(1).unwrap();
        to_right.put(2).unwrap();
        let mut others = right.producer().unwrap();
        let mut seen = [0; 3];
        for _ in 0..30 {
            let which = Selector::new()
                .get(&mut from_left, |task| (0, task))
                .get(&mut from_right, |task| (1, task))
                .put(&mut others, 3, |put| (2, put.map(|()| 3).map_err(|_| Closed)))
                .wait();
            seen[which.0] += 1;
            match which {
                (0, Ok(1)) => to_left.put(1).unwrap(),
                (1, Ok(2 | 3)) => to_right.put(2).unwrap(),
                other => panic!("{other:?}"),
            }
        }
        // In turn, as each can be done; the put never can.
        assert!(seen[0] >= 5 && seen[1] >= 5 && seen[2] == 0, "{seen:?}");
        assert_eq!((from_left.try_iter().count(), from_right.try_iter().count()), (1, 1));
        let put = Selector::default().put(&mut others, 4, |put| put).try_wait();
        assert_eq!((put, from_right.try_get()), (Ok(Ok(())), Ok(4)));
    });
}

#[test]
fn a_selection_of_threads_sleeps_until_one_can_be_done() {
    watched(|| {
        const TASKS: usize = if cfg!(miri) { 20 } else { 2000 };
        let (left, right) = (TaskPool::new(), TaskPool::bounded(2));
        let (mut from_left, mut from_right) = (left.consumer().unwrap(), right.consumer().unwrap());
        let (mut to_left, mut to_right) = (left.producer().unwrap(), right.producer().unwrap());
        thread::scope(|scope| {
            scope.spawn(move || (0..TASKS).for_each(|task| to_left.put(task).unwrap()));
            scope.spawn(move || (0..TASKS).for_each(|task| to_right.put(task).unwrap()));
            let (mut taken, mut closed) = ([0; 2], [false; 2]);
            while closed != [true; 2] {
                let mut selector = Selector::new();
                if !closed[0] {
                    selector = selector.get(&mut from_left, |task| (0, task));
                }
                if !closed[1] {
                    selector = selector.get(&mut from_right, |task| (1, task));
                }
                match selector.wait_timeout(Duration::MAX) {
                    Ok((which, Ok(_))) => taken[which] += 1,
                    Ok((which, Err(Closed))) => closed[which] = true,
                    Err(SelectTimeoutError) => panic!("that time cannot be up"),
                }
            }
            assert_eq!(taken, [TASKS; 2]);
        });
    });
}

#[test]
fn a_selection_is_a_future_and_loses_nothing_if_it_is_dropped() {
    let pools = [(); 2].map(|()| TaskPool::new());
    let mut consumers = pools.each_ref().map(|pool| pool.consumer().unwrap());
    let mut other = pools[1].consumer().unwrap();
    let mut producers = pools.each_ref().map(|pool| pool.producer().unwrap());
    let [first, second] = &mut consumers;
    let ((count, waker), (next, next_waker)) = (counted(), counted());
    let mut selector = Selector::new().get(first, |task| task).get(second, |task| task);
    assert_eq!(format!("{selector:?}"), "Selector { operations: 2, .. }");
    assert!(poll(&mut selector, &waker).is_pending());
    let mut get = other.get_async();
    assert!(poll(&mut get, &next_waker).is_pending());
    producers[1].put(5).unwrap();
    assert_eq!((woken(&count), woken(&next)), (1, 0));
    drop(selector);
    assert_eq!((woken(&next), poll(&mut get, &next_waker)), (1, Poll::Ready(Ok(5))));
    let mut selector = Selector::new().get(first, |task| task).get(second, |task| task);
    assert!(poll(&mut selector, &waker).is_pending());
    producers[0].put(6).unwrap();
    assert_eq!(poll(&mut selector, &waker), Poll::Ready(Ok(6)));
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut selector, &waker))).is_err());
}

#[test]
fn a_selection_among_nothing_or_among_the_gone() {
    watched(|| {
        assert!(catch_unwind(|| Selector::<()>::new().wait()).is_err());
        assert_eq!(Selector::<()>::new().try_wait(), Err(SelectTimeoutError));
        assert_eq!(Selector::<()>::new().wait_timeout(Duration::ZERO), Err(SelectTimeoutError));
        assert_eq!(Selector::<()>::new().wait_deadline(Instant::now()), Err(SelectTimeoutError));
        assert!(poll(&mut Selector::<()>::new(), Waker::noop()).is_pending());
        let pool = TaskPool::<u8>::new();
        let (producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        let past = Instant::now();
        let got = Selector::new().get(&mut consumer, |task| task).wait_deadline(past);
        assert_eq!(got, Err(SelectTimeoutError));
        assert!(SelectTimeoutError.to_string().contains("in time"));
        drop(producer);
        assert_eq!(Selector::new().get(&mut consumer, |task| task).wait(), Err(Closed));
        let full = TaskPool::bounded(1);
        let (mut producer, consumer) = (full.producer().unwrap(), full.consumer().unwrap());
        producer.put(1).unwrap();
        assert_eq!(
            Selector::new().put(&mut producer, 2, |put| put).try_wait(),
            Err(SelectTimeoutError)
        );
        drop(consumer);
        let put = Selector::new().put(&mut producer, 2, |put| put).wait();
        assert_eq!(put, Err(PutError::NoConsumer(2)));
    });
}

#[test]
fn a_selection_waits_as_long_as_it_may() {
    watched(|| {
        let pool = TaskPool::new();
        let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        let (began, timeout) = (Instant::now(), Duration::from_millis(2));
        let none = Selector::new().get(&mut consumer, |task| task).wait_timeout(timeout);
        assert!(none == Err(SelectTimeoutError) && began.elapsed() >= timeout);
        thread::scope(|scope| {
            let selector = Selector::new().get(&mut consumer, |task| task);
            let waits = scope.spawn(move || selector.wait_timeout(Duration::from_secs(3600)));
            // Long enough that a get that gives up at once has often done so.
            thread::sleep(Duration::from_millis(if cfg!(miri) { 1 } else { 50 }));
            producer.put(1).unwrap();
            assert_eq!(waits.join().unwrap(), Ok(Ok(1)));
        });
    });
}

#[test]
fn a_poll_costs_the_same_whoever_else_waits() {
    const WAITERS: usize = if cfg!(miri) { 70 } else { 100_000 };
    const TASKS: usize = if cfg!(miri) { 10 } else { 1_000 };
    // A pool's distance is asked for when it is first looked at.
    let pools = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&pools);
    let distance = move |_, pool| {
        asked.fetch_max(pool + 1, Ordering::Relaxed);
        0
    };
    let pool = TaskPool::builder().distance(distance).build().unwrap();
    let mut consumers: Vec<_> = (0..WAITERS).map(|_| pool.consumer().unwrap()).collect();
    let (woken, waker) = counted();
    let context = &mut Context::from_waker(&waker);
    let mut waiting: Vec<_> =
        consumers.iter_mut().map(|consumer| Box::pin(consumer.get_async())).collect();
    assert!(waiting.iter_mut().all(|get| get.as_mut().poll(context).is_pending()));
    // A new home: the consumer that gets its seat asks again how far each pool is.
    pools.store(0, Ordering::Relaxed);
    let mut late = pool.consumer_at(1).unwrap();
    assert!(pin!(late.get_async()).poll(context).is_pending());
    let looked_at = pools.load(Ordering::Relaxed);
    assert!(looked_at < 10, "{looked_at} pools for one poll");
    let mut producer = pool.producer().unwrap();
    let mut sum = 0;
    for (task, get) in waiting.iter_mut().enumerate().take(TASKS) {
        producer.put(task).unwrap();
        assert_eq!(woken.0.load(Ordering::Relaxed), task + 1);
        match get.as_mut().poll(context) {
            Poll::Ready(Ok(task)) => sum += task,
            other => panic!("{other:?} at {task}"),
        }
    }
    assert_eq!(sum, (0..TASKS).sum());
    // Those in the middle go, and the close wakes all that are left.
    waiting.truncate(TASKS + 50);
    pool.close();
    assert_eq!(woken.0.load(Ordering::Relaxed), TASKS + 50);
    let closed = Poll::Ready(Err(Closed));
    assert!(waiting[TASKS..].iter_mut().all(|get| get.as_mut().poll(context) == closed));
}

#[test]
fn a_get_that_is_polled_by_chance_keeps_its_turn_and_has_its_last_waker_woken() {
    let pool = TaskPool::new();
    let (mut first, mut second) = (pool.consumer().unwrap(), pool.consumer().unwrap());
    let (mut first, mut second) = (pin!(first.get_async()), pin!(second.get_async()));
    let wakers = [(); 3].map(|()| counted());
    let mut contexts = wakers.each_ref().map(|(_, waker)| Context::from_waker(waker));
    assert!(first.as_mut().poll(&mut contexts[0]).is_pending());
    assert!(second.as_mut().poll(&mut contexts[1]).is_pending());
    assert!(first.as_mut().poll(&mut contexts[2]).is_pending());
    let mut producer = pool.producer().unwrap();
    producer.put(1).unwrap();
    let woken = wakers.each_ref().map(|(woken, _)| woken.0.load(Ordering::Relaxed));
    assert_eq!(woken, [0, 0, 1]);
    assert_eq!(first.as_mut().poll(&mut contexts[2]), Poll::Ready(Ok(1)));
}
