//! The program and the library under a launcher, with 1 to 4 ranks: `POACH_FAR_MPIEXEC` names it, or it is `mpiexec`.

#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use poach_scan::{Control, Options};
use serde_json::Value;

/// After which a job is taken for one that hangs.
const PATIENCE: Duration = Duration::from_secs(100);

fn launcher() -> Command {
    let mut command =
        Command::new(std::env::var("POACH_FAR_MPIEXEC").unwrap_or_else(|_| "mpiexec".to_owned()));
    // Open MPI's leave to run as the user of a container, and more ranks than processors.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    // The windows of Open MPI 4.1.4 crash otherwise: see the README's limits.
    command.env("OMPI_MCA_osc", "^rdma");
    command
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_poach-far")
}

/// The example `jobs`, which stands beside the program.
fn jobs() -> String {
    let path = Path::new(program()).with_file_name("examples").join("jobs");
    path.to_str().unwrap().to_owned()
}

/// What a job printed, and how long it took.
struct Ran {
    output: Output,
    took: Duration,
}

impl Ran {
    fn stdout(&self) -> &str {
        std::str::from_utf8(&self.output.stdout).unwrap()
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The document of a job that went well.
    fn document(&self) -> Value {
        assert!(self.output.status.success(), "{}{}", self.stdout(), self.stderr());
        serde_json::from_str(self.stdout()).unwrap()
    }
}

fn wait(mut command: Command) -> Ran {
    let began = Instant::now();
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the launcher starts");
    let (id, (send, receive)) = (child.id(), std::sync::mpsc::channel());
    thread::spawn(move || send.send(child.wait_with_output()));
    let Ok(output) = receive.recv_timeout(PATIENCE) else {
        let _ = Command::new("kill").arg(id.to_string()).status();
        panic!("{command:?} hangs");
    };
    Ran { output: output.unwrap(), took: began.elapsed() }
}

fn run(ranks: usize, program: &str, arguments: &[&str]) -> Ran {
    let mut command = launcher();
    command.args(["-n", &ranks.to_string(), program]).args(arguments);
    wait(command)
}

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
    let document = run(2, program(), &["fib", "30", "--steal", "window", "--json"]).document();
    assert_eq!(document["result"], 832_040);
}

#[test]
fn a_ping_pong_tells_the_network() {
    let document = run(2, program(), &["ping-pong", "--rounds", "50", "--json"]).document();
    assert!(document["overhead_ns"].as_f64().unwrap() > 0.0, "{document}");
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

#[test]
fn jobs_of_all_kinds_give_their_results() {
    for ranks in 1..=4 {
        let ran = run(ranks, &jobs(), &["sums"]);
        assert_eq!(ran.stdout(), "549755289600\n", "{}", ran.stderr());
        assert_eq!(run(ranks, &jobs(), &["ordered"]).stdout(), "true\n");
        assert_eq!(run(ranks, &jobs(), &["divide"]).stdout(), "true\n");
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

/// A job that fails: with a message, an exit code, no result, and in time.
fn fails(ranks: usize, what: &str, message: &str) {
    let ran = run(ranks, &jobs(), &[what]);
    assert!(!ran.output.status.success(), "{what}");
    // MPICH's launcher says on stdout what it had to kill; a result would be a number.
    assert!(!ran.stdout().lines().any(|line| line.parse::<u64>().is_ok()), "{}", ran.stdout());
    assert!(ran.stderr().contains(message), "{what}: {}", ran.stderr());
    assert!(ran.took < Duration::from_secs(10), "{what}: {:?}", ran.took);
}

#[test]
fn a_task_that_panics_ends_the_job_with_its_rank_and_message() {
    fails(3, "panic", "jobs: rank 1: a task panicked: as it was told to");
}

#[test]
fn limits_end_the_job_with_what_was_met() {
    fails(
        2,
        "large",
        "rank 0: a task of 100003 bytes is too large to be given away; the limit is 65536",
    );
    fails(2, "full", "a worker's bag holds 1048576 tasks; the limit is 1048576");
}

#[test]
fn a_rank_that_stops_is_named() {
    fails(3, "stop", "jobs: rank 1 is lost: rank 0 has heard nothing from it for ");
}

/// The launcher notices first, and says it in its own words; MPICH's names the process, Open MPI's the rank.
#[test]
fn a_rank_that_is_killed_ends_the_job() {
    let ran = run(3, &jobs(), &["kill"]);
    assert!(!ran.output.status.success());
    // MPICH's launcher says it on stdout.
    let said = format!("{}{}", ran.stdout(), ran.stderr());
    assert!(said.contains("Killed"), "{said}");
    assert!(!said.contains("8796090925056"), "{said}");
    assert!(ran.took < Duration::from_secs(10), "{:?}", ran.took);
}

/// Wherever in a job a rank goes, there is no result and it ends in time.
#[test]
fn a_rank_that_is_killed_at_any_moment_ends_the_job() {
    for seed in 0..6 {
        let after = fastrand::Rng::with_seed(seed).u64(50..1_500);
        let mut command = launcher();
        command.args(["-n", "3", program(), "uts", "T3XXL", "--threads", "1"]);
        let victim = thread::spawn(move || {
            thread::sleep(Duration::from_millis(after));
            kill_a_rank()
        });
        let ran = wait(command);
        assert!(victim.join().unwrap(), "seed {seed}: no rank was there to be killed");
        assert!(!ran.output.status.success(), "seed {seed}");
        assert!(!ran.stdout().contains(" nodes"), "seed {seed}: {}", ran.stdout());
        assert!(ran.took < Duration::from_secs(10), "seed {seed}: {:?}", ran.took);
    }
}

/// Kills a process that runs `uts T3XXL`, as soon as there is one.
fn kill_a_rank() -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let id = entry.file_name().to_string_lossy().into_owned();
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if line.starts_with(program().as_bytes())
                && line.windows(5).any(|word| word == b"T3XXL")
            {
                return Command::new("kill").args(["-KILL", &id]).status().unwrap().success();
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
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
fn the_simulator_counts_the_same_tree() {
    let arguments = ["simulate", "T1", "--ranks", "1,100", "--json"];
    let output = Command::new(program()).args(arguments).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["rows"][1]["nodes"], 4_130_071);
    assert!(document["rows"][1]["speed_up"].as_f64().unwrap() > 50.0, "{document}");
}
