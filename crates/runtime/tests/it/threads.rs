//! Threads that come from elsewhere: the current one, a handler's, a scope's; and what a thread may
//! ask about itself.

#![forbid(unsafe_code)]

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use poach_runtime::config::ThreadBuilder;
use poach_runtime::{
    BuildError, ThreadPool, Yield, current_num_threads, current_thread_has_pending_tasks,
    current_thread_index, join, join_context, scope, spawn_handle, yield_local, yield_now,
};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

#[test]
fn a_thread_knows_where_it_is() {
    assert_eq!(current_thread_index(), None);
    assert_eq!(current_thread_has_pending_tasks(), None);
    let (a, b) = (pool(3), pool(2));
    a.install(|| {
        assert!(current_thread_index().unwrap() < 3);
        assert_eq!((current_num_threads(), a.threads()), (3, 3));
        assert_eq!(a.current_thread_index(), current_thread_index());
        assert_eq!(b.current_thread_index(), None);
        assert_eq!(b.install(current_num_threads), 2);
        assert_eq!(current_num_threads(), 3);
    });
    assert_eq!(a.current_thread_index(), None);
}

#[test]
fn pending_tasks_are_seen() {
    let pool = pool(1);
    pool.install(|| {
        assert_eq!(current_thread_has_pending_tasks(), Some(false));
        let handle = spawn_handle(|| ());
        assert_eq!(current_thread_has_pending_tasks(), Some(true));
        handle.join().unwrap();
        assert_eq!(current_thread_has_pending_tasks(), Some(false));
        join(|| assert_eq!(current_thread_has_pending_tasks(), Some(true)), || ());
        assert_eq!(current_thread_has_pending_tasks(), Some(false));
    });
}

#[test]
fn a_yield_runs_one_task() {
    assert_eq!((yield_now(), yield_local()), (None, None));
    let a = pool(1);
    a.install(|| {
        assert_eq!((yield_now(), yield_local()), (Some(Yield::Idle), Some(Yield::Idle)));
        let handles = [spawn_handle(|| 1), spawn_handle(|| 2)];
        assert_eq!(yield_local(), Some(Yield::Executed));
        assert_eq!(handles.iter().filter(|handle| handle.is_finished()).count(), 1);
        assert_eq!(yield_now(), Some(Yield::Executed));
        assert_eq!(yield_local(), Some(Yield::Idle));
        for handle in handles {
            drop(handle.join());
        }
        // From the injector: not local.
        let from_outside = thread::scope(|s| s.spawn(|| a.spawn_handle(|| 3)).join().unwrap());
        assert_eq!(yield_local(), Some(Yield::Idle));
        assert_eq!(yield_now(), Some(Yield::Executed));
        assert_eq!(from_outside.join().unwrap(), 3);
    });
}

#[test]
fn a_busy_wait_that_yields_lets_the_others_through() {
    pool(1).install(|| {
        let turn = AtomicUsize::new(0);
        scope(|s| {
            for i in 0..5 {
                let turn = &turn;
                s.spawn(move |_| {
                    // Youngest first, and each waits for the older ones.
                    while turn.load(Ordering::SeqCst) != i {
                        assert_eq!(yield_now(), Some(Yield::Executed));
                    }
                    turn.store(i + 1, Ordering::SeqCst);
                });
            }
        });
    });
}

#[test]
fn halves_know_whether_they_have_migrated() {
    let pool = pool(2);
    // From outside both halves may come to other threads.
    let home = thread::current().id();
    let (a, b) = poach_runtime::join_context_or(
        || &pool,
        |a| a.migrated() == (thread::current().id() != home),
        |b| b.migrated() == (thread::current().id() != home),
    );
    assert!(a && b);
    pool.install(|| {
        assert!(!pool.run(|_| join_context(|a| a.migrated(), |_| ())).0);
        let home = thread::current().id();
        let mut stolen = false;
        while !stolen {
            let taken = AtomicUsize::new(0);
            let ((), (migrated, elsewhere)) = join_context(
                |a| {
                    assert!(!a.migrated());
                    for _ in 0..1000 {
                        if taken.load(Ordering::SeqCst) == 0 {
                            thread::yield_now();
                        }
                    }
                },
                |b| {
                    taken.store(1, Ordering::SeqCst);
                    (b.migrated(), thread::current().id() != home)
                },
            );
            assert_eq!(migrated, elsewhere);
            stolen = migrated;
        }
    });
    let result =
        catch_unwind(AssertUnwindSafe(|| pool.run(|_| join_context(|_| panic!("a"), |_| ()))));
    assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"a"));
}

