//! Cholesky factorisation of a sparse matrix that is a quad-tree: quarters of zeros take no place.
//!
//! Source: Cilk's `cholesky` (4000 by 4000 with 40000 nonzeros in the fence-free paper, Table 1).
//! Only the lower triangle is there. The upper left quarter is factored; its factor solves for the
//! lower left; the square of that is taken from the lower right, which is factored in turn.

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Both, Fork, Program, System, Task};
use crate::programs::quad::{noise, same_column};

/// The side of a block that is not divided.
const BLOCK: usize = 4;

type Dense = [[f64; BLOCK]; BLOCK];

/// A square matrix: none is zero.
type Matrix = Option<Box<Part>>;

#[derive(Clone)]
enum Part {
    /// Upper left, upper right, lower left, lower right.
    Quarters([Matrix; 4]),
    Block(Dense),
}

/// The lower factor of a positive definite matrix.
struct Factor(Box<Part>);

impl Factor {
    fn of<F: Fork>(matrix: &mut Matrix, fork: &mut F) {
        let part = matrix.take().expect("a positive definite matrix has no zero on its diagonal");
        *matrix = Some(Factor(part).go(fork));
    }

    fn go<F: Fork>(self, fork: &mut F) -> Box<Part> {
        let mut part = self.0;
        match &mut *part {
            Part::Block(block) => factor_block(block),
            Part::Quarters([m0, _, m2, m3]) => {
                Factor::of(m0, fork);
                *m2 = Solve { b: m2.take(), factor: m0 }.go(fork);
                *m3 = Subtract { c: m3.take(), a: m2, b: m2, lower: true }.go(fork);
                Factor::of(m3, fork);
            }
        }
        part
    }
}

impl Task for Factor {
    type Output = Box<Part>;

    fn run<F: Fork>(self, mut fork: F) -> Box<Part> {
        self.go(&mut fork)
    }
}

/// The x of x L' = b, L' being the transpose of the lower `factor`.
struct Solve<'m> {
    b: Matrix,
    factor: &'m Matrix,
}

impl Solve<'_> {
    fn go<F: Fork>(self, fork: &mut F) -> Matrix {
        let mut part = self.b?;
        match (&mut *part, self.factor.as_deref()) {
            (Part::Block(b), Some(Part::Block(factor))) => solve_block(b, factor),
            (Part::Quarters([b0, b1, b2, b3]), Some(Part::Quarters([f0, _, f2, f3]))) => {
                let factors = [f0, f2, f3];
                let (upper, lower) = fork.join(
                    SolveRow { left: b0.take(), right: b1.take(), factors },
                    SolveRow { left: b2.take(), right: b3.take(), factors },
                );
                ((*b0, *b1), (*b2, *b3)) = (upper, lower);
            }
            _ => unreachable!("a factor is divided as what it solves for, and is not zero"),
        }
        Some(part)
    }
}

/// One of the two rows of quarters that [`Solve`] solves for.
struct SolveRow<'m> {
    left: Matrix,
    right: Matrix,
    factors: [&'m Matrix; 3],
}

impl Task for SolveRow<'_> {
    type Output = (Matrix, Matrix);

    fn run<F: Fork>(self, mut fork: F) -> (Matrix, Matrix) {
        let SolveRow { left, right, factors: [f0, f2, f3] } = self;
        let left = Solve { b: left, factor: f0 }.go(&mut fork);
        let right = Subtract { c: right, a: &left, b: f2, lower: false }.go(&mut fork);
        let right = Solve { b: right, factor: f3 }.go(&mut fork);
        (left, right)
    }
}

/// c - a b', b' being the transpose of b; only the lower triangle of it if `lower`.
struct Subtract<'m> {
    c: Matrix,
    a: &'m Matrix,
    b: &'m Matrix,
    lower: bool,
}

impl Subtract<'_> {
    fn go<F: Fork>(self, fork: &mut F) -> Matrix {
        let Subtract { c, a, b, lower } = self;
        let (Some(a), Some(b)) = (a.as_deref(), b.as_deref()) else { return c };
        match (a, b) {
            (Part::Block(a), Part::Block(b)) => {
                let mut part = c.unwrap_or_else(|| Box::new(Part::Block(Dense::default())));
                if let Part::Block(c) = &mut *part {
                    subtract_block(c, a, b);
                }
                Some(part)
            }
            (Part::Quarters(a), Part::Quarters(b)) => {
                let mut part = c.unwrap_or_else(|| Box::new(Part::Quarters(Default::default())));
                if let Part::Quarters(c) = &mut *part {
                    subtract_quarters(c, a, b, lower, fork);
                }
                Some(part)
            }
            _ => unreachable!("matrices of one size are divided alike"),
        }
    }
}

fn subtract_quarters<F: Fork>(
    [c0, c1, c2, c3]: &mut [Matrix; 4],
    [a0, a1, a2, a3]: &[Matrix; 4],
    [b0, b1, b2, b3]: &[Matrix; 4],
    lower: bool,
    fork: &mut F,
) {
    // Twice, for a row of a times a row of b is a sum of two products.
    for [(a_upper, b_upper), (a_lower, b_lower)] in [[(a0, b0), (a2, b2)], [(a1, b1), (a3, b3)]] {
        let upper_left = Subtract { c: c0.take(), a: a_upper, b: b_upper, lower };
        let lower_left = Subtract { c: c2.take(), a: a_lower, b: b_upper, lower: false };
        let lower_right = Subtract { c: c3.take(), a: a_lower, b: b_lower, lower };
        if lower {
            ((*c0, *c2), *c3) = fork.join(Both(upper_left, lower_left), lower_right);
        } else {
            let upper_right = Subtract { c: c1.take(), a: a_upper, b: b_lower, lower: false };
            ((*c0, *c1), (*c2, *c3)) =
                fork.join(Both(upper_left, upper_right), Both(lower_left, lower_right));
        }
    }
}

