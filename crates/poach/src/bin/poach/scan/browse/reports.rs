//! A report as a tab: its rows, of which those that have a path can be gone to, chosen and deleted.

use poach_scan::report::Look;
use poach_scan::survey::{Cell, Section, text};

use super::state::in_sight;

/// A report that was made.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) section: Section,
    pub(super) marked: usize,
    pub(super) top: usize,
}

impl Page {
    pub(super) fn new(section: Section) -> Page {
        Page { section, marked: 0, top: 0 }
    }

    /// The path of a row, if it is of an entry.
    pub(super) fn path_of(&self, row: usize) -> Option<&[u8]> {
        let path = |cell: &Cell| matches!(cell, Cell::Path(_));
        match self.section.rows.get(row)?.iter().find(|cell| path(cell)) {
            Some(Cell::Path(path)) => Some(path),
            _ => None,
        }
    }

    /// The path of the marked row.
    pub(super) fn path(&self) -> Option<&[u8]> {
        self.path_of(self.marked)
    }

    /// The other paths of the group of equal files that a path is in.
    pub(super) fn twins(&self, path: &[u8]) -> Vec<&[u8]> {
        let rows = &self.section.rows;
        let at = (0..rows.len()).find(|&row| self.path_of(row) == Some(path));
        let Some(group) = at.and_then(|at| rows[at].first()) else { return Vec::new() };
        let same = (0..rows.len()).filter(|&row| rows[row].first() == Some(group));
        same.filter_map(|row| self.path_of(row)).filter(|other| *other != path).collect()
    }

    /// What stands above the rows, a line for each row, and what stands below them, in so many columns.
    pub(super) fn lines(
        &self,
        look: Look,
        width: usize,
    ) -> (Option<String>, Vec<String>, Vec<String>) {
        let look = Look { width, colour: false, ..look };
        let mut out = Vec::new();
        // Writing to a vector cannot fail.
        let _ = text(std::slice::from_ref(&self.section), look, &mut out);
        let out = String::from_utf8_lossy(&out).into_owned();
        // An empty line and the name of the report come first.
        let mut lines = out.lines().skip(2).map(str::to_owned);
        let count = self.section.rows.len();
        let titles = if count > 0 { lines.next() } else { None };
        let rows = lines.by_ref().take(count).collect();
        (titles, rows, lines.collect())
    }

    /// Keeps the equal files whose paths are there still, and the groups that have at least two.
    pub(super) fn retain(&mut self, is_there: impl Fn(&[u8]) -> bool) {
        let keep: Vec<bool> = (0..self.section.rows.len())
            .map(|row| self.path_of(row).is_some_and(&is_there))
            .collect();
        let mut keep = keep.into_iter();
        self.section.rows.retain(|_| keep.next() == Some(true));
        let mut left: Vec<Vec<Cell>> = Vec::new();
        for group in self.section.rows.chunk_by(|a, b| a.first() == b.first()) {
            if group.len() > 1 {
                left.extend_from_slice(group);
            }
        }
        self.section.rows = left;
        self.step(0);
    }

    pub(super) fn step(&mut self, by: isize) {
        let last = self.section.rows.len().saturating_sub(1);
        self.marked = self.marked.saturating_add_signed(by).min(last);
    }

    /// Keeps the marked row in sight, below the line of the titles; with the last one what is said of those that are left out.
    pub(super) fn scroll(&mut self, page: usize) {
        let page = page.saturating_sub(1).max(1);
        let rows = self.section.rows.len();
        let below = usize::from(self.section.left_out > 0 && self.marked + 1 == rows && page > 1);
        self.top = in_sight(self.top, self.marked + below, rows + below, page);
    }

    /// Marks the row at a line of the list. Whether it was marked before; nothing, if no row is there.
    pub(super) fn mark_line(&mut self, line: usize) -> Option<bool> {
        let at = self.top + line.checked_sub(1)?;
        if at >= self.section.rows.len() {
            return None;
        }
        Some(std::mem::replace(&mut self.marked, at) == at)
    }
}
