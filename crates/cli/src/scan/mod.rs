//! `poach scan`: measures disk usage.
//!
//! The main thread scans; one thread shows progress, on a terminal only; the handler of Ctrl-C asks
//! the scan to end with what it has, and a second Ctrl-C ends the program where it stands.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, ensure};
use poach_scan::diff::{self, diff};
use poach_scan::duplicates::Made;
use poach_scan::report::{self, Look};
use poach_scan::survey::{self, Text, Told};
use poach_scan::{Control, Engine, Error, Failure, Options, Scan};

use crate::output::{AMISS, Target, USAGE, complain, interrupted};
use crate::signals::on_interrupt;

mod browse;
mod choice;
mod config;
mod dedupe;
mod document;
mod estimate;
mod flags;
#[cfg(any(unix, windows))]
mod item;
mod limit;
mod names;
mod progress;
mod reports;
mod users;
mod view;

pub(crate) use flags::Arguments;

use document::A_PART;

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if arguments.stats && arguments.engine != Engine::Split {
        let engine = arguments.engine;
        complain("scan", &format!("--stats: the engine {engine} counts nothing; split does"));
        return ExitCode::from(USAGE);
    }
    let nonsense = arguments.document.nonsense(arguments.stats).or_else(|| arguments.nonsense());
    if let Some(nonsense) = nonsense {
        complain("scan", nonsense);
        return ExitCode::from(USAGE);
    }
    let paths = arguments.choosing.paths(&arguments.paths);
    let (paths, options) = match paths.and_then(|paths| Ok((paths, arguments.options()?))) {
        Ok(chosen) => chosen,
        Err(error) => {
            complain("scan", &format!("{error:#}"));
            return ExitCode::from(USAGE);
        }
    };
    let outcome = Run::begin().and_then(|run| match arguments.document.diff() {
        Some(sides) => compare(arguments, &run, sides, options),
        None => scan_and_show(arguments, &run, &paths, &options),
    });
    ExitCode::from(outcome.unwrap_or_else(|error| {
        complain("scan", &format!("{error:#}"));
        AMISS
    }))
}

/// Scans, or imports, and shows it. Returns the exit code.
fn scan_and_show(
    arguments: &Arguments,
    run: &Run,
    paths: &[PathBuf],
    options: &Options,
) -> Result<u8> {
    let linked;
    let paths = if arguments.dereference {
        linked = run.during(paths, |control| poach_scan::linked(paths, options, control))??;
        // A scan says that it was interrupted, and the browser scans anew.
        ensure!(
            !(arguments.interactive && run.control.is_stopped()),
            "interrupted: not every link was followed"
        );
        &linked
    } else {
        paths
    };
    if arguments.interactive {
        return browse(arguments, run, paths, options);
    }
    let shown = match &arguments.document.import {
        Some(path) => run.uninterrupted(|| {
            let scan = document::import(path, arguments.memory)?;
            show(arguments, &scan).map(|()| Ok(code(&[&scan])))
        }),
        None if arguments.dedupe.is_asked() => dedupe::run(arguments, run, paths, options),
        None if !arguments.reports.reports.is_empty() => survey(arguments, run, paths, options),
        None => match run.scan(paths, options)? {
            Ok(mut scan) => {
                complain_of_unmatched(arguments, &[&scan]);
                scan.stats = scan.stats.filter(|_| arguments.stats);
                if arguments.shared && !scan.interrupted {
                    run.during(paths, |control| {
                        scan.count_shared_once(control);
                        Ok(())
                    })??;
                }
                show(arguments, &scan).map(|()| Ok(code(&[&scan])))
            }
            Err(error) => Ok(Err(error)),
        },
    };
    shown.map(|shown| {
        shown.unwrap_or_else(|error| {
            complain("scan", &error.to_string());
            match error {
                Error::NoPath | Error::TooManyThreads(_) => USAGE,
                _ => AMISS,
            }
        })
    })
}

