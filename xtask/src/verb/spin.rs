//! `cargo xtask spin`: a second opinion on the reordering bound.
//!
//! `verify/ff_cl.pml` is FF-CL on TSO[S] in Promela, written from the paper. Spin and `poach check`
//! are asked the same questions. At delta = ceil((S + 1) / (x + 1)) no task is taken twice; at a
//! delta smaller by one a task is. Without a store between two takes no delta is safe. They share
//! no line, so that where they agree, neither the machine of the one nor that of the other is at
//! fault. Then Spin is asked about [`models`] of FF-THE, THEP and the split deque's exposure.

mod models;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use crate::run::Step;
use crate::workspace::{root, target_directory};
use models::Ends;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The largest store buffer to ask about, from 1 up.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=8))]
    store_buffer: u32,
    /// Ask about FF-THE, THEP and the split deque alone, not about FF-CL beside `poach check`.
    #[arg(long)]
    models: bool,
}

/// Steals of the one thief.
const STEALS: u32 = 2;

/// One question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    store_buffer: u32,
    stores: u32,
    delta: u32,
    tasks: u32,
    /// What the paper says.
    clean: bool,
}

/// One answer.
struct Answer {
    ends: Ends,
    states: u64,
    /// What it took of memory; 0 if it does not say.
    megabytes: f64,
    seconds: f64,
}

impl Answer {
    fn clean(&self) -> bool {
        self.ends == Ends::Clean
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    for (program, package) in [("spin", "spin"), ("gcc", "gcc")] {
        if !installed(program) {
            eprintln!(
                "spin: {program} is not installed (`apt install {package}`): nothing was checked"
            );
            return Ok(());
        }
    }
    if options.models {
        return models::run(&work()?);
    }
    Step::cargo("build --release --package poach-cli").run("`poach check` could not be built")?;
    let poach = target_directory()?.join("release/poach");
    let work = work()?;
    eprintln!(
        " S  x  delta  tasks  expected    spin        states      s   poach       states      s"
    );
    let mut wrong = 0;
    let cases = cases(options.store_buffer);
    for case in &cases {
        let (theirs, ours) = (ask_spin(case, &work)?, ask_poach(case, &poach)?);
        let agree = theirs.clean() == case.clean && ours.clean() == case.clean;
        wrong += u32::from(!agree);
        eprintln!(
            "{:2} {:2} {:6} {:6}  {:10}  {:10} {:7} {:6.2}   {:10} {:7} {:6.2}{}",
            case.store_buffer,
            case.stores,
            case.delta,
            case.tasks,
            word(case.clean),
            word(theirs.clean()),
            theirs.states,
            theirs.seconds,
            word(ours.clean()),
            ours.states,
            ours.seconds,
            if agree { "" } else { "   <- BAD" }
        );
    }
    ensure!(wrong == 0, "spin: {wrong} of {} answers are not as expected", cases.len());
    eprintln!("spin: both say what the paper says, {} times", cases.len());
    models::run(&work)
}

/// Where verifiers are made.
fn work() -> Result<PathBuf> {
    let work = target_directory()?.join("spin");
    std::fs::create_dir_all(&work).with_context(|| format!("could not make {}", work.display()))?;
    Ok(work)
}

fn word(clean: bool) -> &'static str {
    if clean { "clean" } else { "violation" }
}

fn installed(program: &str) -> bool {
    let asked = Command::new(program)
        .arg(if program == "spin" { "-V" } else { "--version" })
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok()
}

/// The rows of the paper's bound, up to this store buffer.
fn cases(most: u32) -> Vec<Case> {
    let mut cases = Vec::new();
    for store_buffer in 1..=most {
        for stores in 1..=3 {
            let bound = (store_buffer + 1).div_ceil(stores + 1);
            let case = |delta, clean| Case { store_buffer, stores, delta, tasks: bound + 1, clean };
            cases.extend([case(bound, true), case(bound - 1, false)]);
        }
        // The egress slot takes in any number of stores to one address.
        for delta in 1..=2 {
            cases.push(Case { store_buffer, stores: 0, delta, tasks: delta + 2, clean: false });
        }
    }
    cases
}

fn ask_spin(case: &Case, work: &Path) -> Result<Answer> {
    let Case { store_buffer, stores, delta, tasks, .. } = case;
    let values = [
        ("S", *store_buffer),
        ("EGRESS", 1),
        ("X", *stores),
        ("DELTA", *delta),
        ("TASKS", *tasks),
        ("STEALS", STEALS),
    ];
    ask("ff_cl.pml", &values, work)
}

