//! A panic that cannot unwind ends the process, but not that of a search which is to outlive it: it is a violation with a
//! counterexample.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::thread;

use poach_explore::{
    Config, Kind, Report, Simulated, Strategy, Threads, Verdict, Violation, explore, parse_choices,
};
use poach_memory::Ordering::Relaxed;
use poach_memory::{Memory, Word};

extern "C" fn cannot_be_left() {
    panic!("inside");
}

/// A thread that reads the other's store does what would end the process.
fn model(threads: &mut Threads) {
    let word = Arc::new(<Simulated as Memory>::Word::new(0));
    let read = Arc::clone(&word);
    threads.spawn("writer", move || word.store(1, Relaxed));
    threads.spawn("reader", move || {
        if read.load(Relaxed) == 1 {
            cannot_be_left();
        }
    });
}

/// In another thread of the system.
fn elsewhere(act: impl FnOnce() -> Report + Send + 'static) -> Report {
    thread::spawn(act).join().expect("a report")
}

fn it_is_a_violation_and_can_be_had_again() {
    for config in [Config::default(), Config::sequential(), Config::c11()] {
        let config = Config { outlives_aborts: true, ..config };
        let replays = config.clone();
        let report = elsewhere(move || explore(&config, &model));
        let Verdict::Violation(Violation::Panic(text)) = &report.verdict else {
            panic!("{:?}", report.verdict);
        };
        assert!(
            text.starts_with("reader panicked: panic in a function that cannot unwind"),
            "{text}"
        );
        let choices = parse_choices(&report.counterexample.expect("one").choices).unwrap();
        let replayed = Config { strategy: Strategy::Replay(choices), ..replays };
        let again = elsewhere(move || explore(&replayed, &model));
        assert_eq!(again.verdict, report.verdict);
        assert!(!again.counterexample.expect("one").rows.is_empty());
    }
}

fn a_thread_that_has_met_one_says_so_and_others_go_on() {
    let second = elsewhere(|| {
        explore(&Config { outlives_aborts: true, ..Config::default() }, &model);
        explore(&Config::default(), &|_: &mut Threads| {})
    });
    let Verdict::Violation(found) = second.verdict else { panic!("{:?}", second.verdict) };
    assert_eq!(found.kind(), Kind::Panic);
    assert!(found.to_string().contains("explore in another thread"), "{found}");
    let other = elsewhere(|| explore(&Config::default(), &|_: &mut Threads| {}));
    assert_eq!(other.verdict, Verdict::Clean);
}

/// In a process of its own: a search that does not outlive the panic says what it has found.
fn a_search_that_ends_with_the_process_prints_its_choices() {
    let program = std::env::current_exe().expect("a path");
    let output = std::process::Command::new(program).arg(ENDS).output().expect("it runs");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("reader panicked: panic in a function that cannot unwind"), "{said}");
    assert!(said.contains("\nchoices: "), "{said}");
}

/// The argument that makes this program end by its model.
const ENDS: &str = "--ends";

fn main() {
    if std::env::args().nth(1).as_deref() == Some(ENDS) {
        explore(&Config::default(), &model);
    }
    it_is_a_violation_and_can_be_had_again();
    a_thread_that_has_met_one_says_so_and_others_go_on();
    a_search_that_ends_with_the_process_prints_its_choices();
}
