//! A finished report: rows of cells, as text for people and as JSON for programs.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap as _, SerializeStruct as _, Serializer};

use super::{Report, Told};
use crate::document::{Error, Lines, lossless};
use crate::duplicates::{self, Made};
use crate::report::{self, Fit, Look, count, cut, escape};

/// A finished report.
#[derive(Clone, Debug)]
pub struct Section {
    /// The report that it is.
    pub report: Report,
    /// What its columns are.
    pub columns: &'static [Column],
    /// A cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// How many rows there would be beside these.
    pub left_out: u64,
    /// Bytes on disk and lengths of all that the report is of, those left out included, if it adds
    /// them up; of duplicates, what is freed.
    pub totals: Option<[Cell; 2]>,
    /// Of duplicates: how many files can go.
    pub(super) files: u64,
}

/// A column of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name for programs.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Whether its cells begin at the same column; others end at one.
    left: bool,
}

/// What stands in a row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cell {
    /// Nothing to say.
    None,
    /// A number of things.
    Count(u64),
    /// A number of bytes.
    Bytes(u64),
    /// A mean.
    Number(f64),
    /// A time in seconds since 1970.
    Time(i64),
    /// Words.
    Text(Cow<'static, str>),
    /// The bytes of a path.
    Path(Vec<u8>),
}

impl Column {
    pub(super) const fn count(name: &'static str, title: &'static str) -> Column {
        Column { name, title, left: false }
    }

    pub(super) const fn text(name: &'static str, title: &'static str) -> Column {
        Column { name, title, left: true }
    }

    pub(super) const fn path(name: &'static str, title: &'static str) -> Column {
        Column::text(name, title)
    }

    pub(super) const fn any(name: &'static str, title: &'static str) -> Column {
        Column::count(name, title)
    }
}

pub(super) const DISK: Column = Column::count("disk_bytes", "on disk");
pub(super) const APPARENT: Column = Column::count("apparent_bytes", "apparent");
pub(super) const ENTRIES: Column = Column::count("entries", "entries");
pub(super) const FILES: Column = Column::count("files", "files");
pub(super) const MODIFIED: Column = Column::text("modified", "changed (UTC)");
pub(super) const PATH: Column = Column::path("path", "path");

impl Section {
    /// A report of which nothing is left out.
    pub(super) fn complete(
        report: Report,
        columns: &'static [Column],
        rows: Vec<Vec<Cell>>,
    ) -> Section {
        Section { report, columns, rows, left_out: 0, totals: None, files: 0 }
    }
}

impl Cell {
    fn shown(&self, look: Look) -> Cow<'_, str> {
        match self {
            Cell::None => "".into(),
            Cell::Count(number) => count(*number).into(),
            Cell::Bytes(number) => look.bytes(*number).into(),
            Cell::Number(number) => format!("{number:.2}").into(),
            Cell::Time(seconds) => time(*seconds).into(),
            Cell::Text(text) => escape(text.as_bytes()),
            Cell::Path(path) => escape(path),
        }
    }
}

/// A time in UTC, to the minute, as `2026-11-22 18:40`; its seconds where no calendar holds it.
pub fn time(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => format!("{seconds} s"),
    }
}

/// Writes reports as tables, one after another. Times are in UTC.
///
/// # Errors
///
/// The writer's own.
pub fn text(sections: &[Section], look: Look, out: &mut impl Write) -> io::Result<()> {
    text_to(sections, look, out)
}

fn text_to(sections: &[Section], look: Look, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut Fit::new(out, look.width);
    for section in sections {
        section.write(look, out)?;
    }
    Ok(())
}

/// Writes reports as [`text`] does, as they are told: groups of equal files each by itself, in the
/// place of their table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text {
    look: Look,
    /// Whether a group was written, so that the report on duplicates has its title.
    begun: bool,
}

impl Text {
    /// Nothing has been written yet.
    pub fn new(look: Look) -> Text {
        Text { look, begun: false }
    }

    /// Writes what was told.
    ///
    /// # Errors
    ///
    /// The writer's own.
    pub fn write(&mut self, told: Told<'_>, out: &mut impl Write) -> io::Result<()> {
        self.write_to(told, out)
    }

    fn write_to(&mut self, told: Told<'_>, out: &mut dyn Write) -> io::Result<()> {
        let look = self.look;
        let out = &mut Fit::new(out, look.width);
        match told {
            Told::Section(section) if section.report != Report::Duplicates => {
                return section.write(look, out);
            }
            _ if !self.begun => writeln!(out, "\n{}", look.strong(Report::Duplicates.name()))?,
            _ => {}
        }
        self.begun = true;
        match told {
            Told::Group(group) => duplicates::write(group, look, out),
            Told::Section(section) => section.write_freed(look, out),
        }
    }
}

