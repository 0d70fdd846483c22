//! loom's names on this machine: what each of them allows, what it forbids, and what it must find.

#![forbid(unsafe_code)]
#![allow(
    clippy::arc_with_non_send_sync,
    clippy::let_and_return,
    reason = "models share cells, and end borrows"
)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc as StdArc, Mutex as StdMutex};

use poach_check::loom;

use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, fence};
use loom::sync::{Arc, Condvar, Mutex, Notify, RwLock, mpsc};
use loom::{Machine, model, model_on, thread};

fn shown<T: Ord + Clone + Send + 'static>(
    machine: Machine,
    act: impl Fn() -> T + Send + Sync + 'static,
) -> BTreeSet<T> {
    let seen = StdArc::new(StdMutex::new(BTreeSet::new()));
    let place = StdArc::clone(&seen);
    model_on(machine, move || {
        let value = act();
        place.lock().unwrap().insert(value);
    });
    let all = seen.lock().unwrap().clone();
    all
}

fn wrong(act: impl Fn() + Send + Sync + 'static) -> String {
    wrong_on(Machine::unbounded(), act)
}

fn wrong_on(machine: Machine, act: impl Fn() + Send + Sync + 'static) -> String {
    let panic = catch_unwind(AssertUnwindSafe(move || model_on(machine, act)))
        .expect_err("the model is wrong");
    *panic.downcast::<String>().expect("a text")
}

fn store_buffering() -> (usize, usize) {
    let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let shared = words.clone();
    let other = thread::spawn(move || {
        shared[1].store(1, Release);
        shared[0].load(Acquire)
    });
    words[0].store(1, Release);
    let mine = words[1].load(Acquire);
    (mine, other.join().unwrap())
}

#[test]
fn a_store_is_late_only_where_there_is_a_buffer() {
    let both = [(0, 1), (1, 0), (1, 1)];
    assert_eq!(shown(Machine::sequential(), store_buffering), BTreeSet::from(both));
    for machine in [Machine::tso(1), Machine::tso(4), Machine::unbounded()] {
        let seen = shown(machine, store_buffering);
        assert_eq!(seen, BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)]), "{machine}");
    }
}

#[test]
fn a_line_chooses_the_machine() {
    fn dekker() {
        assert_ne!(store_buffering(), (0, 0), "both came in");
    }
    loom::sequential::model(dekker);
    loom::sequential::model::Builder::new().check(dekker);
    let text = wrong_on(Machine::tso(2), dekker);
    assert!(text.contains("both came in") && text.contains("right under sequential"), "{text}");
    assert!(catch_unwind(|| loom::tso1::model(dekker)).is_err());
    assert!(catch_unwind(|| loom::tso4::model::Builder::new().check(dekker)).is_err());
}

/// A store that two others must hide: wrong from two entries on.
#[test]
fn a_violation_says_from_which_bound_on() {
    let text = wrong(|| {
        let words = Arc::new([(); 3].map(|()| AtomicUsize::new(0)));
        let shared = words.clone();
        let other = thread::spawn(move || {
            shared[2].store(1, Relaxed);
            fence(SeqCst);
            shared[1].load(Relaxed)
        });
        words[0].store(1, Relaxed);
        words[1].store(1, Relaxed);
        let late = words[2].load(Relaxed) == 0 && words[0].load(Relaxed) == 1;
        let hidden = other.join().unwrap() == 0;
        assert!(!(late && hidden), "hidden");
    });
    assert!(text.contains("hidden\nwrong under TSO without a bound, from TSO[1] on"), "{text}");
    let text = wrong(|| {
        let words = Arc::new([(); 3].map(|()| AtomicUsize::new(0)));
        let shared = words.clone();
        let other = thread::spawn(move || {
            shared[2].store(1, Relaxed);
            fence(SeqCst);
            shared[0].load(Relaxed)
        });
        words[0].store(1, Relaxed);
        words[1].store(1, Relaxed);
        let late = words[2].load(Relaxed) == 0;
        let hidden = other.join().unwrap() == 0;
        assert!(!(late && hidden), "hidden");
    });
    assert!(text.contains("from TSO[2] on; right under TSO[1]"), "{text}");
}

