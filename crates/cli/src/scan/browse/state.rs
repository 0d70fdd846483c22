//! The browser's state: the current directory, the rows that are shown, and the effects of keys.

use std::borrow::Cow;
use std::collections::BTreeSet;

use poach_scan::listing::{self, Growing, Row, Stored, Sums};
use poach_scan::report::{Measure, Order};
use poach_scan::survey::Report;
use poach_scan::{Control, Failure, Kind, Node, NodeId, Scan};

use super::act::Act;
use super::lines::Lines;
use super::names::{Names, Roots, joined, names_of};
use super::reports::Page;

mod press;

/// The actions outside of the browser that a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    None,
    Quit,
    /// Walk again.
    Rescan,
    /// Walk the marked directory again, or the current directory.
    Renew,
    /// List what would be deleted or moved.
    Plan(Act),
    /// Do what was planned.
    Carry,
    /// Bring back what was moved to the trash last.
    Undo,
    /// Open the marked row with what the desktop has for it.
    Open,
    /// Copy its path.
    Copy,
    /// Show what is in it.
    View,
    /// A shell in the directory that is shown.
    Shell,
    /// Search the whole tree for what was typed.
    Find,
    /// Leave the terminal to the shell that the browser was started from.
    Suspend,
    /// Draw all of it again.
    Redraw,
    /// Make the report of the tab.
    Report(Report),
}

/// A question that `y` says yes to, and the first of its lines that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) act: Act,
    pub(super) lines: Lines,
    pub(super) top: usize,
    /// How many of the next keys were typed before the question is shown, once that is known. A `y`
    /// among these keys is no answer to it.
    pub(super) ahead: Option<usize>,
}

/// The present meaning of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Browse,
    /// A search is typed.
    Search,
    /// A search of the whole tree is typed.
    Find,
    /// The keys are told, from this line on.
    Help(usize),
    Confirm(Question),
    /// Whether to end is asked.
    Leave,
}

/// A key or a click, of whatever terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Left,
    Right,
    Backspace,
    Escape,
    Tab,
    BackTab,
    /// A click at a column and a line.
    Click(u16, u16),
    Interrupt,
    Suspend,
    Redraw,
}

/// The result of a search of the whole tree, which is shown in place of a directory.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) text: String,
    all: Vec<NodeId>,
    /// The row of the tree that was marked.
    marked: usize,
}

/// A directory on the way down, and the row that was marked in it.
#[derive(Clone, Debug)]
struct Level {
    name: Vec<u8>,
    marked: usize,
}

/// Where on the screen things are, for clicks.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// The line of the first row.
    pub(super) first: u16,
    /// The line of the tabs, and the columns of each that is shown, with its number.
    pub(super) tabs: Option<(u16, Vec<Tab>)>,
}

/// The columns of a tab, and its number.
pub(super) type Tab = (std::ops::Range<u16>, usize);

/// The browser's state.
#[derive(Debug)]
pub(super) struct Browser {
    pub(super) scan: Scan,
    /// The directories known so far, while the first walk runs.
    pub(super) growing: Option<Growing>,
    /// An export that is read as far as it is shown, and the sums of the current directory.
    pub(super) stored: Option<(Stored, Sums)>,
    /// The message on a walk that runs.
    pub(super) progress: String,
    pub(super) measure: Measure,
    pub(super) order: Order,
    pub(super) reverse: bool,
    /// Whether the walk that runs is of one path.
    only: bool,
    /// The directories down to the current one, from a given path on; none above several given
    /// paths.
    way: Vec<Level>,
    pub(super) rows: Vec<Row>,
    pub(super) marked: usize,
    /// The first row that is shown.
    pub(super) top: usize,
    /// How many rows are shown at a time.
    pub(super) page: usize,
    /// The selected entries of the whole tree.
    pub(super) chosen: BTreeSet<Names>,
    /// The index of the shown tab: the tree is 0, then come the reports.
    pub(super) tab: usize,
    /// The report of the tab, once it was made.
    pub(super) report: Option<Page>,
    pub(super) places: Places,
    pub(super) search: String,
    /// What was typed to search the whole tree for.
    pub(super) sought: String,
    pub(super) found: Option<Found>,
    /// Whether times have a column.
    pub(super) times: bool,
    pub(super) mode: Mode,
    pub(super) message: String,
}

