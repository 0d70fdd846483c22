//! How many entries the store buffer has: the time of runs of stores, by the length of the run.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, section 7.2,
//! Figures 6 and 7.
//!
//! A run of stores alternates with a chain of dependent instructions that touch no memory and last
//! long enough for the store buffer to drain. If a run finds entries for all its stores, it enters
//! the pipeline during the last chain and costs nothing. The first store that finds no entry makes
//! the next chain wait until the last chain has retired, and the time jumps. So the knee is at the
//! capacity. A store takes an entry when it enters the pipeline, and no store of a run can leave
//! the buffer before the chain in front of it has retired.
//!
//! | pattern | stores to | asks |
//! |---|---|---|
//! | `lines` | distinct cache lines | the capacity |
//! | `words` | neighbouring words | whether stores to one line share an entry |
//! | `one` | one address | whether stores to one address share an entry |
//! | `none` | no memory: as many instructions of another kind | whether some other resource runs out first |
//!
//! *Behind a store that misses* ([`Behind`]). The capacity is the number of stores that have not
//! retired. Retired stores may leave the buffer and wait behind it for the cache, and a load
//! overtakes them, too. So a second probe begins each run with a store to a line that is in no
//! cache. All later stores wait until the line arrives, because under total store order no other
//! processor may see them first. The chain passes in that time, unless it is behind stores that
//! find no entry. So the knee is at the number of entries behind the missing store, in the buffer
//! and after it. Stores that share an entry move the knee outward.
//!
//! Lengths and patterns are interleaved: a round takes one sample of each in a shuffled order, so
//! that a disturbance affects single lengths and not a range of them.

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod code;

use std::fmt;
use std::io;

use serde::Serialize;

use crate::knee::{Finding, Sweep};

/// Where a run's stores go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// To distinct cache lines.
    Lines,
    /// To neighbouring words.
    Words,
    /// To one address.
    One,
    /// Nowhere: the run is of instructions that only compute.
    None,
}

impl Pattern {
    /// All of them, the one that gives the capacity first.
    pub const ALL: [Pattern; 4] = [Pattern::Lines, Pattern::Words, Pattern::One, Pattern::None];

    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Lines => "lines",
            Pattern::Words => "words",
            Pattern::One => "one",
            Pattern::None => "none",
        }
    }

    /// What the run consists of, for a legend.
    pub fn about(self) -> &'static str {
        match self {
            Pattern::Lines => "stores to distinct lines",
            Pattern::Words => "stores to neighbouring words",
            Pattern::One => "stores to one address",
            Pattern::None => "no stores (control)",
        }
    }
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The longest run of the first sweep; doubled, twice at most, until a knee is found.
    pub longest: usize,
    /// Samples of each length.
    pub rounds: usize,
    /// Repeats of run and chain in a sample.
    pub repeats: u64,
    /// Seeds the order of the lengths and the bootstrap of the knee.
    pub seed: u64,
}

/// The longest run that can be asked for: many times what any buffer holds.
const MOST_STORES: usize = 4_096;
/// The most samples of each length.
const MOST_ROUNDS: usize = 100_000;

impl Plan {
    /// The paper's lengths and more; about two seconds.
    pub fn standard(seed: u64) -> Plan {
        Plan { longest: 160, rounds: 31, repeats: 100, seed }
    }

    fn check(self) -> Result<(), CannotMeasure> {
        let longest = 16..=MOST_STORES;
        let rounds = 1..=MOST_ROUNDS;
        if !longest.contains(&self.longest) || !rounds.contains(&self.rounds) || self.repeats == 0 {
            return Err(CannotMeasure::Plan);
        }
        Ok(())
    }
}

/// Sweeps of all patterns, and what they say.
#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    /// The number of entries, if the sweep over distinct lines has a knee that the control has
    /// not.
    pub entries: Option<u64>,
    /// Why there is no number.
    pub why_not: Option<String>,
    /// The sweeps, in the order of [`Pattern::ALL`].
    pub patterns: Vec<Measured>,
    /// The sweeps behind a store that misses, if they were made.
    pub behind: Option<Behind>,
}

/// Sweeps of runs that begin behind a store that misses.
#[derive(Clone, Debug, Serialize)]
pub struct Behind {
    /// The most stores to distinct lines that find room behind it.
    pub stores: Option<u64>,
    /// The sweeps, in the order of [`Behind::PATTERNS`].
    pub patterns: Vec<Measured>,
}

impl Behind {
    /// The one whose stores share nothing, and two whose stores may join.
    pub const PATTERNS: [Pattern; 3] = [Pattern::Lines, Pattern::Words, Pattern::One];

    /// Draws the conclusion from sweeps of [`Behind::PATTERNS`].
    pub fn conclude(patterns: Vec<Measured>) -> Behind {
        let lines = patterns.iter().find(|measured| measured.pattern == Pattern::Lines);
        let stores = match lines.map(|measured| &measured.finding) {
            Some(Finding::Knee(knee)) => Some(knee.at),
            _ => None,
        };
        Behind { stores, patterns }
    }

    /// The stores that are on their way at once: these and the one that misses.
    pub fn held(&self) -> Option<u64> {
        self.stores.map(|stores| stores + 1)
    }
}

/// One pattern's sweep.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Where the stores went.
    pub pattern: Pattern,
    /// Times by length, in nanoseconds for a run and a chain.
    pub sweep: Sweep,
    /// Its knee, or why there is none.
    pub finding: Finding,
}

