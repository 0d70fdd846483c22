//! `poach measure`: this processor's store buffer and its reordering bound.
//!
//! The worker and the thief are in `grid`, the files of a report in `out`.

mod grid;
mod out;
mod usage;

use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use anyhow::{Result, anyhow, bail};
use clap::Subcommand;
use poach_measure::capacity::{self, Capacity, Plan};
use poach_measure::coherence;
use poach_measure::cost;
use poach_measure::litmus::{classic, program, soak};
use poach_measure::place::{self, CannotPlace, Placement, Topology};
use poach_measure::report::{Document, Host};
use poach_measure::stores::{self, Way};
use poach_memory::delta::Processor;
use poach_memory::{Machine, Memory as _, Profile};
use serde_json::json;

use self::grid::Grid;
use self::out::Out;
use self::usage::Usage;
use crate::output::{AMISS, USAGE, complain, print};
use crate::typed::Typed;

/// Measure this processor's store buffer and its reordering bound.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  poach measure all --out here             everything, with a document and a profile
  poach measure capacity --times 5 --busy  five times, while another core is busy
  poach measure litmus --long --journal points.jsonl
                                           a million rounds a point, resumable
  poach measure litmus --point 72:1,4:17:one --runs 1000000
                                           two points: 72 stores, delta 1; 4 stores to one word, delta 17
  poach measure coherence --out here.json  a machine for poach bench simulate
  poach measure stores ./program --queue The::pop
  poach measure soak --profile here/profile.txt

Exit code: 0 for success, 1 if a measurement failed or a bound was violated, 2 for a usage error.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Print one JSON document.
    #[arg(long, global = true)]
    json: bool,
    /// Seed of all random numbers.
    #[arg(long, global = true, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Measure everything, and print a report.
    All {
        #[command(flatten)]
        grid: Grid,
        /// Write measure.json and profile.txt to DIR.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Measure the number of entries of the store buffer.
    Capacity {
        /// Measure N times; exit code 1 if the results differ.
        #[arg(long, value_name = "N", default_value = "1")]
        times: NonZeroU64,
        /// Keep another processor busy with stores.
        #[arg(long)]
        busy: bool,
    },
    /// Measure the reordering bound, by a worker and a thief on the FF-THE queue.
    Litmus(Grid),
    /// Measure the costs of accesses, as a machine for `poach bench simulate --memory FILE`.
    Coherence {
        /// Write the machine to FILE.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Run the litmus tests SB, MP, LB and IRIW.
    Classic {
        /// Runs of each test.
        #[arg(long, value_name = "N", default_value = "1000000")]
        runs: NonZeroU64,
    },
    /// Find the fewest stores that a program makes between two pops.
    Stores {
        /// A linked x86-64 ELF program with symbols.
        #[arg(value_name = "BINARY")]
        binary: PathBuf,
        /// The function that pops: a symbol, or the end of a Rust path.
        #[arg(long, value_name = "NAME", default_value = "pop")]
        queue: String,
    },
    /// Test the bound of a profile: send tasks through a queue, and count each of them.
    Soak {
        /// A profile, as written by `all`.
        #[arg(long, value_name = "FILE")]
        profile: PathBuf,
        /// Least number of tasks.
        #[arg(long, value_name = "N", default_value = "100000000")]
        tasks: NonZeroU64,
        /// Halve delta, to see that a wrong bound fails.
        #[arg(long)]
        halve: bool,
    },
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments, typed: &Typed) -> ExitCode {
    match measure(arguments, typed) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(AMISS),
        Err(error) => {
            complain("measure", &format!("{error:#}"));
            ExitCode::from(if error.is::<Usage>() { USAGE } else { AMISS })
        }
    }
}