impl Browser {
    pub(super) fn new(scan: Scan, measure: Measure, order: Order, reverse: bool) -> Browser {
        let mut browser = Browser {
            scan,
            growing: None,
            stored: None,
            progress: String::new(),
            measure,
            order,
            reverse,
            only: false,
            way: Vec::new(),
            rows: Vec::new(),
            marked: 0,
            top: 0,
            page: 10,
            chosen: BTreeSet::new(),
            tab: 0,
            report: None,
            places: Places::default(),
            search: String::new(),
            sought: String::new(),
            found: None,
            times: false,
            mode: Mode::Browse,
            message: String::new(),
        };
        browser.enter_only_root();
        browser.list();
        browser
    }

    /// A browser of a walk that has just begun at one path, or at several.
    pub(super) fn of_growing(
        growing: Growing,
        only: Option<&[u8]>,
        measure: Measure,
        (order, reverse): (Order, bool),
    ) -> Browser {
        let mut browser = Browser::new(Scan::default(), measure, order, reverse);
        (browser.growing, browser.only) = (Some(growing), only.is_some());
        browser.way.extend(only.map(|name| Level { name: name.to_vec(), marked: 0 }));
        browser.list();
        browser
    }

    /// A browser of an export that is read as far as it is shown.
    pub(super) fn of_stored(
        stored: Stored,
        measure: Measure,
        (order, reverse): (Order, bool),
    ) -> Browser {
        let mut browser = Browser::new(Scan::default(), measure, order, reverse);
        let path = stored.root().to_vec();
        if stored.is_unread() {
            let message = "the export says that a part could not be read".to_owned();
            browser.scan.errors.push(Failure { path: path.clone(), message });
            browser.scan.totals.errors = 1;
        }
        browser.way.push(Level { name: path, marked: 0 });
        browser.stored = Some((stored, Sums::default()));
        browser.list();
        browser
    }

    fn enter_only_root(&mut self) {
        let roots: Vec<Vec<u8>> = self.scan.tree.roots().map(|it| it.name().to_vec()).collect();
        if let Ok([name]) = <[_; 1]>::try_from(roots) {
            self.way.push(Level { name, marked: 0 });
        }
    }

    /// Takes in what a running walk has found.
    pub(super) fn grow(&mut self) {
        if let Some(growing) = &mut self.growing {
            growing.take_in();
            self.list_again();
        }
    }

    /// Shows another scan of the same paths, at the same place as far as that still exists.
    pub(super) fn replace(&mut self, scan: Scan) {
        self.scan = scan;
        (self.growing, self.stored) = (None, None);
        self.changed();
    }

    /// Shows the scan as it is now, at the same place as far as that still exists.
    pub(super) fn changed(&mut self) {
        while !self.way.is_empty() && self.here().is_none() {
            self.way.pop();
        }
        if self.way.is_empty() {
            self.enter_only_root();
        }
        let there = self.scan.tree.find_each(self.chosen.iter().map(Vec::as_slice));
        let mut there = there.iter().map(Option::is_some).collect::<Vec<_>>().into_iter();
        self.chosen.retain(|_| there.next() == Some(true));
        if let Some(found) = &mut self.found {
            // It was a pattern before.
            found.all = listing::find(&self.scan, &found.text, &Control::new()).unwrap_or_default();
        }
        self.list_again();
    }

