//! Pools made, used and dropped, 10,000 of them: nothing is left behind.
//!
//! `cargo run --release -p poach-runtime --example pools -- [POOLS]`
//!
//! Prints what a pool takes, and on Linux the threads and the memory before and after.

#[path = "../tests/it/rig/mod.rs"]
mod rig;

use std::time::Instant;

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
    (0..pools).for_each(rig::a_pool_comes_and_goes);
    let seconds = start.elapsed().as_secs_f64();
    println!("after:  {}", account(&words));
    println!("{pools} pools in {seconds:.2} s, {:.0} us each", seconds / pools as f64 * 1e6);
    Ok(())
}
