//! What safe code can ask of a measurement, with plans, points and documents that make no sense: an
//! error, a number or a sentence, and no run of machine code outside of its buffer.

#![forbid(unsafe_code)]

use core::num::NonZeroU64;
use std::sync::atomic::AtomicBool;

use poach_measure::capacity;
use poach_measure::capacity::{Behind, CannotMeasure, Capacity, Measured, Pattern, Plan};
use poach_measure::cost::{self, Cost};
use poach_measure::knee::{Finding, Sweep};
use poach_measure::litmus::CannotTest;
use poach_measure::litmus::grid::{self, Column, Observation};
use poach_measure::litmus::program::{NoPoint, Outcome, Point, Target};
use poach_measure::litmus::soak::soak;
use poach_measure::place::{self, CannotPlace, Placement, Topology};
use poach_measure::report::{Document, Host};
use poach_measure::stores::{self, Program, Reading, Step, Way};

fn short() -> Plan {
    Plan { longest: 16, rounds: 1, repeats: 1, ..Plan::standard(1) }
}

#[test]
fn plans_that_make_no_sense() {
    for plan in [
        Plan { longest: 0, ..short() },
        Plan { longest: 15, ..short() },
        Plan { longest: usize::MAX, ..short() },
        Plan { longest: 1 << 20, ..short() },
        Plan { rounds: 0, ..short() },
        Plan { rounds: usize::MAX, ..short() },
        Plan { repeats: 0, ..short() },
    ] {
        assert!(matches!(capacity::measure(plan), Err(CannotMeasure::Plan)), "{plan:?}");
        assert!(matches!(capacity::behind(plan), Err(CannotMeasure::Plan)), "{plan:?}");
    }
    assert!(!Pattern::One.about().is_empty());
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
fn the_shortest_plans_run() {
    let found: Capacity = capacity::measure(short()).unwrap();
    assert_eq!(found.patterns.len(), Pattern::ALL.len());
    assert_eq!(capacity::behind(short()).unwrap().patterns.len(), Behind::PATTERNS.len());
}

#[test]
fn sweeps_of_anything() {
    for samples in
        [vec![], vec![vec![]; 200], vec![vec![f64::NAN]; 200], vec![vec![f64::INFINITY, 1.0]; 200]]
    {
        let sweep = Sweep::new(samples);
        let levels = sweep.levels().len();
        let finding = sweep.knee(u64::MAX);
        assert!(matches!(finding, Finding::None { .. }));
        let measured = Measured { pattern: Pattern::Lines, sweep, finding };
        assert!(levels == 0 || levels == 200);
        assert_eq!(Capacity::conclude(vec![measured.clone()]).entries, None);
        assert_eq!(Behind::conclude(vec![measured]).held(), None);
    }
    assert_eq!(Capacity::conclude(vec![]).finding(), None::<&Finding>);
}

fn outcome(rounds: u64) -> Outcome {
    Outcome { rounds, incorrect: rounds, largest_duplicate: rounds, ..Outcome::default() }
}

#[test]
fn points_and_observations_of_any_numbers() {
    for text in ["", "1", "1:0", "1:512", "99999999999999999999:1", "1:1:rows", "1:1:one:1"] {
        let error: NoPoint = text.parse::<Point>().unwrap_err();
        assert!(!error.to_string().is_empty());
    }
    let most = Point { stores: u64::MAX / 2, delta: 1, target: Target::Lines };
    let seen: Vec<Observation> = [0, 1, 3]
        .map(|rounds| Observation { point: Point { stores: 7, ..most }, outcome: outcome(rounds) })
        .to_vec();
    assert!(!seen[0].violated() && seen[1].violated());
    assert_eq!(grid::smallest_bound(&seen, None), Some((4 - 1) * 8 + 1));
    assert_eq!(grid::smallest_bound(&[], Some(0)), None);
    let columns: Vec<Column> = grid::columns(&seen, 42);
    assert_eq!((columns.len(), columns[0].hidden), (1, 4));
    assert_eq!(outcome(1).and(outcome(2)).rounds, 3);
    assert_eq!(outcome(1).and(outcome(2)).largest_duplicate, 2);
    // A bound that leaves a thief nothing, and a bound that is far too small: tasks are counted.
    for pops in [NonZeroU64::MIN, NonZeroU64::MAX] {
        match soak(pops, 1, None, u64::MAX, &AtomicBool::new(false)) {
            Ok(found) => assert_eq!(found.rounds, 1),
            Err(error) => assert!(matches!(error, CannotTest::Refused(_)), "{error}"),
        }
    }
    let elsewhere = Some((usize::MAX, usize::MAX));
    assert!(soak(NonZeroU64::MIN, u64::MAX, elsewhere, 0, &AtomicBool::new(true)).is_err());
}

#[test]
fn places_that_are_not_there() {
    let nowhere = Topology { processors: vec![], cores: vec![vec![]] };
    for placement in Placement::ALL {
        assert_eq!(nowhere.pair(placement), Err(CannotPlace::OneProcessor));
    }
    let odd = Topology { processors: vec![usize::MAX, 9], cores: vec![vec![usize::MAX]] };
    assert_eq!(odd.pair(Placement::Siblings), Err(CannotPlace::NoSiblings));
    assert_eq!(odd.pair(Placement::Cores), Err(CannotPlace::OneCore));
    #[cfg(not(miri))]
    {
        assert!(place::bind(usize::MAX).is_err() && place::bind(1 << 20).is_err());
        let here = Topology::here().unwrap();
        assert_eq!(Host::here(&here).processors, here.processors);
    }
}

#[test]
fn a_document_of_nothing() {
    let nothing = Document::conclude(Host::default(), None, vec![], vec![], 0);
    assert!(nothing.pops().is_none() && nothing.profile().is_none());
    assert!(nothing.to_json().unwrap().starts_with('{'));
    for columns in [0, 1, usize::MAX] {
        assert!(!nothing.to_text(columns).is_empty());
    }
    let most = NonZeroU64::MAX;
    if let Ok(cost) = cost::measure(most) {
        let Cost { full, bounded, bounded_without_fill } = cost;
        assert!(full + bounded + bounded_without_fill > 0.0);
    }
}

#[test]
fn programs_that_are_none() {
    for bytes in [&b""[..], b"\x7fELF", b"\x7fELF\x01\x01\x01", &[0x7f; 4096]] {
        assert!(Program::read(bytes).is_err());
        assert!(stores::analyse(bytes, "pop").is_err());
    }
    // What comes of an analysis is for everybody to write down.
    let step = Step {
        address: 0,
        function: String::new(),
        instruction: String::new(),
        stores: u64::MAX,
        unknown: None,
    };
    let way = Way { stores: 0, on_stack: 1, steps: vec![step], end: stores::End::Pop };
    assert_ne!(Reading::Certain, Reading::Likely);
    assert_eq!(way.clone(), way);
}
