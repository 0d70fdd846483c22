//! The pool that serves outside any other. It lives as long as the program.

use std::sync::atomic::{AtomicUsize, Ordering};

use poach_runtime::{BuildError, ThreadPool, join, scope, spawn, worker};

#[test]
fn it_is_configured_once() {
    // Whoever is first: this call, or the tests beside it that use the pool.
    let _ = ThreadPool::builder().threads(2).build_global();
    let error = ThreadPool::builder().threads(2).build_global().unwrap_err();
    assert!(matches!(error, BuildError::GlobalExists));
    assert_eq!(join(|| 1, || 2), (1, 2));
}

#[test]
fn it_serves_outside_any_pool() {
    assert_eq!(join(|| 1, || 2), (1, 2));
    assert_eq!(worker(|mut w| w.join(|_| 3, |_| 4)), (3, 4));
    assert_eq!(spawn(|| 5).join().unwrap(), 5);
    let count = AtomicUsize::new(0);
    scope(|s| {
        s.spawn(|_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(count.into_inner(), 1);
}
