//! What the user can say to `poach scan`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use poach_scan::document::Format;
use poach_scan::report::{Extent, Measure};
use poach_scan::survey::Survey;
use poach_scan::{Engine, MAX_THREADS, Options};

use super::choice::{Choosing, size};
use super::config::Config;
use super::dedupe::Dedupe;
use super::document::Documents;
use super::limit::{Limit, limit};
use super::reports::Reports;
use super::view::{Sort, View};

/// Scan directories: what is in them, what takes the room, how fast that was found out.
///
/// Counts every entry below the paths once, with `du`'s sizes: a file with several names takes its
/// bytes once, a symbolic link is never followed, a path within another path counts there. What
/// cannot be read is listed on stderr and counted; everything else is counted still.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is a flag of its own")]
#[command(
    args_override_self = true,
    after_help = "Examples:
  poach scan                            this directory
  poach scan ~ /var --depth 2           the largest, two levels deep
  poach scan -x / --top 40              the root file system and no other
  poach scan . --all --by apparent      files too, by length
  poach scan . --by entries             where the many small files are
  poach scan / -x --no-sizes            how many there are, as fast as can be
  poach scan . --stats --threads 4      what the workers did, too
  poach scan ~ --json | jq .totals      one document for a program
  poach scan ~ --all --format csv -o home.csv
  poach scan / --format ncdu -o - | ncdu -f -
  poach scan / --snapshot today.poach   the report, and a file to come back to
  poach scan --import today.poach       what it was like then
  poach scan --diff today.poach /       what has grown, shrunk, come and gone since
  poach scan ~ --html home.html         a page with a treemap, for a browser
  poach scan . -X target -X '*.log' --ignore-files
  poach scan ~ -I '*.mp4' --min-length 100M --older 1y --all
  poach scan ~ --report largest-files,extensions,recent --recent 7d
  poach scan -i ~                       go through it, reports and all; delete what is not wanted
  poach scan -i --print-chosen --print0 ~ | xargs -0 tar -cf old.tar
  poach scan . --report symlinks,empty-directories,errors --top all
  poach scan ~ --report duplicates --min-length 1M
  poach scan ~/photos ~/old --dedupe link --dry-run
  poach scan ~ --all --sort time --full-paths --units si --min-size 10M

In JSON a name that is not UTF-8 has its bytes beside it, in hexadecimal (path_hex, name_hex).

