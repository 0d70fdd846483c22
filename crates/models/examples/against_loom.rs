//! The same model of the same source under loom and under this checker: executions and time to the
//! end.
//!
//! ```console
//! $ cargo run --release -p poach-check --example against_loom
//! ```
//!
//! The queue is Chase-Lev with full fences, the only kind that both can call correct. loom's memory
//! is C11's, which has no bound on what a store buffer hides, so it refutes every fence-free queue
//! at every delta. Both search exhaustively, without a bound on preemptions, and check that each
//! task comes out once; this checker also asks that the history is a deque's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use poach_check::{Config, Verdict};
use poach_deque::{ChaseLev, Steal};
use poach_memory::{Full, Loom};
use poach_models::{Algorithm, Policy, Scenario, Step, check};

/// The owner's script, and the number of the thief's steals.
const MODELS: &[(&str, &[Step], u32)] = &[
    ("push, pop; steal", &[Step::Push, Step::Pop], 1),
    ("push, push, pop; steal", &[Step::Push, Step::Push, Step::Pop], 1),
    ("push, push, pop, pop; steal", &[Step::Push, Step::Push, Step::Pop, Step::Pop], 1),
    ("push, push, pop, pop; steal, steal", &[Step::Push, Step::Push, Step::Pop, Step::Pop], 2),
];

fn main() {
    println!("{:36} {:>12} {:>9}   {:>12} {:>9}", "", "loom", "s", "poach check", "s");
    for (name, script, steals) in MODELS {
        let (theirs, their_time) = with_loom(script, *steals);
        let scenario =
            Scenario { script: script.to_vec(), capacity: 2, ..Scenario::drain(0, 0, 1, *steals) };
        let report = check(Algorithm::ChaseLev, Policy::Full, &scenario, &Config::default());
        assert_eq!(report.verdict, Verdict::Clean, "the queue has its fences");
        println!(
            "{name:36} {theirs:12} {:9.3}   {:12} {:9.3}",
            their_time.as_secs_f64(),
            report.executions,
            report.elapsed.as_secs_f64()
        );
    }
}

fn with_loom(script: &'static [Step], steals: u32) -> (u64, Duration) {
    let executions = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 100_000;
    let started = Instant::now();
    builder.check(move || {
        // Relaxed: loom runs one execution after another.
        count.fetch_add(1, Ordering::Relaxed);
        let queue = ChaseLev::<u64, Full, Loom>::starting_at(Full, 2, 0).expect("a power of two");
        let thief = queue.thief();
        let other = loom::thread::spawn(move || {
            (0..steals).filter_map(|_| Steal::success(thief.steal())).collect::<Vec<_>>()
        });
        let mut next = 0;
        let mut taken = Vec::new();
        for step in script {
            if *step == Step::Push {
                next += 1;
                queue.push(next);
            } else {
                taken.extend(queue.pop());
            }
        }
        taken.extend(other.join().expect("a thief does not panic"));
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[0] != pair[1]), "taken twice: {taken:?}");
    });
    (executions.load(Ordering::Relaxed), started.elapsed())
}
