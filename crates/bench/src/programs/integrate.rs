//! The area under x^3 + x from 0 to n, by trapezoids that are halved until halving changes nothing.
//!
//! Source: Cilk's `integrate` (10000 in the fence-free paper, Table 1). How far a stretch is halved
//! depends on where it lies, so the task tree is lopsided.

use anyhow::{Context as _, Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task};

/// A stretch whose area halving changes by less is not halved further.
const EPSILON: f64 = 1e-9;

fn curve(x: f64) -> f64 {
    (x * x + 1.0) * x
}

/// The stretch from one point of the curve to another, and its area as one trapezoid.
struct Stretch {
    from: (f64, f64),
    to: (f64, f64),
    area: f64,
}

impl Task for Stretch {
    type Output = f64;

    fn run<F: Fork>(self, mut fork: F) -> f64 {
        let Stretch { from, to, area } = self;
        let half = (to.0 - from.0) / 2.0;
        let x = from.0 + half;
        let middle = (x, curve(x));
        let left = (from.1 + middle.1) * 0.5 * half;
        let right = (middle.1 + to.1) * 0.5 * half;
        if (left + right - area).abs() < EPSILON {
            return left + right;
        }
        let (a, b) = fork.join(
            Stretch { from, to: middle, area: left },
            Stretch { from: middle, to, area: right },
        );
        a + b
    }
}

pub(crate) struct Integrate {
    n: f64,
    result: Option<f64>,
}

impl Program for Integrate {
    const NAME: &'static str = "integrate";

    fn new(size: Size) -> Self {
        Integrate { n: size.pick(3.0, 300.0, 5_000.0, 10_000.0), result: None }
    }

    fn reset(&mut self) {
        self.result = None;
    }

    fn run(&mut self, system: &impl System) {
        let (from, to) = ((0.0, curve(0.0)), (self.n, curve(self.n)));
        let area = (from.1 + to.1) * 0.5 * self.n;
        self.result = Some(system.run(Stretch { from, to, area }));
    }

    fn check(&self) -> Result<()> {
        let expected = self.n.powi(4) / 4.0 + self.n.powi(2) / 2.0;
        let area = self.result.context("there is no result")?;
        let near = (area - expected).abs() <= 1e-7 * expected;
        ensure!(near, "the area is {expected}, not {area}");
        Ok(())
    }
}
