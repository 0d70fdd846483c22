//! Pools made, used and dropped, 10,000 of them: nothing is left behind.
//!
//! `cargo run --release -p poach-runtime --example pools -- [POOLS]`
//!
//! Prints what a pool takes, and on Linux the threads and the memory before and after.

use std::time::Instant;

use poach_runtime::{ThreadPool, join, spawn};

/// The lines of the system's account of this process that have a word of these.
fn account(words: &[&str]) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status.lines().filter(|line| words.iter().any(|word| line.starts_with(word)));
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join(", ")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pools: u64 = std::env::args().nth(1).map_or(Ok(10_000), |n| n.parse())?;
    let words = ["Threads", "VmSize", "VmRSS"];
    println!("before: {}", account(&words));
    let start = Instant::now();
    for round in 0..pools {
        let pool = ThreadPool::builder().threads(1 + round as usize % 3).build()?;
        match round % 4 {
            0 => {}
            1 => assert_eq!(pool.install(|| join(|| round, || 1)), (round, 1)),
            2 => drop(pool.spawn(move || round)),
            _ => {
                let handle = pool.install(|| spawn(move || round));
                drop(pool);
                assert!(matches!(handle.join(), Ok(result) if result == round));
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("after:  {}", account(&words));
    println!("{pools} pools in {seconds:.2} s, {:.0} us each", seconds / pools as f64 * 1e6);
    Ok(())
}
