//! A worker's scope: forks of different tasks, panics of body and tasks, what is dropped.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use poach_runtime::{Forks, ThreadPool, Worker, interrupt, join, scope};
use send_wrapper::SendWrapper;

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// What a call panics with.
fn payload<P: 'static>(f: impl FnOnce()) -> P {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("no panic");
    *payload.downcast().expect("another payload")
}

fn tree(mut worker: Worker<'_>, depth: u32, leaves: &AtomicUsize) {
    let Some(depth) = depth.checked_sub(1) else {
        leaves.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let large = [depth; 20];
    worker.scope(|s| {
        s.spawn(|w| tree(w, depth, leaves));
        // In the midst of the spawns, on top of what is there.
        join(
            || poach_runtime::worker(|w| tree(w, depth, leaves)),
            || poach_runtime::worker(|w| tree(w, depth, leaves)),
        );
        s.spawn(move |w| tree(w, large[3], leaves));
    });
}

#[test]
fn tasks_nest_with_joins_on_one_worker_and_on_many() {
    let depth = if cfg!(miri) { 3 } else { 7 };
    for threads in [1, 2, 4] {
        let leaves = AtomicUsize::new(0);
        pool(threads).run(|w| tree(w, depth, &leaves));
        assert_eq!(leaves.into_inner(), 4_usize.pow(depth));
    }
}

#[test]
fn it_returns_what_its_body_does_once_what_it_borrows_is_written() {
    for threads in [1, 3] {
        let mut numbers = [0; 100];
        let count = pool(threads).run(|mut w| {
            let spawned = w.scope(|s| {
                numbers.iter_mut().enumerate().map(|(i, n)| s.spawn(move |_| *n = i)).count()
            });
            w.scope(|_| spawned)
        });
        assert_eq!(count, 100);
        assert!(numbers.iter().copied().eq(0..100));
    }
}

#[test]
fn one_worker_calls_the_last_task_first() {
    let order = Mutex::new(Vec::new());
    pool(1).install(|| {
        poach_runtime::worker(|mut w| {
            w.scope(|s| {
                let order = &order;
                (0..5).for_each(|i| s.spawn(move |_| order.lock().unwrap().push(i)));
                assert!(order.lock().unwrap().is_empty());
            });
        });
    });
    assert_eq!(order.into_inner().unwrap(), [4, 3, 2, 1, 0]);
}

#[test]
fn thieves_take_tasks_while_the_body_runs() {
    let this = thread::current().id();
    let elsewhere = AtomicUsize::new(0);
    pool(3).run(|mut w| {
        w.scope(|s| {
            for _ in 0..10 {
                s.spawn(|_| {
                    let away = usize::from(thread::current().id() != this);
                    elsewhere.fetch_add(away, Ordering::Release);
                });
            }
            let patience = Instant::now();
            while elsewhere.load(Ordering::Acquire) < 10
                && patience.elapsed() < Duration::from_secs(20)
            {
                // So that the request of a thief is met.
                join(|| (), || ());
                thread::yield_now();
            }
        });
    });
    assert_eq!(elsewhere.into_inner(), 10);
}

#[test]
fn a_panic_arrives_once_all_tasks_have_ended_and_the_bodys_goes_first() {
    for threads in [1, 3] {
        let pool = pool(threads);
        for body_panics in [false, true] {
            let ended = AtomicUsize::new(0);
            let got: &str = payload(|| {
                pool.run(|mut w| {
                    w.scope(|s: &Forks<'_>| {
                        for i in 0..20 {
                            let ended = &ended;
                            s.spawn(move |_| {
                                ended.fetch_add(1, Ordering::Relaxed);
                                if i % 3 == 0 {
                                    panic_any("a task");
                                }
                            });
                        }
                        if body_panics {
                            panic_any("the body");
                        }
                    });
                });
            });
            assert_eq!(got, if body_panics { "the body" } else { "a task" });
            assert_eq!(ended.into_inner(), 20);
        }
    }
}

#[test]
fn a_result_that_a_panic_leaves_behind_is_dropped_once() {
    let result = Arc::new(());
    for in_pool in [false, true] {
        let kept = Arc::clone(&result);
        let got: &str = payload(|| {
            let pool = pool(2);
            if in_pool {
                drop(pool.install(|| {
                    scope(|s| {
                        s.spawn(|_| panic_any("a task"));
                        kept
                    })
                }));
            } else {
                let forks = |mut w: Worker<'_>| {
                    w.scope(|s| {
                        s.spawn(|_| panic_any("a task"));
                        kept
                    })
                };
                drop(pool.run(forks));
            }
        });
        assert_eq!((got, Arc::strong_count(&result)), ("a task", 1));
    }
}

#[test]
fn a_task_that_finds_the_stack_full_is_called_at_once() {
    for threads in [1, 2] {
        let pool = ThreadPool::builder().num_threads(threads).task_stack(10).build().unwrap();
        let called = AtomicUsize::new(0);
        pool.run(|mut w| {
            w.scope(|s| {
                for _ in 0..100 {
                    s.spawn(|_| _ = called.fetch_add(1, Ordering::Relaxed));
                }
            });
        });
        assert_eq!(called.load(Ordering::Relaxed), 100);
        let got: usize = payload(|| {
            pool.run(|mut w| {
                w.scope(|s| {
                    for i in 0..100 {
                        let called = &called;
                        s.spawn(move |_| {
                            called.fetch_add(1, Ordering::Relaxed);
                            assert!(i != 50);
                            if i == 70 {
                                panic_any(i);
                            }
                        });
                    }
                    panic_any(200_usize);
                });
            });
        });
        assert_eq!((got, called.into_inner()), (200, 200));
    }
}

#[test]
fn a_spawn_in_the_midst_of_another_fork_or_in_an_interrupt_is_refused() {
    for threads in [1, 2] {
        let pool = pool(threads);
        let task = Arc::new(());
        for interrupted in [false, true] {
            let text: String = payload(|| {
                pool.run(|mut w| {
                    w.scope(|s| {
                        s.spawn(|_| ());
                        let (s, task) = (SendWrapper::new(s), Arc::clone(&task));
                        let spawn = move || s.spawn(move |_| drop(task));
                        if interrupted {
                            interrupt(spawn);
                        } else {
                            join(spawn, || ());
                        }
                    });
                });
            });
            assert!(text.contains("below the top"), "{text}");
        }
        assert_eq!(Arc::strong_count(&task), 1);
        assert_eq!(pool.install(|| join(|| 1, || 2)), (1, 2));
    }
}
