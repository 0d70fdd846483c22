//! What a thread from outside runs itself, and what the pool's own threads run: always, whatever
//! the workers do.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use poach_runtime::config::Waiting;
use poach_runtime::{
    BuildError, Priority, ThreadPool, ThreadPoolBuilder, Yield, current_thread_index, join,
    yield_local, yield_now,
};

/// Calls of each kind: those that went astray did so in one of a few.
const CALLS: usize = if cfg!(miri) { 10 } else { 500 };

thread_local! {
    /// What `on_start` sets: 0 on any thread that is not the pool's.
    static OWN: Cell<usize> = const { Cell::new(0) };
    /// As a runtime that must not be entered twice marks its threads.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).on_start(|index| OWN.set(index + 1)).build().unwrap()
}

/// The pool's workers sleep, or have just worked, or are at work.
fn in_all_states(pool: &ThreadPool, call: impl Fn()) {
    for _ in 0..CALLS {
        call();
        pool.spawn_handle(|| ()).join().unwrap();
        call();
        drop(pool.spawn_handle(thread::yield_now));
        call();
    }
}

#[test]
fn what_is_installed_or_spawned_has_the_pools_thread_locals() {
    let pool = pool(2);
    in_all_states(&pool, || {
        assert_ne!(pool.install(|| OWN.get()), 0);
        assert_ne!(pool.spawn_handle(|| OWN.get()).join().unwrap(), 0);
        // From within a region of the caller's, too.
        let nested = pool.run(|_| {
            join(
                || {
                    (
                        pool.install(|| OWN.get()),
                        poach_runtime::spawn_handle(|| OWN.get()).join().unwrap(),
                    )
                },
                || (),
            )
        });
        assert!(nested.0.0 != 0 && nested.0.1 != 0, "{nested:?}");
    });
}

#[test]
fn the_body_of_a_region_runs_on_the_thread_that_calls_it() {
    let pool = pool(2);
    let here = thread::current().id();
    in_all_states(&pool, || {
        assert_eq!(pool.run(|_| join(|| thread::current().id(), || ())).0, here);
        assert_eq!(
            pool.run(|_| poach_runtime::join_context(|_| thread::current().id(), |_| ())).0,
            here
        );
        assert_eq!(pool.run(|_| poach_runtime::scope(|_| thread::current().id())), here);
        assert_eq!(pool.run(|_| poach_runtime::scope_fifo(|_| thread::current().id())), here);
        assert_eq!(pool.run(|_| thread::current().id()), here);
    });
}

#[test]
fn a_runtime_that_its_thread_is_inside_of_is_not_entered_by_what_is_installed() {
    let pool = pool(2);
    INSIDE.set(true);
    in_all_states(&pool, || {
        assert!(pool.run(|_| join(|| INSIDE.get(), || ())).0);
        assert!(!pool.install(|| INSIDE.get()));
    });
    INSIDE.set(false);
}

#[test]
fn a_broadcast_reaches_every_thread_of_the_pool_and_no_other() {
    let pool = pool(3);
    in_all_states(&pool, || assert_eq!(pool.broadcast(|_| OWN.get()), [1, 2, 3]));
    // While callers work for the pool, and from one of them.
    let answers =
        pool.run(|_| join(|| pool.broadcast(|context| (context.index() + 1, OWN.get())), || ()));
    assert_eq!(answers.0, [(1, 1), (2, 2), (3, 3)]);
}

#[test]
#[cfg(not(miri))] // whose stacks do not end
fn what_is_installed_has_the_stack_that_the_pool_was_built_with() {
    fn deep(levels: usize) -> usize {
        let frame = std::hint::black_box([levels as u8; 8 << 10]);
        if levels == 0 { 0 } else { deep(levels - 1) + usize::from(frame[0] == levels as u8) }
    }
    let pool = ThreadPool::builder().num_threads(2).stack_size(256 << 20).build().unwrap();
    // 128 MiB, more than any thread has that asks for no stack.
    in_all_states(&pool, || pool.install(|| ()));
    for _ in 0..4 {
        assert!(pool.install(|| deep(16_000)) > 0);
    }
}

#[test]
fn a_builder_that_says_so_has_everything_on_the_pools_threads() {
    let builder = ThreadPool::builder().num_threads(2).callers_work(false);
    let pool = builder.on_start(|index| OWN.set(index + 1)).build().unwrap();
    in_all_states(&pool, || {
        assert_ne!(pool.run(|_| join(|| OWN.get(), || ())).0, 0);
        assert_ne!(pool.run(|_| poach_runtime::scope(|_| OWN.get())), 0);
        assert_ne!(pool.run(|_| OWN.get()), 0);
    });
}

