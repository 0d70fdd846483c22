//! The suite `processor`: the fence-free paper's own measurements of a processor, Figures 7 and 8,
//! by `poach-measure`.
//!
//! | workload | value | counters |
//! |---|---|---|
//! | `store-buffer` | entries of the store buffer, where the curve of the pattern has its knee | `ns/PATTERN/STORES`: the curves |
//! | `litmus` | the smallest bound that is consistent with what was seen, 0 if no round went wrong | `wrong/L/DELTA`: rounds that went wrong |
//!
//! Both need total store order, and the first machine code and pages to run it from: elsewhere the
//! suite has no case.

use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use poach_measure::capacity::{self, Pattern};
use poach_measure::knee::Finding;
use poach_measure::litmus::grid::{self, Observation};
use poach_measure::litmus::program::{self, Point, Target};
use poach_measure::place;
use poach_memory::delta::{Bound, Processor as Known};
use poach_memory::{Machine, Memory as _};

use crate::{Better, Case, Request, Sample, Size, Suite, Unit};

/// The suite `processor`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Processor;

const ENTRIES: Unit = Unit { name: "entries", better: Better::Higher };
const STORES: Unit = Unit { name: "stores", better: Better::Higher };

/// The name of the counter of a curve's point.
pub(crate) const CURVE: &str = "ns/";
/// The name of the counter of a point of the grid.
pub(crate) const WRONG: &str = "wrong/";
/// The bound that is known of the processor.
pub(crate) const KNOWN: &str = "known_bound";

impl Suite for Processor {
    fn name(&self) -> &'static str {
        "processor"
    }

    fn about(&self) -> &'static str {
        "this processor's store buffer and its reordering bound: the fence-free paper's figures 7 and 8"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let size = request.size;
        let mut cases = Vec::new();
        if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
            for pattern in [Pattern::Lines, Pattern::Words] {
                cases.push(Case::new("store-buffer", pattern.name(), 1, ENTRIES, move || {
                    let mut seed = 0;
                    Ok(move || {
                        seed += 1;
                        store_buffer(pattern, size, seed)
                    })
                }));
            }
        }
        if Machine::total_store_order() {
            cases.push(Case::new("litmus", "ff-the", 2, STORES, move || {
                let mut seed = 0;
                Ok(move || {
                    seed += 1;
                    litmus(size, seed)
                })
            }));
        }
        cases
    }
}

/// On a thread of its own, which is bound to one processor.
fn bound<T: Send>(run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let first = place::Topology::here().ok().and_then(|here| here.processors.first().copied());
    thread::scope(|scope| {
        let measuring = scope.spawn(move || {
            if let Some(processor) = first {
                place::bind(processor)?;
            }
            run()
        });
        measuring.join().map_err(|_| anyhow!("the thread that measures has panicked"))?
    })
}

fn store_buffer(pattern: Pattern, size: Size, seed: u64) -> Result<Sample> {
    let standard = capacity::Plan::standard(seed);
    let plan = capacity::Plan {
        rounds: size.pick(3, 9, standard.rounds, 3 * standard.rounds),
        longest: size.pick(100, 100, standard.longest, standard.longest),
        ..standard
    };
    let measured = bound(move || Ok(capacity::measure(plan)?))?;
    let of_pattern = |wanted| measured.patterns.iter().find(move |one| one.pattern == wanted);
    let Finding::Knee(knee) = &of_pattern(pattern).context("a pattern that is swept")?.finding
    else {
        bail!("the time of {} stores in a row has no knee", pattern.name());
    };
    let mut sample = Sample::from(knee.at as f64);
    for one in &measured.patterns {
        for (at, nanoseconds) in one.sweep.levels().into_iter().enumerate() {
            sample =
                sample.count(&format!("{CURVE}{}/{}", one.pattern.name(), at + 1), nanoseconds);
        }
    }
    Ok(sample)
}

/// The points of the grid, about a bound: for each L some deltas below the one that the bound asks
/// for, it, and some above.
fn points(bound: u64) -> Vec<Point> {
    let mut points = Vec::new();
    for stores in [1, 2, 3, 5, 7, 11, 15] {
        let edge = bound.div_ceil(stores + 1);
        let mut deltas: Vec<u64> = [
            1,
            edge / 4,
            edge / 2,
            3 * edge / 4,
            edge - 1,
            edge,
            edge + 1,
            edge + edge.div_ceil(4),
        ]
        .to_vec();
        deltas.retain(|delta| *delta > 0);
        deltas.sort_unstable();
        deltas.dedup();
        points.extend(deltas.iter().map(|&delta| Point { stores, delta, target: Target::Lines }));
    }
    points
}

fn litmus(size: Size, seed: u64) -> Result<Sample> {
    let known = Known::here().and_then(Known::documented).and_then(|entry| match entry.bound {
        Bound::Seen(bound) | Bound::AtLeast(bound) => Some(bound),
        _ => None,
    });
    let supposed = known.unwrap_or(64);
    let rounds = size.pick(20, 300, 3_000, 100_000);
    let never = AtomicBool::new(false);
    let mut seen = Vec::new();
    let mut sample = Sample::default();
    for point in points(supposed) {
        let outcome = program::run(point, rounds, None, seed, &never)?;
        let name = format!("{WRONG}{}/{}", point.stores, point.delta);
        sample = sample.count(&name, outcome.incorrect as f64);
        seen.push(Observation { point, outcome });
    }
    sample.value = grid::smallest_bound(&seen, None).unwrap_or(0) as f64;
    Ok(sample.count(KNOWN, supposed as f64))
}
