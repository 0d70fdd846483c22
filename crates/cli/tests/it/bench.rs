//! `poach bench` as a user meets it: what it lists, runs, keeps and refuses.

use std::process::{Command, Output};

use serde_json::Value;

#[cfg(target_os = "linux")]
use crate::rig;

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
    assert_eq!(document["schema"], 2);
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

    std::fs::remove_file(path.join("index.html")).unwrap();
    let samples = std::fs::read(path.join("samples.json")).unwrap();
    let redrawn = bench(&["--redraw", path.to_str().unwrap()]);
    assert!(redrawn.status.success(), "{}", error(&redrawn));
    assert_eq!(std::fs::read_to_string(path.join("index.html")).unwrap(), page);
    assert_eq!(std::fs::read(path.join("samples.json")).unwrap(), samples);

    let other = bench(&["fork-join", "--workload", "queens", "--out", path.to_str().unwrap()]);
    assert_eq!(other.status.code(), Some(2));
    assert!(error(&other).contains("cannot be resumed"), "{}", error(&other));
}

#[test]
fn the_papers_figures_are_listed() {
    let figures = bench(&["--figure", "list"]);
    assert!(figures.status.success());
    for name in [
        "fence-1",
        "fence-10",
        "fence-11a",
        "lace-5",
        "lace-7-simulated",
        "lace-8",
        "salsa-4a",
        "salsa-4b",
        "salsa-5a",
        "salsa-5b",
        "salsa-6",
        "salsa-7",
        "salsa-8",
        "fence-7",
        "fence-8",
        "phanes-1",
        "phanes-2",
    ] {
        assert!(out(&figures).contains(name), "{name}");
    }
}

#[test]
fn all_figures_are_one_run_of_each_case_that_any_of_them_shows() {
    let all = bench(&["--figure", "all", "--list", "--quick"]);
    assert!(all.status.success(), "{}", error(&all));
    let mut lines: Vec<&str> = out(&all).lines().collect();
    let count = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), count, "a case is listed twice");
    let has = |workload: &str, system: &str| {
        lines.iter().any(|line| line.split_whitespace().take(2).eq([workload, system]))
    };
    for (workload, system) in [
        ("fib", "the"),
        ("uts-t2l", "private"),
        ("closure-torus", "ff-cl"),
        ("3p1c", "ws-msq"),
        ("balanced", "conc-bag"),
        ("lace-fib", "leapfrog"),
        ("walk-warm", "lock-free"),
    ] {
        assert!(has(workload, system), "{workload} {system}");
    }
    // No figure shows these.
    assert!(!has("mergesort", "split") && !has("closure-torus", "mutex") && !has("fib", "rayon"));
    let two = bench(&["--figure", "salsa-4b,salsa-4b-simulated", "--list", "--quick"]);
    assert!(out(&two).contains("3p1c") && out(&two).contains("ratio-3-1"), "{}", out(&two));
}

