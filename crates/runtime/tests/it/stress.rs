//! Many tasks over changing numbers of workers, every result checked. Bounded in operations; run
//! under `ThreadSanitizer` by `cargo xtask tsan`.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use poach_runtime::{Scope, ThreadPool, Worker, join, scope};

/// Debug builds and interpreters do less.
const ROUNDS: u64 = if cfg!(miri) { 1 } else { 30 };

/// A tree whose shape only its seed knows: children from a multiplicative hash.
fn children(node: u64) -> u64 {
    node.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) % 3
}

fn child(node: u64, index: u64) -> u64 {
    node.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(index * 2 + 1)
}

fn sequential(node: u64, depth: u32) -> u64 {
    let below = if depth == 0 { 0 } else { children(node) };
    node.wrapping_add(
        (0..below).fold(0, |sum: u64, i| sum.wrapping_add(sequential(child(node, i), depth - 1))),
    )
}

fn tokens(mut worker: Worker<'_>, node: u64, depth: u32) -> u64 {
    let below = if depth == 0 { 0 } else { children(node) };
    node.wrapping_add(match below {
        0 => 0,
        1 => tokens(worker, child(node, 0), depth - 1),
        _ => {
            let (a, b) = worker.join(
                |w| tokens(w, child(node, 0), depth - 1),
                |w| tokens(w, child(node, 1), depth - 1),
            );
            a.wrapping_add(b)
        }
    })
}

fn scoped<'s>(s: &Scope<'s>, node: u64, depth: u32, sum: &'s AtomicU64) {
    sum.fetch_add(node, Ordering::Relaxed);
    let below = if depth == 0 { 0 } else { children(node) };
    for i in 0..below {
        s.spawn(move |s| scoped(s, child(node, i), depth - 1, sum));
    }
}

#[test]
fn trees_of_unknown_shape_add_up() {
    for threads in [1, 2, 3, 5] {
        let pool = ThreadPool::builder().num_threads(threads).build().unwrap();
        for seed in 0..ROUNDS {
            let depth = if cfg!(miri) { 6 } else { 24 };
            let expected = sequential(seed, depth);
            assert_eq!(pool.run(|w| tokens(w, seed, depth)), expected, "join, seed {seed}");
            let sum = AtomicU64::new(0);
            pool.install(|| scope(|s| scoped(s, seed, depth, &sum)));
            assert_eq!(sum.into_inner(), expected, "scope, seed {seed}");
        }
    }
}

#[test]
fn idle_and_busy_in_turn() {
    let pool = ThreadPool::builder().num_threads(3).build().unwrap();
    for round in 0..ROUNDS * 30 {
        // Long enough, now and then, for everybody to fall asleep.
        if round % 16 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let (a, b) = pool.install(|| join(|| join(|| round, || round + 1), || join(|| 2, || 3)));
        assert_eq!((a, b), ((round, round + 1), (2, 3)));
    }
}

#[test]
fn many_threads_call_one_pool() {
    let pool = ThreadPool::builder().num_threads(2).build().unwrap();
    std::thread::scope(|threads| {
        for caller in 0..4_u64 {
            let pool = &pool;
            threads.spawn(move || {
                for seed in 0..ROUNDS {
                    let seed = seed * 4 + caller;
                    assert_eq!(pool.run(|w| tokens(w, seed, 12)), sequential(seed, 12));
                }
            });
        }
    });
}
