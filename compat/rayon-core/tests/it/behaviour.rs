//! What the documentation of rayon-core promises, asked of whichever core this is built with: this
//! package, and, by `compat/original`, the original.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

use rayon_core::{
    Scope, ThreadPool, ThreadPoolBuilder, Yield, broadcast, current_num_threads,
    current_thread_has_pending_tasks, current_thread_index, in_place_scope, in_place_scope_fifo,
    join, join_context, max_num_threads, scope, scope_fifo, spawn, spawn_broadcast, spawn_fifo,
    yield_local, yield_now,
};

use crate::rig::{fib, panic_of, pool};

#[test]
fn joins_return_both_results() {
    assert_eq!(fib(16), 987);
    assert_eq!(pool(2).install(|| fib(16)), 987);
    assert_eq!(pool(2).join(|| 1, || "two"), (1, "two"));
}

#[test]
fn the_first_panic_of_a_join_wins_and_the_other_half_has_ended() {
    let pool = pool(2);
    for _ in 0..100 {
        let ended = AtomicUsize::new(0);
        let count = || _ = ended.fetch_add(1, Ordering::SeqCst);
        assert_eq!(panic_of(|| pool.join(|| panic_any("first"), count)), "first");
        assert_eq!(panic_of(|| pool.join(count, || panic_any("second"))), "second");
        let both = || pool.join(|| panic_any("first"), || panic_any("second"));
        assert_eq!(panic_of(both), "first");
        // Both halves of a join are executed, whatever happens.
        assert_eq!(ended.load(Ordering::SeqCst), 2);
    }
}

#[test]
fn without_thieves_a_join_runs_its_first_half_first_and_nothing_migrates() {
    let order = Mutex::new(Vec::new());
    let pool = pool(1);
    pool.install(|| join(|| order.lock().unwrap().push(1), || order.lock().unwrap().push(2)));
    assert_eq!(order.into_inner().unwrap(), [1, 2]);
    let migrated = pool.install(|| join_context(|a| a.migrated(), |b| b.migrated()));
    assert_eq!(migrated, (false, false));
}

#[test]
fn a_stolen_half_has_migrated() {
    let barrier = Barrier::new(2);
    let halves = pool(2).install(|| {
        join_context(
            |a| {
                barrier.wait();
                (a.migrated(), current_thread_index())
            },
            |b| {
                barrier.wait();
                (b.migrated(), current_thread_index())
            },
        )
    });
    assert!(!halves.0.0 && halves.1.0);
    assert_ne!(halves.0.1, halves.1.1);
}

#[test]
fn both_halves_of_a_join_from_outside_have_migrated() {
    assert_eq!(pool(1).install(current_thread_index), Some(0));
    let (a, b) = join_context(|a| a.migrated(), |b| b.migrated());
    assert!(a && b);
}

#[test]
fn what_is_called_from_outside_runs_on_a_thread_of_the_pool() {
    thread_local!(static HERE: Cell<bool> = const { Cell::new(false) });
    HERE.set(true);
    let pool = pool(2);
    let here = || (HERE.get(), current_thread_index().is_some());
    assert_eq!(pool.install(here), (false, true));
    assert_eq!(pool.scope(|_| here()), (false, true));
    assert_eq!(pool.scope_fifo(|_| here()), (false, true));
    assert_eq!(pool.join(here, || ()).0, (false, true));
    assert_eq!(join(here, || ()).0, (false, true));
    assert_eq!(scope(|_| here()), (false, true));
    assert!(pool.broadcast(|_| here()).iter().all(|&seen| seen == (false, true)));
    assert_eq!(pool.in_place_scope(|_| here()), (true, false));
    assert_eq!(in_place_scope_fifo(|_| here()), (true, false));
    for index in pool.broadcast(|_| current_thread_index()) {
        assert!(index.unwrap() < 2);
    }
}

