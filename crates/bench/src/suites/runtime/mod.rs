//! The suite `runtime`: what a task-parallel runtime costs apart from programs.
//!
//! | workload | what is done | value |
//! |---|---|---|
//! | `spawn-1k` to `spawn-1m` | that many empty tasks in a scope, and the wait for their end | ns a task |
//! | `small-tree` | the sum of a tree of 999 nodes, again and again, from within the pool | ns a call |
//! | `sort-10k`, `sort-1m`, `sort-unstable-10k`, `-1m` | that many random numbers sorted by `par_sort` or `par_sort_unstable`, and by the standard library's | ns a number |
//! | `call-asleep` | an empty call from outside into a pool whose workers sleep | ns, median of many |
//! | `call-hot` | the same, called just now | ns, median of many |
//! | `install-asleep`, `install-hot` | the same two, handed to a thread of the pool | ns, median of many |
//! | `wake` | from a fork, all workers asleep, to the start of its second half on another worker | us, median of some |
//! | `behind-leaf` | from the moment a worker is free to the start of a task that another one forked before a long leaf | us, median of some |
//! | `region-outside`, `-install`, `-inside` | regions of 8 to 2,048 us every 0 to 2,000 us: see [`region`] | times of the sequential program |
//! | `idle` | processor time of the pool's threads while they have nothing to do | us in all |
//!
//! Both libraries get pools as they ship, without any option but the number of threads. Where a
//! sample is a median of single calls its counter `p99` is what 99 of 100 stay below.
//!
//! A wait for another worker lasts [`PATIENCE`] at most; then its case fails and says so. So a pool
//! of one worker, or a machine that gives the second worker no time, does not hang.

mod calls;
mod idle;
mod library;
pub(crate) mod region;
mod small_tree;
mod sorts;
mod spawns;
mod waits;

use std::time::Duration;

use crate::{Case, Request, Sample, Suite, percentile};
use library::{Poach, Rayon};

/// The suite `runtime`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runtime;

/// After this time without work the workers of either library sleep. Poach's give up looking for
/// work after less than half a millisecond, rayon's after some microseconds.
const REST: Duration = Duration::from_millis(2);

/// For so long at most one half of a fork waits for the other to begin elsewhere. rayon's worker
/// waits for the end of a slice of the scheduler, some milliseconds; a crowded machine gives a
/// thread its turn within a second.
const PATIENCE: Duration = Duration::from_secs(2);

impl Suite for Runtime {
    fn name(&self) -> &'static str {
        "runtime"
    }

    fn about(&self) -> &'static str {
        "what a runtime costs apart from programs: spawns, sorts, small calls, wake-ups, long leaves, short regions, idle workers"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let mut cases = Vec::new();
        for workload in spawns::WORKLOADS {
            for workers in &request.workers {
                cases.push(spawns::case::<Poach>(workload, request.size, *workers));
                cases.push(spawns::case::<Rayon>(workload, request.size, *workers));
            }
        }
        small_tree::cases(request, &mut cases);
        sorts::cases::<Poach, Rayon>(request, &mut cases);
        for workload in calls::WORKLOADS {
            for workers in &request.workers {
                cases.push(calls::case::<Poach>(workload, request.size, *workers));
                cases.push(calls::case::<Rayon>(workload, request.size, *workers));
            }
        }
        for workload in waits::WORKLOADS {
            for workers in several(&request.workers) {
                cases.push(waits::case::<Poach>(workload, request.size, workers));
                cases.push(waits::case::<Rayon>(workload, request.size, workers));
            }
        }
        region::cases(request, &mut cases);
        if cfg!(target_os = "linux") {
            let workers = request.workers.iter().copied().max().unwrap_or(1);
            cases.push(idle::case::<Poach>(request.size, workers));
            cases.push(idle::case::<Rayon>(request.size, workers));
        }
        cases
    }
}

/// The numbers of workers with which one worker can wait for another. If only 1 is asked for, then
/// 1: its cases say why they cannot be.
fn several(workers: &[usize]) -> Vec<usize> {
    let several: Vec<usize> = workers.iter().copied().filter(|count| *count > 1).collect();
    if several.is_empty() { vec![1] } else { several }
}

/// The median of `times`, in units of which a second has `per_second`, and what 99 of 100 stay
/// below.
///
/// # Panics
///
/// If there are none.
fn median(times: &[Duration], per_second: f64) -> Sample {
    let mut values: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * per_second).collect();
    values.sort_by(f64::total_cmp);
    Sample::from(percentile(&values, 0.5)).count("p99", percentile(&values, 0.99))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, Plan, Session, Size};

    fn run(workers: Vec<usize>, workloads: &[&str]) -> Document {
        let workloads = workloads.iter().map(|name| (*name).to_owned()).collect();
        let plan = Plan { rounds: 1, size: Size::Tiny, workers, workloads, ..Plan::quick() };
        let session = Session::new(Plan { budget: None, ..plan });
        session.run(&Runtime, &|_event| {}).expect("a suite that can be run");
        session.document()
    }

    #[test]
    fn one_worker_has_nobody_to_wait_for() {
        let document = run(vec![1], &["wake", "behind-leaf"]);
        assert!(document.rows.is_empty(), "{:?}", document.rows);
        assert_eq!(document.failures.len(), 4);
        for failure in &document.failures {
            assert!(failure.message.contains("needs a second worker"), "{failure:?}");
        }
    }

    #[test]
    fn more_workers_than_poach_can_have_are_refused_of_all() {
        let document = run(vec![100_000], &["call-hot", "small-tree", "wake", "idle"]);
        // The sequential program has one worker, whatever is asked.
        assert!(document.rows.iter().all(|row| row.system == "sequential"), "{:?}", document.rows);
        assert!(!document.failures.is_empty());
        for failure in &document.failures {
            assert!(failure.message.ends_with("at most, not 100000"), "{failure:?}");
        }
    }

    #[test]
    fn the_median_and_the_tail() {
        let times: Vec<Duration> = (1..=101).map(Duration::from_micros).collect();
        let sample = median(&times, 1e6);
        assert!((sample.value - 51.0).abs() < 1e-9, "{sample:?}");
        assert!((sample.counters["p99"] - 100.0).abs() < 1e-9, "{sample:?}");
    }
}
