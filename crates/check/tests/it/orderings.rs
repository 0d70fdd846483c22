//! Orderings and fences played weaker than they are written: a weakening does what it says.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::sync::Arc;

use poach_check::{Config, Demand, Orderings, Simulated, Threads, Weakening, explore, observe};
use poach_memory::Ordering::{AcqRel, Acquire, Relaxed, Release};
use poach_memory::{Memory, Word};

type SimulatedWord = <Simulated as Memory>::Word;

/// A message by a store and a load, then by two read-modify-writes; and fenced store buffering.
fn passing(threads: &mut Threads) {
    let words = Arc::new([(); 4].map(|()| SimulatedWord::new(0)));
    let to = Arc::clone(&words);
    threads.spawn("writer", move || {
        to[0].store(1, Relaxed);
        to[1].store(1, Release);
        to[2].store(1, Relaxed);
        Simulated::full();
        observe(0, to[3].load(Relaxed));
    });
    threads.spawn("reader", move || {
        let heard = words[1].compare_exchange(1, 2, AcqRel, Acquire).is_ok();
        observe(1, 2 * u64::from(heard) + words[0].load(Relaxed));
        words[3].store(1, Relaxed);
        Simulated::full();
        observe(2, words[2].load(Relaxed));
    });
}

fn outcomes(orderings: Orderings) -> BTreeSet<Vec<u64>> {
    explore(&Config { orderings, ..Config::c11() }, &passing).outcomes
}

fn demand(kind: Demand, number: usize) -> Weakening {
    let report = explore(&Config { orderings: Orderings::Listed, ..Config::c11() }, &passing);
    let mut of_kind = report.demands.into_iter().filter(|weakening| weakening.demand == kind);
    of_kind.nth(number).expect("there are so many")
}

#[test]
fn what_is_asked_for_is_listed_and_can_be_left_out() {
    let report = explore(&Config { orderings: Orderings::Listed, ..Config::c11() }, &passing);
    let listed: Vec<&str> = report.demands.iter().map(|all| all.demand.name()).collect();
    let expected = ["release", "fence", "acquire", "failure-acquire", "release", "fence"];
    assert_eq!(listed, expected, "{:?}", report.demands);
    assert!(report.demands.iter().all(|all| all.file.ends_with("tests/it/orderings.rs")));
    let written = outcomes(Orderings::AsWritten);
    assert_eq!(written, report.outcomes);
    // The reader of the flag sees the message; and one of the two sees the other's store.
    let missed = |outcomes: &BTreeSet<Vec<u64>>| outcomes.iter().any(|seen| seen[1] == 2);
    let both = |outcomes: &BTreeSet<Vec<u64>>| outcomes.iter().any(|seen| seen[0] + seen[2] == 0);
    assert!(!missed(&written) && !both(&written));
    for kind in [Demand::Acquire, Demand::Release] {
        let weaker = outcomes(Orderings::Without(demand(kind, 0)));
        assert!(missed(&weaker) && !both(&weaker), "{kind:?}");
    }
    for number in 0..2 {
        let weaker = outcomes(Orderings::Without(demand(Demand::Fence, number)));
        assert!(both(&weaker) && !missed(&weaker), "{number}");
    }
    // Nobody goes by what a failed exchange has acquired, nor by what the reader releases.
    assert_eq!(outcomes(Orderings::Without(demand(Demand::FailureAcquire, 0))), written);
    assert_eq!(outcomes(Orderings::Without(demand(Demand::Release, 1))), written);
}

#[test]
fn demands_have_names_and_places() {
    for kind in [Demand::Acquire, Demand::FailureAcquire, Demand::Release, Demand::Fence] {
        assert_eq!(Demand::named(kind.name()), Some(kind));
        assert!(demand(kind, 0).to_string().ends_with(kind.name()));
    }
    assert_eq!(Demand::named("relaxed"), None);
}
