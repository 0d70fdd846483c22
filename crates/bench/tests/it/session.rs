//! A session: interleaving, failing, stopping, resuming, and what it refuses.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{bail, ensure};
use poach_bench::{
    Case, Document, Event, Plan, Request, Sample, Session, Suite, Unit, figure, need_memory, table,
};

/// A suite of two workloads with made-up samples; one system of the first fails at its third.
struct MadeUp;

impl Suite for MadeUp {
    fn name(&self) -> &'static str {
        "made-up"
    }

    fn about(&self) -> &'static str {
        "figures for a test"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let steady = |workload, system, workers: usize, first: f64| {
            Case::new(workload, system, workers, Unit::SECONDS, move || {
                let mut next = first;
                Ok(move || {
                    next += 1.0;
                    Ok(Sample::from(next - 1.0).count("steals", next * 10.0))
                })
            })
        };
        let mut cases = vec![steady("alpha", "sequential", 1, 1.0)];
        for workers in &request.workers {
            cases.push(steady("alpha", "split", *workers, 11.0));
            cases.push(Case::new("alpha", "brittle", *workers, Unit::SECONDS, || {
                let mut left = 3;
                Ok(move || {
                    left -= 1;
                    ensure!(left > 0, "the result came out as 41, not 42");
                    Ok(Sample::from(5.0))
                })
            }));
        }
        cases.push(steady("beta", "split", 1, 3.0));
        cases.push(Case::timed("beta", "panics", 1, || panic!("the stack of {} is full", 7)));
        cases.push(Case::new("beta", "huge", 1, Unit::SECONDS, || {
            need_memory(u64::MAX)?;
            Ok(|| bail!("no machine has that much memory"))
        }));
        cases
    }
}

fn plan() -> Plan {
    Plan { workers: vec![2], rounds: 3, budget: None, ..Plan::quick() }
}

#[test]
fn the_systems_of_a_workload_take_turns() {
    let session = Session::new(plan());
    let order = Mutex::new(Vec::new());
    session
        .run(&MadeUp, &|event| {
            if let Event::Sampling(workload, system, _) = event {
                order.lock().unwrap().push(format!("{workload} {system}"));
            }
        })
        .unwrap();
    // A round to warm up, in the order of the suite, and three that count, each in an order of its
    // own; the brittle one leaves when it fails.
    let alpha = ["alpha brittle", "alpha sequential", "alpha split"];
    let order = order.lock().unwrap();
    assert_eq!(order[..3], ["alpha sequential", "alpha split", "alpha brittle"]);
    for (from, there) in [(3, &alpha[..]), (6, &alpha), (9, &alpha[1..])] {
        let mut round = order[from..from + there.len()].to_vec();
        round.sort_unstable();
        assert_eq!(round, there);
    }
    let beta = ["beta split", "beta panics", "beta split", "beta split", "beta split"];
    assert_eq!(order[11..], beta);
    assert_eq!(session.document().rows[0].rounds, [0, 1, 2]);
}

#[test]
fn the_first_sample_warms_up_and_the_rest_are_kept() {
    let session = Session::new(plan());
    session.run(&MadeUp, &|_| {}).unwrap();
    let document = session.document();
    assert!(document.complete);
    let row = document.row("made-up", "alpha", "split", 2).unwrap();
    assert_eq!(row.samples, [12.0, 13.0, 14.0]);
    assert_eq!((row.min, row.median, row.unit.as_str()), (12.0, 13.0, "s"));
    assert!((row.p10 - 12.2).abs() < 1e-9 && (row.p90 - 13.8).abs() < 1e-9);
    assert_eq!(row.counters.get("steals"), Some(&140.0));
    assert_eq!(row.counter_samples["steals"], [130.0, 140.0, 150.0]);
}

#[test]
fn a_case_that_fails_is_said_and_the_others_go_on() {
    let session = Session::new(plan());
    session.run(&MadeUp, &|_| {}).unwrap();
    let document = session.document();
    let failures: Vec<_> =
        document.failures.iter().map(|f| (f.system.as_str(), f.message.as_str())).collect();
    assert_eq!(failures.len(), 3);
    assert_eq!(failures[0], ("brittle", "the result came out as 41, not 42"));
    assert_eq!(failures[1], ("panics", "it panicked: the stack of 7 is full"));
    assert_eq!(failures[2].0, "huge");
    if cfg!(target_os = "linux") {
        let said = "its input needs 17592186044415 MiB of memory";
        assert!(failures[2].1.starts_with(said), "{failures:?}");
    }
    let text = table::render(&document, 100);
    assert!(text.contains("failed: alpha on brittle with 2 workers: the result came out as 41"));
}

