//! `poach doctor`: what this machine supports, and how Poach uses it.
//!
//! Each check is a function here or in `doctor/linux.rs`, and returns one [`Finding`]. The checks
//! build and drop a pool and time the clock; they change nothing.

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

/// Show what this machine supports and how Poach uses it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  poach doctor
  poach doctor --json

Exit code: 0 without a warning, 1 with a warning, 2 for a usage error.")]
pub(crate) struct Arguments {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Best for Poach.
    Good,
    /// Good to know.
    Known,
    /// Poach fails or is slower.
    Amiss,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Known => "note",
            State::Amiss => "warn",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    what: &'static str,
    state: State,
    /// What the machine has.
    given: String,
    /// How Poach uses it.
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

/// The number of processors that the process may use.
fn processors() -> Finding {
    match std::thread::available_parallelism() {
        Ok(number) if number.get() == 1 => Finding::new(
            "processors",
            State::Known,
            "this process may use 1",
            "A pool has one worker by default, so nothing runs in parallel. Forks stay cheap.",
        ),
        Ok(number) => Finding::new(
            "processors",
            State::Good,
            format!("this process may use {number}, by its affinity and quota"),
            "A pool has one worker for each of them by default.",
        ),
        Err(error) => Finding::new(
            "processors",
            State::Amiss,
            format!("their number is unknown: {error}"),
            "A pool has one worker by default. `POACH_THREADS` and `ThreadPoolBuilder::num_threads` change the number.",
        ),
    }
}

/// Builds the library's default pool, with `POACH_THREADS` and the limits of this process.
fn pool() -> Finding {
    const WHAT: &str = "pool";
    match ThreadPool::builder().build() {
        Ok(pool) => Finding::new(
            WHAT,
            State::Good,
            several(pool.threads(), "worker"),
            "The global pool has the same number. `POACH_THREADS` and `ThreadPoolBuilder::num_threads` change it.",
        ),
        Err(error) => Finding::new(
            WHAT,
            State::Amiss,
            error.to_string(),
            "The global pool cannot be built either.",
        ),
    }
}

/// The processors, cores, caches and memory nodes.
fn topology() -> Finding {
    const WHAT: &str = "topology";
    let topology = match Topology::read() {
        Ok(topology) => topology,
        Err(error) => {
            return Finding::new(
                WHAT,
                State::Known,
                error.to_string(),
                "Thieves prefer no victim. `ThreadPoolBuilder::pin` returns an error.",
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
        "Pinned workers (`ThreadPoolBuilder::pin`) steal from the nearest workers first, and have their deques on their own node."
    } else {
        "All processors share a cache, so pinned workers (`ThreadPoolBuilder::pin`) prefer no victim."
    };
    Finding::new(WHAT, State::Good, given, so)
}

fn several(number: usize, what: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {what}{end}")
}

/// The process-wide barrier, without which owners need fences.
fn barrier() -> Finding {
    const WHAT: &str = "process-wide barrier";
    match membarrier::register() {
        Ok(()) => Finding::new(
            WHAT,
            State::Good,
            "available",
            "Owners push and pop without a fence. Thieves execute the barrier.",
        ),
        Err(reason) => Finding::new(
            WHAT,
            State::Amiss,
            reason.to_string(),
            "Owners execute a full fence in each pop, so forks are slower. If a seccomp filter refuses membarrier(2), allow it there (systemd: SystemCallFilter; containers: the profile).",
        ),
    }
}

/// The number of an owner's pops that a thief may fail to see.
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
        None => "unknown processor".to_owned(),
    };
    match Delta::for_this_processor() {
        Ok(delta) => Finding::new(
            WHAT,
            State::Good,
            format!("{shown}: {} pops", delta.pops()),
            "The papers' fence-free queues (`FfThe`, `FfCl`) can use this bound.",
        ),
        // No default needs the bound.
        Err(reason) => Finding::new(
            WHAT,
            State::Known,
            format!("{shown}: {reason}"),
            "Poach's defaults need no bound. `poach measure all` measures it, on real hardware.",
        ),
    }
}

/// The time that reading the clock takes.
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
    // The shortest round, because another program may have interrupted the others.
    let each = (0..ROUNDS).map(|_| round()).min().unwrap_or(0);
    let given = format!("a reading takes {each} ns");
    if each <= DEAR {
        Finding::new(
            "clock",
            State::Good,
            given,
            "The runtime reads it when it decides whether to wake a worker, not at each fork.",
        )
    } else {
        let so = "The runtime reads it when it decides whether to wake a worker, so short parallel regions are slower.";
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
        assert_eq!(lines[4], " warn  c       given c");
    }

    #[test]
    fn a_document_has_all_of_each_finding() {
        let document: serde_json::Value = serde_json::from_str(&document(&three())).unwrap();
        assert_eq!(document["findings"][2]["state"], "warn");
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