/// Lets the user browse a scan. Returns the exit code.
fn browse(arguments: &Arguments, run: &Run, paths: &[PathBuf], options: &Options) -> Result<u8> {
    let document = arguments.document.import.as_ref();
    let import = |path: &PathBuf| {
        run.uninterrupted(|| -> Result<_> {
            if let Some(stored) = document::stored(path, arguments.memory)? {
                return Ok(browse::Document::Stored(stored));
            }
            let scan = document::import(path, arguments.memory)?;
            Ok(browse::Document::Whole(Box::new(scan)))
        })
    };
    let imported = document.map(import).transpose()?;
    let (measure, order) = (arguments.measure(), arguments.view.order());
    let look = look(arguments, arguments.document.target());
    let paths = document.is_none().then_some(paths);
    // A tab of the browser can be scrolled, so it may be longer than a printed report.
    let settings = arguments.reports.settings(measure, arguments.top.unwrap_or(Some(500)));
    let Arguments { shared, read_only, print_chosen: prints, .. } = *arguments;
    let document = document.map(|path| (&**path, arguments.memory));
    let start = browse::Start {
        paths,
        options,
        measure,
        order,
        look,
        settings,
        shared,
        read_only,
        prints,
        document,
    };
    let browse::Ended { seen, chosen, interrupted } = browse::run(&start, imported)?;
    if arguments.print_chosen && interrupted {
        complain("scan", "interrupted: the selection is not printed");
        return Ok(AMISS);
    }
    if arguments.print_chosen {
        let shows = io::stdout().is_terminal();
        let end: &[u8] = if arguments.reports.print0 { b"\0" } else { b"\n" };
        Target::Stdout.write(|out| {
            chosen.iter().try_for_each(|path| {
                let shown = shows.then(|| report::escape(path));
                let path = shown.as_ref().map_or(&path[..], |shown| shown.as_bytes());
                out.write_all(&[path, end].concat())
            })
        })?;
    }
    let Some((scan, made)) = seen else {
        if arguments.print_chosen {
            complain("scan", "ended before everything was read");
        }
        return Ok(AMISS);
    };
    complain_of(&scan.errors);
    Ok(code_of(&scan, &made))
}

/// Scans, and makes reports: as text, each is written as soon as it is made, and each group of
/// equal files as soon as it is found. Returns the exit code; the inner error is the scan's own.
fn survey(
    arguments: &Arguments,
    run: &Run,
    paths: &[PathBuf],
    options: &Options,
) -> Result<Result<u8, Error>> {
    let survey = arguments.survey();
    let scanned = run.during(paths, |control| survey.scan(paths, options, control))?;
    let (scan, parts) = match scanned {
        Ok(scanned) => scanned,
        Err(error) => return Ok(Err(error)),
    };
    complain_of(&scan.errors);
    complain_of_unmatched(arguments, &[&scan]);
    if scan.interrupted {
        complain("scan", "interrupted: the reports are incomplete");
    }
    if is_nothing(&scan) && arguments.document.format().is_none() {
        return Ok(Ok(AMISS));
    }
    let target = arguments.document.target();
    let made = if arguments.document.format().is_some() {
        let mut sections = Vec::new();
        let mut keep = |told: Told<'_>| {
            if let Told::Section(section) = told {
                sections.push(section.clone());
            }
        };
        let made =
            run.during(paths, |control| survey.finish_each(&scan, parts, control, &mut keep))?;
        if let Ok(made) = &made {
            let errors = scan.errors.iter().chain(&made.errors).cloned().collect();
            let whole = Made { errors, interrupted: scan.interrupted || made.interrupted };
            ensure!(!whole.interrupted || !arguments.document.keeps(target), A_PART);
            target.write(|mut out| survey::json(&sections, &whole, &mut out))?;
        }
        made
    } else {
        let mut text = Text::new(look(arguments, target));
        let mut made = Ok(Ok(Made::default()));
        let mut unread = false;
        target.write(|mut out| {
            let mut failed = None;
            made = run.during(paths, |control| {
                survey.finish_each(&scan, parts, control, &mut |told| {
                    let write = || {
                        run.uninterrupted(|| {
                            if arguments.reports.print0 {
                                reports::print0(told, &mut out)?;
                            } else {
                                text.write(told, &mut out)?;
                            }
                            out.flush()
                        })
                    };
                    if failed.is_none() {
                        failed = progress::aside(write).err();
                    }
                    if failed.is_some() {
                        control.stop();
                    }
                })
            });
            unread = failed.is_some();
            let part = scan.interrupted || matches!(&made, Ok(Ok(made)) if made.interrupted);
            match failed {
                None if part && arguments.document.keeps(target) => Err(io::Error::other(A_PART)),
                failed => failed.map_or(Ok(()), Err),
            }
        })?;
        // A pipe that nobody reads on ends the reports without a word, as it ends every document.
        made?.map(|mut made| {
            made.interrupted &= !unread;
            made
        })
    };
    Ok(made.map(|made| code_of(&scan, &made)))
}

