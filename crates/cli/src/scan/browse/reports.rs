//! A report as a tab. The rows that have a path can be gone to, chosen and deleted.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use poach_scan::Scan;
use poach_scan::duplicates::{Group, Made};
use poach_scan::report::{Look, Measure, count, cut, escape};
use poach_scan::survey::{Cell, Section, text};

use super::names::{Names, Roots};
use super::state::in_sight;

/// A report that was made.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) section: Section,
    pub(super) marked: usize,
    pub(super) top: usize,
    /// Of duplicates.
    equal: Option<Equal>,
}

/// What a report on duplicates is of.
#[derive(Debug)]
struct Equal {
    /// All groups, those without rows, too.
    groups: Vec<Group>,
    /// How many of them have rows.
    limit: Option<usize>,
    measure: Measure,
    made: Made,
    /// The copies that have other names (hard links), by path.
    linked: HashSet<Vec<u8>>,
}

impl Page {
    pub(super) fn new(section: Section) -> Page {
        Page { section, marked: 0, top: 0, equal: None }
    }

    /// The report on equal files, with the number of groups that have rows.
    pub(super) fn of_groups(
        scan: &Scan,
        mut groups: Vec<Group>,
        limit: Option<usize>,
        measure: Measure,
        made: Made,
    ) -> Page {
        let section = Section::of_groups(&mut groups, limit);
        let copies = groups.iter().flat_map(|group| &group.copies).map(|copy| &copy.path);
        let roots = Roots::of(scan);
        let split = |path: &[u8]| roots.split(path).map(|(_, names)| names);
        let ways: Vec<(Names, &Vec<u8>)> =
            copies.map(|path| (split(path).unwrap_or_default(), path)).collect();
        let nodes = scan.tree.find_each(ways.iter().map(|(names, _)| &names[..]));
        let linked =
            ways.iter().zip(nodes).filter(|(_, node)| node.is_some_and(|it| it.link().is_some()));
        let linked = linked.map(|((_, path), _)| (*path).clone()).collect();
        let equal = Some(Equal { groups, limit, measure, made, linked });
        Page { equal, ..Page::new(section) }
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

    /// The rows of the group of equal files that each path is in.
    pub(super) fn groups(&self) -> HashMap<&[u8], Range<usize>> {
        let (mut groups, mut first) = (HashMap::new(), 0);
        for group in self.section.rows.chunk_by(|a, b| a.first() == b.first()) {
            let rows = first..first + group.len();
            first = rows.end;
            groups.extend(rows.clone().filter_map(|row| Some((self.path_of(row)?, rows.clone()))));
        }
        groups
    }

    /// The lines above the rows, a line for each row, and the lines below them, cut to the width.
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
        (titles, rows, lines.chain(self.amiss().map(|line| cut(&line, width))).collect())
    }

    /// The files that may be equal and were not compared.
    fn amiss(&self) -> impl Iterator<Item = String> {
        let made = self.equal.as_ref().map(|equal| &equal.made);
        let interrupted = made.is_some_and(|made| made.interrupted);
        let stopped = interrupted.then(|| "  stopped: not every file was compared".to_owned());
        let failed = made.and_then(|made| {
            let first = made.errors.first()?;
            let number = made.errors.len() as u64;
            let files = if number == 1 { "file is" } else { "files are" };
            let (path, message) = (escape(&first.path), &first.message);
            Some(format!("  {} {files} not compared, such as {path}: {message}", count(number)))
        });
        stopped.into_iter().chain(failed)
    }

    /// Keeps the equal files that are still there, and the groups that have at least two. Returns
    /// whether the groups are complete: a file that has lost the name by which it was listed may
    /// have another name.
    pub(super) fn retain(&mut self, scan: &Scan) -> bool {
        let Some(equal) = &mut self.equal else { return false };
        let roots = Roots::of(scan);
        let split = |path: &[u8]| roots.split(path).map(|(_, names)| names);
        let copies = equal.groups.iter().flat_map(|group| &group.copies);
        let ways: Vec<Names> = copies.filter_map(|copy| split(&copy.path)).collect();
        let nodes = scan.tree.find_each(ways.iter().map(Vec::as_slice));
        let there: HashSet<&Names> =
            ways.iter().zip(nodes).filter_map(|(names, node)| node.map(|_| names)).collect();
        let is_there = |path: &[u8]| split(path).is_some_and(|names| there.contains(&names));
        let mut is_all = true;
        let groups = std::mem::take(&mut equal.groups).into_iter().filter_map(|group| {
            let (stay, gone): (Vec<_>, Vec<_>) =
                group.copies.into_iter().partition(|copy| is_there(&copy.path));
            is_all &= !gone.iter().any(|copy| equal.linked.contains(&copy.path));
            (stay.len() > 1).then(|| Group::new(group.apparent_bytes, stay, equal.measure))
        });
        equal.groups = groups.collect();
        equal.made.errors.retain(|error| roots.names_of(&error.path).is_some());
        self.section = Section::of_groups(&mut equal.groups, equal.limit);
        self.step(0);
        is_all
    }

    /// Measures equal files by another measure. Returns whether the report is then right; any other
    /// report is made again.
    pub(super) fn measure_by(&mut self, scan: &Scan, measure: Measure) -> bool {
        if let Some(equal) = &mut self.equal {
            equal.measure = measure;
        }
        self.retain(scan)
    }

    pub(super) fn step(&mut self, by: isize) {
        let last = self.section.rows.len().saturating_sub(1);
        self.marked = self.marked.saturating_add_signed(by).min(last);
    }

    /// Keeps the marked row in sight, below the line of the titles. With the last row, the line on
    /// the rows left out is in sight, too.
    pub(super) fn scroll(&mut self, page: usize) {
        let page = page.saturating_sub(1).max(1);
        let rows = self.section.rows.len();
        let said = usize::from(self.section.left_out > 0) + self.amiss().count();
        let below = if self.marked + 1 >= rows { said.min(page - 1) } else { 0 };
        self.top = in_sight(self.top, self.marked + below, rows + below, page);
    }

    /// Marks the row at a line of the list. Returns whether it was marked before; nothing, if no
    /// row is there.
    pub(super) fn mark_line(&mut self, line: usize) -> Option<bool> {
        let at = self.top + line.checked_sub(1)?;
        if at >= self.section.rows.len() {
            return None;
        }
        Some(std::mem::replace(&mut self.marked, at) == at)
    }
}
