//! What a key does.

use poach_scan::Kind;
use poach_scan::report::{Measure, Order};
use poach_scan::survey::Report;

use super::{Browser, Key, Level, Mode, Wish};
use crate::scan::browse::act::Act;
use crate::scan::browse::names::Names;
use crate::scan::browse::view::HELP;

impl Browser {
    fn order_by(&mut self, order: Order) {
        self.reverse = if self.order == order { !self.reverse } else { false };
        self.order = order;
        let marked = self.rows.get(self.marked).map(|row| (row.id, row.name.clone()));
        self.list();
        self.mark_again(marked);
    }

    fn enter(&mut self) {
        if self.found.is_some() {
            if let Some(names) = self.marked_names() {
                self.go_to(&names);
            }
            return;
        }
        let Some(row) = self.rows.get(self.marked) else { return };
        if row.kind != Kind::Directory {
            if row.together {
                "files get rows when the scan has ended".clone_into(&mut self.message);
            }
            return;
        }
        self.way.push(Level { name: row.name.clone(), marked: self.marked });
        let names: Vec<&[u8]> = self.way.iter().map(|level| &level.name[..]).collect();
        let known = match (&self.growing, &mut self.stored) {
            (Some(growing), _) => Ok(growing.knows(&names)),
            (None, Some((stored, _))) => stored.knows(&names),
            (None, None) => Ok(self.here().is_some()),
        };
        if !matches!(known, Ok(true)) {
            self.way.pop();
            let unknown = |_| "its contents are not known".to_owned();
            self.message = known.map_or_else(|error| error.to_string(), unknown);
            return;
        }
        (self.marked, self.top) = (0, 0);
        self.search.clear();
        self.list();
    }

    fn leave(&mut self) {
        if let Some(found) = self.found.take() {
            self.search.clear();
            self.marked = found.marked;
            return self.list();
        }
        if self.way.len() > usize::from(self.has_one_root()) {
            if let Some(level) = self.way.pop() {
                self.search.clear();
                self.marked = level.marked;
                self.list();
                self.mark(Some(&level.name));
            }
        }
    }

    fn has_one_root(&self) -> bool {
        if self.growing.is_some() {
            return self.only;
        }
        self.stored.is_some() || self.scan.tree.roots().count() == 1
    }

    /// Goes to an entry of the tree.
    fn go_to(&mut self, names: &[Vec<u8>]) {
        let Some((name, above)) = names.split_last() else { return };
        (self.tab, self.report, self.found) = (0, None, None);
        self.search.clear();
        self.way = above.iter().map(|name| Level { name: name.clone(), marked: 0 }).collect();
        if self.way.is_empty() {
            self.enter_only_root();
        }
        self.marked = 0;
        self.list();
        self.mark(Some(name));
    }

    fn step(&mut self, by: isize) {
        if self.tab > 0 {
            if let Some(report) = &mut self.report {
                report.step(by);
            }
            return self.scroll();
        }
        let last = self.rows.len().saturating_sub(1);
        self.marked = self.marked.saturating_add_signed(by).min(last);
        self.scroll();
    }

    /// Chooses the marked row, or not any more, and goes on to the next.
    fn choose(&mut self) {
        let Some(names) = self.marked_names() else {
            "this row cannot be selected".clone_into(&mut self.message);
            return;
        };
        if names.len() < 2 {
            "a path from the command line cannot be selected".clone_into(&mut self.message);
            return;
        }
        if !self.chosen.remove(&names) {
            self.chosen.insert(names);
        }
        self.list_again();
        self.step(1);
    }

    /// Chooses all rows that are shown, or none of them any more.
    fn choose_all(&mut self) {
        if self.tab > 0 || self.way.is_empty() && self.found.is_none() {
            return;
        }
        let all: Vec<Names> = self.rows.iter().filter_map(|row| self.names_of_row(row)).collect();
        if all.iter().all(|names| self.chosen.contains(names)) {
            for names in &all {
                self.chosen.remove(names);
            }
        } else {
            self.chosen.extend(all);
        }
        self.list_again();
    }

