//! Description files: what a machine looks like and what its accesses cost, as JSON.
//!
//! All times are nanoseconds. Levels stand from the inside out; each consists of `size` groups of
//! the level before it (of processors, in the first). The product of the sizes is the number of
//! processors.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::place::Places;

/// The largest machine: 1,024 processors, and some more that make the last group of a level whole.
pub const MAX_PROCESSORS: usize = 1088;

/// The longest time that a description may name, in nanoseconds: a tenth of a second.
const LONGEST: f64 = 1e8;

/// The most lines that are asked for ahead.
const MAX_PREFETCH: usize = 64;

/// The machines that are shipped, by name: this kind of machine, SALSA's and Lace's.
pub const SHIPPED: [(&str, &str); 3] = [
    ("xeon", include_str!("../machines/xeon.json")),
    ("salsa", include_str!("../machines/salsa.json")),
    ("lace", include_str!("../machines/lace.json")),
];

/// A machine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// A short name.
    pub name: String,
    /// Where each number comes from, for people.
    #[serde(default)]
    pub sources: Vec<String>,
    /// How many processors there are: the product of the levels' sizes.
    pub processors: usize,
    /// What a processor's own accesses cost.
    pub processor: ProcessorCosts,
    /// Groups of groups, from the inside out.
    pub levels: Vec<Level>,
    /// Memory nodes.
    pub memory: MemoryCosts,
    /// The process-wide barrier.
    pub barrier: Barrier,
    /// Threads that sleep.
    #[serde(default)]
    pub threads: Threads,
    /// Whether a modified line stays with its owner when it is read (MOESI), so that the next
    /// reader gets it from there.
    #[serde(default)]
    pub owned_state: bool,
    /// By which share of its latency a transfer varies, up and down, at random.
    #[serde(default)]
    pub jitter: f64,
}

/// What a processor's own accesses cost, in nanoseconds, and its sizes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorCosts {
    /// Entries of the store buffer.
    pub store_buffer: usize,
    /// Lines that the buffer's stores ask for at once. 1: each store waits for the one before it.
    #[serde(default = "alone")]
    pub store_misses: usize,
    /// Lines that are asked for ahead of a processor that goes from line to neighbouring line. 0:
    /// none.
    #[serde(default)]
    pub prefetch: usize,
    /// Lines in the private cache.
    pub cache_lines: usize,
    /// A load that hits.
    pub load: f64,
    /// A store that enters the buffer; also what a drain takes that hits.
    pub store: f64,
    /// From a store to the end of a load of the same word.
    pub forward: f64,
    /// A read-modify-write on a line that the processor owns.
    pub exchange: f64,
    /// A fence with an empty buffer.
    pub fence: f64,
    /// A `pause`.
    pub pause: f64,
    /// Giving way to other threads of the system.
    pub give_way: f64,
}

/// A level of the topology.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// What a group of this level is called.
    pub name: String,
    /// How many groups of the level before are in one.
    pub size: usize,
    /// A line from one cache of the group to another, or the invalidation of a copy there.
    pub transfer: f64,
    /// What each line that enters or leaves the group takes of its link. 0: no limit.
    #[serde(default)]
    pub link: f64,
    /// A line from a memory node of this group. Needed from the nodes' own level on.
    #[serde(default)]
    pub memory: f64,
}

/// Memory nodes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryCosts {
    /// The level whose groups have a memory node each.
    pub node: String,
    /// What a line takes of a node's controller. 0: no limit.
    #[serde(default)]
    pub line: f64,
    /// What handing out one more copy of a shared line takes.
    #[serde(default)]
    pub copy: f64,
    /// The share of a transfer's latency that a request which had to queue for the line still
    /// takes.
    #[serde(default = "one")]
    pub queued: f64,
    /// The share of a transfer's latency for which the cache that gives a line up still writes to
    /// it: until the request has come there.
    #[serde(default)]
    pub kept: f64,
}

fn alone() -> usize {
    1
}

fn one() -> f64 {
    1.0
}

/// The process-wide barrier, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// The call, with nobody to interrupt.
    pub call: f64,
    /// For each processor that is interrupted, to the caller.
    pub each: f64,
    /// From the interrupt's sending to its answer.
    pub answer: f64,
    /// What the interrupted processor loses.
    pub interrupt: f64,
}

