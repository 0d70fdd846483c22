//! The documents that `poach scan` writes and reads.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use poach_scan::Scan;
use poach_scan::document::{self, Format, ImportError};
use poach_scan::listing::Stored;
use poach_scan::report::{Extent, escape};

use super::is_nothing;
use crate::output::{Target, complain, shown};

/// Why a file is kept.
pub(super) const A_PART: &str = "the scan is incomplete; --partial replaces it nevertheless";
const NOTHING: &str = "nothing was found; --partial replaces it nevertheless";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Documents")]
pub(super) struct Documents {
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Print::Text)]
    format: Print,
    /// Short for `--format json`.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write the output to FILE, replacing it when complete; `-` is stdout.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace an existing file even if the scan was interrupted.
    #[arg(long)]
    partial: bool,
    /// Add times, modes and owners to documents.
    #[arg(long)]
    pub(super) facts: bool,
    /// Also write a page for a browser, with a treemap, a sunburst, a table and a search.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write a snapshot, for `--import` and `--diff`.
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Read a snapshot or an export of ncdu instead of scanning; `-` is stdin.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "stats", "one_file_system", "dereference_args", "threads",
        "engine", "facts", "Reports", "Choosing"])]
    pub(super) import: Option<PathBuf>,
    /// Compare two directories, snapshots or exports of ncdu.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["paths", "files0_from", "import", "snapshot",
        "html", "stats"])]
    diff: Option<Vec<PathBuf>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Print {
    /// A tree for people.
    Text,
    /// One JSON document.
    Json,
    /// One JSON object per line, each with a whole path: the length of nested directories grows
    /// with the square of their depth.
    Ndjson,
    /// A table for spreadsheets, each line with a whole path, as NDJSON.
    Csv,
    /// An export for `ncdu -f FILE`, with every entry.
    Ncdu,
    /// A compressed export for ncdu 2.6 and later, with every entry.
    NcduBinary,
    /// A compact file for --import and --diff, with every entry.
    Snapshot,
    /// A page for a browser, with every entry.
    Html,
}

impl Documents {
    /// The format to print, if it is not text.
    pub(super) fn format(&self) -> Option<Format> {
        match self.format {
            _ if self.json => Some(Format::Json),
            Print::Text => None,
            Print::Json => Some(Format::Json),
            Print::Ndjson => Some(Format::Ndjson),
            Print::Csv => Some(Format::Csv),
            Print::Ncdu => Some(Format::Ncdu),
            Print::NcduBinary => Some(Format::NcduBinary),
            Print::Snapshot => Some(Format::Snapshot),
            Print::Html => Some(Format::Html),
        }
    }

    /// Whether a document wants the files, too.
    pub(super) fn wants_files(&self) -> bool {
        self.snapshot.is_some()
            || self.html.is_some()
            || self.format().is_some_and(Format::is_whole)
    }

    /// Whether something is written to a file.
    pub(super) fn replaces(&self) -> bool {
        let file = |path: &Path| Target::of(path) != Target::Stdout;
        file(&self.output) || [&self.html, &self.snapshot].into_iter().flatten().any(|it| file(it))
    }

    /// Whether a document is written that has times, modes and owners.
    pub(super) fn has_facts(&self) -> bool {
        self.snapshot.is_some() || !matches!(self.format(), None | Some(Format::Html))
    }

    /// Whether a document is written that is to be read again, by this program or by ncdu.
    pub(super) fn is_read_again(&self) -> bool {
        let format = self.format();
        self.snapshot.is_some()
            || matches!(format, Some(Format::Ncdu | Format::NcduBinary | Format::Snapshot))
    }

    /// The two sides to compare.
    pub(super) fn diff(&self) -> Option<[&Path; 2]> {
        match self.diff.as_deref() {
            Some([old, new]) => Some([old, new]),
            _ => None,
        }
    }

