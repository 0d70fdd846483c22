//! Futures as tasks: woken from anywhere, cancelled, panicking, of scopes, beside closures.

#![forbid(unsafe_code)]

use std::any::Any;
use std::future::{Future, pending, poll_fn};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use poach_runtime::cancel::{CancellationToken, Cancelled};
use poach_runtime::future::{block_on, yield_now};
use poach_runtime::{
    JoinHandle, ThreadPool, interrupt, scope, spawn, spawn_future, spawn_handle, task,
};

const MANY: usize = if cfg!(miri) { 20 } else { 10_000 };

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// A pool of one thread, and the panics that it reports.
fn pool_that_tells() -> (ThreadPool, mpsc::Receiver<&'static str>) {
    let (tell, told) = mpsc::channel();
    let report = move |payload: Box<dyn Any + Send>| {
        tell.send(*payload.downcast::<&str>().unwrap()).unwrap();
    };
    (ThreadPool::builder().num_threads(1).on_panic(report).build().unwrap(), told)
}

/// What any number of futures wait for.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<(bool, Vec<Waker>)>>);

impl Gate {
    fn open(&self) {
        let wakers = {
            let mut gate = self.0.lock().unwrap();
            gate.0 = true;
            mem::take(&mut gate.1)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// How many wait.
    fn waiting(&self) -> usize {
        self.0.lock().unwrap().1.len()
    }

    /// Returns once as many wait.
    fn await_waiting(&self, number: usize) {
        while self.waiting() < number {
            thread::yield_now();
        }
    }
}

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut gate = self.0.lock().unwrap();
        if gate.0 {
            return Poll::Ready(());
        }
        gate.1.push(context.waker().clone());
        Poll::Pending
    }
}

/// Counts its drops, and panics in them if it is to.
struct Dropped(Arc<AtomicUsize>, bool);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        assert!(!self.1, "a destructor");
    }
}

#[test]
fn a_future_runs_on_the_pools_threads_and_awaits_closures_and_futures() {
    for threads in [1, 3] {
        let pool = pool(threads);
        let answer = pool.spawn_future(async {
            let closure = spawn_handle(|| 20);
            let future = spawn_future(async { 20 });
            assert!(poach_runtime::current_thread_index().is_some());
            closure.await.unwrap() + future.await.unwrap() + 2
        });
        assert_eq!(answer.join().unwrap(), 42);
        let task = pool.task().in_order().spawn_future(async { thread::current().id() });
        assert_ne!(block_on(task).unwrap(), thread::current().id());
    }
    assert_eq!(task().spawn_future(async { 7 }).join().unwrap(), 7);
}

#[test]
fn each_of_many_that_wait_is_woken_and_none_is_polled_by_its_waker() {
    let pool = pool(2);
    let (gate, ran) = (Gate::default(), Arc::new(AtomicUsize::new(0)));
    let handles: Vec<_> = (0..MANY)
        .map(|i| {
            let (gate, ran) = (gate.clone(), ran.clone());
            pool.spawn_future(async move {
                gate.await;
                ran.fetch_add(1, Ordering::Relaxed);
                (i, thread::current().id())
            })
        })
        .collect();
    gate.await_waiting(MANY);
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    gate.open();
    for (i, handle) in handles.into_iter().enumerate() {
        let (index, polled_by) = handle.join().unwrap();
        assert_eq!(index, i);
        assert_ne!(polled_by, thread::current().id());
    }
}

#[test]
fn two_tasks_exchange_messages() {
    const ROUNDS: usize = MANY / 10;
    for threads in [1, 2] {
        let pool = pool(threads);
        let slots = [(); 2].map(|()| Arc::new(Mutex::new((0, None::<Waker>))));
        let player = |own: usize| {
            let [mine, other] = [slots[own].clone(), slots[1 - own].clone()];
            async move {
                for round in 1..=ROUNDS {
                    let waker = {
                        let mut other = other.lock().unwrap();
                        other.0 += 1;
                        other.1.take()
                    };
                    waker.into_iter().for_each(Waker::wake);
                    poll_fn(|context| {
                        let mut mine = mine.lock().unwrap();
                        if mine.0 >= round {
                            return Poll::Ready(());
                        }
                        mine.1 = Some(context.waker().clone());
                        Poll::Pending
                    })
                    .await;
                }
            }
        };
        let (first, second) = (pool.spawn_future(player(0)), pool.spawn_future(player(1)));
        first.join().unwrap();
        second.join().unwrap();
    }
}