macro_rules! widths {
    ($($name:ident $value:ident)*) => {$(
        #[test]
        fn $value() {
            use std::sync::atomic::$name as Std;
            use poach_check::loom::sync::atomic::$name;
            model(|| {
                let mut random = fastrand::Rng::with_seed(7);
                let edges = [$value::MIN, $value::MAX, 0, 1, $value::MAX / 2, $value::MIN / 2 + 1];
                for start in edges {
                    let (ours, std) = ($name::new(start), Std::new(start));
                    for round in 0..8 {
                        let by = if round < 6 { edges[round] } else { random.$value(..) };
                        macro_rules! same {
                            ($method:ident) => {
                                assert_eq!(ours.$method(by, AcqRel), std.$method(by, AcqRel));
                                assert_eq!(ours.load(Acquire), std.load(Acquire));
                            };
                        }
                        same!(fetch_add);
                        same!(fetch_xor);
                        same!(fetch_sub);
                        same!(fetch_max);
                        same!(swap);
                        same!(fetch_nand);
                        same!(fetch_min);
                        same!(fetch_or);
                        same!(fetch_and);
                        for new in [by, std.load(Relaxed)] {
                            let found = ours.compare_exchange(by, new, AcqRel, Acquire);
                            assert_eq!(found, std.compare_exchange(by, new, AcqRel, Acquire));
                        }
                        ours.store(by, Release);
                        std.store(by, Release);
                        let next = |old: $value| old.checked_add(1);
                        assert_eq!(
                            ours.fetch_update(AcqRel, Acquire, next),
                            std.fetch_update(AcqRel, Acquire, next)
                        );
                    }
                    let mut ours = ours;
                    let held = ours.with_mut(|value| std::mem::replace(value, 3));
                    assert_eq!((held, ours.into_inner()), (std.into_inner(), 3));
                }
            });
        }
    )*};
}

mod every_width_computes_as_the_standard_librarys {
    use super::*;

    widths! {
        AtomicI8 i8 AtomicU8 u8 AtomicI16 i16 AtomicU16 u16 AtomicI32 i32 AtomicU32 u32
        AtomicI64 i64 AtomicU64 u64 AtomicIsize isize AtomicUsize usize
    }

    #[test]
    fn bool() {
        model(|| {
            for held in [false, true] {
                for by in [false, true] {
                    let word = AtomicBool::new(held);
                    assert_eq!(word.fetch_xor(by, AcqRel), held);
                    assert_eq!(word.fetch_nand(by, AcqRel), held ^ by);
                    assert_eq!(word.load(Relaxed), !((held ^ by) & by));
                }
            }
        });
    }
}

#[test]
fn pointers_that_one_thread_names_in_one_step_are_told_apart() {
    model(|| {
        let (mut one, mut two) = (1u8, 2u8);
        let (one, two): (*mut u8, *mut u8) = (&raw mut one, &raw mut two);
        let word = AtomicPtr::<u8>::default();
        assert_eq!(word.compare_exchange(one, two, AcqRel, Acquire), Err(std::ptr::null_mut()));
        word.store(one, Release);
        assert_eq!(word.compare_exchange(one, two, AcqRel, Acquire), Ok(one));
        assert_eq!(word.load(Acquire), two);
    });
}

