//! What a worker does while the second half of its join runs on another, in each of the ways to
//! wait.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use poach_runtime::config::Waiting;
use poach_runtime::{
    ThreadPool, ThreadPoolBuilder, Worker, broadcast, join, scope, spawn, spawn_handle,
};

const ALL: [Waiting; 5] =
    [Waiting::Sleep, Waiting::Leapfrog, Waiting::Transitive, Waiting::Random, Waiting::Patient];
const RESTRICTED: [Waiting; 3] = [Waiting::Sleep, Waiting::Leapfrog, Waiting::Transitive];

fn pool(threads: usize, waiting: Waiting) -> ThreadPool {
    builder(threads).waiting(waiting).build().unwrap()
}

fn builder(threads: usize) -> ThreadPoolBuilder<'static> {
    ThreadPool::builder().num_threads(threads)
}

/// Waits in a first half for what the second does, on another worker.
fn until(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        thread::yield_now();
    }
}

/// Whether a condition comes true, at the watchdog's limit.
fn within_a_minute(condition: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !condition() && began.elapsed() < Duration::from_secs(60) {
        thread::yield_now();
    }
    condition()
}

fn raise(flag: &AtomicBool) {
    flag.store(true, Ordering::SeqCst);
}

/// The half that a worker waits for blocks on a task that only that worker is left to run.
#[test]
fn a_patient_wait_takes_any_task_in_the_end_and_not_at_once() {
    for waiting in [Waiting::Random, Waiting::Patient] {
        let (begun, run) = (AtomicBool::new(false), &*Box::leak(Box::new(OnceLock::new())));
        let first = || {
            until(&begun);
            Instant::now()
        };
        let second = || {
            raise(&begun);
            spawn(|| run.set(Instant::now()).unwrap());
            while run.get().is_none() {
                thread::yield_now();
            }
        };
        let (waits, ()) = pool(2, waiting).install(|| join(first, second));
        let waited = run.get().unwrap().saturating_duration_since(waits);
        // It sleeps for a millisecond; half, as a system's clocks may be coarse.
        assert!(waiting == Waiting::Random || waited >= Duration::from_micros(500), "{waited:?}");
    }
}