#[test]
fn a_run_cut_short_leaves_a_whole_document_and_can_be_taken_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("samples.json");
    let session = Session::new(plan());
    let taken = RefCell::new(0);
    session
        .run(&MadeUp, &|event| {
            if matches!(event, Event::Sampling(..)) {
                *taken.borrow_mut() += 1;
                // Into the first round that counts: the last sample that is taken is the 5th.
                if *taken.borrow() == 5 {
                    session.stop();
                }
            }
        })
        .unwrap();
    let cut = session.document();
    assert!(!cut.complete);
    // Two of the three systems of the first workload, whichever came first in the round.
    assert_eq!(cut.rows.len(), 2);
    assert!(cut.rows.iter().all(|row| row.workload == "alpha" && row.samples.len() == 1));
    assert!(table::render(&cut, 100).contains("cut short"));
    cut.save(&path).unwrap();

    let session = Session::resume(plan(), Document::load(&path).unwrap()).unwrap();
    session.run(&MadeUp, &|_| {}).unwrap();
    let whole = session.document();
    assert!(whole.complete);
    let row = whole.row("made-up", "alpha", "split", 2).unwrap();
    assert_eq!(row.samples.len(), 3);
    for row in &cut.rows {
        let again = whole.row("made-up", "alpha", &row.system, row.workers).unwrap();
        assert_eq!(again.samples[..1], row.samples[..]);
    }

    // Cases whose samples are all there are not run again.
    let session = Session::resume(plan(), whole.clone()).unwrap();
    let sampled = RefCell::new(Vec::new());
    session
        .run(&MadeUp, &|event| {
            if let Event::Sampling(_, system, _) = event {
                sampled.borrow_mut().push(system);
            }
        })
        .unwrap();
    assert!(!sampled.borrow().contains(&"split".to_owned()), "{sampled:?}");
    let again = session.document();
    for row in whole.rows.iter().filter(|row| row.system != "brittle") {
        assert!(again.rows.contains(row), "{row:?}");
    }
}

#[test]
fn another_machine_or_size_cannot_be_taken_up() {
    let session = Session::new(plan());
    let mut other = session.document();
    other.machine.cpu = "abacus".to_owned();
    let error = Session::resume(plan(), other).unwrap_err().to_string();
    assert!(error.contains("another machine or build (abacus"), "{error}");
    let mut other = session.document();
    other.machine.commit = "0123456789ab".to_owned();
    other.machine.dirty = String::new();
    let error = Session::resume(plan(), other).unwrap_err().to_string();
    assert!(error.contains("commit 0123456789ab) than this one"), "{error}");
    let mut other = session.document();
    other.machine.dirty = "fedc".to_owned();
    let error = Session::resume(plan(), other).unwrap_err().to_string();
    assert!(error.contains("with changes fedc) than this one"), "{error}");
    let error = Session::resume(Plan::full(), session.document()).unwrap_err().to_string();
    assert!(error.contains("input size `quick`, and this one `full`"), "{error}");
}

/// A number that `serde_json` reads as its neighbour, unless it is told to be exact.
#[test]
fn a_sample_comes_back_to_the_last_bit() {
    let number = 31.872_999_999_999_998_f64;
    let text = serde_json::to_string(&number).unwrap();
    assert_eq!(serde_json::from_str::<f64>(&text).unwrap().to_bits(), number.to_bits());
}

#[test]
fn a_document_comes_back_as_it_was_and_has_the_promised_fields() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("samples.json");
    let session = Session::new(plan());
    session.run(&MadeUp, &|_| {}).unwrap();
    let document = session.document();
    document.save(&path).unwrap();
    assert_eq!(Document::load(&path).unwrap(), document);
    // The file has the permissions of other new files of this user.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let other = directory.path().join("other");
        std::fs::write(&other, "").unwrap();
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&other));
    }

    let value: serde_json::Value = serde_json::from_str(&document.to_json().unwrap()).unwrap();
    assert_eq!(value["schema"], 2);
    assert!(value["machine"].is_object());
    let row = &value["rows"][0];
    for field in ["suite", "workload", "system", "unit"] {
        assert!(row[field].is_string(), "{field}");
    }
    for field in ["workers", "min", "median", "p10", "p90"] {
        assert!(row[field].is_number(), "{field}");
    }
    assert!(row["samples"].is_array() && row["counters"].is_object());
}

