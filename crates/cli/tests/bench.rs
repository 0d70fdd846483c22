//! `poach bench` as a user meets it: what it lists, runs, keeps and refuses.

use std::process::{Command, Output};

use serde_json::Value;

const POACH: &str = env!("CARGO_BIN_EXE_poach");

fn bench(arguments: &[&str]) -> Output {
    Command::new(POACH).arg("bench").args(arguments).output().expect("the program starts")
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("what is printed is UTF-8")
}

fn error(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("what is said is UTF-8")
}

/// A run that takes a moment: one small program under two systems.
const SMALL: [&str; 9] = [
    "fork-join",
    "--quick",
    "--workload",
    "queens",
    "--system",
    "sequential,split",
    "--workers=2",
    "--rounds",
    "2",
];

#[test]
fn lists_suites_and_cases() {
    let suites = bench(&[]);
    assert!(suites.status.success());
    assert!(out(&suites).contains("fork-join") && out(&suites).contains("graphs"));
    let cases = bench(&["fork-join", "--list", "--workload", "fib"]);
    assert!(cases.status.success());
    for system in ["sequential", "split", "rayon", "chili", "mutex", "chase-lev"] {
        assert!(out(&cases).contains(system), "{system}");
    }
    assert!(!out(&cases).contains("queens"));
    assert!(out(&cases).lines().any(|line| line.ends_with(" 1 worker")), "{}", out(&cases));
    // A system of a figure is nothing without what it is a multiple of.
    let figure = bench(&["--figure", "fence-10", "--system", "thep", "--workload=fib", "--list"]);
    let systems: Vec<&str> =
        out(&figure).lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert!(systems.contains(&"the") && systems.contains(&"thep"), "{systems:?}");
}

