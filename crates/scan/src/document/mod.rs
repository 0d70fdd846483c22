//! A finished scan as a document that programs read, written to a writer entry by entry; and two of
//! the formats read back into a [`Scan`].
//!
//! No document is built in memory: what is held beside the tree is the way down to the entry at
//! hand, with the siblings of each level.
//!
//! | format | for | a name that is not UTF-8 |
//! |---|---|---|
//! | [`json`] | programs: one document, the totals before the tree | U+FFFD, and `name_hex` |
//! | [`ndjson`] | programs that read lines: `jq`, log collectors | U+FFFD, and `path_hex` |
//! | [`csv`] | spreadsheets and data frames | as on a terminal, and `path_hex` |
//! | [`ncdu`] | ncdu, and programs that read its exports; read back | its bytes, as in ncdu |
//! | [`ncdu_binary`] | ncdu 2.6 and later, which need not read all of it; read back | its bytes |
//! | [`html`] | people: a page for a browser, with a treemap and a sunburst | as on a terminal |
//! | [`snapshot`] | to be compared later, in a small file; read back | its bytes |
//!
//! Each writer and reader is compiled here, once, and not again for each type of stream.
//!
//! Text in any of the first three holds no control character and none that turns writing around:
//! JSON escapes them, so that a document may be looked at on a terminal.

use std::io::{self, Write};

use crate::Scan;
use crate::report::Extent;

mod csv;
mod entries;
mod html;
mod import;
mod input;
mod json;
mod name;
pub(crate) use name::lossless;
mod ncdu;
mod ndjson;
mod safe;
mod snapshot;

pub use csv::csv;
pub use html::html;
pub use import::{read, read_within};
pub use input::ImportError;
pub(crate) use json::{Error, Path};
pub use json::{SCHEMA, json};
pub(crate) use ncdu::binary::{Blocks, Directory, Entry, circle};
pub use ncdu::{ncdu, ncdu_binary};
pub use ndjson::ndjson;
pub(crate) use safe::Lines;
pub use snapshot::snapshot;

/// A format that a scan can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// [`json`].
    Json,
    /// [`ndjson`].
    Ndjson,
    /// [`csv`].
    Csv,
    /// [`ncdu`].
    Ncdu,
    /// [`ncdu_binary`].
    NcduBinary,
    /// [`snapshot`].
    Snapshot,
    /// [`html`].
    Html,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 7] = [
        Format::Json,
        Format::Ndjson,
        Format::Csv,
        Format::Ncdu,
        Format::NcduBinary,
        Format::Snapshot,
        Format::Html,
    ];

    /// Whether it wants a scan with [`Options::keep_files`](crate::Options::keep_files), and heeds
    /// no limits of the extent: it holds all of it, and a page the largest.
    pub fn is_whole(self) -> bool {
        matches!(self, Format::Ncdu | Format::NcduBinary | Format::Snapshot | Format::Html)
    }

    /// Writes a scan in this format.
    ///
    /// # Errors
    ///
    /// The writer's own; and [`io::ErrorKind::InvalidInput`] if the format [is
    /// whole](Self::is_whole) and the scan has no files.
    pub fn write(self, scan: &Scan, extent: &Extent, out: &mut impl Write) -> io::Result<()> {
        match self {
            Format::Json => json(scan, extent, out),
            Format::Ndjson => ndjson(scan, extent, out),
            Format::Csv => csv(scan, extent, out),
            Format::Ncdu => ncdu(scan, out),
            Format::NcduBinary => ncdu_binary(scan, out),
            Format::Snapshot => snapshot(scan, out),
            Format::Html => html(scan, extent.measure, out),
        }
    }
}

fn needs_files(scan: &Scan) -> io::Result<()> {
    if scan.options.keep_files {
        return Ok(());
    }
    let message = "the scan has kept no files, which this format holds";
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}
