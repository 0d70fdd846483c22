//! Pools: builders, handlers, nesting, ends; and what is refused.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use poach_parallel::{par_bridge, par_for};
use poach_runtime::config::MAX_THREADS;
use poach_runtime::stats::WorkerStats;
use poach_runtime::{
    BuildError, Priority, ThreadPool, broadcast, current_num_threads, in_place_scope,
    in_place_scope_fifo, interrupt, join, join_context, scope, scope_fifo, spawn, spawn_broadcast,
    spawn_handle, task, worker,
};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

#[test]
fn a_pool_without_a_thread_is_refused() {
    let error = ThreadPool::builder().num_threads(0).build().unwrap_err();
    assert!(matches!(error, BuildError::Threads(0)), "{error}");
}

#[test]
fn more_threads_than_a_pool_can_have_are_refused() {
    for threads in [MAX_THREADS + 1, usize::MAX] {
        let started = AtomicUsize::new(0);
        let builder =
            ThreadPool::builder().num_threads(threads).task_stack(16).spawn_handler(|_| {
                started.fetch_add(1, Ordering::SeqCst);
                Ok(())
            });
        let error = builder.build().unwrap_err();
        assert!(matches!(error, BuildError::Threads(number) if number == threads), "{error}");
        assert!(error.to_string().ends_with("use 1 to 1024, spare ones included"), "{error}");
        assert_eq!(started.into_inner(), 0);
    }
}

#[test]
#[cfg(not(miri))] // which allocates for every worker
fn as_many_threads_as_a_pool_can_have_are_started() {
    let mut wanted = 0;
    let builder =
        ThreadPool::builder().num_threads(MAX_THREADS).task_stack(16).spawn_handler(|_| {
            wanted += 1;
            Ok(())
        });
    assert_eq!(builder.build().unwrap().threads(), MAX_THREADS);
    assert_eq!(wanted, MAX_THREADS);
}

#[test]
fn a_name_that_no_thread_can_have_is_refused_and_the_others_end() {
    let ended = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&ended);
    let error = ThreadPool::builder()
        .num_threads(2)
        .name(|index| if index == 0 { "first".into() } else { "sec\0nd".into() })
        .join_on_drop(false)
        .on_exit(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
        })
        .build()
        .unwrap_err();
    assert!(matches!(error, BuildError::Name { index: 1 }), "{error}");
    assert!(error.to_string().contains("NUL"), "{error}");
    assert_eq!(ended.load(Ordering::SeqCst), 1);
}

#[test]
fn a_task_stack_out_of_range_is_refused() {
    for slots in [0, usize::MAX] {
        let error = ThreadPool::builder().num_threads(1).task_stack(slots).build().unwrap_err();
        assert!(matches!(error, BuildError::TaskStack(_)), "{error}");
    }
}

#[test]
#[cfg(not(miri))] // which starts every thread
fn a_thread_that_the_system_refuses_is_an_error_and_the_others_end() {
    // No address space has room for this call stack.
    let ended = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&ended);
    let error = ThreadPool::builder()
        .num_threads(2)
        .stack_size(1 << 46)
        .on_exit(move |_| {
            _ = counter.fetch_add(1, Ordering::SeqCst);
        })
        .build()
        .unwrap_err();
    assert!(matches!(error, BuildError::Spawn { index: 0, .. }), "{error}");
    assert!(error.to_string().contains("refused to start worker 0"), "{error}");
}

#[test]
fn threads_have_names_and_handlers_are_called_once_each() {
    let started = Arc::new(Mutex::new(Vec::new()));
    let ended = Arc::new(Mutex::new(Vec::new()));
    let (starts, ends) = (Arc::clone(&started), Arc::clone(&ended));
    let pool = ThreadPool::builder()
        .num_threads(3)
        // Else a call may run here, under this thread's name.
        .callers_work(false)
        .name(|index| format!("poacher {index}"))
        .on_start(move |index| {
            starts.lock().unwrap().push((index, thread::current().name().map(str::to_owned)));
        })
        .on_exit(move |index| ends.lock().unwrap().push(index))
        .build()
        .unwrap();
    assert_eq!((pool.threads(), started.lock().unwrap().len()), (3, 3));
    assert!(pool.install(|| thread::current().name().unwrap().starts_with("poacher ")));
    drop(pool);
    let mut started = started.lock().unwrap().clone();
    started.sort();
    let names: Vec<_> = (0..3).map(|index| (index, Some(format!("poacher {index}")))).collect();
    assert_eq!(started, names);
    let mut ended = ended.lock().unwrap().clone();
    ended.sort_unstable();
    assert_eq!(ended, [0, 1, 2]);
}

