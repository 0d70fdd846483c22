//! A model checker for TSO\[S\], total store ordering with store buffers of capacity S, that runs
//! the queues' own source.
//!
//! [`Simulated`] is a [`poach_memory::Memory`]: whatever is generic over that trait runs here
//! unchanged. A model makes shared things and threads; [`explore`] runs it again and again, until
//! it has seen every execution that differs from the others in something that could be noticed.
//!
//! ```
//! use poach_check::{Config, Simulated, Verdict, explore};
//! use poach_memory::{Memory, Ordering::Relaxed, Word};
//! use std::sync::Arc;
//!
//! // Store buffering: each thread stores to one word and loads the other's.
//! let model = |threads: &mut poach_check::Threads| {
//!     let words = Arc::new([(); 2].map(|()| <Simulated as Memory>::Word::new(0)));
//!     for (mine, name) in [(0, "left"), (1, "right")] {
//!         let words = Arc::clone(&words);
//!         threads.spawn(name, move || {
//!             words[mine].store(1, Relaxed);
//!             poach_check::observe(mine, words[1 - mine].load(Relaxed));
//!         });
//!     }
//! };
//! let report = explore(&Config::default(), &model);
//! assert_eq!(report.verdict, Verdict::Clean);
//! // Both may miss the other's store: the order of a store and a later load is not kept.
//! assert!(report.outcomes.contains(&vec![0, 0]));
//! let report = explore(&Config::sequential(), &model);
//! assert!(!report.outcomes.contains(&vec![0, 0]));
//! ```
//!
//! | module | what |
//! |---|---|
//! | `machine` | threads, words, store buffers, the egress slot; or messages and views (C11) |
//! | `search` | which event comes next, which executions need not be run |
//! | `engine` | the model's threads as coroutines; one execution |
//! | [`history`], [`spec`] | calls and returns; linearizability |
//! | [`litmus`] | the tests of the x86-TSO paper |
//! | [`herd`] | litmus files |
//! | [`loom`] | loom's names, for the algorithms of other crates |
//! | [`counterexample`] | an execution that people can read |
//!
//! Limits:
//!
//! - Under TSO it does not see the reorderings that TSO does not have; [`Consistency::C11`] and the
//!   loom models of each queue do.
//! - Under C11 it does not see load buffering.
//! - It does not buffer the content of a [`poach_memory::Cell`]. It checks that a store and a load
//!   order all accesses to it.
#![doc = include_str!("readme.md")]
#![deny(unsafe_code)]

pub mod counterexample;
mod coverage;
mod engine;
pub mod herd;
pub mod history;
pub mod litmus;
pub mod loom;
mod machine;
#[expect(unsafe_code, reason = "it vouches for the simulated memory")]
mod memory;
mod monitor;
mod raw;
mod search;
pub mod spec;
mod trace;
mod violation;
mod weakening;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use counterexample::Counterexample;
pub use coverage::Coverage;
pub use engine::{fail, forget, observe, operation, stole};
pub use machine::{MAX_THREADS, MAX_WORDS};
pub use memory::Simulated;
pub use memory::{Displacing, SimulatedCell, SimulatedPointer, SimulatedWord, WithoutBarrier};
pub use spec::Spec;
pub use trace::{Naming, parse_choices, write_choices};
pub use violation::{Kind, Unexplained, Violation};
pub use weakening::{Demand, Orderings, Weakening};

/// The capacity of a thread's store buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// At most this number of stores; 0 is sequential consistency.
    Bounded(u32),
    /// Any number of stores: classical TSO.
    Unbounded,
}

/// The machine's memory model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// Total store order, with store buffers of [`Config::buffer`].
    #[default]
    Tso,
    /// C11's and Rust's, in which a load may return what is no longer the newest, and each ordering
    /// counts. Histories are not checked against [`Config::spec`]: what has returned need not
    /// be seen, so a model says what must hold in the end. What is left out (load buffering)
    /// and what `SeqCst` accesses are: `machine/weak/mod.rs`.
    C11,
}

/// How to search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Every execution.
    Exhaustive {
        /// How many times a thread may be interrupted that could go on; any number if `None`.
        preemptions: Option<u32>,
        /// Leave out executions that differ in nothing that could be noticed.
        reduce: bool,
        /// Leave out what follows a state that is explored already.
        prune: bool,
    },
    /// Executions at random, by PCT.
    Random {
        /// Where the random numbers start.
        seed: u64,
        /// How many executions.
        executions: u64,
        /// How many ordering constraints a bug may need and be found with PCT's odds, at least 1.
        depth: u32,
    },
    /// One execution, from a choice string ([`parse_choices`]).
    Replay(Vec<u8>),
}

