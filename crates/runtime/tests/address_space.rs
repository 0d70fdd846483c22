//! A pool where address space is scarce. A small program of its own, since the program takes
//! address space, too.

#![forbid(unsafe_code)]
// A process is started, with a limit that a shell sets; Miri starts none.
#![cfg(all(target_os = "linux", not(miri)))]

use std::process::Command;

use poach_runtime::{BuildError, ThreadPool, join};

const ROLE: &str = "POACH_TEST_SCARCE";

/// Runs the named test of this program in a process limited to `kib` KiB of address space.
fn within(kib: u64, test: &str, body: impl FnOnce()) {
    if std::env::var_os(ROLE).is_some() {
        return body();
    }
    let program = std::env::current_exe().unwrap();
    // A backtrace takes address space.
    let script =
        format!("ulimit -v {kib} && exec \"$0\" --exact {test} --nocapture --test-threads=1");
    let output = Command::new("sh")
        .args(["-c", &script])
        .arg(program)
        .env(ROLE, "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{}\n{text}", output.status);
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

#[test]
fn a_pool_reserves_less_where_there_is_less() {
    // By default such a pool would reserve 1.5 GB, with the call stacks, and as much again for what
    // the threads allocate.
    within(2 << 20, "a_pool_reserves_less_where_there_is_less", || {
        let pool = ThreadPool::builder().num_threads(64).build().unwrap();
        assert_eq!(pool.install(|| fib(20)), 6765);
        // Asked for, it is reserved or refused.
        let error = ThreadPool::builder().num_threads(64).task_stack(1 << 20).build().unwrap_err();
        assert!(error.to_string().contains("bytes"), "{error}");
    });
}

#[test]
fn a_pool_that_cannot_be_had_is_refused() {
    // Its smallest call stacks alone are more than that.
    within(200 << 10, "a_pool_that_cannot_be_had_is_refused", || {
        let error = ThreadPool::builder().num_threads(1024).build().unwrap_err();
        assert!(matches!(error, BuildError::AddressSpace { threads: 1024, .. }), "{error}");
        assert!(error.to_string().contains("bytes of address space"), "{error}");
        assert_eq!(format!("{error:?}"), error.to_string(), "an `unwrap` says it too");
        // What was asked for is not made smaller: here it would fit if it were.
        let stack = ThreadPool::builder().num_threads(8).stack_size(64 << 20).build().unwrap_err();
        assert!(matches!(stack, BuildError::AddressSpace { threads: 8, .. }), "{stack}");
    });
}

/// Builds a pool of `workers` workers, each time in a process of its own.
fn small(kib: u64, workers: usize, test: &str) {
    for _ in 0..5 {
        within(kib, test, || {
            let pool = ThreadPool::builder().num_threads(workers).build().unwrap();
            assert_eq!(pool.install(|| fib(15)), 610);
            // All threads are there.
            assert_eq!(pool.broadcast(|context| context.index()).len(), workers);
        });
    }
}

// The C library reserves 64 MiB for what a thread allocates, if it can. So the threads that start
// first would take what the last ones need.

#[test]
fn two_workers_start_in_40_mb() {
    small(40 << 10, 2, "two_workers_start_in_40_mb");
}

#[test]
fn sixteen_workers_start_in_120_mb() {
    small(120 << 10, 16, "sixteen_workers_start_in_120_mb");
}

#[test]
fn eight_workers_start_in_150_mb() {
    small(150 << 10, 8, "eight_workers_start_in_150_mb");
}

#[test]
fn eight_workers_start_in_600_mb() {
    small(600 << 10, 8, "eight_workers_start_in_600_mb");
}

#[test]
fn many_workers_start_in_600_mb() {
    small(600 << 10, 32, "many_workers_start_in_600_mb");
}