#[test]
fn halves_that_are_handed_over_have_migrated() {
    let migrated = |pool: &ThreadPool| {
        poach_runtime::join_context_or(|| pool, |a| a.migrated(), |b| b.migrated())
    };
    let build = |callers| ThreadPool::builder().num_threads(1).callers(callers).build().unwrap();
    assert_eq!(migrated(&build(0)), (true, true));
    assert_eq!(migrated(&build(1)), (false, false));
    // Within the pool they have come from its own thread.
    let pool = build(0);
    assert_eq!(pool.install(|| migrated(&pool)), (false, false));
}

#[test]
fn more_callers_than_there_are_places_are_handed_over() {
    const CALLERS: usize = 6;
    let pool = Arc::new(pool(CALLERS));
    let barrier = Arc::new(Barrier::new(CALLERS));
    let (send, answers) = mpsc::channel();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (pool, barrier, send) = (Arc::clone(&pool), Arc::clone(&barrier), send.clone());
            thread::spawn(move || {
                let here = thread::current().id();
                let body = || {
                    barrier.wait();
                    (thread::current().id() == here, current_thread_index().unwrap())
                };
                send.send(pool.run(|_| join(body, || ())).0).unwrap();
            })
        })
        .collect();
    drop(send);
    let answers: Vec<(bool, usize)> = answers.iter().collect();
    for caller in callers {
        caller.join().unwrap();
    }
    let guests = answers.iter().filter(|(here, _)| *here);
    assert_eq!(guests.clone().count(), 4, "{answers:?}");
    assert!(guests.clone().all(|(_, index)| *index >= CALLERS), "{answers:?}");
    let indices: HashSet<usize> = answers.iter().map(|(_, index)| *index).collect();
    assert_eq!(indices.len(), CALLERS, "each has a place of its own: {answers:?}");
}

/// Of the calls that 16 threads make at once: how many ran on another thread than the caller, and
/// how many of those on none of the pool's.
fn astray(builder: ThreadPoolBuilder<'_>) -> (usize, usize) {
    const CALLERS: usize = 16;
    const EACH: usize = if cfg!(miri) { 3 } else { 100 };
    let pool = builder.num_threads(2).on_start(|index| OWN.set(index + 1)).build().unwrap();
    let (elsewhere, strangers) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let together = Barrier::new(CALLERS);
    thread::scope(|threads| {
        for _ in 0..CALLERS {
            threads.spawn(|| {
                let here = thread::current().id();
                let body = || {
                    // So that many are inside at once.
                    thread::yield_now();
                    if thread::current().id() != here {
                        elsewhere.fetch_add(1, Ordering::Relaxed);
                        strangers.fetch_add(usize::from(OWN.get() == 0), Ordering::Relaxed);
                    }
                };
                together.wait();
                for round in 0..EACH {
                    match round % 4 {
                        0 => _ = pool.run(|_| join(body, || ())),
                        1 => pool.run(|_| poach_runtime::scope(|_| body())),
                        2 => pool.run(|_| body()),
                        _ => _ = pool.run(|_| poach_runtime::join_context(|_| body(), |_| ())),
                    }
                }
            });
        }
    });
    (elsewhere.into_inner(), strangers.into_inner())
}

#[test]
fn as_many_callers_as_the_builder_says_stay_on_their_threads() {
    assert_eq!(astray(ThreadPool::builder().callers(16)), (0, 0));
    let all = if cfg!(miri) { 48 } else { 1600 };
    assert_eq!(astray(ThreadPool::builder().callers(0)), (all, 0));
    // How many of these run elsewhere nobody knows.
    assert_eq!(astray(ThreadPool::builder()).1, 0);
    assert_eq!(astray(ThreadPool::builder().callers(1)).1, 0);
}

#[test]
fn places_for_more_callers_than_a_pool_can_have_are_refused() {
    assert_eq!(ThreadPool::builder().num_threads(1).callers(20).build().unwrap().index_limit(), 21);
    for callers in [21, usize::MAX] {
        let error = ThreadPool::builder().num_threads(1).callers(callers).build().unwrap_err();
        assert!(matches!(error, BuildError::Callers(number) if number == callers), "{error}");
        assert!(error.to_string().ends_with("use 0 to 20"), "{error}");
    }
}

#[test]
fn a_guest_waits_for_what_was_stolen_and_its_tasks_are_helped_with() {
    let pool = pool(2);
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        let begun = AtomicBool::new(false);
        let wait = || {
            while !begun.load(Ordering::Relaxed) {
                // A fork answers the request of a thread that may take the other half.
                join(|| (), || ());
                thread::yield_now();
            }
        };
        let ids: (ThreadId, ThreadId) = pool.run(|_| {
            join(
                || {
                    wait();
                    thread::current().id()
                },
                || {
                    begun.store(true, Ordering::Relaxed);
                    thread::current().id()
                },
            )
        });
        assert_ne!(ids.0, ids.1);
    }
}

