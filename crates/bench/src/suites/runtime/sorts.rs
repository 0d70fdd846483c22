//! `sort-10k` to `sort-unstable-1m`: random numbers sorted by the function that users call, beside
//! the standard library's.

use std::cell::LazyCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::library::Library;
use crate::{Case, Request, Sample, Size, Unit};

/// The length of the input, and whether equal numbers keep their order.
#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    numbers: usize,
    stable: bool,
}

const WORKLOADS: [Workload; 4] = [
    Workload { name: "sort-10k", numbers: 10_000, stable: true },
    Workload { name: "sort-1m", numbers: 1_000_000, stable: true },
    Workload { name: "sort-unstable-10k", numbers: 10_000, stable: false },
    Workload { name: "sort-unstable-1m", numbers: 1_000_000, stable: false },
];

pub(super) fn cases<A: Library, B: Library>(request: &Request, cases: &mut Vec<Case>) {
    for workload in WORKLOADS {
        let all = workload.numbers;
        let numbers = request.size.pick(all.min(1000), all, all, all);
        let input: Input = Rc::new(LazyCell::new(Box::new(move || input(numbers))));
        cases.push(sequential(workload, &input, request.size));
        for workers in &request.workers {
            cases.push(case::<A>(workload, &input, request.size, *workers));
            cases.push(case::<B>(workload, &input, request.size, *workers));
        }
    }
}

/// The same numbers for all systems, made when the first of them needs them.
type Input = Rc<LazyCell<Vec<u64>, Box<dyn FnOnce() -> Vec<u64>>>>;

fn input(numbers: usize) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(1);
    (0..numbers).map(|_| random.u64(..)).collect()
}

#[expect(clippy::stable_sort_primitive, reason = "it is the stable sort that is measured")]
fn sequential(workload: Workload, input: &Input, size: Size) -> Case {
    let input = Rc::clone(input);
    Case::new(workload.name, "sequential", 1, Unit::NANOSECONDS, move || {
        Ok(move || {
            sample(&input, size, |numbers| {
                if workload.stable { numbers.sort() } else { numbers.sort_unstable() }
            })
        })
    })
}

fn case<L: Library>(workload: Workload, input: &Input, size: Size, workers: usize) -> Case {
    let input = Rc::clone(input);
    Case::new(workload.name, L::NAME, workers, Unit::NANOSECONDS, move || {
        let pool = L::new(workers)?;
        Ok(move || {
            let input: &[u64] = &input;
            pool.install(|| sample(input, size, |numbers| L::sort(numbers, workload.stable)))
        })
    })
}

/// A number's share of the time of some sorts, each of the same numbers in the same disorder.
fn sample(input: &[u64], size: Size, sort: impl Fn(&mut [u64])) -> Result<Sample> {
    let all: usize = size.pick(input.len(), 1_000_000, 4_000_000, 4_000_000);
    let sorts = (all / input.len()).max(1);
    let (mut numbers, mut seconds) = (input.to_vec(), 0.0);
    for _ in 0..sorts {
        numbers.copy_from_slice(input);
        let start = Instant::now();
        sort(black_box(&mut numbers));
        seconds += start.elapsed().as_secs_f64();
    }
    check(input, &numbers)?;
    Ok((seconds * 1e9 / (sorts * input.len()) as f64).into())
}

fn check(input: &[u64], sorted: &[u64]) -> Result<()> {
    let sum =
        |numbers: &[u64]| numbers.iter().fold(0, |sum: u64, number| sum.wrapping_add(*number));
    ensure!(sorted.is_sorted(), "the numbers are not in their order");
    ensure!(sum(input) == sum(sorted), "the numbers are not those that were to be sorted");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_order_and_a_lost_number_are_noticed() {
        check(&[3, 1, 2], &[1, 2, 3]).unwrap();
        assert!(check(&[3, 1, 2], &[1, 3, 2]).is_err());
        assert!(check(&[3, 1, 2], &[1, 2, 2]).is_err());
    }
}
