//! Quicksort of random numbers, in place: the two sides of each partition in parallel.
//!
//! Source: Cilk's `qsort` (10^8 in the fence-free paper, Table 1). Short slices are sorted by
//! insertion.

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task};

/// Slices up to this long are sorted by insertion.
const SHORT: usize = 20;

pub(crate) struct Quicksort {
    input: Vec<u64>,
    sorted: Vec<u64>,
}

struct Sort<'n>(&'n mut [u64]);

impl Task for Sort<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        let numbers = self.0;
        if numbers.len() <= SHORT {
            insertion_sort(numbers);
            return;
        }
        let (left, right) = partition(numbers);
        fork.join(Sort(left), Sort(right));
    }
}

fn insertion_sort(numbers: &mut [u64]) {
    for end in 1..numbers.len() {
        let moving = numbers[end];
        let mut hole = end;
        while hole > 0 && numbers[hole - 1] > moving {
            numbers[hole] = numbers[hole - 1];
            hole -= 1;
        }
        numbers[hole] = moving;
    }
}

/// Two slices, neither empty nor all, no number of the first greater than any of the second:
/// Hoare's partition, about the median of three.
fn partition(numbers: &mut [u64]) -> (&mut [u64], &mut [u64]) {
    let middle = numbers.len() / 2;
    let mut three = [numbers[0], numbers[middle], numbers[numbers.len() - 1]];
    three.sort_unstable();
    let pivot = three[1];
    let (mut left, mut right) = (0, numbers.len());
    loop {
        right -= 1;
        while numbers[right] > pivot {
            right -= 1;
        }
        while numbers[left] < pivot {
            left += 1;
        }
        if left >= right {
            // Neither side is empty. The pivot is the median of three numbers, one of them the
            // last. So a number that is no less than the pivot stands before the last. The first
            // pass stops there, and exchanges the last, or leaves it on the right if it is greater.
            return numbers.split_at_mut(right + 1);
        }
        numbers.swap(left, right);
        left += 1;
    }
}

/// Two sums that do not depend on the order, but on each number.
fn fingerprint(numbers: &[u64]) -> (u64, u64) {
    numbers.iter().fold((0, 0), |(sum, mixed), number| {
        let spread = (number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (sum.wrapping_add(*number), mixed.wrapping_add(spread ^ (spread >> 32)))
    })
}

impl Program for Quicksort {
    const NAME: &'static str = "quicksort";

    fn memory(size: Size) -> u64 {
        2 * 8 * length(size) as u64
    }

    fn new(size: Size) -> Self {
        let mut random = fastrand::Rng::with_seed(10);
        let input: Vec<u64> = (0..length(size)).map(|_| random.u64(..)).collect();
        Quicksort { sorted: input.clone(), input }
    }

    fn reset(&mut self) {
        self.sorted.copy_from_slice(&self.input);
    }

    fn run(&mut self, system: &impl System) {
        system.run(Sort(&mut self.sorted));
    }

    fn check(&self) -> Result<()> {
        if let Some(at) = self.sorted.windows(2).position(|pair| pair[0] > pair[1]) {
            anyhow::bail!("the numbers at {at} and {} are in the wrong order", at + 1);
        }
        let same = fingerprint(&self.sorted) == fingerprint(&self.input);
        ensure!(same, "the sorted numbers are not those of the input");
        Ok(())
    }
}

fn length(size: Size) -> usize {
    size.pick(500, 300_000, 20_000_000, 100_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork::Sequential;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_as_the_standard_library_does(
            mut numbers in proptest::collection::vec(0u64..50, 0..200)
        ) {
            let mut expected = numbers.clone();
            expected.sort_unstable();
            Sort(&mut numbers).run(Sequential);
            prop_assert_eq!(numbers, expected);
        }
    }

    #[test]
    fn a_number_put_in_another_s_place_is_found() {
        let mut program = Quicksort::new(Size::Tiny);
        program.run(&Sequential);
        program.sorted[7] = program.sorted[8];
        assert!(program.check().is_err());
    }
}
