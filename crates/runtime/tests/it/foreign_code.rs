//! Code of the user's that runs inside of the runtime: destructors, wakers, handlers, names. Each
//! of them may panic, with a payload whose own destructor panics, and may wait for other tasks.
#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::{mem, thread};

use poach_runtime::{BuildError, Priority, ThreadPool, scope};

use crate::alone::alone;

/// Panics when it is dropped, with another one of its kind.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(Bomb);
    }
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// All workers are there, and answer.
fn is_whole(pool: &ThreadPool) {
    let all: Vec<usize> = (0..pool.threads()).collect();
    assert_eq!(pool.broadcast(|context| context.index()), all);
    assert_eq!(pool.run(|_| poach_runtime::join(|| 1, || 2)), (1, 2));
}

/// A panic handler that counts its calls, and drops what was thrown.
fn counts(calls: &Arc<AtomicUsize>) -> impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static {
    let calls = Arc::clone(calls);
    move |payload| {
        calls.fetch_add(1, Ordering::SeqCst);
        drop(payload);
    }
}

/// What `f` panics with is a bomb, which is not dropped.
#[track_caller]
fn ends_with_a_bomb<R>(f: impl FnOnce() -> R) {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("no panic"),
        Err(payload) => {
            let is = payload.is::<Bomb>();
            mem::forget(payload);
            assert!(is, "another panic");
        }
    }
}

#[test]
fn a_scope_outlives_its_tasks_whatever_they_panic_with() {
    alone("a_scope_outlives_its_tasks_whatever_they_panic_with", || {
        for threads in [1, 2] {
            let pool = pool(threads);
            let ended = AtomicUsize::new(0);
            ends_with_a_bomb(|| {
                pool.run(|_| {
                    scope(|s| {
                        for task in 0..20 {
                            let ended = &ended;
                            s.spawn(move |_| {
                                thread::yield_now();
                                ended.fetch_add(1, Ordering::SeqCst);
                                if task % 2 == 0 {
                                    panic_any(Bomb);
                                }
                            });
                        }
                    });
                });
            });
            assert_eq!(ended.load(Ordering::SeqCst), 20);
            is_whole(&pool);
        }
    });
}

/// What a task has panicked with runs another task of the scope when it is dropped, and that one
/// panics as well.
#[test]
fn what_the_second_task_of_a_scope_panics_with_is_dropped_under_no_lock() {
    struct Yields;
    impl Drop for Yields {
        fn drop(&mut self) {
            poach_runtime::yield_local();
        }
    }
    alone("what_the_second_task_of_a_scope_panics_with_is_dropped_under_no_lock", || {
        let ended = AtomicUsize::new(0);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool(1).install(|| {
                scope(|s| {
                    // The youngest is the first to run.
                    s.spawn(|_| {
                        ended.fetch_add(1, Ordering::SeqCst);
                        panic_any(3);
                    });
                    s.spawn(|_| panic_any(Yields));
                    s.spawn(|_| panic_any(1));
                });
            });
        }));
        assert_eq!(panicked.unwrap_err().downcast_ref::<i32>(), Some(&1));
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_scope_in_place_outlives_its_tasks_too() {
    alone("a_scope_in_place_outlives_its_tasks_too", || {
        let pool = pool(2);
        let ended = AtomicUsize::new(0);
        ends_with_a_bomb(|| {
            pool.in_place_scope_fifo(|s| {
                for _ in 0..6 {
                    s.spawn_fifo(|_| {
                        ended.fetch_add(1, Ordering::SeqCst);
                        panic_any(Bomb);
                    });
                }
            });
        });
        assert_eq!(ended.load(Ordering::SeqCst), 6);
        is_whole(&pool);
    });
}

