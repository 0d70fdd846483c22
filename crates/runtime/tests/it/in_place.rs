//! Scopes whose body stays on the thread that opens them.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use poach_runtime::{Scope, ThreadPool, current_thread_index, in_place_scope, in_place_scope_fifo};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

#[test]
fn the_body_stays_and_the_tasks_go() {
    let pool = pool(2);
    let (body, log) = (thread::current().id(), Rc::new(Cell::new(0)));
    let tasks = AtomicUsize::new(0);
    let result = pool.in_place_scope(|s| {
        for _ in 0..100 {
            s.spawn(|_| {
                assert_ne!(thread::current().id(), body);
                assert!(current_thread_index().is_some());
                tasks.fetch_add(1, Ordering::Relaxed);
            });
            log.set(log.get() + 1);
        }
        assert_eq!(thread::current().id(), body);
        "done"
    });
    assert_eq!((result, log.get(), tasks.into_inner()), ("done", 100, 100));
}

#[test]
fn on_a_worker_of_the_pool_it_is_a_plain_scope() {
    let pool = pool(1);
    let sum = AtomicUsize::new(0);
    pool.install(|| {
        let index = current_thread_index();
        pool.in_place_scope(|s| {
            assert_eq!(current_thread_index(), index);
            s.spawn(|s| s.spawn(|_| _ = sum.fetch_add(1, Ordering::Relaxed)));
        });
        in_place_scope(|s| s.spawn(|_| _ = sum.fetch_add(2, Ordering::Relaxed)));
        in_place_scope_fifo(|s| s.spawn_fifo(|_| _ = sum.fetch_add(4, Ordering::Relaxed)));
    });
    assert_eq!(sum.into_inner(), 7);
}

#[test]
fn a_worker_of_another_pool_serves_its_own_while_it_waits() {
    let (a, b) = (pool(1), pool(1));
    let answer = AtomicUsize::new(0);
    a.install(|| {
        b.in_place_scope(|s| {
            // b's worker needs a's, which waits in place for b.
            s.spawn(|_| {
                assert!(b.current_thread_index().is_some());
                answer.store(a.install(|| 5), Ordering::SeqCst);
            });
        });
    });
    assert_eq!(answer.into_inner(), 5);
}

fn grow<'s>(s: &Scope<'s>, depth: usize, count: &'s AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
    if depth > 0 {
        s.spawn(move |s| grow(s, depth - 1, count));
        s.spawn(move |s| grow(s, depth - 1, count));
    }
}

#[test]
fn an_empty_scope_ends_and_so_does_one_whose_tasks_outlive_the_body() {
    let pool = pool(2);
    assert_eq!(pool.in_place_scope(|_| 3), 3);
    let depth = if cfg!(miri) { 3 } else { 8 };
    let count = AtomicUsize::new(0);
    pool.in_place_scope(|s| s.spawn(|s| grow(s, depth, &count)));
    assert_eq!(count.into_inner(), (2 << depth) - 1);
    // Again and again: the last task and the body end in any order.
    for _ in 0..if cfg!(miri) { 10 } else { 1000 } {
        let done = AtomicUsize::new(0);
        pool.in_place_scope(|s| s.spawn(|_| done.store(1, Ordering::Relaxed)));
        assert_eq!(done.into_inner(), 1);
    }
}

#[test]
fn fifo_tasks_from_outside_come_in_order() {
    let seen = std::sync::Mutex::new(Vec::new());
    pool(1).in_place_scope_fifo(|s| {
        for i in 0..50 {
            let seen = &seen;
            s.spawn_fifo(move |_| seen.lock().unwrap().push(i));
        }
    });
    assert!(seen.into_inner().unwrap().into_iter().eq(0..50));
}

#[test]
fn panics_of_body_and_tasks_wait_for_the_others() {
    let pool = pool(2);
    for body_panics in [true, false] {
        let ended = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.in_place_scope(|s| {
                s.spawn(|_| panic!("task"));
                s.spawn(|s| s.spawn(|_| _ = ended.fetch_add(1, Ordering::SeqCst)));
                assert!(!body_panics, "body");
            });
        }));
        let expected = if body_panics { "body" } else { "task" };
        assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&expected));
        assert_eq!(ended.into_inner(), 1);
    }
    assert_eq!(pool.run(|_| poach_runtime::join(|| 1, || 2)), (1, 2));
}
