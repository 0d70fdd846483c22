//! Spare workers for those that block.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use poach_runtime::config::MAX_THREADS;
use poach_runtime::{
    BuildError, ThreadPool, blocking, current_num_threads, current_thread_index, interrupt, join,
    scope, spawn_handle,
};

fn pool(threads: usize, spares: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).spares(spares).build().unwrap()
}

const ROUNDS: usize = if cfg!(miri) { 2 } else { 100 };

#[test]
fn without_spares_or_workers_it_is_a_call() {
    assert_eq!(blocking(|| 1), 1);
    assert_eq!(pool(1, 0).install(|| blocking(current_thread_index)), Some(0));
    assert_eq!(pool(1, 2).install(|| blocking(|| join(|| 1, || 2))), (1, 2));
}

#[test]
fn too_many_are_refused() {
    let error = ThreadPool::builder().num_threads(MAX_THREADS).spares(1).build().unwrap_err();
    assert!(matches!(error, BuildError::Threads(own) if own == MAX_THREADS + 1), "{error}");
    let error = ThreadPool::builder().num_threads(1).spares(usize::MAX).build().unwrap_err();
    assert!(matches!(error, BuildError::Threads(_)), "{error}");
    // With spare ones alone there would be no worker.
    let error = ThreadPool::builder().num_threads(0).spares(3).build().unwrap_err();
    assert!(matches!(error, BuildError::Threads(0)), "{error}");
}

#[test]
fn every_regular_worker_may_wait_for_the_pools_own_tasks() {
    // Each blocks in a barrier that the pool's remaining tasks must reach as well: with a worker
    // fewer than that the barrier would never be passed.
    for (threads, spares) in [(1, 1), (2, 2), (1, 3)] {
        let pool = pool(threads, spares);
        for _ in 0..ROUNDS {
            let meeting = Barrier::new(threads + spares);
            let indices = Mutex::new(Vec::new());
            // On the pool's own threads: a caller's is one more.
            pool.install(|| {
                scope(|s| {
                    for _ in 0..threads + spares {
                        s.spawn(|_| {
                            indices.lock().unwrap().push(current_thread_index().unwrap());
                            assert_eq!(current_num_threads(), threads);
                            blocking(|| meeting.wait());
                        });
                    }
                });
            });
            let mut indices = indices.into_inner().unwrap();
            indices.sort_unstable();
            assert!(indices.into_iter().eq(0..threads + spares));
        }
    }
}

#[test]
fn a_spare_runs_what_the_blocked_has_forked_into_the_pool() {
    let pool = pool(1, 1);
    for round in 0..ROUNDS {
        let (send, receive) = mpsc::channel();
        let sum = pool.install(move || {
            drop(spawn_handle(move || send.send(join(|| round, || scope(|_| 2))).unwrap()));
            blocking(|| receive.recv()).unwrap()
        });
        assert_eq!(sum, (round, 2));
    }
}

#[test]
fn when_all_are_out_it_just_blocks() {
    let pool = pool(1, 1);
    let nested = pool.install(|| blocking(|| blocking(|| blocking(|| 3))));
    assert_eq!(nested, 3);
    let depth = AtomicUsize::new(0);
    pool.run(|_| {
        scope(|s| {
            for _ in 0..10 {
                s.spawn(|_| blocking(|| _ = depth.fetch_add(1, Ordering::SeqCst)));
            }
        });
    });
    assert_eq!(depth.into_inner(), 10);
}

#[test]
fn a_panic_gives_the_spare_back() {
    let pool = pool(1, 1);
    for _ in 0..3 {
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.install(|| blocking(|| -> () { panic!("blocked") }));
        }));
        assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"blocked"));
        // It is there to be lent again, once it is back: so a task that needs it comes through.
        let meeting = Arc::new(Barrier::new(2));
        let other = Arc::clone(&meeting);
        let done = pool.spawn_handle(move || blocking(|| meeting.wait().is_leader()));
        thread::scope(|threads| {
            threads.spawn(|| other.wait());
        });
        done.join().unwrap();
    }
}

#[test]
fn interrupts_reach_spares_and_come_to_an_end() {
    let pool = pool(2, 2);
    let (count, interrupts) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for _ in 0..ROUNDS {
        pool.run(|_| {
            scope(|s| {
                for i in 0..8 {
                    let (count, interrupts) = (&count, &interrupts);
                    s.spawn(move |_| {
                        if i % 2 == 0 {
                            blocking(thread::yield_now);
                            count.fetch_add(1, Ordering::SeqCst);
                        } else {
                            let still = interrupt(|| {
                                let before = count.load(Ordering::SeqCst);
                                join(thread::yield_now, thread::yield_now);
                                // A worker inside `blocking` is waited for.
                                count.load(Ordering::SeqCst) == before
                            });
                            assert!(still);
                            interrupts.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                }
            });
        });
    }
    assert_eq!((count.into_inner(), interrupts.into_inner()), (ROUNDS * 4, ROUNDS * 4));
}

#[test]
fn a_pool_is_dropped_while_a_worker_blocks() {
    for _ in 0..ROUNDS.min(20) {
        let pool = pool(1, 1);
        let (send, receive) = mpsc::channel();
        let handle = pool.spawn_handle(move || {
            drop(spawn_handle(move || send.send(4)));
            blocking(|| receive.recv())
        });
        drop(pool);
        assert_eq!(handle.join().unwrap(), Ok(4));
    }
}

/// The worker that stands aside for it works meanwhile; here that is busy.
#[test]
fn a_caller_that_blocks_takes_no_spare() {
    let pool = ThreadPool::builder().num_threads(1).spares(1).build().unwrap();
    let (release, hold) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let begun = tell.clone();
    pool.spawn(move || {
        begun.send(()).unwrap();
        _ = hold.recv();
    });
    told.recv().unwrap();
    let early = pool.run(|_| {
        blocking(|| {
            pool.spawn(move || _ = tell.send(()));
            (told.recv_timeout(Duration::from_millis(20)), told)
        })
    });
    drop(release);
    assert_eq!(early.0, Err(mpsc::RecvTimeoutError::Timeout), "the spare has run it");
    assert_eq!(early.1.recv(), Ok(()));
}