fn measure(arguments: &Arguments, typed: &Typed) -> Result<bool> {
    let without_chance = matches!(arguments.what, What::Classic { .. } | What::Stores { .. });
    if let Some(option) = typed.among(&["seed"]).filter(|_| without_chance) {
        return Err(Usage(format!("--{option} is not for it: nothing in it is random")).into());
    }
    if let What::Stores { binary, queue } = &arguments.what {
        return program_stores(binary, queue, arguments.json);
    }
    if !Machine::total_store_order() {
        bail!(
            "this {} processor has no total store order, so there is no reordering bound to measure; \
             use the policy Full or Asymmetric",
            std::env::consts::ARCH
        );
    }
    let topology = Topology::here()?;
    let processor = Processor::here();
    let outcome = match &arguments.what {
        What::All { grid, out } => {
            // Both can fail, so they come before a minute of measuring.
            let pairs = grid.pairs(&topology)?;
            let out = out.as_deref().map(Out::prepare).transpose()?;
            let sweeps = sweep(&topology, arguments.seed, false)?;
            let litmus = grid.run(&pairs, sweeps.entries, arguments.seed)?;
            let classic = classic::run(200_000, &topology.processors)?;
            let host = Host::here(&topology);
            let mut document =
                Document::conclude(host, Some(sweeps), litmus, classic, arguments.seed);
            if let Some(pops) = document.pops() {
                document.cost = Some(cost::measure(pops)?);
            }
            stayed(processor)?;
            if let Some(out) = out {
                out.write(&document)?;
            }
            show(&document, arguments.json)
        }
        What::Capacity { times, busy } => capacity_only(&topology, *times, *busy, arguments),
        What::Litmus(grid) => {
            let pairs = grid.pairs(&topology)?;
            let litmus = grid.run(&pairs, None, arguments.seed)?;
            let host = Host::here(&topology);
            show(
                &Document::conclude(host, None, litmus, Vec::new(), arguments.seed),
                arguments.json,
            )
        }
        What::Coherence { out } => {
            let entries = sweep(&topology, arguments.seed, false)?.entries;
            // The measurement binds its thread to a processor; the main thread stays unbound.
            let measured = thread::scope(|scope| {
                scope.spawn(|| coherence::measure(&topology, entries)).join()
            });
            let machine =
                measured.map_err(|_| anyhow!("the thread that measures has panicked"))??;
            let text = format!("{}\n", machine.to_json());
            match out {
                Some(path) => fs::write(path, text)
                    .map_err(|error| Usage(format!("--out: {}: {error}", path.display())))?,
                None => print(text.as_bytes())?,
            }
            Ok(true)
        }
        What::Classic { runs } => {
            let counts = classic::run(runs.get(), &topology.processors)?;
            let host = Host::here(&topology);
            show(
                &Document::conclude(host, None, Vec::new(), counts, arguments.seed),
                arguments.json,
            )
        }
        What::Soak { profile, tasks, halve } => {
            soak_profile(&topology, profile, tasks.get(), *halve, arguments)
        }
        What::Stores { .. } => unreachable!("answered above, on every processor"),
    };
    stayed(processor)?;
    outcome
}

/// Fails if the processor changed: a virtual machine may be moved during a measurement.
fn stayed(before: Option<Processor>) -> Result<()> {
    if Processor::here() != before {
        bail!(
            "the processor changed during the measurement (the virtual machine was moved): run again"
        );
    }
    Ok(())
}

fn show(document: &Document, json: bool) -> Result<bool> {
    let width = terminal_size::terminal_size().map_or(100, |(width, _)| width.0);
    let text = if json { document.to_json()? } else { document.to_text(width.into()) };
    print(text.as_bytes())?;
    Ok(document.well())
}

/// Sweeps on a thread of its own, bound to the first processor, while another one may be kept busy.
fn sweep(topology: &Topology, seed: u64, busy: bool) -> Result<Capacity> {
    let (here, other) = match &topology.processors[..] {
        [first, .., last] => (*first, Some(*last)),
        [only] => (*only, None),
        [] => return Err(CannotPlace::OneProcessor.into()),
    };
    if busy && other.is_none() {
        let why = "--busy needs a second processor, and this process may use only one";
        return Err(Usage(why.to_owned()).into());
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        if let Some(other) = other.filter(|_| busy) {
            let stop = &stop;
            scope.spawn(move || {
                // If it cannot be bound, it is busy wherever it is.
                let _ = place::bind(other);
                let mut lines = vec![0_u64; 1 << 16];
                while !stop.load(Relaxed) {
                    lines.iter_mut().step_by(8).for_each(|word| *word = word.wrapping_add(1));
                    std::hint::black_box(&mut lines);
                }
            });
        }
        let sweeps = scope.spawn(move || {
            place::bind(here)?;
            let plan = Plan::standard(seed);
            let mut sweeps = capacity::measure(plan)?;
            sweeps.behind = Some(capacity::behind(plan)?);
            Ok(sweeps)
        });
        let sweeps = sweeps.join();
        stop.store(true, Relaxed);
        sweeps.unwrap_or_else(|_| Err(anyhow!("the thread that measures has panicked")))
    })
}