#[test]
fn simulated_workers_need_no_processors_and_are_kept_by_date() {
    let directory = tempfile::tempdir().unwrap();
    let output = bench(&[
        "simulate",
        "--quick",
        "--workload=lace-fib",
        "--workers=1,60",
        "--memory=lace:60",
        "--rounds=1",
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
    for strategy in ["leapfrog", "transitive", "random", "split"] {
        assert!(median(strategy, 60) < median(strategy, 1) / 5.0, "{strategy}");
    }
    assert!(rows.iter().all(|row| row["oversubscribed"] == false));
    let run = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    assert!(run.file_name().unwrap().to_str().unwrap().ends_with("-cores"));
    assert!(run.join("samples.json").exists() && run.join("summary.txt").exists());
}

#[test]
fn queues_on_a_machine_of_many_processors() {
    let asked = ["--workload", "steals", "--system", "split", "--workers", "48", "--rounds", "1"];
    let simulated = [&["simulate", "--quick", "--memory", "lace", "--why"][..], &asked].concat();
    let output = bench(&simulated);
    assert!(output.status.success(), "{}", error(&output));
    assert!(out(&output).contains("% of thief time"), "{}", out(&output));
    let crowded = [&["simulate", "--quick", "--memory", "xeon"][..], &asked].concat();
    let output = bench(&crowded);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        out(&output).contains("48 workers on `xeon`, which has 2 processors"),
        "{}",
        out(&output)
    );
}

#[test]
fn what_there_is_not() {
    for (arguments, said) in [
        (
            &["none"][..],
            "there is no suite `none`: there is deque, faces, fork-join, graphs, pool, processor, runtime, simulate, walk",
        ),
        (&["fork-join", "--workload", "none"], "has no workload `none`: it has fib"),
        (&["fork-join", "--system", "none"], "has no system `none`: it has sequential"),
        (&["fork-join", "--workers", "0"], "at least one worker"),
        (&["fork-join", "--rounds", "0"], "at least one round"),
        (&["fork-join", "--peer", "none"], "NAME=COMMAND"),
        (&["fork-join", "--quick", "--paper"], "--paper"),
        (&["fork-join", "--why"], "--why is for the suite `simulate`"),
        (&["--why"], "SUITE is missing"),
        (&["deque", "--memory", "lace"], "--memory is for the suite `simulate`"),
        (&["simulate", "--memory", "cray"], "`cray` is no file, nor a machine that is shipped"),
        (&["simulate", "--memory", "lace:9999"], "1 to 1088 processors"),
        (&["--figure", "none"], "there is no figure `none`: there is fence-1"),
        (&["graphs", "--figure", "fence-1"], "is of the suite `fork-join`, not `graphs`"),
        (&["fork-join", "--profile", "no-such-file"], "--profile: no-such-file"),
        (&["--quick"], "SUITE is missing: there is deque, faces, fork-join"),
        (&["--workload", "fib"], "SUITE is missing"),
        (&["--json"], "SUITE is missing"),
        (&["--figure", "all", "--system", "the"], "cannot be combined with a suite"),
        (
            &["--figure", "fence-1,lace-5", "--workload", "fib"],
            "several figures cannot be combined",
        ),
        (&["--figure", "fence-1,none"], "there is no figure `none`"),
        (&["fork-join", "--list", "--json"], "--json"),
        (&["--figure", "list", "--json"], "no JSON"),
        (&["--figure", "fence-1", "--workers", "2"], "is one of 1, not 2"),
        (&["--figure", "lace-8", "--workers", "2"], "is one of 1, 48, not 2"),
        (
            &["--figure", "fence-1", "--workload", "queens"],
            "`queens` is not in the figure `fence-1`",
        ),
        (&["--figure", "fence-1", "--system", "rayon"], "it has the, unfenced-the"),
        (&["--redraw", "no-such-run"], "--redraw: could not read no-such-run/samples.json"),
        (&["fork-join", "--redraw", "no-such-run"], "--redraw"),
    ] {
        let output = bench(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(error(&output).contains(said), "{arguments:?}: {}", error(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
#[cfg(unix)]
fn peers_that_work_are_timed_and_those_that_fail_are_said() {
    let failing = [
        ("broken", "echo no number", "must be its seconds, not `no number`"),
        ("sorry", "echo I am out of tea >&2; exit 3", "ended with exit status: 3: I am out of tea"),
        ("killed", "kill -9 $$", "signal: 9"),
        ("missing", "./no-such-program", "ended with exit status: 127: "),
    ];
    let working =
        ["half=echo 0.5", "filled=test {workload}-{size} = queens-quick && echo {workers}"];
    let mut arguments: Vec<String> = SMALL.iter().map(|argument| (*argument).to_owned()).collect();
    // Peers are run though no system of that name is asked for.
    arguments[5] = "sequential".to_owned();
    let failing_peers = failing.iter().map(|(name, command, _)| format!("{name}={command}"));
    for peer in working.map(str::to_owned).into_iter().chain(failing_peers) {
        arguments.extend(["--peer".to_owned(), peer]);
    }
    arguments.push("--json".to_owned());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = bench(&arguments);
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let failures = document["failures"].as_array().unwrap();
    assert_eq!(failures.len(), failing.len());
    for (name, _, said) in failing {
        let failure = failures.iter().find(|failure| failure["system"] == name).unwrap();
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains(said), "{name}: {message}");
    }
    let rows = document["rows"].as_array().unwrap();
    let samples = |system: &str| {
        let row = rows.iter().find(|row| row["system"] == system).unwrap();
        row["samples"].as_array().unwrap().clone()
    };
    assert_eq!(samples("half"), [0.5, 0.5]);
    assert_eq!(samples("filled"), [2.0, 2.0]);
    assert_eq!(samples("sequential").len(), 2);
    assert_eq!(rows.len(), 3, "what failed has no samples");

    let table = bench(&arguments[..arguments.len() - 1]);
    assert_eq!(table.status.code(), Some(1));
    let said =
        "failed: queens on sorry with 2 workers: `echo I am out of tea >&2; exit 3` ended with";
    assert!(out(&table).contains(said), "{}", out(&table));
}

#[test]
fn more_workers_than_processors_are_run_and_marked() {
    let directory = tempfile::tempdir().unwrap();
    let many = std::thread::available_parallelism().unwrap().get() + 1;
    let workers = format!("--workers={many}");
    let path = directory.path().to_str().unwrap();
    let mut arguments = SMALL.to_vec();
    arguments[6] = &workers;
    let output = bench(&[&arguments[..], &["--out", path]].concat());
    assert!(output.status.success(), "{}", error(&output));
    assert!(out(&output).contains(&format!("{many}*")), "{}", out(&output));
    assert!(out(&output).contains("* more workers than the "), "{}", out(&output));
    let figure = directory.path().join(format!("fork-join-{many}-workers.svg"));
    assert!(std::fs::read_to_string(figure).unwrap().contains("(more than the "));
}

/// Runs `poach bench` with `kibibytes` KiB of address space.
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
    for said in ["the stacks of its workers need 512 MiB", "--system"] {
        assert!(message.contains(said), "{message}");
    }
}

/// A peer that answers `answers` times. At the next question it writes to a pipe, and hangs.
#[cfg(target_os = "linux")]
fn hanging(directory: &std::path::Path, answers: u32) -> (String, std::path::PathBuf) {
    let pipe = directory.join("begun");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let (asked, begun) =
        (directory.join("asked").display().to_string(), pipe.display().to_string());
    let peer = format!(
        "slow=echo x >> {asked}; if [ $(wc -l < {asked}) -le {answers} ]; then echo 0.25; else echo \
         begun > {begun}; exec sleep 3600; fi"
    );
    (peer, pipe)
}

/// Interrupts `poach bench` when its peer hangs; what it then prints.
#[cfg(target_os = "linux")]
fn interrupted(arguments: &[&str], pipe: &std::path::Path) -> Output {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;
    use std::process::Stdio;

    let child = rig::program(POACH)
        .arg("bench")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    BufReader::new(std::fs::File::open(pipe).unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    // As a terminal does it: to the program and to the peer that it runs.
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_run_leaves_a_whole_document_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let (peer, pipe) = hanging(directory.path(), 0);
    let arguments = ["fork-join", "--quick", "--workload=fib", "--workers=1", "--json"];
    let systems = ["--system=sequential,slow", "--peer", &peer];
    let output = interrupted(&[&arguments[..], &systems].concat(), &pipe);
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one whole JSON document");
    assert_eq!(document["complete"], false);
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_run_keeps_its_samples_and_is_taken_up() {
    let directory = tempfile::tempdir().unwrap();
    // A sample to warm up, and the first of three that count.
    let (peer, pipe) = hanging(directory.path(), 2);
    let run = directory.path().join("run");
    let arguments = [
        "fork-join",
        "--quick",
        "--workload=queens",
        "--workers=1",
        "--system=sequential,slow",
        "--rounds=3",
        "--json",
        "--out",
        run.to_str().unwrap(),
    ];
    let output = interrupted(&[&arguments[..], &["--peer", &peer]].concat(), &pipe);
    assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    let cut: Value = serde_json::from_slice(&output.stdout).expect("one whole JSON document");
    let samples = |document: &Value, system: &str| -> Vec<f64> {
        let rows = document["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["system"] == system).unwrap();
        row["samples"].as_array().unwrap().iter().map(|sample| sample.as_f64().unwrap()).collect()
    };
    assert_eq!(cut["complete"], false);
    // It hung in the second round, after the other system's turn.
    assert_eq!(samples(&cut, "sequential").len(), 2);
    assert_eq!(samples(&cut, "slow"), [0.25]);
    let kept = || -> Value {
        serde_json::from_slice(&std::fs::read(run.join("samples.json")).unwrap()).unwrap()
    };
    assert_eq!(kept(), cut);
    assert!(std::fs::read_to_string(run.join("index.html")).unwrap().contains("cut short"));

    let again = bench(&[&arguments[..], &["--peer", "slow=echo 0.75"]].concat());
    assert_eq!(again.status.code(), Some(0), "{}", error(&again));
    let whole = kept();
    assert_eq!(whole["complete"], true);
    assert_eq!(whole["failures"].as_array().unwrap().len(), 0);
    assert_eq!(samples(&whole, "slow"), [0.25, 0.75, 0.75]);
    assert_eq!(samples(&whole, "sequential").len(), 3);
    assert_eq!(samples(&whole, "sequential")[..2], samples(&cut, "sequential"));
}
