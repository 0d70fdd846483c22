//! Interrupts: everybody stops, one task runs with all of them, everybody goes on.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use poach_parallel::par_for;
use poach_runtime::{
    Priority, ThreadPool, Yield, blocking, broadcast, check, current_num_threads,
    current_thread_index, interrupt, join, scope, spawn_handle, yield_local, yield_now,
};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

const ROUNDS: usize = if cfg!(miri) { 2 } else { 100 };

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

#[test]
fn it_runs_with_all_workers_on_one_and_on_many() {
    for threads in [1, 2, 3] {
        let pool = pool(threads);
        let inside = |expected| {
            assert_eq!(current_num_threads(), expected);
            let indices = broadcast(|context| {
                assert_eq!(current_thread_index(), Some(context.index()));
                context.index()
            });
            assert!(indices.into_iter().eq(0..expected));
            fib(if cfg!(miri) { 5 } else { 12 })
        };
        let expected = if cfg!(miri) { 5 } else { 144 };
        assert_eq!(pool.interrupt(|| inside(threads)), expected);
        assert_eq!(pool.install(|| interrupt(|| inside(threads))), expected);
        assert_eq!(pool.install(|| pool.interrupt(|| inside(threads))), expected);
    }
}

#[test]
fn nothing_else_runs_meanwhile() {
    let pool = pool(3);
    // How many tasks are between two checks: none while an interrupt runs.
    let running = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    pool.in_place_scope(|s| {
        for _ in 0..3 {
            s.spawn(|s| {
                while !stop.load(Ordering::SeqCst) {
                    running.fetch_add(1, Ordering::SeqCst);
                    // Some of it in tasks of their own, to be stolen, left and resumed.
                    join(|| scope(|t| t.spawn(|_| ())), || ());
                    running.fetch_sub(1, Ordering::SeqCst);
                    check();
                }
                s.spawn(|_| ());
            });
        }
        // From outside, so that all workers are among the interrupted.
        for _ in 0..ROUNDS {
            pool.interrupt(|| {
                // Every worker inside stands at a cooperation point, and stays there.
                let before = running.load(Ordering::SeqCst);
                assert_eq!(fib(5), 5);
                assert_eq!(running.load(Ordering::SeqCst), before);
            });
        }
        stop.store(true, Ordering::SeqCst);
    });
}

/// A worker, and a caller, that has not come to a cooperation point yet.
#[test]
fn it_waits_until_everybody_has_come() {
    let pool = pool(2);
    let (begun, busy) = (AtomicBool::new(false), AtomicBool::new(true));
    let work = || {
        begun.store(true, Ordering::SeqCst);
        (0..100).for_each(|_| thread::yield_now());
        busy.store(false, Ordering::SeqCst);
        check();
    };
    let until_begun = || {
        while !begun.load(Ordering::SeqCst) {
            thread::yield_now();
        }
    };
    for _ in 0..if cfg!(miri) { 1 } else { 5 } {
        pool.broadcast(|context| {
            if context.index() == 0 {
                return work();
            }
            until_begun();
            interrupt(|| assert!(!busy.load(Ordering::SeqCst), "a worker is still at work"));
        });
        begun.store(false, Ordering::SeqCst);
        busy.store(true, Ordering::SeqCst);
        thread::scope(|threads| {
            threads.spawn(|| pool.run(|_| work()));
            until_begun();
            pool.interrupt(|| assert!(!busy.load(Ordering::SeqCst), "a caller is still at work"));
        });
        begun.store(false, Ordering::SeqCst);
        busy.store(true, Ordering::SeqCst);
    }
}

