//! A model, and what it runs on.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::execution;
use super::thread::drop_locals;
use crate::{Buffer, Config, Incomplete, Report, Strategy, Threads, Verdict, engine, explore};

/// Stands for a buffer without a bound where a number names a machine.
pub const UNBOUNDED: u32 = u32::MAX;

/// Events of an execution, by default: more is called a livelock.
const MAX_BRANCHES: usize = 10_000;

/// States kept by default; each takes about 40 bytes.
const MAX_STATES: u64 = 20_000_000;

/// Executions in which a shorter counterexample is looked for.
const SHORTEN: u64 = 500;

/// The machine that a model runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// How many stores each thread's buffer holds.
    pub buffer: Buffer,
    /// Whether an egress slot stands behind the buffer and coalesces.
    pub egress: bool,
}

impl Machine {
    /// TSO without a bound: every execution that any of the others has.
    pub const fn unbounded() -> Self {
        Machine { buffer: Buffer::Unbounded, egress: false }
    }

    /// TSO\[S\] for S = `capacity`, without an egress slot.
    pub const fn tso(capacity: u32) -> Self {
        Machine { buffer: Buffer::Bounded(capacity), egress: false }
    }

    /// Sequential consistency.
    pub const fn sequential() -> Self {
        Machine::tso(0)
    }

    /// The same machine, with an egress slot.
    #[must_use]
    pub const fn with_egress(self) -> Self {
        Machine { egress: true, ..self }
    }

    const fn of(number: u32) -> Self {
        if number == UNBOUNDED { Machine::unbounded() } else { Machine::tso(number) }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.buffer {
            Buffer::Bounded(0) => f.write_str("sequential consistency"),
            Buffer::Bounded(capacity) => write!(f, "TSO[{capacity}]"),
            Buffer::Unbounded => f.write_str("TSO without a bound"),
        }?;
        if self.egress { f.write_str(" with an egress slot") } else { Ok(()) }
    }
}

/// How a model is checked. `S` is the default machine's bound, [`UNBOUNDED`] for none.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BuilderOn<const S: u32> {
    /// The machine.
    pub machine: Machine,
    /// Has no effect: a model may have [`MAX_THREADS`](crate::MAX_THREADS).
    pub max_threads: usize,
    /// Events (steps of threads, and stores that reach memory) that an execution may have; more is
    /// a violation.
    pub max_branches: usize,
    /// Executions to run at most. What they covered is then taken for enough, as loom takes it.
    pub max_permutations: Option<usize>,
    /// Time to take at most. What was covered is then taken for enough, as loom takes it.
    pub max_duration: Option<Duration>,
    /// How many times a thread may be interrupted that could go on; any number if `None`.
    pub preemption_bound: Option<usize>,
    /// Has no effect: a search is not kept.
    pub checkpoint_file: Option<PathBuf>,
    /// Has no effect: a search is not kept.
    pub checkpoint_interval: usize,
    /// Has no effect: everything is explored.
    pub expect_explicit_explore: bool,
    /// Has no effect: places in the source are always known.
    pub location: bool,
    /// Has no effect: nothing is printed.
    pub log: bool,
}

/// How a model is checked, on TSO without a bound.
pub type Builder = BuilderOn<UNBOUNDED>;

impl<const S: u32> Default for BuilderOn<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const S: u32> BuilderOn<S> {
    /// Everything, on the machine of `S`.
    pub fn new() -> Self {
        BuilderOn {
            machine: Machine::of(S),
            max_threads: crate::MAX_THREADS,
            max_branches: MAX_BRANCHES,
            max_permutations: None,
            max_duration: None,
            preemption_bound: None,
            checkpoint_file: None,
            checkpoint_interval: 0,
            expect_explicit_explore: false,
            location: false,
            log: false,
        }
    }

    /// Has no effect: a search is not kept.
    pub fn checkpoint_file(&mut self, _: &str) -> &mut Self {
        self
    }

