//! Handles: joined, awaited, asked, cancelled, dropped.

#![forbid(unsafe_code)]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use poach_runtime::{JoinHandle, ThreadPool, spawn_handle};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// Wakes a thread, and counts how often.
struct Alarm(Thread, AtomicUsize);

impl Alarm {
    fn here() -> Arc<Alarm> {
        Arc::new(Alarm(thread::current(), AtomicUsize::new(0)))
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Alarm::here().into();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// A task that occupies the one worker of its pool until the sender is dropped.
fn occupy(pool: &ThreadPool) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (release, hold) = mpsc::channel::<()>();
    let (tell, started) = mpsc::channel();
    let handle = pool.spawn_handle(move || {
        tell.send(()).unwrap();
        _ = hold.recv();
    });
    started.recv().unwrap();
    (release, handle)
}

#[test]
fn a_handle_is_a_future() {
    let pool = pool(2);
    for i in 0..if cfg!(miri) { 5 } else { 500 } {
        assert_eq!(block_on(pool.spawn_handle(move || i + 1)).unwrap(), i + 1);
    }
    let error = block_on(pool.spawn_handle(|| -> () { panic!("awaited") })).unwrap_err();
    assert!(error.is_panic() && !error.is_cancelled());
    assert_eq!(*error.into_panic().downcast::<&str>().unwrap(), "awaited");
    // Several at once, awaited in an async block.
    let sum = block_on(async {
        let handles: Vec<_> = (0..10).map(|i| pool.spawn_handle(move || i)).collect();
        let mut sum = 0;
        for handle in handles {
            sum += handle.await.unwrap();
        }
        sum
    });
    assert_eq!(sum, 45);
}

#[test]
fn the_last_waker_is_woken_and_once() {
    let pool = pool(1);
    let (release, busy) = occupy(&pool);
    let mut handle = pool.spawn_handle(|| 8);
    let (first, last) = (Alarm::here(), Alarm::here());
    let (waker, other): (Waker, Waker) = (first.clone().into(), last.clone().into());
    let mut handle = Pin::new(&mut handle);
    assert!(handle.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(handle.as_mut().poll(&mut Context::from_waker(&other)).is_pending());
    assert!(handle.as_mut().poll(&mut Context::from_waker(&other)).is_pending());
    drop(release);
    while last.1.load(Ordering::SeqCst) == 0 {
        thread::park();
    }
    let Poll::Ready(Ok(8)) = handle.as_mut().poll(&mut Context::from_waker(&waker)) else {
        panic!("woken, so ready");
    };
    assert_eq!((first.1.load(Ordering::SeqCst), last.1.load(Ordering::SeqCst)), (0, 1));
    busy.join().unwrap();
    // A second time is a mistake that is named.
    let again = AssertUnwindSafe(|| handle.as_mut().poll(&mut Context::from_waker(&waker)));
    let text = catch_unwind(again).unwrap_err().downcast::<&str>().unwrap();
    assert!(text.contains("a second time"), "{text}");
}

#[test]
fn a_polled_handle_can_still_be_joined() {
    let pool = pool(1);
    let (release, busy) = occupy(&pool);
    let mut handle = pool.spawn_handle(|| 8);
    let poll = Pin::new(&mut handle).poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll.is_pending());
    drop(release);
    assert_eq!(handle.join().unwrap(), 8);
    busy.join().unwrap();
}

/// Counts how many of it are gone.
struct Drops(Arc<AtomicUsize>);

impl Drop for Drops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_task_that_has_not_started_can_be_cancelled_once() {
    let pool = pool(1);
    let (release, busy) = occupy(&pool);
    let drops = Arc::new(AtomicUsize::new(0));
    let held = Drops(Arc::clone(&drops));
    let handle = pool.spawn_handle(move || {
        let _held = &held;
        panic!("cancelled tasks do not run");
    });
    assert!(!handle.is_finished());
    assert!(handle.cancel());
    assert!(handle.is_finished());
    assert!(!handle.cancel(), "it is cancelled already");
    let error = handle.join().map(|()| "ran").unwrap_err();
    assert!(error.is_cancelled());
    drop(release);
    busy.join().unwrap();
    drop(pool);
    assert_eq!(drops.load(Ordering::SeqCst), 1, "the closure is dropped");
}

#[test]
fn a_task_that_has_started_cannot_be_cancelled() {
    let pool = pool(1);
    let (release, busy) = occupy(&pool);
    assert!(!busy.cancel());
    drop(release);
    busy.join().unwrap();
    let ended = pool.spawn_handle(|| 3);
    while !ended.is_finished() {
        thread::yield_now();
    }
    assert!(!ended.cancel());
    assert_eq!(ended.join().unwrap(), 3);
}

#[test]
fn cancelling_wakes_who_awaits() {
    let pool = pool(1);
    let (release, busy) = occupy(&pool);
    let mut handle = pool.spawn_handle(|| 8);
    let alarm = Alarm::here();
    let waker: Waker = alarm.clone().into();
    assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(handle.cancel());
    assert_eq!(alarm.1.load(Ordering::SeqCst), 1);
    assert!(block_on(handle).unwrap_err().is_cancelled());
    drop(release);
    busy.join().unwrap();
}

#[test]
fn a_task_either_runs_or_was_cancelled() {
    let pool = pool(2);
    let mut cancelled = 0;
    let ran = Arc::new(AtomicUsize::new(0));
    let tasks = if cfg!(miri) { 20 } else { 2000 };
    for _ in 0..tasks {
        let ran = Arc::clone(&ran);
        let handle = pool.spawn_handle(move || _ = ran.fetch_add(1, Ordering::SeqCst));
        if handle.cancel() {
            cancelled += 1;
            assert!(handle.join().unwrap_err().is_cancelled());
        } else {
            handle.join().unwrap();
        }
    }
    assert_eq!(ran.load(Ordering::SeqCst) + cancelled, tasks);
}

#[test]
fn results_that_nobody_wants_are_dropped_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let tasks = if cfg!(miri) { 10 } else { 300 };
    for threads in [1, 2] {
        let pool = pool(threads);
        drops.store(0, Ordering::SeqCst);
        for i in 0..tasks {
            let held = Drops(Arc::clone(&drops));
            let handle = pool.spawn_handle(move || held);
            match i % 3 {
                0 => drop(handle),
                1 => _ = handle.join(),
                _ => _ = handle.cancel(),
            }
        }
        drop(pool);
        assert_eq!(drops.load(Ordering::SeqCst), tasks);
    }
}

