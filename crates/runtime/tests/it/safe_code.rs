//! What safe code can do with this crate that it is not meant to: leave what it should wait for,
//! ask twice, hand things on, panic everywhere. What it cannot write stands in the crate's module
//! `compile_fail`; tokens that are smuggled past the compiler in `tests/it/smuggled.rs`; code of
//! the user's that panics inside of the runtime in `tests/it/foreign_code.rs`.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;

use poach_runtime::config::ThreadBuilder;
use poach_runtime::{JoinHandle, Priority, Scope, TaskBuilder, ThreadPool, foreign};

use crate::alone::alone;

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

fn is_whole(pool: &ThreadPool) {
    let all: Vec<usize> = (0..pool.threads()).collect();
    assert_eq!(pool.broadcast(|context| context.index()), all);
}

static FORGOTTEN: Mutex<Option<JoinHandle<Vec<i32>>>> = Mutex::new(None);

#[test]
fn handles_may_be_forgotten_asked_twice_and_outlive_their_pool() {
    alone("handles_may_be_forgotten_asked_twice_and_outlive_their_pool", || {
        let pool = pool(2);
        // Never dropped, but can be found: Miri takes what nobody can find for a leak.
        assert!(FORGOTTEN.lock().unwrap().replace(pool.spawn_handle(|| vec![1])).is_none());
        let mut handle = pool.spawn_handle(|| vec![2]);
        let mut context = Context::from_waker(Waker::noop());
        while Pin::new(&mut handle).poll(&mut context).is_pending() {
            thread::yield_now();
        }
        assert!(handle.is_finished() && !handle.cancel());
        assert!(
            catch_unwind(AssertUnwindSafe(|| Pin::new(&mut handle).poll(&mut context))).is_err()
        );
        assert!(catch_unwind(AssertUnwindSafe(|| handle.join())).is_err());
        let task: TaskBuilder<'_> = pool.task().in_order().priority(Priority::High);
        let late = task.spawn_handle(|| vec![3]);
        drop(pool);
        assert_eq!(late.join().unwrap(), [3]);
    });
}

#[test]
fn a_handle_may_be_polled_in_one_pool_and_joined_in_another() {
    alone("a_handle_may_be_polled_in_one_pool_and_joined_in_another", || {
        let (a, b) = (pool(1), pool(1));
        for _ in 0..if cfg!(miri) { 3 } else { 300 } {
            let mut handle: JoinHandle<u32> = a.spawn_handle(|| 5);
            let first =
                b.install(|| Pin::new(&mut handle).poll(&mut Context::from_waker(Waker::noop())));
            match first {
                Poll::Ready(answer) => assert_eq!(answer.unwrap(), 5),
                Poll::Pending => assert_eq!(b.install(|| handle.join()).unwrap(), 5),
            }
        }
    });
}

#[test]
fn a_scope_may_be_used_from_scopes_pools_and_threads_inside_of_it() {
    fn into<'s>(s: &Scope<'s>, count: &'s AtomicUsize) {
        s.spawn(move |s| {
            s.spawn(move |_| _ = count.fetch_add(1, Ordering::SeqCst));
            count.fetch_add(1, Ordering::SeqCst);
        });
    }
    alone("a_scope_may_be_used_from_scopes_pools_and_threads_inside_of_it", || {
        let (a, b) = (pool(2), pool(2));
        let count = AtomicUsize::new(0);
        a.run(|_| {
            poach_runtime::scope(|s| {
                into(s, &count);
                poach_runtime::scope(|_| into(s, &count));
                poach_runtime::interrupt(|| into(s, &count));
                b.install(|| into(s, &count));
                b.run(|_| {
                    poach_runtime::scope(|inner| {
                        inner.spawn(|_| into(s, &count));
                        into(inner, &count);
                    });
                });
                b.in_place_scope_fifo(|inner| inner.spawn_fifo(|_| into(s, &count)));
                thread::scope(|t| _ = t.spawn(|| into(s, &count)));
                poach_runtime::blocking(|| into(s, &count));
            });
        });
        assert_eq!(count.into_inner(), 18);
    });
}

#[test]
fn panics_at_every_depth_leave_all_pools_whole() {
    alone("panics_at_every_depth_leave_all_pools_whole", || {
        let (a, b) = (pool(2), pool(2));
        let ended = AtomicUsize::new(0);
        for round in 0..if cfg!(miri) { 2 } else { 100 } {
            let panics = catch_unwind(AssertUnwindSafe(|| {
                a.run(|_| {
                    poach_runtime::scope(|s| {
                        s.spawn(|_| b.install(|| panic_any(1)));
                        s.spawn(|_| {
                            poach_runtime::join(
                                || panic_any(2),
                                || ended.fetch_add(1, Ordering::SeqCst),
                            );
                        });
                        s.spawn(|_| poach_runtime::interrupt(|| panic_any(3)));
                        s.spawn_broadcast(|_, context| panic_any(context.index()));
                        b.broadcast(|_| panic_any(4));
                    });
                });
            }));
            assert_eq!(*panics.unwrap_err().downcast::<i32>().unwrap(), 4);
            assert_eq!(ended.load(Ordering::SeqCst), round + 1);
        }
        is_whole(&a);
        is_whole(&b);
    });
}

