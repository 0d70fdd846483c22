//! A spawned task is not stuck behind what its worker runs for long: others begin it, though its
//! owner does not come back to its queue.
//!
//! No test here measures a time. A body waits for its tasks, and nobody but the other workers can
//! run them.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use poach_runtime::{Priority, ThreadPool, join, scope_fifo, spawn_handle};

const ROUNDS: usize = if cfg!(miri) { 2 } else { 100 };

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// Waits until `done`, or for so long that whatever should have done it never will.
fn wait_for(done: impl Fn() -> bool) -> bool {
    for _ in 0..20_000 {
        if done() {
            return true;
        }
        thread::sleep(Duration::from_millis(1));
    }
    done()
}

#[test]
fn tasks_of_a_scope_begin_though_its_body_waits_for_them() {
    let pool = pool(2);
    for round in 0..ROUNDS {
        let tasks = [2, 3, 8, 100][round % 4];
        let begun = AtomicUsize::new(0);
        pool.run(|_| {
            poach_runtime::scope(|s| {
                for _ in 0..tasks {
                    s.spawn(|_| _ = begun.fetch_add(1, Ordering::SeqCst));
                }
                let all = wait_for(|| begun.load(Ordering::SeqCst) == tasks);
                assert!(all, "{} of {tasks} tasks have begun", begun.load(Ordering::SeqCst));
            });
        });
    }
}

#[test]
fn tasks_in_order_begin_though_their_body_waits_for_them() {
    let pool = pool(2);
    for _ in 0..ROUNDS {
        let begun = AtomicUsize::new(0);
        pool.install(|| {
            scope_fifo(|s| {
                for _ in 0..5 {
                    s.spawn_fifo(|_| _ = begun.fetch_add(1, Ordering::SeqCst));
                }
                assert!(wait_for(|| begun.load(Ordering::SeqCst) == 5));
            });
        });
    }
}

/// The youngest is the owner's, and waits for all others, which nobody but the other worker can
/// run.
#[test]
fn a_task_that_waits_for_older_ones_meets_them() {
    let pool = pool(2);
    for round in 0..ROUNDS {
        let tasks = 1 + round % 5;
        let ended = AtomicUsize::new(0);
        pool.run(|_| {
            poach_runtime::scope(|s| {
                for _ in 0..tasks {
                    s.spawn(|_| _ = ended.fetch_add(1, Ordering::SeqCst));
                }
                s.spawn(|_| assert!(wait_for(|| ended.load(Ordering::SeqCst) == tasks)));
            });
        });
    }
}

/// A body that waits for two tasks which wait for each other.
#[test]
fn tasks_that_wait_for_each_other_meet() {
    let pool = pool(3);
    for _ in 0..ROUNDS {
        let begun = AtomicUsize::new(0);
        let meet = |all| {
            begun.fetch_add(1, Ordering::SeqCst);
            assert!(wait_for(|| begun.load(Ordering::SeqCst) >= all));
        };
        pool.run(|_| {
            poach_runtime::scope(|s| {
                s.spawn(|_| meet(2));
                s.spawn(|_| meet(2));
                assert!(wait_for(|| begun.load(Ordering::SeqCst) == 2));
            });
        });
    }
}