    /// Where the report goes.
    pub(super) fn target(&self) -> Target<'_> {
        Target::of(&self.output)
    }

    /// Flags that contradict each other, in a sentence.
    pub(super) fn nonsense(&self, stats: bool) -> Option<&'static str> {
        if self.diff.is_some() && !matches!(self.format(), None | Some(Format::Json)) {
            return Some("--diff: its output is text or JSON; it has no other --format");
        }
        if stats && !matches!(self.format(), None | Some(Format::Json)) {
            return Some("--stats: its output is text or JSON; it has no other --format");
        }
        let snapshot = self.snapshot.as_deref().is_some_and(|file| Target::of(file).is_terminal());
        if snapshot {
            return Some(
                "--snapshot: it is a binary file and cannot be written to a terminal; give a FILE",
            );
        }
        // An export for ncdu has the bytes of names unescaped, also bytes that a terminal would
        // obey.
        match self.format().filter(|_| self.target().is_terminal())? {
            Format::Snapshot => Some(
                "--format snapshot: it is a binary file and cannot be written to a terminal; give --output FILE",
            ),
            Format::NcduBinary => Some(
                "--format ncdu-binary: it is a binary file and cannot be written to a terminal; give --output FILE",
            ),
            Format::Ncdu => Some(
                "--format ncdu: it is not for a terminal; give --output FILE, or pipe it to `ncdu -f -`",
            ),
            _ => None,
        }
    }

    /// Whether a part of a scan leaves an existing file as it is.
    pub(super) fn keeps(&self, target: Target<'_>) -> bool {
        !self.partial && target.replaces()
    }

    /// Whether a target gets what a scan has found. If not, that is said.
    pub(super) fn gets(&self, target: Target<'_>, scan: &Scan) -> bool {
        let why = match () {
            () if is_nothing(scan) => NOTHING,
            () if scan.interrupted => A_PART,
            () => return true,
        };
        let keeps = self.keeps(target);
        if let (true, Target::File(path)) = (keeps, target) {
            complain("scan", &format!("{} was not replaced: {why}", shown(path)));
        }
        !keeps
    }

    /// Writes the document that is to be printed, if it is not text, and those that go to files.
    pub(super) fn write(&self, scan: &Scan, extent: &Extent) -> Result<()> {
        let document = self.format().is_some() || self.snapshot.is_some() || self.html.is_some();
        if scan.interrupted && document {
            // Some formats cannot record it.
            complain("scan", "interrupted: the document is incomplete");
        }
        let targets = [&self.snapshot, &self.html]
            .map(|path| path.as_deref().map(Target::of).filter(|&target| self.gets(target, scan)));
        if let Some(target) = targets[0] {
            target.write(|out| document::snapshot(scan, &mut &mut *out))?;
        }
        if let Some(target) = targets[1] {
            target.write(|out| document::html(scan, extent.measure, &mut &mut *out))?;
        }
        match self.format().filter(|_| self.gets(self.target(), scan)) {
            Some(format) => self.target().write(|out| format.write(scan, extent, &mut &mut *out)),
            None => Ok(()),
        }
    }
}

/// Reads a document instead of a scan, within a limit of memory in bytes.
pub(super) fn import(path: &Path, memory: Option<u64>) -> Result<Scan> {
    let memory = memory.unwrap_or(u64::MAX);
    let read = if path == Path::new("-") {
        document::read_within(io::stdin().lock(), memory)
    } else {
        File::open(path)
            .map_err(ImportError::from)
            .and_then(|file| document::read_within(file, memory))
    };
    of(path, read)
}

/// Opens an export that can be browsed without reading all of it. Nothing, if the document has to
/// be read whole.
pub(super) fn stored(path: &Path, memory: Option<u64>) -> Result<Option<Stored>> {
    let open = || {
        // A pipe can be opened only once: the data written to it would be lost.
        if !std::fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        Stored::open(File::open(path)?, memory.unwrap_or(u64::MAX))
    };
    if path == Path::new("-") { Ok(None) } else { of(path, open()) }
}

/// The scan that was read from a document, or an error that names its path.
fn of<T>(path: &Path, read: Result<T, ImportError>) -> Result<T> {
    read.map_err(|error| anyhow::anyhow!("{}", escape(error.to_string().as_bytes())))
        .with_context(|| escape(path.as_os_str().as_encoded_bytes()).into_owned())
}
