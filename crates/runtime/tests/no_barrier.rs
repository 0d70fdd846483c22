//! On a system without a process-wide barrier, which Miri is and a seccomp filter makes of Linux, no thief exposes the private tasks of a worker:
//! one that blocks shares them itself, as `blocking` says.
//!
//! No test here measures a time. A worker blocks until other workers have run its tasks.

#![cfg(any(miri, target_os = "linux"))]

#[cfg(not(miri))]
use std::sync::Mutex;
#[cfg(not(miri))]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use poach_memory::{Machine, Memory};
#[cfg(not(miri))]
use poach_runtime::in_place_scope;
use poach_runtime::{ThreadPool, blocking, join, scope, spawn_detached};

#[cfg(not(miri))]
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../memory/tests/filtered/mod.rs"]
mod filtered;

#[path = "rig/alone.rs"]
mod alone;

const ROUNDS: usize = if cfg!(miri) { 1 } else { 100 };
const TASKS: usize = 3;

/// Runs `body` on workers of a new pool, again and again, in a process whose system refuses the barrier.
fn refused(test: &str, threads: usize, spares: usize, body: fn()) {
    alone::alone(test, || {
        #[cfg(not(miri))]
        filtered::filter(filtered::Answer::Refused);
        assert!(!Machine::asymmetric());
        let pool = ThreadPool::builder().threads(threads).spares(spares).build().unwrap();
        for _ in 0..ROUNDS {
            pool.install(body);
        }
    });
}

/// Spawns some tasks, and returns what waits until all of them have run, on other threads than this.
fn spawn_some() -> impl FnOnce() {
    let (send, receive) = mpsc::channel();
    for _ in 0..TASKS {
        let send = send.clone();
        spawn_detached(move || send.send(thread::current().id()).unwrap());
    }
    move || {
        for _ in 0..TASKS {
            assert_ne!(receive.recv().unwrap(), thread::current().id());
        }
    }
}

#[test]
fn others_run_what_is_spawned_within() {
    refused("others_run_what_is_spawned_within", 2, 0, || blocking(|| spawn_some()()));
}

#[test]
fn others_run_what_was_spawned_before() {
    refused("others_run_what_was_spawned_before", 2, 0, || {
        let all_run = spawn_some();
        blocking(all_run);
    });
}

#[test]
fn a_spare_runs_what_is_spawned_before_and_within() {
    refused("a_spare_runs_what_is_spawned_before_and_within", 1, 1, || {
        let all_run = spawn_some();
        blocking(|| {
            spawn_some()();
            all_run();
        });
    });
}

/// The joins and scopes of what blocks run tasks that do not block, and those keep theirs private.
#[test]
fn others_run_what_is_spawned_after_a_scope_within() {
    refused("others_run_what_is_spawned_after_a_scope_within", 2, 0, || {
        blocking(|| {
            for _ in 0..3 {
                scope(|s| (0..TASKS).for_each(|_| s.spawn(|_| _ = join(|| 1, || 2))));
                spawn_some()();
            }
        });
    });
}

#[test]
fn others_run_the_second_halves_of_before_and_within() {
    refused("others_run_the_second_halves_of_before_and_within", 2, 0, || {
        let (before, within) = (Barrier::new(2), Barrier::new(2));
        let blocks = || {
            blocking(|| {
                before.wait();
                join(|| _ = within.wait(), || _ = within.wait());
            });
        };
        join(|| join(blocks, || ()), || before.wait());
    });
}

#[test]
fn the_worker_runs_what_a_caller_spawns_within() {
    alone::alone("the_worker_runs_what_a_caller_spawns_within", || {
        #[cfg(not(miri))]
        filtered::filter(filtered::Answer::Refused);
        let pool = ThreadPool::builder().threads(1).build().unwrap();
        for _ in 0..ROUNDS {
            let (send, receive) = mpsc::channel();
            pool.scope(move |s| {
                blocking(|| {
                    for _ in 0..TASKS {
                        let send = send.clone();
                        s.spawn(move |_| send.send(()).unwrap());
                    }
                    (0..TASKS).for_each(|_| receive.recv().unwrap());
                });
                let meeting = Barrier::new(2);
                join(|| blocking(|| meeting.wait()), || meeting.wait());
            });
        }
    });
}

/// What a spare has spawned and not begun goes to the pool when it goes back, and sleeps.
#[test]
fn a_spare_goes_back_with_nothing_in_its_queue() {
    alone::alone("a_spare_goes_back_with_nothing_in_its_queue", || {
        #[cfg(not(miri))]
        filtered::filter(filtered::Answer::Refused);
        let pool = ThreadPool::builder().threads(1).spares(1).build().unwrap();
        let (send, left) = mpsc::channel();
        let (tell, spawned) = mpsc::channel();
        let (go, is_back) = mpsc::channel();
        pool.install(move || {
            spawn_detached(move || {
                // A request may lie there: what is pushed first is shared.
                for _ in 0..2 * TASKS {
                    let send = send.clone();
                    spawn_detached(move || send.send(()).unwrap());
                }
                tell.send(()).unwrap();
                // Until the loan is over.
                is_back.recv().unwrap();
            });
            blocking(|| spawned.recv().unwrap());
            go.send(()).unwrap();
        });
        for _ in 0..2 * TASKS {
            left.recv_timeout(LONG).expect("it lies in the queue of the spare");
        }
    });
}

/// Whatever should have happened before it is over never will.
const LONG: Duration = Duration::from_secs(60);

/// A task of a scope has pushed another, on a worker that has nothing left to stay for. (Miri would find that the thread's worker is never freed.)
#[test]
#[cfg(not(miri))]
fn a_worker_leaves_nothing_in_its_queue_when_its_pool_ends() {
    alone::alone("a_worker_leaves_nothing_in_its_queue_when_its_pool_ends", || {
        filtered::filter(filtered::Answer::Refused);
        let (tell, has_run) = mpsc::channel();
        let has_run = Mutex::new(has_run);
        let pool = ThreadPool::builder()
            .threads(2)
            .use_current_thread()
            .on_exit(move |_| has_run.lock().unwrap().recv().unwrap())
            .build()
            .unwrap();
        let begun = AtomicBool::new(false);
        let pool = Mutex::new(Some(pool));
        in_place_scope(|s| {
            s.spawn(|s| {
                begun.store(true, Ordering::SeqCst);
                // On the other worker, which does not wait for itself.
                drop(pool.lock().unwrap().take());
                s.spawn(|_| tell.send(()).unwrap());
            });
            while !begun.load(Ordering::SeqCst) {
                // A push answers the request of a thief.
                s.spawn(|_| ());
                thread::yield_now();
            }
        });
    });
}
