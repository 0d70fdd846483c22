//! Tasks that wait for tasks beside them: no wait begins one on top of what that waits for.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::sleep;
use std::time::{Duration, Instant};

use poach_runtime::config::{SpawnOrder, Waiting};
use poach_runtime::{JoinError, JoinHandle, Priority, ThreadPool, join, scope, spawn_handle, task};

use crate::alone::alone;

const WAITS: [Waiting; 5] =
    [Waiting::Sleep, Waiting::Leapfrog, Waiting::Transitive, Waiting::Random, Waiting::Patient];

fn each_pool(test: impl Fn(&ThreadPool)) {
    for threads in 1..=4 {
        for waiting in WAITS {
            for order in [SpawnOrder::Lifo, SpawnOrder::Fifo] {
                let builder = ThreadPool::builder().num_threads(threads).waiting(waiting);
                test(&builder.spawn_order(order).build().unwrap());
            }
        }
    }
}

/// Long enough for the others to come and look for work.
fn work() {
    sleep(Duration::from_millis(3));
}

const STAGES: usize = if cfg!(miri) { 4 } else { 10 };

#[test]
fn stages_from_outside() {
    alone("stages_from_outside", || {
        each_pool(|pool| {
            let first = pool.spawn_handle(|| {
                work();
                0
            });
            let next =
                |before: JoinHandle<usize>| pool.spawn_handle(move || before.join().unwrap() + 1);
            let last = (1..STAGES).fold(first, |before, _| next(before));
            assert_eq!(last.join().unwrap(), STAGES - 1);
        });
    });
}

#[test]
fn stages_of_a_task_in_both_orders() {
    alone("stages_of_a_task_in_both_orders", || {
        each_pool(|pool| {
            for fifo in [false, true] {
                let last = pool.spawn_handle(move || {
                    let first = spawn_handle(|| {
                        work();
                        0
                    });
                    let next = |before: JoinHandle<usize>| {
                        let stage = move || before.join().unwrap() + 1;
                        if fifo {
                            task().in_order().spawn_handle(stage)
                        } else {
                            spawn_handle(stage)
                        }
                    };
                    (1..STAGES).fold(first, |before, _| next(before)).join().unwrap()
                });
                assert_eq!(last.join().unwrap(), STAGES - 1);
            }
        });
    });
}

/// The waits below are those for a stolen half and for a scope.
#[test]
fn what_waits_for_a_task_with_forks_and_a_scope_of_its_own() {
    alone("what_waits_for_a_task_with_forks_and_a_scope_of_its_own", || {
        each_pool(|pool| {
            let forks = pool.spawn_handle(|| join(work, || join(work, work)));
            let scopes = pool.spawn_handle(|| scope(|s| (0..4).for_each(|_| s.spawn(|_| work()))));
            let both = pool.spawn_handle(move || join(|| forks.join(), || scopes.join()));
            let after: Vec<_> = (0..4).map(|_| pool.spawn_handle(work)).collect();
            let last = pool.spawn_handle(move || {
                let (forks, scopes) = both.join().unwrap();
                forks.unwrap();
                scopes.unwrap();
                for after in after {
                    after.join().unwrap();
                }
            });
            last.join().unwrap();
        });
    });
}

#[test]
fn stages_in_a_scope() {
    alone("stages_in_a_scope", || {
        each_pool(|pool| {
            pool.install(|| {
                scope(|s| {
                    let first = s.spawn_handle(|| {
                        join(work, work);
                        0
                    });
                    let last = (1..STAGES).fold(first, |before, _| {
                        s.spawn_handle(move || before.join().unwrap() + 1)
                    });
                    s.spawn(move |_| assert_eq!(last.join().unwrap(), STAGES - 1));
                });
            });
        });
    });
}

/// A task is given handles of some of those before it, and waits for them in any order.
#[test]
fn graphs() {
    alone("graphs", || {
        each_pool(|pool| {
            let mut random = 1_u64;
            let mut below = move |n: usize| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 33) as usize % n
            };
            let mut free: Vec<JoinHandle<usize>> = Vec::new();
            for _ in 0..5 * STAGES {
                let takes = below(free.len().min(3) + 1);
                let before: Vec<_> =
                    (0..takes).map(|_| free.swap_remove(below(free.len()))).collect();
                let forks = below(2) == 0;
                free.push(pool.spawn_handle(move || {
                    let sum = |()| before.into_iter().map(|task| task.join().unwrap()).sum();
                    let below: usize = if forks { join(|| sum(()), || ()).0 } else { sum(()) };
                    below + 1
                }));
            }
            let all: usize = free.into_iter().map(|task| task.join().unwrap()).sum();
            assert_eq!(all, 5 * STAGES);
        });
    });
}

