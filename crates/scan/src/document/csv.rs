//! A scan as CSV (RFC 4180): a line of column names, then one record an entry.
//!
//! ```text
//! path,kind,depth,apparent_bytes,disk_bytes,entries,counted_elsewhere,error,path_hex,
//! modified,mode,owner,group                                    (all on one line)
//! ```
//!
//! The columns mean what they mean in [`json`](super::json()); `path` is the whole path,
//! `counted_elsewhere` is `true` or `false`, `error` is empty where there was none, and the last
//! four where they were not kept.
//!
//! **Each record is one line of UTF-8**, as spreadsheets, data frames and line tools expect. So a
//! path that is not UTF-8, or has a control character or an invisible one in it, stands in `path`
//! as it is shown on a terminal ([`escape`]), and `path_hex` has its bytes, two hexadecimal digits
//! each. Where `path_hex` is empty `path` is exact.
//!
//! **No cell is a formula**: a path or an error that a spreadsheet would take for one, by its first
//! character, has a `'` before it, and `path_hex` has the path.
//!
//! Each record has a whole path, so the document is as long as all paths together: of a tree that
//! is one directory in another, its square. [`json`](super::json()) has names alone.
//!
//! Where shared blocks count once (`--shared`) there is a further column, `shared_blocks`, which
//! says `once` in each record: the bytes on disk are fewer than without.
//!
//! An entry of which nothing could be learnt has no record: it is in [`Scan::errors`] alone.

use std::borrow::Cow;
use std::io::{self, Write};

use super::entries::{Entries, Order};
use super::name::hex;
use crate::report::{Extent, escape, is_unfit};
use crate::{Kind, Scan};

const COLUMNS: [&str; 13] = [
    "path",
    "kind",
    "depth",
    "apparent_bytes",
    "disk_bytes",
    "entries",
    "counted_elsewhere",
    "error",
    "path_hex",
    "modified",
    "mode",
    "owner",
    "group",
];

/// Writes the records.
///
/// # Errors
///
/// The writer's own.
pub fn csv(scan: &Scan, extent: &Extent, out: &mut impl Write) -> io::Result<()> {
    csv_to(scan, extent, out)
}

/// Whether a spreadsheet takes a cell for a formula: by its first character, that of full width
/// included.
fn is_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'])
}

/// A cell that is no formula.
fn plain(cell: Cow<'_, str>) -> Cow<'_, str> {
    if is_formula(&cell) { format!("'{cell}").into() } else { cell }
}

fn csv_to(scan: &Scan, extent: &Extent, mut out: &mut dyn Write) -> io::Result<()> {
    let out = &mut out;
    let mut out = ::csv::Writer::from_writer(out);
    let shared = scan.shared.map(|_| ("shared_blocks", "once"));
    out.write_record(COLUMNS.iter().chain(shared.as_ref().map(|(name, _)| name)))?;
    let mut entries = Entries::new(scan, extent, Order::Size);
    while let Some(entry) = entries.next() {
        let node = entry.node;
        let exact = std::str::from_utf8(entries.path())
            .ok()
            .filter(|path| !path.chars().any(|it| it != '\\' && is_unfit(it)) && !is_formula(path));
        let kind = match node.kind() {
            Kind::Directory => "directory",
            Kind::File => "file",
            Kind::Symlink => "symlink",
            Kind::Other => "other",
        };
        let numbers =
            [entry.depth as u64, node.apparent_bytes(), node.disk_bytes(), node.entries()];
        match exact {
            Some(path) => out.write_field(path)?,
            None => out.write_field(&*plain(escape(entries.path())))?,
        }
        out.write_field(kind)?;
        for number in numbers {
            out.write_field(number.to_string())?;
        }
        out.write_field(if node.counts_elsewhere() { "true" } else { "false" })?;
        out.write_field(&*plain(escape(entry.error.unwrap_or_default().as_bytes())))?;
        out.write_field(if exact.is_some() { String::new() } else { hex(entries.path()) })?;
        let facts = node.facts();
        let facts =
            facts.map(|it| [it.modified(), it.mode().into(), it.owner().into(), it.group().into()]);
        for at in 0..4 {
            out.write_field(facts.map_or_else(String::new, |facts| facts[at].to_string()))?;
        }
        if let Some((_, once)) = shared {
            out.write_field(once)?;
        }
        out.write_record(None::<&[u8]>)?;
    }
    out.flush()
}
