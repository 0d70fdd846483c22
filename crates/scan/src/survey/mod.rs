//! Reports on a walk: the largest entries, the newest, the empty, their owners, files of equal
//! content.
//!
//! One file a report. Most are a `Collector`: each worker has one, which is told of each entry
//! during the walk, and in the end they are merged. The others read the finished tree. Any number
//! of them share one walk:
//!
//! ```
//! use poach_scan::survey::{Report, Settings, Survey};
//! use poach_scan::{Control, Options};
//!
//! let survey = Survey::new(&[Report::LargestFiles, Report::Extensions], Settings::default());
//! let (scan, parts) = survey.scan(&["src".into()], &Options::default(), &Control::new())?;
//! for section in survey.finish(&scan, parts)? {
//!     println!("{}: {} rows", section.report, section.rows.len());
//! }
//! # Ok::<(), poach_scan::Error>(())
//! ```
//!
//! A file that has several names is listed once, at the name that bears its size. If entries are
//! equal in a report's rank and in name, it is not determined which of them are left out.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::duplicates::{self, Candidates, Group, Made};
use crate::report::Measure;
use crate::sys::{Native, Sys, path_of};
use crate::visit::{Seen, Visitor};
use crate::{Control, Error, Options, Scan, scan_with};

mod ages;
mod directories;
mod equal;
mod extensions;
mod files;
mod owners;
mod section;
mod stats;
mod symlinks;
mod tallies;
mod tally;
mod top;
mod totals;

pub use section::{Cell, Column, Section, Text, json, text, time};
pub use tallies::Tallies;

/// A report, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Report {
    /// Counts and bytes of the whole.
    Summary,
    /// The largest files.
    LargestFiles,
    /// The largest directories, with all that is in them.
    LargestDirectories,
    /// The files changed last.
    Recent,
    /// The files not changed for the longest time.
    Oldest,
    /// Files by how long ago they were changed.
    ByAge,
    /// Files by the ends of their names.
    Extensions,
    /// Files by what their extensions stand for.
    Types,
    /// Directories with nothing in them.
    EmptyDirectories,
    /// Files with nothing in them.
    EmptyFiles,
    /// Symbolic links, the broken ones first.
    Symlinks,
    /// What could not be read.
    Errors,
    /// Means, medians, depth and width.
    Stats,
    /// Entries by the user that owns them.
    Owners,
    /// Files of equal content.
    Duplicates,
}

impl Report {
    /// Every report, in the order in which they are described.
    pub const ALL: [Report; 15] = [
        Report::Summary,
        Report::LargestFiles,
        Report::LargestDirectories,
        Report::Recent,
        Report::Oldest,
        Report::ByAge,
        Report::Extensions,
        Report::Types,
        Report::EmptyDirectories,
        Report::EmptyFiles,
        Report::Symlinks,
        Report::Errors,
        Report::Stats,
        Report::Owners,
        Report::Duplicates,
    ];

