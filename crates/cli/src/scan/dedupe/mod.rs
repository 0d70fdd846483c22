//! `--dedupe`: links, reflinks or deletes files of equal content.
//!
//! [`plan`] chooses the file of each group that is kept, and inspects all of them. [`act`] changes
//! the other files one after another. It compares each with the kept file right before, and reports
//! each change as it is made.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use poach_scan::document::Format;
use poach_scan::duplicates::Group;
use poach_scan::report::{Look, Measure, count, escape};
use poach_scan::survey::{Collected, Report, Survey, Told};
use poach_scan::sys::Native;
use poach_scan::{Error, Failure, Options, Seen, Visitor, Within, scan_with};
use serde_json::{Value, json};

use super::flags::Arguments;
use super::{Run, code, complain_of, complain_of_unmatched, look};
use crate::output::{AMISS, complain};

#[cfg(target_os = "linux")]
mod act;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(not(target_os = "linux"))]
#[path = "cannot.rs"]
mod plan;

use plan::Plan;

/// The flags.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Duplicates")]
pub(super) struct Dedupe {
    /// Link, reflink or delete duplicate files. Linux only.
    ///
    /// One file of each group of equal files is kept. Each other file is compared with it, byte by
    /// byte, right before it is changed. `--dry-run` shows the plan. `--top` limits the groups to
    /// those that free the most.
    #[arg(long = "dedupe", value_enum, value_name = "HOW", conflicts_with_all = ["reports", "interactive", "stats", "no_sizes", "memory",
        "html", "snapshot", "import", "diff", "depth", "by", "apparent_size", "sort", "reverse", "all", "own_files", "full_paths",
        "width", "facts", "recent", "partial"])]
    how: Option<How>,
    /// The file of each group to keep.
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Keep::First, requires = "how")]
    keep: Keep,
    /// Show what --dedupe would do, without doing it.
    #[arg(long, requires = "how")]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum How {
    /// Replace each with a hard link to the kept file; skip files of another owner, mode or
    /// attributes.
    Link,
    /// Share the blocks of the kept file (btrfs, xfs); each file keeps its owner, mode, times and
    /// attributes.
    Reflink,
    /// Delete all but the kept file.
    Delete,
}

impl How {
    /// What is said of a file, or a name, to which it was done.
    fn done(self) -> &'static str {
        match self {
            How::Link => "linked",
            How::Reflink => "reflinked",
            How::Delete => "deleted",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Keep {
    /// The first file by the order of PATHs, then by depth, then by name.
    First,
    /// The file changed longest ago.
    Oldest,
    /// The file changed last.
    Newest,
}

impl Dedupe {
    pub(super) fn is_asked(&self) -> bool {
        self.how.is_some()
    }

    /// Options that contradict it, in a sentence.
    pub(super) fn nonsense(
        &self,
        format: Option<Format>,
        print0: bool,
        dereference: bool,
    ) -> Option<&'static str> {
        if !cfg!(target_os = "linux") {
            Some("--dedupe: it works on Linux only")
        } else if dereference && self.how == Some(How::Delete) {
            Some(
                "-L: with --dedupe delete it would delete files outside of every PATH; give their directory as a PATH",
            )
        } else if format.is_some_and(|format| format != Format::Json) {
            Some("--dedupe: its output is text or JSON; it has no other --format")
        } else if print0 && !self.dry_run {
            Some("--print0: with --dedupe it prints what --dry-run would change")
        } else {
            None
        }
    }

    /// Forgets options that were not typed: an options file alone must not change files. Returns
    /// whether there were any.
    pub(super) fn only_typed(&mut self, typed: &Dedupe) -> bool {
        let forgets = self.how.is_some() && typed.how.is_none();
        self.how = typed.how;
        self.dry_run &= !forgets;
        forgets
    }
}

/// The outcome for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "elsewhere every file is left"))]
enum Became {
    /// It was done.
    Done,
    /// There was nothing to do: it is the same file, or shares its blocks already.
    Already,
    /// The file is unchanged, for this reason.
    Left(String),
    /// The first names, this many, were changed; the reason why the others were not.
    Partly(usize, String),
}

/// A duplicate of a kept file.
struct Outcome<'a> {
    /// The kept file; none if it could not be chosen.
    kept: Option<&'a [u8]>,
    path: &'a [u8],
    /// Other names of the same file, which are treated alike.
    others: &'a [Vec<u8>],
    /// What is free once it is done: without the blocks that other files share.
    freed: u64,
    /// None if nothing was tried.
    became: Option<Became>,
}

/// Is told of each file in turn. An error ends it.
type Tell<'t> = dyn FnMut(&Outcome<'_>) -> io::Result<()> + 't;

/// Finds equal files, and every name of those that have several.
struct Finding(Survey);

/// One of several names of a file.
struct Name {
    /// Device and number.
    file: (u64, u64),
    within: Within,
    bytes: Vec<u8>,
}

impl Visitor for Finding {
    type Part = (Collected, Vec<Name>);

    fn part(&self) -> Self::Part {
        (self.0.part(), Vec::new())
    }

