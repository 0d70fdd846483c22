//! The verbs, one file each, and what they share: their arguments, the world, the report.

mod curves;
mod fib;
mod ping_pong;
mod queens;
mod scan;
mod simulate;
mod soak;
mod uts;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use poach_far::{Counters, Ended, Error, Outcome, Role, Status, Stealing, World, supervise};
use serde_json::{Value, json};

/// The schema of the documents.
const SCHEMA: u32 = 1;

/// Ran, but something is amiss.
const AMISS: u8 = 1;
/// The arguments make no sense.
const USAGE: u8 = 2;

/// Work stealing between the ranks of an MPI job.
#[derive(Debug, Parser)]
#[command(
    name = "poach-far",
    version,
    after_help = "Example: mpirun -n 4 poach-far uts T3L --threads 1"
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
struct Common {
    /// Workers of each rank; as many as the system offers to the rank, if not said.
    #[arg(long, global = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// How ranks steal.
    #[arg(long, global = true, value_enum, default_value_t = Steal::Messages)]
    steal: Steal,
    /// Ranks that found nothing try again and again, and leave no word.
    #[arg(long, global = true)]
    no_lifelines: bool,
    /// One rank, without a launcher.
    #[arg(long, global = true)]
    alone: bool,
    /// One JSON document on stdout of rank 0.
    #[arg(long, global = true)]
    json: bool,
    /// About once a second, how far the job is, on stderr of rank 0; also if not said where that
    /// is a terminal.
    #[arg(long, global = true)]
    progress: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Steal {
    /// The thief asks, the victim answers.
    Messages,
    /// The thief takes from a window of the victim's.
    Window,
}

impl Common {
    /// Prints how far a job is, if the user wants that.
    fn teller(&self, what: &'static str) -> Option<impl Fn(Status) + Send + Sync + 'static> {
        (self.progress || io::stderr().is_terminal()).then_some(move |status: Status| {
            let (seconds, tasks) = (status.elapsed.as_secs(), status.tasks);
            say(&format!("{seconds} s, {tasks} {what}"));
        })
    }
}

/// Says something on stderr.
fn say(what: &str) {
    let _ = writeln!(io::stderr(), "poach-far: {what}");
}

/// Where a run that is cut short goes on.
#[derive(Debug, clap::Args)]
struct Checkpoints {
    /// Go on from FILE, if it is there, and write to it what is done so far.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// So often.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, requires = "checkpoint", value_parser = seconds)]
    every: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number < 1e9 => Ok(number),
        _ => Err("a number of seconds above 0 is wanted".to_owned()),
    }
}

impl Checkpoints {
    fn every(&self) -> Duration {
        Duration::from_secs_f64(self.every)
    }
}

#[derive(Debug, Subcommand)]
enum Verb {
    Uts(uts::Arguments),
    Fib(fib::Arguments),
    NQueens(queens::Arguments),
    Scan(scan::Arguments),
    PingPong(ping_pong::Arguments),
    Simulate(simulate::Arguments),
    Soak(soak::Arguments),
}

/// What a verb has found, at rank 0.
struct Report {
    /// For people.
    text: String,
    /// For programs: the verb's own part of the document.
    document: Value,
    /// Whether all was well.
    well: bool,
}

pub(crate) fn main() -> ExitCode {
    let Arguments { verb, common } = Arguments::parse();
    if let Verb::Simulate(arguments) = &verb {
        return ExitCode::from(print(
            &common,
            "simulate",
            &simulate::run(arguments, common.steal, !common.no_lifelines),
        ));
    }
    if !common.alone {
        match supervise(|| std::process::exit(AMISS.into())) {
            Ok(Role::Rank) => {}
            Ok(Role::Supervisor(Ended { code, lost: None })) => return ExitCode::from(code),
            Ok(Role::Supervisor(Ended { lost: Some(lost), .. })) => {
                let _ =
                    writeln!(io::stderr(), "poach-far: {lost}\npoach-far: the job has no result");
                // By a signal: before MPI has begun, an exit code moves no launcher to end the
                // others.
                std::process::abort();
            }
            Err(error) => {
                let _ = writeln!(
                    io::stderr(),
                    "poach-far: no supervisor, so nobody will tell if this rank is killed: {error}"
                );
            }
        }
    }
    let mut builder = World::builder().lifelines(!common.no_lifelines).alone(common.alone);
    if let Some(threads) = common.threads {
        builder = builder.threads(threads.into());
    }
    if common.steal == Steal::Window {
        builder = builder.stealing(Stealing::Window);
    }
    let mut world = match builder.init() {
        Ok(world) => world,
        Err(error) => return complain(&error, None),
    };
    if let Some(tell) = verb.tasks().and_then(|tasks| common.teller(tasks)) {
        world.progress(tell);
    }
    let agreed = world.agree("the arguments", &format!("{verb:?} {common:?}"));
    let outcome = agreed.and_then(|()| match &verb {
        Verb::Uts(arguments) => uts::run(&mut world, arguments),
        Verb::Fib(arguments) => fib::run(&mut world, arguments),
        Verb::NQueens(arguments) => queens::run(&mut world, arguments),
        Verb::Scan(arguments) => scan::run(&mut world, arguments),
        Verb::PingPong(arguments) => ping_pong::run(&mut world, arguments),
        Verb::Soak(arguments) => soak::run(&mut world, arguments, &common),
        Verb::Simulate(_) => unreachable!("it needs no world"),
    });
    match outcome {
        Ok(Some(report)) => ExitCode::from(print(&common, verb.name(), &report)),
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => complain(&error, Some(world)),
    }
}

impl Verb {
    fn name(&self) -> &'static str {
        match self {
            Verb::Uts(_) => "uts",
            Verb::Fib(_) => "fib",
            Verb::NQueens(_) => "n-queens",
            Verb::Scan(_) => "scan",
            Verb::PingPong(_) => "ping-pong",
            Verb::Simulate(_) => "simulate",
            Verb::Soak(_) => "soak",
        }
    }