    /// The name that a user knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Report::Summary => "summary",
            Report::LargestFiles => "largest-files",
            Report::LargestDirectories => "largest-directories",
            Report::Recent => "recent",
            Report::Oldest => "oldest",
            Report::ByAge => "by-age",
            Report::Extensions => "extensions",
            Report::Types => "types",
            Report::EmptyDirectories => "empty-directories",
            Report::EmptyFiles => "empty-files",
            Report::Symlinks => "symlinks",
            Report::Errors => "errors",
            Report::Stats => "stats",
            Report::Owners => "owners",
            Report::Duplicates => "duplicates",
        }
    }

    /// What is told of entries for it during the walk; none if it reads the tree.
    fn collector(self, settings: &Settings) -> Option<Box<dyn Collector>> {
        match self {
            Report::Summary
            | Report::LargestDirectories
            | Report::EmptyDirectories
            | Report::Errors => None,
            Report::LargestFiles => Some(Box::new(files::Largest::new(settings))),
            Report::Recent => Some(Box::new(files::Recent::new(settings))),
            Report::Oldest => Some(Box::new(files::Oldest::new(settings))),
            Report::EmptyFiles => Some(Box::new(files::Empty::new(settings))),
            Report::ByAge => Some(Box::new(ages::Ages::new(settings))),
            Report::Extensions => Some(Box::new(extensions::Extensions::default())),
            Report::Types => Some(Box::new(extensions::Types::default())),
            Report::Symlinks => Some(Box::new(symlinks::Symlinks::default())),
            Report::Stats => Some(Box::new(stats::Sizes::default())),
            Report::Owners => Some(Box::new(owners::Owners::default())),
            Report::Duplicates => Some(Box::new(equal::Duplicates::default())),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no report has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no report {name:?}; there are {known}", known = Report::ALL.map(Report::name).join(", "))]
pub struct UnknownReport {
    name: String,
}

impl FromStr for Report {
    type Err = UnknownReport;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Report::ALL.into_iter().find(|report| report.name() == name);
        known.ok_or_else(|| UnknownReport { name: name.to_owned() })
    }
}

/// The settings of all reports of a walk.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many rows a report has at most; no limit, if not said.
    pub top: Option<usize>,
    /// By what the largest are the largest.
    pub measure: Measure,
    /// The time that ages are counted to, in seconds since 1970.
    pub now: i64,
    /// How many seconds ago a recent file may have been changed.
    pub recent: i64,
    /// Names of users by number.
    pub owners: HashMap<u32, String>,
    /// What is asked for the name of a user that is not among these; it is called once for each.
    pub name_of: Option<fn(u32) -> Option<String>>,
}

impl Default for Settings {
    /// Twenty rows, disk sizes, now, a day, and no names.
    fn default() -> Settings {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Settings {
            top: Some(20),
            measure: Measure::default(),
            now: now.map_or(0, |since| since.as_secs() as i64),
            recent: 24 * 60 * 60,
            owners: HashMap::new(),
            name_of: None,
        }
    }
}

/// What one worker collects for one report.
trait Collector: Any + IntoAny + Send {
    /// Takes an entry, in the midst of the walk.
    fn entry(&mut self, seen: &Seen<'_>);

    /// Takes over what another worker has collected; it is of the same type.
    fn merge(&mut self, other: Box<dyn Any>);

    /// Makes the report.
    fn finish(self: Box<Self>, sources: &Sources<'_>) -> Section;
}

/// Converts a collector to [`Any`], to recover its type.
trait IntoAny {
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: Any> IntoAny for T {
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// What a report is made from, beside what was collected.
struct Sources<'a> {
    scan: &'a Scan,
    settings: &'a Settings,
    /// Whether a path, links followed, leads to something.
    leads: &'a dyn Fn(&[u8]) -> bool,
    /// Finds equal files among candidates, and gives each group on, with a way to tell the listener
    /// of it.
    compare: &'a Compare<'a>,
}

type Compare<'a> = dyn Fn(Candidates, &mut Take<'_>) + 'a;

/// Takes a group, and a way to tell of it.
type Take<'a> = dyn FnMut(Group, &mut dyn FnMut(&Group)) + 'a;

/// What is told of reports as they are made.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// Files of equal content, before the report on them is finished: the group that frees the most
    /// first.
    Group(&'a Group),
    /// A finished report. The one on duplicates holds the groups that were told, too.
    Section(&'a Section),
}

/// Other workers' part of a report.
fn other<C: Collector>(other: Box<dyn Any>) -> C {
    *other.downcast().expect("parts of one report are of one type")
}

/// The reports of one walk.
#[derive(Debug)]
pub struct Survey {
    reports: Vec<Report>,
    settings: Settings,
}

/// What one worker has collected for all reports.
pub struct Collected(Vec<(Report, Box<dyn Collector>)>);

impl fmt::Debug for Collected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(report, _)| report)).finish()
    }
}

impl Survey {
    /// These reports.
    pub fn new(reports: &[Report], settings: Settings) -> Survey {
        Survey { reports: reports.to_vec(), settings }
    }

    /// What the walk of a finished scan would have collected: for a scan that was
    /// [changed](Scan::renew), or read from a document. Right only if it has kept its files, and
    /// for times and owners its facts. Linear in the entries.
    pub fn collect(&self, scan: &Scan) -> Vec<Collected> {
        let mut part = self.part();
        scan.tree.each_entry(|seen| self.entry(&mut part, seen));
        vec![part]
    }

