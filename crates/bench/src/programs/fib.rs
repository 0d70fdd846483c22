//! Fibonacci, by two recursive calls at every n of 2 or more: nothing but forks.
//!
//! Source: Lace, section 4.1 (fib 50 there), and Cilk's `fib` (42 in the fence-free paper, Table
//! 1). The smallest grain: a fork for every call, no cut-off.

use anyhow::{Result, ensure};
use poach_simulate::forks::{End, Strand, Tree};

use crate::Size;
use crate::fork::{Fork, Program, System, Task};
use crate::suites::simulate::Play;

pub(crate) struct Fib {
    pub(crate) n: u32,
    result: Option<u64>,
}

impl Fib {
    /// The program for this number.
    pub(crate) fn of(n: u32) -> Self {
        Fib { n, result: None }
    }

    /// What the last run came to.
    #[cfg(test)]
    pub(crate) fn result(&self) -> Option<u64> {
        self.result
    }
}

struct Number(u32);

impl Task for Number {
    type Output = u64;

    fn run<F: Fork>(self, mut fork: F) -> u64 {
        let n = self.0;
        if n < 2 {
            return u64::from(n);
        }
        let (a, b) = fork.join(Number(n - 1), Number(n - 2));
        a + b
    }
}

impl Program for Fib {
    const NAME: &'static str = "fib";

    fn new(size: Size) -> Self {
        Fib::of(size.pick(16, 33, 40, 50))
    }

    fn reset(&mut self) {
        self.result = None;
    }

    fn run(&mut self, system: &impl System) {
        self.result = Some(system.run(Number(self.n)));
    }

    fn tree(&self, seconds: f64) -> Option<Box<dyn Play>> {
        // Calls of some ten microseconds and less are strands.
        let (n, grain) = (self.n, self.n.saturating_sub(25).clamp(2, 16));
        let unit = seconds * 1e12 / FibTree { n, grain, unit: 0.0 }.strands();
        Some(Box::new(FibTree { n, grain, unit }))
    }

    fn check(&self) -> Result<()> {
        let (mut expected, mut next) = (0u64, 1);
        for _ in 0..self.n {
            (expected, next) = (next, expected + next);
        }
        ensure!(
            self.result == Some(expected),
            "fib({}) is {expected}, not {:?}",
            self.n,
            self.result
        );
        Ok(())
    }
}

/// Fibonacci: a strand is a third of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FibTree {
    pub(crate) n: u32,
    /// Calls with smaller numbers are one strand.
    pub(crate) grain: u32,
    /// Picoseconds a strand.
    pub(crate) unit: f64,
}

/// A call with this number, or the strand after its join.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FibTask {
    Call(u32),
    After,
}

impl FibTree {
    /// The forks of a call.
    pub(crate) fn forks(n: u32) -> u64 {
        let (mut a, mut b) = (0u64, 1);
        for _ in 0..=n {
            (a, b) = (b, a + b);
        }
        a - 1
    }

    pub(crate) fn strands(&self) -> f64 {
        3.0 * Self::forks(self.n) as f64 + 1.0
    }
}

impl Tree for FibTree {
    type Task = FibTask;

    fn root(&self) -> FibTask {
        FibTask::Call(self.n)
    }

    fn strand(&self, task: FibTask) -> Strand<FibTask> {
        let strand = |inner: u64, end| Strand {
            work: ((3.0 * inner as f64 + 1.0) * self.unit) as u64,
            inner,
            end,
        };
        match task {
            FibTask::Call(n) if n >= 2 && n >= self.grain => {
                let (first, second) = (FibTask::Call(n - 1), FibTask::Call(n - 2));
                strand(0, End::Fork { first, second, after: FibTask::After })
            }
            FibTask::Call(n) => strand(Self::forks(n), End::Done),
            FibTask::After => strand(0, End::Done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork::Split;

    /// `fib` as a program of this crate.
    #[inline(never)]
    fn generic(system: &Split, n: u32) -> Option<u64> {
        let mut program = Fib::of(n);
        program.run(system);
        program.result()
    }

    /// `fib` as one would write it for Poach alone.
    #[inline(never)]
    fn direct(pool: &poach_runtime::ThreadPool, n: u32) -> u64 {
        fn fib(mut worker: poach_runtime::Worker<'_>, n: u32) -> u64 {
            if n < 2 {
                return u64::from(n);
            }
            let (a, b) = worker.join(move |w| fib(w, n - 1), move |w| fib(w, n - 2));
            a + b
        }
        pool.run(|worker| fib(worker, n))
    }

    /// Under callgrind, with `--toggle-collect` on either, their instructions are to be the same.
    #[test]
    fn a_program_of_tasks_is_the_program_of_closures() {
        let split = Split::new(1).unwrap();
        let pool = poach_runtime::ThreadPool::builder().num_threads(1).build().unwrap();
        assert_eq!(generic(&split, 22), Some(17_711));
        assert_eq!(direct(&pool, 22), 17_711);
    }
}
