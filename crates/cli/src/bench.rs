//! `poach bench`: the papers' programs, beside the libraries that users would choose instead.
//!
//! A separate thread takes the samples. The main thread shows progress and saves the samples. At
//! Ctrl-C it writes the document so far and ends the program, without waiting for the current
//! sample.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::iter;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use poach_bench::figure::PaperFigure;
use poach_bench::{
    Document, Event, Machine, Peer, Plan, Session, Simulate, Size, Suite, figure, find, is_bounded,
    runs, suites, table, words,
};

use crate::output::{self, AMISS, USAGE, print};
use crate::signals::on_interrupt;

/// The call stack of the measuring thread, in bytes of address space. It runs the sequential
/// programs, the deepest of which recurses some ten thousand levels.
const STACK: usize = 256 << 20;

/// Run the benchmark suites.
///
/// The suites run the papers' programs beside other schedulers, and reproduce the papers' figures.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is a flag of its own")]
#[command(after_help = "Examples:
  poach bench                                   list the suites
  poach bench fork-join --list                  list the workloads and systems of a suite
  poach bench fork-join --quick
  poach bench fork-join --workload fib --workers 1,2 --out runs/fib
  poach bench fork-join --workload fib --peer 'lace=./lace-fib {workers}'
  poach bench --figure fence-10 --runs bench/runs  a paper's figure, with its samples
  poach bench --figure all --quick --out here   every figure of the papers, in minutes
  poach bench --redraw here                     draw the page of existing samples again
  poach bench simulate --workload lace-fib --workers 1,48 --why

Exit code: 0 if every sample was taken, 1 if a sample failed or the run was interrupted, 2 for a
usage error.")]
pub(crate) struct Arguments {
    /// Suite to run [default: list the suites].
    suite: Option<String>,
    /// Reproduce figures of the papers: names, `all`, or `list`.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    figure: Vec<String>,
    /// Use small inputs and few samples, within half a minute.
    #[arg(long, conflicts_with = "paper")]
    quick: bool,
    /// Use the papers' inputs, which may take hours.
    #[arg(long)]
    paper: bool,
    /// Run only these workloads.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    workload: Vec<String>,
    /// Run only these systems, and the peers.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    system: Vec<String>,
    /// Numbers of workers [default: 1 and the number of processors].
    #[arg(long, value_name = "N", value_delimiter = ',')]
    workers: Vec<usize>,
    /// Samples of each case [default: 11, or up to 5 with --quick].
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Time another program as one more system.
    ///
    /// The last line that it prints is its time in seconds. `{workload}`, `{workers}` and `{size}`
    /// in the command are replaced.
    #[arg(long, value_name = "NAME=COMMAND")]
    peer: Vec<Peer>,
    /// Save samples, figures and a page to DIR; resume the run if DIR has samples.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// As `--out`, in a directory below DIR that is named by date and machine.
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    runs: Option<PathBuf>,
    /// Draw the figures and the page of the samples in DIR again, without measuring.
    #[arg(long, value_name = "DIR", exclusive = true)]
    redraw: Option<PathBuf>,
    /// This processor's profile, as written by `poach measure all`.
    ///
    /// Adds the system `ff-the-measured`. Queues with a bound use the profile's bound if this
    /// processor has no known bound.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Machine of the suite `simulate`: xeon, salsa, lace, or a file [default: lace, or the
    /// figure's machine].
    ///
    /// `lace:1024` is lace with more packages, at least 1,024 processors in all.
    #[arg(long, value_name = "MACHINE")]
    memory: Option<String>,
    /// With `simulate`: list the shared words that cost most, by their names in the source.
    #[arg(long)]
    why: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    /// List what would run, and run nothing.
    #[arg(long, conflicts_with = "json")]
    list: bool,
}

impl Arguments {
    /// The suite: that of `--figure`, or the one named.
    fn suite(&self, figure: Option<&PaperFigure>) -> Result<Option<Box<dyn Suite>>> {
        let name = match (figure, self.suite.as_deref()) {
            (Some(figure), Some(suite)) if figure.suite != suite => {
                bail!(
                    "--figure: `{}` is of the suite `{}`, not `{suite}`",
                    figure.name,
                    figure.suite
                )
            }
            (Some(figure), _) => figure.suite,
            (None, Some(suite)) => suite,
            (None, None) => {
                ensure!(
                    !self.asks(),
                    "SUITE is missing: there is {}; or name a --figure",
                    names(suites().iter().map(|suite| suite.name()))
                );
                return Ok(None);
            }
        };
        if let Some(memory) = &self.memory {
            ensure!(name == "simulate", "--memory is for the suite `simulate`");
            return Ok(Some(Box::new(Simulate::new(memory).context("--memory")?)));
        }
        ensure!(!self.why || name == "simulate", "--why is for the suite `simulate`");
        Ok(Some(match figure {
            Some(figure) => figure.suite()?,
            None => find(name)?,
        }))
    }

