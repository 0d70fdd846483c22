//! Jobs that fail: each ends, in time, without a result, and says which rank it was and why.

#![forbid(unsafe_code)]

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::launch::{self, PATIENCE, jobs, launcher, program, run, wait};

/// A job that fails: with a message, an exit code, no result, and in time.
fn fails(ranks: usize, what: &str, message: &str) {
    let ran = run(ranks, &jobs(), &[what]);
    assert!(!ran.output.status.success(), "{what}");
    // MPICH's launcher says on stdout what it had to kill; a result would be a number.
    assert!(!ran.stdout().lines().any(|line| line.parse::<u64>().is_ok()), "{}", ran.stdout());
    assert!(ran.stderr().contains(message), "{what}: {}", ran.stderr());
    in_time(ran.took, what);
}

/// Ten seconds is what it takes; a machine on which others are at work gets more.
fn in_time(took: Duration, what: &str) {
    println!("{what}: ended after {took:?}");
    assert!(took < Duration::from_secs(90), "{what}: {took:?}");
}

#[test]
fn a_task_that_panics_ends_the_job_with_its_rank_and_message() {
    fails(3, "panic", "jobs: rank 1: a task panicked: as it was told to");
}

#[test]
fn a_task_whose_payload_panics_ends_the_job_too() {
    fails(3, "panic-bomb", "jobs: rank 1: a task panicked");
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
fn a_call_that_panics_ends_the_calls_that_wait_for_it() {
    fails(3, "join-panic", "jobs: rank 1: a task panicked: as it was told to");
}

#[test]
fn a_window_that_cannot_be_had_is_told_with_what_to_do() {
    fails(2, "window", "choose Stealing::Messages, which needs none");
}

#[test]
fn a_rank_that_stops_is_named() {
    fails(3, "stop", "jobs: rank 1 is lost: rank 0 has heard nothing from it for ");
}

/// The launcher notices first, and says it in its own words; MPICH's names the process, Open MPI's
/// the rank.
#[test]
fn a_rank_that_is_killed_ends_the_job() {
    let ran = run(3, &jobs(), &["kill"]);
    assert!(!ran.output.status.success());
    // MPICH's launcher says it on stdout.
    let said = format!("{}{}", ran.stdout(), ran.stderr());
    assert!(said.contains("Killed"), "{said}");
    assert!(!said.contains("8796090925056"), "{said}");
    in_time(ran.took, "killed");
}

/// The process that is a rank of the job with this word among its arguments, as soon as there is
/// one: not its supervisor.
fn process_of(rank: usize, word: &str) -> Option<u32> {
    let began = Instant::now();
    let names = ["PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"];
    let its = names.map(|name| format!("{name}={rank}"));
    while began.elapsed() < PATIENCE {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let read = |file| fs::read(entry.path().join(file)).unwrap_or_default();
            let line = read("cmdline");
            if !line.starts_with(program().as_bytes())
                || !line.split(|&byte| byte == 0).any(|argument| argument == word.as_bytes())
            {
                continue;
            }
            let environment = read("environ");
            let variables: Vec<_> = environment.split(|&byte| byte == 0).collect();
            let is_rank = its.iter().any(|its| variables.contains(&its.as_bytes()));
            let supervised =
                variables.iter().any(|variable| variable.starts_with(b"POACH_FAR_SUPERVISOR="));
            if is_rank && supervised {
                return entry.file_name().to_string_lossy().parse().ok();
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Sends a signal to a rank at a moment that the seed decides, from its first instruction on.
fn signalled(seed: u64, signal: &'static str) -> (usize, u32, launch::Ran) {
    let directory = tempfile::tempdir().unwrap();
    let word = directory.path().join("checkpoint").to_str().unwrap().to_owned();
    let mut random = fastrand::Rng::with_seed(seed);
    let (rank, after) = (random.usize(0..3), random.u64(0..1_200));
    let mut command = launcher();
    command.args(["-n", "3", program(), "uts", "T3XXL", "--threads", "1"]);
    // Among the arguments, so that it tells this job from others.
    command.args(["--checkpoint", &word, "--every", "100000"]);
    let victim = thread::spawn(move || {
        let process = process_of(rank, &word).expect("the rank is there");
        thread::sleep(Duration::from_millis(after));
        let sent = Command::new("kill").args([signal, &process.to_string()]).status();
        assert!(sent.unwrap().success(), "process {process} is there");
        (process, Instant::now())
    });
    let ran = wait(command);
    let (process, sent) = victim.join().unwrap();
    assert!(!ran.output.status.success(), "seed {seed}");
    assert!(!ran.stdout().contains(" nodes"), "seed {seed}: {}", ran.stdout());
    in_time(sent.elapsed(), &format!("seed {seed}, rank {rank}, {after} ms, {signal}"));
    (rank, process, ran)
}

#[test]
fn a_rank_that_is_killed_at_any_moment_is_named() {
    // `cargo xtask mpi --kills`.
    let jobs = std::env::var("POACH_FAR_KILLS").ok().and_then(|jobs| jobs.parse().ok());
    for seed in 0..jobs.unwrap_or(6) {
        let (rank, process, ran) = signalled(seed, "-KILL");
        let message = format!(
            "poach-far: rank {rank} is lost: its process {process} was ended by signal 9 (SIGKILL)"
        );
        assert!(ran.stderr().contains(&message), "seed {seed}: {}", ran.stderr());
        assert!(ran.stderr().contains("poach-far: the job has no result"), "{}", ran.stderr());
        let others = (0..3).filter(|&other| other != rank);
        for other in others {
            let message = format!("rank {other} is lost");
            assert!(!ran.stderr().contains(&message), "seed {seed}: {}", ran.stderr());
        }
    }
}

#[test]
fn a_rank_that_is_stopped_at_any_moment_is_named() {
    for seed in 10..13 {
        let (rank, _, ran) = signalled(seed, "-STOP");
        let message = format!("poach-far: rank {rank} is lost: ");
        assert!(ran.stderr().contains(&message), "seed {seed}: {}", ran.stderr());
    }
}

/// Without its supervisor a rank ends, and with it the job.
#[test]
fn a_supervisor_that_is_killed_ends_the_job() {
    let directory = tempfile::tempdir().unwrap();
    let word = directory.path().join("checkpoint").to_str().unwrap().to_owned();
    let mut command = launcher();
    command.args(["-n", "2", program(), "uts", "T3XXL", "--threads", "1"]);
    command.args(["--checkpoint", &word, "--every", "100000"]);
    let victim = thread::spawn(move || {
        let process = process_of(1, &word).expect("the rank is there");
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim();
        assert!(Command::new("kill").args(["-KILL", parent]).status().unwrap().success());
        (process, Instant::now())
    });
    let ran = wait(command);
    let (process, sent) = victim.join().unwrap();
    assert!(!ran.output.status.success());
    assert!(!ran.stdout().contains(" nodes"), "{}", ran.stdout());
    in_time(sent.elapsed(), "the supervisor of rank 1");
    let began = Instant::now();
    let is_there =
        || fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| !line.is_empty());
    while is_there() && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(!is_there(), "the rank goes on without its supervisor");
}
