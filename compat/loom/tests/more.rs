//! What loom has not: the tests that only this package passes.

#![forbid(unsafe_code)]

#[path = "it/shown.rs"]
mod shown;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc as StdArc, Mutex as StdMutex};
use std::task::Poll;
use std::time::Duration;

use loom::future::{AtomicWaker, block_on};
use loom::model::{Builder, Machine};
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicUsize};
use loom::sync::{Arc, Barrier, Condvar, Mutex, RwLock, mpsc};
use loom::thread;

use shown::shown;

/// What is wrong with a model.
fn wrong_by(builder: &Builder, act: impl Fn() + Send + Sync + 'static) -> String {
    let check = AssertUnwindSafe(|| builder.check(act));
    *catch_unwind(check).expect_err("the model is wrong").downcast().expect("a text")
}

fn wrong(act: impl Fn() + Send + Sync + 'static) -> String {
    wrong_by(&Builder::new(), act)
}

#[test]
fn what_is_sequentially_consistent_has_one_order() {
    let seen = shown(|| {
        let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let shared = words.clone();
        let other = thread::spawn(move || {
            shared[1].store(1, SeqCst);
            shared[0].load(SeqCst)
        });
        words[0].store(1, SeqCst);
        (words[1].load(SeqCst), other.join().unwrap())
    });
    assert_eq!(seen, [(0, 1), (1, 0), (1, 1)]);
}

#[test]
fn two_stores_to_each_of_two_words_may_cross() {
    let seen = shown(|| {
        let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let shared = words.clone();
        let other = thread::spawn(move || {
            shared[1].store(1, Relaxed);
            shared[0].store(2, Relaxed);
        });
        words[0].store(1, Relaxed);
        words[1].store(2, Relaxed);
        other.join().unwrap();
        (words[0].load(Relaxed), words[1].load(Relaxed))
    });
    assert_eq!(seen, [(1, 1), (1, 2), (2, 1), (2, 2)]);
}

#[test]
fn a_thread_that_has_yielded_may_go_on_or_not() {
    let seen = shown(|| {
        let word = Arc::new(AtomicUsize::new(0));
        let shared = word.clone();
        let other = thread::spawn(move || {
            shared.store(1, Release);
            thread::yield_now();
            shared.store(2, Release);
        });
        let seen = word.load(Acquire);
        other.join().unwrap();
        seen
    });
    assert_eq!(seen, [0, 1, 2]);
}

#[test]
fn an_if_in_the_place_of_a_while_is_found() {
    let wait = |again: bool| {
        move || {
            let pair = Arc::new((Mutex::new(false), Condvar::new()));
            let shared = pair.clone();
            thread::spawn(move || {
                *shared.0.lock().unwrap() = true;
                shared.1.notify_one();
            });
            let mut ready = pair.0.lock().unwrap();
            if !*ready {
                ready = pair.1.wait(ready).unwrap();
            }
            if again {
                ready = pair.1.wait_while(ready, |ready| !*ready).unwrap();
            }
            assert!(*ready, "not ready");
        }
    };
    loom::model(wait(true));
    let text = wrong(wait(false));
    assert!(text.contains("not ready") && text.contains("wakes up without a reason"), "{text}");
    let mut builder = Builder::new();
    builder.spurious_wakeups = 0;
    builder.check(wait(false));
}

#[test]
fn any_waiter_is_notified() {
    let seen = |any| {
        let seen = StdArc::new(StdMutex::new(Vec::new()));
        let place = StdArc::clone(&seen);
        let mut builder = Builder::new();
        (builder.spurious_wakeups, builder.notify_any) = (0, any);
        builder.check(move || {
            let shared = Arc::new((Mutex::new((false, Vec::new())), Condvar::new()));
            let waiters = [0, 1].map(|name| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let mut state = shared.0.lock().unwrap();
                    state.1.push(name);
                    state = shared.1.wait_while(state, |state| !state.0).unwrap();
                    state.1.push(name);
                    shared.1.notify_one();
                })
            });
            let mut state = shared.0.lock().unwrap();
            state.0 = true;
            let both = state.1.len() == 2;
            shared.1.notify_one();
            drop(state);
            for waiter in waiters {
                waiter.join().unwrap();
            }
            let order = &shared.0.lock().unwrap().1;
            if both {
                place.lock().unwrap().push(order[0] == order[2]);
            }
        });
        let mut all = seen.lock().unwrap().clone();
        all.sort_unstable();
        all.dedup();
        all
    };
    assert_eq!(seen(true), [false, true]);
    assert_eq!(seen(false), [true]);
}