    /// What its tasks are, if it is one job whose tasks are counted for people.
    fn tasks(&self) -> Option<&'static str> {
        match self {
            Verb::Uts(_) => Some("nodes"),
            Verb::Fib(_) => Some("calls"),
            Verb::NQueens(_) => Some("boards"),
            Verb::Scan(_) => Some("directories"),
            Verb::PingPong(_) | Verb::Simulate(_) | Verb::Soak(_) => None,
        }
    }
}

/// Prints a report, and returns the exit code.
fn print(common: &Common, verb: &str, report: &Report) -> u8 {
    let text = if common.json {
        let mut document = json!({ "schema": SCHEMA, "verb": verb });
        let whole = document.as_object_mut().expect("it is one");
        whole.extend(report.document.as_object().cloned().unwrap_or_default());
        format!("{document:#}\n")
    } else {
        report.text.clone()
    };
    // A pipe without a reader is no error.
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr(), "poach-far: could not write to stdout: {error}");
            AMISS
        }
        _ if report.well => 0,
        _ => AMISS,
    }
}

/// Says what is wrong: on one rank, if it was the world's that said it.
fn complain(error: &Error, world: Option<World>) -> ExitCode {
    let code = if matches!(error, Error::Failed(_)) { AMISS } else { USAGE };
    let reporter = match error {
        Error::NotStarted
        | Error::Apart { .. }
        | Error::Threads { .. }
        | Error::Pool { .. }
        | Error::Twice => true,
        // The lost rank says nothing; the one that noticed does.
        Error::Failed(poach_far::Failure::Silent { watcher, .. }) => {
            world.as_ref().is_none_or(|world| world.rank() == *watcher)
        }
        Error::Failed(failure) => world.as_ref().is_none_or(|world| world.rank() == failure.rank()),
        Error::Window { rank, .. } => world.as_ref().is_none_or(|world| world.rank() == *rank),
        // Each rank, where there is no world to tell which is the first.
        Error::Disagree { .. } => world.as_ref().is_none_or(|world| world.rank() == 0),
        _ => world.as_ref().is_none_or(|world| world.rank() == 0),
    };
    if reporter {
        let _ = writeln!(io::stderr(), "poach-far: {error}");
        if let (Error::Failed(_), Some(world)) = (error, &world) {
            let _ = writeln!(io::stderr(), "poach-far: the job has no result");
            world.abort(code.into());
        }
    } else if let Error::Failed(_) = error {
        // The rank that tells of it ends the job.
        std::thread::sleep(Duration::from_secs(3));
    }
    drop(world);
    ExitCode::from(code)
}

/// What every job tells of itself.
fn told<R>(world: &World, outcome: &Outcome<R>) -> (String, Value) {
    let mut balance = Counters::default();
    for rank in &outcome.ranks {
        balance.add(&rank.balance);
    }
    let tasks: u64 = outcome.ranks.iter().map(|rank| rank.tasks).sum();
    let most = outcome.ranks.iter().map(|rank| rank.tasks).max().unwrap_or(0);
    let seconds = outcome.elapsed.as_secs_f64();
    let text = format!(
        "{} ranks on {} nodes, {} threads each, {seconds:.3} s; {tasks} tasks, {most} at most on a rank\n\
         {} parcels stolen and {} by lifelines, {} tasks and {} bytes in them; {} steals failed; {} messages\n",
        world.ranks(),
        world.nodes(),
        world.threads(),
        balance.steals,
        balance.lifeline_parcels,
        balance.tasks,
        balance.bytes,
        balance.failed_steals,
        balance.messages,
    );
    let document = json!({
        "ranks": world.ranks(),
        "nodes": world.nodes(),
        "threads": world.threads(),
        "elapsed_s": seconds,
        "tasks": tasks,
        "balance": balance,
        "per_rank": outcome.ranks,
    });
    (text, document)
}

/// The report of a job that counts something: `what` came out as `found`, and should be `expected`.
fn counted<R>(
    world: &World,
    outcome: &Outcome<R>,
    what: &str,
    found: u64,
    expected: Option<u64>,
) -> Report {
    let (text, mut document) = told(world, outcome);
    let well = expected.is_none_or(|expected| expected == found);
    document[what] = json!(found);
    document["expected"] = json!(expected);
    let wrong = match expected {
        Some(expected) if !well => format!(", and should be {expected}"),
        _ => String::new(),
    };
    Report { text: format!("{found} {what}{wrong}\n{text}"), document, well }
}
