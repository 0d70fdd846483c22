//! The queues with a lock, and two thieves: while one has raised `head` over a task that it may
//! still leave, the other must not say that the queue is empty.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.
#![forbid(unsafe_code)]

use std::num::NonZeroU64;

use poach_check::{Config, Verdict};
use poach_models::{Algorithm, Policy, Scenario, check};

/// Two tasks, which the owner and two thieves with one attempt each empty together; every
/// execution.
fn linearizable(algorithm: Algorithm, policy: Policy, tasks: u32) {
    let scenario = Scenario::drain(tasks, 1, 2, 1);
    let report = check(algorithm, policy, &scenario, &Config::bounded(1, true));
    match report.verdict {
        Verdict::Clean => assert!(report.executions > 1, "nothing was explored"),
        other => panic!("{algorithm:?} under {policy:?}: {other:?}"),
    }
}

fn bounded(delta: u64) -> Policy {
    Policy::Bounded { delta: NonZeroU64::new(delta).unwrap(), fill: false }
}

#[test]
fn the() {
    linearizable(Algorithm::The, Policy::Full, 2);
}

#[test]
fn ff_the_aborts_and_its_rival_does_not_find_the_queue_empty() {
    linearizable(Algorithm::The, bounded(2), 2);
}

#[test]
fn thep() {
    linearizable(Algorithm::Thep, bounded(1), 1);
}
