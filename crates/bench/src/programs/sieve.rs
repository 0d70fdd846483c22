//! The number of primes below n, by a sieve in segments that fit a cache: a reduction over a range.

use std::ops::Range;

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task, sum};

/// The numbers of one segment.
const SEGMENT: usize = 1 << 14;

struct Count<'s> {
    below: usize,
    /// The primes up to the square root of `below`.
    small: &'s [usize],
}

impl Task for Count<'_> {
    type Output = f64;

    fn run<F: Fork>(self, mut fork: F) -> f64 {
        let Count { below, small } = self;
        let segments = below.div_ceil(SEGMENT);
        sum(&mut fork, 0..segments, 1, &|range: Range<usize>| {
            range.map(|at| primes_in(at * SEGMENT..below.min((at + 1) * SEGMENT), small)).sum()
        })
    }
}

/// The number of primes in a segment. Exact as `f64`: there are fewer than 2^53.
fn primes_in(segment: Range<usize>, small: &[usize]) -> f64 {
    let mut composite = [false; SEGMENT];
    for prime in small {
        if prime * prime >= segment.end {
            break;
        }
        let first = (segment.start.div_ceil(*prime) * prime).max(prime * prime);
        for multiple in (first..segment.end).step_by(*prime) {
            composite[multiple - segment.start] = true;
        }
    }
    let candidates = segment.clone().zip(composite);
    candidates.filter(|(number, composite)| *number > 1 && !composite).count() as f64
}

/// All primes up to and including `most`, by trial division.
fn small_primes(most: usize) -> Vec<usize> {
    let mut primes: Vec<usize> = Vec::new();
    for number in 2..=most {
        let divisors = primes.iter().take_while(|prime| **prime * **prime <= number);
        if divisors.clone().all(|prime| number % prime != 0) {
            primes.push(number);
        }
    }
    primes
}

pub(crate) struct Sieve {
    below: usize,
    expected: f64,
    small: Vec<usize>,
    result: Option<f64>,
}

impl Program for Sieve {
    const NAME: &'static str = "sieve";

    fn new(size: Size) -> Self {
        // The known numbers of primes below powers of ten (OEIS A006880).
        let (below, expected) = size.pick(
            (100_000, 9_592.0),
            (10_000_000, 664_579.0),
            (100_000_000, 5_761_455.0),
            (1_000_000_000, 50_847_534.0),
        );
        Sieve { below, expected, small: small_primes(below.isqrt()), result: None }
    }

    fn reset(&mut self) {
        self.result = None;
    }

    fn run(&mut self, system: &impl System) {
        self.result = Some(system.run(Count { below: self.below, small: &self.small }));
    }

    fn check(&self) -> Result<()> {
        let (below, expected) = (self.below, self.expected);
        ensure!(
            self.result == Some(expected),
            "below {below} there are {expected} primes, not {:?}",
            self.result
        );
        Ok(())
    }
}