#[test]
fn a_handler_starts_the_threads() {
    let mut threads = Vec::new();
    let here = thread::current().id();
    let pool = ThreadPool::builder()
        .num_threads(2)
        .spares(1)
        .name(|index| format!("hired {index}"))
        .stack_size(1 << 20)
        .spawn_handler(|worker| {
            assert_eq!((worker.index(), thread::current().id()), (threads.len(), here));
            assert_eq!(worker.stack_size(), Some(1 << 20));
            let name = worker.name().unwrap().to_owned();
            assert_eq!(name, format!("hired {}", worker.index()));
            threads.push(thread::Builder::new().name(name).spawn(|| worker.run())?);
            Ok(())
        })
        .build()
        .unwrap();
    let names = pool.broadcast(|_| thread::current().name().unwrap().to_owned());
    assert_eq!(names, ["hired 0", "hired 1"]);
    drop(pool);
    assert_eq!(threads.len(), 3);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn threads_without_a_name() {
    let pool = ThreadPool::builder().num_threads(1).unnamed().build().unwrap();
    assert_eq!(pool.install(|| thread::current().name().map(str::to_owned)), None);
    let mut asked = None;
    let pool = ThreadPool::builder()
        .num_threads(1)
        .unnamed()
        .spawn_handler(|worker| {
            asked = Some(worker.name().map(str::to_owned));
            assert_eq!(worker.stack_size(), None);
            thread::spawn(|| worker.run());
            Ok(())
        })
        .build()
        .unwrap();
    drop(pool);
    assert_eq!(asked, Some(None));
}

#[test]
fn a_handler_that_fails_is_reported_and_the_others_end() {
    let (tell, told) = mpsc::channel();
    let error = ThreadPool::builder()
        .num_threads(3)
        .on_exit(move |index| tell.send(index).unwrap())
        .spawn_handler(|worker| {
            if worker.index() == 2 {
                return Err(io::Error::other("no more hands"));
            }
            thread::spawn(|| worker.run());
            Ok(())
        })
        .build()
        .unwrap_err();
    assert!(matches!(error, BuildError::Spawn { index: 2, .. }));
    assert!(error.to_string().contains("no more hands"), "{error}");
    let mut ended: Vec<_> = told.iter().collect();
    ended.sort_unstable();
    assert_eq!(ended, [0, 1]);
}

#[test]
fn a_scoped_pools_threads_borrow_and_end() {
    let started = AtomicUsize::new(0);
    let ended = AtomicUsize::new(0);
    let answer = ThreadPool::builder()
        .num_threads(3)
        .build_scoped(
            |worker| {
                started.fetch_add(1, Ordering::SeqCst);
                worker.run();
                ended.fetch_add(1, Ordering::SeqCst);
            },
            |pool| {
                drop(pool.spawn_handle(|| ()));
                pool.broadcast(|context| context.index())
            },
        )
        .unwrap();
    assert_eq!(answer, [0, 1, 2]);
    assert_eq!((started.into_inner(), ended.into_inner()), (3, 3));
    let error = ThreadPool::builder().num_threads(0).build_scoped(ThreadBuilder::run, |_| ());
    assert!(matches!(error, Err(BuildError::Threads(0))));
    let result = catch_unwind(|| {
        let builder = ThreadPool::builder().num_threads(2);
        builder.build_scoped(ThreadBuilder::run, |_| panic!("with the pool"))
    });
    assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"with the pool"));
}

#[test]
fn handlers_are_called_on_the_workers_that_they_are_told_of() {
    let (send, receive) = mpsc::channel();
    let [started, ended] = [send.clone(), send];
    let pool = ThreadPool::builder()
        .num_threads(2)
        .spares(1)
        .on_start(move |index| {
            started.send((index, current_thread_index(), join(|| 1, || 2))).unwrap();
        })
        .on_exit(move |index| {
            ended.send((index, current_thread_index(), join(|| 1, || 2))).unwrap();
        })
        .build()
        .unwrap();
    drop(pool);
    let mut seen: Vec<_> = receive.iter().collect();
    seen.sort_unstable();
    let both = |index| (index, Some(index), (1, 2));
    assert_eq!(seen, [0, 0, 1, 1, 2, 2].map(both));
}

#[test]
fn a_panic_with_a_scoped_pool_arrives_when_its_threads_have_ended() {
    for of_wrapper in [false, true] {
        let ended = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            ThreadPool::builder().num_threads(3).build_scoped(
                |worker| {
                    worker.run();
                    ended.fetch_add(1, Ordering::SeqCst);
                    assert!(!of_wrapper, "around a worker");
                },
                |pool| {
                    drop(pool.spawn_handle(|| ()));
                    assert!(of_wrapper, "with the pool");
                },
            )
        }));
        assert!(result.is_err());
        assert_eq!(ended.into_inner(), 3);
    }
}
