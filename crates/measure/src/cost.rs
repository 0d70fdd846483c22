//! What a fence costs the owner here: the THE queue with one, and without.

use core::num::NonZeroU64;
use std::hint::black_box;
use std::time::Instant;

use poach_deque::The;
use poach_memory::StoreLoad;
use serde::Serialize;

use crate::litmus::CannotTest;
use crate::trial::Trial;

/// Nanoseconds for a push and a pop of one task, by a queue's owner alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// With a full fence in each pop.
    pub full: f64,
    /// With the bound, the queue making a store in each pop.
    pub bounded: f64,
    /// With the bound, for a client that makes the store itself.
    pub bounded_without_fill: f64,
}

const BATCH: u32 = 256;
const ROUNDS: usize = 41;

/// Measures on this thread: medians of interleaved samples, batches of 256 pushes and 256 pops.
///
/// # Errors
///
/// [`CannotTest`] where there is no total store order.
pub fn measure(pops: NonZeroU64) -> Result<Cost, CannotTest> {
    let queue = |fill| Trial { pops, fill }.queue(BATCH as usize);
    let (full, filling, bare) = (The::new(), queue(true)?, queue(false)?);
    let mut samples = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        samples[0].push(sample(&full));
        samples[1].push(sample(&filling));
        samples[2].push(sample(&bare));
    }
    let [full, bounded, bounded_without_fill] = samples.map(|mut of_one| {
        of_one.sort_by(f64::total_cmp);
        of_one[ROUNDS / 2]
    });
    Ok(Cost { full, bounded, bounded_without_fill })
}

fn sample<P: StoreLoad<poach_memory::Machine>>(queue: &The<u32, P>) -> f64 {
    const BATCHES: u32 = 64;
    let start = Instant::now();
    for _ in 0..BATCHES {
        for task in 0..BATCH {
            queue.push(black_box(task));
        }
        while let Some(task) = queue.pop() {
            black_box(task);
        }
    }
    start.elapsed().as_nanos() as f64 / f64::from(BATCH * BATCHES)
}