    /// Shows sizes on disk, or apparent ones. The report that is shown is made again by them.
    fn measure_otherwise(&mut self) -> Wish {
        let (measure, said) = match self.measure {
            Measure::Disk => (Measure::Apparent, "apparent sizes: the lengths of files"),
            _ => (Measure::Disk, "sizes on disk"),
        };
        self.measure = measure;
        self.list_again();
        let page = self.report.as_mut();
        let is_made = page.is_some_and(|page| page.measure_by(&self.scan, measure));
        let wish = if self.tab > 0 && !is_made { self.show_tab(self.tab) } else { Wish::None };
        said.clone_into(&mut self.message);
        wish
    }

    /// Shows a tab: the tree, or a report, which has to be made.
    fn show_tab(&mut self, tab: usize) -> Wish {
        if self.growing.is_some() {
            "reports are made when the scan has ended".clone_into(&mut self.message);
            return Wish::None;
        }
        (self.tab, self.report) = (tab, None);
        match tab.checked_sub(1).and_then(|number| Report::ALL.get(number)) {
            Some(&report) => Wish::Report(report),
            None => Wish::None,
        }
    }

    /// Carries out a key.
    pub(in crate::scan::browse) fn press(&mut self, key: Key) -> Wish {
        self.message.clear();
        match key {
            Key::Interrupt => return Wish::Quit,
            Key::Suspend => {
                // Keys that come meanwhile were typed before the question is shown again.
                if let Mode::Confirm(question) = &mut self.mode {
                    question.ahead = None;
                }
                return Wish::Suspend;
            }
            Key::Redraw => return Wish::Redraw,
            _ => {}
        }
        match &mut self.mode {
            Mode::Browse => self.browse(key),
            Mode::Search => {
                self.type_search(key);
                Wish::None
            }
            Mode::Find => self.type_find(key),
            Mode::Help(top) => {
                match scrolled(key, *top, HELP.len(), self.page) {
                    Some(scrolled) => *top = scrolled,
                    None => self.mode = Mode::Browse,
                }
                Wish::None
            }
            Mode::Leave => {
                self.mode = Mode::Browse;
                if matches!(key, Key::Char('y' | 'q')) { Wish::Quit } else { Wish::None }
            }
            Mode::Confirm(question) => {
                let ahead = question.ahead.as_mut().filter(|ahead| **ahead > 0);
                let is_early = ahead.map(|ahead| *ahead -= 1).is_some();
                match scrolled(key, question.top, question.lines.len(), self.page) {
                    Some(top) => question.top = top,
                    None if matches!(key, Key::Click(..)) => {}
                    None if is_early && key == Key::Char('y') => {
                        "y was typed too early; y: yes   any other key: no"
                            .clone_into(&mut self.message);
                    }
                    None => {
                        self.mode = Mode::Browse;
                        if key == Key::Char('y') {
                            return Wish::Carry;
                        }
                        "nothing was done".clone_into(&mut self.message);
                    }
                }
                Wish::None
            }
        }
    }

