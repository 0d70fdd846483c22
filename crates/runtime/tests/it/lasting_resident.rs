//! The thread that builds a pool as one of its workers. Its part of the pool is never freed, so
//! Miri, which sees all the rest, looks for no leaks here.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use poach_runtime::config::Waiting;
use poach_runtime::{
    BuildError, Priority, ThreadPool, Yield, broadcast, check, current_num_threads,
    current_thread_index, in_place_scope, interrupt, join, scope, scope_fifo, spawn_broadcast,
    spawn_handle, task, yield_now,
};

#[test]
fn a_pool_uses_the_thread_that_builds_it() {
    // Each on a thread of its own: it never leaves its pool.
    thread::spawn(|| {
        let (send, started) = mpsc::channel();
        let builder = ThreadPool::builder().num_threads(2).use_current_thread();
        let pool = builder.on_start(move |index| send.send(index).unwrap()).build().unwrap();
        assert_eq!((started.recv(), started.try_recv().ok()), (Ok(1), None), "no handler here");
        assert_eq!((current_thread_index(), current_num_threads()), (Some(0), 2));
        let here = thread::current().id();
        assert_eq!(pool.install(|| thread::current().id()), here);
        let answers = broadcast(|context| (context.index(), thread::current().id() == here));
        assert_eq!(answers, [(0, true), (1, false)]);
        assert_eq!(join(|| 1, || scope(|_| 2)), (1, 2));
        let error = ThreadPool::builder().num_threads(1).use_current_thread().build().unwrap_err();
        assert!(matches!(error, BuildError::CurrentThreadInPool), "{error}");
        assert!(error.to_string().contains("another thread"), "{error}");
        // An interrupt from outside runs on a thread of the pool's own.
        thread::scope(|threads| {
            let interrupter = threads.spawn(|| pool.interrupt(current_thread_index));
            while !interrupter.is_finished() {
                check();
                thread::yield_now();
            }
            assert_eq!(interrupter.join().unwrap(), Some(1));
        });
        let left = spawn_handle(|| 5);
        drop(pool);
        assert_eq!(left.join().unwrap(), 5);
        // A pool that was dropped here says so.
        while let Ok(handle) = catch_unwind(|| spawn_handle(|| ())) {
            // The other worker has not ended yet: it may have taken `left`, and it does not end
            // while tasks are left.
            handle.join().unwrap();
        }
    })
    .join()
    .unwrap();
    thread::spawn(|| {
        let pool = ThreadPool::builder().num_threads(1).use_current_thread().build().unwrap();
        let done = pool.spawn_handle(|| 1);
        assert_eq!(pool.interrupt(|| join(|| 2, || 3)), (2, 3));
        assert!(!done.is_finished(), "nobody else works here");
        assert_eq!(yield_now(), Some(Yield::Executed));
        assert_eq!(done.join().unwrap(), 1);
    })
    .join()
    .unwrap();
}

/// It alone could run them, and may never wait again.
#[test]
fn a_pool_that_is_dropped_runs_what_its_one_thread_has_left() {
    let ran = thread::spawn(|| {
        let pool = ThreadPool::builder().num_threads(1).use_current_thread().build().unwrap();
        let left = spawn_handle(|| 5);
        drop(pool);
        left.is_finished()
    });
    assert!(ran.join().unwrap());
}

/// The pool's other worker runs what this thread has spawned, though this one waits by means of its
/// own and does not look for work.
#[test]
fn tasks_of_a_thread_that_the_pool_uses_begin_though_it_waits() {
    thread::spawn(|| {
        let pool = ThreadPool::builder().num_threads(2).use_current_thread().build().unwrap();
        for round in 0..if cfg!(miri) { 2 } else { 100 } {
            let tasks = [2, 3, 8, 100][round % 4];
            let (sender, receiver) = mpsc::channel();
            let wait = || (0..tasks).for_each(|_| assert!(receiver.recv_timeout(LONG).is_ok()));
            for _ in 0..tasks {
                let sender = sender.clone();
                drop(spawn_handle(move || sender.send(())));
            }
            wait();
            in_place_scope(|s| {
                for _ in 0..tasks {
                    let sender = sender.clone();
                    s.spawn(move |_| sender.send(()).unwrap());
                }
                wait();
            });
        }
        drop(pool);
    })
    .join()
    .unwrap();
}

/// Runs `body` on a thread of its own, which may become a worker for ever.
fn in_time<R: Send + 'static>(body: impl FnOnce() -> R + Send + 'static) -> R {
    let (send, receive) = mpsc::channel();
    let thread = thread::spawn(move || {
        let result = body();
        _ = send.send(());
        result
    });
    // A body that panics has dropped the sender.
    let hangs = receive.recv_timeout(LONG) == Err(mpsc::RecvTimeoutError::Timeout);
    assert!(!hangs, "it hangs");
    thread.join().unwrap()
}

/// Whether the pool had ended when `call` was made, which otherwise must return.
fn is_refused<R>(call: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err_and(|payload| {
        let text = payload.downcast::<&str>().unwrap();
        assert_eq!(*text, "the thread pool was dropped, and its workers have ended");
        true
    })
}

/// A call that waits for other workers finds them there, or is refused.
#[test]
fn what_a_thread_that_a_pool_uses_calls_while_another_drops_the_pool_ends() {
    let calls: [fn(); 8] = [
        || assert_eq!(broadcast(|context| context.index()), [0, 1, 2]),
        || assert_eq!(interrupt(|| join(|| 1, || 2)), (1, 2)),
        || assert_eq!(spawn_handle(|| 1).join().unwrap(), 1),
        || assert_eq!(task().priority(Priority::High).spawn_handle(|| 1).join().unwrap(), 1),
        || {
            spawn_broadcast(|_| ());
            // This thread's part, without which the pool would not end.
            yield_now();
        },
        || scope(|s| s.spawn_broadcast(|s, _| s.spawn(|_| ()))),
        || scope_fifo(|s| s.spawn_broadcast(|s, _| s.spawn_fifo(|_| ()))),
        || in_place_scope(|s| (0..9).for_each(|_| s.spawn(|s| s.spawn(|_| ())))),
    ];
    for round in 0..if cfg!(miri) { 1 } else { 20 } {
        for (kind, call) in calls.into_iter().enumerate() {
            let waiting = [Waiting::Random, Waiting::Sleep][round % 2];
            in_time(move || {
                let ended = Arc::new(AtomicBool::new(false));
                let has_ended = Arc::clone(&ended);
                let builder = ThreadPool::builder().num_threads(3).waiting(waiting);
                let pool = builder.use_current_thread().build().unwrap();
                call();
                let dropper = thread::spawn(move || {
                    drop(pool);
                    has_ended.store(true, Ordering::SeqCst);
                });
                let mut refused = false;
                // A scope without broadcasts is never refused: this thread can run all of it.
                while !refused && (kind != 7 || !ended.load(Ordering::SeqCst)) {
                    refused = is_refused(call);
                }
                assert_eq!(refused, kind != 7);
                // What it says once it says for ever.
                assert_eq!(is_refused(call), kind != 7);
                dropper.join().unwrap();
            });
        }
    }
}

/// Whatever should have happened before it is over never will.
const LONG: Duration = Duration::from_secs(20);
