//! The cost of pools: the memory of a pool of 64 threads, and the time to make and drop 10,000
//! pools.
//!
//! Prints five numbers. The first two are the bytes of address space and of memory that a pool of
//! 64 threads adds once each has worked. The others are the microseconds to make and drop a pool of
//! 1 thread, of 2 threads, and of 2 threads that worked.

use std::time::Instant;

use rayon::{ThreadPool, ThreadPoolBuilder};

const POOLS: u32 = 10_000;

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("the system has threads")
}

/// Bytes of address space, and of memory in use.
fn memory() -> [i64; 2] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["VmSize:", "VmRSS:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0 kB");
        line.trim().trim_end_matches(" kB").parse::<i64>().unwrap_or(0) << 10
    })
}

/// Microseconds for each of `POOLS` pools.
fn each(make_and_drop: impl Fn()) -> u128 {
    let start = Instant::now();
    (0..POOLS).for_each(|_| make_and_drop());
    start.elapsed().as_micros() / u128::from(POOLS)
}

fn main() {
    let before = memory();
    let large = pool(64);
    assert_eq!(large.broadcast(|context| context.index()).len(), 64);
    let after = memory();
    drop(large);
    let one = each(|| drop(pool(1)));
    let two = each(|| drop(pool(2)));
    let work = each(|| assert_eq!(pool(2).install(|| rayon::join(|| 1, || 2)), (1, 2)));
    println!("{} {} {one} {two} {work}", after[0] - before[0], after[1] - before[1]);
}
