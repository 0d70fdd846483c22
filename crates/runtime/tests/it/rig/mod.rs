//! What the test and the example `pools` do with each of their pools.

use poach_runtime::{ThreadPool, join, spawn_handle};

/// Makes a pool, uses it in one of four ways, and drops it.
pub(crate) fn a_pool_comes_and_goes(round: u64) {
    let pool = ThreadPool::builder().num_threads(1 + round as usize % 3).build().unwrap();
    match round % 4 {
        // Dropped before any worker has come to its first look.
        0 => {}
        1 => assert_eq!(pool.install(|| join(|| round, || 1)), (round, 1)),
        2 => drop(pool.spawn_handle(move || round)),
        _ => {
            let handle = pool.install(|| spawn_handle(move || round));
            drop(pool);
            assert_eq!(handle.join().unwrap(), round);
        }
    }
}