/// The number of nodes of a binomial tree, the shape of UTS T3L: 2 children with a probability of
/// just below a half, so subtrees are small but for some that are very deep.
fn binomial(mut worker: Worker<'_>, node: u64) -> u64 {
    let random = node.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let random = (random ^ (random >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40;
    if random % 1000 >= 496 {
        return 1;
    }
    let (a, b) = worker.join(
        |w| binomial(w, node.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)),
        |w| binomial(w, node.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(3)),
    );
    1 + a + b
}

fn forest(mut worker: Worker<'_>, from: u64, to: u64) -> u64 {
    if to - from == 1 {
        return binomial(worker, from);
    }
    let middle = from + (to - from) / 2;
    let (a, b) = worker.join(|w| forest(w, from, middle), |w| forest(w, middle, to));
    a + b
}

#[test]
fn deep_unbalanced_trees_are_counted_in_every_way() {
    // An interpreter has one of 93 nodes, and one of 5.
    let (from, to) = if cfg!(miri) { (24, 26) } else { (1, 4000) };
    let expected = pool(1, Waiting::Random).run(|w| forest(w, from, to));
    assert!(cfg!(miri) || expected > 100_000, "{expected} nodes make no deep trees");
    for waiting in ALL {
        for threads in [2, 4] {
            let pool = pool(threads, waiting);
            assert_eq!(pool.run(|w| forest(w, from, to)), expected, "{waiting:?}, {threads}");
        }
    }
    for nesting in [0, 1, 3] {
        let pool = builder(4).nesting(nesting).build().unwrap();
        assert_eq!(pool.run(|w| forest(w, from, to)), expected, "nesting {nesting}");
    }
}

/// Joins, and scopes within them whose tasks join.
fn mixed(depth: u32, sum: &AtomicUsize) {
    if depth == 0 {
        sum.fetch_add(1, Ordering::Relaxed);
        return;
    }
    join(
        || mixed(depth - 1, sum),
        || scope(|s| (0..3).for_each(|_| s.spawn(move |_| mixed(depth - 1, sum)))),
    );
}

#[test]
fn joins_and_scopes_within_each_other_end_in_every_way() {
    let (depth, expected) = if cfg!(miri) { (2, 16) } else { (7, 1 << 14) };
    for waiting in ALL {
        for round in 0..if cfg!(miri) { 1 } else { 10 } {
            let (pool, sum) = (pool(3, waiting), AtomicUsize::new(0));
            pool.install(|| mixed(depth, &sum));
            assert_eq!(sum.into_inner(), expected, "{waiting:?}, round {round}");
        }
    }
}

#[test]
fn a_stolen_half_may_wait_for_what_its_victim_has_spawned() {
    for waiting in ALL {
        for tasks in [1, 2, 300] {
            let pool = pool(2, waiting);
            let stolen = AtomicBool::new(false);
            let sum = pool.install(|| {
                let handles: Vec<_> = (0..tasks).map(|i| spawn_handle(move || i)).collect();
                let wait = || {
                    raise(&stolen);
                    handles.into_iter().map(|handle| handle.join().unwrap()).sum::<usize>()
                };
                join(|| until(&stolen), wait).1
            });
            assert_eq!(sum, tasks * (tasks - 1) / 2, "{waiting:?}");
        }
    }
}

#[test]
fn a_stolen_half_may_broadcast_and_interrupt() {
    for waiting in ALL {
        let pool = pool(2, waiting);
        let stolen = AtomicBool::new(false);
        let all = || {
            raise(&stolen);
            let told = broadcast(|context| context.index());
            (told, poach_runtime::interrupt(|| join(|| 1, || 2)))
        };
        let result = pool.install(|| join(|| until(&stolen), all).1);
        assert_eq!(result, (vec![0, 1], (1, 2)), "{waiting:?}");
    }
}

/// A lock is held across a join whose second half is stolen. When the join waits for that half, the
/// worker's own queue is full of tasks that want the lock: such a task on top of the wait would
/// wait for its own thread. They do not want it here, but check which thread holds it.
fn hold_a_lock_across_a_join(pool: &ThreadPool, call: fn(&mut (dyn FnMut() + Send))) {
    const NOBODY: usize = usize::MAX;
    let me = || poach_runtime::current_thread_index().unwrap();
    let (holder, ran) = (AtomicUsize::new(NOBODY), AtomicUsize::new(0));
    let stolen = AtomicBool::new(false);
    let task = || {
        assert_ne!(holder.load(Ordering::SeqCst), me(), "it would have waited for itself");
        ran.fetch_add(1, Ordering::SeqCst);
    };
    pool.install(|| {
        scope(|s| {
            call(&mut || {
                holder.store(me(), Ordering::SeqCst);
                join(
                    || {
                        until(&stolen);
                        (0..20).for_each(|_| s.spawn(|_| task()));
                    },
                    || {
                        raise(&stolen);
                        // Long enough for the other to look for something to do.
                        (0..200).for_each(|_| thread::yield_now());
                    },
                );
                holder.store(NOBODY, Ordering::SeqCst);
            });
        });
    });
    assert_eq!(ran.into_inner(), 20);
}

#[test]
fn a_restricted_wait_runs_no_spawned_task_on_top_of_a_lock() {
    for waiting in RESTRICTED {
        hold_a_lock_across_a_join(&pool(2, waiting), |hold| hold());
    }
}

#[test]
fn beyond_the_nesting_a_wait_is_restricted() {
    let pool = builder(2).waiting(Waiting::Random).nesting(0).build().unwrap();
    hold_a_lock_across_a_join(&pool, |hold| hold());
}

#[cfg(not(miri))] // whose addresses are not those of a stack
#[test]
fn beyond_half_of_the_call_stack_a_wait_is_restricted() {
    /// Calls `then` when `bytes` of stack are in use from `base` on.
    #[inline(never)]
    fn deep(base: usize, bytes: usize, then: &mut (dyn FnMut() + Send)) {
        let frame = black_box([1_u8; 1024]);
        let here = (&raw const frame).addr();
        if base.abs_diff(here) > bytes {
            then();
        } else {
            deep(base, bytes, then);
        }
        black_box(frame);
    }
    fn use_stack(bytes: usize, then: &mut (dyn FnMut() + Send)) {
        let here = 0_u8;
        deep((&raw const here).addr(), bytes, then);
    }
    let pool = builder(2).waiting(Waiting::Random).stack_size(4 << 20).callers_work(false);
    hold_a_lock_across_a_join(&pool.build().unwrap(), |hold| use_stack(2 << 20, hold));
    // A worker on a stack of unknown size.
    let resident = thread::spawn(|| {
        let pool = builder(2).waiting(Waiting::Random).use_current_thread().build().unwrap();
        hold_a_lock_across_a_join(&pool, |hold| use_stack(512 << 10, hold));
    });
    resident.join().unwrap();
}

/// The first part of the stolen half waits for the second, which only the worker is left to run
/// that waits for that half.
#[test]
fn a_wait_runs_forks_of_the_thief_that_it_waits_for() {
    for waiting in [Waiting::Leapfrog, Waiting::Transitive] {
        let (stolen, run) = (AtomicBool::new(false), AtomicBool::new(false));
        let second = || {
            // It answers an earlier request, so that the next fork is private.
            join(|| (), || ());
            let first = || {
                raise(&stolen);
                within_a_minute(|| run.load(Ordering::SeqCst))
            };
            join(first, || raise(&run)).0
        };
        let pool = pool(2, waiting);
        assert!(pool.install(|| join(|| until(&stolen), second)).1, "{waiting:?}");
        assert_eq!(pool.stats().total().leaps, 1);
    }
}

#[test]
fn a_random_wait_runs_what_the_worker_has_spawned() {
    let pool = pool(2, Waiting::Random);
    let (stolen, ran) = (AtomicBool::new(false), AtomicBool::new(false));
    pool.install(|| {
        scope(|s| {
            s.spawn(|_| raise(&ran));
            join(
                || until(&stolen),
                || {
                    raise(&stolen);
                    // Both workers are in this join: only its wait can run the task.
                    while !ran.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                },
            );
        });
    });
}

#[test]
fn a_panic_in_a_stolen_half_comes_out_of_every_wait() {
    for waiting in ALL {
        let pool = pool(2, waiting);
        let stolen = AtomicBool::new(false);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.install(|| {
                join(
                    || until(&stolen),
                    || {
                        raise(&stolen);
                        panic!("stolen, and lost");
                    },
                )
            })
        }));
        let payload = outcome.unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"stolen, and lost"), "{waiting:?}");
    }
}
