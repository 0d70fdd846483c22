//! The command line of `poach scan`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use poach_scan::document::Format;
use poach_scan::report::{Extent, Measure};
use poach_scan::survey::{Report, Survey};
use poach_scan::{Engine, MAX_THREADS, Options};

use super::choice::{CHOOSING, Choosing, size};
use super::config::Config;
use super::dedupe::Dedupe;
use super::document::Documents;
use super::limit::{Limit, limit};
use super::reports::Reports;
use super::view::{Sort, View};
use crate::typed::Typed;

/// Measure disk usage of directories.
///
/// Counts every entry below the paths once, with the sizes of `du`: a file with several names
/// counts once, and symbolic links are not followed. A path within another path counts there.
/// Directories that cannot be read are listed on stderr, and the rest is counted.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is a flag of its own")]
#[command(
    args_override_self = true,
    after_help = "Examples:
  poach scan                            the current directory
  poach scan ~ /var --depth 2           the largest directories, two levels deep
  poach scan -x / --top 40              the root file system only
  poach scan . --all --by apparent      files too, by apparent size
  poach scan . --by entries             the directories with the most entries
  poach scan / -x --no-sizes            the number of entries, as fast as possible
  poach scan . --stats --threads 4      with statistics of the workers
  poach scan ~ --json | jq .totals      a JSON document
  poach scan ~ --all --format csv -o home.csv
  poach scan / --format ncdu -o - | ncdu -f -
  poach scan / --snapshot today.poach   write a snapshot as well
  poach scan --import today.poach       show a snapshot
  poach scan --diff today.poach /       the changes since a snapshot
  poach scan ~ --html home.html         a page with a treemap, for a browser
  poach scan . -X target -X '*.log' --ignore-files
  poach scan ~ -I '*.mp4' --min-length 100M --older 1y --all
  poach scan ~ --report largest-files,extensions,recent --recent 7d
  poach scan -i ~                       browse the result, delete files
  poach scan -i --print-chosen --print0 ~ | xargs -0 tar -cf old.tar
  poach scan . --report symlinks,empty-directories,errors --top all
  poach scan ~ --report duplicates --min-length 1M
  poach scan ~/photos ~/old --dedupe link --dry-run
  poach scan ~ --all --sort time --full-paths --units si --min-size 10M

JSON has the bytes of a name that is not UTF-8 in hexadecimal, too (path_hex, name_hex).

