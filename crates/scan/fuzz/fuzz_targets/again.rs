//! What is read is written in every format, and read again where it can be.

use std::io;

use poach_scan::Totals;
use poach_scan::document::{Format, read};
use poach_scan::report::Extent;

/// Reads a document, which is refused or comes back the same.
pub fn read_and_write(document: &[u8]) {
    let Ok(scan) = read(document) else { return };
    let extent = Extent::default();
    for format in [Format::Json, Format::Ndjson, Format::Csv, Format::Html] {
        format.write(&scan, &extent, &mut io::sink()).expect("a sink can be written to");
    }
    // Of sizes that come to more than a number holds it is not known whose they are.
    let totals = scan.totals;
    if totals.apparent_bytes == u64::MAX || totals.disk_bytes == u64::MAX {
        return;
    }
    for format in [Format::Snapshot, Format::Ncdu, Format::NcduBinary] {
        let mut out = Vec::new();
        format.write(&scan, &extent, &mut out).expect("a vector can be written to");
        let again = read(&out[..]).expect("what is written is read");
        // An export of several paths has a directory above them, and one of errors has those of
        // entries alone.
        let directories = again.totals.directories.min(totals.directories);
        let same = Totals { directories, errors: totals.errors, ..again.totals };
        assert_eq!(same, totals, "{format:?}");
    }
}