/// Threads that sleep, in nanoseconds: for programs that simulate them by [`work`](crate::work).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Threads {
    /// The call that wakes a thread, to its caller.
    pub wake: f64,
    /// From there until the thread runs.
    pub woken: f64,
}

impl Default for Threads {
    /// What Linux takes on processors of the last twenty years, to an order of magnitude.
    fn default() -> Self {
        Threads { wake: 5_000.0, woken: 50_000.0 }
    }
}

/// Why a description is not one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// It is not the JSON of a description.
    #[error("not a machine's description: {0}")]
    Json(#[from] serde_json::Error),
    /// The sizes do not make the number of processors.
    #[error(
        "the topology does not add up: {product} says {made} processors, and `processors` says {said}"
    )]
    Sizes {
        /// The sizes, multiplied.
        product: String,
        /// Their product.
        made: usize,
        /// `processors`.
        said: usize,
    },
    /// There are none, or too many.
    #[error("a machine has 1 to {MAX_PROCESSORS} processors, not {0}")]
    Processors(usize),
    /// There is no level.
    #[error("`levels` is empty: a machine has at least one level, with the cost of a transfer")]
    NoLevels,
    /// A time that no access can take.
    #[error("`{name}` is {value} ns: it must be more than 0 and at most {LONGEST:.0}")]
    Time {
        /// The field.
        name: String,
        /// What it says.
        value: f64,
    },
    /// A time that may be zero, and is not possible either.
    #[error("`{name}` is {value} ns: it must be 0 (no limit) or more, and at most {LONGEST:.0}")]
    Occupancy {
        /// The field.
        name: String,
        /// What it says.
        value: f64,
    },
    /// A level that is nearer than one inside of it.
    #[error(
        "`{outer}` is nearer than `{inner}`, which is inside of it: {by} falls from {from} to {to} ns"
    )]
    Order {
        /// The inner level.
        inner: String,
        /// The outer level.
        outer: String,
        /// `transfer` or `memory`.
        by: &'static str,
        /// The value of the inner level.
        from: f64,
        /// The value of the outer level.
        to: f64,
    },
    /// The level of the memory nodes is not there.
    #[error("`memory.node` is `{0}`, and no level is called that")]
    Node(String),
    /// A size of a processor that cannot be.
    #[error("`{name}` is {value}: it must be 1 to {most}")]
    Size {
        /// The field.
        name: &'static str,
        /// What it says.
        value: usize,
        /// The largest possible.
        most: usize,
    },
    /// A share that is not one.
    #[error("`{name}` is {value}: it must be a number from 0 to {most}")]
    Share {
        /// The field.
        name: &'static str,
        /// What it says.
        value: f64,
        /// The largest possible.
        most: f64,
    },
    /// No machine of this name is shipped.
    #[error("no machine `{0}` is shipped: there is {names}", names = SHIPPED.map(|(name, _)| name).join(", "))]
    Unknown(String),
}

impl Description {
    /// Reads a description.
    ///
    /// # Errors
    ///
    /// If it is not one; the message names the field and what it may be.
    pub fn from_json(text: &str) -> Result<Self, DescriptionError> {
        let description: Description = serde_json::from_str(text)?;
        description.check()?;
        Ok(description)
    }

