//! Tasks with borrowed data and a handle; handles that cancel; tokens.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use poach_runtime::cancel::CancellationToken;
use poach_runtime::config::Waiting;
use poach_runtime::{JoinHandle, Scope, ThreadPool, in_place_scope};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// A task that occupies the one worker of its pool until the sender is dropped.
fn occupy(pool: &ThreadPool) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (release, hold) = mpsc::channel::<()>();
    let (tell, started) = mpsc::channel();
    let handle = pool.spawn_handle(move || {
        tell.send(()).unwrap();
        _ = hold.recv();
    });
    started.recv().unwrap();
    (release, handle)
}

#[test]
fn scoped_handles_return_results_of_tasks_that_borrow() {
    for threads in [1, 3] {
        let pool = pool(threads);
        let numbers: Vec<u64> = (0..100).collect();
        let sum = pool.run(|_| {
            poach_runtime::scope(|s| {
                let handles: Vec<_> = numbers
                    .chunks(7)
                    .map(|chunk| s.spawn_handle(move || chunk.iter().sum::<u64>()))
                    .collect();
                handles.into_iter().map(|handle| handle.join().unwrap()).sum::<u64>()
            })
        });
        assert_eq!(sum, 4950);
        // From outside, and with a handle that leaves the scope.
        let late = pool.in_place_scope(|s| s.spawn_handle(|| numbers.len()));
        assert!(late.is_finished());
        assert_eq!(late.join().unwrap(), 100);
    }
    let inside = || in_place_scope(|s| s.spawn_handle(|| 42).join().unwrap());
    assert_eq!(pool(1).install(inside), 42);
}

#[test]
fn a_scoped_handle_has_the_panic_and_without_it_the_scope_has() {
    let pool = pool(1);
    let error = pool
        .run(|_| poach_runtime::scope(|s| s.spawn_handle(|| panic!("heard")).join().unwrap_err()));
    assert_eq!(*error.into_panic().downcast::<&str>().unwrap(), "heard");
    let unheard =
        || pool.run(|_| poach_runtime::scope(|s| drop(s.spawn_handle(|| panic!("unheard")))));
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(unheard)).unwrap_err();
    assert_eq!(*payload.downcast::<&str>().unwrap(), "unheard");
}

#[test]
fn a_wait_that_takes_nothing_runs_what_it_waits_for_and_the_scope_waits_for_that() {
    let pool = ThreadPool::builder().num_threads(1).waiting(Waiting::Sleep).build().unwrap();
    let ran = AtomicUsize::new(0);
    let sum = pool.run(|_| {
        poach_runtime::scope(|s| {
            s.spawn(|s| {
                let handle = s.spawn_handle(|| ran.fetch_add(1, Ordering::SeqCst));
                assert_eq!(handle.join().unwrap(), 0);
            });
            s.spawn_handle(|| 6 * 7).join().unwrap()
        })
    });
    assert_eq!((sum, ran.into_inner()), (42, 1));
}

#[test]
fn a_cancelled_task_drops_what_it_captured_at_once() {
    let pool = pool(1);
    let (release, busy) = occupy(&pool);
    let captured = Arc::new(());
    let hold = |captured: &Arc<()>| {
        let captured = Arc::clone(captured);
        pool.spawn_handle(move || drop(captured))
    };
    let handles = [hold(&captured), hold(&captured)];
    assert_eq!(Arc::strong_count(&captured), 3);
    assert!(handles[0].cancel() && !handles[0].cancel());
    assert_eq!(Arc::strong_count(&captured), 2);
    let [_, kept] = handles;
    drop(kept.cancel_on_drop());
    assert_eq!(Arc::strong_count(&captured), 1);
    // In a scope as well, which does not wait for it.
    let number = Arc::new(7);
    pool.in_place_scope(|s| {
        let number = Arc::clone(&number);
        assert!(s.spawn_handle(move || *number).cancel());
        drop(release);
    });
    assert_eq!(Arc::strong_count(&number), 1);
    busy.join().unwrap();
}

#[test]
fn a_handle_that_cancels_on_drop_is_a_handle() {
    let pool = pool(1);
    assert_eq!(pool.spawn_handle(|| 1).cancel_on_drop().join().unwrap(), 1);
    let running = pool.spawn_handle(|| 2).cancel_on_drop();
    while !running.is_finished() {
        std::thread::yield_now();
    }
    assert!(!running.cancel());
    assert_eq!(running.join().unwrap(), 2);
}

#[test]
fn a_token_stops_what_asks_it_and_what_has_not_started() {
    let (parent, started) = (CancellationToken::new(), AtomicUsize::new(0));
    let (child, other) = (parent.child_token(), parent.child_token());
    child.cancel();
    assert!(child.is_cancelled() && !parent.is_cancelled() && !other.is_cancelled());
    pool(2).run(|_| {
        poach_runtime::scope(|s| {
            s.spawn_unless(&child, |_, _| _ = started.fetch_add(1, Ordering::SeqCst));
            s.spawn_unless(&other, |_, _| _ = started.fetch_add(10, Ordering::SeqCst));
        });
    });
    assert_eq!(started.into_inner(), 10);
    parent.cancel();
    assert!(other.check().is_err());
    let guard = CancellationToken::new();
    drop(guard.drop_guard());
    assert!(guard.is_cancelled());
    let kept = CancellationToken::new();
    kept.drop_guard().disarm();
    assert!(!kept.is_cancelled());
}

#[test]
fn a_scope_whose_body_fails_or_panics_cancels_its_tasks_and_no_others() {
    let (pool, token) = (pool(2), CancellationToken::new());
    let wait = |panics: bool| {
        let fails = |s: &Scope<'_>, token: &CancellationToken| {
            s.spawn_unless(token, |_, token| while !token.is_cancelled() {});
            assert!(!panics, "in the body");
            Err::<(), _>(3)
        };
        pool.install(|| token.try_scope(fails))
    };
    assert_eq!(wait(false), Err(3));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wait(true))).is_err());
    assert!(!token.is_cancelled());
    let borrowed = AtomicUsize::new(0);
    let fine = pool.install(|| {
        token.try_scope(|s, token| {
            (0..3).for_each(|_| {
                s.spawn_unless(token, |_, _| _ = borrowed.fetch_add(1, Ordering::SeqCst));
            });
            Ok::<_, ()>(token.is_cancelled())
        })
    });
    assert_eq!((fine, borrowed.into_inner()), (Ok(false), 3));
}

#[test]
fn a_task_whose_token_is_cancelled_after_its_spawn_does_not_start() {
    let (pool, token) = (pool(1), CancellationToken::new());
    let (release, busy) = occupy(&pool);
    let (started, held) = (AtomicUsize::new(0), Arc::new(()));
    pool.in_place_scope(|s| {
        let held = Arc::clone(&held);
        s.spawn_unless(&token, |_, _| {
            drop(held);
            started.fetch_add(1, Ordering::SeqCst);
        });
        token.cancel();
        drop(release);
    });
    assert_eq!((started.into_inner(), Arc::strong_count(&held)), (0, 1));
    busy.join().unwrap();
}
