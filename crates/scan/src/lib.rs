//! A parallel file-system scan: totals, sizes, hard links once, on work-stealing engines.
//!
//! ```
//! use poach_scan::{Control, Options, scan};
//!
//! let found = scan(&["src".into()], &Options::default(), &Control::new())?;
//! assert!(found.totals.files > 0 && found.totals.directories > 0);
//! assert!(found.errors.is_empty());
//! # Ok::<(), poach_scan::Error>(())
//! ```
//!
//! # What is counted
//!
//! Every entry at or below the given paths counts once, whatever it is, and never what a symbolic
//! link points to. Sizes are those of `du`. A directory has a size of its own, a symbolic link too.
//! A file with several names (hard links) is one entry for each name, but takes its bytes once. A
//! path that lies within another given path is counted there. What cannot be read is listed in
//! [`Scan::errors`], and everything else is counted still.
//!
//! # Limits
//!
//! 4,294,967,294 directories; 1,024 threads; as many entries as memory holds, at 24 bytes and the
//! name for each kept entry and 64 for a directory. The depth of a tree has no limit on Linux: no
//! path is built, no call recurses, and the number of directories that are open at a time is
//! bounded.
#![doc = include_str!("readme.md")]

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

pub mod choice;
mod control;
pub mod diff;
pub mod document;
pub mod duplicates;
pub mod engine;
mod id;
mod linked;
pub mod listing;
pub mod report;
mod roots;
mod shared;
pub mod survey;
pub mod sys;
mod tree;
mod visit;
mod walk;

pub use control::{Control, Progress};
pub use engine::Engine;
pub use linked::linked;
pub use shared::Shared;
pub use sys::Kind;
pub use tree::{Facts, Link, Node, NodeId, RenewError, Tree};
pub use visit::{Seen, Visitor, Within};

use sys::{Native, Sys};
use walk::{Handles, Outcome, Walk, Worker, WorkerCount};

/// The most threads that a scan uses.
pub const MAX_THREADS: usize = 1024;

/// How to scan.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is a choice of its own")]
pub struct Options {
    /// The way in which threads share the work.
    pub engine: Engine,
    /// How many threads. If not said, as many as the system offers to this process and, with the
    /// `split` engine on Linux, more while these wait for a disk. With the `sequential` engine it
    /// is one.
    pub threads: Option<NonZeroUsize>,
    /// Whether to leave out directories on another file system than the path they were found
    /// under.
    pub one_file_system: bool,
    /// Whether to scan what a given path points to if it is a symbolic link.
    pub follow_paths: bool,
    /// Whether the tree is to hold every file, and not only the directories.
    pub keep_files: bool,
    /// Whether the tree is to hold times, modes and owners of what it holds: 18 bytes more an
    /// entry.
    pub keep_facts: bool,
    /// Whether to ask for no sizes, but for names and kinds alone, which directories hold
    /// themselves: the fastest way to count. Sizes, times and owners are 0 then, and each name
    /// of a file that has several counts.
    pub without_sizes: bool,
    /// The entries that count.
    pub choice: Option<Arc<choice::Choice>>,
    /// How many bytes the tree may take, in all threads together; no limit, if not said. What is
    /// found once they are used up is counted in the totals and in the sums of its directory, and
    /// has no entry of its own. That holds for files, and for directories with all that is in them;
    /// [`Node::is_summed`] says of which directories. Names of files that have several are kept
    /// nevertheless, and what waits to be visited is not counted. A listener is told of the nearest
    /// kept directory in place of a directory that is not kept.
    pub memory: Option<u64>,
    /// How many directories may be held open at a time, beside those being read; as many as the
    /// process's limit comfortably allows, if not said. Zero is slow but works.
    pub handles: Option<usize>,
}

/// Why there is no scan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to scan was named.
    #[error("no path was given to scan")]
    NoPath,
    /// More threads than a scan can have.
    #[error("{0} threads were asked for; a scan uses at most {MAX_THREADS}")]
    TooManyThreads(usize),
    /// The system refused a thread.
    #[error("the system refused thread {number} of the scan: {error}; ask for fewer threads")]
    Thread {
        /// The number of the thread, from 0.
        number: usize,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
    /// The pool of the `split` engine cannot be made for another reason.
    #[error("the pool of the split engine cannot be made: {0}")]
    Pool(#[source] poach_runtime::BuildError),
}

/// Counts and bytes of a whole scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Totals {
    /// Directories, those that could not be read included.
    pub directories: u64,
    /// Regular files, by name.
    pub files: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Sockets, named pipes and devices.
    pub other: u64,
    /// Failures: as many as there are in [`Scan::errors`].
    pub errors: u64,
    /// Lengths, in bytes; of a file with several names once.
    pub apparent_bytes: u64,
    /// Bytes taken on disk; by a file with several names once.
    pub disk_bytes: u64,
}

impl Totals {
    /// Entries of all kinds.
    pub fn entries(&self) -> u64 {
        self.directories + self.files + self.symlinks + self.other
    }

