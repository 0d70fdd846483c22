//! Fibonacci, by two recursive calls at every n of 2 or more: nothing but forks.
//!
//! Source: Lace, section 4.1 (fib 50 there), and Cilk's `fib` (42 in the fence-free paper, Table 1).
//! The smallest grain: a fork for every call, no cut-off.

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task};
use crate::simulate::Replay;
use crate::simulate::generate::FibTree;

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

    fn tree(&self, seconds: f64) -> Option<Box<dyn Replay>> {
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
