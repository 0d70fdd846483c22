//! What safe code can ask of the suites, with documents, plans, figures, machines and costs that
//! make no sense: an error or a number, or the panic that the documentation names.

#![forbid(unsafe_code)]

use std::panic::catch_unwind;

use poach_bench::figure::{FIGURES, PaperFigure, Workers, text};
use poach_bench::{
    Better, Case, Command, Document, Failure, Machine, Peer, Plan, Ratio, Request, Row, SCHEMA,
    Sample, Session, Simulate, Size, Suite, Summary, Unit, figure, find, geometric_mean,
    is_bounded, percentile, ratio, runs, suites, table, why, words,
};
use poach_memory::Delta;

/// A suite of one workload, with the samples that it is given.
struct Told(Vec<f64>);

impl Suite for Told {
    fn name(&self) -> &'static str {
        "told"
    }

    fn about(&self) -> &'static str {
        "samples as they are told"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let values = self.0.clone();
        let all = usize::try_from(request.size.pick(1, 2, 3, 4)).expect("a small number");
        let mut case = Case::new("value", "system", all, Unit::SECONDS, move || {
            let mut left = values.into_iter().cycle();
            Ok(move || Ok(Sample::from(left.next().unwrap_or(0.0))))
        });
        case = case.computed();
        vec![case]
    }
}

fn plan() -> Plan {
    Plan { workers: vec![1], rounds: 2, budget: None, size: Size::Tiny, ..Plan::quick() }
}

fn row(system: &str, samples: Vec<f64>) -> Row {
    Row {
        suite: "made-up".into(),
        workload: "a".into(),
        system: system.into(),
        workers: usize::MAX,
        unit: "s".into(),
        better: Better::Higher,
        rounds: vec![u64::MAX; samples.len()],
        repetitions: vec![0; samples.len()],
        samples,
        min: f64::NAN,
        median: f64::INFINITY,
        p10: -1.0,
        p90: 0.0,
        counters: [("why//".to_owned(), f64::NAN)].into(),
        counter_samples: [("why//".to_owned(), vec![])].into(),
        oversubscribed: true,
    }
}

fn document(rows: Vec<Row>) -> Document {
    Document {
        schema: u32::MAX,
        machine: Machine { cores: 0, memory_bytes: u64::MAX, ..Machine::default() },
        size: "<none>".into(),
        complete: true,
        commands: vec![Command {
            line: "\u{1b}[31m".into(),
            began: 0,
            samples: u64::MAX,
            load: [f64::NAN; 2],
            steal_percent: f64::INFINITY,
        }],
        rows,
        failures: vec![
            Failure {
                suite: String::new(),
                workload: String::new(),
                system: String::new(),
                workers: 0,
                message: String::new(),
            };
            3
        ],
    }
}

#[test]
fn documents_of_anything_are_drawn_or_refused() {
    let base = row("sequential", vec![0.0; 9]);
    let ours = row("ours", vec![f64::NAN, -1.0, f64::INFINITY, 1.0]);
    assert_eq!((ours.over(&base), ours.gain(&base)), (None, None));
    assert!(base.gain(&ours).is_none_or(|gain| !gain.value.is_nan() || gain.low > 0.0));

    let document = document(vec![base.clone(), ours.clone(), row("none", vec![])]);
    assert_eq!(document.causes().len(), 1);
    assert_eq!(document.causes()[0].1, 2);
    // Its sequential program has another number of workers.
    assert!(document.sequential(&ours).is_none());
    assert_eq!(document.beside(&ours).map(|row| row.system.as_str()), Some("sequential"));
    assert!(document.row("made-up", "a", "ours", 1).is_none());

    assert!(!table::render(&document, 0).is_empty());
    text(&document);
    why(&document);
    // What no path of a machine can hold is no number in JSON, and is not read back as one.
    let kept = document.to_json().and_then(|text| Ok(serde_json::from_str::<Document>(&text)?));
    assert!(kept.is_err(), "a document without numbers was read");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("samples.json");
    document.save(&path).unwrap();
    let error = Document::load(&path).unwrap_err();
    assert!(format!("{error:#}").contains("samples.json"), "{error:#}");
    assert!(document.save(&directory.path().join("none/samples.json")).is_err());
}