    fn browse(&mut self, key: Key) -> Wish {
        let page = isize::try_from(self.page).unwrap_or(isize::MAX);
        match key {
            Key::Up | Key::Char('k') => self.step(-1),
            Key::Down | Key::Char('j') => self.step(1),
            Key::PageUp => self.step(-page),
            Key::PageDown => self.step(page),
            Key::Home | Key::Char('g') => self.step(isize::MIN),
            Key::End | Key::Char('G') => self.step(isize::MAX),
            Key::Tab => return self.show_tab((self.tab + 1) % (Report::ALL.len() + 1)),
            Key::BackTab => {
                return self.show_tab((self.tab + Report::ALL.len()) % (Report::ALL.len() + 1));
            }
            Key::Click(x, y) => return self.click(x, y),
            Key::Enter | Key::Right | Key::Char('l') if self.tab > 0 => {
                if let Some(names) = self.marked_names() {
                    self.go_to(&names);
                }
            }
            Key::Left | Key::Backspace | Key::Char('h') | Key::Escape if self.tab > 0 => {
                return self.show_tab(0);
            }
            Key::Enter | Key::Right | Key::Char('l') => self.enter(),
            Key::Left | Key::Backspace | Key::Char('h') => self.leave(),
            Key::Char(' ' | 'm') => self.choose(),
            Key::Char('*') => self.choose_all(),
            Key::Char('U') => {
                self.chosen.clear();
                self.list_again();
            }
            Key::Char('s') => self.order_by(Order::Size),
            Key::Char('n') => self.order_by(Order::Name),
            Key::Char('c') => self.order_by(Order::Entries),
            Key::Char('t') => self.order_by(Order::Time),
            Key::Char('/') if self.tab == 0 => self.mode = Mode::Search,
            Key::Char('f') if self.growing.is_some() => {
                "the search starts when the scan has ended".clone_into(&mut self.message);
            }
            Key::Char('f') => {
                self.sought.clear();
                self.mode = Mode::Find;
            }
            Key::Char('a') => return self.measure_otherwise(),
            Key::Char('T') => self.times = !self.times,
            Key::Char('?') => self.mode = Mode::Help(0),
            Key::Char('R') => return Wish::Rescan,
            Key::Char('r') => return Wish::Renew,
            Key::Char('d') => return Wish::Plan(Act::Delete),
            Key::Char('x') => return Wish::Plan(Act::Trash),
            Key::Char('u') => return Wish::Undo,
            Key::Char('o') => return Wish::Open,
            Key::Char('y') => return Wish::Copy,
            Key::Char('v') => return Wish::View,
            Key::Char('b') => return Wish::Shell,
            Key::Escape if !self.search.is_empty() => {
                self.search.clear();
                self.list();
            }
            Key::Escape if self.found.is_some() => self.leave(),
            // It may be the second of two that were to stop a walk, and the walk may have taken
            // long.
            Key::Escape => self.mode = Mode::Leave,
            Key::Char('q') => return Wish::Quit,
            _ => {}
        }
        Wish::None
    }

    /// A click marks a row; a click on the marked row enters it; a click on a tab shows the tab.
    fn click(&mut self, x: u16, y: u16) -> Wish {
        if let Some((line, tabs)) = &self.places.tabs {
            if *line == y {
                let tab =
                    tabs.iter().find(|(columns, _)| columns.contains(&x)).map(|(_, tab)| *tab);
                return tab.map_or(Wish::None, |tab| self.show_tab(tab));
            }
        }
        let Some(line) = y.checked_sub(self.places.first).map(usize::from) else {
            return Wish::None;
        };
        if line >= self.page {
            return Wish::None;
        }
        let again = if self.tab > 0 {
            self.report.as_mut().and_then(|report| report.mark_line(line))
        } else {
            let at = self.top + line;
            let before =
                std::mem::replace(&mut self.marked, at.min(self.rows.len().saturating_sub(1)));
            (at < self.rows.len()).then_some(before == at)
        };
        self.scroll();
        if again == Some(true) { self.browse(Key::Enter) } else { Wish::None }
    }

    fn type_find(&mut self, key: Key) -> Wish {
        match key {
            Key::Char(character) => self.sought.push(character),
            Key::Backspace => {
                self.sought.pop();
            }
            Key::Escape => self.mode = Mode::Browse,
            Key::Enter => {
                self.mode = Mode::Browse;
                return if self.sought.is_empty() { Wish::None } else { Wish::Find };
            }
            _ => {}
        }
        Wish::None
    }

    fn type_search(&mut self, key: Key) {
        match key {
            Key::Char(character) => self.search.push(character),
            Key::Backspace => {
                self.search.pop();
            }
            Key::Escape => {
                self.search.clear();
                self.mode = Mode::Browse;
            }
            Key::Enter => self.mode = Mode::Browse,
            _ => return,
        }
        self.marked = 0;
        self.list();
    }
}

/// The first line that is shown of a text that is longer than the screen, after a key; nothing, if
/// the key does not go through it.
fn scrolled(key: Key, top: usize, lines: usize, page: usize) -> Option<usize> {
    let page = page.max(1);
    let last = lines.saturating_sub(page);
    let top = match key {
        Key::Up | Key::Char('k') => top.saturating_sub(1),
        Key::Down | Key::Char('j') => top + 1,
        Key::PageUp => top.saturating_sub(page),
        Key::PageDown => top + page,
        Key::Home => 0,
        Key::End => last,
        _ => return None,
    };
    Some(top.min(last))
}