#[test]
fn a_timed_wait_may_time_out_at_any_moment() {
    let seen = shown(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let shared = pair.clone();
        let other = thread::spawn(move || {
            *shared.0.lock().unwrap() = true;
            shared.1.notify_one();
        });
        let ready = pair.0.lock().unwrap();
        let (ready, over) = pair.1.wait_timeout(ready, Duration::from_secs(1)).unwrap();
        let seen = (*ready, over.timed_out());
        drop(ready);
        other.join().unwrap();
        seen
    });
    assert_eq!(seen, [(false, true), (true, false), (true, true)]);
    // Nobody notifies: it is no deadlock, and a loop ends when it wants to.
    loom::model(|| {
        let pair = (Mutex::new(()), Condvar::new());
        let mut guard = pair.0.lock().unwrap();
        for _ in 0..3 {
            guard = pair.1.wait_timeout(guard, Duration::ZERO).unwrap().0;
        }
        thread::park_timeout(Duration::ZERO);
    });
    let seen = shown(|| {
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn(move || sender.send(1));
        let got = receiver.recv_timeout(Duration::ZERO).is_ok();
        drop(other.join());
        got
    });
    assert_eq!(seen, [false, true]);
}

#[test]
fn threads_of_a_scope_borrow() {
    loom::model(|| {
        let word = AtomicUsize::new(0);
        let results = thread::scope(|scope| {
            let threads = [1, 2].map(|by| {
                scope.spawn({
                    let word = &word;
                    move || word.fetch_add(by, AcqRel)
                })
            });
            scope.spawn(|| word.fetch_add(4, AcqRel));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(word.load(Relaxed), 7);
        assert!(results[0] != results[1] || results == [0, 0]);
    });
    assert!(
        wrong(|| thread::scope(|scope| drop(scope.spawn(|| panic!("within"))))).contains("within")
    );
}

#[test]
fn eight_threads() {
    loom::model(|| {
        let word = Arc::new(AtomicUsize::new(0));
        let threads = [(); 7].map(|()| {
            let word = word.clone();
            thread::spawn(move || word.fetch_add(1, Relaxed))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(word.load(Relaxed), 7);
    });
    let text = wrong(|| {
        for _ in 0..8 {
            thread::spawn(|| ());
        }
    });
    assert!(text.contains("at most 8 threads"), "{text}");
}

#[test]
fn a_barrier_has_one_leader_and_orders() {
    loom::model(|| {
        let shared = Arc::new((Barrier::new(2), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.1.fetch_add(1, Relaxed);
            other.0.wait().is_leader()
        });
        shared.1.fetch_add(1, Relaxed);
        let leads = shared.0.wait().is_leader();
        assert_eq!(shared.1.load(Relaxed), 2);
        assert!(leads != thread.join().unwrap());
    });
}

#[test]
fn a_weak_owner_comes_back_while_there_is_another() {
    let seen = shown(|| {
        let owner = Arc::new(String::from("owned"));
        let weak = Arc::downgrade(&owner);
        let other = thread::spawn(move || weak.upgrade().map(|owner| owner.len()));
        drop(owner);
        other.join().unwrap()
    });
    assert_eq!(seen, [None, Some(5)]);
}

#[test]
fn a_panic_is_a_result_where_that_is_wanted() {
    let model = || {
        let lock = Arc::new(Mutex::new(1));
        let shared = lock.clone();
        let other = thread::spawn(move || {
            let mut held = shared.lock().unwrap();
            *held += 1;
            panic!("of a thread");
        });
        let payload = other.join().unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"of a thread"));
        assert!(lock.is_poisoned());
        assert_eq!(*lock.lock().unwrap_err().into_inner(), 2);
        lock.clear_poison();
        assert_eq!(*lock.lock().unwrap(), 2);
    };
    assert!(wrong(model).contains("of a thread"));
    let mut builder = Builder::new();
    builder.panics_are_results = true;
    builder.check(model);
}

#[test]
fn a_spin_lock_and_a_long_execution_have_no_limit() {
    loom::model(|| {
        let lock = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
        let add = |lock: &(AtomicBool, AtomicUsize)| {
            while lock.0.compare_exchange(false, true, Acquire, Relaxed).is_err() {
                loom::hint::spin_loop();
            }
            lock.1.store(lock.1.load(Relaxed) + 1, Relaxed);
            lock.0.store(false, Release);
        };
        let threads = [(); 2].map(|()| {
            let lock = lock.clone();
            thread::spawn(move || add(&lock))
        });
        add(&lock);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(lock.1.load(Relaxed), 3);
    });
    loom::model(|| {
        let word = AtomicUsize::new(0);
        for _ in 0..3_000 {
            word.fetch_add(1, Relaxed);
        }
    });
}

#[test]
fn what_is_wrong_is_said_with_what_to_change() {
    let text = wrong(|| {
        let word = Arc::new(AtomicUsize::new(0));
        let shared = word.clone();
        thread::spawn(move || shared.store(1, Release));
        while word.load(Acquire) != 2 {}
    });
    assert!(text.contains("no end after") && text.contains("yield_now"), "{text}");
    let text = wrong(|| {
        let lock = Mutex::new(());
        let _one = lock.lock().unwrap();
        let _two = lock.lock().unwrap();
    });
    assert!(text.contains("deadlock: main waits at"), "{text}");
}

/// The choices that a counterexample ends with run it again, alone; and so does a checkpoint.
#[test]
fn a_counterexample_is_replayed() {
    let runs = StdArc::new(AtomicUsizeOfStd::new(0));
    let counted = StdArc::clone(&runs);
    let model = move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let word = Arc::new(AtomicUsize::new(0));
        let shared = word.clone();
        let other = thread::spawn(move || {
            shared.store(1, Release);
            shared.store(2, Release);
        });
        assert_ne!(word.load(Acquire), 1, "in between");
        other.join().unwrap();
    };
    let text = wrong(model.clone());
    assert!(text.contains("in between") && text.contains("main ") && text.contains("thread 1"));
    assert!(text.contains("wrong under C11, and under sequential consistency already"), "{text}");
    let choices = text.lines().find_map(|line| line.strip_prefix("choices: ")).unwrap();
    let mut builder = Builder::new();
    builder.replay = Some(choices.to_owned());
    assert!(wrong_by(&builder, model.clone()).contains("in between"));
    builder.replay = Some("?".to_owned());
    assert!(wrong_by(&builder, model.clone()).contains("LOOM_REPLAY: character 1"));
    let scratch = std::env::temp_dir().join(format!("loom-more-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let mut builder = Builder::new();
    builder.checkpoint_file(scratch.join("checkpoint").to_str().unwrap());
    builder.picture = Some(scratch.join("picture.svg"));
    assert!(wrong_by(&builder, model.clone()).contains("in between"));
    assert!(std::fs::read_to_string(scratch.join("picture.svg")).unwrap().starts_with("<svg"));
    assert!(wrong_by(&builder, model).contains("in between"));
    // A model that the checkpoint does not fit is searched.
    builder.check(|| ());
    std::fs::remove_dir_all(&scratch).unwrap();
}

use std::sync::atomic::AtomicUsize as AtomicUsizeOfStd;

#[test]
fn the_machine_is_chosen() {
    let message = || {
        let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let shared = words.clone();
        thread::spawn(move || {
            shared[0].store(1, Relaxed);
            shared[1].store(1, Relaxed);
        });
        if words[1].load(Acquire) == 1 {
            assert_eq!(words[0].load(Relaxed), 1, "late");
        }
    };
    let mut builder = Builder::new();
    let text = wrong_by(&builder, message);
    assert!(text.contains("late") && text.contains("right under TSO without a bound"), "{text}");
    builder.machine = Machine::unbounded();
    builder.check(message);
    builder.machine = "tso4".parse().unwrap();
    builder.check(message);
}

#[test]
fn a_model_that_is_not_deterministic_is_told_so() {
    let runs = StdArc::new(AtomicUsizeOfStd::new(0));
    let text = wrong(move || {
        let run = runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let word = Arc::new(AtomicUsize::new(0));
        if run % 4 != 3 {
            let shared = word.clone();
            thread::spawn(move || shared.fetch_add(1, SeqCst));
        }
        word.fetch_add(1, SeqCst);
        word.fetch_add(1, SeqCst);
    });
    assert!(text.contains("not deterministic"), "{text}");
}

/// loom aborts where these are found.
#[test]
fn what_ends_in_a_verdict_and_not_in_an_abort() {
    assert!(wrong(|| std::mem::forget(Arc::new(1))).contains("an Arc made at"));
    assert!(wrong(|| std::mem::forget(loom::alloc::Track::new(1))).contains("a tracked value"));
    assert!(
        wrong(|| {
            let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
            let shared = locks.clone();
            thread::spawn(move || {
                let _second = shared[1].lock().unwrap();
                let _first = shared[0].lock().unwrap();
            });
            let _first = locks[0].lock().unwrap();
            let _second = locks[1].lock().unwrap();
        })
        .contains("deadlock")
    );
    // The notification comes before the wait.
    assert!(
        wrong(|| {
            let pair = Arc::new((Mutex::new(()), Condvar::new()));
            let shared = pair.clone();
            thread::spawn(move || shared.1.notify_all());
            drop(pair.1.wait(pair.0.lock().unwrap()));
        })
        .contains("deadlock")
    );
    // The flag is set after the wake-up.
    assert!(
        wrong(|| {
            let shared = Arc::new((AtomicBool::new(false), AtomicWaker::new()));
            let other = shared.clone();
            let thread = thread::spawn(move || {
                // The wrong way round.
                other.1.wake();
                other.0.store(true, Release);
            });
            block_on(poll_fn(|context| {
                shared.1.register_by_ref(context.waker());
                if shared.0.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
            }));
            thread.join().unwrap();
            drop(shared.1.take_waker());
        })
        .contains("deadlock")
    );
    loom::model(|| {
        let lock = RwLock::new(1);
        let one = lock.read().unwrap();
        assert!(lock.try_read().is_ok_and(|two| *one == *two));
    });
}