Exit code: 0 if everything was read, 1 if something could not be or the scan was interrupted,
2 for usage. Ctrl-C ends the scan and shows what it has; a second one ends it at once."
)]
pub(crate) struct Arguments {
    /// What to scan [default: this directory].
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Show no level below this one; the paths are level 0 [default: 5 as text, all in a
    /// document].
    #[arg(long, short, value_name = "N|all", value_parser = limit)]
    pub(super) depth: Option<Limit>,
    /// Show so many entries: the largest [default: as many as the terminal has lines for, 20 into
    /// a pipe, all in a document].
    #[arg(long, short = 'n', value_name = "N|all", value_parser = limit)]
    pub(super) top: Option<Limit>,
    /// What the largest are the largest by.
    #[arg(long, value_enum, default_value_t = By::Disk)]
    pub(super) by: By,
    /// Short for `--by apparent`.
    #[arg(long, conflicts_with = "by")]
    pub(super) apparent_size: bool,
    /// Count by names and kinds alone, and ask for no sizes: about twice as fast. The most entries
    /// are the largest then.
    #[arg(long, conflicts_with_all = ["by", "apparent_size", "facts", "min_length", "max_length", "newer", "older", "owner", "group", "sort",
        "html", "snapshot", "import", "diff", "interactive", "Reports"])]
    pub(super) no_sizes: bool,
    /// Let the tree take SIZE of memory at most, with K, M, G or T: what is found beyond that
    /// counts in the directory that it lies in, which is marked. With --import, a document
    /// that takes more is an error.
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["html", "snapshot", "diff", "Reports"])]
    pub(super) memory: Option<u64>,
    /// Count blocks that several files share (reflinks, snapshots) once, at the file that comes
    /// first: those of a directory before what lies deeper, each by name. On Linux, where the
    /// file system says it (FIEMAP: btrfs, xfs and others). Each file is opened for it after
    /// the walk, and what was written to it is written to its disk.
    #[arg(long, conflicts_with_all = ["no_sizes", "memory", "interactive", "import", "diff", "Reports", "how"])]
    pub(super) shared: bool,
    /// Show files too, and not only directories.
    #[arg(long, short)]
    pub(super) all: bool,
    /// Leave out directories on other file systems.
    #[arg(long, short = 'x')]
    pub(super) one_file_system: bool,
    /// Scan what a PATH points to if it is a symbolic link.
    #[arg(long, short = 'D')]
    pub(super) dereference_args: bool,
    /// Scan what symbolic links lead to, too: what lies outside of the PATHs as further paths.
    /// Each target counts once, and the links count as links. Directories are read twice for
    /// it, first by their names alone.
    #[arg(long, short = 'L', conflicts_with_all = ["import", "diff"])]
    pub(super) dereference: bool,
    /// Threads to scan with [default: as many as there are processors, and more while these wait
    /// for a disk].
    #[arg(long, short, value_name = "N", value_parser = threads)]
    pub(super) threads: Option<NonZeroUsize>,
    /// Who shares the work: sequential, pool, mutex-stealing, lock-free or split.
    #[arg(long, short, value_name = "NAME", default_value_t = Engine::default())]
    pub(super) engine: Engine,
    /// Go through it on the terminal, while it is scanned and after: in any order, with a search
    /// and the reports as tabs; choose entries and delete them or move them to the trash,
    /// after a question that lists what goes. `?` shows the keys.
    #[arg(long, short, conflicts_with_all = ["format", "json", "html", "snapshot", "output", "diff", "reports", "stats"])]
    pub(super) interactive: bool,
    /// With -i: delete nothing, move nothing to the trash, and start no shell.
    #[arg(long, requires = "interactive")]
    pub(super) read_only: bool,
    /// With -i: print the paths that are chosen when it ends, each on a line, or with --print0
    /// each ended by a NUL. Standard output may be a pipe or a file then.
    #[arg(long, requires = "interactive")]
    pub(super) print_chosen: bool,
    /// Show too what each worker has done: tasks, steals, sleeps and the like. Of the split engine
    /// only.
    #[arg(long)]
    pub(super) stats: bool,
    #[command(flatten)]
    pub(super) view: View,
    #[command(flatten)]
    pub(super) document: Documents,
    #[command(flatten)]
    pub(super) reports: Reports,
    #[command(flatten)]
    pub(super) dedupe: Dedupe,
    #[command(flatten)]
    pub(super) choosing: Choosing,
    #[command(flatten)]
    pub(crate) config: Config,
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .ok()
        .filter(|threads: &NonZeroUsize| threads.get() <= MAX_THREADS)
        .ok_or_else(|| format!("give a number from 1 to {MAX_THREADS}"))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum By {
    /// Bytes on disk.
    Disk,
    /// Lengths.
    Apparent,
    /// The number of entries.
    Entries,
}

impl Arguments {
    /// The reports that are asked for, as a listener of the walk.
    pub(super) fn survey(&self) -> Survey {
        self.reports.survey(self.measure(), self.top)
    }

