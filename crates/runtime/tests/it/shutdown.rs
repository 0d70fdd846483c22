//! Priorities of what comes from outside, and both ways to end a pool.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use poach_runtime::config::Waiting;
use poach_runtime::{
    JoinHandle, Priority, ThreadPool, broadcast, in_place_scope, interrupt, join, scope,
    scope_fifo, spawn, spawn_broadcast, spawn_handle, task, yield_local,
};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// A task that occupies one worker until the sender is dropped.
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
fn high_ones_go_first_and_each_kind_in_its_order() {
    let pool = pool(1);
    let (release, busy) = occupy(&pool);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for i in 0..6 {
        let priority = if i % 3 == 2 { Priority::High } else { Priority::default() };
        let seen = Arc::clone(&seen);
        drop(pool.task().priority(priority).spawn_handle(move || seen.lock().unwrap().push(i)));
    }
    drop(release);
    busy.join().unwrap();
    drop(pool);
    assert_eq!(*seen.lock().unwrap(), [2, 5, 0, 1, 3, 4]);
}

#[test]
fn a_high_one_goes_before_a_workers_own() {
    let pool = pool(1);
    let seen = Arc::new(Mutex::new(Vec::new()));
    pool.install(|| {
        let push = |name| {
            let seen = Arc::clone(&seen);
            move || seen.lock().unwrap().push(name)
        };
        let tasks = [
            spawn_handle(push("own")),
            task().priority(Priority::Normal).spawn_handle(push("normal")),
            task().priority(Priority::High).spawn_handle(push("high")),
        ];
        for task in tasks {
            task.join().unwrap();
        }
    });
    assert_eq!(*seen.lock().unwrap(), ["high", "own", "normal"]);
}

#[test]
fn a_graceful_shutdown_runs_everything() {
    let tasks = if cfg!(miri) { 20 } else { 1000 };
    for threads in [1, 3] {
        let pool = pool(threads);
        let count = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (0..tasks)
            .map(|_| {
                let count = Arc::clone(&count);
                pool.spawn_handle(move || {
                    let more = Arc::clone(&count);
                    drop(spawn_handle(move || more.fetch_add(1, Ordering::SeqCst)));
                    count.fetch_add(1, Ordering::SeqCst);
                })
            })
            .collect();
        pool.shutdown();
        assert_eq!(count.load(Ordering::SeqCst), 2 * tasks);
        assert!(handles.iter().all(JoinHandle::is_finished));
        for handle in handles {
            handle.join().unwrap();
        }
    }
}

#[test]
fn an_immediate_one_finishes_what_runs_and_says_what_it_drops() {
    for threads in [1, 2] {
        let pool = pool(threads);
        let (tell, started) = mpsc::channel();
        let busy: Vec<_> = (0..threads)
            .map(|_| {
                let tell = tell.clone();
                pool.spawn_handle(move || {
                    tell.send(()).unwrap();
                    // Until the pool is being shut down: then new tasks are dropped.
                    while spawn_handle(|| ()).join().is_ok() {}
                    // What it waits for itself is not.
                    let (a, b) = join(|| 1, || 2);
                    let mut c = 0;
                    scope(|s| s.spawn(|_| c = 4));
                    a + b + c
                })
            })
            .collect();
        for _ in 0..threads {
            started.recv().unwrap();
        }
        let ran = Arc::new(AtomicUsize::new(0));
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let ran = Arc::clone(&ran);
                pool.task()
                    .priority(Priority::Normal)
                    .spawn_handle(move || ran.fetch_add(1, Ordering::SeqCst))
            })
            .collect();
        let weak = Arc::downgrade(&ran);
        pool.shutdown_now();
        assert!(busy.into_iter().all(|handle| handle.join().unwrap() == 7));
        let mut dropped = 0;
        for handle in waiting {
            match handle.join() {
                Ok(_) => {}
                Err(payload) => {
                    assert!(payload.is_cancelled());
                    dropped += 1;
                }
            }
        }
        // With a thief about, some may have run in a join's wait; all others were dropped.
        assert_eq!(ran.load(Ordering::SeqCst) + dropped, 10);
        drop(ran);
        assert_eq!(weak.strong_count(), 0, "what the closures held is dropped");
    }
}