    fn entry(&self, (part, names): &mut Self::Part, seen: &Seen<'_>) {
        self.0.entry(part, seen);
        if seen.meta.links > 1 && seen.own.is_none() && seen.meta.apparent > 0 {
            let file = (seen.meta.device, seen.meta.inode);
            names.push(Name { file, within: seen.within, bytes: seen.name.to_vec() });
        }
    }
}

/// Finds equal files and acts on them, or shows what it would do. Returns the exit code.
pub(super) fn run(
    arguments: &Arguments,
    run: &Run,
    paths: &[PathBuf],
    options: &Options,
) -> Result<std::result::Result<u8, Error>> {
    let how = arguments.dedupe.how.unwrap_or(How::Link);
    let finding = Finding(Survey::new(
        &[Report::Duplicates],
        arguments.reports.settings(Measure::Disk, None),
    ));
    let sys = Native::default();
    let scanned =
        run.during(paths, |control| scan_with(&sys, paths, options, control, &finding))?;
    let (scan, parts) = match scanned {
        Ok(scanned) => scanned,
        Err(error) => return Ok(Err(error)),
    };
    complain_of(&scan.errors);
    complain_of_unmatched(arguments, &[&scan]);
    let (parts, names): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let mut groups: Vec<Group> = Vec::new();
    let made = run.during(paths, |control| {
        finding.0.finish_each(&scan, parts, control, &mut |told| {
            if let Told::Group(group) = told {
                groups.push(group.clone());
            }
        })
    })?;
    let made = match made {
        Ok(made) => made,
        Err(error) => return Ok(Err(error)),
    };
    complain_of(&made.errors);
    if scan.interrupted || made.interrupted {
        complain("scan", "interrupted: nothing was changed");
        return Ok(Ok(AMISS));
    }
    groups.truncate(arguments.top.flatten().unwrap_or(usize::MAX));
    let well = code(&[&scan]) == 0 && made.errors.is_empty();
    let names = names.into_iter().flatten();
    let keep = arguments.dedupe.keep;
    let plan = Plan::new(&scan, &groups, names, how, keep);
    let target = arguments.document.target();
    let mut printer = Printer {
        how,
        dry: arguments.dedupe.dry_run,
        print0: arguments.reports.print0,
        look: look(arguments, target),
        rows: arguments.document.format().is_some().then(Vec::new),
        under: None,
        done: 0,
        freed: 0,
        left: Vec::new(),
        partly: 0,
        errors: scan.errors.iter().chain(&made.errors).cloned().collect(),
    };
    let (mut interrupted, mut unread) = (false, false);
    let written = target.write(|mut out| {
        let mut tell = |outcome: &Outcome<'_>| printer.tell(outcome, &mut out);
        if arguments.dedupe.dry_run {
            plan.each(&mut tell)?;
            return printer.end(false, &mut out);
        }
        let ended = run.guarded(|control| plan.carry_out(control, &mut tell)).and_then(|ended| {
            interrupted = ended;
            printer.end(interrupted, &mut out)?;
            out.flush()
        });
        unread = ended.is_err();
        ended
    });
    complain_of(&printer.left);
    if unread {
        let sum = printer.sum();
        complain(
            "scan",
            &format!("could not write the output: {sum}, and nothing else was changed"),
        );
    }
    written?;
    if interrupted {
        complain("scan", &format!("interrupted: {}, and nothing else was changed", printer.sum()));
    }
    let well = well && printer.left.is_empty() && !interrupted && !unread;
    Ok(Ok(if well { 0 } else { AMISS }))
}

/// Writes what was done, or would be.
struct Printer {
    how: How,
    dry: bool,
    /// Whether only the paths of what would be changed are written.
    print0: bool,
    look: Look,
    /// What a document holds, if one is wanted.
    rows: Option<Vec<Value>>,
    /// The file that stays of the last row.
    under: Option<Vec<u8>>,
    done: u64,
    freed: u64,
    left: Vec<Failure>,
    /// How many of them were left in part.
    partly: usize,
    /// What could not be read or compared.
    errors: Vec<Failure>,
}