    /// What makes no sense together, in a sentence.
    pub(super) fn nonsense(&self) -> Option<&'static str> {
        let whole = self.document.format().is_some_and(Format::is_whole);
        if self.shared && !cfg!(target_os = "linux") {
            Some("--shared: only Linux says which blocks files share")
        } else if self.shared && self.document.is_read_again() {
            Some(
                "--shared: a snapshot or an export for ncdu would have the smaller sizes, and has no place to say so; JSON says so",
            )
        } else if self.memory.is_some() && self.interactive && self.document.import.is_none() {
            Some("--memory: a walk in the browser keeps every entry; with --import it has a limit")
        } else if self.memory.is_some() && whole && self.document.import.is_none() {
            Some(
                "--memory: such a document has every entry; text, JSON, NDJSON and CSV do with less",
            )
        } else if self.no_sizes && whole {
            Some("--no-sizes: such a document has sizes; text, JSON, NDJSON and CSV do without")
        } else if self.reports.print0 && self.document.format().is_some() {
            Some("--print0: it prints paths alone, and no document")
        } else if self.dedupe.is_asked() {
            let format = self.document.format();
            self.dedupe.nonsense(format, self.reports.print0, self.dereference)
        } else if self.reports.print0 && self.reports.reports.is_empty() && !self.print_chosen {
            Some(
                "--print0: it prints the paths of a --report, of --dedupe with --dry-run, or of --print-chosen",
            )
        } else if self.reports.print0 && self.reports.without_paths().is_some() {
            Some(
                "--print0: such a report lists no paths: summary, by-age, extensions, types, stats, owners",
            )
        } else if self.reports.reports.is_empty() {
            None
        } else if self.document.import.is_some() || self.document.diff().is_some() {
            Some("--report: a report is made during a walk of its own, not with --import or --diff")
        } else if self.document.format().is_some_and(|format| format != Format::Json) {
            Some("--report: reports are text, or with --json one document")
        } else {
            None
        }
    }

    /// What the user has typed and would not be heeded, by --dedupe or as two documents are
    /// compared: an error that names it. Defaults from a file or the environment are no demand, and
    /// are not asked about here.
    ///
    /// # Errors
    ///
    /// If there is such a flag.
    pub(crate) fn heeded(&self) -> Result<()> {
        if self.dedupe.is_asked() && self.view.min_size.is_some() {
            bail!(
                "--min-size: it leaves rows out, and --dedupe acts on every file; --min-length leaves files out"
            );
        }
        let Some(sides) = self.document.diff() else { return Ok(()) };
        if sides.iter().any(|side| side.is_dir()) {
            return Ok(());
        }
        let given = [
            (self.one_file_system, "--one-file-system"),
            (self.dereference_args, "--dereference-args"),
            (self.threads.is_some(), "--threads"),
            (self.engine != Engine::default(), "--engine"),
            (self.document.facts, "--facts"),
        ];
        let given = given.into_iter().find_map(|(given, name)| given.then_some(name));
        if let Some(name) = given.or_else(|| self.choosing.given()) {
            bail!(
                "{name}: it is about how a directory is scanned, and --diff compares two documents here"
            );
        }
        Ok(())
    }

    /// Takes what is here and was not typed for defaults, about which nobody is warned.
    pub(crate) fn tell_defaults(&mut self, typed: &Arguments) {
        self.choosing.tell_defaults(&typed.choosing);
        if self.dedupe.only_typed(&typed.dedupe) {
            self.reports.print0 = typed.reports.print0;
        }
    }

    /// # Errors
    ///
    /// If a pattern cannot be read.
    pub(super) fn options(&self) -> Result<Options> {
        Ok(Options {
            choice: self.choosing.choice()?,
            without_sizes: self.no_sizes,
            memory: self.memory,
            engine: self.engine,
            threads: self.threads,
            one_file_system: self.one_file_system,
            follow_paths: self.dereference_args || self.dereference,
            keep_facts: self.document.facts || self.interactive || self.view.sort == Sort::Time,
            keep_files: self.all || self.shared || self.interactive || self.document.wants_files(),
            ..Options::default()
        })
    }

    pub(super) fn measure(&self) -> Measure {
        match self.by {
            _ if self.apparent_size => Measure::Apparent,
            _ if self.no_sizes => Measure::Entries,
            By::Disk => Measure::Disk,
            By::Apparent => Measure::Apparent,
            By::Entries => Measure::Entries,
        }
    }

    /// How much to show: by default, on a terminal of a known height, as much as there are lines
    /// for.
    pub(super) fn extent(&self, height: Option<usize>) -> Extent {
        // A document is complete unless it is asked not to be.
        let text = self.document.format().is_none();
        let depth = self.depth.unwrap_or(text.then_some(5));
        let top = self.top.unwrap_or((text && height.is_none()).then_some(20));
        let (order, reverse) = self.view.order();
        let at_least = self.view.min_size.unwrap_or(0);
        let (measure, directories_only) = (self.measure(), !self.all);
        Extent { measure, depth, top, directories_only, at_least, order, reverse }
    }
}
