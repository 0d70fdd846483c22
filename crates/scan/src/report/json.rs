//! A scan as one JSON document.
//!
//! ```text
//! { "schema": 1,
//!   "engine": "split", "threads": 2, "elapsed_s": 0.51, "entries_per_s": 1234567.8,
//!   "interrupted": false,
//!   "totals": { "directories", "files", "symlinks", "other", "errors", "apparent_bytes", "disk_bytes" },
//!   "repeated": [ { "path" } ],
//!   "errors": [ { "path", "message" } ],
//!   "tree": [ { "name", "parent", "depth", "kind", "apparent_bytes", "disk_bytes", "entries" } ],
//!   "stats": [ { "tasks", "steals", "leaps", "grows", "shrinks", "exposures", "sleeps", "wakes",
//!                "membarriers" } ] }
//! ```
//!
//! `tree` is a flat list, so that no depth can exhaust whoever reads it: `parent` is the index of the
//! row of the directory that holds the entry, or null for a given path, whose `name` is that path.
//! `kind` is `directory`, `file`, `symlink` or `other`.
//!
//! `stats` has a row for each worker of the runtime, if the scan has counted them (`poach scan --stats`);
//! otherwise it is not there. `poach_runtime::WorkerStats` says what each number means.
//!
//! **Names are lossless.** Where a `path` or `name` is not valid UTF-8 each sequence of bytes that is
//! none stands as U+FFFD in it, and beside it stands `path_hex` or `name_hex`: all of its bytes, two
//! hexadecimal digits each. Where that member is absent the string itself is exact.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use super::{Extent, rows};
use crate::{Kind, Scan, Totals};

/// The version of the document's shape. A member that is added does not change it.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    engine: &'a str,
    threads: usize,
    elapsed_s: f64,
    entries_per_s: f64,
    interrupted: bool,
    totals: &'a Totals,
    repeated: Vec<Path>,
    errors: Vec<Error<'a>>,
    tree: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Vec<BTreeMap<&'static str, u64>>>,
}

#[derive(Serialize)]
struct Path {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
}

#[derive(Serialize)]
struct Error<'a> {
    #[serde(flatten)]
    path: Path,
    message: &'a str,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_hex: Option<String>,
    parent: Option<usize>,
    depth: usize,
    kind: Kind,
    apparent_bytes: u64,
    disk_bytes: u64,
    entries: u64,
}

/// Writes the document, and a newline.
///
/// # Errors
///
/// The writer's own.
pub fn json(scan: &Scan, extent: &Extent, out: &mut impl Write) -> io::Result<()> {
    let path = |bytes: &[u8]| {
        let (path, path_hex) = lossless(bytes);
        Path { path, path_hex }
    };
    let entry = |row: &super::Row<'_>| {
        let (name, name_hex) = lossless(row.node.name());
        Entry {
            name,
            name_hex,
            parent: row.parent,
            depth: row.depth,
            kind: row.node.kind(),
            apparent_bytes: row.node.apparent_bytes(),
            disk_bytes: row.node.disk_bytes(),
            entries: row.node.entries(),
        }
    };
    let document = Document {
        schema: SCHEMA,
        engine: scan.engine.name(),
        threads: scan.threads,
        elapsed_s: scan.elapsed.as_secs_f64(),
        entries_per_s: scan.entries_per_second(),
        interrupted: scan.interrupted,
        totals: &scan.totals,
        repeated: scan.repeated.iter().map(|it| path(it.as_os_str().as_encoded_bytes())).collect(),
        errors: scan
            .errors
            .iter()
            .map(|failure| Error { path: path(&failure.path), message: &failure.message })
            .collect(),
        tree: rows(scan, extent).iter().map(entry).collect(),
        stats: scan
            .stats
            .as_ref()
            .map(|stats| stats.workers().iter().map(|worker| worker.fields().collect()).collect()),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

/// A name, and its bytes in hexadecimal if the name alone does not tell them.
fn lossless(name: &[u8]) -> (String, Option<String>) {
    if let Ok(name) = std::str::from_utf8(name) {
        return (name.to_owned(), None);
    }
    let mut hex = String::with_capacity(name.len() * 2);
    for byte in name {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    (String::from_utf8_lossy(name).into_owned(), Some(hex))
}