/// A thread's result, and what a lock protects, do not pass through words: states that differ in
/// them only must not be taken for one.
#[test]
fn what_passes_beside_the_words_is_part_of_a_state() {
    let seen = shown(Machine::tso(1), || {
        let word = Arc::new(AtomicUsize::new(0));
        let shared = word.clone();
        let writer = thread::spawn(move || shared.store(1, Relaxed));
        let shared = word.clone();
        let reader = thread::spawn(move || shared.load(Relaxed));
        writer.join().unwrap();
        (reader.join().unwrap(), word.load(Relaxed))
    });
    assert_eq!(seen, BTreeSet::from([(0, 1), (1, 1)]));
    let seen = shown(Machine::tso(1), || {
        let list = Arc::new(Mutex::new(Vec::new()));
        let threads = [1, 2, 3].map(|name| {
            let list = list.clone();
            thread::spawn(move || list.lock().unwrap().push(name))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        let order = list.lock().unwrap().clone();
        order
    });
    assert_eq!(seen.len(), 6, "{seen:?}");
}

#[test]
fn threads_make_threads() {
    let seen = shown(Machine::unbounded(), || {
        let order = Arc::new(AtomicUsize::new(0));
        let makers = [(); 2].map(|()| {
            let order = order.clone();
            thread::spawn(move || {
                let own = order.clone();
                let made = thread::spawn(move || own.fetch_add(1, AcqRel));
                (made.thread().id() != thread::current().id(), made.join().unwrap())
            })
        });
        let [first, second] = makers.map(|maker| maker.join().unwrap());
        assert!(first.0 && second.0);
        (first.1, second.1)
    });
    assert_eq!(seen, BTreeSet::from([(0, 1), (1, 0)]));
    let text = wrong(|| {
        for _ in 0..8 {
            thread::spawn(|| ());
        }
    });
    assert!(text.contains("at most 8 threads"), "{text}");
}

#[test]
fn a_wait_that_nobody_ends_is_a_deadlock() {
    let crossed = || {
        let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
        let shared = locks.clone();
        let other = thread::spawn(move || {
            let _second = shared[1].lock().unwrap();
            let _first = shared[0].lock().unwrap();
        });
        {
            let _first = locks[0].lock().unwrap();
            let _second = locks[1].lock().unwrap();
        }
        other.join().unwrap();
    };
    assert!(wrong(crossed).contains("deadlock"));
    assert!(wrong_on(Machine::sequential(), crossed).contains("deadlock"));
    assert!(wrong(thread::park).contains("deadlock"));
    assert!(wrong(|| Notify::new().wait()).contains("deadlock"));
    let lost = wrong(|| {
        let pair = Arc::new((Mutex::new(()), Condvar::new()));
        let shared = pair.clone();
        let other = thread::spawn(move || shared.1.notify_one());
        drop(pair.1.wait(pair.0.lock().unwrap()));
        other.join().unwrap();
    });
    assert!(lost.contains("deadlock"), "{lost}");
}

#[test]
fn who_waits_by_the_rules_is_woken() {
    for machine in [Machine::sequential(), Machine::tso(2), Machine::unbounded()] {
        model_on(machine, || {
            let pair = Arc::new((Mutex::new(false), Condvar::new()));
            let shared = pair.clone();
            let other = thread::spawn(move || {
                *shared.0.lock().unwrap() = true;
                shared.1.notify_all();
            });
            let guard = pair.1.wait_while(pair.0.lock().unwrap(), |ready| !*ready).unwrap();
            assert!(*guard);
            drop(guard);
            other.join().unwrap();
        });
        let parks = || {
            let flag = Arc::new(AtomicBool::new(false));
            let (shared, main) = (flag.clone(), thread::current());
            let other = thread::spawn(move || {
                shared.store(true, Relaxed);
                main.unpark();
            });
            thread::park();
            assert!(flag.load(Relaxed), "the store before the unpark is seen");
            other.join().unwrap();
        };
        let mut builder = loom::model::Builder::new();
        builder.machine = machine;
        builder.spurious_wakeups = 0;
        builder.check(parks);
        assert!(wrong_on(machine, parks).contains("wakes up without a reason"));
        model_on(machine, || {
            let flag = Arc::new(AtomicBool::new(false));
            let shared = flag.clone();
            thread::spawn(move || shared.store(true, Release));
            while !flag.load(Acquire) {
                thread::yield_now();
            }
        });
        model_on(machine, || {
            let (sender, receiver) = mpsc::channel();
            let second = sender.clone();
            thread::spawn(move || sender.send(1).unwrap());
            thread::spawn(move || second.send(2).unwrap());
            let mut all = [receiver.recv().unwrap(), receiver.recv().unwrap()];
            all.sort_unstable();
            assert_eq!(all, [1, 2]);
            assert!(receiver.recv().is_err() && receiver.try_recv().is_err());
        });
    }
}

#[test]
fn a_readers_lock_lets_readers_in_and_keeps_writers_out() {
    let seen = shown(Machine::tso(1), || {
        let lock = Arc::new((RwLock::new((0, 0)), AtomicUsize::new(0)));
        let shared = lock.clone();
        let writer = thread::spawn(move || {
            let mut pair = shared.0.write().unwrap();
            pair.0 += 1;
            pair.1 += 1;
        });
        let shared = lock.clone();
        let reader = thread::spawn(move || {
            let pair = shared.0.read().unwrap();
            let inside = shared.1.fetch_add(1, AcqRel);
            assert_eq!(pair.0, pair.1);
            shared.1.fetch_sub(1, AcqRel);
            inside
        });
        let pair = lock.0.read().unwrap();
        let inside = lock.1.fetch_add(1, AcqRel);
        assert!(lock.0.try_write().is_err());
        let seen = *pair;
        lock.1.fetch_sub(1, AcqRel);
        drop(pair);
        writer.join().unwrap();
        (seen.0, inside + reader.join().unwrap())
    });
    assert_eq!(seen, BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)]));
}