/// What is kept of earlier runs, also of those before the second version of the form.
#[test]
fn earlier_documents_are_still_read() {
    let runs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/runs");
    // A crate from a registry comes without them.
    for run in std::fs::read_dir(runs).into_iter().flatten().flatten() {
        if !run.path().is_dir() {
            continue;
        }
        let (mut documents, mut others) = (0, 0);
        for file in std::fs::read_dir(run.path()).unwrap().flatten() {
            let path = file.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            if value.get("rows").is_none() {
                // A machine's description, or what `cargo xtask rayon-programs` keeps, which its
                // own tests read.
                others += 1;
                continue;
            }
            documents += 1;
            let document = Document::load(&path).unwrap();
            assert!(!document.rows.is_empty(), "{}", path.display());
            let directory = tempfile::tempdir().unwrap();
            assert!(!figure::write(&document, directory.path()).unwrap().is_empty());
        }
        assert!(documents > 0 || others == 1, "{}", run.path().display());
    }
}

#[test]
fn a_document_says_which_commands_took_its_samples() {
    let session = Session::new(plan());
    session.begin("poach bench first");
    session.run(&MadeUp, &|_| {}).unwrap();
    let whole = session.document();
    let commands = |document: &Document| -> Vec<(String, u64)> {
        document.commands.iter().map(|c| (c.line.clone(), c.samples)).collect()
    };
    let samples = whole.rows.iter().map(|row| row.samples.len() as u64).sum();
    assert_eq!(commands(&whole), [("poach bench first".to_owned(), samples)]);
    assert!((0.0..=100.0).contains(&whole.commands[0].steal_percent));
    // What takes no sample made no row; and rounds of another command are other rounds.
    let mut part = whole.clone();
    part.rows.retain(|row| row.workload == "beta");
    let session = Session::resume(plan(), part).unwrap();
    session.begin("poach bench nothing");
    assert_eq!(session.document().commands, whole.commands);
    session.begin("poach bench second");
    session.run(&MadeUp, &|_| {}).unwrap();
    let again = session.document();
    assert_eq!(commands(&again)[1].0, "poach bench second");
    let row = again.row("made-up", "alpha", "split", 2).unwrap();
    assert_eq!(row.rounds, [1_000_000, 1_000_001, 1_000_002]);
}

#[test]
fn a_file_that_is_no_document_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("samples.json");
    let load = || format!("{:#}", Document::load(&path).unwrap_err());
    assert!(load().contains("samples.json"), "{}", load());
    std::fs::write(&path, "{\"schema\": 1").unwrap();
    assert!(load().contains("is not a document of `poach bench`"), "{}", load());
    let mut newer = Session::new(plan()).document();
    newer.schema = 3;
    std::fs::write(&path, newer.to_json().unwrap()).unwrap();
    assert!(load().contains("has schema 3, and this program knows 1 to 2"), "{}", load());
    let nowhere = directory.path().join("none/samples.json");
    let error = format!("{:#}", newer.save(&nowhere).unwrap_err());
    assert!(error.contains("could not write") && error.contains("none"), "{error}");
}

#[test]
fn what_there_is_not_is_answered_with_what_there_is() {
    let ask = |plan: Plan| plan.cases(&MadeUp).map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        ask(Plan { workloads: vec!["gamma".into()], ..plan() }),
        "the suite `made-up` has no workload `gamma`: it has alpha, beta"
    );
    assert_eq!(
        ask(Plan { systems: vec!["lace".into()], ..plan() }),
        "the suite `made-up` has no system `lace`: it has sequential, split, brittle, panics, huge"
    );
    assert!(ask(Plan { workers: vec![1, 0], ..plan() }).contains("at least one worker"));
    assert!(ask(Plan { workers: vec![], ..plan() }).contains("no number of workers"));
    assert!(ask(Plan { rounds: 0, ..plan() }).contains("at least one round"));
    let peer = "split=true".parse().unwrap();
    assert!(ask(Plan { peers: vec![peer], ..plan() }).contains("has the name of a system"));
    let twice = vec!["lace=a".parse().unwrap(), "lace=b".parse().unwrap()];
    assert_eq!(ask(Plan { peers: twice, ..plan() }), "two peers have the name `lace`");
    let error = poach_bench::find("none").map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("there is no suite `none`: there is "), "{error}");
}

