//! The program and the library under a launcher, with 1 to 4 ranks.

#![forbid(unsafe_code)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::symlink;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use poach_scan::{Control, Options};
use serde_json::Value;

use crate::launch::{PATIENCE, jobs, launcher, program, run, wait};

#[test]
fn the_published_sizes_of_trees_on_one_to_four_ranks() {
    for ranks in 1..=4 {
        for steal in ["messages", "window"] {
            let threads = (ranks % 2 + 1).to_string();
            let arguments = ["uts", "T1", "--json", "--threads", &threads, "--steal", steal];
            let document = run(ranks, program(), &arguments).document();
            assert_eq!(document["nodes"], 4_130_071, "{ranks} ranks, {steal}");
            assert_eq!(document["tasks"], 4_130_071, "{ranks} ranks, {steal}");
            assert_eq!(document["ranks"], ranks);
            assert_eq!(document["per_rank"].as_array().unwrap().len(), ranks);
        }
    }
    let arguments = ["uts", "T3", "--json", "--no-lifelines", "--threads", "1"];
    assert_eq!(run(4, program(), &arguments).document()["nodes"], 4_112_897);
}

#[test]
fn queens_and_fibonacci() {
    let document = run(3, program(), &["n-queens", "11", "--json"]).document();
    assert_eq!(document["solutions"], 2_680);
    assert_eq!(document["expected"], 2_680);
    let document = run(2, program(), &["fib", "30", "--steal", "window", "--json"]).document();
    assert_eq!(document["result"], 832_040);
}

#[test]
fn queens_and_fibonacci_by_calls_that_wait() {
    for ranks in 1..=4 {
        for (threads, steal) in [("1", "messages"), ("2", "messages"), ("1", "window")] {
            let with = ["--by-join", "--json", "--threads", threads, "--steal", steal];
            let arguments = [&["fib", "30", "--leaf", "8"][..], &with].concat();
            let document = run(ranks, program(), &arguments).document();
            assert_eq!(document["result"], 832_040, "{ranks} ranks, {arguments:?}");
            // Each call is run once: a call is a leaf or has two below it.
            let mut calls = vec![1u64; 8];
            (8..=30).for_each(|n| calls.push(1 + calls[n - 1] + calls[n - 2]));
            assert_eq!(document["tasks"], calls[30], "{ranks} ranks, {arguments:?}");
            let arguments = [&["n-queens", "9"][..], &with].concat();
            let document = run(ranks, program(), &arguments).document();
            assert_eq!(document["solutions"], 352, "{ranks} ranks, {arguments:?}");
        }
    }
}

#[test]
fn a_job_that_is_asked_tells_how_far_it_is() {
    // Two tasks of eight seconds each, and one rank that runs both.
    let ran = run(1, &jobs(), &["long"]);
    assert_eq!(ran.stdout(), "3\n", "{}", ran.stderr());
    let first = ran.stderr().lines().find(|line| line.starts_with("so far: ")).map(str::to_owned);
    assert!(
        first.is_some_and(|line| line.starts_with("so far: 0 tasks after ")),
        "{}",
        ran.stderr()
    );
}

