//! `poach bench`: the papers' programs, side by side with what a user would pick instead.
//!
//! The samples are taken on a thread of their own. The main thread shows progress, saves what there
//! is, and answers Ctrl-C at once: it writes the document as it stands and ends the program, without
//! waiting for the sample that is being taken.

use std::io::{self, IsTerminal as _};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use poach_bench::{Document, Event, Peer, Plan, Session, Size, Suite, figure, find, suites, table};

use crate::output::{self, AMISS, USAGE, print};

/// The call stack of the thread that measures, in bytes of address space: the sequential programs run
/// on it, and the deepest goes through some ten thousand levels.
const STACK: usize = 256 << 20;

/// Run the papers' programs side by side with other schedulers.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is a flag of its own")]
#[command(after_help = "Examples:
  poach bench                                   the suites
  poach bench fork-join --list                  its workloads and systems
  poach bench fork-join --quick
  poach bench fork-join --workload fib --workers 1,2 --out runs/fib
  poach bench fork-join --workload fib --peer 'lace=./lace-fib {workers}'

Exit code: 0 if every sample was taken, 1 if one failed or the run was cut short, 2 for usage.")]
pub(crate) struct Arguments {
    /// The suite to run; without one, says which there are.
    suite: Option<String>,
    /// Small inputs and few samples, within half a minute.
    #[arg(long, conflicts_with = "paper")]
    quick: bool,
    /// The inputs of the papers: hours, perhaps.
    #[arg(long)]
    paper: bool,
    /// Only these workloads.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    workload: Vec<String>,
    /// Only these systems.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    system: Vec<String>,
    /// The numbers of workers to run with [default: 1 and the number of processors].
    #[arg(long, value_name = "N", value_delimiter = ',')]
    workers: Vec<usize>,
    /// The samples to take of each case [default: 11, or up to 5 with --quick].
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Time an outside program as one more system: its last line is its seconds. `{workload}`,
    /// `{workers}` and `{size}` in the command are filled in.
    #[arg(long, value_name = "NAME=COMMAND")]
    peer: Vec<Peer>,
    /// Keep the samples in this directory, with figures and a page; a second run goes on where the
    /// first one stopped.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    /// List what would run, and run nothing.
    #[arg(long)]
    list: bool,
}

impl Arguments {
    fn plan(&self) -> Plan {
        let mut plan = if self.quick { Plan::quick() } else { Plan::full() };
        if self.paper {
            plan.size = Size::Paper;
        }
        if !self.workers.is_empty() {
            plan.workers.clone_from(&self.workers);
        }
        plan.rounds = self.rounds.unwrap_or(plan.rounds);
        plan.workloads.clone_from(&self.workload);
        plan.systems.clone_from(&self.system);
        plan.peers.clone_from(&self.peer);
        plan
    }
}

/// The file in `--out` that a later run takes up.
const SAMPLES: &str = "samples.json";

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match prepare(arguments) {
        Ok(Prepared::Listing(text)) => report(print(text.as_bytes()).map(|()| ExitCode::SUCCESS)),
        Ok(Prepared::Run(suite, session)) => report(measure(arguments, suite, &session)),
        Err(error) => complain(&error, USAGE),
    }
}

enum Prepared {
    Listing(String),
    Run(Box<dyn Suite>, Arc<Session>),
}

/// Everything that can be wrong with the arguments shows here.
fn prepare(arguments: &Arguments) -> Result<Prepared> {
    let Some(name) = &arguments.suite else {
        let lines =
            suites().into_iter().map(|suite| format!("{:12} {}\n", suite.name(), suite.about()));
        return Ok(Prepared::Listing(lines.collect()));
    };
    let suite = find(name)?;
    let plan = arguments.plan();
    let cases = plan.cases(suite.as_ref())?;
    if arguments.list {
        let lines = cases.iter().map(|case| {
            format!("{:20} {:20} {:4} workers\n", case.workload, case.system, case.workers)
        });
        return Ok(Prepared::Listing(lines.collect()));
    }
    let session = match arguments.out.as_deref() {
        None => Session::new(plan),
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("--out: could not make {}", directory.display()))?;
            let path = directory.join(SAMPLES);
            if path.exists() {
                Session::resume(plan, Document::load(&path)?).with_context(|| {
                    format!(
                        "--out: {} cannot be taken up, choose another directory",
                        path.display()
                    )
                })?
            } else {
                Session::new(plan)
            }
        }
    };
    Ok(Prepared::Run(suite, Arc::new(session)))
}

enum Message {
    Event(Event),
    Done(Result<()>),
    Interrupted,
}

fn measure(
    arguments: &Arguments,
    suite: Box<dyn Suite>,
    session: &Arc<Session>,
) -> Result<ExitCode> {
    let (sender, messages) = mpsc::channel();
    let interrupt = sender.clone();
    // A receiver that is gone means that the program is ending already.
    ctrlc::set_handler(move || drop(interrupt.send(Message::Interrupted)))
        .context("could not listen for Ctrl-C")?;
    let working = Arc::clone(session);
    thread::Builder::new()
        .name("bench".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let watch = |event| drop(sender.send(Message::Event(event)));
            let run = AssertUnwindSafe(|| working.run(suite.as_ref(), &watch));
            let outcome = panic::catch_unwind(run)
                .unwrap_or_else(|_| Err(anyhow!("the thread that measures has panicked")));
            drop(sender.send(Message::Done(outcome)));
        })
        .context("could not start the thread that measures")?;

    let out = arguments.out.as_deref();
    follow(&messages, session, out)?;
    let document = session.document();
    if let Some(directory) = out {
        document.save(&directory.join(SAMPLES))?;
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        figure::write(&document, &command, directory)?;
    }
    if arguments.json {
        print(document.to_json()?.as_bytes())?;
    } else {
        let width = terminal_size::terminal_size().map_or(100, |(width, _)| width.0);
        print(table::render(&document, width).as_bytes())?;
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
            Ok(Message::Event(Event::Planned(samples))) => bar.set_length(samples as u64),
            Ok(Message::Event(Event::Sampling(workload, system, workers))) => {
                bar.set_message(format!("{workload} on {system}, {workers} workers"));
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
    outcome.unwrap_or_else(|error| complain(&error, AMISS))
}

fn complain(error: &anyhow::Error, code: u8) -> ExitCode {
    output::complain("bench", &format!("{error:#}"));
    ExitCode::from(code)
}