#[test]
fn shared_data_may_be_rebuilt_while_everybody_stands() {
    // What Sylvan does with it: workers use a table without a lock of its own, between checks; when
    // it is full, one of them interrupts all and rebuilds it.
    let pool = pool(2);
    let (table, rebuilds) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    pool.install(|| {
        scope(|s| {
            for i in 0..ROUNDS {
                let (table, rebuilds) = (&table, &rebuilds);
                s.spawn(move |_| {
                    let mut mine = table.try_lock();
                    if let Ok(mine) = &mut mine {
                        mine.push(i);
                    }
                    drop(mine);
                    if i % 10 == 0 {
                        interrupt(|| {
                            // Nobody holds it, since nobody looks for work while holding it.
                            table.try_lock().expect("everybody stands").clear();
                            rebuilds.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
    });
    assert_eq!(rebuilds.into_inner(), ROUNDS.div_ceil(10));
}

#[test]
fn interrupts_take_turns_and_nest() {
    let pool = pool(3);
    let (inside, total) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let once = || {
        interrupt(|| {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            total.fetch_add(1, Ordering::SeqCst);
            inside.fetch_sub(1, Ordering::SeqCst);
        });
    };
    for _ in 0..ROUNDS {
        pool.run(|_| {
            scope(|s| {
                for _ in 0..4 {
                    s.spawn(|_| once());
                }
            });
        });
    }
    assert_eq!(total.into_inner(), ROUNDS * 4);
    let depth = pool.interrupt(|| {
        1 + interrupt(|| {
            // Both halves want the frame below to themselves; the pool's methods mean it too.
            let (a, b) = join(|| pool.interrupt(|| fib(5)), || interrupt(|| pool.install(|| 6)));
            a + b
        })
    });
    assert_eq!(depth, 12);
}

#[test]
fn strangers_and_other_pools_interrupt() {
    let (a, b) = (pool(2), pool(1));
    thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                for i in 0..ROUNDS as u64 / 2 {
                    assert_eq!(a.interrupt(|| b.interrupt(|| i)), i);
                    assert_eq!(b.install(|| a.interrupt(|| i)), i);
                }
            });
        }
    });
}

#[test]
fn what_is_spawned_inside_ends_inside() {
    let pool = pool(2);
    for _ in 0..ROUNDS {
        let count = Arc::new(AtomicUsize::new(0));
        let inner = Arc::clone(&count);
        pool.interrupt(move || {
            for _ in 0..10 {
                let count = Arc::clone(&inner);
                drop(spawn_handle(move || {
                    let more = Arc::clone(&count);
                    drop(spawn_handle(move || more.fetch_add(1, Ordering::SeqCst)));
                    count.fetch_add(1, Ordering::SeqCst)
                }));
            }
            assert_eq!(spawn_handle(|| 7).join().unwrap(), 7);
        });
        assert_eq!(count.load(Ordering::SeqCst), 20);
    }
}

#[test]
fn a_panic_inside_resumes_everybody_and_arrives() {
    let pool = pool(2);
    for _ in 0..3 {
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run(|_| join(|| interrupt(|| -> () { panic!("inside") }), || fib(8)))
        }));
        assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"inside"));
        assert_eq!(pool.install(|| fib(8)), 21);
    }
    assert_eq!(pool.interrupt(|| 1), 1);
}

#[test]
fn everybody_comes_while_a_pool_is_being_dropped() {
    for _ in 0..ROUNDS.div_ceil(2) {
        let pool = pool(3);
        let handle =
            pool.spawn_handle(|| spawn_handle(|| interrupt(|| broadcast(|_| 1))).join().unwrap());
        drop(pool);
        assert_eq!(handle.join().unwrap(), [1; 3]);
    }
}

/// A worker that waits for a scope looks for a call between two tasks.
#[test]
fn it_comes_between_two_tasks_of_a_scope() {
    const TASKS: usize = if cfg!(miri) { 20 } else { 200 };
    // By Miri's clock a call takes some hundred milliseconds, and to make its frame a second.
    const LONG: Duration = Duration::from_millis(if cfg!(miri) { 50 } else { 1 });
    let (pool, ran) = (pool(1), AtomicUsize::new(0));
    pool.interrupt(|| ());
    let seen = thread::scope(|threads| {
        let interrupter = threads.spawn(|| {
            while ran.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            pool.interrupt(|| ran.load(Ordering::SeqCst))
        });
        pool.run(|_| {
            scope(|s| {
                for _ in 0..TASKS {
                    s.spawn(|_| {
                        thread::sleep(LONG);
                        ran.fetch_add(1, Ordering::SeqCst);
                    });
                }
            });
        });
        interrupter.join().unwrap()
    });
    assert!((1..TASKS).contains(&seen), "{seen}");
}