Exit code: 0 if everything was read, 1 if something could not be read or the scan was interrupted,
2 for a usage error. Ctrl-C ends the scan and shows the result so far; a second Ctrl-C ends the
program at once."
)]
pub(crate) struct Arguments {
    /// Files and directories to scan [default: the current directory].
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Show N levels below the paths [default: 5 as text, all in a document].
    #[arg(long, short, value_name = "N|all", value_parser = limit)]
    pub(super) depth: Option<Limit>,
    /// Show the N largest entries [default: as many as fit the terminal, 20 in a pipe, all in a
    /// document].
    #[arg(long, short = 'n', value_name = "N|all", value_parser = limit)]
    pub(super) top: Option<Limit>,
    /// Measure of size.
    #[arg(long, value_enum, default_value_t = By::Disk)]
    pub(super) by: By,
    /// Short for `--by apparent`.
    #[arg(long, conflicts_with = "by")]
    pub(super) apparent_size: bool,
    /// Count entries without reading their sizes: about twice as fast. Implies `--by entries`.
    #[arg(long, conflicts_with_all = ["by", "apparent_size", "facts", "min_length", "max_length", "newer", "older", "owner", "group", "sort",
        "html", "snapshot", "import", "diff", "interactive", "Reports"])]
    pub(super) no_sizes: bool,
    /// Limit the memory of the tree to SIZE (K, M, G or T).
    ///
    /// Beyond the limit the scan adds the sizes of entries to the directory that contains them,
    /// which is marked. With --import, a document that takes more is an error.
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["html", "snapshot", "diff", "Reports"])]
    pub(super) memory: Option<u64>,
    /// Count blocks that several files share (reflinks, snapshots) once. Linux only.
    ///
    /// The blocks count for the first file: files of a directory come before deeper files, and are
    /// ordered by name. Needs a file system with FIEMAP, such as btrfs or xfs. After the walk it
    /// opens each file, and flushes it to disk. Documents say that it was asked. With -i everything
    /// is scanned again after a deletion.
    #[arg(long, conflicts_with_all = ["no_sizes", "memory", "import", "diff", "Reports", "how"])]
    pub(super) shared: bool,
    /// Show files as well as directories.
    #[arg(long, short)]
    pub(super) all: bool,
    /// Stay on one file system.
    #[arg(long, short = 'x')]
    pub(super) one_file_system: bool,
    /// Follow symbolic links among the PATHs.
    #[arg(long, short = 'D')]
    pub(super) dereference_args: bool,
    /// Follow all symbolic links.
    ///
    /// Targets outside of the PATHs are scanned as further paths. Each target counts once, and a
    /// link counts as a link. This reads directories twice, first by their names alone.
    #[arg(long, short = 'L', conflicts_with_all = ["import", "diff"])]
    pub(super) dereference: bool,
    /// Number of threads [default: one per processor, and more while they wait for a disk].
    #[arg(long, short, value_name = "N", value_parser = threads)]
    pub(super) threads: Option<NonZeroUsize>,
    /// How threads share the work: sequential, pool, mutex-stealing, lock-free or split.
    #[arg(long, short, value_name = "NAME", default_value_t = Engine::default())]
    pub(super) engine: Engine,
    /// Browse the result on the terminal.
    ///
    /// Shows the tree while it is scanned and after, in any order, with a search and the reports as
    /// tabs. Entries can be selected, and deleted or moved to the trash after a question that lists
    /// them. `?` shows the keys.
    #[arg(long, short, conflicts_with_all = ["format", "json", "html", "snapshot", "output", "diff", "reports", "stats"])]
    pub(super) interactive: bool,
    /// With -i: disable deletion, the trash and the shell.
    #[arg(long, requires = "interactive")]
    pub(super) read_only: bool,
    /// With -i: print the selected paths at the end.
    ///
    /// One per line, or NUL-terminated with --print0. Standard output may be a pipe or a file then.
    #[arg(long, requires = "interactive")]
    pub(super) print_chosen: bool,
    /// Show statistics of each worker: tasks, steals, sleeps. Only with `--engine split`.
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
    /// Disk usage.
    Disk,
    /// Apparent size: the length of files.
    Apparent,
    /// Number of entries.
    Entries,
}

impl Arguments {
    /// The reports that are asked for, as a listener of the walk.
    pub(super) fn survey(&self) -> Survey {
        self.reports.survey(self.measure(), self.top)
    }