/// A task that spins until its pool is being shut down at once. It looks for nothing but what it
/// has spawned itself.
fn until_tasks_are_dropped() {
    loop {
        let probe = spawn_handle(|| ());
        while !probe.is_finished() {
            yield_local();
        }
        if probe.join().is_err() {
            return;
        }
    }
}

#[test]
fn an_immediate_one_runs_what_scopes_have_handles_to() {
    for waiting in [Waiting::Random, Waiting::Patient, Waiting::Sleep] {
        let pool = ThreadPool::builder().num_threads(1).waiting(waiting).build().unwrap();
        let (tell, started) = mpsc::channel();
        let busy = pool.spawn_handle(move || {
            tell.send(()).unwrap();
            until_tasks_are_dropped();
            let mut ran = false;
            let waited = scope(|s| {
                drop(s.spawn_handle(|| ran = true));
                s.spawn_handle(|| 5).join().unwrap()
            });
            (waited, ran)
        });
        started.recv().unwrap();
        pool.shutdown_now();
        assert_eq!(busy.join().unwrap(), (5, true));
    }
}

#[test]
fn a_broadcast_that_has_not_begun_is_dropped_with_its_pool() {
    let pool = pool(1);
    let (tell, started) = mpsc::channel();
    let busy = pool.spawn_handle(move || {
        tell.send(()).unwrap();
        until_tasks_are_dropped();
    });
    started.recv().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&ran);
    pool.spawn_broadcast(move |_| _ = counter.fetch_add(1, Ordering::SeqCst));
    pool.shutdown_now();
    busy.join().unwrap();
    let ran = Arc::into_inner(ran).expect("its closure is dropped");
    assert_eq!(ran.into_inner(), 0);
}

#[test]
fn a_detached_task_that_has_not_begun_is_dropped_with_its_pool() {
    for fifo in [false, true] {
        let pool = pool(1);
        let (tell, started) = mpsc::channel();
        let ran = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&ran);
        let busy = pool.spawn_handle(move || {
            let of_its_own = Arc::clone(&counter);
            let count = move || _ = of_its_own.fetch_add(1, Ordering::SeqCst);
            tell.send(()).unwrap();
            until_tasks_are_dropped();
            if fifo {
                task().in_order().spawn(count);
            } else {
                spawn(count);
            }
            counter
        });
        started.recv().unwrap();
        let counter = Arc::clone(&ran);
        let count = move || _ = counter.fetch_add(1, Ordering::SeqCst);
        if fifo {
            pool.task().in_order().spawn(count);
        } else {
            pool.spawn(count);
        }
        pool.shutdown_now();
        drop(busy.join().unwrap());
        let ran = Arc::into_inner(ran).expect("its closure is dropped");
        assert_eq!(ran.into_inner(), 0);
    }
}

#[test]
fn who_waits_for_a_dropped_task_is_told() {
    let pool = pool(1);
    let (tell, started) = mpsc::channel();
    let busy = pool.spawn_handle(move || {
        tell.send(()).unwrap();
        while spawn_handle(|| ()).join().is_ok() {}
    });
    started.recv().unwrap();
    let waiting = pool.spawn_handle(|| ());
    let waiter = thread::spawn(move || waiting.join().unwrap_err().is_cancelled());
    pool.shutdown_now();
    assert!(waiter.join().unwrap());
    busy.join().unwrap();
}

#[test]
fn a_pool_shut_down_by_its_own_worker_does_not_wait_for_itself() {
    for now in [false, true] {
        let (send, receive) = mpsc::channel();
        let pool = ThreadPool::builder()
            .num_threads(2)
            .on_exit(move |index| send.send(index).unwrap())
            .build()
            .unwrap();
        let (give, take) = mpsc::channel::<ThreadPool>();
        let handle = pool.spawn_handle(move || {
            let pool = take.recv().unwrap();
            if now {
                pool.shutdown_now();
            } else {
                pool.shutdown();
            }
            join(|| 1, || 2)
        });
        give.send(pool).unwrap();
        assert_eq!(handle.join().unwrap(), (1, 2));
        let mut ended = [receive.recv().unwrap(), receive.recv().unwrap()];
        ended.sort_unstable();
        assert_eq!(ended, [0, 1]);
    }
}

