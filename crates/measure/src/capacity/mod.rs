//! How many entries the store buffer has: the time of runs of stores, by the length of the run.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, section 7.2,
//! Figures 6 and 7.
//!
//! A run of stores alternates with a chain of dependent instructions that touch no memory and last
//! long enough for the store buffer to drain. As long as a run finds entries for all its stores, it
//! enters the pipeline under the last chain and costs nothing. The first store that finds none keeps the
//! next chain waiting for the last one to retire, and the time jumps: the knee is at the capacity, for
//! an entry is taken when a store enters the pipeline and no store of a run can leave the buffer before
//! the chain in front of it has retired.
//!
//! | pattern | stores to | asks |
//! |---|---|---|
//! | `lines` | distinct cache lines | the capacity |
//! | `words` | neighbouring words | whether stores to one line share an entry |
//! | `one` | one address | whether stores to one address share an entry |
//! | `none` | no memory: as many instructions of another kind | whether some other resource runs out first |
//!
//! Lengths and patterns are interleaved: a round takes one sample of each in a shuffled order, so that
//! a noisy moment hits a length here and there and not a stretch of them.

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

impl Plan {
    /// The paper's lengths and more; about two seconds.
    pub fn standard(seed: u64) -> Plan {
        Plan { longest: 160, rounds: 31, repeats: 100, seed }
    }

    fn check(self) -> Result<(), CannotMeasure> {
        if self.longest < 16 || self.rounds == 0 || self.repeats == 0 {
            return Err(CannotMeasure::Plan);
        }
        Ok(())
    }
}

/// Sweeps of all patterns, and what they say.
#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    /// The number of entries, if the sweep over distinct lines has a knee that the control has not.
    pub entries: Option<u64>,
    /// Why there is no number.
    pub why_not: Option<String>,
    /// The sweeps, in the order of [`Pattern::ALL`].
    pub patterns: Vec<Measured>,
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
        Capacity { entries, why_not, patterns }
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
    /// A plan without rounds, repeats, or enough lengths to fit a knee.
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
                "a sweep needs runs up to 16 stores at least, one round and one repeat",
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
/// [`CannotMeasure`] off x86-64 Linux, without executable pages, and for a plan that makes no sense.
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

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
fn once(plan: Plan) -> Result<Capacity, CannotMeasure> {
    use std::time::Instant;

    use code::Probe;

    let mut random = fastrand::Rng::with_seed(plan.seed);
    // The chain has to outlast the draining of the longest run, one line a cycle or slower.
    let chain = 32.max(plan.longest / 5);
    let mut probes = Vec::with_capacity(Pattern::ALL.len() * plan.longest);
    for (at, pattern) in Pattern::ALL.into_iter().enumerate() {
        for run in 1..=plan.longest {
            probes.push((at, run, Probe::new(pattern, run, chain)?));
        }
    }
    let reach = probes.iter().map(|(.., probe)| probe.reach()).max().unwrap_or(0);
    let mut buffer = vec![0_u64; reach.div_ceil(8)];
    let mut sweeps = vec![vec![Vec::with_capacity(plan.rounds); plan.longest]; Pattern::ALL.len()];
    for _ in 0..plan.rounds {
        random.shuffle(&mut probes);
        for (pattern, run, probe) in &probes {
            // Its code and the buffer's lines come into the caches.
            probe.run(&mut buffer, 4);
            let start = Instant::now();
            probe.run(&mut buffer, plan.repeats);
            let time = start.elapsed().as_nanos() as f64 / plan.repeats as f64;
            sweeps[*pattern][run - 1].push(time);
        }
    }
    let patterns = Pattern::ALL.into_iter().zip(sweeps).map(|(pattern, samples)| {
        let sweep = Sweep::new(samples);
        let finding = sweep.knee(plan.seed);
        Measured { pattern, sweep, finding }
    });
    Ok(Capacity::conclude(patterns.collect()))
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
fn once(_plan: Plan) -> Result<Capacity, CannotMeasure> {
    Err(CannotMeasure::Platform)
}
