//! Jacobi relaxation on a square mesh: each step makes every inner cell the mean of its four
//! neighbours, rows divided by halves, with a join at the end of each step.
//!
//! Source: Cilk's `jacobi` (1024 by 1024 in the fence-free paper, Table 1). The mesh starts as the
//! product of two half sine waves, which a step only scales: so every cell is known at any time.

use std::f64::consts::PI;

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task, for_each};

/// The rows that are not divided further.
const GRAIN: usize = 4;

pub(crate) struct Jacobi {
    side: usize,
    steps: usize,
    cells: Vec<f64>,
    next: Vec<f64>,
}

struct Relax<'m> {
    side: usize,
    steps: usize,
    cells: &'m mut Vec<f64>,
    next: &'m mut Vec<f64>,
}

impl Task for Relax<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        let Relax { side, steps, cells, next } = self;
        for _ in 0..steps {
            let old = &cells[..];
            let inner = side..side * (side - 1);
            for_each(&mut fork, &mut next[inner], GRAIN * side, &|first, piece| {
                for (at, row) in piece.chunks_exact_mut(side).enumerate() {
                    relax_row(&old[first + at * side..], row, side);
                }
            });
            std::mem::swap(cells, next);
        }
    }
}

/// The new `row`, from the three old ones of which it is the second.
#[inline]
fn relax_row(old: &[f64], row: &mut [f64], side: usize) {
    let (above, old) = old.split_at(side);
    let (middle, below) = old.split_at(side);
    for j in 1..side - 1 {
        row[j] = (above[j] + below[j] + middle[j - 1] + middle[j + 1]) * 0.25;
    }
}

/// A cell before the first step: zero all around.
fn first(side: usize, i: usize, j: usize) -> f64 {
    wave(i, side) * wave(j, side)
}

fn wave(at: usize, side: usize) -> f64 {
    if at == 0 || at == side - 1 { 0.0 } else { (PI * at as f64 / (side - 1) as f64).sin() }
}

impl Program for Jacobi {
    const NAME: &'static str = "jacobi";

    fn new(size: Size) -> Self {
        let (side, steps) = size.pick((24, 6), (512, 80), (1024, 400), (1024, 1000));
        let mesh = vec![0.0; side * side];
        Jacobi { side, steps, cells: mesh.clone(), next: mesh }
    }

    fn reset(&mut self) {
        for (at, cell) in self.cells.iter_mut().enumerate() {
            *cell = first(self.side, at / self.side, at % self.side);
        }
        self.next.fill(0.0);
    }

    fn run(&mut self, system: &impl System) {
        let Jacobi { side, steps, cells, next } = self;
        system.run(Relax { side: *side, steps: *steps, cells, next });
    }

    fn check(&self) -> Result<()> {
        let side = self.side;
        let factor = (PI / (side - 1) as f64).cos().powi(self.steps as i32);
        for (at, cell) in self.cells.iter().enumerate() {
            let expected = factor * first(side, at / side, at % side);
            let near = (cell - expected).abs() < 1e-12 * self.steps as f64;
            ensure!(near, "cell {at} is {cell}, and should be {expected}");
        }
        Ok(())
    }
}
