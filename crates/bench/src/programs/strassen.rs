//! The product of two square matrices by Strassen's seven products of quarters.
//!
//! Source: Cilk's `strassen` (4096 by 4096 in the fence-free paper, Table 1). Small matrices are
//! multiplied as `matmul` does it.

use anyhow::Result;

use crate::Size;
use crate::fork::{Both, Fork, Program, System, Task};
use crate::programs::matmul::{Multiply, is_product};
use crate::programs::quad::{Quad, TILE, quarters, quarters_mut};

/// The side up to which eight products of quarters are faster than seven and their sums.
const SMALL: usize = 4 * TILE;

/// The product of two matrices that are sums or differences of quarters.
struct Product<'m> {
    a: Term<'m>,
    b: Term<'m>,
}

/// A quarter, or the sum of two (the second one times `sign`).
#[derive(Clone, Copy)]
struct Term<'m> {
    first: &'m [f64],
    second: Option<(&'m [f64], f64)>,
}

impl<'m> Term<'m> {
    fn one(first: &'m [f64]) -> Self {
        Term { first, second: None }
    }

    fn sum(first: &'m [f64], second: &'m [f64]) -> Self {
        Term { first, second: Some((second, 1.0)) }
    }

    fn difference(first: &'m [f64], second: &'m [f64]) -> Self {
        Term { first, second: Some((second, -1.0)) }
    }

    /// The elements; computed into `place` if there is something to compute.
    fn value<'v>(self, place: &'v mut Vec<f64>) -> &'v [f64]
    where
        'm: 'v,
    {
        let Some((second, sign)) = self.second else { return self.first };
        place.extend(self.first.iter().zip(second).map(|(first, second)| first + sign * second));
        place
    }
}

impl Task for Product<'_> {
    type Output = Vec<f64>;

    fn run<F: Fork>(self, mut fork: F) -> Vec<f64> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let (a, b) = (self.a.value(&mut left), self.b.value(&mut right));
        let mut c = vec![0.0; a.len()];
        multiply(&mut c, a, b, &mut fork);
        c
    }
}

/// c = a * b, where c is zero.
fn multiply<F: Fork>(c: &mut [f64], a: &[f64], b: &[f64], fork: &mut F) {
    if c.len() <= SMALL * SMALL {
        Multiply { c, a, b, sign: 1.0 }.go(fork);
        return;
    }
    let [a0, a1, a2, a3] = quarters(a);
    let [b0, b1, b2, b3] = quarters(b);
    let product = |a, b| Product { a, b };
    let (((p1, p2), (p3, p4)), ((p5, p6), p7)) = fork.join(
        Both(
            Both(
                product(Term::sum(a0, a3), Term::sum(b0, b3)),
                product(Term::sum(a2, a3), Term::one(b0)),
            ),
            Both(
                product(Term::one(a0), Term::difference(b1, b3)),
                product(Term::one(a3), Term::difference(b2, b0)),
            ),
        ),
        Both(
            Both(
                product(Term::sum(a0, a1), Term::one(b3)),
                product(Term::difference(a2, a0), Term::sum(b0, b1)),
            ),
            product(Term::difference(a1, a3), Term::sum(b2, b3)),
        ),
    );
    let [c0, c1, c2, c3] = quarters_mut(c);
    for at in 0..p1.len() {
        c0[at] = p1[at] + p4[at] - p5[at] + p7[at];
        c1[at] = p3[at] + p5[at];
        c2[at] = p2[at] + p4[at];
        c3[at] = p1[at] - p2[at] + p3[at] + p6[at];
    }
}

struct Whole<'m> {
    c: &'m mut [f64],
    a: &'m [f64],
    b: &'m [f64],
}

impl Task for Whole<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        multiply(self.c, self.a, self.b, &mut fork);
    }
}

pub(crate) struct Strassen {
    a: Quad,
    b: Quad,
    c: Quad,
}

impl Program for Strassen {
    const NAME: &'static str = "strassen";

    fn memory(size: Size) -> u64 {
        // The matrices, and the products and sums of each level on the way down.
        8 * 8 * (side(size) as u64).pow(2)
    }

    fn new(size: Size) -> Self {
        let side = side(size);
        Strassen {
            a: Quad::random(side, 4),
            b: Quad::random(side, 5),
            c: Quad::new(side, |_, _| 0.0),
        }
    }

    fn reset(&mut self) {
        self.c.data.fill(0.0);
    }

    fn run(&mut self, system: &impl System) {
        let Strassen { a, b, c } = self;
        system.run(Whole { c: &mut c.data, a: &a.data, b: &b.data });
    }

    fn check(&self) -> Result<()> {
        is_product(&self.c, &self.a, &self.b)
    }
}

fn side(size: Size) -> usize {
    size.pick(128, 512, 1024, 4096)
}
