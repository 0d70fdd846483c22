//! The suite `deque`: every queue and fence policy, beside crossbeam-deque and st3.
//!
//! | workload | what the owner does | thieves | value |
//! |---|---|---|---|
//! | `owner-alternate` | push, pop, push, pop | none | ns a push and a pop |
//! | `owner-batch` | 1000 pushes, then 1000 pops | none | ns a push and a pop |
//! | `thief-1`, `thief-2` | 1000 pushes, then pops until the queue is empty | 1, 2, without a pause | ns of the owner a push |
//! | `steals-1`, `steals-2` | the same | 1, 2 | million tasks stolen a second |
//!
//! `array` is the floor: an array with a `tail` and a `head` that nobody moves; `array-fenced` is
//! that with a full fence in each pop.
//!
//! `face-lifo` and `face-fifo` are `poach_deque::crossbeam`'s workers, beside `crossbeam-lifo` and
//! `crossbeam-fifo`; a thief of those with `-batch` steals up to 32 tasks at a time and pops them
//! from a queue of its own.
//!
//! Each sample checks that the tasks that came out are the tasks that went in. Queues that promise
//! less (the idempotent ones, and `unfenced`, which is wrong and stands here as the limit) report
//! how far the count is off instead, as the counter `off`.

mod subject;

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::{Case, Request, Sample, Size, Suite, Unit};
use subject::{Subject, Thief};

/// The suite `deque`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deque;

impl Suite for Deque {
    fn name(&self) -> &'static str {
        "deque"
    }

    fn about(&self) -> &'static str {
        "work-stealing queues: the owner alone and with thieves, for each queue and fence policy"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let mut cases = Vec::new();
        for workload in WORKLOADS {
            subject::each(&mut Lister { workload, size: request.size, cases: &mut cases });
        }
        cases
    }
}

/// What the owner does before it turns around.
const BATCH: u64 = 1000;

#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    kind: Kind,
    thieves: usize,
}

#[derive(Clone, Copy)]
enum Kind {
    Alternate,
    Batch,
    /// Nanoseconds of the owner.
    Owner,
    /// Million steals a second.
    Steals,
}

const WORKLOADS: [Workload; 6] = [
    Workload { name: "owner-alternate", kind: Kind::Alternate, thieves: 0 },
    Workload { name: "owner-batch", kind: Kind::Batch, thieves: 0 },
    Workload { name: "thief-1", kind: Kind::Owner, thieves: 1 },
    Workload { name: "thief-2", kind: Kind::Owner, thieves: 2 },
    Workload { name: "steals-1", kind: Kind::Steals, thieves: 1 },
    Workload { name: "steals-2", kind: Kind::Steals, thieves: 2 },
];

impl Workload {
    fn unit(self) -> Unit {
        match self.kind {
            Kind::Alternate | Kind::Batch | Kind::Owner => Unit::NANOSECONDS,
            Kind::Steals => Unit::MILLIONS_PER_SECOND,
        }
    }

    fn tasks(self, size: Size) -> u64 {
        match self.kind {
            Kind::Alternate | Kind::Batch => {
                size.pick(2 * BATCH, 1_000_000, 20_000_000, 50_000_000)
            }
            Kind::Owner | Kind::Steals => size.pick(2 * BATCH, 300_000, 3_000_000, 30_000_000),
        }
    }

    fn sample<S: Subject>(self, queue: &S, tasks: u64) -> Result<Sample> {
        match self.kind {
            Kind::Alternate => alone(tasks, || alternate(queue, tasks)),
            Kind::Batch => alone(tasks, || batches(queue, tasks)),
            Kind::Owner | Kind::Steals => {
                let outcome = beset(queue, tasks, self.thieves);
                let stolen: u64 = outcome.stolen.iter().map(|taken| taken.count).sum();
                let rate = stolen as f64 / outcome.seconds / 1e6;
                let cost = outcome.seconds * 1e9 / tasks as f64;
                let value = if matches!(self.kind, Kind::Owner) { cost } else { rate };
                let sample = Sample::from(value)
                    .count("stolen", stolen as f64 / tasks as f64)
                    .count(STEALS, rate)
                    .count(OWNER, cost);
                if S::EXACT {
                    outcome.check(tasks)?;
                    Ok(sample)
                } else {
                    Ok(sample.count("off", outcome.count() as f64 - tasks as f64))
                }
            }
        }
    }
}

struct Lister<'a> {
    workload: Workload,
    size: Size,
    cases: &'a mut Vec<Case>,
}

