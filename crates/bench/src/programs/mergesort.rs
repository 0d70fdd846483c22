//! Merge sort of random numbers: both halves in parallel, and the merge divided too, by the median
//! of the longer side. Stable; what users write where quicksort's worst case must not be.

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task};

/// Halves up to this long are sorted by insertion, and merges up to it are not divided.
const SHORT: usize = 24;
const MERGE: usize = 2048;

/// Sorts `numbers`; into `scratch` if `into_scratch`, else in place.
struct Sort<'n> {
    numbers: &'n mut [u64],
    scratch: &'n mut [u64],
    into_scratch: bool,
}

impl Task for Sort<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        let Sort { numbers, scratch, into_scratch } = self;
        if numbers.len() <= SHORT {
            insertion_sort(numbers);
            if into_scratch {
                scratch.copy_from_slice(numbers);
            }
            return;
        }
        let middle = numbers.len() / 2;
        {
            let (left, right) = numbers.split_at_mut(middle);
            let (scratch_left, scratch_right) = scratch.split_at_mut(middle);
            let into_scratch = !into_scratch;
            fork.join(
                Sort { numbers: left, scratch: scratch_left, into_scratch },
                Sort { numbers: right, scratch: scratch_right, into_scratch },
            );
        }
        let (from, to) = if into_scratch { (numbers, scratch) } else { (scratch, numbers) };
        let (left, right) = from.split_at(middle);
        Merge { left, right, to }.run(fork);
    }
}

fn insertion_sort(numbers: &mut [u64]) {
    for end in 1..numbers.len() {
        let moving = numbers[end];
        let place = numbers[..end].partition_point(|number| *number <= moving);
        numbers.copy_within(place..end, place + 1);
        numbers[place] = moving;
    }
}

/// Two sorted slices into one; of equal numbers those on the left come first.
struct Merge<'n> {
    left: &'n [u64],
    right: &'n [u64],
    to: &'n mut [u64],
}

impl Task for Merge<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        let Merge { left, right, to } = self;
        if to.len() <= MERGE {
            merge(left, right, to);
            return;
        }
        let (cut_left, cut_right) = if left.len() >= right.len() {
            let cut = left.len() / 2;
            (cut, right.partition_point(|number| *number < left[cut]))
        } else {
            let cut = right.len() / 2;
            (left.partition_point(|number| *number <= right[cut]), cut)
        };
        let (left0, left1) = left.split_at(cut_left);
        let (right0, right1) = right.split_at(cut_right);
        let (to0, to1) = to.split_at_mut(cut_left + cut_right);
        fork.join(
            Merge { left: left0, right: right0, to: to0 },
            Merge { left: left1, right: right1, to: to1 },
        );
    }
}

fn merge<'n>(mut left: &'n [u64], mut right: &'n [u64], to: &mut [u64]) {
    for place in to {
        let from_left = match (left.first(), right.first()) {
            (Some(a), Some(b)) => a <= b,
            (first, _) => first.is_some(),
        };
        let side = if from_left { &mut left } else { &mut right };
        *place = side[0];
        *side = &side[1..];
    }
}

pub(crate) struct Mergesort {
    input: Vec<u64>,
    sorted: Vec<u64>,
    scratch: Vec<u64>,
    expected: Vec<u64>,
}

impl Program for Mergesort {
    const NAME: &'static str = "mergesort";

    fn memory(size: Size) -> u64 {
        4 * 8 * length(size) as u64
    }

    fn new(size: Size) -> Self {
        let mut random = fastrand::Rng::with_seed(20);
        let input: Vec<u64> = (0..length(size)).map(|_| random.u64(..)).collect();
        let mut expected = input.clone();
        expected.sort_unstable();
        Mergesort { sorted: input.clone(), scratch: input.clone(), input, expected }
    }

    fn reset(&mut self) {
        self.sorted.copy_from_slice(&self.input);
    }

    fn run(&mut self, system: &impl System) {
        let Mergesort { sorted, scratch, .. } = self;
        system.run(Sort { numbers: sorted, scratch, into_scratch: false });
    }

    fn check(&self) -> Result<()> {
        let wrong = self.sorted.iter().zip(&self.expected).position(|(a, b)| a != b);
        ensure!(wrong.is_none(), "the number at {wrong:?} is not the one of the standard sort");
        Ok(())
    }
}

fn length(size: Size) -> usize {
    size.pick(5_000, 300_000, 10_000_000, 100_000_000)
}
