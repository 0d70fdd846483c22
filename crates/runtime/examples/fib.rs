//! What a fork costs: fib(n), every n >= 2 a join, against the sequential program.
//!
//! `cargo run --release -p poach-runtime --example fib -- [N] [ROUNDS]`

use std::hint::black_box;
use std::time::Instant;

use poach_runtime::{ThreadPool, Worker};

fn sequential(n: u64) -> u64 {
    if n < 2 { n } else { sequential(n - 1) + sequential(n - 2) }
}

fn token(mut worker: Worker<'_>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = worker.join(move |w| token(w, n - 1), move |w| token(w, n - 2));
    a + b
}

fn plain(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = poach_runtime::join(move || plain(n - 1), move || plain(n - 2));
    a + b
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let n: u64 = arguments.next().map_or(Ok(36), |n| n.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |n| n.parse())?;
    let one = ThreadPool::builder().num_threads(1).build()?;
    let two = ThreadPool::builder().num_threads(2).build()?;
    let expected = sequential(n);
    let forks = sequential(n + 1) as f64 - 1.0;
    let systems: [(&str, &dyn Fn() -> u64); 5] = [
        ("sequential", &|| sequential(black_box(n))),
        ("worker.join, 1 worker", &|| one.run(|w| token(w, black_box(n)))),
        ("worker.join, 2 workers", &|| two.run(|w| token(w, black_box(n)))),
        ("join, 1 worker", &|| one.install(|| plain(black_box(n)))),
        ("join, 2 workers", &|| two.install(|| plain(black_box(n)))),
    ];
    let mut times = vec![Vec::new(); systems.len()];
    for _ in 0..rounds {
        for (system, times) in systems.iter().zip(&mut times) {
            let start = Instant::now();
            let found = system.1();
            times.push(start.elapsed().as_secs_f64());
            assert_eq!(found, expected);
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let base = median(&mut times[0]);
    for (system, times) in systems.iter().zip(&mut times) {
        let seconds = median(times);
        println!(
            "{:24} {seconds:8.4} s  {:6.2} ns a fork",
            system.0,
            (seconds - base) / forks * 1e9
        );
    }
    Ok(())
}
