//! `get_async`: woken by a task, by the close, and never to a task's loss.

#![forbid(unsafe_code)]
#![cfg(feature = "async")]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use poach_pool::{Closed, PutError, TaskPool};

/// Counts how often it is woken.
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
    let ((woken_first, first_waker), (woken_second, second_waker)) = (counted(), counted());
    let (mut first, mut second) = (pin!(first.get_async()), pin!(second.get_async()));
    assert!(first.as_mut().poll(&mut Context::from_waker(&first_waker)).is_pending());
    assert!(second.as_mut().poll(&mut Context::from_waker(&second_waker)).is_pending());
    pool.producer().unwrap().put(1).unwrap();
    let woken = || (woken_first.0.load(Ordering::Relaxed), woken_second.0.load(Ordering::Relaxed));
    assert_eq!(woken(), (1, 0));
    assert_eq!(first.as_mut().poll(&mut Context::from_waker(&first_waker)), Poll::Ready(Ok(1)));
    // It has what it was woken for.
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
    let ((_, first_waker), (woken_second, second_waker)) = (counted(), counted());
    let mut second = pin!(second.get_async());
    {
        let mut first = pin!(first.get_async());
        assert!(first.as_mut().poll(&mut Context::from_waker(&first_waker)).is_pending());
        assert!(second.as_mut().poll(&mut Context::from_waker(&second_waker)).is_pending());
        pool.producer().unwrap().put(5).unwrap();
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
}

#[test]
fn room_wakes_a_put_that_waits_and_one_that_is_dropped_wakes_another() {
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
    assert!(format!("{pool:?}").contains("len: 0, capacity: Some(1), closed: false"), "{pool:?}");
    pool.close();
    let late = pin!(first.put_async(4)).poll(&mut Context::from_waker(&first_waker));
    assert!(matches!(late, Poll::Ready(Err(PutError::Closed(4)))));
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

/// Panics each time that it is woken.
struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("a waker panics");
    }
}

#[test]
fn a_waker_that_panics_takes_no_task_with_it() {
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
}