impl Task for Subtract<'_> {
    type Output = Matrix;

    fn run<F: Fork>(self, mut fork: F) -> Matrix {
        self.go(&mut fork)
    }
}

fn factor_block(m: &mut Dense) {
    for k in 0..BLOCK {
        let pivot = m[k][k].sqrt();
        m[k][k] = pivot;
        m[k][k + 1..].fill(0.0);
        for i in k + 1..BLOCK {
            m[i][k] /= pivot;
            for j in k + 1..=i {
                m[i][j] -= m[i][k] * m[j][k];
            }
        }
    }
}

fn solve_block(b: &mut Dense, factor: &Dense) {
    for row in b {
        for j in 0..BLOCK {
            let known: f64 = (0..j).map(|k| row[k] * factor[j][k]).sum();
            row[j] = (row[j] - known) / factor[j][j];
        }
    }
}

fn subtract_block(c: &mut Dense, a: &Dense, b: &Dense) {
    for (c, a) in c.iter_mut().zip(a) {
        for (c, b) in c.iter_mut().zip(b) {
            *c -= a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        }
    }
}

/// Adds to the element in row i and column j, making what is missing on the way.
fn add(matrix: &mut Matrix, side: usize, i: usize, j: usize, value: f64) {
    let part = matrix.get_or_insert_with(|| {
        Box::new(if side == BLOCK {
            Part::Block(Dense::default())
        } else {
            Part::Quarters(Default::default())
        })
    });
    match &mut **part {
        Part::Block(block) => block[i][j] += value,
        Part::Quarters(quarters) => {
            let half = side / 2;
            add(&mut quarters[i / half * 2 + j / half], half, i % half, j % half, value);
        }
    }
}

/// Calls `each` with the place and value of each element that has a block.
fn for_elements(
    matrix: &Matrix,
    side: usize,
    (row, column): (usize, usize),
    each: &mut impl FnMut(usize, usize, f64),
) {
    match matrix.as_deref() {
        None => {}
        Some(Part::Block(block)) => {
            for (i, elements) in block.iter().enumerate() {
                for (j, value) in elements.iter().enumerate() {
                    each(row + i, column + j, *value);
                }
            }
        }
        Some(Part::Quarters(quarters)) => {
            let half = side / 2;
            for (at, quarter) in quarters.iter().enumerate() {
                for_elements(quarter, half, (row + at / 2 * half, column + at % 2 * half), each);
            }
        }
    }
}

pub(crate) struct Cholesky {
    /// The side: a power of two.
    side: usize,
    matrix: Matrix,
    factor: Matrix,
}

impl Program for Cholesky {
    const NAME: &'static str = "cholesky";

    fn memory(size: Size) -> u64 {
        // Little of the factor's lower half stays empty.
        8 * (extent(size).0.next_power_of_two() as u64).pow(2)
    }

    fn new(size: Size) -> Self {
        let (rows, nonzeros) = extent(size);
        let side = rows.next_power_of_two();
        let mut random = fastrand::Rng::with_seed(11);
        let mut matrix = None;
        let mut diagonal = vec![1.0; side];
        for at in 0..nonzeros - rows {
            let (i, j) = (random.usize(1..rows), random.usize(..rows));
            let (i, j) = if i == j { (i, j - 1) } else { (i.max(j), i.min(j)) };
            let value = noise(12, at);
            add(&mut matrix, side, i, j, value);
            diagonal[i] += value.abs();
            diagonal[j] += value.abs();
        }
        // A diagonal that outweighs its row makes the matrix positive definite.
        for (at, value) in diagonal.into_iter().enumerate() {
            add(&mut matrix, side, at, at, value);
        }
        Cholesky { side, matrix, factor: None }
    }

    fn reset(&mut self) {
        self.factor.clone_from(&self.matrix);
    }

    fn run(&mut self, system: &impl System) {
        self.factor = self.factor.take().map(|matrix| system.run(Factor(matrix)));
    }

    /// That L (L' x) = A x, for a random x.
    fn check(&self) -> Result<()> {
        ensure!(self.factor.is_some(), "there is no factor");
        let side = self.side;
        let column: Vec<f64> = (0..side).map(|at| noise(13, at)).collect();
        let (mut half, mut found, mut expected) =
            (vec![0.0; side], vec![0.0; side], vec![0.0; side]);
        for_elements(&self.factor, side, (0, 0), &mut |i, j, value| half[j] += value * column[i]);
        for_elements(&self.factor, side, (0, 0), &mut |i, j, value| found[i] += value * half[j]);
        for_elements(&self.matrix, side, (0, 0), &mut |i, j, value| {
            expected[i] += value * column[j];
            if i != j {
                expected[j] += value * column[i];
            }
        });
        same_column("L L'", &found, &expected, 16 * side)
    }
}

/// The rows, and the elements that are not zero.
fn extent(size: Size) -> (usize, usize) {
    size.pick((60, 150), (500, 1_500), (1_000, 4_000), (4_000, 40_000))
}
