//! The largest entries as a tree: a line each with its size, its share, a bar and its name.
//!
//! Lines are drawn for a few levels. What lies deeper stands at the last of them, and its name is
//! the path from there, so that no depth outgrows the terminal.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{AMISS, BAR, DIRECTORY, FAINT, FIGURE, Look};
use crate::report::{Extent, Hidden, Measure, Row, count, cut, escape, rows, width};
use crate::{Kind, Scan};

/// The most levels whose lines are drawn.
const DRAWN: usize = 12;

/// The columns that one level takes.
const LEVEL: usize = 3;

/// The columns that are left to a name and a note beside it, whatever the level.
const NAMED: usize = 17;

/// The fewest columns of a terminal that leave room for a bar.
const WITH_BAR: usize = 60;

/// The columns of a deep entry's path that are shown where lines have no limit.
const PREFIX: usize = 60;

/// The first number of entries that is tried where only the terminal's height is a limit.
const TRIED: usize = 1000;

/// A line of the tree.
enum Line<'r, 't> {
    Entry(&'r Row<'t>),
    /// The entries directly in a row's directory.
    Files(&'r Row<'t>, Hidden),
    /// What is left out of a row's directory, or of the given paths.
    More(Option<&'r Row<'t>>, Hidden),
    Total,
}

/// Writes the tree and an empty line, if there is anything to show. `below` is how many lines
/// follow.
pub(super) fn write(
    scan: &Scan,
    extent: &Extent,
    look: Look,
    below: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out)?;
    let mut extent = *extent;
    // An empty line above, one below, and the one that the shell's prompt takes.
    let room = look.height.map(|height| height.saturating_sub(below + 3).max(1));
    let fitted = room.filter(|_| extent.top.is_none());
    if let Some(room) = fitted {
        extent.top = Some(room.min(TRIED));
    }
    loop {
        let (rows, left_out) = rows(scan, &extent);
        if rows.is_empty() {
            return Ok(());
        }
        let files: Vec<Option<Hidden>> =
            rows.iter().map(|row| own_files(row, &extent).filter(|_| look.own_files)).collect();
        let lines = lines(&rows, &files, left_out);
        match (extent.top, fitted) {
            (Some(top), Some(room)) if lines.len() > room && top > 0 => {
                extent.top = Some(top - (lines.len() - room).min(top).div_ceil(2));
            }
            _ => {
                Painter::new(scan, &rows, &files, extent.measure, look).write(&lines, out)?;
                return writeln!(out);
            }
        }
    }
}

/// What lies in a directory itself, and not in its subdirectories, where those could be shown. The
/// directory's own size is part of it.
fn own_files(row: &Row<'_>, extent: &Extent) -> Option<Hidden> {
    if extent.depth.is_some_and(|limit| row.depth >= limit) {
        return None;
    }
    let (node, measure) = (row.node, extent.measure);
    let mut entries = node.entries();
    let mut value = measure.of(&node);
    node.directories().next()?;
    for below in node.directories() {
        entries = entries.saturating_sub(below.entries() + 1);
        value = value.saturating_sub(measure.of(&below));
    }
    let value = if measure == Measure::Entries { entries } else { value };
    (entries > 0)
        .then_some(Hidden { entries: usize::try_from(entries).unwrap_or(usize::MAX), value })
}

/// The rows, and after the last of each directory a line for what lies in it itself, and one for
/// what is left out there.
fn lines<'r, 't>(
    rows: &'r [Row<'t>],
    files: &[Option<Hidden>],
    left_out: Hidden,
) -> Vec<Line<'r, 't>> {
    let mut lines = Vec::with_capacity(rows.len() + 2);
    let mut open: Vec<(usize, &'r Row<'t>)> = Vec::new();
    let close =
        |open: &mut Vec<(usize, &'r Row<'t>)>, depth: usize, lines: &mut Vec<Line<'r, 't>>| {
            while let Some(&(at, row)) = open.last().filter(|(_, row)| row.depth >= depth) {
                open.pop();
                lines.extend(files[at].map(|files| Line::Files(row, files)));
                if row.hidden.entries > 0 {
                    lines.push(Line::More(Some(row), row.hidden));
                }
            }
        };
    let mut roots = 0;
    for (at, row) in rows.iter().enumerate() {
        close(&mut open, row.depth, &mut lines);
        lines.push(Line::Entry(row));
        open.push((at, row));
        roots += usize::from(row.depth == 0);
    }
    close(&mut open, 0, &mut lines);
    if left_out.entries > 0 {
        lines.push(Line::More(None, left_out));
    }
    if roots + left_out.entries > 1 {
        lines.push(Line::Total);
    }
    lines
}

