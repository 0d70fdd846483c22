//! The journal of a long grid: taken up where it was cut, and never mixed with another's.

#![forbid(unsafe_code)]

use std::fs;

use poach_measure::litmus::grid::Observation;
use poach_measure::litmus::journal::{CannotResume, Entry, Journal, Plan, VERSION};
use poach_measure::litmus::program::{Outcome, Point, Target};
use poach_measure::place::Placement;

fn plan() -> Plan {
    Plan { journal: VERSION, processor: "a processor".to_owned(), rounds: 1000, seed: 1 }
}

fn entry(delta: u64) -> Entry {
    let point = Point { stores: 3, delta, target: Target::Lines };
    let outcome = Outcome { rounds: 1000, incorrect: delta, stolen: 77, ..Outcome::default() };
    Entry { placement: Placement::Cores, seen: Observation { point, outcome } }
}

fn journal(directory: &tempfile::TempDir) -> Journal {
    Journal::open(&directory.path().join("points"), &plan()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn points_are_found_again_in_their_placement() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = journal(&directory);
    first.add(entry(5)).unwrap();
    drop(first);
    let mut second = journal(&directory);
    second.add(entry(6)).unwrap();
    drop(second);
    let third = journal(&directory);
    for delta in [5, 6] {
        let wanted = entry(delta).seen;
        assert_eq!(third.find(Placement::Cores, wanted.point), Some(wanted.outcome));
        assert_eq!(third.find(Placement::Os, wanted.point), None);
    }
    assert_eq!(third.find(Placement::Cores, entry(7).seen.point), None);
}

#[test]
fn a_journal_that_was_cut_anywhere_keeps_its_whole_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("points");
    let mut whole = journal(&directory);
    whole.add(entry(5)).unwrap();
    whole.add(entry(6)).unwrap();
    drop(whole);
    let text = fs::read(&path).unwrap();
    let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches('\n').count();
    for cut in 0..text.len() {
        fs::write(&path, &text[..cut]).unwrap();
        let mut again = journal(&directory);
        let found = [5, 6].map(|delta| again.find(Placement::Cores, entry(delta).seen.point));
        let whole = lines(&text[..cut]).saturating_sub(1);
        assert_eq!(found.iter().flatten().count(), whole, "cut at {cut}");
        // What is added then stands on a line of its own.
        again.add(entry(9)).unwrap();
        drop(again);
        assert!(journal(&directory).find(Placement::Cores, entry(9).seen.point).is_some());
    }
}

#[test]
fn files_of_other_kinds_and_plans_are_left_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("points");
    let mut good = journal(&directory);
    good.add(entry(5)).unwrap();
    drop(good);
    let good = fs::read_to_string(&path).unwrap();
    let refused = |content: &[u8], plan: &Plan| {
        fs::write(&path, content).unwrap();
        let error = Journal::open(&path, plan).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), content, "{error}");
        error
    };
    for content in [&b"hello"[..], b"hello\n", b"\xff\xfe\n", b"{}\n", b"\n"] {
        assert!(matches!(refused(content, &plan()), CannotResume::NotAJournal), "{content:?}");
    }
    let damaged = good.replace("\"delta\":5", "\"delta\":-5") + "{}\n";
    let error = refused(damaged.as_bytes(), &plan());
    assert!(matches!(error, CannotResume::Damaged { line: 2 }), "{error}");
    for other in [
        Plan { rounds: 999, ..plan() },
        Plan { seed: 2, ..plan() },
        Plan { processor: "another".to_owned(), ..plan() },
    ] {
        let error = refused(good.as_bytes(), &other);
        assert!(matches!(&error, CannotResume::Other(of) if *of == plan()), "{error}");
        assert!(error.to_string().contains("a processor"), "{error}");
    }
    let error = Journal::open(directory.path(), &plan()).unwrap_err();
    assert!(matches!(error, CannotResume::File(_)), "{error}");
}