#[test]
fn install_nests_and_crosses_pools() {
    let (two, three) = (pool(2), pool(3));
    let seen = two.install(|| {
        let outer = current_num_threads();
        let inner = three.install(|| (current_num_threads(), two.install(current_num_threads)));
        (outer, inner, current_num_threads(), two.current_thread_index().is_some())
    });
    assert_eq!(seen, (2, (3, 2), 2, true));
    assert!(two.current_thread_index().is_none());
    assert_eq!((two.current_num_threads(), three.current_num_threads()), (2, 3));
    // Two pools of one thread that call each other, deeper than either has threads.
    let (left, right) = (pool(1), pool(1));
    fn ping(n: u32, here: &ThreadPool, there: &ThreadPool) -> u32 {
        if n == 0 { 0 } else { 1 + there.install(|| ping(n - 1, there, here)) }
    }
    assert_eq!(left.install(|| ping(20, &left, &right)), 20);
    assert_eq!(panic_of(|| two.install(|| three.install(|| panic_any("far")))), "far");
}

/// The name of the thread that this runs on.
fn here() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

/// A pool whose threads all have this name.
fn named(threads: usize, name: &'static str) -> ThreadPool {
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    builder.thread_name(|_| name.to_owned()).build().unwrap()
}

#[test]
fn a_function_acts_on_the_pool_of_the_thread_that_calls_it() {
    let own = named(3, "own");
    let (send, receive) = mpsc::channel();
    own.install(move || {
        let caller = thread::current().id();
        let tell = |seen: &Mutex<Vec<String>>| seen.lock().unwrap().push(here());
        let (seen, tell) = (&Mutex::new(Vec::new()), &tell);
        // The body runs on the thread that calls, and the tasks on its pool.
        let bodies = [
            scope(|s| {
                s.spawn(move |_| tell(seen));
                s.spawn_broadcast(move |_, _| tell(seen));
                thread::current().id()
            }),
            scope_fifo(|s| {
                s.spawn_fifo(move |_| tell(seen));
                s.spawn_broadcast(move |_, _| tell(seen));
                thread::current().id()
            }),
            in_place_scope(|s| {
                s.spawn(move |_| tell(seen));
                s.spawn_broadcast(move |_, _| tell(seen));
                thread::current().id()
            }),
            in_place_scope_fifo(|s| {
                s.spawn_fifo(move |_| tell(seen));
                s.spawn_broadcast(move |_, _| tell(seen));
                thread::current().id()
            }),
        ];
        assert_eq!(bodies, [caller; 4]);
        assert_eq!(*seen.lock().unwrap(), vec!["own"; 16]);
        assert_eq!(
            broadcast(|context| (context.num_threads(), here())),
            vec![(3, "own".to_owned()); 3]
        );
        assert_eq!(join(here, here), ("own".to_owned(), "own".to_owned()));
        assert_eq!(join_context(|_| here(), |_| here()), ("own".to_owned(), "own".to_owned()));
        assert_eq!(current_num_threads(), 3);
        let (one, other) = (send.clone(), send.clone());
        spawn(move || one.send(here()).unwrap());
        spawn_fifo(move || other.send(here()).unwrap());
        spawn_broadcast(move |_| send.send(here()).unwrap());
    });
    assert_eq!(receive.iter().collect::<Vec<_>>(), ["own"; 5]);
}

#[test]
fn a_method_acts_on_its_pool_whatever_thread_calls_it() {
    let (own, other) = (named(3, "own"), named(1, "other"));
    let (send, receive) = mpsc::channel();
    other.install(|| {
        let tell = |seen: &Mutex<Vec<String>>| seen.lock().unwrap().push(here());
        let (seen, tell) = (&Mutex::new(Vec::new()), &tell);
        let bodies = [
            own.scope(|s| {
                s.spawn(move |_| tell(seen));
                s.spawn_broadcast(move |_, _| tell(seen));
                here()
            }),
            own.scope_fifo(|s| {
                s.spawn_fifo(move |_| tell(seen));
                s.spawn_broadcast(move |_, _| tell(seen));
                here()
            }),
            own.in_place_scope(|s| {
                s.spawn(move |_| tell(seen));
                s.spawn_broadcast(move |_, _| tell(seen));
                here()
            }),
            own.in_place_scope_fifo(|s| {
                s.spawn_fifo(move |_| tell(seen));
                s.spawn_broadcast(move |_, _| tell(seen));
                here()
            }),
        ];
        assert_eq!(bodies, ["own", "own", "other", "other"]);
        assert_eq!(*seen.lock().unwrap(), vec!["own"; 16]);
        assert_eq!(
            own.broadcast(|context| (context.num_threads(), here())),
            vec![(3, "own".to_owned()); 3]
        );
        assert_eq!(own.join(here, here), ("own".to_owned(), "own".to_owned()));
        assert_eq!(own.install(here), "own");
        assert_eq!((own.current_num_threads(), own.current_thread_index()), (3, None));
        let (one, two, each) = (send.clone(), send.clone(), send.clone());
        own.spawn(move || one.send(here()).unwrap());
        own.spawn_fifo(move || two.send(here()).unwrap());
        own.spawn_broadcast(move |_| each.send(here()).unwrap());
    });
    drop(send);
    assert_eq!(receive.iter().collect::<Vec<_>>(), ["own"; 5]);
}

