//! Heat diffusion on a rectangular plate: explicit steps in time, rows divided by halves.
//!
//! Source: Cilk's `heat` (4096 by 1024 in the fence-free paper, Table 1). The plate starts as the
//! product of two half sine waves and is cold at its edges; a step only scales that, so every cell
//! is known at any time.

use std::f64::consts::PI;

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task, for_each};

/// The rows that are not divided further.
const GRAIN: usize = 8;
/// How much of the difference to its neighbours a cell takes up in a step, along rows and columns.
const ALONG: f64 = 0.2;
const ACROSS: f64 = 0.15;

pub(crate) struct Heat {
    rows: usize,
    columns: usize,
    steps: usize,
    plate: Vec<f64>,
    next: Vec<f64>,
}

struct Diffuse<'p> {
    columns: usize,
    steps: usize,
    plate: &'p mut Vec<f64>,
    next: &'p mut Vec<f64>,
}

impl Task for Diffuse<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        let Diffuse { columns, steps, plate, next } = self;
        for _ in 0..steps {
            let old = &plate[..];
            let inner = columns..old.len() - columns;
            for_each(&mut fork, &mut next[inner], GRAIN * columns, &|first, piece| {
                for (at, row) in piece.chunks_exact_mut(columns).enumerate() {
                    diffuse_row(&old[first + at * columns..], row, columns);
                }
            });
            std::mem::swap(plate, next);
        }
    }
}

/// The new `row`, from the three old ones of which it is the second.
#[inline]
fn diffuse_row(old: &[f64], row: &mut [f64], columns: usize) {
    let (above, old) = old.split_at(columns);
    let (middle, below) = old.split_at(columns);
    for j in 1..columns - 1 {
        let here = middle[j];
        row[j] = here
            + ALONG * (middle[j - 1] + middle[j + 1] - 2.0 * here)
            + ACROSS * (above[j] + below[j] - 2.0 * here);
    }
}

impl Heat {
    fn first(&self, at: usize) -> f64 {
        wave(at / self.columns, self.rows) * wave(at % self.columns, self.columns)
    }
}

fn wave(at: usize, length: usize) -> f64 {
    if at == 0 || at == length - 1 { 0.0 } else { (PI * at as f64 / (length - 1) as f64).sin() }
}

/// The factor by which a step scales a half wave over `length` cells.
fn decay(share: f64, length: usize) -> f64 {
    4.0 * share * (PI / (2 * (length - 1)) as f64).sin().powi(2)
}

impl Program for Heat {
    const NAME: &'static str = "heat";

    fn memory(size: Size) -> u64 {
        let (rows, columns, _) = extent(size);
        2 * 8 * (rows * columns) as u64
    }

    fn new(size: Size) -> Self {
        let (rows, columns, steps) = extent(size);
        let plate = vec![0.0; rows * columns];
        Heat { rows, columns, steps, plate: plate.clone(), next: plate }
    }

    fn reset(&mut self) {
        for at in 0..self.plate.len() {
            self.plate[at] = self.first(at);
        }
        self.next.fill(0.0);
    }

    fn run(&mut self, system: &impl System) {
        let Heat { columns, steps, plate, next, .. } = self;
        system.run(Diffuse { columns: *columns, steps: *steps, plate, next });
    }

    fn check(&self) -> Result<()> {
        let factor = 1.0 - decay(ALONG, self.columns) - decay(ACROSS, self.rows);
        let factor = factor.powi(self.steps as i32);
        for (at, cell) in self.plate.iter().enumerate() {
            let expected = factor * self.first(at);
            let near = (cell - expected).abs() < 1e-12 * self.steps as f64;
            ensure!(near, "cell {at} is {cell}, and should be {expected}");
        }
        Ok(())
    }
}

/// The rows and columns, and the steps.
fn extent(size: Size) -> (usize, usize, usize) {
    size.pick((40, 16, 5), (1024, 256, 80), (4096, 1024, 60), (4096, 1024, 100))
}
