//! A task is not stuck behind one that runs for long, though its owner does not come back.

use std::sync::atomic::{AtomicUsize, Ordering};
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

#[test]
fn private_tasks_of_a_busy_owner_are_run_by_others() {
    if !Machine::asymmetric() {
        // Documented: without a process-wide barrier they wait for their owner.
        return;
    }
    let pool = ThreadPool::builder().threads(2).build().unwrap();
    for _ in 0..20 {
        let ended = AtomicUsize::new(0);
        let count = || {
            ended.fetch_add(1, Ordering::SeqCst);
        };
        pool.run(|mut w| {
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
        });
        assert_eq!(ended.into_inner(), 3);
    }
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
            if depth.is_multiple_of(3) {
                thread::sleep(Duration::from_micros(nap / 4));
            }
        },
    );
}

#[test]
fn exposed_tasks_run_once_whether_the_owner_comes_back_or_not() {
    let pool = ThreadPool::builder().threads(3).build().unwrap();
    for round in 0..if cfg!(miri) { 20 } else { 200_u64 } {
        let runs: [AtomicUsize; 8] = Default::default();
        pool.run(|w| nest(w, 0, &runs, round * 7 % 400));
        assert!(runs.iter().all(|runs| runs.load(Ordering::SeqCst) == 1), "round {round}");
    }
}
