//! A scan as newline-delimited JSON: one object a line, each of which can be understood by itself.
//!
//! ```text
//! {"type": "scan", ..}    first: the members of the JSON document but for its lists
//! {"type": "error", "path", "message"}
//! {"type": "repeated", "path"}
//! {"type": "entry", "path", "depth", "kind", "apparent_bytes", "disk_bytes", "entries", ..}
//! {"type": "end", "entries"}
//! ```
//!
//! The members mean what they mean in [`json`](super::json()); `path` is the whole path of an
//! entry, and `path_hex` stands beside it where it is not UTF-8. Entries follow each other as in
//! that document. Each line has a whole path, so the document is as long as all paths together: of
//! a tree that is one directory in another, its square. [`json`](super::json()) has names alone.
//! The last line has the number of entries that were written: where it is absent the document was
//! cut.

use std::io::{self, Write};

use serde::Serialize;

use super::entries::{Entries, Order};
use super::json::{Error, Head, Path, Row};
use super::safe::OneLine;
use crate::Scan;
use crate::report::Extent;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Scan(Head<'a>),
    Error(Error<'a>),
    Repeated(Path<'a>),
    Entry {
        #[serde(flatten)]
        path: Path<'a>,
        #[serde(flatten)]
        row: Row<'a>,
    },
    End {
        entries: u64,
    },
}

/// Writes the lines.
///
/// # Errors
///
/// The writer's own.
pub fn ndjson(scan: &Scan, extent: &Extent, out: &mut impl Write) -> io::Result<()> {
    ndjson_to(scan, extent, out)
}

fn ndjson_to(scan: &Scan, extent: &Extent, mut out: &mut dyn Write) -> io::Result<()> {
    let out = &mut out;
    let mut line = |line: &Line<'_>| {
        line.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, OneLine))?;
        out.write_all(b"\n")
    };
    line(&Line::Scan(Head::new(scan, extent)))?;
    scan.errors.iter().try_for_each(|failure| line(&Line::Error(Error::new(failure))))?;
    for path in &scan.repeated {
        line(&Line::Repeated(Path::new(path.as_os_str().as_encoded_bytes())))?;
    }
    let mut entries = Entries::new(scan, extent, Order::Size);
    let mut written = 0;
    while let Some(entry) = entries.next() {
        line(&Line::Entry { path: Path::new(entries.path()), row: Row::new(&entry) })?;
        written += 1;
    }
    line(&Line::End { entries: written })
}
