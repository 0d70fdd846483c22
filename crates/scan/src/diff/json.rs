//! A comparison as one JSON document, with a difference a line.
//!
//! ```text
//! { "schema": 1, "version": "0.1.0", "by": "disk",
//!   "old": { "taken", "interrupted", "totals": {..} }, "new": { the same },
//!   "summary": { "new": { "entries", "amount" }, "gone", "grown", "shrunk" },
//!   "differences": [ { "path", "kind", "depth", "change", "delta",
//!                      "old": { "apparent_bytes", "disk_bytes", "entries" },
//!                      "new": { the same } } ] }
//! ```
//!
//! `change` is `grown`, `shrunk`, `new`, `gone` or `changed`; the first two are by the measure
//! `by`, and `delta` is by how much. `old` is null where it is new, `new` where it is gone.
//! `totals` and names that are not UTF-8 (`path_hex`) are as in the [document of a
//! scan](crate::document::json()). The list is complete. In `summary`, `new` and `gone` count each
//! entry with all that is in it; `grown` and `shrunk` count what is no directory.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::{Change, Diff, Difference, Sum};
use crate::document::{Lines, Path};
use crate::report::Measure;
use crate::{Kind, Node, Scan, Totals};

/// The version of the document's shape. A member that is added does not change it.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    version: &'static str,
    by: Measure,
    old: Side<'a>,
    new: Side<'a>,
    summary: Summary,
    #[serde(serialize_with = "rows")]
    differences: &'a [Difference<'a>],
}

#[derive(Serialize)]
struct Side<'a> {
    taken: u64,
    interrupted: bool,
    totals: &'a Totals,
}

#[derive(Serialize)]
struct Summary {
    new: Sum,
    gone: Sum,
    grown: Sum,
    shrunk: Sum,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    path: Path<'a>,
    kind: Kind,
    depth: usize,
    change: Change,
    delta: i64,
    old: Option<Sizes>,
    new: Option<Sizes>,
}

#[derive(Serialize)]
struct Sizes {
    apparent_bytes: u64,
    disk_bytes: u64,
    entries: u64,
}

impl Sizes {
    fn new(node: Node<'_>) -> Sizes {
        Sizes {
            apparent_bytes: node.apparent_bytes(),
            disk_bytes: node.disk_bytes(),
            entries: node.entries(),
        }
    }
}

/// Writes the document, and a newline.
///
/// # Errors
///
/// The writer's own.
pub fn json(diff: &Diff<'_>, out: &mut impl Write) -> io::Result<()> {
    json_to(diff, out)
}

fn json_to(diff: &Diff<'_>, mut out: &mut dyn Write) -> io::Result<()> {
    let out = &mut out;
    let side = |scan: &'_ Scan| (scan.taken, scan.interrupted);
    let ((old, old_interrupted), (new, new_interrupted)) = (side(diff.old), side(diff.new));
    let document = Document {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        by: diff.measure,
        old: Side { taken: old, interrupted: old_interrupted, totals: &diff.old.totals },
        new: Side { taken: new, interrupted: new_interrupted, totals: &diff.new.totals },
        summary: Summary {
            new: diff.come,
            gone: diff.gone,
            grown: diff.grown,
            shrunk: diff.shrunk,
        },
        differences: &diff.differences,
    };
    let mut json = serde_json::Serializer::with_formatter(&mut *out, Lines::default());
    document.serialize(&mut json)?;
    out.write_all(b"\n")
}

fn rows<S: Serializer>(differences: &[Difference<'_>], out: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeSeq as _;
    let mut list = out.serialize_seq(Some(differences.len()))?;
    for it in differences {
        let path = it.node().path();
        list.serialize_element(&Row {
            path: Path::new(&path),
            kind: it.node().kind(),
            depth: it.depth,
            change: it.change,
            delta: i64::try_from(it.delta).unwrap_or(if it.delta < 0 {
                i64::MIN
            } else {
                i64::MAX
            }),
            old: it.old.map(Sizes::new),
            new: it.new.map(Sizes::new),
        })?;
    }
    list.end()
}