#[test]
fn one_json_document_with_the_samples() {
    let output = bench(&[&SMALL[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", error(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(document["schema"], 1);
    assert_eq!(document["complete"], true);
    let rows = document["rows"].as_array().expect("rows");
    let systems: Vec<_> = rows.iter().map(|row| row["system"].as_str().unwrap()).collect();
    assert_eq!(systems, ["sequential", "split"]);
    assert!(rows.iter().all(|row| row["workload"] == "queens" && row["unit"] == "s"));
    assert!(rows.iter().all(|row| !row["samples"].as_array().unwrap().is_empty()));
}

#[test]
fn a_table_figures_and_a_run_that_is_taken_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    let arguments = [&SMALL[..], &["--out", path.to_str().unwrap()]].concat();
    let first = bench(&arguments);
    assert!(first.status.success(), "{}", error(&first));
    assert!(out(&first).contains("queens") && out(&first).contains("median"));
    let page = std::fs::read_to_string(path.join("index.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("queens"));
    let read = || -> Value {
        serde_json::from_slice(&std::fs::read(path.join("samples.json")).unwrap()).unwrap()
    };
    let before = read();
    assert!(bench(&arguments).status.success());
    assert_eq!(before["rows"], read()["rows"], "the second run measured nothing anew");

    let other = bench(&["fork-join", "--workload", "queens", "--out", path.to_str().unwrap()]);
    assert_eq!(other.status.code(), Some(2));
    assert!(error(&other).contains("cannot be taken up"), "{}", error(&other));
}

#[test]
fn the_papers_figures_are_listed() {
    let figures = bench(&["--figure", "list"]);
    assert!(figures.status.success());
    for name in ["fence-1", "fence-10", "fence-11a", "lace-5", "lace-7-simulated", "lace-8"] {
        assert!(out(&figures).contains(name), "{name}");
    }
}

#[test]
fn simulated_workers_need_no_processors_and_are_kept_by_date() {
    let directory = tempfile::tempdir().unwrap();
    let output = bench(&[
        "simulate",
        "--quick",
        "--workload=lace-uts-t3l",
        "--workers=1,64",
        "--rounds=1",
        "--topology=8:40,8:120",
        "--runs",
        directory.path().to_str().unwrap(),
        "--json",
    ]);
    assert!(output.status.success(), "{}", error(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let rows = document["rows"].as_array().unwrap();
    let median = |system: &str, workers: u64| {
        let is = |row: &&Value| row["system"] == system && row["workers"] == workers;
        rows.iter().find(is).and_then(|row| row["median"].as_f64()).unwrap()
    };
    for strategy in ["leapfrog", "transitive", "random"] {
        assert!(median(strategy, 64) < median(strategy, 1) / 5.0, "{strategy}");
    }
    assert!(rows.iter().all(|row| row["oversubscribed"] == false));
    let run = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    assert!(run.file_name().unwrap().to_str().unwrap().ends_with("-cores"));
    assert!(run.join("samples.json").exists() && run.join("summary.txt").exists());
}

#[test]
fn what_there_is_not() {
    for (arguments, said) in [
        (
            &["none"][..],
            "there is no suite `none`: there is deque, fork-join, graphs, pool, simulate",
        ),
        (&["fork-join", "--workload", "none"], "has no workload `none`: it has fib"),
        (&["fork-join", "--system", "none"], "has no system `none`: it has sequential"),
        (&["fork-join", "--workers", "0"], "at least one worker"),
        (&["fork-join", "--rounds", "0"], "at least one round"),
        (&["fork-join", "--peer", "none"], "NAME=COMMAND"),
        (&["fork-join", "--quick", "--paper"], "--paper"),
        (&["fork-join", "--topology", "2:1"], "are for the suite `simulate`"),
        (&["simulate", "--topology", "none"], "SIZE:NANOSECONDS"),
        (&["simulate", "--costs", "fork=1"], "there is no cost `fork`: there is push"),
        (&["--figure", "none"], "there is no figure `none`: there is fence-1"),
        (&["graphs", "--figure", "fence-1"], "is of the suite `fork-join`, not `graphs`"),
        (&["fork-join", "--profile", "no-such-file"], "--profile: no-such-file"),
        (&["--quick"], "SUITE is missing: there is deque, fork-join"),
        (&["--workload", "fib"], "SUITE is missing"),
        (&["--json"], "SUITE is missing"),
        (&["fork-join", "--list", "--json"], "--json"),
        (&["--figure", "list", "--json"], "no JSON"),
        (&["--figure", "fence-1", "--workers", "2"], "is one of 1, not 2"),
        (&["--figure", "lace-8", "--workers", "2"], "is one of 1, 48, not 2"),
        (
            &["--figure", "fence-1", "--workload", "queens"],
            "`queens` is not in the figure `fence-1`",
        ),
        (&["--figure", "fence-1", "--system", "rayon"], "it has the, asymmetric-the"),
    ] {
        let output = bench(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(error(&output).contains(said), "{arguments:?}: {}", error(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
#[cfg(unix)]
fn a_peer_that_fails_is_said_and_the_rest_is_kept() {
    let peers = ["--peer", "half=echo 0.5", "--peer", "broken=echo no number", "--json"];
    let mut arguments = SMALL.to_vec();
    arguments[5] = "sequential,half,broken";
    let output = bench(&[&arguments[..], &peers].concat());
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let failure = &document["failures"][0];
    assert_eq!(failure["system"], "broken");
    assert!(failure["message"].as_str().unwrap().contains("must be its seconds"));
    let rows = document["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["system"] == "half" && row["median"] == 0.5));
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_run_leaves_a_whole_document_at_once() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::unix::process::CommandExt as _;
    use std::process::Stdio;

    // The peer says through a pipe that sampling has begun; it would take an hour.
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("begun");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let peer = format!("slow=echo begun > {}; exec sleep 3600", pipe.display());
    let mut child = Command::new(POACH)
        .args(["bench", "fork-join", "--quick", "--workload", "fib", "--workers", "1"])
        .args(["--system", "sequential,slow", "--peer", &peer, "--json"])
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    BufReader::new(std::fs::File::open(&pipe).unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    // As a terminal does it: to the program and to the peer that it runs.
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let document: Value = serde_json::from_str(&text).expect("one whole JSON document");
    assert_eq!(document["complete"], false);
}

/// Runs `poach bench` with so many KiB of address space.
#[cfg(target_os = "linux")]
fn bench_within(kibibytes: u32, arguments: &[&str]) -> Output {
    let limited = format!("ulimit -v {kibibytes} && exec \"$0\" bench \"$@\"");
    Command::new("sh").args(["-c", &limited, POACH]).args(arguments).output().expect("sh starts")
}

#[test]
#[cfg(target_os = "linux")]
fn an_input_too_large_for_the_memory_is_said_and_the_rest_is_kept() {
    let arguments = [
        "fork-join",
        "--paper",
        "--workload=tree-sum-1000,tree-sum",
        "--system=sequential,split",
        "--workers=1",
        "--rounds=1",
    ];
    let json = bench_within(1_200_000, &[&arguments[..], &["--json"]].concat());
    assert_eq!(json.status.code(), Some(1), "{}", error(&json));
    let document: Value = serde_json::from_slice(&json.stdout).expect("one JSON document");
    assert_eq!(document["complete"], true);
    let rows = document["rows"].as_array().unwrap();
    let kept: Vec<_> = rows.iter().map(|row| row["workload"].as_str().unwrap()).collect();
    assert_eq!(kept, ["tree-sum-1000", "tree-sum-1000"]);
    let failures = document["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 2);
    for failure in failures {
        assert_eq!(failure["workload"], "tree-sum");
        let message = failure["message"].as_str().unwrap();
        for said in ["its input needs 2288 MiB of memory", "`ulimit -v`", "--quick"] {
            assert!(message.contains(said), "{message}");
        }
    }

    let table = bench_within(1_200_000, &arguments);
    assert_eq!(table.status.code(), Some(1), "{}", error(&table));
    let said = "failed: tree-sum on sequential with 1 worker and 1 more: its input needs 2288 MiB";
    assert!(out(&table).contains(said), "{}", out(&table));
    assert_eq!(error(&table), "");
}

#[test]
#[cfg(target_os = "linux")]
fn stacks_too_large_for_the_memory_are_said() {
    let arguments = [&SMALL[..], &["--json"]].concat();
    let output = bench_within(700_000, &arguments);
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let rows = document["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["system"] == "sequential"), "{rows:?}");
    let failure = &document["failures"][0];
    assert_eq!(failure["system"], "split");
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains("the stacks of its workers need 512 MiB"), "{message}");
}