#[test]
fn a_waker_that_panics_harms_nobody() {
    struct Rude;
    impl Wake for Rude {
        fn wake(self: Arc<Self>) {
            panic!("woken rudely");
        }
    }
    let (tell, told) = mpsc::channel();
    let pool = ThreadPool::builder()
        .num_threads(1)
        .on_panic(move |payload| tell.send(*payload.downcast::<&str>().unwrap()).unwrap())
        .build()
        .unwrap();
    let (release, busy) = occupy(&pool);
    let mut handle = pool.spawn_handle(|| 8);
    let waker = Arc::new(Rude).into();
    assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(release);
    assert_eq!(told.recv().unwrap(), "woken rudely");
    assert_eq!(handle.join().unwrap(), 8);
    busy.join().unwrap();
}

#[test]
fn workers_join_and_poll_handles_of_their_own_and_of_other_pools() {
    let (a, b) = (pool(1), pool(1));
    let answer = a.install(|| {
        let own = spawn_handle(|| 1);
        let other = b.spawn_handle(|| 2);
        let nested = spawn_handle(|| spawn_handle(|| 4).join().unwrap());
        // A poll does not work meanwhile, so awaiting one's own pool's task on its only worker
        // would be a wait for oneself; another pool's task comes by itself.
        own.join().unwrap() + block_on(other).unwrap() + nested.join().unwrap()
    });
    assert_eq!(answer, 7);
}

/// `?` turns the error into any that holds errors, which want them Send and Sync.
#[test]
fn the_error_of_a_handle_is_an_error_like_others() {
    fn outcome(panics: bool) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
        let pool = pool(1);
        let number = 3;
        Ok(pool
            .spawn_handle(move || if panics { panic!("number {number}") } else { number })
            .join()?)
    }
    assert_eq!(outcome(false).unwrap(), 3);
    assert_eq!(outcome(true).unwrap_err().to_string(), "the task panicked: number 3");
    let error = pool(1).spawn_handle(|| std::panic::panic_any(7)).join().unwrap_err();
    assert_eq!(error.to_string(), "the task panicked");
    assert_eq!(format!("{error:?}"), "JoinError::Panic(..)");
    assert_eq!(error.try_into_panic().unwrap().downcast_ref(), Some(&7));
    // Cancelled: the one worker is busy until the sender goes.
    let pool = pool(1);
    let (start, wait) = std::sync::mpsc::channel::<()>();
    let busy = pool.spawn_handle(move || _ = wait.recv());
    let idle = pool.spawn_handle(|| ());
    assert!(idle.cancel());
    let error = idle.join().unwrap_err();
    assert_eq!(error.to_string(), "the task was cancelled before it ended");
    assert!(error.try_into_panic().unwrap_err().is_cancelled());
    drop(start);
    busy.join().unwrap();
}

#[test]
fn a_poll_runs_nothing() {
    pool(1).install(|| {
        let mut handle = spawn_handle(|| 5);
        let poll = Pin::new(&mut handle).poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll.is_pending() && !handle.is_finished());
        assert_eq!(handle.join().unwrap(), 5);
    });
}

#[test]
fn what_a_cancelled_task_has_panicked_with_is_asked_in_vain() {
    let pool = pool(1);
    let (release, busy) = occupy(&pool);
    let idle = pool.spawn_handle(|| ());
    assert!(idle.cancel());
    let error = idle.join().unwrap_err();
    assert!(!error.is_panic());
    let text = catch_unwind(AssertUnwindSafe(|| error.into_panic())).unwrap_err();
    let text = text.downcast::<String>().unwrap();
    assert_eq!(*text, "no panic to return: the task was cancelled before it ended");
    drop(release);
    busy.join().unwrap();
}
