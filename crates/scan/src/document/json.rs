//! A scan as one JSON document, with an entry a line.
//!
//! ```text
//! { "schema": 1, "version": "0.1.0", "taken": 1795370400,
//!   "options": { "all", "one_file_system", "dereference_args", "by", "depth", "top" },
//!   "engine": "split", "threads": 2, "elapsed_s": 0.51, "entries_per_s": 1234567.8,
//!   "interrupted": false, "complete": true,
//!   "totals": { "directories", "files", "symlinks", "other", "errors", "apparent_bytes",
//!               "disk_bytes" },
//!   "shared": { "bytes", "files", "unknown_files" },
//!   "repeated": [ { "path" } ],
//!   "errors": [ { "path", "message" } ],
//!   "stats": [ { "tasks", "steals", "leaps", "grows", "shrinks", "exposures", "sleeps", "wakes",
//!                "membarriers" } ],
//!   "tree": [ { "name", "parent", "depth", "kind", "apparent_bytes", "disk_bytes", "entries",
//!               "counted_elsewhere", "error", "modified", "mode", "owner", "group" } ] }
//! ```
//!
//! - `schema`: the version of this shape; a member that is added does not change it.
//! - `version`: the version of the program.
//! - `taken`: when the scan began, in seconds since 1970.
//! - `options`: how it was scanned (`all`: with files) and what of it is shown. `by` is `disk`,
//!   `apparent` or `entries`; `depth` and `top` are null for no limit. `min_size` is absent where
//!   no smaller entries are left out. `no_sizes` is absent where sizes were asked for; otherwise
//!   it is `true`, and all sizes are 0.
//! - `complete`: whether `tree` has every directory, and with `all` every entry: neither `depth`
//!   nor `top` nor `min_size` was given, and the scan was not interrupted.
//! - `totals`, `errors`: of the whole scan, whatever is shown of it.
//! - `shared`: stands only where shared blocks count once (`--shared`). It says how many bytes
//!   count at another file, of how many files, and of how many files the file system does not say.
//!
//! `tree` is a flat list, so that no depth can exhaust its reader: each directory before what is in
//! it, siblings by size and then by name. `parent` is the index of the row of the directory that
//! holds the entry, or null for a given path, whose `name` is that path. `kind` is `directory`,
//! `file`, `symlink` or `other`. `entries` is how many there are below it. `error` stands only
//! where the entry, or a part of a directory, could not be read, and says why. `counted_elsewhere`
//! stands only, as `true`, at a name of a file whose bytes are counted at another of its names: its
//! own are 0. `modified` (seconds since 1970), `mode` (type and permissions, as Unix numbers them),
//! `owner` and `group` stand only where the scan has kept them.
//!
//! `stats` has a row for each worker of the runtime, if the scan has counted them (`poach scan
//! --stats`); otherwise it is not there. `poach_runtime::stats::WorkerStats` says what each number
//! means.
//!
//! **Names are lossless.** Where a `path` or `name` is not valid UTF-8 each sequence of bytes that
//! is none stands as U+FFFD in it, and beside it stands `path_hex` or `name_hex`: all of its bytes,
//! two hexadecimal digits each. Where that member is absent the string itself is exact.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::entries::{Entries, Entry, Order};
use super::name::lossless;
use super::safe::Lines;
use crate::report::{Extent, Measure};
use crate::{Kind, Scan, Shared, Totals};

/// The version of the document's shape. A member that is added does not change it.
pub const SCHEMA: u32 = 1;

/// The members of a document on the scan as a whole.
#[derive(Serialize)]
pub(super) struct Head<'a> {
    schema: u32,
    version: &'static str,
    taken: u64,
    options: Options,
    engine: &'a str,
    threads: usize,
    elapsed_s: f64,
    entries_per_s: f64,
    interrupted: bool,
    complete: bool,
    totals: &'a Totals,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<Shared>,
}

#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is an option of its own")]
struct Options {
    all: bool,
    one_file_system: bool,
    dereference_args: bool,
    by: Measure,
    depth: Option<usize>,
    top: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_size: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    no_sizes: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<u64>,
}