/// Whether everything was read and compared. Files that were not compared are reported.
fn code_of(scan: &Scan, made: &Made) -> u8 {
    complain_of(&made.errors);
    if made.interrupted && !scan.interrupted {
        complain("scan", "interrupted: not every file was compared");
    }
    code(&[scan]).max(if made.errors.is_empty() && !made.interrupted { 0 } else { AMISS })
}

/// Whether everything was read.
fn code(scans: &[&Scan]) -> u8 {
    let well = scans.iter().all(|scan| scan.errors.is_empty() && !scan.interrupted);
    if well { 0 } else { AMISS }
}

/// Compares two sides, each a directory or a document, and shows the differences. Returns the exit
/// code.
fn compare(arguments: &Arguments, run: &Run, sides: [&Path; 2], options: Options) -> Result<u8> {
    // A side that is a link to a directory is that directory, as `is_dir` says.
    let options = Options { keep_files: true, follow_paths: true, ..options };
    let side = |path: &Path| {
        if !path.is_dir() {
            return run.uninterrupted(|| document::import(path, None));
        }
        let scan = run.scan(&[path.to_owned()], &options)??;
        ensure!(!scan.interrupted, "interrupted: nothing was compared");
        Ok(scan)
    };
    let (old, new) = (side(sides[0])?, side(sides[1])?);
    complain_of(&old.errors);
    complain_of(&new.errors);
    complain_of_unmatched(arguments, &[&old, &new]);
    let extent = arguments.extent(None);
    let difference = run.uninterrupted(|| diff(&old, &new, extent.measure));
    let target = arguments.document.target();
    let look = look(arguments, target);
    run.uninterrupted(|| {
        target.write(|mut out| match arguments.document.format() {
            None => diff::text(&difference, &extent, look, &mut out),
            Some(_) => diff::json(&difference, &mut out),
        })
    })?;
    Ok(code(&[&old, &new]))
}

/// The part of a run that the handler of Ctrl-C sees.
struct Run {
    control: Control,
    /// Set while nothing scans: reading or writing a document may block for as long as the other
    /// end likes.
    ends: AtomicBool,
    /// Set while files are changed, one after another: none is cut short.
    changes: AtomicBool,
}

impl Run {
    /// Listens for Ctrl-C: the first ends a scan with what it has, and anything else at once.
    fn begin() -> Result<Arc<Run>> {
        let (ends, changes) = (AtomicBool::new(false), AtomicBool::new(false));
        let run = Arc::new(Run { control: Control::new(), ends, changes });
        let signalled = Arc::clone(&run);
        on_interrupt(move |is_ctrl_c| {
            if is_ctrl_c && browse::is_aside() || browse::ask_to_end() {
                return;
            }
            // Relaxed: the flags are all there is to see.
            if signalled.changes.load(Ordering::Relaxed) {
                return signalled.control.stop();
            }
            if signalled.control.is_stopped() || signalled.ends.load(Ordering::Relaxed) {
                interrupted();
            }
            signalled.control.stop();
        })?;
        Ok(run)
    }

    /// Scans, under the user's control. The inner error is the scan's own.
    fn scan(&self, paths: &[PathBuf], options: &Options) -> Result<Result<Scan, Error>> {
        self.during(paths, |control| poach_scan::scan(paths, options, control))
    }

    /// Runs a scan under the user's control.
    fn during<T>(
        &self,
        paths: &[PathBuf],
        act: impl FnOnce(&Control) -> Result<T, Error>,
    ) -> Result<Result<T, Error>> {
        // Relaxed: as in the handler.
        self.ends.store(false, Ordering::Relaxed);
        let outcome = progress::shown_during(&self.control, paths, || act(&self.control));
        self.ends.store(true, Ordering::Relaxed);
        outcome
    }

