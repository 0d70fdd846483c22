//! When to stop forking: a recursive sum with leaves of one number, of fixed sizes, and of the size
//! that a [`Grain`] chooses.
//!
//! `cargo run --release -p poach-runtime --example grain -- [NUMBERS] [WORKERS] [ROUNDS]`
//!
//! Prints the median time of each, and its speed as a multiple of the sequential loop's. All run in
//! turn.

use std::hint::black_box;
use std::time::Instant;

use poach_parallel::Grain;
use poach_runtime::{ThreadPool, Worker};

/// Sums hashes of numbers: about a nanosecond a number, and the compiler may vectorise it.
fn sequential(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |sum, n| sum.wrapping_add(n ^ (n >> 7)))
}

fn fixed(mut worker: Worker<'_>, numbers: &[u64], leaf: usize) -> u64 {
    if numbers.len() <= leaf {
        return sequential(numbers);
    }
    let (left, right) = numbers.split_at(numbers.len() / 2);
    let (a, b) = worker.join(|w| fixed(w, left, leaf), |w| fixed(w, right, leaf));
    a.wrapping_add(b)
}

fn chosen(mut worker: Worker<'_>, numbers: &[u64], grain: &Grain) -> u64 {
    if numbers.len() <= grain.units() {
        return grain.leaf(numbers.len(), || sequential(numbers));
    }
    let (left, right) = numbers.split_at(numbers.len() / 2);
    let (a, b) = worker.join(|w| chosen(w, left, grain), |w| chosen(w, right, grain));
    a.wrapping_add(b)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let numbers = arguments.next().unwrap_or(Ok(4_000_000))?;
    let workers = arguments.next().unwrap_or(Ok(2))?;
    let rounds = arguments.next().unwrap_or(Ok(15))?.max(1);
    let pool = ThreadPool::builder().num_threads(workers).build()?;
    let numbers: Vec<u64> = (0..numbers as u64).collect();
    let expected = sequential(&numbers);
    let grain = Grain::new();

    let sizes = [1, 100, 10_000, 1_000_000];
    let mut names = vec!["sequential".to_owned()];
    names.extend(sizes.map(|size| format!("leaves of {size}")));
    names.push("Grain".to_owned());
    let mut times = vec![Vec::new(); names.len()];
    for round in 0..rounds {
        // Each variant follows each other variant, because a variant on one worker lets the other
        // workers fall asleep.
        for turn in 0..names.len() {
            let turn = if round % 2 == 0 { turn } else { names.len() - 1 - turn };
            let index = (round / 2 + turn) % names.len();
            let numbers = black_box(&numbers);
            let start = Instant::now();
            let sum = match index {
                0 => sequential(numbers),
                5 => pool.run(|w| chosen(w, numbers, &grain)),
                fork => pool.run(|w| fixed(w, numbers, sizes[fork - 1])),
            };
            times[index].push(start.elapsed().as_secs_f64());
            assert_eq!(sum, expected);
        }
    }
    for times in &mut times {
        times.sort_unstable_by(f64::total_cmp);
    }
    let median = |index: usize| times[index][rounds / 2];
    for (index, name) in names.iter().enumerate() {
        println!("{name:>18} {:9.3} ms {:6.2}", median(index) * 1e3, median(0) / median(index));
    }
    println!("the grain came to {} numbers", grain.units());
    Ok(())
}