    /// Whether anything is asked for that only a suite can do.
    fn asks(&self) -> bool {
        let lists = [&self.workload, &self.system].iter().any(|list| !list.is_empty());
        let sized = self.quick || self.paper || self.json || self.rounds.is_some();
        let kept = self.out.is_some() || self.runs.is_some() || self.profile.is_some();
        let simulated = self.memory.is_some() || self.why;
        lists || sized || kept || simulated || !self.workers.is_empty() || !self.peer.is_empty()
    }

    /// The figures that are asked for.
    fn figures(&self) -> Result<Vec<&'static PaperFigure>> {
        if self.figure == ["all"] {
            return Ok(figure::FIGURES.iter().collect());
        }
        let figures: Result<Vec<_>> =
            self.figure.iter().map(|name| PaperFigure::find(name)).collect();
        let figures = figures?;
        if figures.len() > 1 {
            ensure!(
                self.suite.is_none()
                    && self.workload.is_empty()
                    && self.system.is_empty()
                    && self.workers.is_empty(),
                "several figures cannot be combined with a suite, --workload, --system or --workers"
            );
        }
        Ok(figures)
    }

    /// Each suite that these figures need, once, with all that they show of it: what two figures
    /// share is measured once, and beside everything that either compares it with.
    fn parts(&self, figures: &[&'static PaperFigure]) -> Result<Vec<(Box<dyn Suite>, Plan)>> {
        ensure!(
            self.suite.is_none()
                && self.workload.is_empty()
                && self.system.is_empty()
                && self.workers.is_empty(),
            "--figure all cannot be combined with a suite, --workload, --system or --workers"
        );
        let mut suites: Vec<(&str, Option<&str>)> = Vec::new();
        for figure in figures {
            if !suites.contains(&(figure.suite, figure.memory)) {
                suites.push((figure.suite, figure.memory));
            }
        }
        let mut parts = Vec::new();
        for of in suites {
            let these = figures.iter().filter(|figure| (figure.suite, figure.memory) == of);
            let these: Vec<&'static PaperFigure> = these.copied().collect();
            let Some(first) = these.first() else { continue };
            let suite = first.suite()?;
            let mut plan = self.plan(suite.as_ref(), None);
            plan.workers =
                these.iter().flat_map(|figure| figure.workers(Machine::here().cores)).collect();
            plan.figures = these;
            // A suite may have nothing for this kind of machine.
            if !plan.cases(suite.as_ref())?.is_empty() {
                parts.push((suite, plan));
            }
        }
        Ok(parts)
    }

    /// What of `--workload`, `--system` and `--workers` a figure would not show.
    fn fits(&self, figure: &PaperFigure) -> Result<()> {
        let there = figure.all_systems();
        for (flag, asked, there) in [
            ("workload", &self.workload, &figure.workloads[..]),
            ("system", &self.system, &there[..]),
        ] {
            for name in asked {
                ensure!(
                    there.contains(&name.as_str()) || self.peer.iter().any(|p| p.name == *name),
                    "--{flag}: `{name}` is not in the figure `{}`: it has {}",
                    figure.name,
                    there.join(", ")
                );
            }
        }
        for workers in &self.workers {
            ensure!(
                figure.has(*workers),
                "--workers: the figure `{}` is one of {}, not {workers}",
                figure.name,
                names(figure.workers(1).iter().map(usize::to_string))
            );
        }
        Ok(())
    }

    fn plan(&self, suite: &dyn Suite, figure: Option<&PaperFigure>) -> Plan {
        let mut plan = if self.quick { Plan::quick() } else { Plan::full() };
        if let Some(workers) = suite.workers() {
            plan.workers = workers;
        }
        if let Some(figure) = figure {
            let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            plan.workers = figure.workers(Machine::here().cores);
            plan.workloads = named(&figure.workloads);
            plan.systems = named(&figure.all_systems());
        }
        // The standard library reads the same variable when the first thread starts.
        let stack = std::env::var("RUST_MIN_STACK").ok().and_then(|bytes| bytes.parse().ok());
        plan.thread_stack = stack.unwrap_or(plan.thread_stack);
        if self.paper {
            plan.size = Size::Paper;
        }
        if !self.workers.is_empty() {
            plan.workers.clone_from(&self.workers);
        }
        plan.rounds = self.rounds.unwrap_or(plan.rounds);
        if !self.workload.is_empty() {
            plan.workloads.clone_from(&self.workload);
        }
        if !self.system.is_empty() {
            plan.systems.clone_from(&self.system);
            // Without it the others are a multiple of nothing.
            let base = figure.map(|figure| figure.baseline.to_owned());
            plan.systems.extend(base.filter(|base| !self.system.contains(base)));
        }
        plan.peers.clone_from(&self.peer);
        plan
    }
}

