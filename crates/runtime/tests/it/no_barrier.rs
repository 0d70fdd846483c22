//! A system without a process-wide barrier, which Miri is and a seccomp filter makes of Linux, also
//! by a filter after the first use: other workers run the tasks that a waiting worker has pushed.
//!
//! No test here measures a time. A worker waits until other workers have run its tasks.

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
use poach_runtime::{
    ThreadPool, blocking, broadcast, join, scope, scope_fifo, spawn, spawn_handle,
};

use crate::alone::alone;
#[cfg(not(miri))]
use crate::filtered;
#[cfg(not(miri))]
use crate::own_process::this_test;

const ROUNDS: usize = if cfg!(miri) { 1 } else { 100 };
const TASKS: usize = 3;

/// Runs `body` on workers of a new pool, again and again, in a process whose system refuses the
/// barrier.
fn refused(test: &str, threads: usize, spares: usize, body: fn()) {
    alone(test, || {
        #[cfg(not(miri))]
        filtered::filter(filtered::Answer::Refused);
        assert!(!Machine::asymmetric());
        let pool = ThreadPool::builder().num_threads(threads).spares(spares).build().unwrap();
        for _ in 0..ROUNDS {
            pool.install(body);
        }
    });
}

/// As [`refused`], where the filter comes once the pool has worked. (Miri has no filter; there this
/// is `refused`.)
fn lost(test: &str, threads: usize, body: fn()) {
    alone(test, || {
        let pool = ThreadPool::builder().num_threads(threads).build().unwrap();
        // With forks and tasks of every worker, whose stacks and queues so go without fences, where
        // there is a barrier.
        pool.install(|| {
            broadcast(|_| {
                join(|| spawn_handle(|| 1).join().unwrap(), || scope(|s| s.spawn(|_| ())))
            });
        });
        // Else this is `refused`: the whole program was started under a filter.
        #[cfg(not(miri))]
        if Machine::asymmetric() {
            filtered::filter(filtered::Answer::Refused);
            pool.broadcast(|_| filtered::filter(filtered::Answer::Refused));
            // Until a worker has found out; then each of them is behind what it did then. What an
            // owner pushed before may wait for it.
            while !poach_memory::membarrier::is_refused() {
                pool.install(|| (0..100).for_each(|_| _ = join(thread::yield_now, || ())));
            }
            pool.broadcast(|_| ());
        }
        for _ in 0..ROUNDS {
            pool.install(body);
        }
    });
}

/// The worker pushes what `push` does, privately, since the other worker is at something else; the
/// program switches the barrier off, and the worker waits in what `push` returned. It does not come
/// to its deque meanwhile.
fn switched_off<W: FnOnce()>(test: &str, push: impl FnOnce(&(dyn Fn() + Sync)) -> W + Send) {
    alone(test, || {
        let pool = ThreadPool::builder().num_threads(2).build().unwrap();
        let (made, free) = (Barrier::new(2), Barrier::new(2));
        let pushes = || {
            let switch_off = || {
                made.wait();
                poach_memory::membarrier::switch_off();
                free.wait();
            };
            push(&switch_off)();
        };
        let at_something_else = || {
            made.wait();
            free.wait();
        };
        pool.install(|| join(pushes, at_something_else));
    });
}

#[test]
fn others_run_what_a_worker_spawned_before_the_barrier_was_switched_off() {
    switched_off(
        "others_run_what_a_worker_spawned_before_the_barrier_was_switched_off",
        |switch_off| {
            let all_run = spawn_some();
            switch_off();
            all_run
        },
    );
}

#[test]
fn others_run_what_a_worker_forked_before_the_barrier_was_switched_off() {
    switched_off(
        "others_run_what_a_worker_forked_before_the_barrier_was_switched_off",
        |switch_off| {
            let last = Barrier::new(2);
            let first = || {
                switch_off();
                last.wait();
            };
            join(first, || last.wait());
            || ()
        },
    );
}