impl Printer {
    fn tell(&mut self, outcome: &Outcome<'_>, out: &mut impl Write) -> io::Result<()> {
        let names = || std::iter::once(outcome.path).chain(outcome.others.iter().map(|it| &**it));
        match &outcome.became {
            None | Some(Became::Done) => {
                self.done += 1;
                self.freed = self.freed.saturating_add(outcome.freed);
            }
            Some(Became::Already) => {}
            Some(Became::Left(message)) => {
                self.left.push(Failure { path: outcome.path.to_vec(), message: message.clone() });
            }
            Some(Became::Partly(done, message)) => {
                let path = names().nth(*done).unwrap_or(outcome.path).to_vec();
                self.left.push(Failure { path, message: message.clone() });
                self.partly += 1;
            }
        }
        let acts = matches!(outcome.became, None | Some(Became::Done));
        if self.print0 {
            return names().filter(|_| acts).try_for_each(|path| {
                out.write_all(path)?;
                out.write_all(b"\0")
            });
        }
        let (sign, result) = match (&outcome.became, self.how) {
            (None, How::Link) => ("link", "would"),
            (None, How::Reflink) => ("reflink", "would"),
            (None, How::Delete) => ("delete", "would"),
            (Some(Became::Done), _) => (self.how.done(), "done"),
            (Some(Became::Already), _) => ("already", "already"),
            (Some(Became::Left(_)), _) => ("left", "left"),
            (Some(Became::Partly(..)), _) => (self.how.done(), "partly"),
        };
        let done = match outcome.became {
            Some(Became::Partly(done, _)) => done,
            _ => usize::MAX,
        };
        if let Some(rows) = &mut self.rows {
            let mut row = json!({ "result": result, "freed_bytes": outcome.freed });
            put(&mut row, "path", outcome.path);
            outcome.kept.iter().for_each(|kept| put(&mut row, "kept", kept));
            if acts {
                row["other_names"] = outcome.others.iter().map(|path| path_of(path)).collect();
            }
            if let Some(Became::Left(message) | Became::Partly(_, message)) = &outcome.became {
                row["message"] = message.as_str().into();
            }
            if let Some(Became::Partly(done, _)) = outcome.became {
                row["names_done"] = names().take(done).map(path_of).collect();
                row["names_left"] = names().skip(done).map(path_of).collect();
            }
            rows.push(row);
            return Ok(());
        }
        if self.under.as_deref() != outcome.kept {
            self.under = outcome.kept.map(<[u8]>::to_vec);
            if let Some(kept) = outcome.kept {
                writeln!(out, "\n{}", escape(kept))?;
            }
        }
        for (number, path) in names().enumerate() {
            // The bytes are those of all of its names together.
            let freed = if acts && number == 0 {
                self.look.amount(Measure::Disk, outcome.freed)
            } else {
                String::new()
            };
            let sign = if number < done { sign } else { "left" };
            writeln!(out, "  {sign:<9}  {freed:>10}  {}", escape(path))?;
        }
        // So that it is known what was done, whatever comes after it.
        if self.dry { Ok(()) } else { out.flush() }
    }

    /// The result, in a sentence.
    fn sum(&self) -> String {
        let files = |number: u64| {
            format!("{} {}", count(number), if number == 1 { "file" } else { "files" })
        };
        let done = match (self.how, self.dry) {
            (How::Link, false) => "became hard links",
            (How::Link, true) => "would become hard links",
            (How::Reflink, false) => "share their blocks now",
            (How::Reflink, true) => "would share their blocks",
            (How::Delete, false) if self.done == 1 => "was deleted",
            (How::Delete, false) => "were deleted",
            (How::Delete, true) => "would be deleted",
        };
        let would = if self.dry { "that would free" } else { "that freed" };
        format!(
            "{} {done}, {would} {}",
            files(self.done),
            self.look.amount(Measure::Disk, self.freed)
        )
    }

    fn end(&mut self, interrupted: bool, out: &mut impl Write) -> io::Result<()> {
        if self.print0 {
            return Ok(());
        }
        let Some(rows) = self.rows.take() else {
            let mut left = match self.left.len() - self.partly {
                0 => String::new(),
                left => format!("; left as they were: {}", count(left as u64)),
            };
            if self.partly > 0 {
                let partly = count(self.partly as u64);
                let _ = write!(left, "; done to some of their names: {partly}");
            }
            return writeln!(out, "\n  {}{left}", self.sum());
        };
        let how = match self.how {
            How::Link => "link",
            How::Reflink => "reflink",
            How::Delete => "delete",
        };
        let document = json!({
            "schema": 1,
            "dedupe": how,
            "dry_run": self.dry,
            "interrupted": interrupted,
            "totals": { "files": self.done, "freed_bytes": self.freed, "left": self.left.len() },
            "files": rows,
            "errors": self.errors.iter().map(|error| {
                let mut row = json!({ "message": error.message });
                put(&mut row, "path", &error.path);
                row
            }).collect::<Vec<_>>(),
        });
        writeln!(out, "{}", plain(&format!("{document:#}")))
    }
}

/// Puts a path into an object: as text, and its bytes beside it, in hexadecimal, where it is no
/// UTF-8.
fn put(object: &mut Value, name: &str, path: &[u8]) {
    object[name] = String::from_utf8_lossy(path).into();
    if std::str::from_utf8(path).is_err() {
        let mut hex = String::with_capacity(2 * path.len());
        for byte in path {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        object[format!("{name}_hex")] = hex.into();
    }
}

/// A path as an object.
fn path_of(path: &[u8]) -> Value {
    let mut object = json!({});
    put(&mut object, "path", path);
    object
}

/// JSON that a terminal can show: what moves the cursor or turns writing around is escaped. It can
/// only stand in strings.
fn plain(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        let mut bytes = [0; 4];
        let text = character.encode_utf8(&mut bytes);
        if character >= '\x7f' && escape(text.as_bytes()) != *text {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