    /// [`scan`](crate::scan), and collects what the reports need: for [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// As [`scan`](crate::scan).
    pub fn scan(
        &self,
        paths: &[PathBuf],
        options: &Options,
        control: &Control,
    ) -> Result<(Scan, Vec<Collected>), Error> {
        scan_with(&Native::default(), paths, options, control, self)
    }

    /// Makes the reports, in the order they were asked for.
    ///
    /// # Errors
    ///
    /// If the threads that compare files cannot be had.
    pub fn finish(&self, scan: &Scan, parts: Vec<Collected>) -> Result<Vec<Section>, Error> {
        self.finish_on(&Native::default(), scan, parts)
    }

    /// [`finish`](Self::finish), on a system of the caller's.
    ///
    /// # Errors
    ///
    /// As `finish`.
    pub fn finish_on<S: Sys>(
        &self,
        sys: &S,
        scan: &Scan,
        parts: Vec<Collected>,
    ) -> Result<Vec<Section>, Error> {
        let mut sections = Vec::new();
        self.finish_each_on(sys, scan, parts, &Control::new(), &mut |told| {
            if let Told::Section(section) = told {
                sections.push(section.clone());
            }
        })?;
        Ok(sections)
    }

    /// Makes the reports, in the order they were asked for, and tells of each, and of groups of
    /// equal files, at once.
    ///
    /// # Errors
    ///
    /// If the threads that compare files cannot be had.
    pub fn finish_each(
        &self,
        scan: &Scan,
        parts: Vec<Collected>,
        control: &Control,
        tell: &mut dyn FnMut(Told<'_>),
    ) -> Result<Made, Error> {
        self.finish_each_on(&Native::default(), scan, parts, control, tell)
    }

    /// [`finish_each`](Self::finish_each), on a system of the caller's.
    ///
    /// # Errors
    ///
    /// As `finish_each`.
    pub fn finish_each_on<S: Sys>(
        &self,
        sys: &S,
        scan: &Scan,
        parts: Vec<Collected>,
        control: &Control,
        tell: &mut dyn FnMut(Told<'_>),
    ) -> Result<Made, Error> {
        let mut parts = parts.into_iter();
        let mut whole = parts.next().unwrap_or_else(|| self.part()).0;
        for part in parts {
            for ((_, into), (_, from)) in whole.iter_mut().zip(part.0) {
                into.merge(from.into_any());
            }
        }
        let (tell, made) = (RefCell::new(tell), RefCell::new(Ok(Made::default())));
        let leads = |path: &[u8]| path_of(path).is_ok_and(|path| sys.meta(&path, true).is_ok());
        let compare = |files, each: &mut Take<'_>| {
            let mut told = |group: &Group| (tell.borrow_mut())(Told::Group(group));
            let mut each = |group| each(group, &mut told);
            let found =
                duplicates::find(sys, scan, files, self.settings.measure, control, &mut each);
            *made.borrow_mut() = found;
        };
        let sources = Sources { scan, settings: &self.settings, leads: &leads, compare: &compare };
        let mut whole = whole.into_iter().peekable();
        for report in &self.reports {
            let section = match whole.next_if(|(of, _)| of == report) {
                Some((_, collector)) => collector.finish(&sources),
                None => match report {
                    Report::LargestDirectories => directories::largest(&sources),
                    Report::EmptyDirectories => directories::empty(&sources),
                    Report::Errors => totals::errors(&sources),
                    _ => totals::summary(&sources),
                },
            };
            (tell.borrow_mut())(Told::Section(&section));
        }
        made.into_inner()
    }
}

impl Visitor for Survey {
    type Part = Collected;

    fn part(&self) -> Collected {
        let collector = |&report: &Report| Some((report, report.collector(&self.settings)?));
        Collected(self.reports.iter().filter_map(collector).collect())
    }

    #[inline]
    fn entry(&self, part: &mut Collected, seen: &Seen<'_>) {
        for (_, collector) in &mut part.0 {
            collector.entry(seen);
        }
    }
}