/// Each waits for what it has spawned, on as many workers as there are: nobody runs what it does
/// not need, and all is run.
#[test]
fn a_tree_of_handles() {
    fn nodes(depth: u32) -> usize {
        if depth == 0 {
            return 1;
        }
        let left = spawn_handle(move || nodes(depth - 1));
        let right = spawn_handle(move || nodes(depth - 1));
        left.join().unwrap() + right.join().unwrap() + 1
    }
    const DEPTH: u32 = if cfg!(miri) { 3 } else { 10 };
    alone("a_tree_of_handles", || {
        each_pool(|pool| {
            let tree = pool.spawn_handle(|| nodes(DEPTH));
            assert_eq!(pool.install(|| nodes(DEPTH)), (2 << DEPTH) - 1);
            assert_eq!(tree.join().unwrap(), (2 << DEPTH) - 1);
        });
    });
}

/// Handles that come by a channel, so that no rule keeps what is waited for from below the one that
/// waits.
#[test]
fn who_waits_for_a_task_below_it_is_told() {
    let told = |error: JoinError| {
        let payload = error.into_panic();
        let message = payload.downcast_ref::<&str>().copied().unwrap_or_default();
        assert!(message.contains("below it on its own call stack"), "{message:?}");
    };
    alone("who_waits_for_a_task_below_it_is_told", || {
        for waiting in WAITS {
            let pool = ThreadPool::builder().num_threads(1).waiting(waiting).build().unwrap();
            let (send, handle) = channel::<JoinHandle<()>>();
            let below = pool.spawn_handle(move || {
                let above = spawn_handle(move || handle.recv().unwrap().join().unwrap());
                told(above.join().unwrap_err());
            });
            send.send(below).unwrap();
            // The task for itself.
            let (send, handle) = channel::<JoinHandle<()>>();
            let (ended, end) = channel();
            let itself = pool.spawn_handle(move || {
                let handle = handle.recv().unwrap();
                let wait = catch_unwind(AssertUnwindSafe(|| handle.join()));
                ended.send(wait.is_err()).unwrap();
            });
            send.send(itself).unwrap();
            assert_eq!(end.recv(), Ok(true));
        }
    });
}

/// The scope's task is in its worker's mail, so that nothing in the queue is needed. What lies
/// there is older, and may wait for the task that opened the scope.
#[test]
fn a_scope_begins_nothing_that_is_older() {
    let pool = ThreadPool::builder().num_threads(1).build().unwrap();
    let (send, order) = channel();
    let told = send.clone();
    let outer = pool.spawn_handle(move || {
        drop(spawn_handle(move || told.send("older").unwrap()));
        let inner = spawn_handle(move || {
            scope(|s| s.spawn_broadcast(|_, _| send.send("the scope's").unwrap()));
            send.send("after the scope").unwrap();
        });
        inner.join().unwrap();
    });
    // Nobody waits for `outer`, so that it is awaitable all the time.
    assert_eq!(order.iter().collect::<Vec<_>>(), ["the scope's", "after the scope", "older"]);
    outer.join().unwrap();
}

/// Waits until `done`, or for so long that whatever should have done it never will.
fn wait_for(done: &AtomicBool) -> bool {
    let ends = Instant::now() + Duration::from_secs(20);
    while !done.load(Ordering::SeqCst) && Instant::now() < ends {
        sleep(Duration::from_millis(1));
    }
    done.load(Ordering::SeqCst)
}

fn raise(flag: &AtomicBool) {
    flag.store(true, Ordering::SeqCst);
}

/// The other worker is busy until it has ended, and nothing else of the pool begins.
#[test]
fn a_wait_begins_what_it_waits_for_though_others_may_wait_for_its_task() {
    let pool = ThreadPool::builder().num_threads(2).build().unwrap();
    let [begun, ended] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let busy = pool.spawn_handle({
        let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
        move || {
            raise(&begun);
            wait_for(&ended)
        }
    });
    assert!(wait_for(&begun));
    let _kept = pool.spawn_handle(move || {
        let ends = move || raise(&ended);
        task().priority(Priority::Normal).spawn_handle(ends).join().unwrap();
    });
    // Nobody waits by the other handle before.
    assert!(busy.join().unwrap(), "it waits for a task that it might have begun");
}

/// A task under way whose handle is dropped keeps no wait from taking tasks.
#[test]
fn a_task_whose_handle_is_dropped_is_not_waited_for_by_anybody() {
    let pool = ThreadPool::builder().num_threads(2).build().unwrap();
    let other = ThreadPool::builder().num_threads(1).build().unwrap();
    let [begun, ran] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let (tell, answer) = channel();
    let busy = pool.spawn_handle({
        let (begun, ran) = (Arc::clone(&begun), Arc::clone(&ran));
        move || {
            raise(&begun);
            tell.send(wait_for(&ran)).unwrap();
        }
    });
    assert!(wait_for(&begun));
    drop(busy);
    pool.install(|| {
        let (waited, ran) = (Arc::clone(&ran), Arc::clone(&ran));
        let call = other.spawn_handle(move || wait_for(&waited));
        pool.task().priority(Priority::Normal).spawn(move || raise(&ran));
        _ = call.join();
    });
    assert!(answer.recv().unwrap(), "the wait took no task");
}
