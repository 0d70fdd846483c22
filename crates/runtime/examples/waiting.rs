//! The ways to wait for a stolen half, on a tree of the shape of UTS T3L: binomial, 2,000 children
//! of the root, then five with a probability of just below a fifth. Most subtrees are tiny and a
//! few very large and deep, so what is stolen is mostly not worth waiting for, and waits are many.
//!
//! `cargo run --release -p poach-runtime --example waiting -- [THREADS] [ROUNDS]`
//!
//! Interleaved; prints medians, and what the workers did in all rounds together.

use std::ops::Range;
use std::time::Instant;

use poach_runtime::config::Waiting;
use poach_runtime::{ThreadPool, Worker};

/// Children of every fifth node or so.
const MANY: u64 = 5;
/// Of 2^32: a little less than a fifth, so that the tree ends.
const PROBABILITY: u64 = (0.1995 * (1_u64 << 32) as f64) as u64;
const ROOT: u64 = 2000;

fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A hash that takes about as long as the SHA-1 of the benchmark, some 200 ns.
fn child(parent: u64, index: u64) -> u64 {
    (0..50).fold(parent.wrapping_add(index + 1), |node, round| {
        mixed(node.wrapping_add((round + 1_u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    })
}

fn goes_on(node: u64) -> bool {
    node >> 32 < PROBABILITY
}

/// Nodes below, and how deep the tree is.
fn sequential(parent: u64, children: u64) -> (u64, u64) {
    (0..children).fold((0, 0), |(nodes, depth), index| {
        let node = child(parent, index);
        let below = if goes_on(node) { sequential(node, MANY) } else { (0, 0) };
        (nodes + 1 + below.0, depth.max(1 + below.1))
    })
}

fn count(mut worker: Worker<'_>, parent: u64, children: Range<u64>) -> u64 {
    let Range { start, end } = children;
    if end - start > 1 {
        let middle = start + (end - start) / 2;
        let (a, b) =
            worker.join(|w| count(w, parent, start..middle), |w| count(w, parent, middle..end));
        return a + b;
    }
    let node = child(parent, start);
    1 + if goes_on(node) { count(worker, node, 0..MANY) } else { 0 }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let threads: usize = arguments.next().map_or(Ok(2), |n| n.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(7), |n| n.parse())?;
    let ways: [(&str, Waiting, usize); 6] = [
        ("sleep", Waiting::Sleep, 64),
        ("leapfrog", Waiting::Leapfrog, 64),
        ("transitive", Waiting::Transitive, 64),
        ("random, nesting 4", Waiting::Random, 4),
        ("random, nesting 64", Waiting::Random, 64),
        ("random, no bound", Waiting::Random, usize::MAX),
    ];
    let pool = |(_, waiting, nesting): &(_, Waiting, usize)| {
        let builder = ThreadPool::builder().num_threads(threads).stack_size(256 << 20);
        builder.waiting(*waiting).nesting(*nesting).callers_work(false).build()
    };
    let pools = ways.iter().map(pool).collect::<Result<Vec<_>, _>>()?;
    let seed = 7;
    let start = Instant::now();
    let (nodes, depth) = std::thread::Builder::new()
        .stack_size(256 << 20)
        .spawn(move || sequential(seed, ROOT))?
        .join()
        .expect("the sequential program does not panic");
    let alone = start.elapsed().as_secs_f64();
    println!("{nodes} nodes, {depth} levels; sequential {:.1} ms", alone * 1e3);
    let mut times = vec![Vec::new(); ways.len()];
    for _ in 0..rounds {
        for (pool, times) in pools.iter().zip(&mut times) {
            let start = Instant::now();
            assert_eq!(pool.run(|w| count(w, seed, 0..ROOT)), nodes);
            times.push(start.elapsed().as_secs_f64());
        }
    }
    for ((way, pool), times) in ways.iter().zip(&pools).zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let total = pool.stats().total();
        println!(
            "{:20} {:8.1} ms ({:.1} to {:.1})  steals {:8}  leaps {:8}  sleeps {:6}",
            way.0,
            times[times.len() / 2] * 1e3,
            times[0] * 1e3,
            times[times.len() - 1] * 1e3,
            total.steals,
            total.leaps,
            total.sleeps
        );
    }
    Ok(())
}