/// A watchdog: a test that starves would hang.
fn in_time(test: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    let runs = thread::spawn(move || {
        test();
        tell.send(()).unwrap();
    });
    match told.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("a task does not run"),
        _ => runs.join().unwrap(),
    }
}

#[test]
fn futures_that_wake_themselves_starve_nothing() {
    in_time(|| {
        for (threads, futures) in [(1, 1), (2, 100)] {
            let pool = pool(threads);
            let stop = Arc::new(AtomicBool::new(false));
            let endless: Vec<_> = (0..futures)
                .map(|_| {
                    let stop = stop.clone();
                    pool.spawn_future(async move {
                        while !stop.load(Ordering::Relaxed) {
                            yield_now().await;
                        }
                    })
                })
                .collect();
            // Closures from outside and from inside, of each worker, and another future.
            let closures = || spawn_handle(|| spawn_handle(|| 1).join().unwrap()).join().unwrap();
            assert_eq!(pool.install(closures), 1);
            pool.broadcast(|_| ());
            assert_eq!(pool.spawn_future(async { 2 }).join().unwrap(), 2);
            stop.store(true, Ordering::Relaxed);
            for future in endless {
                future.join().unwrap();
            }
        }
    });
}

#[test]
fn a_yield_lets_closures_and_woken_futures_go_first() {
    let pool = pool(1);
    let (seen, gate) = (Arc::new(Mutex::new(Vec::new())), Gate::default());
    let sees = |what| {
        let seen = seen.clone();
        move || seen.lock().unwrap().push(what)
    };
    let (woken, opens, last) = (sees("woken"), gate.clone(), sees("yielded"));
    let waits = pool.spawn_future(async move {
        gate.await;
        woken();
    });
    opens.await_waiting(1);
    let closure = sees("closure");
    let yields = pool.spawn_future(async move {
        opens.open();
        spawn(closure);
        yield_now().await;
        last();
    });
    yields.join().unwrap();
    waits.join().unwrap();
    assert_eq!(*seen.lock().unwrap(), ["closure", "woken", "yielded"]);
}

#[test]
fn two_futures_that_wake_each_other_starve_no_closure_of_their_worker() {
    in_time(players_and_a_closure);
}

fn players_and_a_closure() {
    let pool = pool(1);
    let stop = Arc::new(AtomicBool::new(false));
    let wakers = Arc::new(Mutex::new([None::<Waker>, None]));
    let player = |own: usize| {
        let (stop, wakers) = (stop.clone(), wakers.clone());
        poll_fn(move |context| {
            if stop.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            let other = {
                let mut wakers = wakers.lock().unwrap();
                wakers[own] = Some(context.waker().clone());
                wakers[1 - own].take()
            };
            match other {
                Some(other) => other.wake(),
                None if own == 0 => context.waker().wake_by_ref(),
                None => {}
            }
            Poll::Pending
        })
    };
    let handles: Vec<_> = pool.install(|| {
        // Below what the players wake, in the same queue.
        let stop = stop.clone();
        spawn(move || stop.store(true, Ordering::Relaxed));
        (0..2).map(|own| spawn_future(player(own))).collect()
    });
    // Futures that were not woken before are woken now.
    for handle in handles {
        while !handle.is_finished() {
            wakers.lock().unwrap().iter_mut().filter_map(Option::take).for_each(Waker::wake);
            thread::yield_now();
        }
    }
    assert!(stop.load(Ordering::Relaxed));
}

#[test]
fn block_on_runs_other_tasks_on_a_worker_and_waits_on_any_thread() {
    let pool = pool(1);
    let sum = pool.install(|| {
        let parts: Vec<_> = (0..10).map(|i| spawn_future(async move { i })).collect();
        block_on(async {
            let mut sum = 0;
            for part in parts {
                yield_now().await;
                sum += part.await.unwrap();
            }
            sum
        })
    });
    assert_eq!(sum, 45);
    let gate = Gate::default();
    let opener = thread::spawn({
        let gate = gate.clone();
        move || {
            gate.await_waiting(1);
            gate.open();
        }
    });
    block_on(gate);
    opener.join().unwrap();
    // A future that is neither Send nor 'static.
    let local = std::rc::Rc::new(3);
    assert_eq!(block_on(async { *local }), 3);
}

