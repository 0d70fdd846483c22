//! `poach doctor`: what this machine gives a program that uses Poach, and what Poach does about
//! each.
//!
//! Each thing that it looks at is a function here or in `doctor/linux.rs` and gives one
//! [`Finding`]. A pool is made and dropped, and the clock is measured; nothing is changed.

#[cfg(target_os = "linux")]
mod linux;

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use poach_memory::delta::{Delta, Processor};
use poach_memory::membarrier;
use poach_runtime::ThreadPool;
use poach_runtime::topology::Distance;
use poach_runtime::topology::Topology;
use serde_json::json;

use crate::output::{AMISS, complain, print};

/// Say what this machine gives Poach, and what Poach does about it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  poach doctor
  poach doctor --json

Exit code: 0 if nothing is in Poach's way, 1 if something makes it slower or is in its way, 2 for usage.")]
pub(crate) struct Arguments {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// As Poach wants it.
    Good,
    /// Neither good nor bad: something to know.
    Known,
    /// In Poach's way.
    Amiss,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Known => "note",
            State::Amiss => "amiss",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    what: &'static str,
    state: State,
    /// What the machine gives.
    given: String,
    /// What Poach does about it.
    so: String,
}

impl Finding {
    fn new(
        what: &'static str,
        state: State,
        given: impl Into<String>,
        so: impl Into<String>,
    ) -> Finding {
        Finding { what, state, given: given.into(), so: so.into() }
    }
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let findings = findings();
    let text = if arguments.json { document(&findings) } else { page(&findings) };
    if let Err(error) = print(text.as_bytes()) {
        complain("doctor", &format!("{error:#}"));
        return ExitCode::from(AMISS);
    }
    let amiss = findings.iter().any(|finding| finding.state == State::Amiss);
    if amiss { ExitCode::from(AMISS) } else { ExitCode::SUCCESS }
}

fn findings() -> Vec<Finding> {
    let everywhere = [processors(), pool(), topology(), barrier(), bound(), clock()];
    #[cfg(target_os = "linux")]
    let here = linux::findings();
    #[cfg(not(target_os = "linux"))]
    let here = [];
    everywhere.into_iter().chain(here).collect()
}

fn page(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    let mut page = String::new();
    for Finding { what, state, given, so } in findings {
        let indent = width + 9;
        let _ = writeln!(page, "{:>5}  {what:width$}  {given}", state.word());
        let _ = writeln!(page, "{:indent$}{so}", "");
    }
    page
}

fn document(findings: &[Finding]) -> String {
    let entries: Vec<_> = findings
        .iter()
        .map(|Finding { what, state, given, so }| json!({ "what": what, "state": state.word(), "given": given, "so": so }))
        .collect();
    let document = json!({ "poach": env!("CARGO_PKG_VERSION"), "findings": entries });
    format!("{document:#}\n")
}

/// How many processors the process may use.
fn processors() -> Finding {
    match std::thread::available_parallelism() {
        Ok(number) if number.get() == 1 => Finding::new(
            "processors",
            State::Known,
            "1 may be used",
            "Pools have one worker. Forks cost as little as ever, and nothing runs in parallel.",
        ),
        Ok(number) => Finding::new(
            "processors",
            State::Good,
            format!("{number} may be used, by affinity and quota"),
            "Pools have a worker for each, unless they are told otherwise.",
        ),
        Err(error) => Finding::new(
            "processors",
            State::Amiss,
            format!("their number cannot be had: {error}"),
            "Pools have one worker. `POACH_THREADS` and `ThreadPoolBuilder::num_threads` say otherwise.",
        ),
    }
}

/// A pool as the library makes it by default, by making one: with `POACH_THREADS`, the limits and
/// the address space that there are.
fn pool() -> Finding {
    const WHAT: &str = "pool";
    match ThreadPool::builder().build() {
        Ok(pool) => Finding::new(
            WHAT,
            State::Good,
            several(pool.threads(), "worker"),
            "What the global pool has, too. `POACH_THREADS` and `ThreadPoolBuilder::num_threads` say otherwise.",
        ),
        Err(error) => Finding::new(
            WHAT,
            State::Amiss,
            error.to_string(),
            "The global pool is refused as this one was.",
        ),
    }
}