#[test]
fn a_document_of_numbers_is_drawn_whatever_they_are() {
    let directory = tempfile::tempdir().unwrap();
    for samples in
        [vec![], vec![0.0; 4], vec![-1.0, 1.0], vec![f64::MAX; 5], vec![f64::MIN_POSITIVE]]
    {
        for better in [Better::Lower, Better::Higher] {
            let rows = ["sequential", "split", "\"<&"].map(|system| Row {
                better,
                workers: 1,
                min: 0.0,
                median: samples.first().copied().unwrap_or(0.0),
                counters: [("steals".to_owned(), 0.0)].into(),
                ..row(system, samples.clone())
            });
            let document =
                Document { machine: Machine::here(), schema: SCHEMA, ..document(rows.to_vec()) };
            assert!(figure::write(&document, directory.path()).is_ok_and(|files| files.len() > 1));
            assert!(figure::write(&document, &directory.path().join("none")).is_err());
        }
    }
}

#[test]
fn statistics_of_anything() {
    assert_eq!(Summary::of(&[]), None);
    assert_eq!(Summary::of(&[2.0, 1.0]).map(|of| (of.min, of.median)), Some((1.0, 1.5)));
    assert!(catch_unwind(|| Summary::of(&[f64::NAN, 1.0])).is_err());
    assert!(catch_unwind(|| percentile(&[], 0.5)).is_err());
    for share in [-0.1, 1.1, f64::NAN] {
        assert!(catch_unwind(|| percentile(&[1.0, 2.0], share)).is_err(), "{share}");
    }
    for (ours, base) in [(vec![], vec![1.0]), (vec![1.0], vec![]), (vec![1.0], vec![0.0])] {
        assert_eq!(ratio(&ours, &base, true), None);
    }
    // Samples without a partner in the other list make no pair.
    assert!(ratio(&[1.0; 9], &[2.0; 5], true).is_some());
    let none = ratio(&[f64::NAN; 5], &[1.0; 5], true).unwrap();
    assert!(none.value.is_nan());
    let inverse = Ratio { value: 0.0, low: 0.0, high: f64::INFINITY }.inverse();
    assert!(inverse.value.is_infinite() && inverse.low == 0.0);
    for ratios in [vec![], vec![0.0], vec![-1.0], vec![f64::NAN]] {
        assert_eq!(geometric_mean(ratios), None);
    }
}

#[test]
fn sessions_of_samples_that_are_no_times() {
    for values in [vec![], vec![0.0], vec![-1.0, 1.0], vec![f64::MAX]] {
        let session = Session::new(plan());
        session.run_as(&plan(), &Told(values), &|_| {}).unwrap();
        assert_eq!(session.document().rows[0].samples.len(), 2);
    }
    let session = Session::new(plan());
    let other = Plan { size: Size::Quick, ..plan() };
    assert!(session.run_as(&other, &Told(vec![1.0]), &|_| {}).is_err());
    for plan in [
        Plan { workers: vec![], ..plan() },
        Plan { workers: vec![0], ..plan() },
        Plan { rounds: 0, ..plan() },
        Plan { systems: vec!["none".into()], ..plan() },
        Plan { workloads: vec!["none".into()], ..plan() },
        Plan { peers: vec![Peer { name: "system".into(), command: String::new() }], ..plan() },
    ] {
        assert!(plan.cases(&Told(vec![1.0])).is_err(), "{plan:?}");
    }
    let peers = vec![Peer { name: "mine".into(), command: "exit 1".into() }];
    assert_eq!(Plan { peers, ..plan() }.systems_there(&Told(vec![])), ["system", "mine"]);
    assert!(Plan { workers: vec![0], ..plan() }.systems_there(&Told(vec![])).is_empty());
}