    /// An error message, if the flags contradict each other.
    pub(super) fn nonsense(&self) -> Option<&'static str> {
        let whole = self.document.format().is_some_and(Format::is_whole);
        if self.shared && !cfg!(target_os = "linux") {
            Some("--shared: only Linux reports which blocks files share")
        } else if self.shared && self.document.is_read_again() {
            Some(
                "--shared: a snapshot or an export for ncdu cannot record that its sizes are smaller; JSON can",
            )
        } else if self.memory.is_some() && self.interactive && self.document.import.is_none() {
            Some("--memory: -i keeps every entry of a scan; it takes a limit with --import only")
        } else if self.memory.is_some() && whole && self.document.import.is_none() {
            Some("--memory: this format lists every entry; text, JSON, NDJSON and CSV take a limit")
        } else if self.no_sizes && whole {
            Some("--no-sizes: this format needs sizes; text, JSON, NDJSON and CSV do not")
        } else if self.reports.print0 && self.document.format().is_some() {
            Some("--print0: it prints paths only, not a document")
        } else if self.dedupe.is_asked() {
            let format = self.document.format();
            self.dedupe.nonsense(format, self.reports.print0, self.dereference)
        } else if self.reports.print0 && self.reports.reports.is_empty() && !self.print_chosen {
            Some("--print0: it needs --report, --dedupe with --dry-run, or --print-chosen")
        } else if self.reports.print0 && self.reports.without_paths().is_some() {
            Some(
                "--print0: the reports summary, by-age, extensions, types, stats and owners list no paths",
            )
        } else if self.reports.reports.is_empty() {
            None
        } else if self.document.import.is_some() || self.document.diff().is_some() {
            Some("--report: reports need a scan, and cannot be made with --import or --diff")
        } else if self.document.format().is_some_and(|format| format != Format::Json) {
            Some("--report: reports are printed as text, or as one document with --json")
        } else {
            None
        }
    }

    /// Checks that no typed flag would be ignored. Defaults from a file or the environment may be.
    ///
    /// # Errors
    ///
    /// If a typed flag would do nothing. The error names it.
    pub(crate) fn heeded(&self, typed: &Typed) -> Result<()> {
        const TEXT: &[&str] = &["sort", "reverse", "full-paths", "own-files", "units", "width"];
        const SCANNING: &[&str] = &["one-file-system", "dereference-args", "threads", "engine"];
        let format = self.document.format();
        let (is_text, is_whole) = (format.is_none(), format.is_some_and(Format::is_whole));
        let reports = &self.reports.reports;
        let is_report = !reports.is_empty();
        let sides = self.document.diff();
        let is_diff = sides.is_some();
        let scans = sides.is_none_or(|sides| sides.iter().any(|side| side.is_dir()));
        let asks_when = self.choosing.asks_when();
        let lists = is_report && (!is_text || self.reports.print0);
        let rules: [(bool, &[&str], &str); 19] = [
            (
                self.dedupe.is_asked(),
                &["min-size"],
                "it leaves rows out, and --dedupe acts on every file; --min-length leaves files out",
            ),
            (
                !scans,
                SCANNING,
                "it is about how a directory is scanned, and --diff compares two documents here",
            ),
            (
                !scans,
                CHOOSING,
                "it is about how a directory is scanned, and --diff compares two documents here",
            ),
            (
                is_diff,
                &[
                    "all",
                    "min-size",
                    "sort",
                    "reverse",
                    "own-files",
                    "facts",
                    "partial",
                    "dereference-args",
                ],
                "--diff shows every entry that differs, and follows a link that is a side",
            ),
            (is_diff && !is_text, &["depth", "top"], "the document of --diff has all that differs"),
            (
                self.interactive,
                &["depth", "full-paths", "own-files", "min-size", "width", "partial", "facts"],
                "it is about what is printed, and the browser shows all, in the width of the terminal",
            ),
            (
                is_report,
                &[
                    "depth",
                    "all",
                    "sort",
                    "reverse",
                    "full-paths",
                    "own-files",
                    "min-size",
                    "facts",
                    "stats",
                ],
                "a report has rows and an order of its own",
            ),
            (
                is_report,
                &["html", "snapshot"],
                "it is of the tree, and --report makes reports in its place",
            ),
            (lists, TEXT, "it is about the text, and here is none"),
            (
                !is_text,
                TEXT,
                "it is about the text, and a document has an order and numbers of its own",
            ),
            (is_whole, &["depth", "top", "min-size"], "such a document has all that was scanned"),
            (
                is_whole && format != Some(Format::Html) && typed.among(&["html"]).is_none(),
                &["by", "apparent-size"],
                "such a document has all sizes",
            ),
            (
                !self.interactive && !reports.contains(&Report::Recent),
                &["recent"],
                "it is for the report `recent`",
            ),
            (!asks_when, &["time"], "it is the time that --newer and --older ask about"),
            (
                !self.document.replaces(),
                &["partial"],
                "it is for a file that is written: --output, --html or --snapshot",
            ),
            (
                !self.interactive && !self.document.has_facts(),
                &["facts"],
                "it is for documents that have times, modes and owners: here is none",
            ),
            (!self.interactive, &["read-only", "print-chosen"], "it is for -i"),
            (!self.dedupe.is_asked(), &["keep", "dry-run"], "it is for --dedupe"),
            (self.no_sizes, &["units"], "there are no sizes with --no-sizes"),
        ];
        for (applies, flags, why) in rules {
            if let Some(flag) = typed.among(flags).filter(|_| applies) {
                bail!("--{flag}: {why}");
            }
        }
        Ok(())
    }

    /// Marks the flags that were not typed as defaults, which cause no warnings.
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

    /// How much to show: by default as much as fits a terminal of a known height.
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