/// In which order the tasks of `spawning` run on a pool of one thread.
fn order(spawning: impl FnOnce(&Mutex<Vec<usize>>) + Send) -> Vec<usize> {
    let seen = Mutex::new(Vec::new());
    pool(1).install(|| spawning(&seen));
    seen.into_inner().unwrap()
}

#[test]
fn tasks_of_a_scope_run_youngest_first_and_those_of_a_fifo_scope_oldest_first() {
    let push = |seen: &Mutex<Vec<usize>>, i| seen.lock().unwrap().push(i);
    let lifo = order(|seen| scope(|s| (0..5).for_each(|i| s.spawn(move |_| push(seen, i)))));
    assert_eq!(lifo, [4, 3, 2, 1, 0]);
    let fifo =
        order(|seen| scope_fifo(|s| (0..5).for_each(|i| s.spawn_fifo(move |_| push(seen, i)))));
    assert_eq!(fifo, [0, 1, 2, 3, 4]);
    let nested = order(|seen| {
        scope_fifo(|s| {
            for i in 0..3 {
                s.spawn_fifo(move |s| {
                    push(seen, i);
                    s.spawn_fifo(move |_| push(seen, 10 + i));
                });
            }
        });
    });
    assert_eq!(nested, [0, 1, 2, 10, 11, 12]);
    let in_place = order(|seen| {
        in_place_scope(|s| (0..3).for_each(|i| s.spawn(move |_| push(seen, i))));
    });
    assert_eq!(in_place, [2, 1, 0]);
}

#[test]
#[allow(deprecated)]
fn breadth_first_takes_the_oldest() {
    let pool = ThreadPoolBuilder::new().num_threads(1).breadth_first().build().unwrap();
    let seen = Mutex::new(Vec::new());
    pool.scope(|s| {
        for i in 0..5 {
            let seen = &seen;
            s.spawn(move |_| seen.lock().unwrap().push(i));
        }
    });
    assert_eq!(seen.into_inner().unwrap(), [0, 1, 2, 3, 4]);
    // A spawn handler that is set later keeps the order.
    let builder = ThreadPoolBuilder::new().num_threads(1).breadth_first();
    let builder =
        builder.spawn_handler(|thread| thread::Builder::new().spawn(|| thread.run()).map(drop));
    let pool = builder.build().unwrap();
    let seen = &Mutex::new(Vec::new());
    pool.scope(|s| (0..5).for_each(|i| s.spawn(move |_| seen.lock().unwrap().push(i))));
    assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3, 4]);
}

#[test]
fn detached_tasks_in_their_order() {
    let (send, receive) = mpsc::channel();
    let pool = pool(1);
    pool.install(move || {
        for i in 0..3 {
            let send = send.clone();
            spawn(move || send.send(i).unwrap());
        }
        for i in 10..13 {
            let send = send.clone();
            spawn_fifo(move || send.send(i).unwrap());
        }
    });
    let seen: Vec<i32> = receive.iter().collect();
    assert_eq!(seen, [10, 11, 12, 2, 1, 0]);
}

