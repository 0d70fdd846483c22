//! `poach.measure`: this processor's store buffer and its reordering bound, as `poach measure
//! --json` has them.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use poach_measure::capacity::{self, Capacity, Plan};
use poach_measure::cost;
use poach_measure::litmus::classic;
use poach_measure::litmus::grid::{self, Observation};
use poach_measure::litmus::program::{self, Outcome, Point};
use poach_measure::place::{self, CannotPlace, Placement, Topology};
use poach_measure::report::{Document, Host, Run};
use poach_memory::delta::Processor;
use poach_memory::{Machine, Memory as _};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::background::watched;
use crate::json::{invalid, loads};
use crate::options::Names;

/// The parts of a measurement, in order.
const PARTS: [&str; 4] = ["capacity", "litmus", "classic", "cost"];

/// The options of a measurement.
struct Asked {
    parts: Vec<String>,
    share: Duration,
    runs: NonZeroU64,
    seed: u64,
}

impl Asked {
    fn wants(&self, part: &str) -> bool {
        self.parts.iter().any(|each| each == part)
    }
}

/// Measures this processor: the entries of its store buffer, its reordering bound, the classic
/// litmus tests, the cost of a fence. Returns the document of `poach measure --json`.
///
/// `parts` are capacity, litmus, classic and cost; all of them by default. The litmus test takes
/// `seconds` in all, and each classic test `runs` runs. Raises `RuntimeError` if this processor
/// cannot be measured, for instance because it has no total store order.
#[pyfunction]
#[pyo3(signature = (parts=None, /, *, seconds=30.0, runs=200_000, seed=1))]
pub(crate) fn measure(
    py: Python<'_>,
    parts: Option<Names>,
    seconds: f64,
    runs: u64,
    seed: u64,
) -> PyResult<Bound<'_, PyAny>> {
    let mut parts = Names::all(parts);
    if parts.is_empty() {
        parts = PARTS.map(str::to_owned).to_vec();
    }
    if let Some(unknown) = parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
        return Err(invalid(format!("parts: {unknown:?} is none of {}", PARTS.join(", "))));
    }
    let share = Duration::try_from_secs_f64(seconds)
        .map_err(|error| invalid(format!("seconds: {seconds}: {error}")))?;
    let runs = NonZeroU64::new(runs).ok_or_else(|| invalid("runs: at least 1"))?;
    let asked = Asked { parts, share, runs, seed };
    let stop = AtomicBool::new(false);
    // Relaxed: the flag carries no other data.
    let end = || stop.store(true, Ordering::Relaxed);
    let document = watched(py, end, |_| Ok(()), || document(&asked, &stop))?;
    let document = document.and_then(|document| Ok(document.to_json()?));
    let document = document.map_err(|error| PyRuntimeError::new_err(format!("{error:#}")))?;
    loads(py, document.as_bytes())
}

fn document(asked: &Asked, stop: &AtomicBool) -> Result<Document> {
    if !Machine::total_store_order() {
        bail!(
            "this is a {} processor, and no total store order: nothing bounds the stores that a load overtakes",
            std::env::consts::ARCH
        );
    }
    let topology = Topology::here()?;
    let processor = Processor::here();
    let sweeps = asked.wants("capacity").then(|| sweep(&topology, asked.seed)).transpose()?;
    let entries = sweeps.as_ref().and_then(|sweeps| sweeps.entries);
    let wants = |part| asked.wants(part) && !stop.load(Ordering::Relaxed);
    let litmus =
        if wants("litmus") { litmus(&topology, entries, asked, stop)? } else { Vec::new() };
    let classic = if wants("classic") {
        classic::run(asked.runs.get(), &topology.processors)?
    } else {
        Vec::new()
    };
    let host = Host::here(&topology);
    let mut document = Document::conclude(host, sweeps, litmus, classic, asked.seed);
    if let Some(pops) = document.pops().filter(|_| wants("cost")) {
        document.cost = Some(cost::measure(pops)?);
    }
    // A virtual machine may be moved during a measurement.
    if Processor::here() != processor {
        bail!(
            "the processor changed while it was measured (a virtual machine that was moved): run again"
        );
    }
    Ok(document)
}

/// Measures the capacity on another thread, bound to the first processor.
fn sweep(topology: &Topology, seed: u64) -> Result<Capacity> {
    let here = *topology.processors.first().ok_or(CannotPlace::OneProcessor)?;
    let sweeps = thread::scope(|scope| {
        let bound = scope.spawn(move || -> Result<Capacity> {
            place::bind(here)?;
            let plan = Plan::standard(seed);
            let mut sweeps = capacity::measure(plan)?;
            sweeps.behind = Some(capacity::behind(plan)?);
            Ok(sweeps)
        });
        bound.join()
    });
    sweeps.map_err(|_| anyhow!("the thread that measures has panicked"))?
}

/// Runs the worker and the thief at every point, in every placement that the machine has.
fn litmus(
    topology: &Topology,
    capacity: Option<u64>,
    asked: &Asked,
    stop: &AtomicBool,
) -> Result<Vec<Run>> {
    let documented = Processor::here().and_then(Processor::documented).map(|row| row.capacity);
    let Some(capacity) = capacity.or(documented) else {
        bail!("there is neither a measured nor a documented capacity to choose the points by");
    };
    let points = grid::points(capacity, false);
    let mut pairs = Vec::new();
    for placement in Placement::ALL {
        match topology.pair(placement) {
            Ok(pair) => pairs.push((placement, pair)),
            Err(CannotPlace::NoSiblings | CannotPlace::OneCore) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let share = asked.share / (points.len() * pairs.len()).max(1) as u32;
    let mut runs = Vec::new();
    for (placement, pair) in pairs {
        let mut seen = Vec::new();
        for (at, &point) in points.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let outcome = one(point, share, pair, asked.seed.wrapping_add(at as u64))?;
            seen.push(Observation { point, outcome });
        }
        runs.push(Run { placement, points: seen });
    }
    Ok(runs)
}

/// Runs a point for its share of the time, at least one round.
fn one(point: Point, share: Duration, pair: Option<(usize, usize)>, seed: u64) -> Result<Outcome> {
    const MOST: u64 = 1_000_000;
    let over = AtomicBool::new(false);
    let (done, ends) = mpsc::channel::<()>();
    let outcome = thread::scope(|scope| {
        let over = &over;
        scope.spawn(move || {
            // Until the time is up, or the receiver is gone.
            let _ = ends.recv_timeout(share);
            over.store(true, Ordering::Relaxed);
        });
        let outcome = program::run(point, MOST, pair, seed, over);
        drop(done);
        outcome
    })?;
    if outcome.rounds > 0 {
        return Ok(outcome);
    }
    Ok(program::run(point, 1, pair, seed, &AtomicBool::new(false))?)
}