struct Painter<'r, 't> {
    rows: &'r [Row<'t>],
    /// What lies in the directory of each row itself, where that has a line.
    files: &'r [Option<Hidden>],
    measure: Measure,
    look: Look,
    /// The whole that the shares refer to.
    whole: u64,
    roots: usize,
    /// The columns of a size.
    figure: usize,
}

impl<'r, 't> Painter<'r, 't> {
    fn new(
        scan: &Scan,
        rows: &'r [Row<'t>],
        files: &'r [Option<Hidden>],
        measure: Measure,
        look: Look,
    ) -> Self {
        let values = scan.tree.roots().map(|node| measure.of(&node));
        let (roots, whole) =
            values.fold((0, 0_u64), |(roots, sum), value| (roots + 1, sum.saturating_add(value)));
        let least = if look.columns() < WITH_BAR { 8 } else { 10 };
        let figure = look.amount(measure, whole).len().max(least);
        Painter { rows, files, measure, look, whole, roots, figure }
    }

    fn write(&self, lines: &[Line<'_, '_>], out: &mut impl Write) -> io::Result<()> {
        // For each level above the row at hand, whether a line runs on there.
        let mut runs: Vec<bool> = Vec::new();
        for line in lines {
            match *line {
                Line::Entry(row) => {
                    runs.truncate(row.depth.saturating_sub(1));
                    let above = row.parent.map(|parent| &self.rows[parent]);
                    let follows =
                        |at: usize| self.rows[at].hidden.entries > 0 || self.files[at].is_some();
                    let last = row.last && !row.parent.is_some_and(follows);
                    let ruled = above.map_or(row.value, |above| above.value);
                    self.figures(row.value, ruled, out)?;
                    writeln!(out, "{}", self.entry(row, &runs, last))?;
                    if row.depth > 0 {
                        runs.push(!last);
                    }
                }
                Line::Files(row, files) => {
                    runs.truncate(row.depth);
                    self.figures(files.value, row.value, out)?;
                    let branch = self.branch(&runs, row.depth + 1, row.hidden.entries == 0);
                    let path = if self.look.full_paths {
                        format!("{} ", escape(&row.node.path()))
                    } else {
                        String::new()
                    };
                    let text = format!("{branch}{path}(files) {}", count(files.entries as u64));
                    writeln!(out, "{}", self.look.paint(FAINT, &cut(&text, self.room())))?;
                }
                Line::More(row, hidden) => {
                    let depth = row.map_or(0, |row| row.depth + 1);
                    runs.truncate(depth.saturating_sub(1));
                    self.figures(hidden.value, row.map_or(hidden.value, |row| row.value), out)?;
                    let branch = self.branch(&runs, depth, true);
                    let text = format!("{branch}{} more", count(hidden.entries as u64));
                    writeln!(out, "{}", self.look.paint(FAINT, &cut(&text, self.room())))?;
                }
                Line::Total => {
                    self.figures(self.whole, self.whole, out)?;
                    let text = format!("total of {} paths", count(self.roots as u64));
                    writeln!(out, "{}", cut(&text, self.room()))?;
                }
            }
        }
        Ok(())
    }

    /// The columns before the name: a size, its share of the whole and, where there is room, a bar,
    /// which is drawn on to the share of the directory that the entry is in.
    fn figures(&self, value: u64, above: u64, out: &mut impl Write) -> io::Result<()> {
        let look = self.look;
        let figure = look.amount(self.measure, value);
        let share = |value| share(value, self.whole);
        if look.columns() < WITH_BAR {
            let percent = format!("{:.0}%", share(value) * 100.0);
            let figure = look.paint(FIGURE, &format!("{figure:>columns$}", columns = self.figure));
            return write!(out, "{figure} {} ", look.paint(FAINT, &format!("{percent:>4}")));
        }
        let percent = format!("{:.1}%", share(value) * 100.0);
        let figure = look.paint(FIGURE, &format!("{figure:>columns$}", columns = self.figure));
        let percent = look.paint(FAINT, &format!("{percent:>6}"));
        write!(out, "  {figure}  {percent}  {}  ", bar(share(value), share(above), look))
    }

    /// The columns after the figures.
    fn room(&self) -> usize {
        let beside = if self.look.columns() < WITH_BAR { 6 } else { 14 + bar_columns(self.look) };
        self.look.columns().saturating_sub(self.figure + beside)
    }

    /// How many levels are drawn: not more than half of the room, and a name and a note have
    /// theirs.
    fn drawn(&self) -> usize {
        let room = self.room();
        DRAWN.min((room / 2).min(room.saturating_sub(NAMED)) / LEVEL)
    }

    fn branch(&self, runs: &[bool], depth: usize, last: bool) -> String {
        if depth == 0 || self.look.full_paths {
            return String::new();
        }
        let levels = runs.iter().take(self.drawn().saturating_sub(1));
        let mut branch: String = levels.map(|&runs| if runs { "│  " } else { "   " }).collect();
        branch.push_str(if last { "└─ " } else { "├─ " });
        branch
    }

    fn entry(&self, row: &Row<'_>, runs: &[bool], last: bool) -> String {
        let look = self.look;
        let branch = self.branch(runs, row.depth, last);
        let (note, style) = note(row);
        let noted = if note.is_empty() { 0 } else { width(note) + 1 };
        let room = self.room().saturating_sub(width(&branch) + noted).max(4);
        let mark = mark(row);
        let room = room - width(mark);
        let (name, prefix) = if look.full_paths {
            (cut(&escape(&row.node.path()), room), String::new())
        } else {
            let name = cut(&escape(row.node.name()), room);
            let prefix = self.prefix(row, room.saturating_sub(width(&name)));
            (name, prefix)
        };
        let name = match row.node.kind() {
            Kind::Directory => look.paint(DIRECTORY, &name),
            _ => name,
        };
        let note =
            if note.is_empty() { note.into() } else { format!(" {}", look.paint(style, note)) };
        format!("{}{}{name}{mark}{note}", look.paint(FAINT, &branch), look.paint(FAINT, &prefix))
    }

    /// The end of the path from the last level that is drawn to an entry below it, in some columns.
    fn prefix(&self, row: &Row<'_>, columns: usize) -> String {
        let (columns, drawn) = (columns.min(PREFIX), self.drawn().max(1));
        let mut names: Vec<Cow<'_, str>> = Vec::new();
        let (mut used, mut above) = (0, row.parent);
        while let Some(parent) = above.map(|at| &self.rows[at]).filter(|it| it.depth >= drawn) {
            let name = escape(parent.node.name());
            used += width(&name) + 1;
            if used + 2 > columns {
                // What is left out has room for its sign, unless there is hardly room for anything.
                names.push("…".into());
                break;
            }
            names.push(name);
            above = parent.parent;
        }
        let parts = names.iter().rev().flat_map(|name| name.chars().chain([SEPARATOR]));
        let whole: String = parts.collect();
        if width(&whole) > columns { String::new() } else { whole }
    }
}

