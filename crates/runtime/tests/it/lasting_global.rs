//! The pool that serves outside any other. It lives as long as the program, and so do its threads:
//! Miri, which sees all the rest, looks for no leaks here.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};

use poach_parallel::par_for;
use poach_runtime::cancel::CancellationToken;
use poach_runtime::{
    BuildError, Priority, ThreadPool, broadcast, check, current_num_threads, global,
    in_place_scope, interrupt, join, join_context, scope, spawn_handle, task, worker,
};

#[test]
fn it_is_configured_once() {
    // This call, or the tests beside it that use the pool, makes the pool.
    let _ = ThreadPool::builder().num_threads(2).build_global();
    let error = ThreadPool::builder().num_threads(2).build_global().unwrap_err();
    assert!(matches!(error, BuildError::GlobalExists));
    let late = poach_runtime::ThreadPoolBuilder::set_global(|| {
        ThreadPool::builder().num_threads(usize::MAX)
    })
    .unwrap_err();
    assert!(matches!(late, BuildError::GlobalExists));
    assert_eq!(global().install(current_num_threads), global().threads());
    assert!(ThreadPool::global_if_made().is_some());
    assert_eq!(join(|| 1, || 2), (1, 2));
}

#[test]
fn it_serves_handles_and_tokens() {
    assert_eq!(in_place_scope(|s| s.spawn_handle(|| 42).join().unwrap()), 42);
    assert_eq!(spawn_handle(|| 1).cancel_on_drop().join().unwrap(), 1);
    let (token, ran) = (CancellationToken::new(), AtomicUsize::new(0));
    let fails = token.try_scope(|s, token| {
        s.spawn_unless(token, |_, token| while !token.is_cancelled() {});
        Err::<(), _>(3)
    });
    scope(|s| s.spawn_unless(&token, |_, _| _ = ran.fetch_add(1, Ordering::SeqCst)));
    assert_eq!((fails, ran.into_inner()), (Err(3), 1));
}

#[test]
fn it_serves_outside_any_pool() {
    assert_eq!(join(|| 1, || 2), (1, 2));
    assert_eq!(worker(|mut w| w.join(|_| 3, |_| 4)), (3, 4));
    assert_eq!(spawn_handle(|| 5).join().unwrap(), 5);
    let count = AtomicUsize::new(0);
    scope(|s| {
        s.spawn(|_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    });
    assert_eq!(count.into_inner(), 1);
}

#[test]
fn it_serves_the_other_ways_too() {
    assert!(current_num_threads() >= 1);
    let mut parts = [0; 4];
    in_place_scope(|s| {
        for part in &mut parts {
            s.spawn(|_| *part = 1);
        }
    });
    assert_eq!(parts, [1; 4]);
    assert_eq!(join_context(|_| 1, |_| 2), (1, 2));
    assert_eq!(interrupt(|| join(|| 1, || 2)), (1, 2));
    assert_eq!(task().priority(Priority::High).spawn_handle(|| 3).join().unwrap(), 3);
    assert_eq!(broadcast(|context| context.num_threads()).len(), current_num_threads());
    let sum = AtomicUsize::new(0);
    par_for(0..10, |i| {
        check();
        sum.fetch_add(i, Ordering::Relaxed);
    });
    assert_eq!(sum.into_inner(), 45);
}
