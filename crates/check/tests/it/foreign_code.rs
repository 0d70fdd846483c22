//! Destructors that panic: of what a thread has panicked with, and of what a cut execution leaves.
//! Each search ends with a verdict, and the next is not changed by it.

#![forbid(unsafe_code)]

use std::cell::Cell as Count;
use std::panic::{catch_unwind, panic_any};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed as Real};

use poach_check::loom::{self, sync::atomic::AtomicUsize};
use poach_check::{Config, Report, Simulated, SimulatedWord, Threads};
use poach_check::{Verdict, Violation, explore};
use poach_memory::{Memory, Ordering::Relaxed, Word};

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb");
    }
}

/// Panics with another one when it is dropped.
struct Endless;

impl Drop for Endless {
    fn drop(&mut self) {
        panic_any(Endless);
    }
}

/// The text of the panic that the search has found, with a counterexample. Another search on this
/// thread of the system then finds nothing.
fn panic_of(report: &Report) -> &str {
    let Verdict::Violation(Violation::Panic(text)) = &report.verdict else {
        panic!("{:?}", report.verdict)
    };
    assert!(report.counterexample.is_some());
    let next = explore(&Config::default(), &|threads: &mut Threads| {
        let word = Rc::new(SimulatedWord::new(0));
        let read = Rc::clone(&word);
        threads.spawn("reader", move || assert!(read.load(Relaxed) < 2));
        threads.spawn("writer", move || word.store(1, Relaxed));
    });
    assert_eq!(next.verdict, Verdict::Clean);
    text
}

fn sees(act: fn()) -> Report {
    explore(&Config::default(), &|threads: &mut Threads| {
        let word = Rc::new(SimulatedWord::new(0));
        let read = Rc::clone(&word);
        threads.spawn("reader", move || {
            if read.load(Relaxed) == 1 {
                act();
            }
        });
        threads.spawn("writer", move || word.store(1, Relaxed));
    })
}

#[test]
fn a_thread_panics_with_what_panics_when_it_is_dropped() {
    let report = sees(|| panic_any(Bomb));
    assert_eq!(
        panic_of(&report),
        "reader panicked: a value that is no text, whose destructor panicked: a bomb"
    );
    let report = sees(|| panic_any(Endless));
    assert_eq!(
        panic_of(&report),
        "reader panicked: a value that is no text, whose destructor panicked: a value that is no text"
    );
}

#[test]
fn the_destructor_of_what_a_thread_panics_with_takes_steps() {
    thread_local! {
        static WORD: std::cell::RefCell<Option<Rc<SimulatedWord>>> = const { std::cell::RefCell::new(None) };
    }
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            let word = WORD.with_borrow(Clone::clone).expect("the set-up has made it");
            while word.load(Relaxed) == 0 {
                Simulated::pause();
            }
        }
    }
    let report = explore(&Config::default(), &|threads: &mut Threads| {
        let word = Rc::new(SimulatedWord::new(0));
        WORD.set(Some(Rc::clone(&word)));
        threads.spawn("waits", || panic_any(Waits));
        threads.spawn("writes", move || word.store(1, Relaxed));
    });
    WORD.set(None);
    assert_eq!(panic_of(&report), "waits panicked: a value that is no text");
}

#[test]
fn a_final_check_panics_with_what_panics_when_it_is_dropped() {
    let report = explore(&Config::default(), &|threads: &mut Threads| {
        threads.spawn("idle", || {});
        threads.finally(|| panic_any(Bomb));
    });
    assert_eq!(
        panic_of(&report),
        "the final check: a value that is no text, whose destructor panicked: a bomb"
    );
}

/// After a violation the threads that have not begun are not run: what they own is dropped.
#[test]
fn what_a_thread_owns_that_never_begins_panics_when_it_is_dropped() {
    for bombs in [1, 3] {
        let report = explore(&Config::default(), &|threads: &mut Threads| {
            threads.spawn("fails", || panic!("by itself"));
            for _ in 0..bombs {
                let bomb = Bomb;
                threads.spawn("owns", move || std::mem::forget(bomb));
            }
        });
        assert_eq!(panic_of(&report), "fails panicked: by itself");
    }
}

