//! Simulated threads that panic with a value whose destructor panics, uses simulated memory, or
//! never ends.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::panic::panic_any;
use std::rc::Rc;

use poach_memory::{Memory, Ordering::Relaxed, Word};
use poach_simulate::{Coherent, CoherentWord, Description, Failure, Simulation};

thread_local! {
    static WORD: RefCell<Option<Rc<CoherentWord>>> = const { RefCell::new(None) };
}

fn word() -> Rc<CoherentWord> {
    WORD.with_borrow(Clone::clone).expect("the test has made it")
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb");
    }
}

/// What is said of a thread that panics with it.
const A_BOMB: &str =
    "a fails on processor 0 panicked: a value that is no text, whose destructor panicked: a bomb";

/// Panics with another one when it is dropped.
struct Endless;

impl Drop for Endless {
    fn drop(&mut self) {
        panic_any(Endless);
    }
}

/// Waits when it is dropped for what another thread stores.
struct Waits;

impl Drop for Waits {
    fn drop(&mut self) {
        let word = word();
        while word.load(Relaxed) == 0 {
            Coherent::pause();
        }
    }
}

/// What a simulation says in which one thread panics by `panic` while another one works. The next
/// simulation of this thread of the system has an outcome.
fn said(panic: fn()) -> String {
    let machine = Description::shipped("lace").unwrap();
    WORD.set(Some(Rc::new(CoherentWord::new(0))));
    let mut simulation = Simulation::new(&machine);
    simulation.thread(0, "fails", panic);
    simulation.thread(1, "works", || {
        for _ in 0..1000 {
            Coherent::pause();
        }
        word().store(1, Relaxed);
    });
    let failure = simulation.run().expect_err("a thread has panicked");
    assert!(matches!(failure, Failure::Panic { processor: 0, role: "fails", .. }), "{failure:?}");
    let mut next = Simulation::new(&machine);
    next.thread(0, "works", || word().store(1, Relaxed));
    next.run().expect("nothing is left of the one before");
    WORD.set(None);
    failure.to_string()
}

#[test]
fn the_destructor_of_what_a_thread_panics_with_panics() {
    assert_eq!(said(|| panic_any(Bomb)), A_BOMB);
    assert_eq!(
        said(|| panic_any(Endless)),
        "a fails on processor 0 panicked: a value that is no text, whose destructor panicked: a value that is no text"
    );
}

#[test]
fn the_destructor_of_what_a_thread_panics_with_waits_for_another_thread() {
    assert_eq!(
        said(|| panic_any(Waits)),
        "a fails on processor 0 panicked: a value that is no text"
    );
}

#[test]
fn a_destructor_that_a_panic_runs_waits_for_another_thread() {
    let text = said(|| {
        let _waits = Waits;
        panic!("by itself");
    });
    assert_eq!(text, "a fails on processor 0 panicked: by itself");
}

/// What a thread owns that never ends is leaked, and the panic that it is in the midst of never
/// ends. Simulations go on all the same.
#[test]
fn a_destructor_that_a_panic_runs_waits_for_ever() {
    let simulate = || {
        let machine = Description::shipped("lace").unwrap();
        WORD.set(Some(Rc::new(CoherentWord::new(0))));
        let mut simulation = Simulation::new(&machine);
        simulation.limit(10_000);
        simulation.thread(0, "fails", || {
            let _waits = Waits;
            panic!("by itself");
        });
        let failure = simulation.run().expect_err("it does not end");
        (failure, said(|| panic_any(Bomb)))
    };
    let (failure, next) = std::thread::spawn(simulate).join().expect("no panic");
    assert_eq!(failure, Failure::Limit { accesses: 10_000 });
    assert_eq!(next, A_BOMB);
}