#[test]
fn tasks_that_a_pool_is_given_in_order_run_in_it() {
    let (send, receive) = mpsc::channel();
    let pool = Arc::new(pool(1));
    let own = Arc::clone(&pool);
    pool.install(move || {
        for i in 0..3 {
            let send = send.clone();
            own.spawn(move || send.send(i).unwrap());
        }
        for i in 10..13 {
            let send = send.clone();
            own.spawn_fifo(move || send.send(i).unwrap());
        }
    });
    let seen: Vec<i32> = receive.iter().collect();
    assert_eq!(seen, [10, 11, 12, 2, 1, 0]);
}

#[test]
fn a_scope_waits_for_all_and_its_tasks_spawn_more() {
    fn tree<'s>(s: &Scope<'s>, depth: u32, count: &'s AtomicUsize) {
        count.fetch_add(1, Ordering::SeqCst);
        if depth > 0 {
            s.spawn(move |s| tree(s, depth - 1, count));
            s.spawn(move |s| tree(s, depth - 1, count));
        }
    }
    for threads in [1, 2, 4] {
        let count = AtomicUsize::new(0);
        assert_eq!(
            pool(threads).scope(|s| {
                tree(s, 8, &count);
                7
            }),
            7
        );
        assert_eq!(count.into_inner(), 511);
    }
}

#[test]
fn the_panic_of_a_scopes_body_or_task_travels_once_all_have_ended() {
    let pool = pool(2);
    let count = AtomicUsize::new(0);
    let body = || {
        pool.scope(|s| {
            for _ in 0..50 {
                s.spawn(|_| _ = count.fetch_add(1, Ordering::SeqCst));
            }
            panic_any("body")
        })
    };
    assert_eq!(panic_of(body), "body");
    assert_eq!(count.swap(0, Ordering::SeqCst), 50);
    let task = || {
        pool.scope(|s| {
            s.spawn(|_| panic_any("task"));
            for _ in 0..50 {
                s.spawn(|_| _ = count.fetch_add(1, Ordering::SeqCst));
            }
        });
    };
    assert_eq!(panic_of(task), "task");
    assert_eq!(count.into_inner(), 50);
}

#[test]
fn a_broadcast_reaches_every_thread_once() {
    let pool = pool(3);
    assert_eq!(
        pool.broadcast(|context| (context.index(), context.num_threads())),
        [(0, 3), (1, 3), (2, 3)]
    );
    assert_eq!(pool.install(|| broadcast(|context| context.index())), [0, 1, 2]);
    assert_eq!(broadcast(|_| ()).len(), current_num_threads());
    assert_eq!(
        panic_of(|| pool.broadcast(|c| if c.index() == 1 {
            panic_any("one")
        })),
        "one"
    );
    let (send, receive) = mpsc::channel();
    pool.spawn_broadcast(move |context| send.send(context.index()).unwrap());
    let mut seen: Vec<usize> = receive.iter().collect();
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2]);
    let count = AtomicUsize::new(0);
    pool.scope(|s| s.spawn_broadcast(|_, _| _ = count.fetch_add(1, Ordering::SeqCst)));
    pool.scope_fifo(|s| s.spawn_broadcast(|_, _| _ = count.fetch_add(1, Ordering::SeqCst)));
    assert_eq!(count.into_inner(), 6);
    let (send, receive) = mpsc::channel();
    spawn_broadcast(move |_| send.send(()).unwrap());
    assert_eq!(receive.iter().count(), current_num_threads());
}