fn names<S: AsRef<str>>(names: impl Iterator<Item = S>) -> String {
    names.map(|name| name.as_ref().to_owned()).collect::<Vec<_>>().join(", ")
}

/// The file in `--out` that a later run takes up.
const SAMPLES: &str = "samples.json";

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match prepare(arguments) {
        Ok(Prepared::Listing(text)) => report(print(text.as_bytes()).map(|()| ExitCode::SUCCESS)),
        Ok(Prepared::Run(run)) => report(measure(arguments, run)),
        Err(error) => fail(&error, USAGE),
    }
}

enum Prepared {
    Listing(String),
    Run(Run),
}

struct Run {
    /// The suites, each with what of it is to be run.
    parts: Vec<(Box<dyn Suite>, Plan)>,
    session: Arc<Session>,
    out: Option<PathBuf>,
    /// Whether figures of the papers were asked for.
    figures: bool,
}

/// Everything that can be wrong with the arguments shows here.
fn prepare(arguments: &Arguments) -> Result<Prepared> {
    if let Some(directory) = &arguments.redraw {
        let document = Document::load(&directory.join(SAMPLES)).context("--redraw")?;
        figure::write(&document, directory).context("--redraw")?;
        return Ok(Prepared::Listing(format!("The figures are in {}\n", directory.display())));
    }
    if arguments.figure == ["list"] {
        ensure!(!arguments.json, "--figure list has no JSON output");
        let lines = figure::FIGURES
            .iter()
            .map(|figure| format!("{:18} {:10} {}\n", figure.name, figure.suite, figure.title));
        return Ok(Prepared::Listing(lines.collect()));
    }
    if let Some(path) = &arguments.profile {
        let read = || -> Result<()> {
            let bytes = std::fs::read(path)?;
            super::promise::use_profile(&String::from_utf8_lossy(&bytes).parse()?)
        };
        read().with_context(|| format!("--profile: {}", path.display()))?;
    }
    let ample = super::promise::use_unproven_bounds();
    let figures = arguments.figures()?;
    let parts = if let [] | [_] = figures[..] {
        let figure = figures.first().copied();
        if let Some(figure) = figure {
            arguments.fits(figure)?;
        }
        let Some(suite) = arguments.suite(figure)? else {
            let lines = suites()
                .into_iter()
                .map(|suite| format!("{:12} {}\n", suite.name(), suite.about()));
            return Ok(Prepared::Listing(lines.collect()));
        };
        let mut plan = arguments.plan(suite.as_ref(), figure);
        if figure.is_some() && arguments.system.is_empty() {
            // The figure leaves out systems that this machine, or this call, cannot have.
            let there = plan.systems_there(suite.as_ref());
            plan.systems.retain(|system| there.contains(system));
        }
        vec![(suite, plan)]
    } else {
        arguments.parts(&figures)?
    };
    let mut lines = String::new();
    for (suite, plan) in &parts {
        for case in plan.cases(suite.as_ref())?.iter().filter(|_| arguments.list) {
            let workers = words::workers(case.workers);
            // Writing to a string does not fail.
            let _ = writeln!(lines, "{:20} {:20} {workers:>12}", case.workload, case.system);
        }
    }
    if arguments.list {
        return Ok(Prepared::Listing(lines));
    }
    let bounded = bounded(&parts);
    if let Some(pops) = ample.filter(|_| !bounded.is_empty()) {
        complain(&format!(
            "how many stores a load overtakes is not known of this processor: the bound for {} is {pops} pops, which nobody \
             has measured here; `poach measure all` measures one, and --profile FILE takes it",
            names(bounded.iter())
        ));
    }
    let plan = parts
        .first()
        .map(|(_, plan)| plan.clone())
        .context("no figure can be measured on this machine")?;
    let out = match &arguments.runs {
        Some(runs) => Some(runs::directory(runs, &Machine::here())),
        None => arguments.out.clone(),
    };
    let session = match out.as_deref() {
        None => Session::new(plan),
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("--out: could not make {}", directory.display()))?;
            let path = directory.join(SAMPLES);
            if path.exists() {
                Session::resume(plan, Document::load(&path)?).with_context(|| {
                    format!(
                        "--out: the run in {} cannot be resumed; choose another directory",
                        path.display()
                    )
                })?
            } else {
                Session::new(plan)
            }
        }
    };
    Ok(Prepared::Run(Run { parts, session: Arc::new(session), out, figures: !figures.is_empty() }))
}