/// Rank 0 says how far it is. Each would take minutes, and is ended once it has said so.
#[test]
fn programs_that_are_asked_tell_how_far_they_are() {
    let asked: [(&[&str], &str); 4] = [
        (&["uts", "T3XXL"], "nodes"),
        (&["n-queens", "18"], "boards"),
        (&["fib", "55"], "calls"),
        (&["fib", "55", "--by-join"], "calls"),
    ];
    for (arguments, tasks) in asked {
        let mut command = launcher();
        command.args(["-n", "2", program()]).args(arguments).args(["--progress", "--threads", "1"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let said: Vec<_> = lines.take(2).collect();
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        child.wait().unwrap();
        for line in &said {
            let is_told = line.starts_with("poach-far: ") && line.ends_with(tasks);
            assert!(is_told, "{arguments:?}: {line}");
        }
        assert_eq!(said.len(), 2, "{arguments:?}");
    }
}

#[test]
fn a_ping_pong_tells_the_network() {
    let document = run(2, program(), &["ping-pong", "--rounds", "50", "--json"]).document();
    assert!(document["overhead_ns"].as_f64().unwrap() > 0.0, "{document}");
    // Half of the way there and back is o, L and o again, so none of them is nothing.
    assert!(document["latency_ns"].as_f64().unwrap() > 0.0, "{document}");
    let alone = run(1, program(), &["ping-pong"]);
    assert!(!alone.output.status.success() && alone.stderr().contains("takes two ranks"));
}

/// A tree with links, names of several kinds and some depth.
fn tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for a in 0..12 {
        for b in 0..8 {
            let directory = root.path().join(format!("{a}/{b}/ü \n{b}"));
            fs::create_dir_all(&directory).unwrap();
            for file in 0..5 {
                fs::write(directory.join(format!("{file}")), vec![7; 700 * a * b + file]).unwrap();
            }
            symlink("nowhere", directory.join("link")).unwrap();
            // One file that has a name in every directory.
            let shared = root.path().join("shared");
            fs::write(&shared, vec![1; 9_000]).unwrap();
            fs::hard_link(&shared, directory.join("shared")).unwrap();
        }
    }
    root
}

#[test]
fn a_scan_has_the_totals_of_poach_scan() {
    let root = tree();
    let path = root.path().to_str().unwrap();
    let expected =
        poach_scan::scan(&[root.path().into()], &Options::default(), &Control::new()).unwrap();
    for (ranks, steal) in [(1, "messages"), (2, "window"), (3, "messages"), (4, "messages")] {
        let document =
            run(ranks, program(), &["scan", path, "--json", "--steal", steal]).document();
        let mut totals = serde_json::to_value(expected.totals).unwrap();
        assert_eq!(document["totals"], totals.take(), "{ranks} ranks");
        let largest = &document["largest_files"];
        assert_eq!(largest.as_array().unwrap().len(), 10);
        assert!(largest[0]["path"].as_str().unwrap().contains("/11/7/"), "{largest}");
    }
}

/// Reports are put together from what all ranks have found.
#[test]
fn a_scan_has_the_reports_of_poach_scan() {
    use poach_scan::survey::{Survey, Tallies};
    let root = tree();
    fs::write(root.path().join("3/notes.TXT"), vec![2; 5_000]).unwrap();
    fs::write(root.path().join("4/program.rs"), vec![2; 50_000]).unwrap();
    fs::hard_link(root.path().join("4/program.rs"), root.path().join("5/other.c")).unwrap();
    let path = root.path().to_str().unwrap();
    let survey = Survey::new(&Tallies::REPORTS, poach_scan::survey::Settings::default());
    let (scan, parts) =
        survey.scan(&[root.path().into()], &Options::default(), &Control::new()).unwrap();
    let expected = survey.finish(&scan, parts).unwrap();
    let names = Tallies::REPORTS.map(poach_scan::survey::Report::name).join(",");
    for ranks in [1, 3] {
        let arguments = ["scan", path, "--json", "--top", "20", "--report", &names];
        let document = run(ranks, program(), &arguments).document();
        for section in &expected {
            let name = section.report.name();
            let expected = serde_json::to_value(section).unwrap();
            assert_eq!(document["reports"][name], expected, "{name}, {ranks} ranks");
        }
    }
    let refused = Command::new(program()).args(["scan", path, "--report", "duplicates"]).output();
    assert_eq!(refused.unwrap().status.code(), Some(2));
}

#[test]
fn what_a_bind_mount_shows_counts_once() {
    let root = tree();
    let mounted = root.path().join("mounted");
    fs::create_dir(&mounted).unwrap();
    let (path, at, shown) =
        (root.path().to_str().unwrap(), mounted.to_str().unwrap(), root.path().join("7"));
    let mut expected =
        poach_scan::scan(&[root.path().into()], &Options::default(), &Control::new())
            .unwrap()
            .totals;
    // The directory that the mount hides is not there, and the one that it shows is in the sums
    // already.
    let hidden = fs::metadata(&mounted).unwrap();
    expected.directories -= 1;
    expected.apparent_bytes -= hidden.len();
    expected.disk_bytes -= 512 * hidden.blocks();
    let bound = "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"";
    let within = |command: &Command| {
        let mut outer = Command::new("unshare");
        outer.args(["-m", "-r", "sh", "-c", bound, "sh", shown.to_str().unwrap(), at]);
        outer.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            outer.env(name, value.unwrap_or_default());
        }
        outer
    };
    if !within(&Command::new("true")).status().is_ok_and(|status| status.success()) {
        eprintln!("nothing can be mounted here: left out");
        return;
    }
    for ranks in ["1", "2", "3"] {
        let mut command = launcher();
        command.args(["-n", ranks, program(), "scan", path, "--json"]);
        let document = wait(within(&command)).document();
        assert_eq!(document["totals"], serde_json::to_value(expected).unwrap(), "{ranks} ranks");
    }
}