/// What to explore, and how far.
#[derive(Clone, Debug)]
pub struct Config {
    /// The memory model; with [`Consistency::C11`] there are no buffers.
    pub consistency: Consistency,
    /// The capacity S.
    pub buffer: Buffer,
    /// Whether an egress slot stands behind the buffer and coalesces (section 7.3).
    pub egress: bool,
    /// Entries of that slot, each of which coalesces: 1 in the paper, more in later processors.
    pub egress_entries: u32,
    /// How to search.
    pub strategy: Strategy,
    /// What every history is checked against.
    pub spec: Option<Spec>,
    /// How the orderings and fences of the code under test are played.
    pub orderings: Orderings,
    /// Executions to run at most.
    pub max_executions: u64,
    /// States to keep at most; each takes about 40 bytes.
    pub max_states: u64,
    /// Events an execution may have: more is called a livelock.
    pub max_steps: usize,
    /// Time to take at most, and to the end of the execution that goes on then.
    pub max_time: Option<Duration>,
    /// Executions to look for a shorter counterexample when one is found.
    pub shorten: u64,
    /// If set, a panic of a model's thread that cannot unwind is a violation like others. Otherwise
    /// the violation and its choices are printed, and the process ends.
    ///
    /// Such panics are the standard library's checks for undefined behaviour, a panic that leaves
    /// an `extern "C"` function, and a second panic in a destructor.
    ///
    /// After such a panic this thread of the system explores nothing more. The counterexample has
    /// the choices only, which another thread can replay, and further calls of [`explore`] return a
    /// violation that says so. The panic never ends, so [`std::panic::set_hook`] and
    /// [`take_hook`](std::panic::take_hook), which Rust's test harness calls at its end, wait for
    /// ever.
    pub outlives_aborts: bool,
    /// Set by anyone, ends the search; what was covered is reported.
    pub stop: Arc<AtomicBool>,
}

impl Default for Config {
    /// Unbounded TSO without an egress slot, exhaustively.
    fn default() -> Self {
        Config {
            consistency: Consistency::Tso,
            buffer: Buffer::Unbounded,
            egress: false,
            egress_entries: 1,
            strategy: Strategy::Exhaustive { preemptions: None, reduce: true, prune: true },
            spec: None,
            orderings: Orderings::AsWritten,
            max_executions: u64::MAX,
            max_states: 50_000_000,
            max_steps: 10_000,
            max_time: None,
            shorten: 20_000,
            outlives_aborts: false,
            stop: Arc::default(),
        }
    }
}

impl Config {
    /// Sequential consistency.
    pub fn sequential() -> Self {
        Config { buffer: Buffer::Bounded(0), ..Config::default() }
    }

    /// The memory model of C11.
    pub fn c11() -> Self {
        Config { consistency: Consistency::C11, ..Config::default() }
    }

    /// TSO\[S\] for S = `capacity`, with an egress slot or without.
    pub fn bounded(capacity: u32, egress: bool) -> Self {
        Config { buffer: Buffer::Bounded(capacity), egress, ..Config::default() }
    }

    /// The same, with histories checked against `spec`.
    #[must_use]
    pub fn against(self, spec: Spec) -> Self {
        Config { spec: Some(spec), ..self }
    }

    /// The same for models too large for a complete search: at most this number of preemptions,
    /// `executions` executions, and no search for a shorter counterexample.
    #[must_use]
    pub fn within(self, preemptions: u32, executions: u64) -> Self {
        let strategy =
            Strategy::Exhaustive { preemptions: Some(preemptions), reduce: true, prune: true };
        Config { strategy, shorten: 0, max_executions: executions, ..self }
    }

    fn size(&self) -> machine::Size {
        let (capacity, egress) = match self.buffer {
            _ if self.consistency == Consistency::C11 => (0, 0),
            Buffer::Bounded(0) => (0, 0),
            Buffer::Bounded(capacity) => {
                let egress = if self.egress { self.egress_entries as usize } else { 0 };
                (capacity as usize + egress, egress)
            }
            Buffer::Unbounded => (usize::MAX, 0),
        };
        machine::Size { capacity, egress }
    }
}

/// The threads of a model, and what to check when they have all ended.
#[derive(Default)]
pub struct Threads {
    jobs: Vec<(&'static str, engine::Job)>,
    after: Option<Box<dyn FnOnce()>>,
    words: Arc<[Naming]>,
}

impl Threads {
    /// Adds a thread.
    ///
    /// # Panics
    ///
    /// If there are [`MAX_THREADS`] already.
    pub fn spawn(&mut self, name: &'static str, body: impl FnOnce() + 'static) {
        self.add(name, Box::new(body));
    }