#[test]
fn yields_run_what_there_is() {
    assert_eq!((yield_now(), yield_local()), (None, None));
    let (pool, other) = (pool(1), pool(1));
    pool.install(|| {
        assert_eq!(current_thread_has_pending_tasks(), Some(false));
        assert_eq!((yield_now(), yield_local()), (Some(Yield::Idle), Some(Yield::Idle)));
        assert_eq!((other.yield_now(), other.yield_local()), (None, None));
        let (send, receive) = mpsc::channel();
        for yields in [yield_now, yield_local] {
            let send = send.clone();
            spawn(move || send.send(()).unwrap());
            assert_eq!(current_thread_has_pending_tasks(), Some(true));
            assert_eq!(yields(), Some(Yield::Executed));
            receive.try_recv().unwrap();
        }
        // A task from outside is no other task of this thread's.
        thread::scope(|threads| {
            let spawn = || pool.spawn(move || send.send(()).unwrap());
            threads.spawn(spawn).join().unwrap();
        });
        assert_eq!((yield_local(), pool.yield_local()), (Some(Yield::Idle), Some(Yield::Idle)));
        assert_eq!(pool.yield_now(), Some(Yield::Executed));
        receive.try_recv().unwrap();
        spawn(|| ());
        assert_eq!(pool.yield_local(), Some(Yield::Executed));
        assert_eq!(pool.current_thread_has_pending_tasks(), Some(false));
        assert_eq!(other.current_thread_has_pending_tasks(), None);
    });
    assert_eq!(current_thread_has_pending_tasks(), None);
}

#[test]
fn the_panic_of_a_detached_task_goes_to_the_handler() {
    let (send, receive) = mpsc::channel();
    let send = Mutex::new(send);
    let pool = ThreadPoolBuilder::new()
        .num_threads(2)
        .panic_handler(move |payload| {
            let message = payload.downcast_ref::<&str>().unwrap().to_string();
            send.lock().unwrap().send(message).unwrap();
        })
        .build()
        .unwrap();
    pool.spawn(|| panic_any("spawn"));
    assert_eq!(receive.recv().unwrap(), "spawn");
    pool.spawn_fifo(|| panic_any("spawn_fifo"));
    assert_eq!(receive.recv().unwrap(), "spawn_fifo");
    pool.spawn_broadcast(|_| panic_any("spawn_broadcast"));
    assert_eq!(receive.recv().unwrap(), "spawn_broadcast");
    assert_eq!(receive.recv().unwrap(), "spawn_broadcast");
    // A panic that travels does not.
    assert_eq!(panic_of(|| pool.install(|| panic_any("install"))), "install");
    drop(pool);
    assert_eq!(receive.iter().count(), 0);
}

#[test]
fn a_scoped_pool_has_threads_that_borrow_and_have_ended_afterwards() {
    let ended = AtomicUsize::new(0);
    let sum = ThreadPoolBuilder::new().num_threads(2).build_scoped(
        |thread| {
            thread.run();
            ended.fetch_add(1, Ordering::SeqCst);
        },
        |pool| pool.install(|| fib(12)),
    );
    assert_eq!((sum.unwrap(), ended.into_inner()), (144, 2));
}

#[test]
fn this_thread_as_one_of_the_pools() {
    let seen = thread::spawn(|| {
        let (send, receive) = mpsc::channel();
        let send = Mutex::new(send);
        let builder = ThreadPoolBuilder::new().num_threads(2).use_current_thread();
        let started = move |index| send.lock().unwrap().send(index).unwrap();
        let pool = builder.start_handler(started).build().unwrap();
        assert_eq!((current_thread_index(), current_num_threads()), (Some(0), 2));
        // The handler is not called for this thread.
        assert_eq!((receive.recv().unwrap(), receive.try_recv().ok()), (1, None));
        let error = ThreadPoolBuilder::new().use_current_thread().build().unwrap_err();
        assert_eq!(error.to_string(), "The current thread is already part of another thread pool.");
        assert!(error.source().is_none());
        // The other thread runs it, since this one waits for it without the pool's knowledge.
        let (send, receive) = mpsc::channel();
        pool.spawn(move || send.send(current_thread_index()).unwrap());
        let index = receive.recv().unwrap();
        (index, pool.install(|| fib(12)))
    });
    assert_eq!(seen.join().unwrap(), (Some(1), 144));
}

#[test]
fn too_many_threads_are_reduced_to_the_most() {
    for threads in [max_num_threads() + 1, usize::MAX] {
        let mut asked = 0;
        let builder = ThreadPoolBuilder::new().num_threads(threads);
        let refused = builder.spawn_handler(|thread| {
            asked = asked.max(thread.index());
            Err(io::Error::other("enough"))
        });
        assert_eq!(refused.build().unwrap_err().to_string(), "enough");
        assert_eq!(asked, 0);
    }
}