#[test]
fn a_choice_of_workload_and_system() {
    let plan = Plan {
        workloads: vec!["alpha".into()],
        systems: vec!["split".into(), "sequential".into()],
        workers: vec![1, 2],
        ..plan()
    };
    let cases = plan.cases(&MadeUp).unwrap();
    let names: Vec<_> = cases.iter().map(|c| (c.workload, c.system.as_str(), c.workers)).collect();
    assert_eq!(names, [("alpha", "sequential", 1), ("alpha", "split", 1), ("alpha", "split", 2)]);
    // A number of workers that is given twice is run once.
    let twice = Plan { workers: vec![1, 2, 1], ..plan };
    assert_eq!(twice.cases(&MadeUp).unwrap().len(), 3);
}

#[test]
#[cfg(unix)]
fn an_outside_program_is_one_more_system() {
    let peers = vec!["echo=echo 0.5".parse().unwrap(), "fails=echo none".parse().unwrap()];
    let session = Session::new(Plan { peers, workloads: vec!["beta".into()], ..plan() });
    session.run(&MadeUp, &|_| {}).unwrap();
    let document = session.document();
    assert_eq!(document.row("made-up", "beta", "echo", 2).unwrap().samples, [0.5; 3]);
    assert!(document.failures.iter().any(|f| f.system == "fails"));
}

#[test]
fn when_the_time_is_up_each_case_still_has_a_sample() {
    let session = Session::new(Plan { budget: Some(Duration::ZERO), ..plan() });
    session.run(&MadeUp, &|_| {}).unwrap();
    let document = session.document();
    assert!(document.complete);
    assert_eq!(document.rows.len(), 4);
    assert!(document.rows.iter().all(|row| row.samples.len() == 1));
}

#[test]
fn more_workers_than_processors_is_run_and_said() {
    let plan = Plan { workers: vec![1, 100_000], ..plan() };
    let session = Session::new(plan);
    session.begin("poach bench <made-up>");
    session.run(&MadeUp, &|_| {}).unwrap();
    let document = session.document();
    assert!(document.row("made-up", "alpha", "split", 100_000).unwrap().oversubscribed);
    assert!(!document.row("made-up", "alpha", "split", 1).unwrap().oversubscribed);
    let text = table::render(&document, 100);
    assert!(text.contains("100000*") && text.contains("more workers than the"), "{text}");

    let directory = tempfile::tempdir().unwrap();
    let written = figure::write(&document, directory.path()).unwrap();
    let names: Vec<_> =
        written.iter().map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    let expected = [
        "made-up-1-workers.svg",
        "made-up-100000-workers.svg",
        "made-up-speedup.svg",
        "summary.txt",
        "index.html",
    ];
    assert_eq!(names, expected);
    let figure = std::fs::read_to_string(&written[1]).unwrap();
    assert!(figure.contains("more than the"), "the figure says that it is oversubscribed");
    assert!(figure.contains("alpha") && figure.contains("split"));
    let summary = std::fs::read_to_string(&written[3]).unwrap();
    assert!(summary.contains("command  poach bench <made-up>") && summary.contains("commit"));
    let page = std::fs::read_to_string(&written[4]).unwrap();
    assert!(page.contains("poach bench &lt;made-up&gt;") && page.contains("<svg"));
    assert!(page.contains("width=device-width") && page.contains("prefers-color-scheme:dark"));
    assert!(page.contains("* more workers than the"), "the page says that it is oversubscribed");
    assert!(
        page.contains(
            "alpha on brittle with 1 worker and 1 more failed: the result came out as 41"
        )
    );
    let page = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!page.contains("http") && !page.contains("src="), "it loads nothing from elsewhere");
}

#[test]
fn a_suite_of_nothing_that_can_be_prepared() {
    struct Broken;
    impl Suite for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }
        fn about(&self) -> &'static str {
            "nothing"
        }
        fn cases(&self, _: &Request) -> Vec<Case> {
            let asked = Rc::new(RefCell::new(0));
            vec![Case::new("alpha", "split", 1, Unit::NANOSECONDS, move || {
                *asked.borrow_mut() += 1;
                if *asked.borrow() == 1 {
                    bail!("no input");
                }
                Ok(|| Ok(Sample::from(f64::NAN)))
            })]
        }
    }
    let session = Session::new(plan());
    session.run(&Broken, &|_| {}).unwrap();
    let document = session.document();
    assert!(document.rows.is_empty() && document.complete);
    assert_eq!(document.failures[0].message, "no input");
}