#[test]
fn a_panic_of_a_poll_or_of_a_destructor_ends_its_future_alone() {
    let told = Arc::new(AtomicUsize::new(0));
    let pool = ThreadPool::builder()
        .num_threads(1)
        .on_panic({
            let told = told.clone();
            move |_| _ = told.fetch_add(1, Ordering::SeqCst)
        })
        .build()
        .unwrap();
    let error = pool.spawn_future(async { panic!("in poll") }).join().unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: in poll");

    let drops = Arc::new(AtomicUsize::new(0));
    let held = Dropped(drops.clone(), true);
    let error = pool
        .spawn_future(poll_fn(move |_| {
            let _ = &held;
            Poll::Ready(1)
        }))
        .join()
        .unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: a destructor");
    assert_eq!((drops.load(Ordering::SeqCst), told.load(Ordering::SeqCst)), (1, 0));

    // Without a handle the pool's handler is told.
    drop(pool.spawn_future(async { panic!("nobody asks") }));
    while told.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    assert_eq!(pool.spawn_future(async { 1 }).join().unwrap(), 1);
}

#[test]
fn a_waker_that_panics_is_told_and_loses_no_result() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker");
        }
    }
    let (pool, told) = pool_that_tells();
    let gate = Gate::default();
    let mut handle = pool.spawn_future({
        let gate = gate.clone();
        async move {
            gate.await;
            5
        }
    });
    let waker = Arc::new(Panics).into();
    assert!(Pin::new(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    gate.await_waiting(1);
    gate.open();
    assert_eq!(told.recv(), Ok("a waker"));
    assert_eq!(handle.join().unwrap(), 5);
}

#[test]
fn a_cancelled_future_is_dropped_and_its_handle_says_so() {
    let pool = pool(2);
    let drops = Arc::new(AtomicUsize::new(0));
    let gate = Gate::default();
    let wait = || {
        let (held, gate) = (Dropped(drops.clone(), false), gate.clone());
        pool.spawn_future(async move {
            let _held = held;
            gate.await;
        })
    };
    let (cancelled, guarded) = (wait(), wait().cancel_on_drop());
    gate.await_waiting(2);
    assert!(cancelled.cancel());
    assert!(cancelled.join().unwrap_err().is_cancelled());
    drop(guarded);
    while drops.load(Ordering::SeqCst) < 2 {
        thread::yield_now();
    }
    // Their wakers wake nothing.
    gate.open();
    let ended = pool.spawn_future(async { 3 });
    while !ended.is_finished() {
        thread::yield_now();
    }
    assert!(!ended.cancel());
    assert_eq!(ended.join().unwrap(), 3);
}

#[test]
fn a_token_ends_a_future_at_its_next_poll() {
    let (pool, gate, token) = (pool(1), Gate::default(), CancellationToken::new());
    let wait = || {
        let (gate, token) = (gate.clone(), token.clone());
        pool.spawn_future(async move { token.run_until_cancelled(gate).await })
    };
    let waits = wait();
    gate.await_waiting(1);
    token.cancel();
    assert!(!waits.is_finished());
    gate.open();
    assert_eq!(waits.join().unwrap(), Err(Cancelled));
    assert_eq!(wait().join().unwrap(), Err(Cancelled));
    let ready = CancellationToken::new();
    assert_eq!(block_on(ready.run_until_cancelled(async { 1 })), Ok(1));
}

#[test]
fn a_pool_ends_without_what_waits_and_with_what_was_woken() {
    let (gate, late) = (Gate::default(), Gate::default());
    let drops = Arc::new(AtomicUsize::new(0));
    let pool = pool(1);
    let wait = |gate: &Gate| {
        let (held, gate) = (Dropped(drops.clone(), false), gate.clone());
        pool.spawn_future(async move {
            let _held = held;
            gate.await;
            1
        })
    };
    let (woken, waits) = (wait(&gate), wait(&late));
    gate.await_waiting(1);
    late.await_waiting(1);
    let occupied = Gate::default();
    let (begun, is_begun) = mpsc::channel();
    pool.spawn({
        let occupied = occupied.clone();
        move || {
            begun.send(()).unwrap();
            occupied.await_waiting(1);
        }
    });
    is_begun.recv().unwrap();
    gate.open(); // queued behind the closure
    let dropper = thread::spawn(move || drop(pool));
    occupied.0.lock().unwrap().1.push(Waker::noop().clone());
    dropper.join().unwrap();
    assert_eq!(woken.join().unwrap(), 1);
    assert!(!waits.is_finished());
    late.open();
    let error = waits.join().unwrap_err();
    assert_eq!(error.to_string(), "the task was cancelled before it ended");
    assert_eq!(drops.load(Ordering::SeqCst), 2);
}

#[test]
fn shutdown_now_drops_futures_of_the_pool_and_finishes_those_of_scopes() {
    let pool = pool(2);
    let (scoped_gate, gate) = (Gate::default(), Gate::default());
    let plain = pool.spawn_future(gate.clone());
    gate.await_waiting(1);
    let (begun, is_begun) = mpsc::channel();
    let scoped = pool.spawn_handle(move || {
        scope(move |s| {
            let handle = s.spawn_future({
                let gate = scoped_gate.clone();
                async move {
                    gate.await;
                    4
                }
            });
            scoped_gate.await_waiting(1);
            begun.send(()).unwrap();
            // The pool drops what has not begun, from some time on.
            while !spawn_handle(|| ()).join().is_err_and(|error| error.is_cancelled()) {}
            gate.open();
            assert!(plain.join().unwrap_err().is_cancelled());
            scoped_gate.open();
            handle.join().unwrap()
        })
    });
    is_begun.recv().unwrap();
    pool.shutdown_now();
    assert_eq!(scoped.join().unwrap(), 4);
}

#[test]
fn futures_of_a_scope_borrow_and_end_before_it() {
    for threads in [1, 2] {
        let pool = pool(threads);
        let words: Vec<String> = (0..MANY / 10).map(|i| i.to_string()).collect();
        let lengths = AtomicUsize::new(0);
        let gate = Gate::default();
        pool.run(|_| {
            scope(|s| {
                for word in &words {
                    let (gate, lengths) = (gate.clone(), &lengths);
                    drop(s.spawn_future(async move {
                        gate.await;
                        yield_now().await;
                        lengths.fetch_add(word.len(), Ordering::Relaxed);
                    }));
                }
                let gate = &gate;
                s.spawn(|_| gate.open());
            });
        });
        assert_eq!(lengths.into_inner(), words.iter().map(String::len).sum::<usize>());
    }
}

#[test]
fn a_panic_in_a_scopes_future_is_its_handles_or_the_scopes() {
    let pool = pool(1);
    let drops = Arc::new(AtomicUsize::new(0));
    pool.install(|| {
        let error = scope(|s| s.spawn_future(async { panic!("asked for") }).join());
        assert_eq!(error.unwrap_err().to_string(), "the task panicked: asked for");
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            scope(|s| {
                let held = Dropped(drops.clone(), false);
                drop(s.spawn_future(async move {
                    let _held = held;
                    panic!("nobody asks")
                }));
            });
        }));
        assert_eq!(*outcome.unwrap_err().downcast::<&str>().unwrap(), "nobody asks");
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        // Cancelled, it ends; or the scope would not.
        scope(|s| {
            let never = s.spawn_future(pending::<()>());
            assert!(never.cancel());
            assert!(never.join().unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn a_future_of_an_interrupt_goes_on_after_it() {
    let pool = pool(2);
    let gate = Gate::default();
    let handle = pool.install(|| {
        interrupt(|| {
            let gate = gate.clone();
            spawn_future(async move {
                gate.await;
                6
            })
        })
    });
    gate.await_waiting(1);
    gate.open();
    assert_eq!(handle.join().unwrap(), 6);
}

/// A worker stands aside for a guest, but not from a future of its own.
#[test]
fn a_guest_keeps_no_future_waiting() {
    in_time(|| {
        let pool = pool(1);
        let (tell, told) = mpsc::channel();
        pool.run(move |_| {
            drop(spawn_future(async move {
                for _ in 0..200 {
                    yield_now().await;
                }
                tell.send(()).unwrap();
            }));
            told.recv().unwrap();
        });
    });
}

/// A task that others may wait for waits for its scope's future, with every other worker busy.
#[test]
fn a_task_polls_what_its_scope_waits_for() {
    in_time(|| {
        let pool = pool(2);
        let stop = Arc::new(AtomicBool::new(false));
        let (begin, begun) = mpsc::channel();
        pool.spawn({
            let stop = stop.clone();
            move || {
                begin.send(()).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            }
        });
        begun.recv().unwrap();
        let handle = pool.spawn_handle(|| {
            scope(|s| {
                let future = s.spawn_future(async {
                    yield_now().await;
                    8
                });
                future.join().unwrap()
            })
        });
        while !handle.is_finished() {
            thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(handle.join().unwrap(), 8);
    });
}

/// A closure waits for a future, which awaits a closure, which waits for another one.
#[test]
fn closures_and_futures_may_wait_for_each_other_in_turn() {
    in_time(|| {
        let pool = pool(3);
        for _ in 0..if cfg!(miri) { 1 } else { 100 } {
            let first = pool.spawn_handle(|| {
                thread::sleep(Duration::from_millis(2));
                1
            });
            let second = pool.spawn_handle(move || first.join().unwrap() + 1);
            let third = pool.spawn_future(async move { second.await.unwrap() + 1 });
            let fourth = pool.spawn_handle(move || third.join().unwrap() + 1);
            assert_eq!(fourth.join().unwrap(), 4);
        }
    });
}

/// The one worker waits for a future in a task that others may wait for.
#[test]
fn a_future_that_yields_keeps_no_closure_waiting_where_a_task_waits_for_it() {
    in_time(|| {
        let pool = pool(1);
        let raised = Arc::new(AtomicBool::new(false));
        let (seen, raises) = (raised.clone(), raised);
        let future = pool.spawn_future(async move {
            while !seen.load(Ordering::Relaxed) {
                yield_now().await;
            }
        });
        let waits = pool.spawn_handle(move || future.join().unwrap());
        pool.spawn_handle(move || raises.store(true, Ordering::Relaxed)).join().unwrap();
        waits.join().unwrap();
    });
}

#[test]
fn a_yield_in_block_on_lets_the_workers_tasks_run() {
    in_time(|| {
        pool(1).install(|| {
            let closure = spawn_handle(|| 1);
            block_on(async {
                while !closure.is_finished() {
                    yield_now().await;
                }
            });
        });
    });
}

/// Every worker of the pool is in the interrupt.
#[test]
fn an_interrupt_may_wait_for_a_future_that_it_has_spawned() {
    in_time(|| {
        let joined = pool(2).interrupt(|| {
            let future = spawn_future(async {
                yield_now().await;
                9
            });
            future.join().unwrap()
        });
        assert_eq!(joined, 9);
    });
}

/// A poll that waits runs nothing on top of it that might wait for its future.
#[test]
fn a_closure_that_waits_for_a_future_is_not_begun_on_top_of_its_poll() {
    in_time(|| {
        let pool = pool(1);
        let (release, occupied) = mpsc::channel::<()>();
        pool.spawn(move || _ = occupied.recv());
        let (send, receive) = mpsc::channel::<JoinHandle<u32>>();
        let future = pool.spawn_future(async move { receive.recv().unwrap().join().unwrap() + 1 });
        let closure = pool.spawn_handle(move || future.join().unwrap() + 1);
        send.send(pool.spawn_handle(|| 1)).unwrap();
        drop(release);
        assert_eq!(closure.join().unwrap(), 3);
    });
}

#[test]
fn a_cancelled_future_whose_destructor_panics_is_told() {
    let (pool, told) = pool_that_tells();
    let gate = Gate::default();
    let drops = Arc::new(AtomicUsize::new(0));
    let handle = pool.spawn_future({
        let (held, gate) = (Dropped(drops.clone(), true), gate.clone());
        async move {
            let _held = held;
            gate.await;
        }
    });
    gate.await_waiting(1);
    assert!(handle.cancel());
    assert!(handle.join().unwrap_err().is_cancelled());
    assert_eq!(told.recv(), Ok("a destructor"));
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

/// The pool's one worker is the thread that drops it.
#[test]
fn a_resident_worker_polls_what_was_woken_before_its_pool_ends() {
    let resident = thread::spawn(|| {
        let pool = ThreadPool::builder().num_threads(1).use_current_thread().build().unwrap();
        let (tell, told) = mpsc::channel();
        drop(pool.spawn_future(async move {
            yield_now().await;
            tell.send(1).unwrap();
        }));
        drop(pool);
        assert_eq!(told.try_recv(), Ok(1));
    });
    resident.join().unwrap();
}

#[test]
fn a_future_that_another_pools_worker_wakes_goes_on_in_its_own_pool() {
    let name = || thread::current().name().map(str::to_owned);
    let own = ThreadPool::builder().num_threads(1).name(|_| "own".to_owned()).build().unwrap();
    let (gate, other) = (Gate::default(), pool(1));
    let future = own.spawn_future({
        let gate = gate.clone();
        async move {
            gate.await;
            name()
        }
    });
    gate.await_waiting(1);
    other.install(|| gate.open());
    assert_eq!(future.join().unwrap().as_deref(), Some("own"));
}
