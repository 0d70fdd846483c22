//! What `poach check` is asked.

use std::num::NonZeroU64;
use std::path::PathBuf;

use poach_check::Consistency;
use poach_models::matrix::PolicyKind;

/// Run a queue's own source on a simulated machine with bounded store buffers, in every order.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  poach check ff-cl                                  Chase-Lev without its fence, delta as computed
  poach check ff-cl --store-buffer 2 --delta 1       delta one too small: a counterexample
  poach check ff-cl --delta 1 --svg race.svg         the same, drawn
  poach check all                                    the matrix of queues, policies and bounds
  poach check litmus                                 the machine against the x86-TSO paper
  poach check chase-lev --memory c11                 under the memory model of C11, where orderings count
  poach check laws                                   a thief alone with a queue of one task
  poach check SB.litmus --store-buffer 1             a litmus file of herd's, with a bound

Exit code: 0 if nothing is wrong, 1 for a violation or an interrupted search, 2 for usage.")]
pub(crate) struct Arguments {
    /// The queue, or `all`, `litmus` or `laws`, or a litmus file of herd's for x86.
    #[arg(value_name = "ALGORITHM")]
    pub(super) subject: String,
    /// The memory model: `c11` lets a load return what is no longer the newest, and each ordering
    /// counts.
    #[arg(long, value_name = "MODEL", value_enum, default_value_t = MemoryModel::Tso)]
    pub(super) memory: MemoryModel,
    /// Entries of each thread's store buffer; 0 is sequential consistency, and `unbounded` is for
    /// litmus files [default: 2, for a litmus file unbounded].
    #[arg(long, value_name = "S")]
    pub(super) store_buffer: Option<Entries>,
    /// The entry behind the buffer, which coalesces neighbours to one address.
    #[arg(long, value_name = "ON|OFF", value_enum, default_value_t = Switch::On)]
    pub(super) egress: Switch,
    /// How many pops a thief may fail to see [default: ceil((S + 1) / (X + 1))].
    #[arg(long, value_name = "DELTA")]
    pub(super) delta: Option<NonZeroU64>,
    /// Stores between two pops other than the one to the tail [default: 1 with a bounded policy,
    /// else 0].
    #[arg(long, value_name = "X")]
    pub(super) stores_between: Option<u32>,
    /// Tasks in the queue to begin with, in the scene drain [default: 3, or delta + 1 with a
    /// bounded policy].
    #[arg(long, value_name = "N")]
    pub(super) tasks: Option<u32>,
    /// What the owner does [default: drain, and where --tasks and --replay do not speak of it,
    /// brief; of the injector pushes].
    #[arg(long, value_enum, value_name = "SCENE")]
    pub(super) scene: Option<SceneName>,
    /// Thieves.
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub(super) thieves: u32,
    /// How often each thief tries to steal [default: 2, in the scene pushes 1].
    #[arg(long, value_name = "N")]
    pub(super) steals: Option<u32>,
    /// The fence policy, if not the queue's own.
    #[arg(long, value_enum, value_name = "P")]
    pub(super) policy: Option<PolicyName>,
    /// Interrupt a thread that could go on at most so often in one execution.
    #[arg(long, value_name = "N")]
    pub(super) preemptions: Option<u32>,
    /// So many executions at random, instead of all.
    #[arg(long, value_name = "EXECUTIONS", conflicts_with = "preemptions")]
    pub(super) random: Option<u64>,
    /// Where the random numbers start [default: one that is printed].
    #[arg(long, value_name = "N", requires = "random")]
    pub(super) seed: Option<u64>,
    /// Run the one execution of this choice string, from a counterexample (of the scene drain, if
    /// --scene says no other).
    #[arg(long, value_name = "CHOICES", conflicts_with_all = ["random", "preemptions"])]
    pub(super) replay: Option<String>,
    /// Stop after so many seconds.
    #[arg(long, value_name = "N")]
    pub(super) seconds: Option<u64>,
    /// Draw the counterexample into this file.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// With `all`: a smaller matrix, within half a minute.
    #[arg(long)]
    pub(super) quick: bool,
    /// With `all`: search the injector's pushes further, in some minutes.
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
    /// C11's and Rust's, without load buffering.
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

/// What the owner does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum SceneName {
    /// It pops until no task is left.
    Drain,
    /// It pushes two, pops one, and pops until none is left.
    Brief,
    /// It pushes and pops by turns, over a queue that must grow.
    Mixed,
    /// It pops one of two when a thief has come, and waits for the thief.
    Echo,
    /// It pushes one into an empty queue, as does the injector's second pusher, and pops none.
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
