//! The fast Fourier transform of 2^k complex numbers, by even and odd halves.
//!
//! Source: Cilk's `fft` (2^26 in the fence-free paper, Table 1). Each level sorts the even elements
//! before the odd ones, transforms both halves, and combines them; all three steps are divided by
//! halves. The input is the geometric sequence r^n, whose transform is known in closed form:
//! (1 - r^N) / (1 - r w^k), where w is the N-th root of one.

use std::f64::consts::TAU;

use anyhow::{Result, ensure};
use num_complex::Complex64;

use crate::Size;
use crate::fork::{Fork, Program, System, Task, for_each};

/// The elements that a step moves or combines, or a transform divides, without forking.
const GRAIN: usize = 1024;

/// `data` becomes its transform; `scratch` is as long, and of no value before or after.
struct Transform<'f> {
    data: &'f mut [Complex64],
    scratch: &'f mut [Complex64],
    /// The roots of one for the whole input, of which every `stride`-th is one for this length.
    roots: &'f [Complex64],
    stride: usize,
}

impl Transform<'_> {
    fn go<F: Fork>(self, fork: &mut F) {
        let Transform { data, scratch, roots, stride } = self;
        if data.len() <= 1 {
            return;
        }
        let half = data.len() / 2;
        let source = &*data;
        for_each(fork, scratch, GRAIN, &|first, piece| {
            for (at, element) in (first..).zip(piece) {
                *element = if at < half { source[2 * at] } else { source[2 * (at - half) + 1] };
            }
        });
        let (even, odd) = scratch.split_at_mut(half);
        let (low, high) = data.split_at_mut(half);
        let stride = 2 * stride;
        let left = Transform { data: even, scratch: low, roots, stride };
        let right = Transform { data: odd, scratch: high, roots, stride };
        if half < GRAIN {
            left.go(fork);
            right.go(fork);
        } else {
            fork.join(left, right);
        }
        let stride = stride / 2;
        Combine { low, high, even, odd, roots, stride, first: 0 }.go(fork);
    }
}

impl Task for Transform<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        self.go(&mut fork);
    }
}

/// Two transforms of half the length become one.
struct Combine<'f> {
    low: &'f mut [Complex64],
    high: &'f mut [Complex64],
    even: &'f [Complex64],
    odd: &'f [Complex64],
    roots: &'f [Complex64],
    stride: usize,
    first: usize,
}

impl Combine<'_> {
    fn go<F: Fork>(self, fork: &mut F) {
        let Combine { low, high, even, odd, roots, stride, first } = self;
        if low.len() > GRAIN {
            let middle = low.len() / 2;
            let (low0, low1) = low.split_at_mut(middle);
            let (high0, high1) = high.split_at_mut(middle);
            let (even0, even1) = even.split_at(middle);
            let (odd0, odd1) = odd.split_at(middle);
            let second = first + middle;
            fork.join(
                Combine { low: low0, high: high0, even: even0, odd: odd0, roots, stride, first },
                Combine {
                    low: low1,
                    high: high1,
                    even: even1,
                    odd: odd1,
                    roots,
                    stride,
                    first: second,
                },
            );
            return;
        }
        let roots = roots.iter().step_by(stride).skip(first);
        let halves = low.iter_mut().zip(high);
        for (((low, high), (even, odd)), root) in halves.zip(even.iter().zip(odd)).zip(roots) {
            let turned = root * odd;
            *low = even + turned;
            *high = even - turned;
        }
    }
}

impl Task for Combine<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        self.go(&mut fork);
    }
}

pub(crate) struct Fft {
    data: Vec<Complex64>,
    scratch: Vec<Complex64>,
    roots: Vec<Complex64>,
}

impl Fft {
    /// The logarithm of r: the last element is a thousandth of the first.
    fn logarithm(&self) -> f64 {
        -6.9 / self.data.len() as f64
    }

    fn root(&self, power: usize) -> Complex64 {
        Complex64::from_polar(1.0, -TAU * power as f64 / self.data.len() as f64)
    }
}

impl Program for Fft {
    const NAME: &'static str = "fft";

    fn memory(size: Size) -> u64 {
        40 << levels(size)
    }

    fn new(size: Size) -> Self {
        let zeros = vec![Complex64::default(); 1 << levels(size)];
        let mut fft = Fft { scratch: zeros.clone(), data: zeros, roots: Vec::new() };
        fft.roots = (0..fft.data.len() / 2).map(|power| fft.root(power)).collect();
        fft
    }

    fn reset(&mut self) {
        let logarithm = self.logarithm();
        for (n, element) in self.data.iter_mut().enumerate() {
            *element = Complex64::from((n as f64 * logarithm).exp());
        }
    }

    fn run(&mut self, system: &impl System) {
        let Fft { data, scratch, roots } = self;
        system.run(Transform { data, scratch, roots, stride: 1 });
    }

    fn check(&self) -> Result<()> {
        let length = self.data.len();
        let logarithm = self.logarithm();
        // 1 - r^N and 1 - r w^k, without the difference of two numbers that are nearly equal.
        let above = -(length as f64 * logarithm).exp_m1();
        for (k, found) in self.data.iter().enumerate() {
            let turns = if k > length / 2 { k as f64 - length as f64 } else { k as f64 };
            let angle = TAU * turns / length as f64;
            let from_one = Complex64::new(2.0 * (angle / 2.0).sin().powi(2), angle.sin());
            let expected = above / (from_one * logarithm.exp() - logarithm.exp_m1());
            // The largest element is that of k = 0: about as many as there are numbers.
            let bound = 1e-13 * length as f64;
            let near = (found - expected).norm() <= bound;
            ensure!(near, "element {k} is {found}, and should be {expected}");
        }
        Ok(())
    }
}

fn levels(size: Size) -> u32 {
    size.pick(8, 18, 22, 26)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork::Sequential;

    #[test]
    fn by_the_definition() {
        let mut fft = Fft::new(Size::Tiny);
        fft.data.iter_mut().enumerate().for_each(|(n, x)| {
            *x = Complex64::new(
                crate::programs::quad::noise(1, n),
                crate::programs::quad::noise(2, n),
            );
        });
        let input = fft.data.clone();
        fft.run(&Sequential);
        for k in [0, 1, 77, 255] {
            let expected: Complex64 =
                input.iter().enumerate().map(|(n, x)| x * fft.root(n * k % input.len())).sum();
            assert!((fft.data[k] - expected).norm() < 1e-11, "element {k}");
        }
    }
}
