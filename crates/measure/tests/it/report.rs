//! The report: what it concludes, and its text.

#![forbid(unsafe_code)]

use poach_measure::capacity::{Behind, Capacity, Measured, Pattern};
use poach_measure::knee::Sweep;
use poach_measure::litmus::classic::Counts;
use poach_measure::litmus::grid::{self, Observation};
use poach_measure::litmus::program::{Outcome, Point, Target};
use poach_measure::place::Placement;
use poach_measure::report::{Document, Host, Run};
use poach_memory::delta::hidden_pops;

/// The sweeps of a processor with `entries` entries.
fn sweeps(entries: usize) -> Capacity {
    let of = |pattern, slope: f64| {
        let time = |length: usize| match (pattern, length > entries) {
            (Pattern::None, _) | (_, false) => 181.1,
            _ => 186.0 + slope * (length - entries) as f64,
        };
        let sweep = Sweep::new((1..=160).map(|length| vec![time(length); 3]).collect());
        Measured { pattern, finding: sweep.knee(1), sweep }
    };
    let slopes = [0.25, 0.13, 0.13, 0.0];
    Capacity::conclude(Pattern::ALL.into_iter().zip(slopes).map(|(p, s)| of(p, s)).collect())
}

/// The same processor behind a store that misses: it has room for `stores` stores, and for more
/// stores that share an entry.
fn behind(stores: usize) -> Behind {
    let of = |pattern, end: usize| {
        let time = |length: usize| if length > end { 461.0 } else { 328.0 };
        let sweep = Sweep::new((1..=160).map(|length| vec![time(length); 3]).collect());
        Measured { pattern, finding: sweep.knee(1), sweep }
    };
    let ends = [stores, stores + 24, usize::MAX];
    Behind::conclude(Behind::PATTERNS.into_iter().zip(ends).map(|(p, end)| of(p, end)).collect())
}

/// What a processor does whose stores are held back in `entries` and in `egress` more.
fn litmus(entries: u64, egress: u64) -> Vec<Run> {
    let see = |point: Point| {
        let hidden = match (point.stores, point.target) {
            (0, _) => 200,
            (stores, Target::Lines) => grid::safe_delta(entries + egress, stores),
            (stores, _) => hidden_pops(entries, egress, stores).unwrap().get(),
        };
        let twice = hidden.saturating_sub(point.delta);
        let outcome = Outcome {
            rounds: 1_000_000,
            incorrect: twice,
            duplicates: twice * twice,
            largest_duplicate: twice,
            stolen: 40_000_000,
            ..Outcome::default()
        };
        Observation { point, outcome }
    };
    let points: Vec<Observation> = grid::points(entries, false).into_iter().map(see).collect();
    [Placement::Os, Placement::Cores]
        .map(|placement| Run { placement, points: points.clone() })
        .into()
}

fn host() -> Host {
    Host {
        cpu: "A <processor> & 'its' \"name\"".to_owned(),
        identity: Some("AMD family 0x19 model 0x11".to_owned()),
        kernel: "linux 6.1".to_owned(),
        processors: vec![0, 1],
        virtual_machine: true,
        documented: Some((64, "Zen 4".to_owned())),
        seen_before: Some(73),
    }
}

fn document(egress: u64) -> Document {
    let classic = vec![
        Counts { test: "SB", runs: 200_704, seen: 2795, allowed: true },
        Counts { test: "MP", runs: 200_704, seen: 0, allowed: false },
    ];
    Document::conclude(host(), Some(sweeps(64)), litmus(64, egress), classic, 1)
}

#[test]
fn the_bound_and_the_deltas_are_those_of_the_entries() {
    let document = document(9);
    assert_eq!((document.capacity, document.bound, document.shown), (Some(64), Some(73), Some(73)));
    let deltas = (1..=8).map(|x| hidden_pops(64, 9, x).unwrap().get());
    assert_eq!(document.safe_delta, deltas.collect::<Vec<_>>());
    assert!(document.well() && !document.contradictions.is_empty());
    let said = document.verdict().join("\n");
    assert!(said.contains("64 entries, as is documented for Zen 4"), "{said}");
    assert!(said.contains("at least 73") && said.contains("The bound is 73 or more"), "{said}");
}