    /// A machine that is shipped: see [`SHIPPED`].
    ///
    /// # Errors
    ///
    /// [`DescriptionError::Unknown`], with the names that there are.
    pub fn shipped(name: &str) -> Result<Self, DescriptionError> {
        let found = SHIPPED.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| DescriptionError::Unknown(name.to_owned()))?;
        Self::from_json(text)
    }

    /// The description as a file.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The same machine with more or fewer groups of its outermost level, so that it has at least
    /// `processors`.
    ///
    /// # Errors
    ///
    /// [`DescriptionError::Processors`] if that are too many.
    pub fn extended(&self, processors: usize) -> Result<Self, DescriptionError> {
        let mut extended = self.clone();
        let outer = extended.levels.last_mut().ok_or(DescriptionError::NoLevels)?;
        let inner = self.processors / outer.size;
        outer.size = processors.div_ceil(inner).max(1);
        extended.processors = inner * outer.size;
        extended.check()?;
        Ok(extended)
    }

    /// How far two processors are from each other: the level of the innermost group that both are
    /// in, from 0.
    pub fn distance(&self, a: usize, b: usize) -> u64 {
        Places::of(self).common(a, b) as u64
    }

    /// Looks for what cannot be. [`Simulation::new`](crate::Simulation::new) does it, too.
    ///
    /// # Errors
    ///
    /// The first thing that cannot be.
    pub fn check(&self) -> Result<(), DescriptionError> {
        use DescriptionError as Error;
        if self.levels.is_empty() {
            return Err(Error::NoLevels);
        }
        if self.processors == 0 || self.processors > MAX_PROCESSORS {
            return Err(Error::Processors(self.processors));
        }
        let made = self.levels.iter().fold(1usize, |made, level| made.saturating_mul(level.size));
        if made != self.processors {
            let sizes: Vec<_> = self.levels.iter().map(|level| level.size.to_string()).collect();
            return Err(Error::Sizes { product: sizes.join(" x "), made, said: self.processors });
        }
        self.check_processor()?;
        self.check_levels()?;
        let Barrier { call, each, answer, interrupt } = self.barrier;
        for (name, value) in [("call", call), ("answer", answer), ("interrupt", interrupt)] {
            time(&format!("barrier.{name}"), value)?;
        }
        time("threads.wake", self.threads.wake)?;
        time("threads.woken", self.threads.woken)?;
        occupancy("barrier.each", each)?;
        occupancy("memory.line", self.memory.line)?;
        occupancy("memory.copy", self.memory.copy)?;
        share("memory.queued", self.memory.queued, 1.0)?;
        share("memory.kept", self.memory.kept, 0.99)?;
        share("jitter", self.jitter, 0.5)
    }

    fn check_processor(&self) -> Result<(), DescriptionError> {
        let costs = &self.processor;
        let times = [
            ("load", costs.load),
            ("store", costs.store),
            ("forward", costs.forward),
            ("exchange", costs.exchange),
            ("fence", costs.fence),
            ("pause", costs.pause),
            ("give_way", costs.give_way),
        ];
        for (name, value) in times {
            time(&format!("processor.{name}"), value)?;
        }
        size("processor.store_buffer", costs.store_buffer, 1 << 10)?;
        if costs.prefetch > MAX_PREFETCH {
            let (name, most) = ("processor.prefetch", MAX_PREFETCH as f64);
            return Err(DescriptionError::Share { name, value: costs.prefetch as f64, most });
        }
        size("processor.store_misses", costs.store_misses, 1 << 10)?;
        size("processor.cache_lines", costs.cache_lines, 1 << 24)
    }

    fn check_levels(&self) -> Result<(), DescriptionError> {
        let node = self.levels.iter().position(|level| level.name == self.memory.node);
        let node = node.ok_or_else(|| DescriptionError::Node(self.memory.node.clone()))?;
        let mut inner: Option<&Level> = None;
        for (at, level) in self.levels.iter().enumerate() {
            let field = |name: &str| format!("levels[{at}].{name} of `{}`", level.name);
            time(&field("transfer"), level.transfer)?;
            occupancy(&field("link"), level.link)?;
            if at >= node {
                time(&field("memory"), level.memory)?;
            }
            if let Some(inner) = inner {
                let both = [
                    ("transfer", inner.transfer, level.transfer),
                    ("memory", inner.memory, level.memory),
                ];
                for (by, from, to) in both {
                    if to < from {
                        let (inner, outer) = (inner.name.clone(), level.name.clone());
                        return Err(DescriptionError::Order { inner, outer, by, from, to });
                    }
                }
            }
            inner = Some(level);
        }
        Ok(())
    }
}

fn time(name: &str, value: f64) -> Result<(), DescriptionError> {
    // A thousandth of a nanosecond is the clock's step; what is less would cost nothing.
    if (0.001..=LONGEST).contains(&value) {
        return Ok(());
    }
    Err(DescriptionError::Time { name: name.to_owned(), value })
}

fn occupancy(name: &str, value: f64) -> Result<(), DescriptionError> {
    if (0.0..=LONGEST).contains(&value) {
        return Ok(());
    }
    Err(DescriptionError::Occupancy { name: name.to_owned(), value })
}

fn size(name: &'static str, value: usize, most: usize) -> Result<(), DescriptionError> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(DescriptionError::Size { name, value, most })
}

fn share(name: &'static str, value: f64, most: f64) -> Result<(), DescriptionError> {
    if (0.0..=most).contains(&value) {
        return Ok(());
    }
    Err(DescriptionError::Share { name, value, most })
}
