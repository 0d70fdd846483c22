//! Pools made and dropped, over and over: nothing is left behind, nothing waits for ever.

#![forbid(unsafe_code)]

use poach_runtime::{ThreadPool, join};

use crate::alone::alone;
use crate::rig;

/// The example `pools` makes 10,000: with other tests beside it a pool takes milliseconds.
const POOLS: u64 = if cfg!(miri) { 5 } else { 500 };

#[cfg(all(target_os = "linux", not(miri)))]
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

#[test]
fn pools_come_and_go() {
    alone("pools_come_and_go", come_and_go);
}

fn come_and_go() {
    #[cfg(all(target_os = "linux", not(miri)))]
    let before = threads();
    (0..POOLS).for_each(rig::a_pool_comes_and_goes);
    (0..POOLS / 20).for_each(pools_within_pools);
    // Their threads were waited for, though the last few may still be on their way out of the list.
    #[cfg(all(target_os = "linux", not(miri)))]
    assert!(threads() < before + 10, "{} threads, {before} before", threads());
}

fn pools_within_pools(round: u64) {
    let outer = ThreadPool::builder().num_threads(2).build().unwrap();
    let sum = outer.install(|| {
        let inner = ThreadPool::builder().num_threads(2).build().unwrap();
        let (a, b) = join(|| inner.install(|| join(|| round, || 1)), || outer.install(|| 2));
        a.0 + a.1 + b
    });
    assert_eq!(sum, round + 3);
}