/// Makes the verifier of a model with these values, and runs it.
fn ask(model: &str, values: &[(&str, u32)], work: &Path) -> Result<Answer> {
    let mut spin = Command::new("spin");
    spin.arg("-a").args(values.iter().map(|(key, value)| format!("-D{key}={value}")));
    output(spin.arg(root().join("verify").join(model)).current_dir(work))?;
    let mut gcc = Command::new("gcc");
    output(gcc.args(["-w", "-O2", "-DSAFETY", "-o", "pan", "pan.c"]).current_dir(work))?;
    let started = Instant::now();
    let said = output(Command::new(work.join("pan")).arg("-m1000000").current_dir(work))?;
    let seconds = started.elapsed().as_secs_f64();
    let (errors, states) = read_pan(&said)
        .with_context(|| format!("spin: the verifier's answer makes no sense:\n{said}"))?;
    let ends = match errors {
        0 => Ends::Clean,
        _ if said.contains("pan:1: invalid end state") => Ends::Stuck,
        _ => Ends::Wrong,
    };
    Ok(Answer { ends, states, megabytes: read_memory(&said), seconds })
}

/// The megabytes in a verifier's answer.
fn read_memory(said: &str) -> f64 {
    let line = said.lines().find(|line| line.contains("total actual memory usage"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0.0)
}

/// The numbers of errors and of states in a verifier's answer, if the search was not cut short.
fn read_pan(said: &str) -> Option<(u64, u64)> {
    if said.contains("max search depth too small") {
        return None;
    }
    let number = |word: &str| word.trim().parse::<f64>().ok().map(|number| number as u64);
    let errors = said.split("errors: ").nth(1).and_then(|rest| number(rest.lines().next()?))?;
    let line = said.lines().find(|line| line.contains("states, stored"))?;
    Some((errors, number(line.split("states").next()?)?))
}

/// Runs a command to its end and returns what it printed.
fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("could not start {shown}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("spin: {shown} ended with {}:\n{said}{errors}", output.status);
    }
    Ok(said)
}

fn ask_poach(case: &Case, poach: &Path) -> Result<Answer> {
    let mut command = Command::new(poach);
    command.args(["check", "ff-cl", "--egress", "on", "--thieves", "1", "--json"]);
    // A thief that trusts what it sees has no delta at all.
    let (option, value) = match case.delta {
        0 => ("--policy", "unfenced".to_owned()),
        delta => ("--delta", delta.to_string()),
    };
    command.args([option, &value, "--steals", &STEALS.to_string()]);
    for (option, value) in [
        ("--store-buffer", case.store_buffer),
        ("--stores-between", case.stores),
        ("--tasks", case.tasks),
    ] {
        command.args([option, &value.to_string()]);
    }
    let output = command.output().with_context(|| format!("could not start {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let document: serde_json::Value = serde_json::from_str(&said)
        .with_context(|| format!("{command:?} printed no document: {said}"))?;
    let run = &document["runs"][0];
    let ends = match document["verdict"].as_str() {
        Some("clean") => Ends::Clean,
        Some("violation") => Ends::Wrong,
        other => bail!("spin: {command:?} answered {other:?}"),
    };
    Ok(Answer {
        ends,
        megabytes: 0.0,
        states: run["states"].as_u64().context("no number of states")?,
        seconds: run["elapsed_s"].as_f64().context("no time")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifiers_answer_is_read() {
        let clean = "State-vector 56 byte, depth reached 59, errors: 0\n     1280 states, stored\n";
        assert_eq!(read_pan(clean), Some((0, 1280)));
        let many = "depth reached 9, errors: 1\n 1.2e+06 states, stored (3 visited)\n";
        assert_eq!(read_pan(many), Some((1, 1_200_000)));
        assert_eq!(
            read_pan("error: max search depth too small\nerrors: 0\n 1 states, stored"),
            None
        );
        assert_eq!(read_pan("pan: out of memory"), None);
    }

    #[test]
    fn each_bound_is_asked_about_from_both_sides() {
        let cases = cases(4);
        let bound = |clean: bool| Case {
            store_buffer: 4,
            stores: 1,
            delta: 3 - u32::from(!clean),
            tasks: 4,
            clean,
        };
        assert!(cases.contains(&bound(true)) && cases.contains(&bound(false)));
        assert!(cases.iter().all(|case| case.clean
            == (case.stores > 0 && case.delta * (case.stores + 1) > case.store_buffer)));
    }
}
