//! What an empty task of a scope costs, spawned by the million, and what a second worker adds.
//!
//! `cargo run --release -p poach-runtime --example spawns -- [TASKS] [ROUNDS]`

use std::time::Instant;

use poach_runtime::{ThreadPool, scope};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let tasks: u64 = arguments.next().map_or(Ok(1_000_000), |n| n.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(11), |n| n.parse())?;
    let pools = [1, 2].map(|threads| ThreadPool::builder().num_threads(threads).build());
    let pools = pools.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut times = vec![Vec::new(); pools.len()];
    for _ in 0..rounds {
        for (pool, times) in pools.iter().zip(&mut times) {
            let start = Instant::now();
            pool.install(|| scope(|s| (0..tasks).for_each(|_| s.spawn(|_| ()))));
            times.push(start.elapsed().as_secs_f64());
        }
    }
    for (pool, times) in pools.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        println!(
            "{} workers: {:7.2} ms, {:5.1} ns a task ({:.2} to {:.2} ms)",
            pool.threads(),
            median * 1e3,
            median / tasks as f64 * 1e9,
            times[0] * 1e3,
            times[times.len() - 1] * 1e3
        );
    }
    Ok(())
}
