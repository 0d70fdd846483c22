//! `poach scan`: what takes the room, and how much of it there is.
//!
//! The main thread scans; one thread shows progress, on a terminal only; the handler of Ctrl-C asks
//! the scan to end with what it has, and a second Ctrl-C ends the program where it stands.

use std::io::{self, IsTerminal as _, Write as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use poach_scan::report::{self, Extent, Look, Measure};
use poach_scan::{Control, Engine, MAX_THREADS, Options, Scan};

use crate::output::{AMISS, INTERRUPTED, USAGE, complain, print};

/// Scan directories: what is in them, what takes the room, how fast that was found out.
///
/// Counts every entry below the paths once, with `du`'s sizes: a file with several names takes its
/// bytes once, a symbolic link is never followed, a path within another path counts there. What
/// cannot be read is listed on stderr and counted; everything else is counted still.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is a flag of its own")]
#[command(after_help = "Examples:
  poach scan                            this directory
  poach scan ~ /var --depth 2           the largest, two levels deep
  poach scan -x / --top 40              the root file system and no other
  poach scan . --all --by apparent      files too, by length
  poach scan . --by entries             where the many small files are
  poach scan . --stats --threads 4      what the workers did, too
  poach scan ~ --json --top all | jq .totals

In JSON a name that is not UTF-8 has its bytes beside it, in hexadecimal (path_hex, name_hex).

Exit code: 0 if everything was read, 1 if something could not be or the scan was interrupted,
2 for usage. Ctrl-C ends the scan and shows what it has; a second one ends it at once.")]
pub(crate) struct Arguments {
    /// What to scan.
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Show no level below this one; the paths are level 0.
    #[arg(long, short, value_name = "N|all", default_value = "5", value_parser = limit)]
    depth: Limit,
    /// Show so many entries: the largest.
    #[arg(long, short = 'n', value_name = "N|all", default_value = "20", value_parser = limit)]
    top: Limit,
    /// What the largest are the largest by.
    #[arg(long, value_enum, default_value_t = By::Disk)]
    by: By,
    /// Short for `--by apparent`.
    #[arg(long, conflicts_with = "by")]
    apparent_size: bool,
    /// Show files too, and not only directories.
    #[arg(long, short)]
    all: bool,
    /// Leave out directories on other file systems.
    #[arg(long, short = 'x')]
    one_file_system: bool,
    /// Scan what a PATH points to if it is a symbolic link.
    #[arg(long, short = 'D')]
    dereference_args: bool,
    /// Threads to scan with [default: as many as there are processors].
    #[arg(long, short, value_name = "N", value_parser = threads)]
    threads: Option<NonZeroUsize>,
    /// Who shares the work: sequential, pool, mutex-stealing, lock-free or split.
    #[arg(long, short, value_name = "NAME", default_value_t = Engine::default())]
    engine: Engine,
    /// Show too what each worker has done: tasks, steals, sleeps and the like. Of the split engine only.
    #[arg(long)]
    stats: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// A number, or no limit.
type Limit = Option<usize>;

fn limit(text: &str) -> Result<Limit, String> {
    match text {
        "all" => Ok(None),
        number => number.parse().map(Some).map_err(|_| "give a number, or `all`".to_owned()),
    }
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .ok()
        .filter(|threads: &NonZeroUsize| threads.get() <= MAX_THREADS)
        .ok_or_else(|| format!("give a number from 1 to {MAX_THREADS}"))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// Bytes on disk.
    Disk,
    /// Lengths.
    Apparent,
    /// The number of entries.
    Entries,
}

impl Arguments {
    fn options(&self) -> Options {
        Options {
            engine: self.engine,
            threads: self.threads,
            one_file_system: self.one_file_system,
            follow_paths: self.dereference_args,
            keep_files: self.all,
            ..Options::default()
        }
    }

    fn extent(&self) -> Extent {
        let measure = match self.by {
            _ if self.apparent_size => Measure::Apparent,
            By::Disk => Measure::Disk,
            By::Apparent => Measure::Apparent,
            By::Entries => Measure::Entries,
        };
        Extent { measure, depth: self.depth, top: self.top }
    }
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if arguments.stats && arguments.engine != Engine::Split {
        let engine = arguments.engine;
        complain("scan", &format!("--stats: the engine {engine} counts nothing; split does"));
        return ExitCode::from(USAGE);
    }
    let outcome = scan(arguments).and_then(|scan| match scan {
        Ok(mut scan) => {
            scan.stats = scan.stats.filter(|_| arguments.stats);
            show(arguments, &scan)?;
            let well = scan.errors.is_empty() && !scan.interrupted;
            Ok(if well { 0 } else { AMISS })
        }
        Err(error) => {
            complain("scan", &error.to_string());
            Ok(match error {
                poach_scan::Error::NoPath | poach_scan::Error::TooManyThreads(_) => USAGE,
                _ => AMISS,
            })
        }
    });
    ExitCode::from(outcome.unwrap_or_else(|error| {
        complain("scan", &format!("{error:#}"));
        AMISS
    }))
}

/// Scans, with a hand of the user's on it. The inner error is the scan's own.
fn scan(arguments: &Arguments) -> Result<Result<Scan, poach_scan::Error>> {
    let control = Arc::new(Control::new());
    let stop = Arc::clone(&control);
    ctrlc::set_handler(move || {
        if stop.is_stopped() {
            std::process::exit(INTERRUPTED);
        }
        stop.stop();
    })
    .context("could not listen for Ctrl-C")?;

    thread::scope(|scope| {
        // The line ends when the sender is dropped, before anything else is written.
        let (done, ended) = mpsc::channel::<()>();
        let line = if io::stderr().is_terminal() {
            let control = &control;
            let line = thread::Builder::new()
                .name("progress".to_owned())
                .spawn_scoped(scope, move || follow(control, &ended))
                .context("could not start the thread that shows progress")?;
            Some(line)
        } else {
            None
        };
        let scan = poach_scan::scan(&arguments.paths, &arguments.options(), &control);
        drop(done);
        if let Some(line) = line {
            line.join().expect("showing progress does not panic");
        }
        Ok(scan)
    })
}

/// Shows on stderr how far the scan is until the other end of `ended` is dropped.
fn follow(control: &Control, ended: &mpsc::Receiver<()>) {
    const EVERY: Duration = Duration::from_millis(100);
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("  {spinner:.cyan} {msg} {elapsed:.dim}");
    line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
        let progress = control.progress();
        line.set_message(format!(
            "{} entries, {}{}",
            report::count(progress.entries),
            report::bytes(progress.bytes),
            if control.is_stopped() { ", stopping" } else { "" },
        ));
        line.tick();
    }
    line.finish_and_clear();
}

/// Failures to stderr, the report to stdout.
fn show(arguments: &Arguments, scan: &Scan) -> Result<()> {
    for failure in &scan.errors {
        complain("scan", &format!("{}: {}", report::escape(&failure.path), failure.message));
    }
    let mut out = Vec::new();
    if arguments.json {
        report::json(scan, &arguments.extent(), &mut out)?;
    } else {
        let stdout = io::stdout();
        let width = terminal_size::terminal_size_of(&stdout)
            .map_or(if stdout.is_terminal() { 80 } else { 100 }, |(width, _)| usize::from(width.0));
        let colour = anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        report::text(scan, &arguments.extent(), Look { width, colour }, &mut out)?;
        if let Some(stats) = &scan.stats {
            writeln!(out, "\n{stats}")?;
        }
    }
    print(&out)
}