fn capacity_only(
    topology: &Topology,
    times: NonZeroU64,
    busy: bool,
    arguments: &Arguments,
) -> Result<bool> {
    let mut all = Vec::new();
    for time in 0..times.get() {
        all.push(sweep(topology, arguments.seed.wrapping_add(time), busy)?);
    }
    let found: Vec<Option<u64>> = all.iter().map(|sweeps| sweeps.entries).collect();
    let same = found.windows(2).all(|pair| pair[0] == pair[1]);
    let host = Host::here(topology);
    let last = all.pop();
    let well = show(
        &Document::conclude(host, last, Vec::new(), Vec::new(), arguments.seed),
        arguments.json,
    )?;
    if times.get() > 1 && !arguments.json {
        let found: Vec<String> =
            found.iter().map(|f| f.map_or("none".to_owned(), |f| f.to_string())).collect();
        print(format!("{} times: {}\n", times, found.join(" ")).as_bytes())?;
    }
    if !same {
        complain("measure", &format!("the measurements differ: {found:?} entries"));
    }
    Ok(well && same)
}

fn program_stores(binary: &Path, queue: &str, json: bool) -> Result<bool> {
    let unreadable = |why: String| Usage(format!("BINARY: {}: {why}", binary.display()));
    if queue.trim().is_empty() {
        return Err(Usage("--queue: the name of a function is missing".to_owned()).into());
    }
    let bytes = fs::read(binary).map_err(|error| unreadable(error.to_string()))?;
    let found = stores::analyse(&bytes, queue).map_err(|error| unreadable(error.to_string()))?;
    if json {
        let text = serde_json::to_string_pretty(&json!({ "schema": 1, "stores": found }))?;
        print(format!("{text}\n").as_bytes())?;
        return Ok(true);
    }
    let mut text = format!("{}: {} direct calls\n", found.functions.join(", "), found.calls);
    let mut way = |title: &str, way: &Option<Way>| match way {
        None => {
            let _ = writeln!(text, "\n{title}: no path leads from a pop to the next");
        }
        Some(way) => {
            let _ = write!(
                text,
                "\n{title}: x >= {} ({} of them by push and call)\n",
                way.stores, way.on_stack
            );
            for step in &way.steps {
                let unknown = step.unknown.map_or(String::new(), |what| format!("  ({what})"));
                let _ = writeln!(
                    text,
                    "  {:#x} {:2} {:40} {}{unknown}",
                    step.address, step.stores, step.instruction, step.function
                );
            }
        }
    };
    way("if unknown code may pop", &found.certain);
    way("if unknown calls return without a pop", &found.likely);
    let _ = write!(
        text,
        "\ncounted as no store: {} unknown calls, {} jumps through pointers; not followed: \
         {} returns to unknown callers\n",
        found.unknown_calls, found.indirect_jumps, found.unknown_returns
    );
    print(text.as_bytes())?;
    Ok(true)
}

fn soak_profile(
    topology: &Topology,
    path: &Path,
    tasks: u64,
    halve: bool,
    arguments: &Arguments,
) -> Result<bool> {
    let unusable = |why: String| Usage(format!("--profile: {}: {why}", path.display()));
    let bytes = fs::read(path).map_err(|error| unusable(error.to_string()))?;
    let profile: Profile =
        String::from_utf8_lossy(&bytes).parse().map_err(|error| unusable(format!("{error}")))?;
    profile.check_here().map_err(|error| unusable(error.to_string()))?;
    let pops = profile.pops(0);
    let half = || NonZeroU64::new(pops.get() / 2).unwrap_or(NonZeroU64::MIN);
    let pops = if halve { half() } else { pops };
    let pair = topology.pair(Placement::Cores)?;
    let outcome = soak::soak(pops, tasks, pair, arguments.seed, &AtomicBool::new(false))?;
    let text = if arguments.json {
        let document = json!({ "schema": 1, "delta": pops, "profile": {
            "capacity": profile.capacity(), "bound": profile.bound() }, "soak": outcome });
        format!("{}\n", serde_json::to_string_pretty(&document)?)
    } else {
        format!(
            "delta {pops}: {} tasks, {} stolen; {} rounds of {} went wrong, {} tasks taken twice, {} lost\n",
            outcome.rounds * program::TASKS,
            outcome.stolen,
            outcome.incorrect,
            outcome.rounds,
            outcome.duplicates,
            outcome.losses
        )
    };
    print(text.as_bytes())?;
    Ok(outcome.incorrect == 0)
}