#[test]
fn the_drop_of_a_pool_waits_for_nothing_and_loses_nothing() {
    let (release, hold) = mpsc::channel::<()>();
    let (send, receive) = mpsc::channel();
    let pool = pool(2);
    pool.spawn(move || {
        _ = hold.recv();
        // The pool is there for its tasks until the last has ended.
        send.send((fib(10), current_num_threads())).unwrap();
    });
    drop(pool);
    assert!(receive.try_recv().is_err());
    drop(release);
    assert_eq!(receive.recv().unwrap(), (55, 2));
}

#[test]
fn a_stolen_half_outlives_the_handle_of_its_pool() {
    let pool = pool(2);
    let (release, hold) = mpsc::channel::<()>();
    let (send, receive) = mpsc::channel();
    let both = Arc::new(Barrier::new(3));
    let halves = Arc::clone(&both);
    pool.spawn(move || {
        // Each half waits until the other has begun, and so runs on a thread of its own.
        let halves = &halves;
        let (here, there) = join(
            || {
                halves.wait();
                current_thread_index()
            },
            move || {
                halves.wait();
                _ = hold.recv();
                // The pool still works: for this half, and for what it forks.
                (current_thread_index(), fib(12), broadcast(|context| context.index()))
            },
        );
        send.send((here, there)).unwrap();
    });
    both.wait();
    drop(pool);
    drop(release);
    let (here, (there, sum, all)) = receive.recv().unwrap();
    assert!(here != there && here < Some(2) && there < Some(2));
    assert_eq!((sum, all), (144, vec![0, 1]));
}

#[test]
fn pools_are_dropped_by_their_own_handlers_and_tasks() {
    // By its own task.
    let own = Arc::new(pool(1));
    let (send, receive) = mpsc::channel();
    let mine = Arc::clone(&own);
    own.spawn(move || {
        let last = loop {
            if Arc::strong_count(&mine) == 1 {
                break mine;
            }
            thread::yield_now();
        };
        drop(last);
        send.send(()).unwrap();
    });
    drop(own);
    receive.recv().unwrap();
    // By another's exit handler, which ends only then.
    let (send, receive) = mpsc::channel();
    let (slot, send) = (Mutex::new(Some(pool(2))), Mutex::new(send));
    let other = ThreadPoolBuilder::new()
        .num_threads(1)
        .exit_handler(move |_| {
            drop(slot.lock().unwrap().take());
            send.lock().unwrap().send(()).unwrap();
        })
        .build()
        .unwrap();
    drop(other);
    receive.recv().unwrap();
}

#[test]
fn a_start_handler_may_make_use_and_drop_a_pool() {
    let outer = ThreadPoolBuilder::new()
        .num_threads(2)
        .start_handler(|_| assert_eq!(pool(1).install(|| fib(5)), 5))
        .build()
        .unwrap();
    assert_eq!(outer.install(|| fib(12)), 144);
}

#[test]
fn a_pool_thread_cannot_be_one_of_another_pools() {
    let error = pool(1).install(|| {
        ThreadPoolBuilder::new().num_threads(2).use_current_thread().build().unwrap_err()
    });
    assert_eq!(error.to_string(), "The current thread is already part of another thread pool.");
    // What an `unwrap` says.
    assert_eq!(format!("{error:?}"), "ThreadPoolBuildError { kind: CurrentThreadAlreadyInPool }");
}

#[test]
fn no_threads_are_as_many_as_the_system_has() {
    let pool = ThreadPoolBuilder::new().num_threads(0).build().unwrap();
    assert!(pool.current_num_threads() >= 1);
    assert_eq!(pool.install(|| fib(10)), 55);
}

#[test]
fn joins_nest_deeply() {
    fn deep(levels: u64) -> u64 {
        if levels == 0 {
            return 0;
        }
        let (below, one) = join(|| deep(levels - 1), || 1);
        below + one
    }
    let pool = ThreadPoolBuilder::new().num_threads(2).stack_size(512 << 20).build().unwrap();
    assert_eq!(pool.install(|| deep(100_000)), 100_000);
}