#[test]
fn a_panic_in_a_region_of_the_callers_leaves_the_place() {
    let pool = pool(1);
    for _ in 0..10 {
        let body = || pool.run(|_| join(|| panic!("body"), || ()));
        let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"body"));
    }
    let here = thread::current().id();
    assert_eq!(pool.run(|_| join(|| thread::current().id(), || ())).0, here);
}

#[test]
fn an_interrupt_stops_guests_and_lets_none_in() {
    let pool = Arc::new(pool(2));
    let (inside, calls) = (Arc::new(AtomicBool::new(false)), if cfg!(miri) { 3 } else { 200 });
    let guests: Vec<_> = (0..2)
        .map(|_| {
            let (pool, inside) = (Arc::clone(&pool), Arc::clone(&inside));
            thread::spawn(move || {
                for _ in 0..calls {
                    pool.run(|mut worker| {
                        worker.join(|_| assert!(!inside.load(Ordering::Relaxed)), |_| ());
                        poach_runtime::check();
                        assert!(!inside.load(Ordering::Relaxed));
                    });
                }
            })
        })
        .collect();
    for _ in 0..calls {
        pool.interrupt(|| {
            inside.store(true, Ordering::SeqCst);
            thread::yield_now();
            inside.store(false, Ordering::SeqCst);
        });
    }
    for guest in guests {
        guest.join().unwrap();
    }
}

#[test]
fn a_call_that_begins_during_an_interrupt_waits_and_stays_on_its_thread() {
    let pool = pool(2);
    let (send, calls) = mpsc::channel();
    thread::scope(|threads| {
        let pool = &pool;
        let caller = pool.interrupt(move || {
            let caller = threads.spawn(move || {
                let here = thread::current().id();
                send.send(()).unwrap();
                pool.run(|_| thread::current().id() == here)
            });
            calls.recv().unwrap();
            // Time enough to come to the place, mostly.
            thread::sleep(Duration::from_millis(20));
            assert!(!caller.is_finished());
            caller
        });
        assert!(caller.join().unwrap());
    });
}

/// A thread from outside waits for its scope's task, which the pool's one worker runs, while tasks
/// of others lie there for anybody.
#[test]
fn a_caller_that_waits_runs_no_task_that_others_have_spawned() {
    let pool = &pool(1);
    for _ in 0..if cfg!(miri) { 2 } else { 50 } {
        let (tell, begun) = mpsc::channel();
        let (release, hold) = mpsc::channel::<()>();
        let others = pool.run(|_| {
            poach_runtime::scope(move |s| {
                let spawn_one = || {
                    s.spawn(move |_| {
                        tell.send(()).unwrap();
                        _ = hold.recv();
                    });
                };
                let other = || {
                    thread::scope(|t| t.spawn(|| pool.spawn_handle(|| OWN.get())).join().unwrap())
                };
                poach_runtime::blocking(|| {
                    spawn_one();
                    begun.recv().unwrap();
                    let others: Vec<_> = (0..4).map(|_| other()).collect();
                    thread::spawn(move || {
                        // While the caller waits, mostly.
                        (0..100).for_each(|_| thread::yield_now());
                        drop(release);
                    });
                    others
                })
            })
        });
        let on_the_caller = |own| own == 0;
        assert!(!others.into_iter().any(|other| on_the_caller(other.join().unwrap())));
    }
}

#[test]
fn a_caller_that_yields_runs_its_own_tasks_and_no_others() {
    let pool = pool(1);
    let (tell, begun) = mpsc::channel();
    let (release, hold) = mpsc::channel::<()>();
    let busy = pool.spawn_handle(move || {
        tell.send(()).unwrap();
        _ = hold.recv();
    });
    begun.recv().unwrap();
    let other = pool.spawn_handle(|| OWN.get());
    pool.run(|_| {
        poach_runtime::scope(|s| {
            let here = thread::current().id();
            for yields in [yield_now, yield_local] {
                assert_eq!(yields(), Some(Yield::Idle));
                s.spawn(move |_| assert_eq!(thread::current().id(), here));
                assert_eq!(yields(), Some(Yield::Executed));
            }
        });
    });
    drop(release);
    busy.join().unwrap();
    assert_ne!(other.join().unwrap(), 0);
}