/// Whatever should have happened before it is over never will.
const LONG: Duration = Duration::from_secs(60);

/// Whether a task that does nothing but `step`, again and again, on the one worker of its pool, is
/// interrupted.
fn is_interrupted_at(step: impl Fn() + Send + 'static) -> bool {
    let (pool, stop) = (pool(1), Arc::new(AtomicBool::new(false)));
    let (stopped, (send, done)) = (Arc::clone(&stop), mpsc::channel());
    let (tell, begun) = mpsc::channel();
    let busy = pool.spawn_handle(move || {
        tell.send(()).unwrap();
        while !stopped.load(Ordering::SeqCst) {
            step();
        }
    });
    begun.recv().unwrap();
    let interrupter = thread::spawn(move || {
        pool.interrupt(|| ());
        send.send(()).unwrap();
        pool
    });
    let answered = done.recv_timeout(LONG);
    stop.store(true, Ordering::SeqCst);
    busy.join().unwrap();
    drop(interrupter.join().unwrap());
    answered.is_ok()
}

#[test]
fn a_yield_to_ones_own_tasks_answers_a_call() {
    assert!(is_interrupted_at(|| assert_eq!(yield_local(), Some(Yield::Idle))));
}

#[test]
fn a_yield_a_check_and_the_end_of_a_section_that_blocks_answer_a_call() {
    // It runs what it answers.
    assert!(is_interrupted_at(|| assert!(yield_now().is_some())), "yield_now");
    assert!(is_interrupted_at(check), "check");
    assert!(is_interrupted_at(|| blocking(|| ())), "blocking");
    assert!(is_interrupted_at(|| par_for(0..100, |_| ())), "a loop");
}

/// The pool's own methods mean the frame, whose tasks end in it; those of another pool do not.
#[test]
fn a_method_of_the_pool_means_the_frame() {
    let (done, frames) = mpsc::channel();
    thread::spawn(move || {
        let (pool, other) = (pool(2), pool(1));
        let outside = pool.interrupt(|| {
            // What was there before waits.
            let outside =
                thread::scope(|s| s.spawn(|| pool.spawn_handle(current_thread_index)).join());
            let (send, told) = mpsc::channel();
            let [one, two, three] = [(); 3].map(|()| send.clone());
            assert_eq!(pool.spawn_handle(|| 1).join().unwrap(), 1);
            assert_eq!(pool.task().in_order().spawn_handle(|| 2).join().unwrap(), 2);
            assert_eq!(pool.task().priority(Priority::High).spawn_handle(|| 3).join().unwrap(), 3);
            pool.spawn(move || one.send(4).unwrap());
            pool.task().in_order().spawn(move || two.send(5).unwrap());
            pool.spawn_broadcast(move |_| three.send(6).unwrap());
            assert_eq!(pool.broadcast(|context| context.index()), [0, 1]);
            assert_eq!(pool.install(|| join(|| 7, || 8)), (7, 8));
            let sum = AtomicUsize::new(0);
            pool.run(|_| scope(|s| s.spawn(|_| _ = sum.fetch_add(1, Ordering::SeqCst))));
            pool.run(|_| {
                poach_runtime::scope_fifo(|s| {
                    s.spawn_fifo(|_| _ = sum.fetch_add(1, Ordering::SeqCst));
                });
            });
            pool.in_place_scope(|s| s.spawn(|_| _ = sum.fetch_add(1, Ordering::SeqCst)));
            pool.in_place_scope_fifo(|s| s.spawn_fifo(|_| _ = sum.fetch_add(1, Ordering::SeqCst)));
            assert_eq!(sum.into_inner(), 4);
            assert_eq!(other.install(current_num_threads), 1);
            drop(send);
            (outside.unwrap(), told)
        });
        // All have ended with the frame.
        let mut told: Vec<i32> = outside.1.try_iter().collect();
        told.sort_unstable();
        assert_eq!(told, [4, 5, 6, 6]);
        assert!(outside.0.join().unwrap().is_some());
        done.send(()).unwrap();
    });
    assert_eq!(frames.recv_timeout(LONG), Ok(()), "it hangs, or panics");
}

#[test]
fn a_check_outside_any_pool_is_nothing() {
    check();
}