/// What a stolen task has spawned is no more stuck than what a body has.
#[test]
fn tasks_spawned_by_a_stolen_task_begin() {
    let pool = pool(2);
    for _ in 0..ROUNDS {
        let (away, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
        pool.run(|_| {
            poach_runtime::scope(|s| {
                s.spawn(|s| {
                    away.store(true, Ordering::SeqCst);
                    (0..3).for_each(|_| s.spawn(|_| _ = begun.fetch_add(1, Ordering::SeqCst)));
                    assert!(wait_for(|| begun.load(Ordering::SeqCst) == 3));
                });
                // Then this worker looks for work, and finds what the other has spawned.
                assert!(wait_for(|| away.load(Ordering::SeqCst)));
            });
        });
    }
}

#[test]
fn detached_tasks_begin_though_who_spawned_them_waits() {
    let pool = pool(2);
    for _ in 0..ROUNDS {
        pool.install(|| {
            let (sender, receiver) = mpsc::channel();
            for task in 0..4 {
                let sender = sender.clone();
                drop(spawn_handle(move || sender.send(task)));
            }
            let mut tasks: Vec<_> =
                (0..4).map(|_| receiver.recv_timeout(Duration::from_secs(20)).unwrap()).collect();
            tasks.sort_unstable();
            assert_eq!(tasks, [0, 1, 2, 3]);
        });
    }
}

/// Forks and spawned tasks of one worker, all behind one leaf.
#[test]
fn forks_and_spawned_tasks_behind_one_leaf_begin() {
    let pool = pool(2);
    for _ in 0..ROUNDS {
        let begun = AtomicUsize::new(0);
        let count = || _ = begun.fetch_add(1, Ordering::SeqCst);
        pool.run(|_| {
            poach_runtime::scope(|s| {
                s.spawn(|_| count());
                s.spawn(|_| count());
                join(
                    || {
                        s.spawn(|_| count());
                        assert!(wait_for(|| begun.load(Ordering::SeqCst) == 4));
                    },
                    count,
                );
            });
        });
    }
}

/// The second of three workers has begun a task that takes as long as the body; the third is to
/// have the rest.
#[test]
fn a_thief_that_does_not_come_back_either_leaves_another_on_the_lookout() {
    let pool = pool(3);
    for _ in 0..ROUNDS {
        let ended = AtomicUsize::new(0);
        let wait = || assert!(wait_for(|| ended.load(Ordering::SeqCst) == 2));
        pool.run(|_| {
            poach_runtime::scope(|s| {
                s.spawn(|_| wait());
                s.spawn(|_| _ = ended.fetch_add(1, Ordering::SeqCst));
                s.spawn(|_| _ = ended.fetch_add(1, Ordering::SeqCst));
                wait();
            });
        });
        // So that all are asleep.
        thread::sleep(Duration::from_millis(3));
    }
}

/// Each spawned task runs once, whether its owner comes back or not.
#[test]
fn exposed_tasks_run_once() {
    let pool = pool(3);
    for round in 0..if cfg!(miri) { 10 } else { 300_u64 } {
        let runs: [AtomicUsize; 12] = Default::default();
        pool.run(|_| {
            poach_runtime::scope(|s| {
                for (task, runs) in runs.iter().enumerate() {
                    s.spawn(move |_| {
                        runs.fetch_add(1, Ordering::SeqCst);
                        if task % 3 == 0 {
                            thread::sleep(Duration::from_micros(round * 3 % 100));
                        }
                    });
                    if task % 4 == 3 {
                        thread::sleep(Duration::from_micros(round * 7 % 200));
                    }
                }
            });
        });
        assert!(runs.iter().all(|runs| runs.load(Ordering::SeqCst) == 1), "round {round}");
    }
}

/// `tasks` tasks from outside, and before them some that occupy the workers until all are there.
/// Each is given its number.
fn burst(pool: &ThreadPool, tasks: usize, task: impl Fn(usize) + Send + Sync + 'static) {
    let (task, all_there) = (Arc::new(task), Arc::new(AtomicBool::new(false)));
    for _ in 0..pool.threads() {
        let all_there = Arc::clone(&all_there);
        pool.spawn(move || assert!(wait_for(|| all_there.load(Ordering::SeqCst))));
    }
    for number in 0..tasks {
        let task = Arc::clone(&task);
        pool.spawn(move || task(number));
    }
    all_there.store(true, Ordering::SeqCst);
}

const BURST: usize = 2_000;

#[test]
fn a_burst_from_outside_begins_in_its_order() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let pool = pool(1);
    burst(&pool, BURST, move |number| seen.lock().unwrap().push(number));
    drop(pool);
    assert!(order.lock().unwrap().iter().copied().eq(0..BURST));
}

/// Of two workers one waits, and the other has taken nothing that it does not run.
#[test]
fn a_task_of_a_burst_may_wait_for_the_next_by_other_means() {
    let pool = pool(2);
    let begun = Arc::new([const { AtomicBool::new(false) }; BURST]);
    let runs = Arc::clone(&begun);
    burst(&pool, BURST, move |number| {
        runs[number].store(true, Ordering::SeqCst);
        let next = number + 1;
        if next % 100 == 1 {
            assert!(wait_for(|| runs[next].load(Ordering::SeqCst)), "{next} is not begun");
        }
    });
    drop(pool);
    assert!(begun.iter().all(|begun| begun.load(Ordering::SeqCst)));
}

/// The worker runs some tasks of a burst one after the other, but urgent ones, and its own, come in
/// between.
#[test]
fn an_urgent_task_and_an_own_one_go_before_the_next_one_of_a_burst() {
    let urgent = poach_runtime::task().priority(Priority::High);
    for spawner in [urgent, poach_runtime::task()] {
        let order = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&order);
        let pool = pool(1);
        burst(&pool, BURST, move |number| {
            seen.lock().unwrap().push(number);
            if number % 100 == 3 {
                let seen = Arc::clone(&seen);
                spawner.spawn(move || seen.lock().unwrap().push(BURST));
            }
        });
        drop(pool);
        let order = order.lock().unwrap();
        let early: Vec<_> = (1..order.len()).filter(|&place| order[place] == BURST).collect();
        assert_eq!(early.len(), BURST / 100);
        assert!(early.iter().all(|place| order[place - 1] % 100 == 3), "{spawner:?}: {early:?}");
    }
}