#[test]
fn a_detached_tasks_panic_is_always_told_and_its_task_is_waited_for() {
    alone("a_detached_tasks_panic_is_always_told_and_its_task_is_waited_for", || {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let pool = ThreadPool::builder()
            .num_threads(2)
            .on_panic(move |payload| tell.lock().unwrap().push(*payload.downcast::<i32>().unwrap()))
            .build()
            .unwrap();
        let ended = Arc::new(AtomicUsize::new(0));
        for task in 0..if cfg!(miri) { 4 } else { 200 } {
            let ended = Arc::clone(&ended);
            let work = move || {
                ended.fetch_add(1, Ordering::SeqCst);
                if task % 2 == 0 {
                    panic_any(task);
                }
            };
            if task % 4 < 2 {
                pool.spawn(work);
            } else {
                pool.install(|| poach_runtime::spawn(work));
            }
        }
        drop(pool);
        let all = ended.load(Ordering::SeqCst) as i32;
        let mut told = told.lock().unwrap().clone();
        told.sort_unstable();
        assert_eq!(told, (0..all).step_by(2).collect::<Vec<_>>());
    });
}

#[test]
fn a_detached_task_that_its_pool_drops_drops_what_it_holds() {
    alone("a_detached_task_that_its_pool_drops_drops_what_it_holds", || {
        let pool = pool(1);
        let (release, hold) = mpsc::channel::<()>();
        let (tell, started) = mpsc::channel();
        drop(pool.spawn_handle(move || {
            tell.send(()).unwrap();
            _ = hold.recv();
            while poach_runtime::spawn_handle(|| ()).join().is_ok() {}
        }));
        started.recv().unwrap();
        let held = Arc::new(());
        let captured = Arc::clone(&held);
        pool.spawn(move || panic_any(captured));
        drop(release);
        pool.shutdown_now();
        assert_eq!(Arc::strong_count(&held), 1);
    });
}

#[test]
fn a_worker_that_comes_late_finds_its_pool_closed() {
    alone("a_worker_that_comes_late_finds_its_pool_closed", || {
        let kept: Arc<Mutex<Vec<ThreadBuilder>>> = Arc::default();
        let keep = Arc::clone(&kept);
        let inner = ThreadPool::builder()
            .num_threads(2)
            .spawn_handler(move |worker| {
                keep.lock().unwrap().push(worker);
                Ok(())
            })
            .build()
            .unwrap();
        drop(inner);
        let mut kept = mem::take(&mut *kept.lock().unwrap());
        // On a plain thread, and on another pool's worker.
        kept.pop().unwrap().run();
        let outer = pool(1);
        let last = kept.pop().unwrap();
        assert_eq!(
            outer.install(move || {
                last.run();
                poach_runtime::join(|| 1, || 2)
            }),
            (1, 2)
        );
    });
}

#[test]
fn a_thread_that_ends_may_call_the_pool_from_its_destructors() {
    struct AtTheEnd(mpsc::Sender<u32>, Arc<ThreadPool>);
    impl Drop for AtTheEnd {
        fn drop(&mut self) {
            self.0
                .send(self.1.run(|_| poach_runtime::join(|| 20, || 22)).0 + self.1.install(|| 22))
                .unwrap();
        }
    }
    thread_local!(static LAST: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) });
    alone("a_thread_that_ends_may_call_the_pool_from_its_destructors", || {
        let pool = Arc::new(pool(2));
        let (tell, told) = mpsc::channel();
        let last = AtTheEnd(tell, Arc::clone(&pool));
        thread::spawn(move || LAST.set(Some(last))).join().unwrap();
        assert_eq!(told.recv().unwrap(), 42);
        is_whole(&pool);
    });
}

#[test]
fn a_foreign_wait_ends_however_its_wake_does() {
    alone("a_foreign_wait_ends_however_its_wake_does", || {
        // On a plain thread: dropped at once, by another thread, by a panic of what was to keep it.
        foreign::wait(drop);
        foreign::wait(|wake| _ = thread::spawn(move || drop(wake)));
        assert!(catch_unwind(|| foreign::wait(|_wake| panic_any(5))).is_err());
        let pool = pool(3);
        // Workers that wait for each other take part in an interrupt meanwhile, and in a broadcast
        // of its frame's.
        let here: Mutex<Vec<foreign::Wake>> = Mutex::default();
        let seen = AtomicUsize::new(0);
        pool.broadcast(|at| {
            if at.index() == 0 {
                poach_runtime::interrupt(|| {
                    poach_runtime::broadcast(|_| seen.fetch_add(1, Ordering::Relaxed))
                });
            }
            foreign::wait(|wake| {
                assert_eq!(format!("{wake:?}"), "Wake");
                let mut here = here.lock().unwrap();
                here.push(wake);
                if here.len() == at.num_threads() {
                    here.clear();
                }
            });
        });
        assert_eq!(seen.load(Ordering::Relaxed), 3);
        let slot =
            pool.install(|| poach_runtime::worker(|worker| foreign::slot_of(&worker).addr()));
        assert_ne!(slot.get(), 0);
        is_whole(&pool);
    });
}

/// As long as the other worker has nothing to do and sees no fork, and only then.
#[test]
fn a_worker_should_fork_while_another_is_hungry() {
    let alone = pool(1);
    assert!(!alone.install(|| poach_runtime::worker(|worker| worker.should_fork())));
    let two = ThreadPool::new().unwrap();
    let asked = two.install(|| {
        let began = std::time::Instant::now();
        poach_runtime::worker(|worker| {
            while !worker.should_fork() && began.elapsed().as_secs() < 60 {
                thread::yield_now();
            }
            worker.should_fork()
        })
    });
    assert!(asked || two.threads() == 1, "the others have nothing to do");
}