#[test]
fn panics_without_a_receiver_go_to_the_handler() {
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let handler = Arc::clone(&seen);
    let pool = ThreadPool::builder()
        .num_threads(1)
        .on_start(|_| _ = poach_runtime::spawn_handle(|| -> () { panic!("started") }))
        .on_exit(|_| panic!("exit"))
        .on_panic(move |payload| {
            let text = payload.downcast_ref::<&'static str>().copied().unwrap_or("?");
            handler.lock().unwrap().insert(text);
            panic!("the handler, too");
        })
        .build()
        .unwrap();
    drop(pool.spawn_handle(|| -> () { panic!("detached") }));
    drop(pool);
    let seen = seen.lock().unwrap();
    assert!(seen.contains("exit"), "{seen:?}");
    // The handle may have been dropped after the task had ended: then nobody asked in time.
    assert!(seen.len() <= 3, "{seen:?}");
}

#[test]
fn install_is_a_call_on_ones_own_pool_and_carries_panics() {
    let pool = pool(2);
    assert_eq!(pool.install(|| pool.install(|| 3)), 3);
    let same = pool.install(|| {
        let outer = thread::current().id();
        pool.install(|| thread::current().id() == outer)
    });
    assert!(same);
    let result = catch_unwind(AssertUnwindSafe(|| pool.install(|| panic!("inside"))));
    assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"inside"));
}

#[test]
fn pools_nest_both_ways() {
    let (a, b) = (pool(1), pool(1));
    let result = a.install(|| b.install(|| a.install(|| b.install(|| join(|| 1, || 2)))));
    assert_eq!(result, (1, 2));
}

#[test]
fn a_worker_that_waits_for_another_pool_serves_its_own() {
    let (a, b) = (pool(1), pool(1));
    // b's task needs a's only worker, which is waiting for b.
    let answer = a.install(|| b.install(|| a.spawn_handle(|| 5).join().unwrap()));
    assert_eq!(answer, 5);
}

/// An interpreter does less.
const TASKS: usize = if cfg!(miri) { 50 } else { 1000 };

#[test]
fn dropping_a_pool_runs_what_was_spawned() {
    let count = Arc::new(AtomicUsize::new(0));
    for threads in [1, 3] {
        count.store(0, Ordering::SeqCst);
        let pool = pool(threads);
        for _ in 0..TASKS {
            let count = Arc::clone(&count);
            drop(pool.spawn_handle(move || count.fetch_add(1, Ordering::SeqCst)));
        }
        drop(pool);
        assert_eq!(count.load(Ordering::SeqCst), TASKS);
    }
}

#[test]
fn a_pool_dropped_by_its_own_worker_ends() {
    let (send, receive) = std::sync::mpsc::channel();
    let pool = ThreadPool::builder()
        .num_threads(2)
        .on_exit(move |index| send.send(index).expect("the test is waiting"))
        .build()
        .unwrap();
    let pool = Arc::new(pool);
    let last = Arc::clone(&pool);
    drop(pool.spawn_handle(move || drop(last)));
    drop(pool);
    let mut ended = [receive.recv().unwrap(), receive.recv().unwrap()];
    ended.sort_unstable();
    assert_eq!(ended, [0, 1]);
}