/// Which processors are near each other.
fn topology() -> Finding {
    const WHAT: &str = "topology";
    let topology = match Topology::read() {
        Ok(topology) => topology,
        Err(error) => {
            return Finding::new(
                WHAT,
                State::Known,
                error.to_string(),
                "Thieves rob in any order, and `ThreadPoolBuilder::pin` is refused.",
            );
        }
    };
    let all = topology.processors();
    let count = |of: fn(&poach_runtime::topology::Processor) -> i64| {
        let mut values: Vec<i64> = all.iter().map(of).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    let (nodes, caches, cores, kinds) = (
        count(|one| one.node as i64),
        count(|one| one.cache as i64),
        count(|one| one.core as i64),
        count(|one| one.class as i64),
    );
    let given = format!(
        "{} on {}, {}, {}{}",
        several(all.len(), "processor"),
        several(cores, "core"),
        several(caches, "last-level cache"),
        several(nodes, "memory node"),
        if kinds > 1 { format!(", cores of {kinds} kinds") } else { String::new() },
    );
    let far = all.iter().any(|one| topology.distance(&all[0], one) > Distance::Cache);
    let so = if far {
        "Workers that are bound (`ThreadPoolBuilder::pin`) rob the nearest first, and have their deques on their own node."
    } else {
        "All share a cache, so nobody is nearer than another; `ThreadPoolBuilder::pin` binds workers all the same."
    };
    Finding::new(WHAT, State::Good, given, so)
}

fn several(number: usize, what: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {what}{end}")
}

/// The process-wide barrier, on which all that is free of fences rests.
fn barrier() -> Finding {
    const WHAT: &str = "process-wide barrier";
    match membarrier::register() {
        Ok(()) => Finding::new(
            WHAT,
            State::Good,
            "granted",
            "Owners push and pop without a fence; thieves make the barrier for them.",
        ),
        Err(reason) => Finding::new(
            WHAT,
            State::Amiss,
            reason.to_string(),
            "Owners execute a full fence in each pop where they would have none. A seccomp filter (systemd's SystemCallFilter, a container's profile) that lists membarrier(2) grants it.",
        ),
    }
}

/// How many of an owner's stores a thief may fail to see.
fn bound() -> Finding {
    const WHAT: &str = "reordering bound";
    let shown = match Processor::here() {
        Some(processor) => {
            let core = processor.documented().map_or("not in the table", |known| known.core);
            format!(
                "{:?} family {:#x} model {:#x} ({core})",
                processor.maker, processor.family, processor.model
            )
        }
        None => "this processor does not say which it is".to_owned(),
    };
    match Delta::for_this_processor() {
        Ok(delta) => Finding::new(
            WHAT,
            State::Good,
            format!("{shown}: {} pops", delta.pops()),
            "The fence-free queues of the papers (`Thep`, `FfThe`) may be used with it.",
        ),
        // What ships by default needs none.
        Err(reason) => Finding::new(
            WHAT,
            State::Known,
            format!("{shown}: {reason}"),
            "No queue that is used by default needs one. `poach measure all` measures it on a machine of one's own.",
        ),
    }
}

/// What a look at the clock costs.
fn clock() -> Finding {
    const LOOKS: u32 = 100;
    const ROUNDS: u32 = 20;
    /// Nanoseconds, above which the clock is a system call.
    const DEAR: u128 = 200;
    let round = || {
        let start = Instant::now();
        for _ in 0..LOOKS {
            std::hint::black_box(Instant::now());
        }
        start.elapsed().as_nanos() / u128::from(LOOKS)
    };
    // The shortest, as a round in which another program had the processor says nothing of the
    // clock.
    let each = (0..ROUNDS).map(|_| round()).min().unwrap_or(0);
    let given = format!("a look takes {each} ns");
    if each <= DEAR {
        Finding::new(
            "clock",
            State::Good,
            given,
            "The runtime looks when it decides whether to wake a worker, never at a fork.",
        )
    } else {
        let so = "The runtime looks when it decides whether to wake a worker: short regions from a pool asleep are slower here.";
        Finding::new("clock", State::Amiss, given, so)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> [Finding; 3] {
        [
            Finding::new("a", State::Good, "given a", "so a"),
            Finding::new("longer", State::Known, "given b", "so b"),
            Finding::new("c", State::Amiss, "given c", "so c"),
        ]
    }

    #[test]
    fn a_page_has_two_lines_a_finding_and_one_column_for_what_is_given() {
        let page = page(&three());
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(lines.len(), 6);
        assert_eq!(lines[0], "   ok  a       given a");
        assert_eq!(lines[1], "               so a");
        assert_eq!(lines[4], "amiss  c       given c");
    }

    #[test]
    fn a_document_has_all_of_each_finding() {
        let document: serde_json::Value = serde_json::from_str(&document(&three())).unwrap();
        assert_eq!(document["findings"][2]["state"], "amiss");
        assert_eq!(document["findings"][1]["given"], "given b");
        assert_eq!(document["findings"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn each_thing_is_looked_at_once() {
        let mut names: Vec<_> = findings().into_iter().map(|finding| finding.what).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(all >= 6);
    }
}