#[test]
fn the_boundary_is_predicted_from_the_bound_and_both_lines_are_drawn() {
    let document = document(9);
    let column = |stores, target| {
        let is = |c: &&grid::Column| (c.stores, c.target) == (stores, target);
        *document.columns.iter().find(is).unwrap()
    };
    let one = column(1, Target::Lines);
    assert_eq!((one.predicted, one.by_capacity, one.highest_violation), (37, 33, Some(36)));
    // On such a machine no delta that is predicted to be safe went wrong.
    for column in document.columns.iter().filter(|column| column.stores > 0) {
        assert!(
            column.highest_violation.is_none_or(|wrong| wrong < column.predicted),
            "{column:?}"
        );
    }
    let text = document.to_text(140);
    assert!(text.contains("highest 36, predicted 37 (capacity 33)"), "{text}");
    let line = text.lines().find(|line| line.starts_with("L  1 lines")).unwrap();
    assert!(line.contains(':') && line.contains('|'), "{line}");
}

#[test]
fn what_is_held_behind_a_miss_counts_though_no_thief_saw_it() {
    let sweeps = Capacity { behind: Some(behind(72)), ..sweeps(64) };
    // A machine so busy that thief and worker hardly meet.
    let document = Document::conclude(host(), Some(sweeps.clone()), litmus(64, 1), Vec::new(), 1);
    assert_eq!((document.shown, document.held, document.bound), (Some(65), Some(73), Some(73)));
    assert!(document.well());
    let said = document.verdict().join("\n");
    assert!(said.contains("room for 72 more, so 73 are on their way at once"), "{said}");
    let text = document.to_text(100);
    assert!(
        text.contains("stores to neighbouring words") && text.contains("no end to it"),
        "{text}"
    );
    assert!(!text.contains("NaN"), "{text}");
    // More stores than the table says are an alarm, whichever probe saw them.
    let more = Capacity { behind: Some(behind(74)), ..sweeps };
    let document = Document::conclude(host(), Some(more), litmus(64, 1), Vec::new(), 1);
    assert!(!document.well() && document.verdict().join(" ").contains("more than the 73"));
}

#[test]
fn a_busy_machine_makes_no_profile_below_what_is_known() {
    let document = Document::conclude(host(), Some(sweeps(64)), litmus(64, 1), Vec::new(), 1);
    assert_eq!((document.shown, document.bound), (Some(65), Some(73)));
    let said = document.verdict().join("\n");
    assert!(
        said.contains("73 or more, by all that was seen here and on others of its kind"),
        "{said}"
    );
    let unknown = Host { documented: None, seen_before: None, ..host() };
    let document = Document::conclude(unknown, Some(sweeps(64)), litmus(64, 1), Vec::new(), 1);
    assert_eq!(document.bound, Some(65));
    // Without a search for the bound there is no bound in the report.
    let classic = Document::conclude(host(), None, Vec::new(), Vec::new(), 1);
    assert_eq!((classic.bound, classic.safe_delta.len()), (None, 0));
}

#[test]
fn more_than_the_table_says_is_an_alarm() {
    let document = document(11);
    assert_eq!(document.bound, Some(75));
    assert!(!document.well());
    let said = document.verdict().join("\n");
    assert!(said.contains("more than the 73 of Poach's table"), "{said}");
}

#[test]
fn a_grid_without_violations_makes_no_profile() {
    let mut clean = litmus(64, 9);
    for observation in clean.iter_mut().flat_map(|run| &mut run.points) {
        observation.outcome = Outcome { rounds: 1000, ..Outcome::default() };
    }
    let document = Document::conclude(host(), Some(sweeps(64)), clean, Vec::new(), 1);
    assert_eq!((document.shown, document.profile()), (None, None));
    assert!(!document.well());
    assert!(document.verdict().join(" ").contains("No violation was seen"));
}

#[test]
fn an_empty_document_is_a_text_too() {
    let nothing = Document::conclude(Host::default(), None, Vec::new(), Vec::new(), 1);
    assert!(!nothing.to_text(0).is_empty());
    assert_eq!((nothing.capacity, nothing.profile()), (None, None));
}
