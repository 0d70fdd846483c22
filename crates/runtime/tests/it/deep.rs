//! Waits that would nest without bound: tasks that each wait for a handle, a scope, a call or their
//! turn, a million of them.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use poach_runtime::config::Waiting;
use poach_runtime::{
    JoinHandle, Priority, ThreadPool, Worker, Yield, blocking, join, scope, spawn_handle, task,
    yield_local, yield_now,
};

use crate::alone::alone;

/// Fewer where they take long.
const TASKS: usize = if cfg!(miri) {
    30
} else if cfg!(debug_assertions) {
    100_000
} else {
    1_000_000
};

fn pool(threads: usize) -> ThreadPool {
    // A small stack, so that the bound is met even with fewer tasks.
    ThreadPool::builder().num_threads(threads).stack_size(1 << 20).build().unwrap()
}

fn each(pool: &ThreadPool, task: impl Fn(usize) + Send + Sync) {
    let ran = AtomicUsize::new(0);
    pool.install(|| {
        scope(|s| {
            for i in 0..TASKS {
                let (task, ran) = (&task, &ran);
                s.spawn(move |_| {
                    task(i);
                    ran.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
    });
    assert_eq!(ran.into_inner(), TASKS);
}

#[test]
fn tasks_that_each_wait_for_a_handle() {
    alone("tasks_that_each_wait_for_a_handle", || {
        for threads in [1, 2, 4] {
            let pool = pool(threads);
            each(&pool, |i| assert_eq!(spawn_handle(move || i).join().unwrap(), i));
        }
    });
}

#[test]
fn tasks_that_each_wait_for_one_of_many_handles() {
    alone("tasks_that_each_wait_for_one_of_many_handles", || {
        for threads in [1, 2] {
            for fifo in [false, true] {
                let pool = pool(threads);
                let handles: Vec<_> = pool.install(|| {
                    let spawn = |i| {
                        if fifo {
                            task().in_order().spawn_handle(move || i)
                        } else {
                            spawn_handle(move || i)
                        }
                    };
                    (0..TASKS).map(|i| Mutex::new(Some(spawn(i)))).collect()
                });
                let take = |i: usize| handles[i].lock().unwrap().take().unwrap();
                each(&pool, |i| assert_eq!(take(i).join().unwrap(), i));
            }
        }
    });
}

/// A chain of tasks that each wait for the one before, begun at its end.
fn chain(pool: &ThreadPool) {
    let last = pool.install(|| {
        let first = spawn_handle(|| 0);
        (1..TASKS).fold(first, |before: JoinHandle<usize>, _| {
            spawn_handle(move || before.join().unwrap() + 1)
        })
    });
    assert_eq!(last.join().unwrap(), TASKS - 1, "{pool:?}");
}

#[test]
fn tasks_that_each_wait_for_the_one_before() {
    alone("tasks_that_each_wait_for_the_one_before", || {
        // It needs the whole chain on the stack, or else the oldest to be begun first, and by one
        // whose stack has none that waits for it.
        for threads in [1, 2, 3, 4, 8] {
            chain(&pool(threads));
        }
    });
}

#[test]
fn tasks_that_each_wait_for_the_one_before_and_take_nothing_else() {
    alone("tasks_that_each_wait_for_the_one_before_and_take_nothing_else", || {
        for threads in [2, 3, 4, 8] {
            let builder = ThreadPool::builder().num_threads(threads).stack_size(1 << 20);
            chain(&builder.waiting(Waiting::Sleep).build().unwrap());
        }
    });
}

#[test]
fn tasks_that_each_wait_in_another_pool() {
    alone("tasks_that_each_wait_in_another_pool", || {
        for (threads, others) in [(1, 1), (2, 2)] {
            let (pool, other) = (pool(threads), pool(others));
            each(&pool, |i| assert_eq!(other.spawn_handle(move || i).join().unwrap(), i));
            each(&pool, |i| assert_eq!(other.install(|| i), i));
        }
    });
}

#[test]
fn tasks_that_each_wait_for_a_handle_in_blocking() {
    alone("tasks_that_each_wait_for_a_handle_in_blocking", || {
        for spares in [0, 1] {
            let pool =
                ThreadPool::builder().num_threads(2).stack_size(1 << 20).spares(spares).build();
            let (pool, other) = (pool.unwrap(), pool_of_one());
            each(&pool, |i| assert_eq!(blocking(|| spawn_handle(move || i).join()).unwrap(), i));
            if spares == 1 {
                each(&other, |i| {
                    assert_eq!(blocking(|| pool.spawn_handle(move || i).join()).unwrap(), i);
                });
            }
        }
    });
}

fn pool_of_one() -> ThreadPool {
    pool(1)
}

#[test]
fn tasks_that_each_yield_or_open_a_scope() {
    alone("tasks_that_each_yield_or_open_a_scope", || {
        for threads in [1, 2, 4] {
            let pool = pool(threads);
            each(&pool, |_| _ = yield_now());
            each(&pool, |_| scope(|s| (0..2).for_each(|_| s.spawn(|_| ()))));
        }
    });
}

#[test]
fn a_guest_whose_tasks_each_wait_for_a_handle() {
    alone("a_guest_whose_tasks_each_wait_for_a_handle", || {
        let pool = pool(1);
        pool.run(|_| {
            scope(|s| {
                for i in 0..TASKS {
                    s.spawn(move |_| assert_eq!(spawn_handle(move || i).join().unwrap(), i));
                }
            });
        });
    });
}

/// A program that needs more than half of a stack gets it.
#[cfg(not(miri))] // whose addresses are not those of a stack
#[test]
fn two_pools_that_call_each_other_go_on_past_the_bound() {
    const STACK: usize = 256 << 10;
    thread_local!(static BASE: Cell<usize> = const { Cell::new(0) });
    fn call(pools: [&ThreadPool; 2]) -> usize {
        let here = (&raw const pools).addr();
        let base = if BASE.get() == 0 { BASE.replace(here).max(here) } else { BASE.get() };
        let over = base.saturating_sub(here) > STACK / 16 * 9;
        if over { 0 } else { pools[0].install(|| call([pools[1], pools[0]])) + 1 }
    }
    alone("two_pools_that_call_each_other_go_on_past_the_bound", || {
        let make = || ThreadPool::builder().num_threads(1).stack_size(STACK).build().unwrap();
        let (one, two) = (make(), make());
        assert!(one.install(|| call([&two, &one])) > 10);
    });
}

#[test]
fn a_wait_that_takes_nothing_holds_a_lock_across_a_handle_and_a_call() {
    let lock = Mutex::new(());
    let q = pool(1);
    let free = || lock.try_lock().is_ok();
    for waiting in [Waiting::Sleep, Waiting::Random, Waiting::Patient] {
        let pool = ThreadPool::builder().num_threads(1).waiting(waiting).build().unwrap();
        let seen = AtomicUsize::new(0);
        let hold = |wait: &(dyn Fn() + Sync)| {
            pool.install(|| {
                scope(|s| {
                    s.spawn(|_| _ = seen.fetch_add(usize::from(free()), Ordering::SeqCst));
                    let _held = lock.lock().unwrap();
                    if waiting == Waiting::Sleep { wait() } else { blocking(wait) }
                });
            });
        };
        hold(&|| {
            q.spawn_handle(|| std::thread::sleep(std::time::Duration::from_millis(20)))
                .join()
                .unwrap();
        });
        hold(&|| q.install(|| std::thread::sleep(std::time::Duration::from_millis(20))));
        // Of its own pool it runs what it waits for, and nothing else, were it to start later.
        hold(&|| assert_eq!(spawn_handle(|| 6 * 7).join().unwrap(), 42));
        hold(&|| assert_eq!(task().in_order().spawn_handle(|| 6 * 7).join().unwrap(), 42));
        assert_eq!(seen.into_inner(), 4, "{waiting:?}");
    }
}

#[test]
fn within_a_task_that_a_still_wait_runs_others_take_work_again() {
    let pool = pool(1);
    let ran = AtomicBool::new(false);
    pool.install(|| {
        blocking(|| {
            let inner = || scope(|s| s.spawn(|_| ()));
            spawn_handle(inner).join().unwrap();
        });
        scope(|s| {
            s.spawn(|_| ran.store(true, Ordering::SeqCst));
            // After the section, waits take work.
            let q = self::pool(1);
            let wait = q.spawn_handle(|| std::thread::sleep(std::time::Duration::from_millis(20)));
            wait.join().unwrap();
            assert!(ran.load(Ordering::SeqCst));
        });
    });
}

/// The token form in a deep stack.
#[test]
fn forks_are_not_concerned() {
    fn sum(mut worker: Worker<'_>, n: usize) -> usize {
        if n == 0 { 0 } else { worker.join(|w| sum(w, n - 1), |_| 1).0 + 1 }
    }
    assert_eq!(pool(2).run(|w| sum(w, 500)), 500);
    assert_eq!(pool(2).install(|| join(|| 1, || 2)), (1, 2));
}

/// Calls `then` on a thread of a pool of one, with half of its call stack in use.
#[cfg(not(miri))] // whose addresses are not those of a stack
fn at_half(then: impl FnOnce() + Send) {
    let mut then = Some(then);
    pool(1).install(|| deeper(540 << 10, &mut || then.take().unwrap()()));
}

/// Calls `then` with that many bytes more of the call stack in use.
#[cfg(not(miri))]
fn deeper(bytes: usize, then: &mut dyn FnMut()) {
    #[inline(never)]
    fn deep(base: usize, bytes: usize, then: &mut dyn FnMut()) {
        let frame = std::hint::black_box([1_u8; 1024]);
        let here = (&raw const frame).addr();
        if base.abs_diff(here) > bytes {
            then();
        } else {
            deep(base, bytes, then);
        }
        std::hint::black_box(frame);
    }
    let here = 0_u8;
    deep((&raw const here).addr(), bytes, then);
}

#[test]
#[cfg(not(miri))]
fn a_deep_wait_leaves_tasks_in_their_order() {
    let [high, normal] = [Priority::High, Priority::Normal].map(|it| task().priority(it));
    for turns in [task().in_order(), high, normal] {
        at_half(|| {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let spawn = |i| {
                let seen = Arc::clone(&seen);
                turns.spawn_handle(move || seen.lock().unwrap().push(i))
            };
            let mut handles: Vec<_> = (0..5).map(spawn).collect();
            handles.pop().unwrap().join().unwrap();
            assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3, 4], "{turns:?}");
        });
    }
}

#[test]
#[cfg(not(miri))]
fn so_deep_yields_run_something_rarely() {
    const YIELDS: usize = 3000;
    at_half(|| {
        for yields in [yield_now, yield_local] {
            scope(|s| {
                (0..YIELDS).for_each(|_| s.spawn(|_| ()));
                let ran = (0..YIELDS).filter(|_| yields() == Some(Yield::Executed)).count();
                assert!((2..=4).contains(&ran), "{ran}");
            });
        }
    });
}

/// The task of the scope is another worker's, and the older one nobody waits for.
#[test]
#[cfg(not(miri))]
fn a_deep_wait_for_a_scope_begins_nothing_that_is_older() {
    use std::sync::mpsc::channel;
    use std::thread::sleep;
    use std::time::Duration;

    let pool = pool(2);
    let ((go, gone), (tell, busy)) = (channel::<()>(), channel());
    pool.install(move || {
        let me = poach_runtime::current_thread_index();
        poach_runtime::spawn(move || {
            tell.send(()).unwrap();
            _ = gone.recv();
        });
        busy.recv().unwrap();
        deeper(540 << 10, &mut || {
            let older = Arc::new(AtomicBool::new(false));
            let begins = Arc::clone(&older);
            poach_runtime::spawn(move || begins.store(true, Ordering::SeqCst));
            let first = AtomicBool::new(false);
            scope(|s| {
                s.spawn_broadcast(|_, context| {
                    if Some(context.index()) != me {
                        sleep(Duration::from_millis(20));
                        first.store(!older.load(Ordering::SeqCst), Ordering::SeqCst);
                    }
                });
                _ = go.send(());
            });
            assert!(first.into_inner(), "the older task has begun before the scope has ended");
        });
    });
}

/// An interrupt's body has the rest of the call stack that it is called on.
#[test]
#[cfg(not(miri))]
fn waits_in_an_interrupt_nest_no_deeper_than_what_is_below_it_leaves() {
    alone("waits_in_an_interrupt_nest_no_deeper_than_what_is_below_it_leaves", || {
        at_half(|| {
            let ran = AtomicUsize::new(0);
            let waits = &|i: usize| {
                assert_eq!(spawn_handle(move || i).join().unwrap(), i);
                ran.fetch_add(1, Ordering::Relaxed);
            };
            poach_runtime::interrupt(|| {
                scope(|s| (0..20_000).for_each(|i| s.spawn(move |_| waits(i))));
            });
            assert_eq!(ran.into_inner(), 20_000);
        });
    });
}

/// The pool's one worker waits for something else, and takes nothing.
#[test]
#[cfg(not(miri))]
fn a_guest_in_a_deep_wait_leaves_the_tasks_of_others_to_the_pool() {
    use std::sync::mpsc::channel;

    let (pool, other) = (self::pool(1), self::pool(2));
    let ((release, held), (tell, told)) = (channel::<()>(), channel());
    let held = other.spawn_handle(move || _ = held.recv());
    let busy = pool.spawn_handle(move || blocking(|| held.join().unwrap()));
    pool.spawn(move || tell.send(poach_runtime::current_thread_index()).unwrap());
    let wait = other.spawn_handle(|| std::thread::sleep(std::time::Duration::from_millis(50)));
    let mut wait = Some(wait);
    pool.run(|_| deeper(540 << 10, &mut || wait.take().unwrap().join().unwrap()));
    drop(release);
    busy.join().unwrap();
    assert_eq!(told.recv(), Ok(Some(0)), "it has run on the guest's thread");
}