/// This program promises nothing of the machine, so only a known bound is used.
#[test]
fn a_queue_whose_bound_nobody_promises_is_left_out() {
    let known = Delta::for_this_processor().is_ok();
    for suite in suites() {
        let cases = Plan { workers: vec![1, 2], ..plan() }.cases(suite.as_ref()).unwrap();
        let bounded = cases.iter().filter(|case| is_bounded(suite.name(), &case.system)).count();
        let of_pops = ["fork-join", "graphs", "deque"].contains(&suite.name());
        assert_eq!(bounded > 0, of_pops && known, "{}", suite.name());
        let of_profile = |case: &Case| case.system == "ff-the-measured";
        assert!(!cases.iter().any(of_profile), "{}", suite.name());
    }
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a payload that panics");
    }
}

/// A suite whose first case panics with a payload that panics again.
struct Bombs;

impl Suite for Bombs {
    fn name(&self) -> &'static str {
        "bombs"
    }

    fn about(&self) -> &'static str {
        "a payload that panics"
    }

    fn cases(&self, _: &Request) -> Vec<Case> {
        let bomb = || -> anyhow::Result<()> { std::panic::panic_any(Bomb) };
        let whole = || Case::timed("a", "whole", 1, || Ok(()));
        vec![Case::timed("a", "bomb", 1, bomb), whole()]
    }
}

#[test]
fn a_case_whose_payload_panics_fails_and_the_others_go_on() {
    let session = Session::new(plan());
    session.run(&Bombs, &|_| {}).unwrap();
    let document = session.document();
    assert_eq!(document.failures.len(), 1);
    assert_eq!(document.failures[0].message, "it panicked: with something that is no text");
    assert_eq!(document.rows[0].samples.len(), 2);
}

#[test]
fn figures_suites_and_machines_that_there_are_not() {
    for name in ["", "none", "../lace-6", "\0"] {
        assert!(PaperFigure::find(name).is_err());
        assert!(find(name).is_err());
        assert!(Simulate::new(name).is_err());
    }
    for memory in ["genoa:", "genoa:x", "genoa:-1", ":", "genoa:18446744073709551616"] {
        assert!(Simulate::new(memory).is_err(), "{memory}");
    }
    let suite = Simulate::new("xeon").unwrap();
    let request = Request { size: Size::Tiny, workers: vec![1], thread_stack: 0 };
    assert!(suite.machine().processors > 0 && !suite.cases(&request).is_empty());
    for suite in suites() {
        assert_eq!(find(suite.name()).unwrap().about(), suite.about());
    }
    for figure in FIGURES.iter() {
        let found = PaperFigure::find(figure.name).unwrap();
        assert!(found.suite().is_ok(), "{}", figure.name);
        assert!(!found.all_systems().is_empty());
        assert!(!found.shows("none", "none", 0));
        for cores in [0, 1, usize::MAX] {
            let workers = found.workers(cores);
            assert!(workers.iter().all(|count| found.has(*count)), "{} {cores}", figure.name);
        }
        assert!(found.has(1) || found.workers != Workers::One);
    }
}

#[test]
fn names_of_runs_and_of_machines() {
    assert_eq!(
        (runs::day(0).as_str(), runs::day(951_782_400).as_str()),
        ("1970-01-01", "2000-02-29")
    );
    let nobody = Machine::default();
    assert_eq!(nobody.source(), "commit unknown");
    let odd = Machine { cpu: "../../\0 \u{1f980}".into(), ..nobody };
    let root = std::path::Path::new("root");
    let directory = runs::directory(root, &odd);
    assert_eq!(directory.parent(), Some(root), "{}", directory.display());
    assert!(!Machine::here().arch.is_empty());
    assert_eq!((words::workers(0), words::workers(1)), ("0 workers".into(), "1 worker".into()));
}