#[test]
fn jobs_of_all_kinds_give_their_results() {
    for ranks in 1..=4 {
        let ran = run(ranks, &jobs(), &["sums"]);
        assert_eq!(ran.stdout(), "549755289600\n", "{}", ran.stderr());
        assert_eq!(run(ranks, &jobs(), &["ordered"]).stdout(), "true\n");
        assert_eq!(run(ranks, &jobs(), &["divide"]).stdout(), "true\n");
        assert_eq!(run(ranks, &jobs(), &["join"]).stdout(), "true\n");
        let several = run(ranks, &jobs(), &["several"]);
        // Of 2^depth numbers each, from rank * 2^depth on.
        let sum = |depth: u32| {
            let all = ranks as u64 * (1 << depth);
            (all * (all - 1) / 2).to_string()
        };
        let expected: Vec<_> = (0..30).map(|depth| sum(depth % 12)).collect();
        assert_eq!(several.stdout().trim(), expected.join(" "), "{}", several.stderr());
    }
}

#[test]
fn tasks_and_results_may_run_others_while_they_are_encoded_and_decoded() {
    let directory = tempfile::tempdir().unwrap();
    for (ranks, steal) in [(1, "messages"), (2, "messages"), (2, "window"), (4, "messages")] {
        let ran = run(ranks, &jobs(), &["forks", "", steal]);
        assert_eq!(ran.stdout(), "true\n", "{ranks} ranks, {steal}: {}", ran.stderr());
        let file = directory.path().join(format!("{ranks}-{steal}"));
        let ran = run(ranks, &jobs(), &["forks-tasks", file.to_str().unwrap(), steal]);
        assert_eq!(ran.stdout(), "true\n", "{ranks} ranks, {steal}: {}", ran.stderr());
        assert!(file.exists());
    }
}

#[test]
fn a_panic_of_what_encodes_decodes_or_combines_ends_the_job_with_its_rank() {
    for what in ["panic-encoding", "panic-decoding", "panic-combining"] {
        let ran = run(2, &jobs(), &[what]);
        assert!(!ran.output.status.success(), "{what}");
        let message = format!("a task panicked: {what}");
        assert!(ran.stderr().contains(&message), "{}", ran.stderr());
    }
}

#[test]
fn calls_that_wait_nest_no_deeper_than_documented() {
    for (ranks, steal) in [(1, "messages"), (2, "messages"), (2, "window")] {
        let ran = run(ranks, &jobs(), &["nest", "", steal]);
        let said = ran.stdout().trim().strip_prefix("true ").map(str::parse);
        // Sixteen, and what each of them has brought along; without a bound it is more than a
        // hundred.
        let nested: u32 = said.unwrap_or_else(|| panic!("{}", ran.stderr())).unwrap();
        assert!(nested <= 48, "{ranks} ranks, {steal}: {nested}");
    }
}

#[test]
fn a_rank_whose_every_task_takes_long_is_not_lost() {
    let ran = run(3, &jobs(), &["long"]);
    assert_eq!(ran.stdout(), "3\n", "{}", ran.stderr());
}

