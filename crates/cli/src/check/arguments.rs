//! The command line of `poach check`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use poach_check::Consistency;
use poach_models::matrix::PolicyKind;

/// Model-check a work-stealing queue on a machine with bounded store buffers.
///
/// Runs the queue's own source in every order of its steps, and of stores that reach memory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  poach check ff-cl                                  Chase-Lev without its fence, the default delta
  poach check ff-cl --store-buffer 2 --delta 1       delta one too small: a counterexample
  poach check ff-cl --delta 1 --svg race.svg         the same, as a picture
  poach check all                                    the matrix of queues, policies and bounds
  poach check litmus                                 the litmus tests of the x86-TSO paper
  poach check chase-lev --memory c11                 the memory model of C11
  poach check laws                                   a thief alone with a queue of one task
  poach check SB.litmus --store-buffer 1             a litmus file of herd, with a bound

Exit code: 0 without a violation, 1 for a violation or an interrupted search, 2 for a usage error.")]
pub(crate) struct Arguments {
    /// A queue, `all`, `litmus`, `laws`, or a litmus file of herd for x86.
    #[arg(value_name = "ALGORITHM")]
    pub(super) subject: String,
    /// Memory model.
    #[arg(long, value_name = "MODEL", value_enum, default_value_t = MemoryModel::Tso)]
    pub(super) memory: MemoryModel,
    /// Entries of each thread's store buffer [default: 2; unbounded for a litmus file].
    ///
    /// 0 is sequential consistency. `unbounded` is for litmus files only.
    #[arg(long, value_name = "S")]
    pub(super) store_buffer: Option<Entries>,
    /// Simulate the entry behind the buffer, which coalesces consecutive stores to one address.
    #[arg(long, value_name = "ON|OFF", value_enum, default_value_t = Switch::On)]
    pub(super) egress: Switch,
    /// Number of pops that a thief may fail to see [default: ceil((S + 1) / (X + 1))].
    #[arg(long, value_name = "DELTA")]
    pub(super) delta: Option<NonZeroU64>,
    /// Stores to other words between two pops [default: 1 with a bounded policy, else 0].
    #[arg(long, value_name = "X")]
    pub(super) stores_between: Option<u32>,
    /// Initial tasks in the scene `drain` [default: 3, or delta + 1 with a bounded policy].
    #[arg(long, value_name = "N")]
    pub(super) tasks: Option<u32>,
    /// The owner's program [default: drain and brief; drain alone with --tasks or --replay; pushes
    /// for the injector].
    #[arg(long, value_enum, value_name = "SCENE")]
    pub(super) scene: Option<SceneName>,
    /// Number of thieves.
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub(super) thieves: u32,
    /// Attempts of each thief [default: 2; 1 in the scene `pushes`].
    #[arg(long, value_name = "N")]
    pub(super) steals: Option<u32>,
    /// Fence policy [default: the queue's own].
    #[arg(long, value_enum, value_name = "P")]
    pub(super) policy: Option<PolicyName>,
    /// Limit the preemptions in each execution.
    #[arg(long, value_name = "N")]
    pub(super) preemptions: Option<u32>,
    /// Run random executions instead of all.
    #[arg(long, value_name = "EXECUTIONS", conflicts_with = "preemptions")]
    pub(super) random: Option<u64>,
    /// Seed of --random [default: a random seed, which is printed].
    #[arg(long, value_name = "N", requires = "random")]
    pub(super) seed: Option<u64>,
    /// Replay an execution from the choice string of a counterexample.
    #[arg(long, value_name = "CHOICES", conflicts_with_all = ["random", "preemptions"])]
    pub(super) replay: Option<String>,
    /// Stop after N seconds.
    #[arg(long, value_name = "N")]
    pub(super) seconds: Option<u64>,
    /// Draw the counterexample as an SVG file.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// With `all`: check a smaller matrix, in half a minute.
    #[arg(long)]
    pub(super) quick: bool,
    /// With `all`: search the injector's pushes further, which takes minutes.
    #[arg(long, conflicts_with = "quick")]
    pub(super) full: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(super) json: bool,
}

/// How many entries a store buffer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entries {
    Bounded(u32),
    Unbounded,
}

impl std::str::FromStr for Entries {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "unbounded" {
            return Ok(Entries::Unbounded);
        }
        let number = text.parse().map_err(|_| "a number of entries, or unbounded".to_owned())?;
        Ok(Entries::Bounded(number))
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

impl Switch {
    pub(super) fn on(self) -> bool {
        self == Switch::On
    }
}

/// A memory model's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum MemoryModel {
    /// Total store order, with store buffers.
    Tso,
    /// The memory model of C11 and Rust, without load buffering: stale loads, and orderings count.
    C11,
}

impl MemoryModel {
    pub(super) fn consistency(self) -> Consistency {
        match self {
            MemoryModel::Tso => Consistency::Tso,
            MemoryModel::C11 => Consistency::C11,
        }
    }
}

/// The owner's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SceneName {
    /// Pop until no task is left.
    Drain,
    /// Push two tasks, pop one, then pop until no task is left.
    Brief,
    /// Push and pop in turn, in a queue that must grow.
    Mixed,
    /// Pop one of two tasks after a thief has begun, and wait for the thief.
    Echo,
    /// Push one task into an empty queue, beside the injector's second pusher; pop none.
    Pushes,
}

impl SceneName {
    pub(super) fn name(self) -> &'static str {
        match self {
            SceneName::Drain => "drain",
            SceneName::Brief => "brief",
            SceneName::Mixed => "mixed",
            SceneName::Echo => "echo",
            SceneName::Pushes => "pushes",
        }
    }
}

/// A fence policy's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum PolicyName {
    Full,
    Asymmetric,
    Bounded,
    Resolved,
    Unbounded,
    Displaced,
    Unfenced,
}

impl PolicyName {
    pub(super) fn kind(self) -> PolicyKind {
        match self {
            PolicyName::Full => PolicyKind::Full,
            PolicyName::Asymmetric => PolicyKind::Asymmetric,
            PolicyName::Bounded => PolicyKind::Bounded,
            PolicyName::Resolved => PolicyKind::Resolved,
            PolicyName::Unbounded => PolicyKind::Unbounded,
            PolicyName::Displaced => PolicyKind::Displaced,
            PolicyName::Unfenced => PolicyKind::Unfenced,
        }
    }
}
