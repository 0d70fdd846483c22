//! The litmus test of a worker and a thief: its points, its time, and the journal of finished
//! points.

use std::io::{self, IsTerminal as _};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use poach_measure::litmus::grid::{self, Observation};
use poach_measure::litmus::journal::{self, Entry, Journal};
use poach_measure::litmus::program::{self, Outcome, Point};
use poach_measure::place::{CannotPlace, Placement, Topology};
use poach_measure::report::Run;
use poach_memory::delta::{Bound, Processor};

use super::usage::Usage;
use crate::output::complain;

#[derive(Debug, clap::Args)]
pub(super) struct Grid {
    /// Measure every delta, with a million rounds of each.
    #[arg(long)]
    long: bool,
    /// Rounds of each point [default: 1000000 with --long, else 100000, or fewer to end in 30 s].
    #[arg(long, value_name = "N")]
    runs: Option<NonZeroU64>,
    /// Measure only these points [default: the grid around the boundary].
    ///
    /// A point is the number of stores between two pops, delta, and where the stores go: to
    /// distinct lines, to the words of one line, or to one word.
    #[arg(long, value_name = "STORES:DELTA[:lines|words|one]", value_delimiter = ',')]
    point: Vec<Point>,
    /// Measure only these placements of the two threads [default: all that the machine has].
    #[arg(long, value_enum, value_name = "PLACE", value_delimiter = ',')]
    placement: Vec<Place>,
    /// Save finished points to FILE, and skip points that it has.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Begin no point after N minutes.
    #[arg(long, value_name = "N")]
    minutes: Option<NonZeroU64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Place {
    /// The system's choice.
    Os,
    /// Two hyperthreads of one core.
    Siblings,
    /// Two cores.
    Cores,
}

impl Place {
    fn placement(self) -> Placement {
        match self {
            Place::Os => Placement::Os,
            Place::Siblings => Placement::Siblings,
            Place::Cores => Placement::Cores,
        }
    }
}

/// A placement and its two processors, if it says which.
type Pair = (Placement, Option<(usize, usize)>);

/// Time limit of a quick grid; each point has `FEWEST` rounds all the same.
const QUICK: Duration = Duration::from_secs(30);
/// A point with fewer rounds counts as not measured.
const FEWEST: u64 = 200;

impl Grid {
    /// The placements asked for, or all that the machine has.
    pub(super) fn pairs(&self, topology: &Topology) -> Result<Vec<Pair>> {
        let asked: Vec<Placement> = self.placement.iter().map(|place| place.placement()).collect();
        let mut pairs = Vec::new();
        for placement in if asked.is_empty() { &Placement::ALL[..] } else { &asked } {
            match topology.pair(*placement) {
                Ok(pair) => pairs.push((*placement, pair)),
                Err(CannotPlace::NoSiblings | CannotPlace::OneCore) if asked.is_empty() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(pairs)
    }

    fn rounds(&self) -> u64 {
        self.runs.map_or(if self.long { 1_000_000 } else { 100_000 }, NonZeroU64::get)
    }

    /// Runs every point, around the boundary of a store buffer with `capacity` entries (or as many
    /// as are documented).
    pub(super) fn run(&self, pairs: &[Pair], capacity: Option<u64>, seed: u64) -> Result<Vec<Run>> {
        if cfg!(debug_assertions) {
            complain(
                "measure",
                "this is a debug build, in which the worker makes further stores; use a release build",
            );
        }
        let documented = Processor::here().and_then(Processor::documented).map(|row| row.capacity);
        let Some(capacity) = capacity.or(documented) else {
            bail!("the capacity of the store buffer is unknown; choose points by --point");
        };
        let mut points = self.point.clone();
        if points.is_empty() {
            // Around the boundary of the bound that is known, which may be beyond that of the
            // capacity.
            let known = match Processor::here().and_then(Processor::documented).map(|row| row.bound)
            {
                Some(Bound::Seen(bound)) => bound - 1,
                _ => 0,
            };
            points = grid::points(capacity.max(known), self.long);
        }
        let mut journal = match &self.journal {
            Some(path) => Some(self.open(path, seed)?),
            None => None,
        };
        let timed = !self.long && self.runs.is_none() && journal.is_none();
        let share = timed.then(|| QUICK / (points.len() * pairs.len()).max(1) as u32);
        let bar = bar(pairs.len() * points.len())?;
        let start = Instant::now();
        let late = || self.minutes.is_some_and(|most| start.elapsed().as_secs() / 60 >= most.get());
        let run = |(placement, _): &Pair| Run { placement: *placement, points: Vec::new() };
        let mut runs: Vec<Run> = pairs.iter().map(run).collect();
        let mut left_out = 0;
        // The placements in turn, so that an interrupted grid has points of each.
        for (at, point) in points.iter().enumerate() {
            for ((placement, pair), run) in pairs.iter().zip(&mut runs) {
                let known = journal.as_ref().and_then(|journal| journal.find(*placement, *point));
                if known.is_none() && late() {
                    left_out += 1;
                    continue;
                }
                bar.set_message(format!("placement {}", placement.name()));
                let outcome = match known {
                    Some(outcome) => outcome,
                    None => one(*point, self.rounds(), share, *pair, seed.wrapping_add(at as u64))?,
                };
                let observation = Observation { point: *point, outcome };
                if let (None, Some(journal)) = (known, &mut journal) {
                    journal
                        .add(Entry { placement: *placement, seen: observation })
                        .context("--journal: could not write a point")?;
                }
                run.points.push(observation);
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        if left_out > 0 {
            complain(
                "measure",
                &format!("{left_out} points were left out, because the --minutes are over"),
            );
        }
        Ok(runs)
    }

    fn open(&self, path: &Path, seed: u64) -> Result<Journal> {
        let processor = Processor::here().map_or("an unknown processor".to_owned(), |here| {
            format!("{:?} family {:#x} model {:#x}", here.maker, here.family, here.model)
        });
        let plan =
            journal::Plan { journal: journal::VERSION, processor, rounds: self.rounds(), seed };
        Journal::open(path, &plan)
            .map_err(|error| Usage(format!("--journal: {}: {error}", path.display())).into())
    }
}

/// Runs a point for the given number of rounds, or for its share of the time.
fn one(
    point: Point,
    rounds: u64,
    share: Option<Duration>,
    pair: Option<(usize, usize)>,
    seed: u64,
) -> Result<Outcome> {
    let stop = AtomicBool::new(false);
    let Some(share) = share else {
        return Ok(program::run(point, rounds, pair, seed, &stop)?);
    };
    // Not in stretches: where the machine is busy the two threads take longer to set out together
    // than some thousand rounds.
    let (done, over) = mpsc::channel::<()>();
    let outcome = thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            // Until the time is up, or the other end is gone.
            let _ = over.recv_timeout(share);
            stop.store(true, Relaxed);
        });
        let outcome = program::run(point, rounds, pair, seed, stop);
        drop(done);
        outcome
    })?;
    if outcome.rounds >= FEWEST {
        return Ok(outcome);
    }
    let rest = FEWEST.min(rounds) - outcome.rounds;
    let seed = seed.wrapping_add(1 << 32);
    Ok(outcome.and(program::run(point, rest, pair, seed, &AtomicBool::new(false))?))
}

fn bar(length: usize) -> Result<ProgressBar> {
    let bar = if io::stderr().is_terminal() {
        ProgressBar::new(length as u64)
    } else {
        ProgressBar::hidden()
    };
    bar.set_style(ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}")?);
    Ok(bar)
}