    /// Changes files: Ctrl-C, however often it is pressed, ends the run after the current file.
    fn guarded<T>(&self, act: impl FnOnce(&Control) -> T) -> T {
        // Relaxed: as in the handler.
        self.changes.store(true, Ordering::Relaxed);
        let outcome = act(&self.control);
        self.changes.store(false, Ordering::Relaxed);
        outcome
    }

    /// Runs work without a partial result to show: the first Ctrl-C ends it.
    fn uninterrupted<T>(&self, act: impl FnOnce() -> T) -> T {
        // Relaxed: as in the handler.
        let before = self.ends.swap(true, Ordering::Relaxed);
        let outcome = act();
        self.ends.store(before, Ordering::Relaxed);
        outcome
    }
}

/// Reports patterns that have matched nothing on stderr.
fn complain_of_unmatched(arguments: &Arguments, scans: &[&Scan]) {
    // An import does not apply the patterns, and a part of a scan says nothing of the rest.
    let choices: Vec<_> = scans.iter().filter_map(|scan| scan.options.choice.as_ref()).collect();
    if let (Some(choice), false) = (choices.first(), scans.iter().any(|scan| scan.interrupted)) {
        arguments.choosing.complain_of_unmatched(choice);
    }
}

/// Reports failures on stderr: if there are many, the first few of each reason, and the number of
/// the others.
fn complain_of(errors: &[Failure]) {
    const MANY: usize = 20;
    const FEW: u64 = 3;
    let message = |failure: &Failure| report::escape(failure.message.as_bytes()).into_owned();
    let mut told: HashMap<&str, u64> = HashMap::new();
    let mut reasons = Vec::new();
    for failure in errors {
        let reason = &*failure.message;
        if !told.contains_key(reason) {
            reasons.push(failure);
        }
        let count = told.entry(reason).or_default();
        *count += 1;
        let is_few = *count <= FEW && reasons.len() <= MANY;
        if errors.len() <= MANY || is_few {
            let path = report::escape(&failure.path);
            complain("scan", &format!("{path}: {}", message(failure)));
        }
    }
    if errors.len() <= MANY {
        return;
    }
    let others: u64 = reasons.iter().skip(MANY).map(|failure| told[&*failure.message]).sum();
    for failure in reasons.iter().take(MANY) {
        let more = told[&*failure.message].saturating_sub(FEW);
        if more > 0 {
            complain("scan", &format!("{} more: {}", report::count(more), message(failure)));
        }
    }
    if others > 0 {
        complain("scan", &format!("{} more, for other reasons", report::count(others)));
    }
    complain("scan", "a document (--json) lists every error");
}

/// Whether none of the paths was found, which the errors say.
fn is_nothing(scan: &Scan) -> bool {
    scan.tree.roots().next().is_none() && !scan.errors.is_empty()
}

/// The look of the text for its destination.
fn look(arguments: &Arguments, target: Target<'_>) -> Look {
    let stdout = io::stdout();
    let colour = target == Target::Stdout
        && anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
    // Into a pipe or a file, names are whole and nothing is left out for want of lines.
    let size = terminal_size::terminal_size_of(&stdout).filter(|_| target == Target::Stdout);
    let (width, height) = match size {
        Some((width, height)) => (usize::from(width.0), Some(usize::from(height.0))),
        None if target.is_terminal() => (80, None),
        None => (usize::MAX, None),
    };
    arguments.view.look(width, height, colour)
}

/// Failures to stderr, the report to stdout.
fn show(arguments: &Arguments, scan: &Scan) -> Result<()> {
    complain_of(&scan.errors);
    arguments.document.write(scan, &arguments.extent(None))?;
    let target = arguments.document.target();
    let document = arguments.document.format().is_some();
    if document || is_nothing(scan) || !arguments.document.gets(target, scan) {
        return Ok(());
    }
    let look = look(arguments, target);
    target.write(|mut out| {
        report::text(scan, &arguments.extent(look.height), look, &mut out)?;
        match &scan.stats {
            Some(stats) => writeln!(out, "\n{stats}"),
            None => Ok(()),
        }
    })
}
