//! Counts and bytes of the whole, and what could not be read.

use super::section::PATH;
use super::{Cell, Column, Report, Section, Sources};

pub(super) fn summary(sources: &Sources<'_>) -> Section {
    const COLUMNS: &[Column] = &[Column::text("name", "what"), Column::any("value", "value")];
    let (scan, totals) = (sources.scan, &sources.scan.totals);
    let rows = [
        ("entries", Cell::Count(totals.entries())),
        ("directories", Cell::Count(totals.directories)),
        ("files", Cell::Count(totals.files)),
        ("symlinks", Cell::Count(totals.symlinks)),
        ("other", Cell::Count(totals.other)),
        ("errors", Cell::Count(totals.errors)),
        ("on disk", Cell::Bytes(totals.disk_bytes)),
        ("apparent", Cell::Bytes(totals.apparent_bytes)),
        ("seconds", Cell::Number(scan.elapsed.as_secs_f64())),
        ("entries a second", Cell::Count(scan.entries_per_second() as u64)),
    ];
    let rows = rows.into_iter().map(|(name, cell)| vec![Cell::Text(name.into()), cell]).collect();
    Section::complete(Report::Summary, COLUMNS, rows)
}

/// All of them, whatever the limit: what is wrong is not left out.
pub(super) fn errors(sources: &Sources<'_>) -> Section {
    const COLUMNS: &[Column] = &[PATH, Column::text("message", "message")];
    let row = |failure: &crate::Failure| {
        vec![Cell::Path(failure.path.clone()), Cell::Text(failure.message.clone().into())]
    };
    let rows = sources.scan.errors.iter().map(row).collect();
    Section::complete(Report::Errors, COLUMNS, rows)
}