const SEPARATOR: char = std::path::MAIN_SEPARATOR;

/// What a kind looks like without colour, as `ls -F` has it.
fn mark(row: &Row<'_>) -> &'static str {
    match row.node.kind() {
        Kind::Directory if row.node.name().ends_with(&[SEPARATOR as u8]) => "",
        Kind::Directory if cfg!(windows) => "\\",
        Kind::Directory => "/",
        Kind::File => "",
        Kind::Symlink => "@",
        Kind::Other => "=",
    }
}

/// What is to be said of an entry beside its name.
fn note(row: &Row<'_>) -> (&'static str, anstyle::Style) {
    if row.node.is_unread() {
        ("(unreadable)", AMISS)
    } else if row.node.is_summed() {
        ("(summed up)", FAINT)
    } else if row.node.counts_elsewhere() {
        ("(hard link)", FAINT)
    } else {
        ("", FAINT)
    }
}

fn share(value: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { value as f64 / whole as f64 }
}

fn bar_columns(look: Look) -> usize {
    (look.columns().clamp(40, 120) - 40) / 3 + 4
}

/// A bar to the eighth of a column.
fn bar(share: f64, above: f64, look: Look) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let width = bar_columns(look);
    let eighths = ((share * width as f64 * 8.0).round() as usize).min(width * 8);
    let mut filled = "█".repeat(eighths / 8);
    filled.push_str(EIGHTHS[eighths % 8]);
    let filled_columns = eighths.div_ceil(8);
    let columns = ((above * width as f64).ceil() as usize).clamp(filled_columns, width);
    let rest = "░".repeat(columns - filled_columns);
    let blank = " ".repeat(width - columns);
    format!("{}{}{blank}", look.paint(BAR, &filled), look.paint(FAINT, &rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_its_columns_whatever_the_share() {
        let look = Look { width: 80, ..Look::default() };
        for (share, above) in [(0.0, 0.0), (0.001, 1.0), (0.5, 0.7), (1.0, 1.0), (0.33, 0.33)] {
            assert_eq!(width(&bar(share, above, look)), bar_columns(look), "{share} of {above}");
        }
    }
}