#[test]
fn a_cell_needs_an_order() {
    use loom::cell::UnsafeCell;

    struct Shared {
        cell: Mutex<StdArc<UnsafeCell<usize>>>,
        ready: AtomicBool,
    }
    fn pass(wait: bool) -> impl Fn() + Send + Sync + 'static {
        move || {
            let cell = StdArc::new(UnsafeCell::new(0));
            let shared =
                Arc::new(Shared { cell: Mutex::new(cell.clone()), ready: AtomicBool::new(false) });
            let reader = shared.clone();
            let other = thread::spawn(move || {
                let cell = reader.cell.lock().unwrap().clone();
                while wait && !reader.ready.load(Relaxed) {
                    thread::yield_now();
                }
                cell.with(|_| ());
            });
            cell.with_mut(|_| ());
            shared.ready.store(true, Relaxed);
            other.join().unwrap();
        }
    }
    model(pass(true));
    assert!(wrong(pass(false)).contains("data race"));
    // Two accesses that overlap: a cell is written for as long as the closure runs.
    let text = wrong(|| {
        let cell = StdArc::new(Mutex::new(StdArc::new(UnsafeCell::new(0))));
        let other = StdArc::clone(&cell);
        let flag = StdArc::new(AtomicBool::new(false));
        let seen = StdArc::clone(&flag);
        let reader = thread::spawn(move || {
            let cell = other.lock().unwrap().clone();
            while !seen.load(Relaxed) {
                thread::yield_now();
            }
            cell.with(|_| ());
        });
        let cell = cell.lock().unwrap().clone();
        cell.with_mut(|_| flag.store(true, Relaxed));
        reader.join().unwrap();
    });
    assert!(text.contains("data race"), "{text}");
}

#[test]
fn an_arc_is_dropped_once_by_whoever_comes_last_and_never_forgotten() {
    struct Last(StdArc<StdMutex<Vec<loom::thread::ThreadId>>>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.lock().unwrap().push(thread::current().id());
        }
    }
    let seen = shown(Machine::tso(1), || {
        let by = StdArc::new(StdMutex::new(Vec::new()));
        let owner = Arc::new(Last(StdArc::clone(&by)));
        let second = owner.clone();
        let other = thread::spawn(move || drop(second));
        drop(owner);
        other.join().unwrap();
        let by = by.lock().unwrap();
        assert_eq!(by.len(), 1);
        by[0] == thread::current().id()
    });
    assert_eq!(seen, BTreeSet::from([false, true]));
    let text = wrong(|| std::mem::forget(Arc::new(1)));
    assert!(text.contains("an Arc made at") && text.contains("is never dropped"), "{text}");
    let text = wrong(|| std::mem::forget(loom::alloc::Track::new(1)));
    assert!(text.contains("a tracked value"), "{text}");
}

loom::thread_local! {
    static OWN: std::cell::RefCell<Vec<usize>> = std::cell::RefCell::new(Vec::new());
}

loom::lazy_static! {
    static ref COUNT: AtomicUsize = AtomicUsize::new(10);
}

#[test]
fn statics_and_thread_locals_begin_anew() {
    model(|| {
        let other = thread::spawn(|| {
            OWN.with(|own| own.borrow_mut().push(COUNT.fetch_add(1, AcqRel)));
            OWN.with(|own| own.borrow().len())
        });
        OWN.with(|own| own.borrow_mut().push(COUNT.fetch_add(1, AcqRel)));
        assert_eq!(other.join().unwrap(), 1);
        OWN.with(|own| assert_eq!(own.borrow().len(), 1));
        assert_eq!(COUNT.load(Relaxed), 12);
    });
}

/// After a violation no thread is unwound in the midst of what it does.
#[test]
fn a_thread_of_a_wrong_execution_is_left_where_it_stands() {
    struct Unwound;
    impl Drop for Unwound {
        fn drop(&mut self) {
            assert!(!std::thread::panicking(), "this thread has not failed");
        }
    }
    let text = wrong(|| {
        let word = Arc::new(AtomicUsize::new(0));
        let shared = word.clone();
        thread::spawn(move || {
            let _watch = Unwound;
            while shared.load(Acquire) == 0 {
                thread::yield_now();
            }
        });
        assert_eq!(word.load(Acquire), 1, "never");
    });
    assert!(text.contains("never"), "{text}");
}

#[test]
fn a_bound_on_preemptions_finds_less() {
    let act = || {
        let word = Arc::new(AtomicUsize::new(0));
        let shared = word.clone();
        let other = thread::spawn(move || {
            shared.store(1, SeqCst);
            shared.store(0, SeqCst);
        });
        assert_eq!(word.load(SeqCst), 0, "in between");
        other.join().unwrap();
    };
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(0);
    builder.check(act);
    assert!(wrong(act).contains("in between"));
}