impl<'a> Head<'a> {
    pub(super) fn new(scan: &'a Scan, extent: &Extent) -> Head<'a> {
        let &Extent { measure, depth, top, directories_only, at_least, .. } = extent;
        Head {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            taken: scan.taken,
            options: Options {
                all: scan.options.keep_files && !directories_only,
                one_file_system: scan.options.one_file_system,
                dereference_args: scan.options.follow_paths,
                by: measure,
                depth,
                top,
                min_size: (at_least > 0).then_some(at_least),
                no_sizes: scan.options.without_sizes,
                memory: scan.options.memory,
            },
            engine: scan.engine.name(),
            threads: scan.threads,
            elapsed_s: scan.elapsed.as_secs_f64(),
            entries_per_s: scan.entries_per_second(),
            interrupted: scan.interrupted,
            complete: depth.is_none()
                && top.is_none()
                && at_least == 0
                && !scan.interrupted
                && scan.summed == 0,
            totals: &scan.totals,
            shared: scan.shared,
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    repeated: Vec<Path<'a>>,
    errors: Vec<Error<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Vec<BTreeMap<&'static str, u64>>>,
    #[serde(serialize_with = "tree")]
    tree: RefCell<Entries<'a>>,
}

/// A path in full.
#[derive(Serialize)]
pub(crate) struct Path<'a> {
    path: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
}

impl<'a> Path<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Path<'a> {
        let (path, path_hex) = lossless(bytes);
        Path { path, path_hex }
    }
}

/// A failure.
#[derive(Serialize)]
pub(crate) struct Error<'a> {
    #[serde(flatten)]
    path: Path<'a>,
    message: &'a str,
}

impl<'a> Error<'a> {
    pub(crate) fn new(failure: &'a crate::Failure) -> Error<'a> {
        Error { path: Path::new(&failure.path), message: &failure.message }
    }
}

#[derive(Serialize)]
struct Named<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_hex: Option<String>,
    parent: Option<u64>,
    #[serde(flatten)]
    row: Row<'a>,
}

/// The members of an entry beside its name.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    depth: usize,
    kind: Kind,
    apparent_bytes: u64,
    disk_bytes: u64,
    entries: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    counted_elsewhere: bool,
    /// Whether more lies in it than the document has entries for, for want of memory.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    summed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    facts: Option<Kept>,
}

/// The facts of an entry beside its name and sizes.
#[derive(Serialize)]
struct Kept {
    modified: i64,
    mode: u16,
    owner: u32,
    group: u32,
}

impl<'a> Row<'a> {
    pub(super) fn new(entry: &Entry<'a>) -> Row<'a> {
        Row {
            depth: entry.depth,
            kind: entry.node.kind(),
            apparent_bytes: entry.node.apparent_bytes(),
            disk_bytes: entry.node.disk_bytes(),
            entries: entry.node.entries(),
            counted_elsewhere: entry.node.counts_elsewhere(),
            summed: entry.node.is_summed(),
            error: entry.error,
            facts: entry.node.facts().map(|facts| Kept {
                modified: facts.modified(),
                mode: facts.mode(),
                owner: facts.owner(),
                group: facts.group(),
            }),
        }
    }
}

/// Writes the document, and a newline.
///
/// Time: n log n in the entries of a directory. Memory: what is on the way down to one entry; with
/// `extent.top` what the shown directories hold.
///
/// # Errors
///
/// The writer's own.
pub fn json(scan: &Scan, extent: &Extent, out: &mut impl Write) -> io::Result<()> {
    json_to(scan, extent, out)
}

fn json_to(scan: &Scan, extent: &Extent, mut out: &mut dyn Write) -> io::Result<()> {
    let out = &mut out;
    let document = Document {
        head: Head::new(scan, extent),
        repeated: scan
            .repeated
            .iter()
            .map(|path| Path::new(path.as_os_str().as_encoded_bytes()))
            .collect(),
        errors: scan.errors.iter().map(Error::new).collect(),
        stats: scan
            .stats
            .as_ref()
            .map(|stats| stats.workers().iter().map(|worker| worker.fields().collect()).collect()),
        tree: RefCell::new(Entries::new(scan, extent, Order::Size)),
    };
    let mut json = serde_json::Serializer::with_formatter(&mut *out, Lines::default());
    document.serialize(&mut json)?;
    out.write_all(b"\n")
}

/// Writes the rows one after the other. A document is written once: there are none left after that.
fn tree<S: Serializer>(entries: &RefCell<Entries<'_>>, out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(entries.borrow_mut().by_ref().map(|entry| {
        let (name, name_hex) = lossless(entry.node.name());
        Named { name, name_hex, parent: entry.parent, row: Row::new(&entry) }
    }))
}
