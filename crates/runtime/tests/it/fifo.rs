//! Tasks in the order in which they are spawned: `scope_fifo`, `spawn_fifo`.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use poach_runtime::{ThreadPool, join, scope, scope_fifo, spawn_handle, task};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// An interpreter does less.
const TASKS: usize = if cfg!(miri) { 20 } else { 1000 };

#[test]
fn one_worker_runs_a_fifo_scope_oldest_first_and_a_plain_one_youngest_first() {
    let pool = pool(1);
    let expected: Vec<_> = (0..TASKS).collect();
    let seen = Mutex::new(Vec::new());
    // Installed, here and below, so that the pool's one thread runs all: `pool.scope_fifo` would
    // make this thread a second worker.
    pool.install(|| {
        scope_fifo(|s| {
            for i in 0..TASKS {
                let seen = &seen;
                s.spawn_fifo(move |_| seen.lock().unwrap().push(i));
            }
        });
    });
    assert_eq!(seen.into_inner().unwrap(), expected);
    let seen = Mutex::new(Vec::new());
    pool.install(|| {
        scope(|s| {
            for i in 0..TASKS {
                let seen = &seen;
                s.spawn(move |_| seen.lock().unwrap().push(i));
            }
        });
    });
    assert!(seen.into_inner().unwrap().into_iter().rev().eq(expected));
}

/// A caller that waits for something else leaves its tasks to the pool's worker.
#[test]
fn one_worker_takes_what_a_caller_leaves_that_blocks() {
    let pool = pool(1);
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        let (send, received) = std::sync::mpsc::channel();
        let caller = std::thread::current().id();
        let there = pool.run(|_| {
            scope(move |s| {
                let other = send.clone();
                let spawn_other =
                    || s.spawn(move |_| other.send(std::thread::current().id()).unwrap());
                s.spawn(move |_| send.send(std::thread::current().id()).unwrap());
                poach_runtime::blocking(|| {
                    spawn_other();
                    [received.recv().unwrap(), received.recv().unwrap()]
                })
            })
        });
        assert!(there.iter().all(|&thread| thread != caller));
    }
}

#[test]
fn a_fifo_scope_goes_through_a_tree_level_by_level() {
    let seen = Mutex::new(Vec::new());
    pool(1).install(|| {
        scope_fifo(|s| {
            for i in 0..3 {
                let seen = &seen;
                s.spawn_fifo(move |s| {
                    seen.lock().unwrap().push((0, i));
                    for j in 0..2 {
                        s.spawn_fifo(move |_| seen.lock().unwrap().push((1, i * 2 + j)));
                    }
                });
            }
        });
    });
    let levels = (0..3).map(|i| (0, i)).chain((0..6).map(|i| (1, i)));
    assert!(seen.into_inner().unwrap().into_iter().eq(levels));
}

#[test]
fn scopes_keep_their_queues_apart() {
    // The inner scope must not run the outer one's older tasks in place of its own.
    let seen = Mutex::new(Vec::new());
    pool(1).install(|| {
        scope_fifo(|outer| {
            let seen = &seen;
            for i in 0..2 {
                outer.spawn_fifo(move |_| seen.lock().unwrap().push(("outer", i)));
            }
            scope_fifo(|inner| {
                for i in 0..2 {
                    inner.spawn_fifo(move |_| seen.lock().unwrap().push(("inner", i)));
                }
            });
        });
    });
    let mut seen = seen.into_inner().unwrap();
    let position = |what| seen.iter().position(|it| *it == what).unwrap();
    assert!(position(("inner", 0)) < position(("inner", 1)));
    assert!(position(("outer", 0)) < position(("outer", 1)));
    seen.sort_unstable();
    assert_eq!(seen, [("inner", 0), ("inner", 1), ("outer", 0), ("outer", 1)]);
}

#[test]
fn every_task_runs_once_when_there_are_thieves() {
    for threads in [2, 3] {
        let counts: Vec<_> = (0..TASKS * 3).map(|_| AtomicUsize::new(0)).collect();
        pool(threads).run(|_| {
            scope_fifo(|s| {
                for i in 0..TASKS {
                    let counts = &counts;
                    s.spawn_fifo(move |s| {
                        counts[i * 3].fetch_add(1, Ordering::Relaxed);
                        for j in 1..3 {
                            s.spawn_fifo(move |_| {
                                counts[i * 3 + j].fetch_add(1, Ordering::Relaxed);
                            });
                        }
                    });
                }
            });
        });
        assert!(counts.into_iter().all(|count| count.into_inner() == 1));
    }
}

#[test]
fn spawned_tasks_start_in_order() {
    let pool = pool(1);
    let seen = std::sync::Arc::new(Mutex::new(Vec::new()));
    pool.install(|| {
        let handles: Vec<_> = (0..TASKS)
            .map(|i| {
                let seen = seen.clone();
                task().in_order().spawn_handle(move || seen.lock().unwrap().push(i))
            })
            .collect();
        for handle in handles {
            handle.join().unwrap();
        }
    });
    assert!(seen.lock().unwrap().drain(..).eq(0..TASKS));
    // From outside of the pool there is one order for all.
    for i in 0..TASKS {
        let seen = seen.clone();
        drop(pool.task().in_order().spawn_handle(move || seen.lock().unwrap().push(i)));
    }
    drop(pool);
    assert!(seen.lock().unwrap().drain(..).eq(0..TASKS));
}

#[test]
fn fifo_and_plain_tasks_of_one_worker_mix() {
    let sum = pool(1).install(|| {
        let handles: Vec<_> = (0..TASKS)
            .map(|i| {
                if i % 2 == 0 {
                    spawn_handle(move || i)
                } else {
                    task().in_order().spawn_handle(move || i)
                }
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).sum::<usize>()
    });
    assert_eq!(sum, TASKS * (TASKS - 1) / 2);
}

#[test]
fn a_panic_arrives_when_all_have_ended() {
    for threads in [1, 2] {
        let ended = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool(threads).run(|_| {
                scope_fifo(|s| {
                    for i in 0..10 {
                        let ended = &ended;
                        s.spawn_fifo(move |_| {
                            assert!(i != 3, "third");
                            ended.fetch_add(1, Ordering::SeqCst);
                        });
                    }
                });
            });
        }));
        assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"third"));
        assert_eq!(ended.into_inner(), 9);
    }
}

#[test]
fn other_pools_and_threads_spawn_into_a_fifo_scope() {
    let (a, b) = (pool(2), pool(1));
    let count = AtomicUsize::new(0);
    a.run(|_| {
        scope_fifo(|s| {
            let count = &count;
            let add = || {
                assert!(a.current_thread_index().is_some(), "on a thread of another pool");
                count.fetch_add(1, Ordering::SeqCst);
            };
            b.install(|| s.spawn_fifo(move |_| add()));
            std::thread::scope(|threads| {
                threads.spawn(|| s.spawn_fifo(move |_| add()));
            });
            join(|| s.spawn_fifo(move |_| add()), || scope(|t| t.spawn(move |_| add())));
        });
    });
    assert_eq!(count.into_inner(), 4);
}
