//! Pools that are made and dropped leave nothing. In a process of its own, since it counts the
//! threads.

#![forbid(unsafe_code)]

use std::thread;
use std::time::{Duration, Instant};

use rayon_core::{ThreadPoolBuilder, join};

use crate::own_process::alone;

/// The threads of this process.
#[cfg(target_os = "linux")]
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Not known.
#[cfg(not(target_os = "linux"))]
fn threads() -> usize {
    0
}

#[test]
fn ten_thousand_pools_leave_nothing() {
    alone("ten_thousand_pools_leave_nothing", nothing_is_left);
}

fn nothing_is_left() {
    let before = threads();
    for index in 0..10_000 {
        let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        if index % 3 == 0 {
            assert_eq!(pool.install(|| join(|| 1, || 2)), (1, 2));
        }
    }
    // They end in their own time.
    let start = Instant::now();
    while threads() > before {
        assert!(start.elapsed() < Duration::from_secs(120), "{} are left", threads() - before);
        thread::yield_now();
    }
    #[cfg(target_os = "linux")]
    {
        // One more is seen.
        let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert!(pool.install(threads) > before);
    }
}
