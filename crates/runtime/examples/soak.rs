//! Forks and spawns by the hundred million, over pools of changing size and wait policy, every
//! result checked.
//!
//! `cargo run --release -p poach-runtime --example soak -- [FORKS] [SEED]`
//!
//! Ends when the given number of joins (and tasks of scopes) have been made, by default 10^9, and
//! prints a line for each pool. A wrong result ends it with a panic that names the seed and the
//! round.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use poach_runtime::config::Waiting;
use poach_runtime::stats::Stats;
use poach_runtime::{Scope, ThreadPool, Worker};

/// The next number of a sequence that only its start knows (Steele, Lea and Flood's `SplitMix64`).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn child(node: u64, index: u64) -> u64 {
    next(&mut (node ^ index.wrapping_mul(0xD1B5_4A32_D192_ED03)))
}

/// Whether the tree goes on below this node: nearly always, so that trees differ and are large.
fn goes_on(node: u64, depth: u32) -> bool {
    depth > 0 && node % 16 != 0
}

/// The sum of all nodes, and their joins.
fn sequential(node: u64, depth: u32) -> (u64, u64) {
    if !goes_on(node, depth) {
        return (node, 0);
    }
    let (a, b) = (sequential(child(node, 0), depth - 1), sequential(child(node, 1), depth - 1));
    (node.wrapping_add(a.0).wrapping_add(b.0), 1 + a.1 + b.1)
}

fn joined(mut worker: Worker<'_>, node: u64, depth: u32) -> u64 {
    if !goes_on(node, depth) {
        return node;
    }
    let (a, b) = worker
        .join(|w| joined(w, child(node, 0), depth - 1), |w| joined(w, child(node, 1), depth - 1));
    node.wrapping_add(a).wrapping_add(b)
}

/// The upper levels are tasks of a scope, the lower ones joins.
fn spawned<'s>(s: &Scope<'s>, node: u64, depth: u32, joins: u32, sum: &'s AtomicU64) {
    if depth == joins {
        let below = poach_runtime::worker(|w| joined(w, node, depth));
        sum.fetch_add(below, Ordering::Relaxed);
        return;
    }
    sum.fetch_add(node, Ordering::Relaxed);
    if goes_on(node, depth) {
        for index in 0..2 {
            s.spawn(move |s| spawned(s, child(node, index), depth - 1, joins, sum));
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let goal: u64 = arguments.next().map_or(Ok(1_000_000_000), |n| n.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let mut random = seed;
    let (mut forks, mut round) = (0, 0_u64);
    let start = Instant::now();
    while forks < goal {
        let threads = 1 + next(&mut random) as usize % 6;
        let waiting = [
            Waiting::Sleep,
            Waiting::Leapfrog,
            Waiting::Transitive,
            Waiting::Random,
            Waiting::Patient,
        ][next(&mut random) as usize % 5];
        let nesting = [0, 1, 64][next(&mut random) as usize % 3];
        let pool =
            ThreadPool::builder().num_threads(threads).waiting(waiting).nesting(nesting).build()?;
        let before = forks;
        for _ in 0..16 {
            let (root, depth) = (next(&mut random), 10 + next(&mut random) as u32 % 16);
            let (expected, joins) = sequential(root, depth);
            let wrong = |how: &str| format!("{how}: seed {seed}, round {round}, depth {depth}");
            assert_eq!(pool.run(|w| joined(w, root, depth)), expected, "{}", wrong("join"));
            let sum = AtomicU64::new(0);
            let lower = depth - 1 - next(&mut random) as u32 % 10;
            pool.run(|_| poach_runtime::scope(|s| spawned(s, root, depth, lower, &sum)));
            assert_eq!(sum.into_inner(), expected, "{}", wrong("scope"));
            forks += 2 * joins;
            round += 1;
        }
        let stats: Stats = pool.stats();
        let total = stats.total();
        println!(
            "{:7.1} s  {forks:>12} forks  {threads} workers, {waiting:?}, nesting {nesting}: {} \
             forks, {} steals, {} leaps, {} exposures, {} sleeps",
            start.elapsed().as_secs_f64(),
            forks - before,
            total.steals,
            total.leaps,
            total.exposures,
            total.sleeps
        );
    }
    println!("{forks} forks and tasks in {round} rounds, every sum as expected (seed {seed})");
    Ok(())
}