/// The systems of these whose queues take a bound.
fn bounded(parts: &[(Box<dyn Suite>, Plan)]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (suite, plan) in parts {
        let cases = plan.cases(suite.as_ref()).unwrap_or_default();
        let systems = cases.into_iter().map(|case| case.system);
        names.extend(systems.filter(|system| is_bounded(suite.name(), system)));
    }
    names
}

enum Message {
    Event(Event),
    Done(Result<()>),
    Interrupted,
}

fn measure(arguments: &Arguments, run: Run) -> Result<ExitCode> {
    let Run { parts, session, out, figures } = run;
    // The command as a reader would repeat it, without this program's path.
    let written = iter::once("poach".to_owned()).chain(std::env::args().skip(1));
    session.begin(&written.collect::<Vec<_>>().join(" "));
    let (sender, messages) = mpsc::channel();
    let interrupt = sender.clone();
    // A receiver that is gone means that the program is ending already.
    on_interrupt(move |_| drop(interrupt.send(Message::Interrupted)))?;
    let working = Arc::clone(&session);
    thread::Builder::new()
        .name("bench".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let watch = |event| drop(sender.send(Message::Event(event)));
            let run = AssertUnwindSafe(|| {
                parts
                    .iter()
                    .try_for_each(|(suite, plan)| working.run_as(plan, suite.as_ref(), &watch))
            });
            let outcome = panic::catch_unwind(run)
                .unwrap_or_else(|_| Err(anyhow!("the thread that measures has panicked")));
            drop(sender.send(Message::Done(outcome)));
        })
        .context("could not start the thread that measures")?;

    let out = out.as_deref();
    follow(&messages, &session, out)?;
    let document = session.document();
    if let Some(directory) = out {
        document.save(&directory.join(SAMPLES))?;
        figure::write(&document, directory)?;
    }
    if arguments.json {
        print(document.to_json()?.as_bytes())?;
    } else {
        let width = terminal_size::terminal_size().map_or(100, |(width, _)| width.0);
        print(table::render(&document, width).as_bytes())?;
        if arguments.why {
            print(poach_bench::why(&document).as_bytes())?;
        }
        if figures {
            print(figure::text(&document).as_bytes())?;
        }
        if let Some(directory) = out {
            let text = format!("The samples and figures are in {}\n", directory.display());
            print(text.as_bytes())?;
        }
    }
    let well = document.complete && document.failures.is_empty();
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::from(AMISS) })
}

/// Shows progress until the session is done, or Ctrl-C is pressed.
fn follow(messages: &Receiver<Message>, session: &Session, out: Option<&Path>) -> Result<()> {
    let bar = if io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    bar.set_style(ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}")?);
    let outcome = loop {
        match messages.recv() {
            Ok(Message::Event(Event::Planned(samples))) => bar.inc_length(samples as u64),
            Ok(Message::Event(Event::Sampling(workload, system, workers))) => {
                let workers = words::workers(workers);
                bar.set_message(format!("{workload} on {system}, {workers}"));
            }
            Ok(Message::Event(Event::Sampled)) => bar.inc(1),
            Ok(Message::Event(Event::WorkloadDone(_))) => {
                if let Some(directory) = out {
                    session.document().save(&directory.join(SAMPLES))?;
                }
            }
            Ok(Message::Done(outcome)) => break outcome,
            Ok(Message::Interrupted) => {
                session.stop();
                break Ok(());
            }
            Err(_) => break Ok(()),
        }
    };
    bar.finish_and_clear();
    outcome
}

fn report(outcome: Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| fail(&error, AMISS))
}

fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    complain(&format!("{error:#}"));
    ExitCode::from(code)
}

fn complain(text: &str) {
    output::complain("bench", text);
}
