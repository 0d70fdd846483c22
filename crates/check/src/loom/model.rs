//! A model, and what it runs on.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc as StdArc;
use std::time::Duration;

use super::execution::{self, Settings};
use super::thread::drop_locals;
use crate::search::Exploring;
use crate::{
    Buffer, Config, Consistency, Incomplete, Kind, Report, Strategy, Threads, Verdict, engine,
    explore, parse_choices,
};

/// Stands for a buffer without a bound where a number names a machine.
pub const UNBOUNDED: u32 = u32::MAX;

/// Stands for the memory model of C11 where a number names a machine.
pub const C11: u32 = u32::MAX - 1;

const MAX_STEPS: usize = 20_000;

const MAX_STATES: u64 = 20_000_000;

const SHORTEN: u64 = 500;

/// The machine that a model runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The memory model; with [`Consistency::C11`] there are no buffers.
    pub consistency: Consistency,
    /// How many stores each thread's buffer holds.
    pub buffer: Buffer,
    /// Whether an egress slot stands behind the buffer and coalesces.
    pub egress: bool,
}

impl Machine {
    /// The memory model of C11 and Rust.
    pub const fn c11() -> Self {
        Machine { consistency: Consistency::C11, ..Machine::unbounded() }
    }

    /// TSO without a bound: every execution that TSO with a bound has.
    pub const fn unbounded() -> Self {
        let consistency = Consistency::Tso;
        Machine { consistency, buffer: Buffer::Unbounded, egress: false }
    }

    /// TSO\[S\] for S = `capacity`, without an egress slot.
    pub const fn tso(capacity: u32) -> Self {
        Machine { buffer: Buffer::Bounded(capacity), ..Machine::unbounded() }
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
        match number {
            UNBOUNDED => Machine::unbounded(),
            C11 => Machine::c11(),
            capacity => Machine::tso(capacity),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.consistency, self.buffer) {
            (Consistency::C11, _) => f.write_str("C11"),
            (_, Buffer::Bounded(0)) => f.write_str("sequential consistency"),
            (_, Buffer::Bounded(capacity)) => write!(f, "TSO[{capacity}]"),
            (_, Buffer::Unbounded) => f.write_str("TSO without a bound"),
        }?;
        if self.egress { f.write_str(" with an egress slot") } else { Ok(()) }
    }
}

impl FromStr for Machine {
    type Err = String;

    /// `c11`, `tso`, `tso4` for TSO\[4\], or `sc` for sequential consistency.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "c11" => return Ok(Machine::c11()),
            "tso" => return Ok(Machine::unbounded()),
            "sc" => return Ok(Machine::sequential()),
            _ => {}
        }
        let capacity = text.strip_prefix("tso").and_then(|capacity| capacity.parse().ok());
        capacity
            .map(Machine::tso)
            .ok_or_else(|| format!("{text:?} is no machine: c11, tso, tso4 (any number), or sc"))
    }
}

