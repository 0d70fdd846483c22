//! Scopes: every task ends before the scope does, on any thread and in any way.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use poach_runtime::{Scope, ThreadPool, join, scope};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// An interpreter does less.
const SMALL: bool = cfg!(miri);

#[test]
fn every_task_has_ended_when_the_scope_returns() {
    for threads in [1, 2, 3, 8] {
        let pool = pool(threads);
        for tasks in [0, 1, 2, 100, if SMALL { 200 } else { 10_000 }] {
            let count = AtomicUsize::new(0);
            let result = pool.install(|| {
                scope(|s| {
                    for _ in 0..tasks {
                        s.spawn(|_| {
                            count.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                    "result"
                })
            });
            assert_eq!(result, "result");
            assert_eq!(count.load(Ordering::Relaxed), tasks);
        }
    }
}

#[test]
fn tasks_spawn_tasks() {
    fn tree<'s>(s: &Scope<'s>, depth: u32, count: &'s AtomicUsize) {
        count.fetch_add(1, Ordering::Relaxed);
        if depth > 0 {
            s.spawn(move |s| tree(s, depth - 1, count));
            s.spawn(move |s| tree(s, depth - 1, count));
        }
    }
    for threads in [1, 2, 4] {
        let count = AtomicUsize::new(0);
        pool(threads).install(|| scope(|s| tree(s, if SMALL { 4 } else { 12 }, &count)));
        assert_eq!(count.load(Ordering::Relaxed), (1 << if SMALL { 5 } else { 13 }) - 1);
    }
}

#[test]
fn a_long_chain_of_tasks_takes_no_stack() {
    fn link<'s>(s: &Scope<'s>, left: u32, count: &'s AtomicUsize) {
        count.fetch_add(1, Ordering::Relaxed);
        if left > 0 {
            s.spawn(move |s| link(s, left - 1, count));
        }
    }
    let count = AtomicUsize::new(0);
    pool(2).install(|| scope(|s| link(s, if SMALL { 200 } else { 200_000 }, &count)));
    assert_eq!(count.load(Ordering::Relaxed), if SMALL { 201 } else { 200_001 });
}

const LINKS: u64 = if SMALL { 6 } else { 50 };

#[test]
fn scopes_and_joins_nest() {
    let total = pool(3).install(|| {
        let sums = Mutex::new(0_u64);
        let sums = &sums;
        scope(|s| {
            for i in 0..LINKS {
                s.spawn(move |_| {
                    let (a, b) = join(
                        || {
                            let inner = AtomicUsize::new(0);
                            scope(|s| {
                                for _ in 0..i {
                                    s.spawn(|_| {
                                        inner.fetch_add(1, Ordering::Relaxed);
                                    });
                                }
                            });
                            inner.into_inner() as u64
                        },
                        || i,
                    );
                    *sums.lock().unwrap() += a + b;
                });
            }
        });
        *sums.lock().unwrap()
    });
    assert_eq!(total, (LINKS - 1) * LINKS);
}

#[test]
fn more_tasks_than_a_queue_holds() {
    // The queue grows twice, even in an interpreter.
    let tasks = if SMALL { 600 } else { 300_000 };
    let count = AtomicUsize::new(0);
    pool(1).install(|| {
        scope(|s| {
            for _ in 0..tasks {
                s.spawn(|_| {
                    count.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
    });
    assert_eq!(count.load(Ordering::Relaxed), tasks);
}

/// In a queue that grows meanwhile, and of which another worker steals.
#[test]
fn closures_of_all_sizes_arrive_whole() {
    fn spawn<'s, const WORDS: usize>(s: &Scope<'s>, first: usize, sum: &'s AtomicUsize) {
        let captured: [usize; WORDS] = std::array::from_fn(|i| first + i);
        s.spawn(move |_| {
            let right = captured.iter().enumerate().all(|(i, &word)| word == first + i);
            sum.fetch_add(if right { first } else { 0 }, Ordering::Relaxed);
        });
    }
    let rounds = if SMALL { 50 } else { 5_000 };
    for threads in [1, 2, 3] {
        let sum = AtomicUsize::new(0);
        pool(threads).install(|| {
            scope(|s| {
                for round in 0..rounds {
                    spawn::<0>(s, round, &sum);
                    spawn::<1>(s, round, &sum);
                    spawn::<2>(s, round, &sum);
                    spawn::<4>(s, round, &sum);
                    spawn::<5>(s, round, &sum);
                    spawn::<9>(s, round, &sum);
                }
            });
        });
        assert_eq!(sum.into_inner(), 6 * rounds * (rounds - 1) / 2, "{threads} workers");
    }
}

#[test]
fn large_closures_are_spilled_and_dropped_once() {
    struct Counted<'a>(&'a AtomicUsize);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (drops, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (drops_ref, sum_ref) = (&drops, &sum);
    pool(2).install(|| {
        scope(|s| {
            for _ in 0..100 {
                let large = [1_usize; 30];
                let counted = Counted(drops_ref);
                s.spawn(move |_| {
                    let _counted = counted;
                    sum_ref.fetch_add(large.iter().sum(), Ordering::Relaxed);
                });
            }
        });
    });
    assert_eq!(drops.into_inner(), 100);
    assert_eq!(sum.into_inner(), 3000);
}

#[test]
fn a_panic_waits_for_the_other_tasks() {
    for threads in [1, 2] {
        let count = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool(threads).install(|| {
                scope(|s| {
                    for i in 0..100 {
                        let count = &count;
                        s.spawn(move |_| {
                            count.fetch_add(1, Ordering::Relaxed);
                            assert!(i != 50, "task fifty");
                        });
                    }
                });
            });
        }));
        let payload = result.unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"task fifty"));
        assert_eq!(count.load(Ordering::Relaxed), 100);
    }
}