    fn add(&mut self, name: &'static str, job: engine::Job) {
        assert!(self.jobs.len() < MAX_THREADS, "a model has at most {MAX_THREADS} threads");
        self.jobs.push((name, job));
    }

    /// What runs when every thread has ended and every buffer is empty; its panic is a violation.
    /// Whatever it owns lives until then: shared things are best kept here, so that no thread's end
    /// drops them.
    pub fn finally(&mut self, check: impl FnOnce() + 'static) {
        self.after = Some(Box::new(check));
    }

    /// Names the words that the set-up made, in the order in which it made them. A model is set up
    /// for each execution: names that are an `Arc` already are not copied.
    pub fn name_words(&mut self, names: impl Into<Arc<[Naming]>>) {
        self.words = names.into();
    }
}

/// Why a search without a violation proves nothing beyond what it covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Incomplete {
    /// It was asked to stop.
    Stopped,
    /// It ran as many executions as it may.
    Executions(u64),
    /// It keeps as many states as it may.
    States(u64),
    /// It reached its time limit.
    Time(Duration),
    /// It covered the executions with at most this number of preemptions.
    Preemptions(u32),
    /// It took executions at random, from this seed.
    Random(u64),
    /// It ran one execution.
    Replay,
    /// A thread waits in rounds that write, and gave up this number of times in a row.
    Waits(u32),
    /// The model did not want a part of it explored ([`loom::stop_exploring`]).
    Unexplored,
    /// It found a violation and looked no further.
    Found,
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Incomplete::Stopped => f.write_str("stopped"),
            Incomplete::Executions(count) => write!(f, "stopped after {count} executions"),
            Incomplete::States(count) => write!(f, "stopped at {count} states"),
            Incomplete::Time(time) => write!(f, "stopped after {} s", time.as_secs_f64()),
            Incomplete::Preemptions(bound) => write!(f, "only up to {bound} preemptions"),
            Incomplete::Random(seed) => write!(f, "at random, seed {seed}"),
            Incomplete::Replay => f.write_str("one execution"),
            Incomplete::Waits(count) => {
                write!(f, "only up to {count} rounds in a row of a wait whose rounds write")
            }
            Incomplete::Unexplored => {
                f.write_str("only where the model did not stop the exploring")
            }
            Incomplete::Found => f.write_str("stopped at a violation"),
        }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every execution was covered, and none is wrong.
    Clean,
    /// One is wrong.
    Violation(Violation),
    /// None that was covered is wrong, and not all were.
    Incomplete(Incomplete),
}

impl Verdict {
    /// `clean`, `violation` or `incomplete`.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Clean => "clean",
            Verdict::Violation(_) => "violation",
            Verdict::Incomplete(_) => "incomplete",
        }
    }
}

/// What a search has found, and what it cost.
#[derive(Clone, Debug)]
pub struct Report {
    /// The answer.
    pub verdict: Verdict,
    /// Whether every execution was covered.
    pub complete: bool,
    /// Executions run, whole or in part.
    pub executions: u64,
    /// Executions run to their end.
    pub completed: u64,
    /// Distinct states at which there was a choice.
    pub states: u64,
    /// Executions cut because their state was explored already.
    pub known: u64,
    /// Executions cut because all that could come next had been explored in another order.
    pub asleep: u64,
    /// Events, without those that were replayed.
    pub steps: u64,
    /// Events of the longest execution.
    pub depth: usize,
    /// How often the search began again because two threads share a word that it had taken for one
    /// thread's own.
    pub restarts: u32,
    /// Time taken.
    pub elapsed: Duration,
    /// The distinct lists of values that executions showed with [`observe`].
    pub outcomes: BTreeSet<Vec<u64>>,
    /// Whether some operation of some execution took a task as a thief.
    pub stolen: bool,
    /// What the accesses and fences of executions asked for, if [listed](Orderings::Listed).
    pub demands: BTreeSet<Weakening>,
    /// Executions in which a task was returned more than once, where the specification allows it.
    pub duplicates: u64,
    /// The shortest violation found.
    pub counterexample: Option<Counterexample>,
    /// The shortest of the executions with a task returned more than once.
    pub duplicate: Option<Counterexample>,
}

/// Explores every execution of a model, or as many as `config` says.
///
/// The model is called once for each execution, makes its shared things out of [`Simulated`] words,
/// and adds its threads. It must be deterministic: no clock, no random numbers, no memory of
/// earlier executions.
///
/// # Panics
///
/// If called inside of a model, or if the model itself panics outside of its threads.
///
/// During a panic nothing can be explored: the verdict is then a violation that says so.
pub fn explore(config: &Config, model: &dyn Fn(&mut Threads)) -> Report {
    engine::run(config, model)
}