#[test]
fn without_a_launcher_a_sentence_says_so() {
    let output = Command::new(program()).args(["uts", "T1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("poach-far: MPI was not started: run it as `mpirun"), "{message}");
}

#[test]
fn ranks_that_differ_are_told() {
    let mut command = launcher();
    command.args(["-n", "2", program(), "uts", "T1", ":"]);
    command.args(["-n", "1", program(), "uts", "T3"]);
    let ran = wait(command);
    assert!(!ran.output.status.success());
    let message = "the ranks do not agree on the arguments: rank 2 differs from rank 0";
    assert!(ran.stderr().contains(message), "{}", ran.stderr());

    // Another policy, or another version: the same words.
    let mut command = launcher();
    command.args(["-n", "1", program(), "uts", "T1", ":"]);
    command.args(["-n", "1", program(), "uts", "T1", "--steal", "window"]);
    let ran = wait(command);
    assert!(!ran.output.status.success());
    let message = "the ranks do not agree on their version and policy: rank 1 differs from rank 0";
    assert!(ran.stderr().contains(message), "{}", ran.stderr());

    // A path that one rank alone has.
    let directory = tempfile::tempdir().unwrap();
    let path = |name| directory.path().join(name).to_str().unwrap().to_owned();
    let (with, without) = (path("with"), path("without"));
    fs::create_dir_all(format!("{with}/found")).unwrap();
    fs::create_dir(&without).unwrap();
    let mut command = launcher();
    command.args(["-n", "1", "-wdir", &with, program(), "scan", "found", ":"]);
    command.args(["-n", "1", "-wdir", &without, program(), "scan", "found"]);
    let ran = wait(command);
    assert!(!ran.output.status.success());
    let message = "do not agree on what `found` is: rank 1 differs";
    assert!(ran.stderr().contains(message), "{}", ran.stderr());

    // A directory that is another one on each rank.
    let ran = run(2, program(), &["scan", "/proc/self/task"]);
    assert!(!ran.output.status.success());
    let message = "do not agree on what `/proc/self/task` is: rank 1 differs";
    assert!(ran.stderr().contains(message), "{}", ran.stderr());
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    for arguments in [&["uts", "T9"][..], &["n-queens", "99"], &["uts", "T1", "--every", "3"], &[]]
    {
        let output = Command::new(program()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_job_that_was_cut_short_goes_on_from_its_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let file: PathBuf = directory.path().join("checkpoint");
    let name = file.to_str().unwrap();
    let arguments =
        ["uts", "T1", "--json", "--threads", "1", "--checkpoint", name, "--every", "0.02"];
    let mut command = launcher();
    command.args(["-n", "3", program()]).args(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while !file.exists() && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    child.wait().unwrap();

    // Of another job it is none.
    let other = run(2, program(), &["uts", "T3", "--checkpoint", name]);
    assert!(!other.output.status.success());
    assert!(other.stderr().contains("is of another job: of `uts T1`"), "{}", other.stderr());

    // With another number of ranks it goes on.
    let document = run(2, program(), &arguments).document();
    assert_eq!(document["nodes"], 4_130_071);
    assert!(document["tasks"].as_u64().unwrap() < 4_130_071, "{document}");

    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let damaged = run(2, program(), &arguments);
    assert!(!damaged.output.status.success());
    assert!(damaged.stderr().contains("is damaged"), "{}", damaged.stderr());
}

#[test]
fn checkpoints_that_are_always_due_keep_no_job_from_its_end() {
    let directory = tempfile::tempdir().unwrap();
    for (ranks, steal) in [(1, "messages"), (3, "messages"), (2, "window")] {
        let file = directory.path().join(format!("{ranks}"));
        let name = file.to_str().unwrap();
        let arguments = ["fib-tree", name, steal];
        let ran = run(ranks, &jobs(), &arguments);
        assert_eq!(ran.stdout(), "121393\n", "{ranks} ranks: {}", ran.stderr());
        assert!(file.exists());
    }
}

#[test]
fn the_simulator_counts_the_same_tree() {
    let arguments = ["simulate", "T1", "--ranks", "1,100", "--json"];
    let output = Command::new(program()).args(arguments).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["rows"][1]["nodes"], 4_130_071);
    assert!(document["rows"][1]["speed_up"].as_f64().unwrap() > 50.0, "{document}");
}

#[test]
fn the_simulator_draws_its_curves() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("curves.svg");
    let arguments = ["simulate", "T1", "--ranks", "1,64", "--both", "--json", "--svg"];
    let output = Command::new(program()).args(arguments).arg(&file).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["rows"].as_array().unwrap().len(), 4);
    assert_eq!(document["rows"][3]["steal"], "window");
    let svg = fs::read_to_string(&file).unwrap();
    for said in ["UTS T1, 4130071 nodes, simulated", "L 1500 ns", "by messages", "by window"] {
        assert!(svg.contains(said), "{svg}");
    }
    // A file that cannot be written.
    let output =
        Command::new(program()).args(arguments).arg("/nowhere/curves.svg").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot write /nowhere/curves.svg"));
}

#[test]
fn jobs_with_delays_between_their_ranks_run_each_task_once() {
    for ranks in 1..=4 {
        for more in [&["--steal", "messages"][..], &["--steal", "window"], &["--no-lifelines"]] {
            let threads = (ranks % 2 + 1).to_string();
            let seed = (1_000_000 * ranks).to_string();
            let first = ["soak", "--runs", "25", "--seed", &seed, "--threads", &threads, "--json"];
            let document = run(ranks, program(), &[&first[..], more].concat()).document();
            assert_eq!(document["wrong"].as_array().unwrap().len(), 0, "{ranks}: {document}");
            assert_eq!(document["runs"], 25);
        }
    }
}

#[test]
fn nodes_that_sleep_are_counted_as_the_others() {
    let arguments = ["uts", "T1", "--asleep", "500", "--threads", "1", "--json"];
    assert_eq!(run(4, program(), &arguments).document()["nodes"], 4_130_071);
}
