//! The product of two square matrices, by quarters.
//!
//! Source: Lace, section 4.1 (matmul 4096 there), and Cilk's `matmul`. Each quarter of the result
//! is the sum of two products of quarters: four tasks for the first, then four for the second, down
//! to tiles of 16 by 16.

use anyhow::Result;

use crate::Size;
use crate::fork::{Both, Fork, Program, System, Task};
use crate::programs::quad::{
    Quad, TILE_AREA, multiply_tile, noise, quarters, quarters_mut, same_column,
};

/// c += sign * a * b.
pub(crate) struct Multiply<'m> {
    pub(crate) c: &'m mut [f64],
    pub(crate) a: &'m [f64],
    pub(crate) b: &'m [f64],
    pub(crate) sign: f64,
}

impl Multiply<'_> {
    pub(crate) fn go<F: Fork>(self, fork: &mut F) {
        let Multiply { c, a, b, sign } = self;
        if c.len() == TILE_AREA {
            multiply_tile(c, a, b, sign);
            return;
        }
        let [a0, a1, a2, a3] = quarters(a);
        let [b0, b1, b2, b3] = quarters(b);
        for [(a0, b0), (a1, b1), (a2, b2), (a3, b3)] in
            [[(a0, b0), (a0, b1), (a2, b0), (a2, b1)], [(a1, b2), (a1, b3), (a3, b2), (a3, b3)]]
        {
            let [c0, c1, c2, c3] = quarters_mut(c);
            fork.join(
                Both(
                    Multiply { c: c0, a: a0, b: b0, sign },
                    Multiply { c: c1, a: a1, b: b1, sign },
                ),
                Both(
                    Multiply { c: c2, a: a2, b: b2, sign },
                    Multiply { c: c3, a: a3, b: b3, sign },
                ),
            );
        }
    }
}

impl Task for Multiply<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        self.go(&mut fork);
    }
}

pub(crate) struct Matmul {
    a: Quad,
    b: Quad,
    c: Quad,
}

impl Program for Matmul {
    const NAME: &'static str = "matmul";

    fn memory(size: Size) -> u64 {
        3 * 8 * (side(size) as u64).pow(2)
    }

    fn new(size: Size) -> Self {
        let side = side(size);
        Matmul {
            a: Quad::random(side, 1),
            b: Quad::random(side, 2),
            c: Quad::new(side, |_, _| 0.0),
        }
    }

    fn reset(&mut self) {
        self.c.data.fill(0.0);
    }

    fn run(&mut self, system: &impl System) {
        let Matmul { a, b, c } = self;
        system.run(Multiply { c: &mut c.data, a: &a.data, b: &b.data, sign: 1.0 });
    }

    fn check(&self) -> Result<()> {
        is_product(&self.c, &self.a, &self.b)
    }
}

fn side(size: Size) -> usize {
    size.pick(32, 512, 1024, 4096)
}

/// That c = a * b, by Freivalds' method: c times a random column is a times (b times it).
///
/// # Errors
///
/// The first element of the column that is wrong.
pub(crate) fn is_product(c: &Quad, a: &Quad, b: &Quad) -> Result<()> {
    let column: Vec<f64> = (0..c.side()).map(|at| noise(3, at)).collect();
    same_column("the product", &c.times(&column), &a.times(&b.times(&column)), 16 * c.side())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork::Sequential;

    #[test]
    fn by_the_definition() {
        let mut matmul = Matmul::new(Size::Tiny);
        matmul.run(&Sequential);
        let side = matmul.c.side();
        for (i, j) in [(0, 0), (3, 20), (31, 31), (17, 2)] {
            let expected: f64 = (0..side).map(|k| matmul.a.at(i, k) * matmul.b.at(k, j)).sum();
            assert!((matmul.c.at(i, j) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn one_wrong_element_is_found() {
        let mut matmul = Matmul::new(Size::Tiny);
        matmul.run(&Sequential);
        matmul.c.data[77] += 1e-6;
        assert!(matmul.check().is_err());
    }
}