#[test]
fn many_pools_are_made_and_dropped() {
    let rounds = if cfg!(miri) { 3 } else { 300 };
    for round in 0..rounds {
        let pool = pool(1 + round % 4);
        let count = AtomicUsize::new(0);
        pool.install(|| {
            scope(|s| {
                for _ in 0..round % 7 {
                    s.spawn(|_| {
                        _ = count.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        });
        assert_eq!(count.into_inner(), round % 7);
    }
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))] // Miri's threads run on no processor.
fn pinned_workers_run_where_they_are_told() {
    let pool = ThreadPool::builder().num_threads(2).pin(true).build().unwrap();
    pool.install(|| {
        let set = rustix::thread::sched_getaffinity(None).unwrap();
        assert_eq!(set.count(), 1);
    });
}

#[test]
fn handles_return_results_and_panics() {
    let pool = pool(2);
    let handles: Vec<_> = (0..TASKS / 10).map(|i| pool.spawn_handle(move || i * i)).collect();
    for (i, handle) in handles.into_iter().enumerate() {
        assert_eq!(handle.join().unwrap(), i * i);
    }
    let handle = pool.spawn_handle(|| -> () { panic!("spawned") });
    assert_eq!(*handle.join().unwrap_err().into_panic().downcast::<&str>().unwrap(), "spawned");
    // Joined by a worker, of the same pool, whose only other worker may be busy with it.
    let nested =
        pool.install(|| spawn_handle(|| spawn_handle(|| 11).join().unwrap()).join().unwrap());
    assert_eq!(nested, 11);
}

/// Each looks at nothing, so that the start of a pool does not take longer for each thread, the
/// more there are.
#[test]
fn the_workers_of_a_pool_that_is_asked_for_nothing_sleep_at_once() {
    let threads = if cfg!(miri) { 4 } else { 32 };
    let pool = pool(threads);
    let began = Instant::now();
    while pool.stats().workers()[..threads].iter().any(|worker| worker.sleeps == 0) {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", pool.stats());
        thread::yield_now();
    }
    let stats = pool.stats();
    let looked = |worker: &WorkerStats| (worker.sleeps, worker.membarriers) != (1, 0);
    assert!(!stats.workers()[..threads].iter().any(looked), "{stats}");
    assert_eq!(pool.install(|| join(|| 1, || 2)), (1, 2));
}

/// The name of the thread that this runs on.
fn here() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

/// A pool whose threads all have this name.
fn named(threads: usize, name: &'static str) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).name(|_| name.to_owned()).build().unwrap()
}

#[test]
fn a_function_acts_on_the_pool_of_the_thread_that_calls_it() {
    let (send, receive) = mpsc::channel();
    named(2, "own").install(move || {
        let own = "own".to_owned();
        let all = Mutex::new(Vec::new());
        let tell = || all.lock().unwrap().push(here());
        scope(|s| {
            s.spawn(|_| tell());
            s.spawn_broadcast(|_, _| tell());
        });
        scope_fifo(|s| {
            s.spawn_fifo(|_| tell());
            s.spawn_broadcast(|_, _| tell());
        });
        in_place_scope(|s| s.spawn(|_| tell()));
        in_place_scope_fifo(|s| s.spawn_fifo(|_| tell()));
        par_for(0..10, |_| tell());
        par_bridge(0..10, |_| tell());
        assert_eq!(all.into_inner().unwrap(), vec!["own"; 28]);
        assert_eq!(join(here, here), (own.clone(), own.clone()));
        assert_eq!(join_context(|_| here(), |_| here()), (own.clone(), own.clone()));
        assert_eq!(worker(|_| here()), own);
        assert_eq!(broadcast(|_| here()), [own.as_str(); 2]);
        assert_eq!(interrupt(|| (here(), current_num_threads())), (own.clone(), 2));
        assert_eq!(spawn_handle(here).join().unwrap(), own);
        assert_eq!(task().in_order().spawn_handle(here).join().unwrap(), own);
        assert_eq!(task().priority(Priority::High).spawn_handle(here).join().unwrap(), own);
        let [one, two] = [(); 2].map(|()| send.clone());
        spawn(move || one.send(here()).unwrap());
        task().in_order().spawn(move || two.send(here()).unwrap());
        spawn_broadcast(move |_| send.send(here()).unwrap());
    });
    assert_eq!(receive.iter().collect::<Vec<_>>(), ["own"; 4]);
}

#[test]
fn a_method_acts_on_its_pool_whatever_thread_calls_it() {
    // Without places for callers: else what is called here runs here.
    let builder = ThreadPool::builder().num_threads(2).callers_work(false);
    let pool = builder.name(|_| "own".to_owned()).build().unwrap();
    let (own, other) = ("own".to_owned(), named(1, "other"));
    let call = || {
        let caller = here();
        let all = Mutex::new(Vec::new());
        let tell = || all.lock().unwrap().push(here());
        let bodies = [
            pool.run(|_| {
                scope(|s| {
                    s.spawn(|_| tell());
                    s.spawn_broadcast(|_, _| tell());
                    here()
                })
            }),
            pool.run(|_| {
                scope_fifo(|s| {
                    s.spawn_fifo(|_| tell());
                    s.spawn_broadcast(|_, _| tell());
                    here()
                })
            }),
            pool.in_place_scope(|s| {
                s.spawn(|_| tell());
                s.spawn_broadcast(|_, _| tell());
                here()
            }),
            pool.in_place_scope_fifo(|s| {
                s.spawn_fifo(|_| tell());
                s.spawn_broadcast(|_, _| tell());
                here()
            }),
        ];
        assert_eq!(bodies, [own.clone(), own.clone(), caller.clone(), caller]);
        assert_eq!(all.into_inner().unwrap(), vec!["own"; 12]);
        assert_eq!(pool.install(here), own);
        assert_eq!(pool.run(|_| here()), own);
        assert_eq!(pool.run(|_| join(here, here)), (own.clone(), own.clone()));
        assert_eq!(pool.run(|_| join_context(|_| here(), |_| here())), (own.clone(), own.clone()));
        assert_eq!(pool.broadcast(|_| here()), [own.as_str(); 2]);
        assert_eq!(pool.interrupt(|| (here(), current_num_threads())), (own.clone(), 2));
        assert_eq!(pool.spawn_handle(here).join().unwrap(), own);
        assert_eq!(pool.task().in_order().spawn_handle(here).join().unwrap(), own);
        assert_eq!(pool.task().priority(Priority::High).spawn_handle(here).join().unwrap(), own);
        let (send, receive) = mpsc::channel();
        let [one, two] = [(); 2].map(|()| send.clone());
        pool.spawn(move || one.send(here()).unwrap());
        pool.task().in_order().spawn(move || two.send(here()).unwrap());
        pool.spawn_broadcast(move |_| send.send(here()).unwrap());
        assert_eq!(receive.iter().collect::<Vec<_>>(), ["own"; 4]);
        assert_eq!(pool.current_thread_index(), None);
    };
    call();
    other.install(call);
    // From a thread that works for the other pool.
    other.run(|_| call());
}