    /// Counts an entry of a kind; its bytes are added apart.
    ///
    /// ```
    /// use poach_scan::{Kind, Totals};
    ///
    /// let mut totals = Totals::default();
    /// totals.count(Kind::Symlink);
    /// assert_eq!((totals.symlinks, totals.entries()), (1, 1));
    /// ```
    #[inline]
    pub fn count(&mut self, kind: Kind) {
        match kind {
            Kind::Directory => self.directories += 1,
            Kind::File => self.files += 1,
            Kind::Symlink => self.symlinks += 1,
            Kind::Other => self.other += 1,
        }
    }

    fn add(&mut self, other: &Totals) {
        self.directories += other.directories;
        self.files += other.files;
        self.symlinks += other.symlinks;
        self.other += other.other;
    }
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The bytes of its path, beginning with the path as it was given.
    pub path: Vec<u8>,
    /// What was tried, and what the system said.
    pub message: String,
}

/// What a scan found.
#[derive(Debug, Default)]
pub struct Scan {
    /// Counts and bytes.
    pub totals: Totals,
    /// The tree, summed up.
    pub tree: Tree,
    /// What could not be read, by path.
    pub errors: Vec<Failure>,
    /// How it was scanned.
    pub options: Options,
    /// When it began, in seconds since 1970.
    pub taken: u64,
    /// Given paths that were not scanned by themselves: they name, or lie within, another one.
    pub repeated: Vec<PathBuf>,
    /// How many directories have no entry of their own, for want of [memory](Options::memory).
    pub summed: u64,
    /// Whether [`Control::stop`] ended it early, so that the totals are those of a part.
    pub interrupted: bool,
    /// From the call to the finished sums.
    pub elapsed: Duration,
    /// The engine that shared the work among the threads.
    pub engine: Engine,
    /// How many threads worked: the most at a time.
    pub threads: usize,
    /// What the runtime's workers counted: with the `split` engine alone, and not if there was no
    /// directory. Where more threads came to help, it is the sum of all while they were there.
    pub stats: Option<poach_runtime::stats::Stats>,
    /// What files have in common, once [`Scan::count_shared_once`] has counted it once.
    pub shared: Option<Shared>,
}

impl Scan {
    /// Entries of all kinds, for each second that it took.
    pub fn entries_per_second(&self) -> f64 {
        self.totals.entries() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Scans the given paths and all below them.
///
/// A path that is not there is a failure like any other: it is listed, and the others are scanned.
///
/// # Errors
///
/// If nothing is to be scanned, or the threads cannot be had.
pub fn scan(paths: &[PathBuf], options: &Options, control: &Control) -> Result<Scan, Error> {
    scan_on(&Native::default(), paths, options, control)
}

/// [`scan`], on a system of the caller's.
///
/// # Errors
///
/// As [`scan`].
pub fn scan_on<S: Sys>(
    sys: &S,
    paths: &[PathBuf],
    options: &Options,
    control: &Control,
) -> Result<Scan, Error> {
    Ok(scan_with(sys, paths, options, control, &())?.0)
}

/// [`scan_on`], with a listener. Returns what each of the workers collected, too; never nothing.
///
/// # Errors
///
/// As [`scan`].
pub fn scan_with<S: Sys, V: Visitor>(
    sys: &S,
    paths: &[PathBuf],
    options: &Options,
    control: &Control,
    visitor: &V,
) -> Result<(Scan, Vec<V::Part>), Error> {
    let began = Instant::now();
    if paths.is_empty() {
        return Err(Error::NoPath);
    }
    let threads = match options.engine {
        Engine::Sequential => 1,
        _ => options.threads.map_or_else(available, NonZeroUsize::get),
    };
    if threads > MAX_THREADS {
        return Err(Error::TooManyThreads(threads));
    }
    // A worker's share of the memory is its own, so their number is fixed where memory is.
    let varies = options.threads.is_none() && options.memory.is_none();
    let worker_count = match options.engine {
        Engine::Split if varies && sys.spent().is_some() => {
            WorkerCount::of_processors(threads, sys.handles())
        }
        _ => WorkerCount::fixed(threads),
    };
    control.begin(worker_count.most());

    let mut roots = roots::Roots::gather(sys, paths, options, control);
    let handles =
        Handles::new(worker_count.most(), options.handles.unwrap_or_else(|| sys.handles()));
    let walk = Walk::new(sys, visitor, options, control, (&worker_count, &handles), roots.start());
    let worker = |number| Worker::new(sys, visitor, options.keep_facts, number);
    let Outcome { workers, most, stats } = walk::run(&walk, options.engine, worker)?;
    drop(walk);
    let (found, mut parts): (Vec<_>, Vec<_>) = workers.into_iter().unzip();
    let mut scan = roots.finish(found, options, visitor, &mut parts[0]);
    scan.options = options.clone();
    scan.tree.index_links(options.keep_files);
    scan.taken = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs().saturating_sub(began.elapsed().as_secs()));
    scan.elapsed = began.elapsed();
    (scan.engine, scan.threads, scan.stats) = (options.engine, most, stats);
    Ok((scan, parts))
}

fn available() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS)
}
