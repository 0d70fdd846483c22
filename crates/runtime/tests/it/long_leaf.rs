//! A task does not wait for the long task that its owner runs.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use poach_memory::{Machine, Memory};
use poach_runtime::{ThreadPool, Worker};

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

/// Forks three tasks and then runs a leaf that waits for them.
fn three_behind_a_leaf(mut w: Worker<'_>) {
    let ended = AtomicUsize::new(0);
    let count = || {
        ended.fetch_add(1, Ordering::SeqCst);
    };
    // Whatever the thief asks for, it is given the oldest; the youngest stays private while the
    // leaf below runs, until the thief takes it.
    w.join(
        |mut w| {
            w.join(
                |mut w| {
                    w.join(
                        |_| assert!(wait_for(|| ended.load(Ordering::SeqCst) == 3)),
                        |_| count(),
                    );
                },
                |_| count(),
            );
        },
        |_| count(),
    );
    assert_eq!(ended.into_inner(), 3);
}

#[test]
fn private_tasks_of_a_busy_owner_are_run_by_others() {
    let pool = ThreadPool::builder().num_threads(2).build().unwrap();
    for _ in 0..20 {
        pool.run(three_behind_a_leaf);
    }
}

/// The thief has just served a caller, or a caller puts it to sleep while it looks for work. In
/// neither case may it sleep before it has exposed what it left behind at its last theft.
#[test]
fn a_thief_that_has_served_a_caller_leaves_nothing_behind_a_leaf() {
    let rounds = if cfg!(miri) { 5 } else { 300 };
    for callers_work in [true, false] {
        let pool = ThreadPool::builder().num_threads(2).callers_work(callers_work).build().unwrap();
        for round in 0..rounds {
            // Somebody is awake, for a time that depends on the round; then serves this thread.
            drop(pool.spawn_handle(|| ()));
            for _ in 0..round % 10 * 200 {
                Machine::pause();
            }
            pool.install(|| ());
            for _ in 0..round % 7 * 20 {
                Machine::pause();
            }
            pool.run(three_behind_a_leaf);
        }
    }
}

/// Calls from a second thread come while the first one's tasks are behind its leaf: the only other
/// worker serves them, at times in the person of the caller.
#[test]
fn a_visit_to_a_thief_leaves_nothing_behind_a_leaf() {
    let pool = ThreadPool::builder().num_threads(2).build().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                pool.install(|| ());
                // So that the thief has a moment for itself.
                thread::sleep(Duration::from_micros(20));
            }
        });
        let rounds = if cfg!(miri) { 5 } else { 200 };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            (0..rounds).for_each(|_| pool.run(three_behind_a_leaf));
        }));
        over.store(true, Ordering::SeqCst);
        assert!(outcome.is_ok());
    });
}

/// Forks one task a level, each counted, and naps at the bottom.
fn nest(mut w: Worker<'_>, depth: usize, runs: &[AtomicUsize], nap: u64) {
    if depth == runs.len() {
        thread::sleep(Duration::from_micros(nap));
        return;
    }
    w.join(
        |w| nest(w, depth + 1, runs, nap),
        |_| {
            runs[depth].fetch_add(1, Ordering::SeqCst);
            if depth % 3 == 0 {
                thread::sleep(Duration::from_micros(nap / 4));
            }
        },
    );
}

#[test]
fn exposed_tasks_run_once_whether_the_owner_comes_back_or_not() {
    let pool = ThreadPool::builder().num_threads(3).build().unwrap();
    for round in 0..if cfg!(miri) { 20 } else { 200_u64 } {
        let runs: [AtomicUsize; 8] = Default::default();
        pool.run(|w| nest(w, 0, &runs, round * 7 % 400));
        assert!(runs.iter().all(|runs| runs.load(Ordering::SeqCst) == 1), "round {round}");
    }
}

/// Of three workers one is in a leaf, with private tasks, and another has stolen the first of its
/// tasks, which takes as long: nobody looks for work, and the third sleeps.
#[test]
fn a_thief_that_does_not_come_back_either_leaves_another_on_the_lookout() {
    let pool = ThreadPool::builder().num_threads(3).build().unwrap();
    for _ in 0..if cfg!(miri) { 3 } else { 30 } {
        let ended = AtomicUsize::new(0);
        let wait = || assert!(wait_for(|| ended.load(Ordering::SeqCst) == 2));
        let count = || _ = ended.fetch_add(1, Ordering::SeqCst);
        pool.run(|mut w| {
            w.join(
                |mut w| {
                    w.join(
                        |mut w| {
                            w.join(|_| wait(), |_| count());
                        },
                        |_| count(),
                    );
                },
                |_| wait(),
            );
        });
        // So that all are asleep.
        thread::sleep(Duration::from_millis(3));
    }
}