/// Spawns some tasks, and returns what waits until all of them have run, on other threads than
/// this.
fn spawn_some() -> impl FnOnce() {
    let (send, receive) = mpsc::channel();
    for _ in 0..TASKS {
        let send = send.clone();
        spawn(move || send.send(thread::current().id()).unwrap());
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
    alone("the_worker_runs_what_a_caller_spawns_within", || {
        #[cfg(not(miri))]
        filtered::filter(filtered::Answer::Refused);
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        for _ in 0..ROUNDS {
            let (send, receive) = mpsc::channel();
            pool.run(|_| {
                scope(move |s| {
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
            });
        }
    });
}

/// What a spare has spawned and not begun goes to the pool when it goes back, and sleeps.
#[test]
fn a_spare_goes_back_with_nothing_in_its_queue() {
    alone("a_spare_goes_back_with_nothing_in_its_queue", || {
        #[cfg(not(miri))]
        filtered::filter(filtered::Answer::Refused);
        let pool = ThreadPool::builder().num_threads(1).spares(1).build().unwrap();
        let (send, left) = mpsc::channel();
        let (tell, spawned) = mpsc::channel();
        let (go, is_back) = mpsc::channel();
        pool.install(move || {
            spawn(move || {
                // A request may lie there: what is pushed first is shared.
                for _ in 0..2 * TASKS {
                    let send = send.clone();
                    spawn(move || send.send(()).unwrap());
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

/// A task of a scope has pushed another, on a worker that has nothing left to stay for. (Miri would
/// find that the thread's worker is never freed.)
#[test]
#[cfg(not(miri))]
fn a_worker_leaves_nothing_in_its_queue_when_its_pool_ends() {
    alone("a_worker_leaves_nothing_in_its_queue_when_its_pool_ends", || {
        filtered::filter(filtered::Answer::Refused);
        let (tell, has_run) = mpsc::channel();
        let has_run = Mutex::new(has_run);
        let pool = ThreadPool::builder()
            .num_threads(2)
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

/// It waits in a way that the pool knows nothing of.
fn waits_for_what_it_has_spawned() {
    spawn_some()();
    scope(|s| {
        let (send, receive) = mpsc::channel();
        (0..TASKS).for_each(|task| {
            let send = send.clone();
            s.spawn(move |_| send.send(task).unwrap());
        });
        (0..TASKS).for_each(|_| _ = receive.recv().unwrap());
    });
    scope_fifo(|s| {
        let (send, receive) = mpsc::channel();
        (0..TASKS).for_each(|task| {
            let send = send.clone();
            s.spawn_fifo(move |_| send.send(task).unwrap());
        });
        assert_eq!((0..TASKS).map(|_| receive.recv().unwrap()).sum::<usize>(), 3);
    });
}

/// The other worker is at something else when these forks are made, and free only afterwards.
fn waits_for_what_it_has_forked() {
    let (made, free) = (Barrier::new(2), Barrier::new(2));
    let forks = || {
        let last = Barrier::new(2);
        join(
            || {
                made.wait();
                free.wait();
                last.wait();
            },
            || last.wait(),
        );
    };
    join(forks, || {
        made.wait();
        free.wait();
    });
}

#[test]
fn others_run_what_a_worker_has_spawned_that_waits_for_it() {
    let test = "others_run_what_a_worker_has_spawned_that_waits_for_it";
    refused(test, 2, 0, waits_for_what_it_has_spawned);
}

#[test]
fn others_run_what_a_worker_has_forked_that_waits_for_it() {
    let test = "others_run_what_a_worker_has_forked_that_waits_for_it";
    refused(test, 2, 0, waits_for_what_it_has_forked);
}

#[test]
fn others_run_what_a_worker_spawns_after_a_late_filter() {
    let test = "others_run_what_a_worker_spawns_after_a_late_filter";
    lost(test, 2, waits_for_what_it_has_spawned);
}

#[test]
fn others_run_what_a_worker_forks_after_a_late_filter() {
    lost("others_run_what_a_worker_forks_after_a_late_filter", 2, waits_for_what_it_has_forked);
}

/// A pool that is built returns an error, and the global pool panics with it.
#[test]
#[cfg(not(miri))]
fn a_variable_that_says_neither_on_nor_off_is_refused() {
    const REFUSAL: &str = "POACH_BARRIER=nonsense is neither `on` nor `off`";
    if std::env::var("POACH_BARRIER").is_ok_and(|value| value == "nonsense") {
        let refused = ThreadPool::builder().num_threads(1).build();
        assert_eq!(refused.err().map(|error| error.to_string()).as_deref(), Some(REFUSAL));
        join(|| println!("the program goes on"), || ());
        return;
    }
    let test = "a_variable_that_says_neither_on_nor_off_is_refused";
    let output = this_test(test).env("POACH_BARRIER", "nonsense").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(REFUSAL), "{said}");
    assert!(!said.contains("assertion"), "{said}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("goes on"));
}