/// How a model is checked. `S` is the default machine: TSO's bound, [`UNBOUNDED`], or [`C11`].
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "they are loom's")]
pub struct BuilderOn<const S: u32> {
    /// The machine.
    pub machine: Machine,
    /// How many of each thread's waits may end without a reason: of
    /// [`Condvar::wait`](super::sync::Condvar::wait), [`Notify::wait`](super::sync::Notify::wait) and
    /// [`park`](super::thread::park). 1 by default, which finds an `if` in the place of a `while`.
    pub spurious_wakeups: u32,
    /// Whether [`notify_one`](super::sync::Condvar::notify_one) may wake any waiting thread. If
    /// not, it wakes the thread that has waited longest.
    pub notify_any: bool,
    /// Whether a thread's panic is what its [`join`](super::thread::JoinHandle::join) returns, as in a
    /// program, and not a violation. A model whose asserts stand in its threads does not want that.
    pub panics_are_results: bool,
    /// The choices of one execution, which alone is run, and whose panics are printed.
    pub replay: Option<String>,
    /// Where the counterexample is drawn, as SVG.
    pub picture: Option<PathBuf>,
    /// Has no effect: a model may have [`MAX_THREADS`](crate::MAX_THREADS).
    pub max_threads: usize,
    /// Has no effect: an execution ends by itself, or is called a livelock after 20,000 events.
    pub max_branches: usize,
    /// Executions to run at most. What they covered is then taken for enough, as loom takes it.
    pub max_permutations: Option<usize>,
    /// Time to take at most. What was covered is then taken for enough, as loom takes it.
    pub max_duration: Option<Duration>,
    /// How many times a thread may be interrupted that could go on; any number if `None`.
    pub preemption_bound: Option<usize>,
    /// Where the choices of the counterexample are kept: the next search begins with them.
    pub checkpoint_file: Option<PathBuf>,
    /// Has no effect: a checkpoint is the counterexample's.
    pub checkpoint_interval: usize,
    /// Whether nothing is explored before [`explore`](super::explore) is called.
    pub expect_explicit_explore: bool,
    /// Has no effect: places in the source are always known.
    pub location: bool,
    /// Has no effect here: [`check_and_tell`](Self::check_and_tell) says what was covered.
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
            spurious_wakeups: 1,
            notify_any: true,
            panics_are_results: false,
            replay: None,
            picture: None,
            max_threads: crate::MAX_THREADS,
            max_branches: MAX_STEPS,
            max_permutations: None,
            max_duration: None,
            preemption_bound: None,
            checkpoint_file: None,
            checkpoint_interval: 20_000,
            expect_explicit_explore: false,
            location: true,
            log: false,
        }
    }

    /// Sets [`checkpoint_file`](Self::checkpoint_file).
    pub fn checkpoint_file(&mut self, file: &str) -> &mut Self {
        self.checkpoint_file = Some(file.into());
        self
    }

    /// Explores every execution of the model.
    ///
    /// # Panics
    ///
    /// If an execution is wrong: with what is wrong, on which machines it is, and the shortest such
    /// execution found. Also if the search had to stop before its end and no setting asked for
    /// that. A wait whose rounds write is explored up to a bound, which counts as complete.
    pub fn check<F>(&self, model: F)
    where
        F: Fn() + Sync + Send + 'static,
    {
        self.check_and_tell(model, |_| ());
    }

    /// [`check`](Self::check), which tells what was covered before it returns or panics.
    ///
    /// # Panics
    ///
    /// As [`check`](Self::check).
    pub fn check_and_tell<F>(&self, model: F, tell: impl FnOnce(&str))
    where
        F: Fn() + Sync + Send + 'static,
    {
        let model = StdArc::new(model);
        let kept = self.kept().map(Strategy::Replay);
        let replayed = kept.map(|strategy| self.report(&model, strategy, self.replay.is_some()));
        // What another version of the model had wrong need not be.
        let fits = |report: &Report| match &report.verdict {
            Verdict::Violation(violation) => violation.kind() != Kind::Replay,
            _ => self.replay.is_some(),
        };
        let found = replayed.filter(fits);
        let report = found.unwrap_or_else(|| self.report(&model, self.strategy(), false));
        tell(&Covered(&report, self.machine).to_string());
        let violation = match &report.verdict {
            Verdict::Clean
            | Verdict::Incomplete(
                Incomplete::Preemptions(_)
                | Incomplete::Executions(_)
                | Incomplete::Time(_)
                | Incomplete::Waits(_)
                | Incomplete::Unexplored
                | Incomplete::Replay,
            ) => return,
            Verdict::Incomplete(why) => panic!(
                "the model is too large: {why}, without a violation in {} executions; a \
                 preemption_bound or fewer threads make it smaller",
                report.executions
            ),
            Verdict::Violation(violation) => violation,
        };
        let mut text =
            format!("{violation}{}\nwrong under {}", advice(violation.kind()), self.machine);
        if let Some(more) = self.others(&model, report.executions) {
            text.push_str(&more);
        }
        if let Some(example) = &report.counterexample {
            text = format!("{text}\n\n{example}");
            text.push_str(&self.keep(example));
        }
        panic!("{text}");
    }

    /// Explores every execution of the model, and returns what was found instead of panicking.
    pub fn explore<F>(&self, model: F) -> Report
    where
        F: Fn() + Sync + Send + 'static,
    {
        self.report(&StdArc::new(model), self.strategy(), false)
    }

    fn strategy(&self) -> Strategy {
        let preemptions = self.preemption_bound.map(|bound| bound as u32);
        Strategy::Exhaustive { preemptions, reduce: true, prune: true }
    }

    fn kept(&self) -> Option<Vec<u8>> {
        if let Some(choices) = &self.replay {
            let choices = parse_choices(choices);
            return Some(choices.unwrap_or_else(|why| panic!("LOOM_REPLAY: {why}")));
        }
        let text = std::fs::read_to_string(self.checkpoint_file.as_ref()?).ok()?;
        parse_choices(text.trim()).ok()
    }

    /// Keeps the counterexample where it was asked for; returns why it could not.
    fn keep(&self, example: &crate::Counterexample) -> String {
        let checkpoint = self.checkpoint_file.iter().map(|path| (path, example.choices.clone()));
        let picture = self.picture.iter().map(|path| (path, example.svg()));
        let failed = checkpoint.chain(picture).filter_map(|(path, text)| {
            let why = std::fs::write(path, text).err()?;
            Some(format!("{} cannot be written: {why}\n", path.display()))
        });
        failed.collect()
    }

    fn report<F>(&self, model: &StdArc<F>, strategy: Strategy, loud: bool) -> Report
    where
        F: Fn() + 'static,
    {
        let config = Config {
            consistency: self.machine.consistency,
            buffer: self.machine.buffer,
            egress: self.machine.egress,
            strategy,
            max_executions: self.max_permutations.map_or(u64::MAX, |most| most as u64),
            max_states: MAX_STATES,
            max_steps: MAX_STEPS,
            max_time: self.max_duration,
            shorten: SHORTEN,
            ..Config::default()
        };
        let settings = Settings {
            spurious_wakeups: self.spurious_wakeups,
            any_waiter: self.notify_any,
            catches_panics: self.panics_are_results,
        };
        let exploring = if self.expect_explicit_explore { Exploring::No } else { Exploring::Yes };
        let report = explore(&config, &move |threads: &mut Threads| {
            engine::keep_clocks();
            engine::keep_whole();
            engine::share_beside_words();
            engine::exploring(exploring);
            if loud {
                engine::print_panics();
            }
            execution::begin(&settings);
            let model = StdArc::clone(model);
            threads.spawn("main", move || {
                model();
                drop_locals();
            });
            threads.finally(|| {
                if let Some(what) = execution::close() {
                    crate::fail(Kind::Leak, format!("leak: {what}"));
                }
            });
        });
        execution::end();
        report
    }

    /// For a model that is wrong on this machine: the stronger machines on which it is right.
    fn others<F>(&self, model: &StdArc<F>, executions: u64) -> Option<String>
    where
        F: Fn() + 'static,
    {
        let weak = self.machine.consistency == Consistency::C11;
        let below = match self.machine.buffer {
            _ if weak => 1,
            Buffer::Bounded(capacity) => capacity,
            Buffer::Unbounded => u32::MAX,
        };
        let stronger = [0, 1, 2, 4, 8, 16].into_iter().filter(|capacity| *capacity < below);
        let stronger = stronger.map(|capacity| Machine {
            consistency: Consistency::Tso,
            buffer: Buffer::Bounded(capacity),
            egress: self.machine.egress,
        });
        let mut right = None;
        for machine in stronger.chain(weak.then(Machine::unbounded)) {
            let most = executions.saturating_mul(4).saturating_add(10_000) as usize;
            let smaller = BuilderOn::<S> {
                machine,
                max_permutations: Some(self.max_permutations.map_or(most, |own| own.min(most))),
                ..self.clone()
            };
            match smaller.report(model, self.strategy(), false).verdict {
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

struct Covered<'a>(&'a Report, Machine);

impl fmt::Display for Covered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Covered(report, machine) = self;
        let Report { executions, states, elapsed, verdict, .. } = report;
        let verdict = match verdict {
            Verdict::Incomplete(why) => format!("incomplete ({why})"),
            verdict => verdict.word().to_owned(),
        };
        let time = elapsed.as_secs_f64();
        write!(
            f,
            "loom: {machine}: {verdict}; {executions} executions, {states} states, {time:.3} s"
        )
    }
}

fn advice(kind: Kind) -> &'static str {
    match kind {
        Kind::Livelock => {
            ": a loop that waits must call `yield_now` or `spin_loop` in each round, and any other \
             must end"
        }
        Kind::Replay => {
            ": the model is another one, or is not deterministic: it may depend on no clock, no \
             address, no random number (a `HashMap` has one) and nothing that an earlier execution left"
        }
        _ => "",
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
