//! Memory that nobody frees. (Freed too early: the mutants of the ring and of the hazard pointers.)

#![forbid(unsafe_code)]

use std::rc::Rc;

use poach_check::{Config, Simulated, SimulatedCell, SimulatedWord, Threads, Verdict, explore};
use poach_check::{Report, Violation};
use poach_memory::{Cell, Memory, Ordering::Relaxed, Word};

/// Two threads that look at a word; `end` is what the first does with a word and a cell of its own.
fn model(end: fn(SimulatedWord, SimulatedCell<u64>)) -> Report {
    explore(&Config::default(), &|threads: &mut Threads| {
        let shared = Rc::new(<Simulated as Memory>::Word::new(0));
        for name in ["left", "right"] {
            let shared = Rc::clone(&shared);
            threads.spawn(name, move || {
                shared.store(1, Relaxed);
                end(SimulatedWord::new(shared.load(Relaxed)), SimulatedCell::new(0));
            });
        }
        threads.finally(move || drop(shared));
    })
}

#[test]
fn what_is_dropped_is_no_leak() {
    let report = model(|word, cell| drop((word, cell)));
    assert_eq!(report.verdict, Verdict::Clean);
    assert!(report.complete);
}

#[test]
fn a_word_that_nobody_drops_is_a_leak() {
    let report = model(|word, cell| {
        drop(cell);
        std::mem::forget(word);
    });
    let Verdict::Violation(Violation::Leak(text)) = &report.verdict else {
        panic!("{:?}", report.verdict)
    };
    assert!(text.contains("freed.rs"), "{text}");
}

#[test]
fn a_cell_that_nobody_drops_is_a_leak() {
    let report = model(|word, cell| {
        drop(word);
        std::mem::forget(cell);
    });
    assert!(matches!(report.verdict, Verdict::Violation(Violation::Leak(_))));
}