impl subject::Visitor for Lister<'_> {
    fn visit<S: Subject>(&mut self, name: &'static str, make: fn() -> Result<S>) {
        let Workload { name: workload, thieves, .. } = self.workload;
        // Queues that this machine cannot have are left out.
        if thieves > 0 && !S::STEALS || make().is_err() {
            return;
        }
        let (this, tasks) = (self.workload, self.workload.tasks(self.size));
        self.cases.push(Case::new(workload, name, 1 + thieves, this.unit(), move || {
            let queue = make()?;
            Ok(move || this.sample(&queue, tasks))
        }));
    }
}

/// Counters: million steals a second, and the owner's nanoseconds for a push. A row has both,
/// whichever is its value. By the owner's time a queue that no thief can steal from looks fast; by
/// the steals, a queue whose owner stands still does.
pub(crate) const STEALS: &str = "steals_M_per_s";
pub(crate) const OWNER: &str = "owner_ns";

/// The owner alone: each task that goes in comes out.
fn alone(tasks: u64, run: impl FnOnce() -> Taken) -> Result<Sample> {
    let start = Instant::now();
    let own = run();
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, own, stolen: Vec::new() }.check(tasks)?;
    Ok((seconds * 1e9 / tasks as f64).into())
}

#[inline(never)]
fn alternate<S: Subject>(queue: &S, tasks: u64) -> Taken {
    let mut taken = Taken::default();
    for task in 0..tasks {
        queue.push(task);
        if let Some(task) = queue.pop() {
            taken.add(task);
        }
    }
    black_box(taken)
}

#[inline(never)]
fn batches<S: Subject>(queue: &S, tasks: u64) -> Taken {
    let mut taken = Taken::default();
    for first in (0..tasks).step_by(BATCH as usize) {
        let batch = first..(first + BATCH).min(tasks);
        for task in batch.clone() {
            queue.push(task);
        }
        for _ in batch {
            if let Some(task) = queue.pop() {
                taken.add(task);
            }
        }
    }
    black_box(taken)
}

/// Tasks that a thread got.
#[derive(Clone, Copy, Default)]
struct Taken {
    count: u64,
    sum: u64,
}

impl Taken {
    #[inline]
    fn add(&mut self, task: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(task);
    }
}

struct Outcome {
    seconds: f64,
    own: Taken,
    stolen: Vec<Taken>,
}

impl Outcome {
    fn count(&self) -> u64 {
        self.own.count + self.stolen.iter().map(|taken| taken.count).sum::<u64>()
    }

    fn check(&self, tasks: u64) -> Result<()> {
        let all = self.stolen.iter().chain([&self.own]);
        let sum = all.fold(0, |sum: u64, taken| sum.wrapping_add(taken.sum));
        let right = (0..tasks).fold(0, u64::wrapping_add);
        ensure!(
            self.count() == tasks && sum == right,
            "{tasks} tasks went in and {} came out; their sums are {right} and {sum}",
            self.count()
        );
        Ok(())
    }
}

/// The owner at work while thieves steal.
fn beset<S: Subject>(queue: &S, tasks: u64, thieves: usize) -> Outcome {
    let barrier = Barrier::new(thieves + 1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..thieves)
            .map(|_| {
                let mut thief = queue.thief();
                let (barrier, done) = (&barrier, &done);
                scope.spawn(move || {
                    let mut taken = Taken::default();
                    barrier.wait();
                    // Relaxed: what a thief misses by seeing it late is nothing.
                    while !done.load(Ordering::Relaxed) {
                        thief.steal(|task| taken.add(task));
                    }
                    taken
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        let mut own = Taken::default();
        let mut task = 0;
        while task < tasks {
            for _ in 0..BATCH.min(tasks - task) {
                queue.push(task);
                task += 1;
            }
            while let Some(task) = queue.pop() {
                own.add(task);
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        let stolen = handles.into_iter().map(|handle| handle.join().unwrap_or_default()).collect();
        Outcome { seconds, own, stolen }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Once;

    impl subject::Visitor for Once {
        fn visit<S: Subject>(&mut self, name: &'static str, make: fn() -> Result<S>) {
            let queue = make().unwrap();
            alone(10, || alternate(&queue, 10)).unwrap();
            alone(3 * BATCH - 1, || batches(&queue, 3 * BATCH - 1)).unwrap();
            assert_eq!(queue.pop(), None, "{name}");
            if S::STEALS {
                let outcome = beset(&queue, 20 * BATCH, 2);
                if S::EXACT {
                    outcome.check(20 * BATCH).unwrap();
                }
            }
        }
    }

    #[test]
    fn every_queue_runs_dry_and_gives_out_what_it_got() {
        crate::promise::in_tests();
        subject::each(&mut Once);
    }

    #[test]
    fn a_lost_task_is_noticed() {
        let own = Taken { count: 9, sum: 45 };
        let outcome = Outcome { seconds: 1.0, own, stolen: vec![Taken::default()] };
        assert!(outcome.check(10).is_err());
        assert!(alone(10, || own).is_err());
    }
}
