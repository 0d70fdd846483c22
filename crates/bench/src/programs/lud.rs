//! LU decomposition of a square matrix, in place and without pivoting, by quarters.
//!
//! Source: Cilk's `lu` (1024 by 1024 in the fence-free paper, Table 1). The upper left quarter is
//! decomposed; its factors solve for the upper right and the lower left, in parallel; their product
//! is taken from the lower right, which is decomposed in turn. The matrix has a dominant diagonal,
//! so no pivot is small.

use anyhow::Result;

use crate::Size;
use crate::fork::{Fork, Program, System, Task};
use crate::programs::matmul::Multiply;
use crate::programs::quad::{Quad, TILE, TILE_AREA, noise, quarters, quarters_mut, same_column};

/// The matrix becomes its factors: the lower one without its diagonal of ones, and the upper one.
struct Decompose<'m>(&'m mut [f64]);

impl Decompose<'_> {
    fn go<F: Fork>(self, fork: &mut F) {
        let m = self.0;
        if m.len() == TILE_AREA {
            decompose_tile(m);
            return;
        }
        let [m0, m1, m2, m3] = quarters_mut(m);
        Decompose(m0).go(fork);
        fork.join(SolveLower { b: m1, factors: m0 }, SolveUpper { b: m2, factors: m0 });
        Multiply { c: m3, a: m2, b: m1, sign: -1.0 }.go(fork);
        Decompose(m3).go(fork);
    }
}

impl Task for Decompose<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        self.go(&mut fork);
    }
}

/// b becomes x where L x = b, L being the lower of the `factors`.
struct SolveLower<'m> {
    b: &'m mut [f64],
    factors: &'m [f64],
}

impl SolveLower<'_> {
    fn go<F: Fork>(self, fork: &mut F) {
        let SolveLower { b, factors } = self;
        if b.len() == TILE_AREA {
            solve_lower_tile(b, factors);
            return;
        }
        let [f0, _, f2, f3] = quarters(factors);
        let [b0, b1, b2, b3] = quarters_mut(b);
        fork.join(
            LowerColumn { upper: b0, lower: b2, factors: [f0, f2, f3] },
            LowerColumn { upper: b1, lower: b3, factors: [f0, f2, f3] },
        );
    }
}

impl Task for SolveLower<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        self.go(&mut fork);
    }
}

/// One of the two columns of quarters that [`SolveLower`] solves for.
struct LowerColumn<'m> {
    upper: &'m mut [f64],
    lower: &'m mut [f64],
    factors: [&'m [f64]; 3],
}

impl Task for LowerColumn<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        let LowerColumn { upper, lower, factors: [f0, f2, f3] } = self;
        SolveLower { b: upper, factors: f0 }.go(&mut fork);
        Multiply { c: lower, a: f2, b: upper, sign: -1.0 }.go(&mut fork);
        SolveLower { b: lower, factors: f3 }.go(&mut fork);
    }
}

/// b becomes x where x U = b, U being the upper of the `factors`.
struct SolveUpper<'m> {
    b: &'m mut [f64],
    factors: &'m [f64],
}

impl SolveUpper<'_> {
    fn go<F: Fork>(self, fork: &mut F) {
        let SolveUpper { b, factors } = self;
        if b.len() == TILE_AREA {
            solve_upper_tile(b, factors);
            return;
        }
        let [f0, f1, _, f3] = quarters(factors);
        let [b0, b1, b2, b3] = quarters_mut(b);
        fork.join(
            UpperRow { left: b0, right: b1, factors: [f0, f1, f3] },
            UpperRow { left: b2, right: b3, factors: [f0, f1, f3] },
        );
    }
}

impl Task for SolveUpper<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        self.go(&mut fork);
    }
}

/// One of the two rows of quarters that [`SolveUpper`] solves for.
struct UpperRow<'m> {
    left: &'m mut [f64],
    right: &'m mut [f64],
    factors: [&'m [f64]; 3],
}

impl Task for UpperRow<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        let UpperRow { left, right, factors: [f0, f1, f3] } = self;
        SolveUpper { b: left, factors: f0 }.go(&mut fork);
        Multiply { c: right, a: left, b: f1, sign: -1.0 }.go(&mut fork);
        SolveUpper { b: right, factors: f3 }.go(&mut fork);
    }
}

/// row -= factor * other.
fn subtract(row: &mut [f64], factor: f64, other: &[f64]) {
    for (element, other) in row.iter_mut().zip(other) {
        *element -= factor * other;
    }
}

fn decompose_tile(m: &mut [f64]) {
    for k in 0..TILE {
        let (above, below) = m.split_at_mut((k + 1) * TILE);
        let pivots = &above[k * TILE..];
        for row in below.chunks_exact_mut(TILE) {
            row[k] /= pivots[k];
            let factor = row[k];
            subtract(&mut row[k + 1..], factor, &pivots[k + 1..]);
        }
    }
}

fn solve_lower_tile(b: &mut [f64], factors: &[f64]) {
    for (i, lower) in factors.chunks_exact(TILE).enumerate() {
        let (solved, rest) = b.split_at_mut(i * TILE);
        for (factor, other) in lower[..i].iter().zip(solved.chunks_exact(TILE)) {
            subtract(&mut rest[..TILE], *factor, other);
        }
    }
}

fn solve_upper_tile(b: &mut [f64], factors: &[f64]) {
    for row in b.chunks_exact_mut(TILE) {
        for (j, upper) in factors.chunks_exact(TILE).enumerate() {
            row[j] /= upper[j];
            let factor = row[j];
            subtract(&mut row[j + 1..], factor, &upper[j + 1..]);
        }
    }
}

pub(crate) struct Lud {
    matrix: Quad,
    factors: Quad,
}

impl Program for Lud {
    const NAME: &'static str = "lud";

    fn memory(size: Size) -> u64 {
        2 * 8 * (side(size) as u64).pow(2)
    }

    fn new(size: Size) -> Self {
        let side = side(size);
        let element = |i, j| noise(1, i * side + j) + if i == j { side as f64 } else { 0.0 };
        let matrix = Quad::new(side, element);
        Lud { factors: matrix.clone(), matrix }
    }

    fn reset(&mut self) {
        self.factors.data.copy_from_slice(&self.matrix.data);
    }

    fn run(&mut self, system: &impl System) {
        system.run(Decompose(&mut self.factors.data));
    }

    /// That L (U x) = A x, for a random x.
    fn check(&self) -> Result<()> {
        let side = self.factors.side();
        let column: Vec<f64> = (0..side).map(|at| noise(3, at)).collect();
        let upper: Vec<f64> =
            (0..side).map(|i| (i..side).map(|j| self.factors.at(i, j) * column[j]).sum()).collect();
        let found: Vec<f64> = (0..side)
            .map(|i| upper[i] + (0..i).map(|j| self.factors.at(i, j) * upper[j]).sum::<f64>())
            .collect();
        same_column("L U", &found, &self.matrix.times(&column), 16 * side)
    }
}

fn side(size: Size) -> usize {
    size.pick(64, 512, 1024, 1024)
}
