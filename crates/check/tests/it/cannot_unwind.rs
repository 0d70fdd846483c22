//! A panic that cannot unwind ends the process, but not that of a search which is to outlive it: it
//! is a violation with a counterexample.
//!
//! Such a panic never ends, and the test harness would wait for it: each test is in a process of
//! its own, which exits.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::thread;

use poach_check::{
    Config, Kind, Report, Simulated, Strategy, Threads, Verdict, Violation, explore, parse_choices,
};
use poach_memory::Ordering::Relaxed;
use poach_memory::{Memory, Word};

use crate::own_process::this_test;

extern "C" fn cannot_be_left() {
    panic!("inside");
}

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

fn elsewhere(act: impl FnOnce() -> Report + Send + 'static) -> Report {
    thread::spawn(act).join().expect("a report")
}

#[test]
fn it_is_a_violation_and_can_be_had_again() {
    alone("it_is_a_violation_and_can_be_had_again", violation);
}

fn violation() {
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
        assert!(text.ends_with(", after: inside"), "{text}");
        let choices = parse_choices(&report.counterexample.expect("one").choices).unwrap();
        let replayed = Config { strategy: Strategy::Replay(choices), ..replays };
        let again = elsewhere(move || explore(&replayed, &model));
        assert_eq!(again.verdict, report.verdict);
        assert!(!again.counterexample.expect("one").rows.is_empty());
    }
}

#[test]
fn a_thread_that_has_met_one_says_so_and_others_go_on() {
    alone("a_thread_that_has_met_one_says_so_and_others_go_on", says_so);
}

fn says_so() {
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

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb");
    }
}

/// A thread panics, and another that has not ended then has to be unwound, and owns a bomb.
fn unwound(threads: &mut Threads) {
    let word = Arc::new(<Simulated as Memory>::Word::new(0));
    let read = Arc::clone(&word);
    threads.spawn("owns", move || {
        let bomb = Bomb;
        word.store(1, Relaxed);
        word.store(2, Relaxed);
        std::mem::forget(bomb);
    });
    threads.spawn("fails", move || assert!(read.load(Relaxed) != 1, "by itself"));
}

/// A thread waits for ever, and has to be unwound; nothing has been found by then.
fn unwound_first(threads: &mut Threads) {
    let word = Arc::new(<Simulated as Memory>::Word::new(0));
    let read = Arc::clone(&word);
    threads.spawn("waits", move || {
        let _bomb = Bomb;
        while word.load(Relaxed) < 2 {
            Simulated::pause();
        }
    });
    threads.spawn("writes", move || read.store(1, Relaxed));
}

#[test]
fn a_destructor_that_panics_while_its_thread_is_unwound_hides_no_verdict() {
    if role().is_some_and(|role| role == ENDS) {
        return drop(explore(&Config::sequential(), &unwound));
    }
    alone("a_destructor_that_panics_while_its_thread_is_unwound_hides_no_verdict", hides_nothing);
}

fn hides_nothing() {
    // Without buffers: both stores are steps that others can notice.
    let config = Config { outlives_aborts: true, ..Config::sequential() };
    let report = elsewhere(move || explore(&config, &unwound));
    let Verdict::Violation(Violation::Panic(text)) = &report.verdict else {
        panic!("{:?}", report.verdict);
    };
    assert_eq!(text, "fails panicked: by itself");
    assert!(report.counterexample.is_some());
    let test = "a_destructor_that_panics_while_its_thread_is_unwound_hides_no_verdict";
    let (said, _) = run(test, ENDS);
    let found = said.find("fails panicked: by itself\nchoices: ").expect(&said);
    let after = said.find("owns panicked: panic in a destructor during cleanup").expect(&said);
    assert!(found < after, "{said}");
    assert!(said.contains(", after: a bomb (it was being unwound, since"), "{said}");

    let config = Config { outlives_aborts: true, ..Config::default() };
    let report = elsewhere(move || explore(&config, &unwound_first));
    let Verdict::Violation(Violation::Panic(text)) = &report.verdict else {
        panic!("{:?}", report.verdict);
    };
    assert!(text.starts_with("waits panicked: panic in a destructor during cleanup"), "{text}");
    assert!(text.contains(", after: a bomb (it was being unwound, since"), "{text}");
}

/// A search that does not outlive the panic says what it has found.
#[test]
fn a_search_that_ends_with_the_process_prints_its_choices() {
    if role().is_some() {
        return drop(explore(&Config::default(), &model));
    }
    let (said, succeeds) = run("a_search_that_ends_with_the_process_prints_its_choices", ENDS);
    assert!(!succeeds);
    assert!(said.contains("reader panicked: panic in a function that cannot unwind"), "{said}");
    assert!(said.contains("\nchoices: "), "{said}");
}

/// What a process does that a test has started: it is to end by a model, or to exit.
const ENDS: &str = "ends";
const EXITS: &str = "exits";
const ROLE: &str = "POACH_TEST_CANNOT_UNWIND";

fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// What a process that runs `name` in this role writes to standard error, and whether it ends well.
#[track_caller]
fn run(name: &str, role: &str) -> (String, bool) {
    let output = this_test(name).env(ROLE, role).output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("running 1 test"), "there is no test {name}: {printed}");
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.success())
}

/// Runs `body` in a process of its own, which exits then.
#[track_caller]
fn alone(name: &str, body: fn()) {
    if role().is_some() {
        body();
        std::process::exit(0);
    }
    let (said, succeeds) = run(name, EXITS);
    assert!(succeeds, "{said}");
}
