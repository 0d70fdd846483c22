//! One closure on every worker.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

use poach_runtime::{
    ThreadPool, broadcast, current_thread_index, join, scope, spawn_broadcast, spawn_handle,
};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

#[test]
fn each_worker_runs_it_once_and_answers_in_order() {
    for threads in [1, 2, 5] {
        let pool = pool(threads);
        let all = Barrier::new(threads);
        let answers = pool.broadcast(|context| {
            // All at the same time, so no worker can have run two.
            all.wait();
            assert_eq!(current_thread_index(), Some(context.index()));
            assert_eq!(context.num_threads(), threads);
            (context.index(), thread::current().id())
        });
        assert!(answers.iter().map(|(index, _)| *index).eq(0..threads));
        let ids: HashSet<_> = answers.iter().map(|(_, id)| *id).collect();
        assert_eq!(ids.len(), threads);
    }
}

#[test]
fn it_may_borrow_fork_and_broadcast_in_turn() {
    let pool = pool(3);
    let numbers = [1, 2, 3];
    let sums = pool.broadcast(|_| join(|| numbers[0] + numbers[1], || numbers[2]));
    assert_eq!(sums, [(3, 3); 3]);
    let nested = pool.broadcast(|outer| {
        let outer = outer.index();
        broadcast(|inner| (outer, inner.index()))
    });
    for (i, row) in nested.into_iter().enumerate() {
        assert_eq!(row, [(i, 0), (i, 1), (i, 2)]);
    }
}

#[test]
fn workers_and_strangers_broadcast_at_once() {
    let (a, b) = (pool(2), pool(2));
    let rounds = if cfg!(miri) { 2 } else { 50 };
    thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                for _ in 0..rounds {
                    assert_eq!(a.broadcast(|context| context.index()), [0, 1]);
                    // Each pool's workers wait for the other's.
                    let both = a.broadcast(|_| b.broadcast(|_| a.install(|| 1)));
                    assert_eq!(both, [[1, 1], [1, 1]]);
                    let own = b.install(|| broadcast(|context| context.index()));
                    assert_eq!(own, [0, 1]);
                }
            });
        }
    });
}

#[test]
fn a_panic_arrives_when_all_have_ended() {
    let pool = pool(3);
    let ended = AtomicUsize::new(0);
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool.broadcast(|context| {
            assert!(context.index() != 1, "in the middle");
            ended.fetch_add(1, Ordering::SeqCst);
        })
    }));
    assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"in the middle"));
    assert_eq!(ended.into_inner(), 2);
    assert_eq!(pool.broadcast(|_| ()).len(), 3);
}

#[test]
fn a_spawned_one_outlives_its_caller_and_reports_panics() {
    let (tell, told) = mpsc::channel();
    let panics = tell.clone();
    let pool = ThreadPool::builder()
        .num_threads(2)
        .on_panic(move |payload| panics.send(*payload.downcast::<&str>().unwrap()).unwrap())
        .build()
        .unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let indices = Arc::clone(&seen);
    pool.spawn_broadcast(move |context| indices.lock().unwrap().push(context.index()));
    pool.install(|| spawn_broadcast(|_| panic!("on everyone")));
    drop(pool); // waits for them
    drop(tell);
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, [0, 1]);
    assert!(told.iter().eq(["on everyone"; 2]));
}

#[test]
fn a_scope_spawns_to_every_worker() {
    for threads in [1, 3] {
        let pool = pool(threads);
        let seen: Vec<_> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
        pool.run(|_| {
            scope(|s| {
                s.spawn_broadcast(|s, context| {
                    seen[context.index()].fetch_add(1, Ordering::SeqCst);
                    let index = context.index();
                    let seen = &seen;
                    s.spawn(move |_| _ = seen[index].fetch_add(10, Ordering::SeqCst));
                });
            });
        });
        pool.in_place_scope_fifo(|s| {
            s.spawn_broadcast(|_, context| {
                seen[context.index()].fetch_add(100, Ordering::SeqCst);
            });
        });
        assert!(seen.into_iter().all(|count| count.into_inner() == 111));
    }
}

#[test]
fn everybody_is_there_while_a_pool_is_being_dropped() {
    for _ in 0..if cfg!(miri) { 3 } else { 100 } {
        let pool = pool(3);
        let handle = pool.spawn_handle(|| {
            // By now the drop below may have told the idle workers to end.
            spawn_handle(|| broadcast(|context| context.index())).join().unwrap()
        });
        drop(pool);
        assert_eq!(handle.join().unwrap(), [0, 1, 2]);
    }
}

#[test]
fn a_busy_worker_is_waited_for() {
    let pool = pool(2);
    let done = AtomicUsize::new(0);
    pool.install(|| {
        scope(|s| {
            s.spawn(|_| {
                thread::sleep(std::time::Duration::from_millis(5));
                done.store(1, Ordering::SeqCst);
            });
            // The worker that runs that task runs the broadcast after it, in this scope or the
            // next.
        });
        assert_eq!(broadcast(|_| done.load(Ordering::SeqCst)), [1, 1]);
    });
}
