//! A worker whose call stack overflows: the process ends with a message that names thread and
//! cause.

#![forbid(unsafe_code)]
// Miri starts no processes.
#![cfg(all(target_os = "linux", not(miri)))]

use std::hint::black_box;
use std::{env, thread};

use poach_runtime::{ThreadPool, join, scope};

use crate::own_process::this_test;

const ROLE: &str = "POACH_TEST_OVERFLOWS";

fn deep(n: u64) -> u64 {
    if n == 0 {
        return 0;
    }
    // Something on each frame, so that no optimisation makes it a loop.
    let frame = black_box([n; 16]);
    let (a, b) = join(|| deep(n - 1), || 1);
    a + b + black_box(frame)[0]
}

/// Runs this test again in a process of its own, which must end by the overflow.
fn message(test: &str, overflow: impl FnOnce()) -> Option<String> {
    if env::var_os(ROLE).is_some() {
        overflow();
        return None;
    }
    let output = this_test(test).env(ROLE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    Some(text)
}

fn assert_names(text: &str, thread: &str) {
    assert!(text.contains(thread) && text.contains("overflowed its stack"), "{text}");
}

#[test]
fn a_worker_of_the_pools_own() {
    let pool = || ThreadPool::builder().num_threads(1).stack_size(256 << 10).build().unwrap();
    if let Some(text) = message("a_worker_of_the_pools_own", || {
        pool()
            .spawn_handle(|| scope(|s| s.spawn(|_| _ = black_box(deep(1 << 18)))))
            .join()
            .unwrap();
    }) {
        assert_names(&text, "poach-0");
    }
}

#[test]
fn a_worker_by_another_name_on_a_handlers_thread() {
    if let Some(text) = message("a_worker_by_another_name_on_a_handlers_thread", || {
        let pool = ThreadPool::builder()
            .num_threads(1)
            .name(|index| format!("hired hand {index}"))
            .spawn_handler(|worker| {
                let thread = thread::Builder::new().name(worker.name().unwrap().into());
                thread.stack_size(256 << 10).spawn(|| worker.run()).map(drop)
            })
            .build()
            .unwrap();
        pool.spawn_handle(|| black_box(deep(1 << 18))).join().unwrap();
    }) {
        assert_names(&text, "hired hand 0");
    }
}

#[test]
fn enough_stack_is_no_overflow() {
    let pool = ThreadPool::builder().num_threads(1).stack_size(64 << 20).build().unwrap();
    assert!(pool.spawn_handle(|| deep(1000)).join().unwrap() > 1000);
}