/// A wait that takes nothing else runs the task that it waits for, but not where that must not run.
#[test]
fn a_wait_begins_no_task_on_a_caller_or_in_another_pool() {
    let still = |threads| {
        let builder = ThreadPool::builder().num_threads(threads).waiting(Waiting::Sleep);
        builder.on_start(|index| OWN.set(index + 1)).build().unwrap()
    };
    let (pool, other) = (still(1), still(1));
    for _ in 0..if cfg!(miri) { 2 } else { 20 } {
        assert_ne!(pool.run(|_| pool.spawn_handle(|| OWN.get()).join().unwrap()), 0);
        let spawn = || other.spawn_handle(current_thread_index);
        let in_other = || other.spawn_handle(|| thread::current().id()).join().unwrap();
        let (here, there) = pool.install(|| (thread::current().id(), in_other()));
        assert_ne!(here, there);
        assert!(pool.install(|| spawn().join().unwrap()).is_some());
    }
}

#[test]
fn a_half_that_is_stolen_from_a_caller_has_migrated() {
    let (pool, begun) = (pool(1), AtomicBool::new(false));
    let until_begun = || {
        poach_runtime::blocking(|| {
            while !begun.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
    };
    let halves = pool.run(|_| {
        poach_runtime::join_context(
            |a| {
                until_begun();
                a.migrated()
            },
            |b| {
                begun.store(true, Ordering::Relaxed);
                b.migrated()
            },
        )
    });
    assert_eq!(halves, (false, true));
}

/// Waits until `done`, or for so long that whatever should have done it never will.
fn wait_for(done: &AtomicBool) -> bool {
    let ends = Instant::now() + Duration::from_secs(20);
    while !done.load(Ordering::SeqCst) && Instant::now() < ends {
        thread::yield_now();
    }
    done.load(Ordering::SeqCst)
}

/// Joins as a guest of a pool of two, with a second half that a worker has; the first has spawned
/// `task`. What the second half returns, for which the guest waits meanwhile. The other worker
/// stands aside for the guest.
fn waits_for_half<R: Send>(
    pool: &ThreadPool,
    task: impl Fn() + Sync,
    second: impl FnOnce() -> R + Send,
) -> R {
    let begun = AtomicBool::new(false);
    pool.run(|_| {
        poach_runtime::scope(|s| {
            let first = || {
                assert!(wait_for(&begun), "the half is not stolen");
                s.spawn(|_| task());
            };
            let second = || {
                begun.store(true, Ordering::SeqCst);
                second()
            };
            join(first, second).1
        })
    })
}

#[test]
fn a_caller_that_waits_for_a_half_runs_its_own_tasks() {
    let pool = pool(2);
    let caller = thread::current().id();
    let round = || {
        let (ran, here) = (AtomicBool::new(false), AtomicBool::new(false));
        let task = || {
            here.store(thread::current().id() == caller, Ordering::SeqCst);
            ran.store(true, Ordering::SeqCst);
        };
        assert!(waits_for_half(&pool, task, || wait_for(&ran)));
        here.into_inner()
    };
    // A worker that has looked for work since before the call may have taken it.
    assert!((0..1000).any(|_| round()), "it leaves them to the workers");
}

#[test]
fn a_caller_that_waits_for_a_half_runs_no_task_that_others_have_spawned() {
    let pool = pool(2);
    let (tell, told) = mpsc::channel();
    let (release, hold) = mpsc::channel::<()>();
    let second = || {
        let shared = || poach_runtime::task().priority(Priority::Normal);
        let begun = tell.clone();
        // It keeps the other worker.
        shared().spawn(move || {
            begun.send(()).unwrap();
            _ = hold.recv();
        });
        told.recv().unwrap();
        shared().spawn(move || tell.send(()).unwrap());
        let early = told.recv_timeout(Duration::from_millis(20));
        drop(release);
        (early, told)
    };
    let (early, _told) = waits_for_half(&pool, || (), second);
    assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout), "the caller has run it");
}

/// With half of the call stack in use it leaves its own tasks alone, as a worker does.
#[test]
#[cfg(not(miri))] // whose addresses are not those of a stack
fn a_caller_that_waits_deep_for_a_half_runs_none() {
    #[inline(never)]
    fn deep(levels: usize, then: &mut dyn FnMut()) {
        let frame = std::hint::black_box([1_u8; 1024]);
        if levels == 0 {
            then();
        } else {
            deep(levels - 1, then);
        }
        std::hint::black_box(frame);
    }
    let waits = || {
        let pool = pool(2);
        let (caller, here) = (thread::current().id(), AtomicBool::new(false));
        let task = || here.store(thread::current().id() == caller, Ordering::SeqCst);
        let second = || {
            thread::sleep(Duration::from_millis(20));
            here.load(Ordering::SeqCst)
        };
        let mut ran = true;
        pool.run(|_| deep(1000, &mut || ran = waits_for_half(&pool, task, second)));
        assert!(!ran, "the caller has run it");
    };
    thread::Builder::new().stack_size(8 << 20).spawn(waits).unwrap().join().unwrap();
}
