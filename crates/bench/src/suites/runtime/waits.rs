//! `wake` and `behind-leaf`: how long a task waits for another worker to begin it.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::library::Library;
use super::{PATIENCE, REST, median};
use crate::{Case, Size, Unit};

#[derive(Clone, Copy)]
enum Kind {
    Wake,
    Leaf,
}

/// What the task waits for.
#[derive(Clone, Copy)]
pub(super) struct Workload {
    name: &'static str,
    kind: Kind,
}

pub(super) const WORKLOADS: [Workload; 2] = [
    Workload { name: "wake", kind: Kind::Wake },
    Workload { name: "behind-leaf", kind: Kind::Leaf },
];

pub(super) fn case<L: Library>(workload: Workload, size: Size, workers: usize) -> Case {
    let Workload { name, kind } = workload;
    let count = match kind {
        Kind::Wake => size.pick(3, 50, 200, 200),
        Kind::Leaf => size.pick(1, 5, 5, 5),
    };
    let leaf = Duration::from_millis(size.pick(2, 20, 100, 100));
    Case::new(name, L::NAME, workers, Unit::MICROSECONDS, move || {
        ensure!(
            workers > 1,
            "`{name}` needs a second worker, and a pool of 1 has none: ask for more (--workers 2)"
        );
        let pool = L::new(workers)?;
        Ok(move || {
            let one = || match kind {
                Kind::Wake => wake(&pool, PATIENCE),
                Kind::Leaf => behind_leaf(&pool, leaf, PATIENCE),
            };
            let times: Vec<Duration> = (0..count).map(|_| one()).collect::<Result<_>>()?;
            Ok(median(&times, 1e6))
        })
    })
}

/// From a fork, all workers asleep, to the start of its second half on another worker.
///
/// The first half ends when it sees that the second one has begun, so that it was elsewhere.
fn wake<L: Library>(pool: &L, patience: Duration) -> Result<Duration> {
    thread::sleep(REST);
    let begun = Flag::default();
    pool.install(|| {
        let fork = Instant::now();
        let wait = || begun.wait(patience);
        let tell = || {
            let late = fork.elapsed();
            begun.raise();
            late
        };
        let (seen, late) = L::join(wait, tell);
        ensure!(seen, "no other worker began the second half of a join within {patience:?}");
        Ok(late)
    })
}

/// What the task behind the leaf takes: of tasks that are over at once a thief has enough before
/// long, and rests between them.
const TASK: Duration = Duration::from_millis(1);

/// From the moment that the other worker is free to the start of the task behind the leaf.
///
/// The owner forks that task while the other is at work, so nobody has asked for it, and does not
/// come back to its queue before the leaf's end. If nobody takes it meanwhile the owner runs it
/// then, and the time is the leaf's. If the other worker was not free before the leaf's end, the
/// system has given it no time, and there is nothing to measure. Then the leaf is made again, for
/// as long as `patience` lasts.
fn behind_leaf<L: Library>(pool: &L, leaf: Duration, patience: Duration) -> Result<Duration> {
    let begun = Instant::now();
    let mut tries = 0;
    while tries == 0 || begun.elapsed() < patience {
        if let Some(time) = behind_a_leaf(pool, leaf, patience)? {
            return Ok(time);
        }
        tries += 1;
    }
    bail!(
        "the second worker got no processor during a leaf of {leaf:?}, {tries} times in {patience:?}: is the machine busy?"
    )
}

/// As said there; `None` if the other worker was not free in time.
fn behind_a_leaf<L: Library>(
    pool: &L,
    leaf: Duration,
    patience: Duration,
) -> Result<Option<Duration>> {
    let (away, in_leaf) = (Flag::default(), Flag::default());
    let (begun, free) = pool.install(|| {
        let owner = || {
            let away = away.wait(patience);
            let leaf = || {
                in_leaf.raise();
                if away {
                    work(leaf);
                }
            };
            let begun = L::join(leaf, || work(TASK)).1;
            away.then_some(begun)
        };
        let other = || {
            away.raise();
            in_leaf.wait(patience).then(Instant::now)
        };
        L::join(owner, other)
    });
    let begun = begun
        .with_context(|| format!("no other worker took a half of a join within {patience:?}"))?;
    let free = free.with_context(|| format!("no leaf had begun within {patience:?}"))?;
    Ok(begun.checked_duration_since(free))
}

/// Computes for this time; returns the start.
fn work(time: Duration) -> Instant {
    let begun = Instant::now();
    while begun.elapsed() < time {
        hint::spin_loop();
    }
    begun
}

/// Raised by one worker while another looks.
#[derive(Default)]
struct Flag(AtomicBool);

impl Flag {
    fn raise(&self) {
        // Release: pairs with the acquire in `wait`; what was read of the clock before is before.
        self.0.store(true, Ordering::Release);
    }

    /// Looks until it is raised; whether it was within that time.
    fn wait(&self, patience: Duration) -> bool {
        let start = Instant::now();
        while !self.0.load(Ordering::Acquire) {
            if start.elapsed() >= patience {
                return false;
            }
            hint::spin_loop();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::library::{Poach, Rayon};
    use super::*;

    fn patience_ends<L: Library>() {
        let pool = L::new(1).unwrap();
        let patience = Duration::from_millis(5);
        for error in [wake(&pool, patience), behind_leaf(&pool, patience, patience)] {
            let error = error.unwrap_err().to_string();
            assert!(error.starts_with("no other worker ") && error.ends_with(" 5ms"), "{error}");
        }
    }

    #[test]
    fn nobody_waits_for_ever() {
        patience_ends::<Poach>();
        patience_ends::<Rayon>();
    }
}