    /// Explores every execution of the model.
    ///
    /// # Panics
    ///
    /// If an execution is wrong: with what is wrong, on which machines it is, and the shortest such
    /// execution found. Also if the search had to stop before its end without having been asked to.
    /// A wait whose rounds write is explored up to a bound, which is taken for enough.
    pub fn check<F>(&self, model: F)
    where
        F: Fn() + Sync + Send + 'static,
    {
        let model = std::sync::Arc::new(model);
        let report = self.report(&model);
        let violation = match &report.verdict {
            Verdict::Clean
            | Verdict::Incomplete(
                Incomplete::Preemptions(_)
                | Incomplete::Executions(_)
                | Incomplete::Time(_)
                | Incomplete::Waits(_),
            ) => return,
            Verdict::Incomplete(why) => panic!(
                "the model is too large: {why}, without a violation in {} executions; a \
                 preemption_bound or fewer threads make it smaller",
                report.executions
            ),
            Verdict::Violation(violation) => violation,
        };
        let mut text = format!("{violation}\nwrong under {}", self.machine);
        if let Some(more) = self.others(&model, report.executions) {
            text.push_str(&more);
        }
        if let Some(example) = &report.counterexample {
            text = format!("{text}\n\n{example}");
        }
        panic!("{text}");
    }

    /// Explores every execution of the model, and returns what was found instead of panicking.
    pub fn explore<F>(&self, model: F) -> Report
    where
        F: Fn() + Sync + Send + 'static,
    {
        self.report(&std::sync::Arc::new(model))
    }

    fn report<F>(&self, model: &std::sync::Arc<F>) -> Report
    where
        F: Fn() + 'static,
    {
        let config = Config {
            buffer: self.machine.buffer,
            egress: self.machine.egress,
            strategy: Strategy::Exhaustive {
                preemptions: self.preemption_bound.map(|bound| bound as u32),
                reduce: true,
                prune: true,
            },
            max_executions: self.max_permutations.map_or(u64::MAX, |most| most as u64),
            max_states: MAX_STATES,
            max_steps: self.max_branches,
            max_time: self.max_duration,
            shorten: SHORTEN,
            ..Config::default()
        };
        let report = explore(&config, &move |threads: &mut Threads| {
            engine::keep_clocks();
            engine::keep_whole();
            execution::begin();
            let model = std::sync::Arc::clone(model);
            threads.spawn("main", move || {
                model();
                drop_locals();
            });
            threads.finally(|| {
                if let Some(what) = execution::left() {
                    panic!("{what}");
                }
            });
        });
        execution::end();
        report
    }

    /// Of a model that is wrong on this machine: where it is right, among the stronger machines.
    fn others<F>(&self, model: &std::sync::Arc<F>, executions: u64) -> Option<String>
    where
        F: Fn() + 'static,
    {
        let below = match self.machine.buffer {
            Buffer::Bounded(capacity) => capacity,
            Buffer::Unbounded => UNBOUNDED,
        };
        let mut right = None;
        for capacity in [0, 1, 2, 4, 8, 16].into_iter().filter(|capacity| *capacity < below) {
            let machine = Machine { buffer: Buffer::Bounded(capacity), ..self.machine };
            let most = executions.saturating_mul(4).saturating_add(10_000) as usize;
            let smaller = BuilderOn::<S> {
                machine,
                max_permutations: Some(self.max_permutations.map_or(most, |own| own.min(most))),
                ..self.clone()
            };
            match smaller.report(model).verdict {
                Verdict::Clean => right = Some(machine),
                Verdict::Violation(_) => {
                    return Some(match right {
                        None => format!(", and under {machine} already"),
                        Some(right) => format!(", from {machine} on; right under {right}"),
                    });
                }
                Verdict::Incomplete(_) => break,
            }
        }
        right.map(|right| format!("; right under {right}"))
    }
}

/// Explores every execution of a model on TSO without a bound.
///
/// # Panics
///
/// As [`BuilderOn::check`].
pub fn model<F>(model: F)
where
    F: Fn() + Sync + Send + 'static,
{
    Builder::new().check(model);
}

/// Explores every execution of a model on a machine.
///
/// # Panics
///
/// As [`BuilderOn::check`].
pub fn model_on<F>(machine: Machine, model: F)
where
    F: Fn() + Sync + Send + 'static,
{
    let mut builder = Builder::new();
    builder.machine = machine;
    builder.check(model);
}