#[test]
fn a_panic_of_the_body_comes_before_a_tasks() {
    let ended = AtomicUsize::new(0);
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool(2).install(|| {
            scope(|s| {
                s.spawn(|_| {
                    ended.fetch_add(1, Ordering::Relaxed);
                    panic!("task");
                });
                panic!("body");
            });
        });
    }));
    assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"body"));
    assert_eq!(ended.load(Ordering::Relaxed), 1);
}

#[test]
fn a_scope_can_be_fed_from_another_pool_and_from_a_plain_thread() {
    let (home, other) = (pool(2), pool(2));
    let count = AtomicUsize::new(0);
    let count_ref = &count;
    home.install(|| {
        scope(|s| {
            let task = |_: &Scope<'_>| {
                assert!(home.current_thread_index().is_some(), "on a thread of another pool");
                count_ref.fetch_add(1, Ordering::Relaxed);
            };
            other.install(|| s.spawn(task));
            std::thread::scope(|threads| _ = threads.spawn(|| s.spawn(task)));
        });
    });
    assert_eq!(count.into_inner(), 2);
}

/// The youngest tasks of a worker's queue are its scope's, and what lies below is another's.
#[test]
fn a_scope_whose_tasks_have_ended_runs_no_others() {
    let ran = AtomicUsize::new(0);
    pool(1).install(|| {
        scope(|outer| {
            for _ in 0..3 {
                outer.spawn(|_| _ = ran.fetch_add(1, Ordering::Relaxed));
            }
            scope(|_| ());
            scope(|s| s.spawn(|_| ()));
            assert_eq!(ran.load(Ordering::Relaxed), 0);
        });
    });
    assert_eq!(ran.into_inner(), 3);
}

#[test]
fn a_task_of_another_scope_is_taken_off_that_ones_count() {
    let (begun, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let until = |count: &AtomicUsize| {
        while count.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
    };
    pool(2).install(|| {
        scope(|outer| {
            scope(|inner| {
                inner.spawn(|_| {
                    begun.store(1, Ordering::Relaxed);
                    until(&ran);
                });
                // The other worker has it, and this one has the next to run while it waits.
                until(&begun);
                outer.spawn(|_| ran.store(1, Ordering::Relaxed));
            });
        });
    });
}

/// In a pool of one worker nobody takes what lies in the place of a guest that is gone.
#[test]
fn what_a_guest_has_spawned_and_not_begun_goes_to_the_pool_when_it_leaves() {
    let pool = pool(1);
    let (tell, told) = mpsc::channel();
    pool.in_place_scope(|s| {
        pool.run(|_| s.spawn(move |_| tell.send(thread::current().id()).unwrap()));
        assert_ne!(told.recv().unwrap(), thread::current().id());
    });
}
