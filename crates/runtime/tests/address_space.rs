//! A pool where address space is scarce.

#![forbid(unsafe_code)]
// A process is started, with a limit that a shell sets; Miri starts none.
#![cfg(all(target_os = "linux", not(miri)))]

use std::process::Command;

use poach_runtime::{ThreadPool, join};

const ROLE: &str = "POACH_TEST_SCARCE";

/// Runs the named test of this program in a process that may have so many KiB of address space.
fn within(kib: u64, test: &str, body: impl FnOnce()) {
    if std::env::var_os(ROLE).is_some() {
        return body();
    }
    let program = std::env::current_exe().unwrap();
    let script =
        format!("ulimit -v {kib} && exec \"$0\" --exact {test} --nocapture --test-threads=1");
    let output =
        Command::new("sh").args(["-c", &script]).arg(program).env(ROLE, "1").output().unwrap();
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
    // By default such a pool would reserve 1.5 GB, with the call stacks, and as much again for what the threads allocate.
    within(2 << 20, "a_pool_reserves_less_where_there_is_less", || {
        let pool = ThreadPool::builder().threads(64).build().unwrap();
        assert_eq!(pool.install(|| fib(20)), 6765);
        // Asked for, it is reserved or refused.
        let error = ThreadPool::builder().threads(64).task_stack(1 << 20).build().unwrap_err();
        assert!(error.to_string().contains("bytes"), "{error}");
    });
}

#[test]
fn a_pool_that_cannot_be_had_is_refused() {
    within(200 << 10, "a_pool_that_cannot_be_had_is_refused", || {
        let error = ThreadPool::builder().threads(64).build().unwrap_err();
        assert!(!error.to_string().is_empty());
    });
}
