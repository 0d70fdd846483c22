//! `spawn-1k` to `spawn-1m`: that many empty tasks in a scope, and the wait for their end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};

use super::library::Library;
use crate::{Case, Size, Unit};

/// A scope of a number of tasks.
#[derive(Clone, Copy)]
pub(super) struct Workload {
    name: &'static str,
    tasks: u64,
}

pub(super) const WORKLOADS: [Workload; 4] = [
    Workload { name: "spawn-1k", tasks: 1_000 },
    Workload { name: "spawn-10k", tasks: 10_000 },
    Workload { name: "spawn-100k", tasks: 100_000 },
    Workload { name: "spawn-1m", tasks: 1_000_000 },
];

/// The value is a task's share of the time of the scopes of a sample, one after the other within
/// the pool.
///
/// The tasks are empty, so after that time another scope has tasks that are counted.
pub(super) fn case<L: Library>(workload: Workload, size: Size, workers: usize) -> Case {
    let tasks = size.pick(workload.tasks.min(100), workload.tasks, workload.tasks, workload.tasks);
    let scopes = (size.pick(tasks, 300_000, 2_000_000, 2_000_000) / tasks).max(1);
    Case::new(workload.name, L::NAME, workers, Unit::NANOSECONDS, move || {
        let pool = L::new(workers)?;
        Ok(move || {
            let seconds = pool.install(|| {
                let start = Instant::now();
                for _ in 0..scopes {
                    L::scope(tasks, |_| || ());
                }
                start.elapsed().as_secs_f64()
            });
            let tally = &Tally::default();
            pool.install(|| L::scope(tasks, |number| move || tally.run(number)));
            tally.check(tasks)?;
            Ok((seconds * 1e9 / (scopes * tasks) as f64).into())
        })
    })
}

/// Counts the tasks that have run.
#[derive(Default)]
struct Tally {
    count: AtomicU64,
    sum: AtomicU64,
}

impl Tally {
    fn run(&self, number: u64) {
        // Relaxed: the end of the scope is after each of them.
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(number, Ordering::Relaxed);
    }

    fn check(&self, tasks: u64) -> Result<()> {
        let (count, sum) = (self.count.load(Ordering::Relaxed), self.sum.load(Ordering::Relaxed));
        let right = tasks * (tasks - 1) / 2;
        ensure!(
            count == tasks && sum == right,
            "of {tasks} tasks {count} had run at the end of their scope; their numbers make {sum}, not {right}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_is_lost_or_run_twice_is_noticed() {
        let run = |numbers: &[u64]| {
            let tally = Tally::default();
            for number in numbers {
                tally.run(*number);
            }
            tally.check(3)
        };
        run(&[2, 0, 1]).unwrap();
        let lost = run(&[0, 1]).unwrap_err().to_string();
        assert!(lost.starts_with("of 3 tasks 2 had run"), "{lost}");
        assert!(run(&[0, 1, 2, 2]).is_err() && run(&[0, 1, 1]).is_err());
    }
}