#[test]
fn of_a_scope_the_bodys_panic_arrives_and_what_nobody_takes_is_dropped() {
    alone("of_a_scope_the_bodys_panic_arrives_and_what_nobody_takes_is_dropped", || {
        let pool = pool(2);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run(|_| {
                scope(|s| {
                    s.spawn(|_| panic_any(Bomb));
                    panic_any("the body");
                })
            });
        }));
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "the body");
        let result = catch_unwind(AssertUnwindSafe(|| {
            mem::forget(pool.run(|_| {
                scope(|s| {
                    s.spawn(|_| panic_any("a task"));
                    Bomb
                })
            }));
        }));
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "a task");
        is_whole(&pool);
    });
}

#[test]
fn a_spawned_broadcast_ends_no_worker() {
    alone("a_spawned_broadcast_ends_no_worker", || {
        let pool = pool(2);
        pool.spawn_broadcast(|_| panic_any(Bomb));
        is_whole(&pool);
        // The closure's last owner drops what it captures.
        let bomb = Bomb;
        pool.spawn_broadcast(move |_| _ = &bomb);
        is_whole(&pool);
    });
}

#[test]
fn a_broadcast_that_is_dropped_with_its_pool_ends_no_worker() {
    alone("a_broadcast_that_is_dropped_with_its_pool_ends_no_worker", || {
        let pool = pool(1);
        let (release, hold) = mpsc::channel::<()>();
        let (tell, started) = mpsc::channel();
        let busy = pool.spawn_handle(move || {
            tell.send(()).unwrap();
            _ = hold.recv();
            // Until the pool is being shut down: from then on what is spawned is dropped.
            while poach_runtime::spawn_handle(|| ()).join().is_ok() {}
        });
        started.recv().unwrap();
        let bomb = Bomb;
        pool.spawn_broadcast(move |_| _ = &bomb);
        let last = pool.spawn_handle(|| ());
        drop(release);
        pool.shutdown_now();
        assert!(busy.join().is_ok());
        assert!(last.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn what_a_detached_task_leaves_ends_no_worker() {
    alone("what_a_detached_task_leaves_ends_no_worker", || {
        for threads in [1, 2] {
            let pool = pool(threads);
            // A result, a payload and captured values that nobody takes.
            // Each task ends after its handle: a handle drops what it finds on its own thread.
            let (release, hold) = mpsc::channel::<()>();
            drop(pool.spawn_handle(move || {
                _ = hold.recv();
                Bomb
            }));
            drop(release);
            let (release, hold) = mpsc::channel::<()>();
            drop(pool.spawn_handle(move || {
                _ = hold.recv();
                panic_any(Bomb)
            }));
            drop(release);
            let handle = pool.install(|| {
                let bomb = Bomb;
                poach_runtime::spawn_handle(move || drop(bomb))
            });
            mem::forget(handle.join());
            is_whole(&pool);
        }
    });
}

#[test]
fn a_cancelled_task_drops_what_it_holds_and_ends_no_worker() {
    alone("a_cancelled_task_drops_what_it_holds_and_ends_no_worker", || {
        let pool = pool(1);
        let (release, hold) = mpsc::channel::<()>();
        let busy = pool.spawn_handle(move || hold.recv());
        let bomb = Bomb;
        let idle = pool.spawn_handle(move || _ = &bomb);
        assert!(idle.cancel());
        drop(release);
        assert!(busy.join().unwrap().is_err());
        assert!(idle.join().unwrap_err().is_cancelled());
        is_whole(&pool);
    });
}

#[test]
fn a_task_that_is_dropped_with_its_pool_ends_no_worker() {
    alone("a_task_that_is_dropped_with_its_pool_ends_no_worker", || {
        let (told, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&ended);
        let pool = ThreadPool::builder()
            .num_threads(1)
            .on_panic(counts(&told))
            .on_exit(move |_| _ = counter.fetch_add(1, Ordering::SeqCst))
            .build()
            .unwrap();
        let (tell, started) = mpsc::channel();
        let busy = pool.spawn_handle(move || {
            tell.send(()).unwrap();
            while poach_runtime::spawn_handle(|| ()).join().is_ok() {}
        });
        started.recv().unwrap();
        let [first, second, third] = [Bomb, Bomb, Bomb];
        let handle = pool.task().priority(Priority::Normal).spawn_handle(move || _ = &first);
        drop(pool.task().priority(Priority::Normal).spawn_handle(move || _ = &second));
        pool.spawn(move || _ = &third);
        pool.shutdown_now();
        busy.join().unwrap();
        assert!(handle.join().unwrap_err().is_cancelled());
        assert_eq!((told.load(Ordering::SeqCst), ended.load(Ordering::SeqCst)), (3, 1));
    });
}

#[test]
fn handlers_that_panic_end_no_worker() {
    alone("handlers_that_panic_end_no_worker", || {
        let told = Arc::new(AtomicUsize::new(0));
        let pool = ThreadPool::builder()
            .num_threads(2)
            .on_exit(|_| panic_any(Bomb))
            .on_panic(counts(&told))
            .build()
            .unwrap();
        is_whole(&pool);
        pool.spawn_broadcast(|_| panic_any(Bomb));
        is_whole(&pool);
        drop(pool);
        // Two exits, two calls.
        assert_eq!(told.load(Ordering::SeqCst), 4);
    });
}

#[test]
fn a_start_handler_that_panics_is_told_and_leaves_no_pool() {
    alone("a_start_handler_that_panics_is_told_and_leaves_no_pool", || {
        let told = Arc::new(AtomicUsize::new(0));
        for handled in [true, false] {
            let mut builder = ThreadPool::builder().num_threads(3).on_start(|index| {
                if index == 1 {
                    panic_any(Bomb);
                }
            });
            if handled {
                builder = builder.on_panic(counts(&told));
            }
            let error = builder.build().unwrap_err();
            assert!(matches!(error, BuildError::Start { index: 1 }), "{error}");
        }
        assert_eq!(told.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_start_handler_that_nobody_waits_for_panics_and_its_worker_works() {
    alone("a_start_handler_that_nobody_waits_for_panics_and_its_worker_works", || {
        let told = Arc::new(AtomicUsize::new(0));
        let pool = ThreadPool::builder()
            .num_threads(3)
            .on_start(|_| panic_any(Bomb))
            .wait_for_start(false)
            .on_panic(counts(&told))
            .build()
            .unwrap();
        is_whole(&pool);
        assert_eq!(told.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn handlers_whose_destructors_panic_leave_no_thread_behind() {
    alone("handlers_whose_destructors_panic_leave_no_thread_behind", || {
        struct Loud(mpsc::Sender<()>);
        impl Drop for Loud {
            fn drop(&mut self) {
                self.0.send(()).unwrap();
                panic_any(Bomb);
            }
        }
        let (tell, dropped) = mpsc::channel();
        let loud = Loud(tell);
        let pool = ThreadPool::builder()
            .num_threads(2)
            .on_exit(move |_| _ = &loud)
            .spawn_handler(|worker| thread::Builder::new().spawn(|| worker.run()).map(drop))
            .build()
            .unwrap();
        is_whole(&pool);
        // The threads are not waited for, so one of them may be the last to know the handler.
        _ = catch_unwind(AssertUnwindSafe(|| drop(pool))).map_err(mem::forget);
        dropped.recv().unwrap();
    });
}

#[test]
fn a_name_or_a_spawn_handler_that_panics_leaves_no_thread_behind() {
    alone("a_name_or_a_spawn_handler_that_panics_leaves_no_thread_behind", || {
        let ended = Arc::new(AtomicUsize::new(0));
        let count = |ended: &Arc<AtomicUsize>| {
            let ended = Arc::clone(ended);
            move |_| _ = ended.fetch_add(1, Ordering::SeqCst)
        };
        ends_with_a_bomb(|| {
            ThreadPool::builder()
                .num_threads(3)
                .on_exit(count(&ended))
                .name(|index| if index < 2 { "a".into() } else { panic_any(Bomb) })
                .build()
        });
        assert_eq!(ended.load(Ordering::SeqCst), 2);
        ends_with_a_bomb(|| {
            ThreadPool::builder().num_threads(3).spawn_handler(|_| panic_any(Bomb)).build()
        });
    });
}

#[test]
fn both_halves_of_a_join_may_panic_or_leave_what_panics() {
    alone("both_halves_of_a_join_may_panic_or_leave_what_panics", || {
        for threads in [1, 2] {
            let pool = pool(threads);
            for _ in 0..if cfg!(miri) { 2 } else { 50 } {
                ends_with_a_bomb(|| {
                    pool.run(|mut w| w.join(|_| panic_any(Bomb), |_| panic_any(Bomb)))
                });
                let first = || {
                    thread::yield_now();
                    panic_any(Bomb)
                };
                ends_with_a_bomb(|| pool.run(|_| poach_runtime::join(first, || panic_any(Bomb))));
                ends_with_a_bomb(|| pool.run(|_| poach_runtime::join(first, || Bomb)));
                ends_with_a_bomb(|| pool.run(|_| poach_runtime::join(|| Bomb, || panic_any(Bomb))));
                let bomb = Bomb;
                ends_with_a_bomb(|| pool.run(|_| poach_runtime::join(first, move || drop(bomb))));
            }
            is_whole(&pool);
        }
    });
}

#[test]
fn an_interrupt_ends_whatever_is_left_in_it() {
    alone("an_interrupt_ends_whatever_is_left_in_it", || {
        let pool = pool(2);
        ends_with_a_bomb(|| {
            pool.interrupt(|| {
                drop(poach_runtime::spawn_handle(|| Bomb));
                poach_runtime::spawn_broadcast(|_| panic_any(Bomb));
                panic_any(Bomb)
            })
        });
        assert_eq!(pool.interrupt(|| 3), 3);
        is_whole(&pool);
    });
}

/// Two tasks of a pool of one worker: the second says when the first has ended, which is when it is
/// let go.
struct OneAfterTheOther {
    release: mpsc::Sender<()>,
    ended: mpsc::Receiver<()>,
}

impl OneAfterTheOther {
    fn new(pool: &ThreadPool) -> (OneAfterTheOther, poach_runtime::JoinHandle<i32>) {
        let (release, hold) = mpsc::channel();
        let (tell, ended) = mpsc::channel();
        let first = pool.spawn_handle(move || {
            hold.recv().unwrap();
            1
        });
        drop(pool.spawn_handle(move || tell.send(()).unwrap()));
        (OneAfterTheOther { release, ended }, first)
    }

    fn let_the_first_end(self) {
        self.release.send(()).unwrap();
        self.ended.recv().unwrap();
    }
}

/// A waker that does something when it is first dropped, as its last reference is.
struct OnDrop(Mutex<Option<OneAfterTheOther>>);

impl Wake for OnDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(tasks) = self.0.lock().unwrap().take() {
            tasks.let_the_first_end();
        }
    }
}

fn poll(handle: &mut poach_runtime::JoinHandle<i32>, waker: &Waker) -> bool {
    Pin::new(handle).poll(&mut Context::from_waker(waker)).is_ready()
}

#[test]
fn a_waker_may_wait_for_the_task_when_it_is_dropped() {
    alone("a_waker_may_wait_for_the_task_when_it_is_dropped", || {
        // Replaced by a wait, by another waker, or dropped with the handle.
        for way in 0..3 {
            let pool = pool(1);
            let (tasks, mut handle) = OneAfterTheOther::new(&pool);
            let waker = Waker::from(Arc::new(OnDrop(Mutex::new(Some(tasks)))));
            assert!(!poll(&mut handle, &waker));
            drop(waker);
            match way {
                0 => assert_eq!(handle.join().unwrap(), 1),
                1 => {
                    assert!(!poll(&mut handle, Waker::noop()));
                    assert_eq!(handle.join().unwrap(), 1);
                }
                _ => drop(handle),
            }
            is_whole(&pool);
        }
    });
}