#[test]
fn a_pool_that_does_not_wait_is_dropped_while_its_task_waits_for_whoever_drops_it() {
    let quick = ThreadPool::builder().num_threads(2).join_on_drop(false).build().unwrap();
    let (release, hold) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    quick.spawn(move || {
        _ = hold.recv();
        // Its workers are all there until the last task has ended.
        tell.send(broadcast(|context| context.index())).unwrap();
    });
    let quick = Mutex::new(Some(quick));
    let other = ThreadPool::builder()
        .num_threads(1)
        .on_exit(move |_| drop(quick.lock().unwrap().take()))
        .build()
        .unwrap();
    // Waits for the thread that drops the quick one.
    drop(other);
    assert!(told.try_recv().is_err());
    drop(release);
    assert_eq!(told.recv().unwrap(), [0, 1]);
}

#[test]
fn a_shutdown_waits_whatever_a_drop_would_do() {
    for now in [false, true] {
        let ended = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&ended);
        let pool = ThreadPool::builder()
            .num_threads(2)
            .join_on_drop(false)
            .on_exit(move |_| {
                counter.fetch_add(1, Ordering::SeqCst);
            })
            .build()
            .unwrap();
        if now {
            pool.shutdown_now();
        } else {
            pool.shutdown();
        }
        assert_eq!(ended.load(Ordering::SeqCst), 2);
    }
}

/// What needs the other workers, or would be left to nobody, is refused in an exit handler. What
/// the worker can do alone it does.
#[test]
fn an_exit_handler_is_refused_what_waits_for_workers() {
    let (send, answers) = mpsc::channel();
    let pool = ThreadPool::builder()
        .num_threads(2)
        .on_exit(move |_| {
            let refused = |call: &dyn Fn()| catch_unwind(AssertUnwindSafe(call)).is_err();
            let all = [
                refused(&|| scope(|s| s.spawn_broadcast(|_, _| ()))),
                refused(&|| scope_fifo(|s| s.spawn_broadcast(|_, _| ()))),
                refused(&|| in_place_scope(|s| s.spawn_broadcast(|_, _| ()))),
                refused(&|| drop(broadcast(|_| ()))),
                refused(&|| spawn_broadcast(|_| ())),
                refused(&|| interrupt(|| ())),
                refused(&|| drop(spawn_handle(|| ()))),
                refused(&|| drop(task().priority(Priority::Normal).spawn_handle(|| ()))),
                refused(&|| drop(task().in_order().spawn_handle(|| ()))),
                refused(&|| spawn(|| ())),
                refused(&|| task().in_order().spawn(|| ())),
            ];
            let (a, b) = join(|| 1, || 2);
            let mut c = 0;
            scope(|s| s.spawn(|_| c = 4));
            send.send((all, a + b + c)).unwrap();
        })
        .build()
        .unwrap();
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        drop(pool);
        done.send(()).unwrap();
    });
    assert_eq!(ended.recv_timeout(LONG), Ok(()), "dropping the pool hangs");
    assert_eq!(answers.iter().collect::<Vec<_>>(), [([true; 11], 7); 2]);
}

/// Whatever should have happened before it is over never will.
const LONG: Duration = Duration::from_secs(60);

/// It has a thread of its own, which runs them later.
#[test]
fn a_worker_that_drops_its_pool_runs_its_tasks_after_the_one_in_hand() {
    let pool = Arc::new(pool(1));
    let (send, seen) = mpsc::channel();
    let own = Arc::clone(&pool);
    let (go, gone) = mpsc::channel::<()>();
    pool.spawn(move || {
        _ = gone.recv();
        let later = send.clone();
        spawn(move || later.send("later").unwrap());
        drop(own);
        send.send("dropped").unwrap();
    });
    drop((pool, go));
    assert_eq!(seen.iter().collect::<Vec<_>>(), ["dropped", "later"]);
}

#[test]
fn a_pool_that_a_worker_of_another_drops_is_waited_for() {
    let (other, dropped) = (pool(1), pool(1));
    let (release, busy) = occupy(&dropped);
    let last = dropped.spawn_handle(|| thread::sleep(Duration::from_millis(20)));
    other.install(move || {
        drop(release);
        drop(dropped);
        assert!(last.is_finished());
    });
    busy.join().unwrap();
}