impl Capacity {
    /// Draws the conclusion from sweeps of all patterns.
    pub fn conclude(patterns: Vec<Measured>) -> Capacity {
        let finding = |wanted| {
            patterns
                .iter()
                .find(|measured| measured.pattern == wanted)
                .map(|measured| &measured.finding)
        };
        let (entries, why_not) = match (finding(Pattern::Lines), finding(Pattern::None)) {
            (Some(Finding::Knee(knee)), Some(Finding::Knee(control))) if control.at <= knee.at => (
                None,
                Some(format!(
                    "runs without any store have their knee at {} already: something other than the \
                     store buffer runs out first",
                    control.at
                )),
            ),
            (Some(Finding::Knee(knee)), _) => (Some(knee.at), None),
            (Some(Finding::None { why }), _) => (None, Some(why.clone())),
            (None, _) => (None, Some("stores to distinct lines were not measured".to_owned())),
        };
        Capacity { entries, why_not, patterns, behind: None }
    }

    /// The knee of stores to distinct lines.
    pub fn finding(&self) -> Option<&Finding> {
        self.patterns.first().map(|measured| &measured.finding)
    }
}

/// Why nothing could be measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum CannotMeasure {
    /// The probe is x86-64 code and Linux's pages.
    Platform,
    /// The kernel gave no executable pages.
    Mapping(io::Error),
    /// The assembler refused the probe.
    Assembler(String),
    /// A plan without rounds, repeats, or enough lengths to fit a knee, or with too many.
    Plan,
}

impl fmt::Display for CannotMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotMeasure::Platform => f.write_str(
                "the store buffer can be measured on x86-64 under Linux only: the probe is machine code",
            ),
            CannotMeasure::Mapping(error) => write!(
                f,
                "the kernel gives no executable pages for the probe ({error}): run it where code may be \
                 made at run time"
            ),
            CannotMeasure::Assembler(error) => write!(f, "the probe could not be assembled: {error}"),
            CannotMeasure::Plan => f.write_str(
                "a sweep needs runs up to 16 stores at least and 4,096 at most, 1 to 100,000 rounds, and a repeat",
            ),
        }
    }
}

impl std::error::Error for CannotMeasure {}

/// Measures on the processor that this thread runs on; bind it first.
///
/// Sweeps runs of 1 to `plan.longest` stores, and twice as far, up to twice, until there is a knee.
///
/// # Errors
///
/// [`CannotMeasure`] off x86-64 Linux, without executable pages, and for a plan that makes no
/// sense.
pub fn measure(plan: Plan) -> Result<Capacity, CannotMeasure> {
    plan.check()?;
    let mut longest = plan.longest;
    for _ in 0..2 {
        let capacity = once(Plan { longest, ..plan })?;
        if matches!(capacity.finding(), Some(Finding::Knee(_))) {
            return Ok(capacity);
        }
        longest *= 2;
    }
    once(Plan { longest, ..plan })
}

/// Measures the room behind a store that misses, on the processor that this thread runs on; bind it
/// first.
///
/// # Errors
///
/// As [`measure`].
pub fn behind(plan: Plan) -> Result<Behind, CannotMeasure> {
    plan.check()?;
    let mut longest = plan.longest;
    for _ in 0..2 {
        let behind = sweep(Plan { longest, ..plan }, &Behind::PATTERNS, true)?;
        let behind = Behind::conclude(behind);
        if behind.stores.is_some() {
            return Ok(behind);
        }
        longest *= 2;
    }
    Ok(Behind::conclude(sweep(Plan { longest, ..plan }, &Behind::PATTERNS, true)?))
}

fn once(plan: Plan) -> Result<Capacity, CannotMeasure> {
    Ok(Capacity::conclude(sweep(plan, &Pattern::ALL, false)?))
}

/// A sweep of each of these patterns.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
fn sweep(plan: Plan, patterns: &[Pattern], behind: bool) -> Result<Vec<Measured>, CannotMeasure> {
    use std::time::Instant;

    use code::Probe;

    let mut random = fastrand::Rng::with_seed(plan.seed);
    // The chain has to outlast the draining of the longest run, one line a cycle or slower.
    let chain = 32.max(plan.longest / 5);
    let probe = if behind { Probe::behind } else { Probe::new };
    let mut probes = Vec::with_capacity(patterns.len() * plan.longest);
    for (at, pattern) in patterns.iter().enumerate() {
        for run in 1..=plan.longest {
            probes.push((at, run, probe(*pattern, run, chain)?));
        }
    }
    let reach = probes.iter().map(|(.., probe)| probe.reach()).max().unwrap_or(0);
    // From the beginning of a line, so that neighbouring words fill lines and halves of them.
    let mut room = vec![0_u64; reach.div_ceil(8) + 8];
    let buffer = room.as_ptr().align_offset(64).min(8);
    let buffer = &mut room[buffer..];
    let mut sweeps = vec![vec![Vec::with_capacity(plan.rounds); plan.longest]; patterns.len()];
    for _ in 0..plan.rounds {
        random.shuffle(&mut probes);
        for (pattern, run, probe) in &probes {
            // Its code and the buffer's lines come into the caches.
            probe.run(buffer, 4);
            let start = Instant::now();
            probe.run(buffer, plan.repeats);
            let time = start.elapsed().as_nanos() as f64 / plan.repeats as f64;
            sweeps[*pattern][run - 1].push(time);
        }
    }
    let measured = patterns.iter().zip(sweeps).map(|(pattern, samples)| {
        let sweep = Sweep::new(samples);
        let finding = sweep.knee(plan.seed);
        Measured { pattern: *pattern, sweep, finding }
    });
    Ok(measured.collect())
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
fn sweep(_: Plan, _: &[Pattern], _: bool) -> Result<Vec<Measured>, CannotMeasure> {
    Err(CannotMeasure::Platform)
}