/// The first execution is cut, since a word is found to be shared. Its final check is not made, and
/// what that owns is dropped.
#[test]
fn what_the_final_check_of_a_cut_execution_owns_panics_when_it_is_dropped() {
    let report = explore(&Config::default(), &|threads: &mut Threads| {
        let word = Rc::new(SimulatedWord::new(0));
        let bomb = Bomb;
        for name in ["left", "right"] {
            let word = Rc::clone(&word);
            threads.spawn(name, move || word.store(word.load(Relaxed) + 1, Relaxed));
        }
        threads.finally(move || std::mem::forget(bomb));
    });
    assert_eq!(report.verdict, Verdict::Clean);
    assert!(report.executions > report.completed);
}

/// A set-up that panics is the caller's panic, and leaves the next search alone.
#[test]
fn a_set_up_that_panics_unwinds() {
    let outcome = catch_unwind(|| explore(&Config::default(), &|_: &mut Threads| panic!("set-up")));
    assert_eq!(*outcome.unwrap_err().downcast::<&str>().unwrap(), "set-up");
    assert_eq!(sees(|| {}).verdict, Verdict::Clean);
}

/// A thread panics with a payload that panics when it is dropped, while another thread waits. The
/// waiting thread is unwound all the same.
#[test]
fn the_others_are_unwound() {
    static DROPS: AtomicU32 = AtomicU32::new(0);
    struct Noted;
    impl Drop for Noted {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Real);
        }
    }
    let executions = Count::new(0);
    let report = explore(&Config { shorten: 0, ..Config::default() }, &|threads: &mut Threads| {
        executions.set(executions.get() + 1);
        let word = Rc::new(SimulatedWord::new(0));
        let (read, noted) = (Rc::clone(&word), Noted);
        threads.spawn("waits", move || {
            let _noted = noted;
            while read.load(Relaxed) == 0 {
                Simulated::pause();
            }
        });
        threads.spawn("fails", move || {
            word.load(Relaxed);
            panic_any(Bomb);
        });
    });
    assert!(panic_of(&report).starts_with("fails panicked: "));
    assert_eq!(DROPS.load(Real), executions.get());
}

/// In a model with loom's names a thread that panics leaves a thread-local value, whose destructor
/// takes a step: it is not run, at the end of the thread of the system either.
#[test]
fn what_a_thread_leaves_is_not_dropped_at_the_end_of_the_system_s_thread() {
    struct Counts(AtomicUsize);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Real);
        }
    }
    loom::thread_local! {
        static COUNTS: Counts = Counts(AtomicUsize::new(0));
    }
    let explores = || {
        loom::model::Builder::new().explore(|| {
            let thread = loom::thread::spawn(|| {
                COUNTS.with(|counts| counts.0.load(Real));
                panic!("by itself");
            });
            drop(thread.join());
        })
    };
    let report = std::thread::spawn(explores).join().expect("a report");
    assert_eq!(panic_of(&report), "thread 1 panicked: by itself");
}

/// A destructor that a panic runs explores a model: in such a thread nothing could be explored.
#[test]
fn a_destructor_that_a_panic_runs_explores_nothing() {
    static VERDICT: std::sync::Mutex<Option<Verdict>> = std::sync::Mutex::new(None);
    struct Explores;
    impl Drop for Explores {
        fn drop(&mut self) {
            *VERDICT.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
                Some(sees(|| panic!("found")).verdict);
        }
    }
    let outcome = catch_unwind(|| {
        let _explores = Explores;
        panic!("outside");
    });
    assert!(outcome.is_err());
    let verdict = VERDICT.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    let Some(Verdict::Violation(Violation::Panic(text))) = verdict else { panic!("{verdict:?}") };
    assert!(text.contains("explore in another thread"), "{text}");
}