    /// The current directory.
    pub(super) fn here(&self) -> Option<Node<'_>> {
        let names: Vec<&[u8]> = self.names().collect();
        self.scan.tree.find(&names).filter(|node| node.kind() == Kind::Directory)
    }

    /// The names of the current directory.
    fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.way.iter().map(|level| &level.name[..])
    }

    /// The current directory, as it is shown.
    pub(super) fn path(&self) -> Vec<u8> {
        if let Some(found) = &self.found {
            return format!("found: {}", found.text).into_bytes();
        }
        if self.way.is_empty() {
            return b"(all paths)".to_vec();
        }
        joined(self.names())
    }

    /// The names on the way to the marked row, the given path first. Nothing, if the row is no
    /// entry.
    pub(super) fn marked_names(&self) -> Option<Names> {
        if self.tab > 0 {
            let path = self.report.as_ref()?.path()?;
            return names_of(&self.scan, path);
        }
        self.names_of_row(self.rows.get(self.marked)?)
    }

    /// The names on the way to a row, if it is an entry.
    fn names_of_row(&self, row: &Row) -> Option<Names> {
        self.names_of_rows([row]).next().flatten()
    }

    /// Of each of some rows.
    fn names_of_rows<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r Row>,
    ) -> impl Iterator<Item = Option<Names>> {
        let roots = self.found.is_some().then(|| Roots::of(&self.scan));
        rows.into_iter().map(move |row| match &roots {
            Some(roots) => Some(roots.split(&self.path_of(row)?)?.1),
            None if row.together => None,
            None => Some(self.names().chain([&row.name[..]]).map(<[u8]>::to_vec).collect()),
        })
    }

    /// The path of a row that was found: rows hold names alone, as there may be many.
    fn path_of(&self, row: &Row) -> Option<Vec<u8>> {
        Some(self.scan.tree.node(row.id?)?.path())
    }

    /// What is shown of the name of a row: of what was found, the path below the only given one.
    pub(super) fn shown_name<'r>(&self, row: &'r Row) -> Cow<'r, [u8]> {
        let found = self.found.as_ref().and_then(|_| self.path_of(row));
        let Some(mut path) = found else { return Cow::Borrowed(&row.name) };
        let mut roots = self.scan.tree.roots();
        if let (Some(root), None) = (roots.next(), roots.next()) {
            if path.starts_with(root.name()) {
                let separator = std::path::MAIN_SEPARATOR as u8;
                let above = root.name().len();
                path.drain(..above + usize::from(path.get(above) == Some(&separator)));
            }
        }
        Cow::Owned(path)
    }

    /// Shows what a search of the whole tree has found, until it was stopped or to its end.
    pub(super) fn show_found(&mut self, text: String, all: Vec<NodeId>, stopped: bool) {
        self.message = match (all.is_empty(), stopped) {
            (true, true) => format!("stopped; no such name so far: {text}"),
            (true, false) => format!("no such name: {text}"),
            (false, true) => "stopped; there may be more".to_owned(),
            (false, false) => String::new(),
        };
        if all.is_empty() {
            return;
        }
        self.tab = 0;
        let before = self.found.as_ref().map_or(self.marked, |found| found.marked);
        self.found = Some(Found { text, all, marked: before });
        self.search.clear();
        (self.marked, self.top) = (0, 0);
        self.list();
    }

    /// The directory for a shell: the shown directory or, in a list of entries, the marked
    /// directory or the directory of the marked entry. No names, if there is none.
    pub(super) fn directory(&self) -> Names {
        if self.tab == 0 && self.found.is_none() && !self.way.is_empty() {
            return self.names().map(<[u8]>::to_vec).collect();
        }
        let mut names = self.marked_names().unwrap_or_default();
        let node = self.scan.tree.find(&names);
        if node.is_none_or(|node| node.kind() != Kind::Directory) {
            names.pop();
        }
        names
    }

    /// The entries to delete or move: the chosen entries, or else the marked row. An entry that
    /// lies within another of them is left out.
    pub(super) fn targets(&self) -> Vec<Names> {
        if self.chosen.is_empty() {
            return self.marked_names().into_iter().collect();
        }
        let mut targets: Vec<Names> = Vec::new();
        // In this order a directory comes before what is in it.
        for names in &self.chosen {
            if !targets.last().is_some_and(|last| names.starts_with(last)) {
                targets.push(names.clone());
            }
        }
        targets
    }

    /// The names of the directory to walk again: the marked directory, or the current one.
    pub(super) fn to_renew(&self) -> Names {
        if self.found.is_some() {
            return self.directory();
        }
        let marked = self.rows.get(self.marked).filter(|row| row.kind == Kind::Directory);
        let names = self.names().chain(marked.map(|row| &row.name[..]));
        names.map(<[u8]>::to_vec).collect()
    }

    /// The sum that shares are shares of.
    pub(super) fn whole(&self) -> u64 {
        if let Some((_, sums)) = &self.stored {
            return sums.of(self.measure);
        }
        match (&self.growing, self.here()) {
            _ if self.found.is_some() => {
                self.scan.tree.roots().map(|root| self.measure.of(&root)).sum()
            }
            (Some(growing), _) => growing.sum(&self.names().collect::<Vec<_>>()).of(self.measure),
            (None, Some(here)) => self.measure.of(&here),
            (None, None) => self.rows.iter().map(|row| row.value).sum(),
        }
    }

    /// Makes the rows of the current directory.
    fn list(&mut self) {
        let names: Vec<&[u8]> = self.way.iter().map(|level| &level.name[..]).collect();
        let mut rows = match (&self.found, &self.growing, &mut self.stored) {
            (Some(found), ..) => {
                let nodes = found.all.iter().filter_map(|&id| self.scan.tree.node(id));
                let text = self.search.to_lowercase();
                let holds = |node: &Node<'_>| {
                    let path = || String::from_utf8_lossy(&node.path()).to_lowercase();
                    text.is_empty() || path().contains(&text)
                };
                nodes.filter(holds).map(|node| listing::row(node, self.measure)).collect()
            }
            (None, Some(growing), _) => growing.rows(&names, self.measure),
            (None, None, Some((stored, sums))) => {
                let measure = self.measure;
                let listed = stored.sum(&names).and_then(|sum| {
                    *sums = sum;
                    stored.rows(&names, measure)
                });
                listed.unwrap_or_else(|error| {
                    self.message = error.to_string();
                    Vec::new()
                })
            }
            (None, None, None) => listing::rows(&self.scan, self.here(), self.measure),
        };
        if self.found.is_none() {
            listing::search(&mut rows, &self.search);
        }
        if !self.chosen.is_empty() {
            let chosen = self.names_of_rows(&rows);
            let is_chosen =
                |names: Option<Names>| names.is_some_and(|it| self.chosen.contains(&it));
            let chosen: Vec<bool> = chosen.map(is_chosen).collect();
            for (row, chosen) in rows.iter_mut().zip(chosen) {
                row.chosen = chosen;
            }
        }
        // What was found is in the order of the paths.
        if self.found.is_none() || self.order != Order::Name {
            listing::sort(&mut rows, self.order, self.reverse);
        } else if self.reverse {
            rows.reverse();
        }
        self.rows = rows;
        self.marked = self.marked.min(self.rows.len().saturating_sub(1));
        self.scroll();
    }

    /// Makes the rows anew; the mark stays at its row.
    pub(super) fn list_again(&mut self) {
        let marked = self.rows.get(self.marked).map(|row| (row.id, row.name.clone()));
        // At the top the user wants to see what is the largest now, and not what was.
        let follow = self.growing.is_none() || self.marked > 0;
        self.list();
        if follow {
            self.mark_again(marked);
        }
    }

    /// Marks the row that was marked before the rows were made anew. Of several rows with one name
    /// it is the row of the same entry.
    fn mark_again(&mut self, marked: Option<(Option<NodeId>, Vec<u8>)>) {
        let Some((id, name)) = marked else { return };
        let at = self.rows.iter().position(|row| row.id == id && row.name == name);
        match at {
            Some(at) => self.marked = at,
            None if self.found.is_none() => return self.mark(Some(&name)),
            None => {}
        }
        self.scroll();
    }

    /// Marks the row of a name, if there is one.
    fn mark(&mut self, name: Option<&[u8]>) {
        if let Some(at) = self.rows.iter().position(|row| Some(&row.name[..]) == name) {
            self.marked = at;
        }
        self.scroll();
    }

    /// Keeps the marked row in sight.
    pub(super) fn scroll(&mut self) {
        let page = self.page.max(1);
        self.top = in_sight(self.top, self.marked, self.rows.len(), page);
        if let Some(report) = &mut self.report {
            report.scroll(page);
        }
    }
}

/// The first row of a list that is shown: the marked row is in sight, and no line below the last
/// one is empty that a row could have.
pub(super) fn in_sight(top: usize, marked: usize, rows: usize, page: usize) -> usize {
    let top = top.clamp((marked + 1).saturating_sub(page), marked);
    top.min(rows.saturating_sub(page))
}