impl Section {
    fn write(&self, look: Look, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "\n{}", look.strong(self.report.name()))?;
        let shown: Vec<Vec<Cow<'_, str>>> =
            self.rows.iter().map(|row| row.iter().map(|it| it.shown(look)).collect()).collect();
        let widths = self.widths(&shown, look);
        let titles: Vec<Cow<'_, str>> =
            self.columns.iter().map(|column| column.title.into()).collect();
        if !self.rows.is_empty() {
            writeln!(out, "{}", look.faint(&self.line(&titles, &widths)))?;
        }
        for row in &shown {
            writeln!(out, "{}", self.line(row, &widths))?;
        }
        if self.rows.is_empty() && self.left_out == 0 {
            writeln!(out, "  {}", look.faint("nothing"))?;
        }
        if self.left_out > 0 {
            let mut more = format!("  {} more", count(self.left_out));
            if let Some([disk, _]) = &self.totals {
                // Writing to a string cannot fail.
                let _ = write!(more, "; {} in all", disk.shown(look));
            }
            writeln!(out, "{}", look.faint(&more))?;
        }
        Ok(())
    }

    /// The end of the report on duplicates: what can go.
    fn write_freed(&self, look: Look, out: &mut impl Write) -> io::Result<()> {
        if self.files == 0 {
            return writeln!(out, "  {}", look.faint("nothing"));
        }
        let files = if self.files == 1 { "file" } else { "files" };
        let freed = self.totals.as_ref().map_or("".into(), |[disk, _]| disk.shown(look));
        let mut end = format!("{freed} freed if {} {files} went", count(self.files));
        if self.left_out > 0 {
            // Writing to a string cannot fail.
            let _ = write!(end, "; {} more groups", count(self.left_out));
        }
        writeln!(out, "\n  {}", look.faint(&end))
    }

    /// How wide each column is: the widest are made narrower until all fit.
    fn widths(&self, shown: &[Vec<Cow<'_, str>>], look: Look) -> Vec<usize> {
        const GAP: usize = 2;
        const NARROWEST: usize = 4;
        let width = |(at, column): (usize, &Column)| {
            let cells = shown.iter().map(|row| report::width(&row[at]));
            cells.max().unwrap_or(0).max(column.title.len())
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(width).collect();
        let mut excess =
            widths.iter().map(|width| width + GAP).sum::<usize>().saturating_sub(look.columns());
        while excess > 0 {
            let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > NARROWEST) else {
                break;
            };
            (*widest, excess) = (*widest - 1, excess - 1);
        }
        widths
    }

    /// Cells side by side.
    fn line(&self, cells: &[Cow<'_, str>], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, &width), column) in cells.iter().zip(widths).zip(self.columns) {
            let cell = cut(cell, width);
            let gap = " ".repeat(width - report::width(&cell));
            line.extend(if column.left { ["  ", &cell, &gap] } else { ["  ", &gap, &cell] });
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The version of the document that [`json`] writes.
const SCHEMA: u32 = 1;

/// Writes reports as one JSON document, and a newline:
/// `{"schema": 1, "interrupted": false, "errors": [{"path": "a", "message": "why"}], "reports":
/// {"largest-files": {"rows": [{"disk_bytes": 1, ..}], "left_out": 0}, ..}}`. A path that is not
/// UTF-8 has its bytes beside it, in hexadecimal, as `path_hex`. `made` has all errors, of the walk
/// and of the comparison, and says whether either was interrupted.
///
/// # Errors
///
/// The writer's own.
pub fn json(sections: &[Section], made: &Made, out: &mut impl Write) -> io::Result<()> {
    json_to(sections, made, out)
}

fn json_to(sections: &[Section], made: &Made, mut out: &mut dyn Write) -> io::Result<()> {
    struct Reports<'a>(&'a [Section]);
    impl Serialize for Reports<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|section| (section.report.name(), section)))
        }
    }
    #[derive(serde::Serialize)]
    struct Document<'a> {
        schema: u32,
        interrupted: bool,
        errors: Vec<Error<'a>>,
        reports: Reports<'a>,
    }
    let out = &mut out;
    let document = Document {
        schema: SCHEMA,
        interrupted: made.interrupted,
        errors: made.errors.iter().map(Error::new).collect(),
        reports: Reports(sections),
    };
    // Down to the rows of a report, a line each.
    let mut json = serde_json::Serializer::with_formatter(&mut *out, Lines::apart(4));
    document.serialize(&mut json)?;
    out.write_all(b"\n")
}

/// Its rows, and how many more there are.
impl Serialize for Section {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows: Vec<_> =
            self.rows.iter().map(|cells| Row { columns: self.columns, cells }).collect();
        let mut section = serializer.serialize_struct("Section", 2)?;
        section.serialize_field("rows", &rows)?;
        section.serialize_field("left_out", &self.left_out)?;
        section.end()
    }
}

struct Row<'a> {
    columns: &'a [Column],
    cells: &'a [Cell],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_map(None)?;
        for (column, cell) in self.columns.iter().zip(self.cells) {
            let name = column.name;
            match cell {
                Cell::None => row.serialize_entry(name, &()),
                Cell::Count(number) | Cell::Bytes(number) => row.serialize_entry(name, number),
                Cell::Number(number) => row.serialize_entry(name, number),
                Cell::Time(seconds) => row.serialize_entry(name, seconds),
                Cell::Text(text) => row.serialize_entry(name, text),
                Cell::Path(path) => {
                    let (text, hex) = lossless(path);
                    if let Some(hex) = hex {
                        row.serialize_entry(&format!("{name}_hex"), &hex)?;
                    }
                    row.serialize_entry(name, &text)
                }
            }?;
        }
        row.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_and_what_is_none_is_shown_all_the_same() {
        assert_eq!(time(0), "1970-01-01 00:00");
        assert_eq!(time(-1), "1969-12-31 23:59");
        assert_eq!(time(i64::MAX), format!("{} s", i64::MAX));
    }

    #[test]
    fn a_table_fits_and_its_numbers_end_at_one_column() {
        let row = |number, path: &str| vec![Cell::Bytes(number), Cell::Path(path.into())];
        let rows = vec![row(1, "a"), row(1 << 30, &"long/".repeat(30))];
        let section =
            Section { left_out: 3, ..Section::complete(Report::LargestFiles, &[DISK, PATH], rows) };
        let mut out = Vec::new();
        text(&[section], Look { width: 40, ..Look::default() }, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[1..4], ["largest-files", "   on disk  path", "       1 B  a"]);
        assert!(
            lines.iter().all(|line| report::width(line) <= 40) && lines[4].contains('…'),
            "{out}"
        );
        assert_eq!(lines[5], "  3 more");
    }
}
