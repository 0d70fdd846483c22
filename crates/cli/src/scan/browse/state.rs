//! Where one is in a tree, what of it is shown, and what a key does.

use std::cmp::Reverse;

use poach_scan::report::{Measure, Order};
use poach_scan::{Kind, Node, Scan};

/// What is done outside of the browser because of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    None,
    Quit,
    /// Walk again.
    Rescan,
    /// List what would be deleted.
    Plan,
    /// Delete it.
    Delete,
}

/// What the keys are for at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Browse,
    /// A search is typed.
    Search,
    Help,
    /// A deletion is to be confirmed; the lines say what goes.
    Confirm(Vec<String>),
}

/// A key, of whatever terminal.
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
    Interrupt,
}

/// A row of the list.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    /// By the measure.
    pub(super) value: u64,
    pub(super) entries: u64,
    pub(super) modified: Option<i64>,
    pub(super) unread: bool,
    pub(super) elsewhere: bool,
}

/// A directory on the way down, and the row that was marked in it.
#[derive(Clone, Debug)]
struct Level {
    name: Vec<u8>,
    marked: usize,
}

/// The browser's state.
#[derive(Debug)]
pub(super) struct Browser {
    pub(super) scan: Scan,
    pub(super) measure: Measure,
    pub(super) order: Order,
    pub(super) reverse: bool,
    /// The directories that one is in, from a given path on; none where several were given.
    way: Vec<Level>,
    pub(super) rows: Vec<Row>,
    pub(super) marked: usize,
    /// The first row that is shown.
    pub(super) top: usize,
    /// How many rows are shown at a time.
    pub(super) page: usize,
    pub(super) search: String,
    pub(super) mode: Mode,
    pub(super) message: String,
}

impl Browser {
    pub(super) fn new(scan: Scan, measure: Measure, order: Order, reverse: bool) -> Browser {
        let mut browser = Browser {
            scan,
            measure,
            order,
            reverse,
            way: Vec::new(),
            rows: Vec::new(),
            marked: 0,
            top: 0,
            page: 10,
            search: String::new(),
            mode: Mode::Browse,
            message: String::new(),
        };
        let roots: Vec<Vec<u8>> = browser.scan.tree.roots().map(|it| it.name().to_vec()).collect();
        if let Ok([name]) = <[_; 1]>::try_from(roots) {
            browser.way.push(Level { name, marked: 0 });
        }
        browser.list();
        browser
    }

    /// Shows another scan of the same paths, in the same place as far as that is there still.
    pub(super) fn replace(&mut self, scan: Scan) {
        let marked = self.rows.get(self.marked).map(|row| row.name.clone());
        self.scan = scan;
        while !self.way.is_empty() && self.here().is_none() {
            self.way.pop();
        }
        self.list();
        self.mark(marked.as_deref());
    }

    /// The directory that one is in.
    pub(super) fn here(&self) -> Option<Node<'_>> {
        let (first, others) = self.way.split_first()?;
        let root = self.scan.tree.roots().find(|root| root.name() == first.name)?;
        others.iter().try_fold(root, |above, level| {
            above.directories().find(|node| node.name() == level.name)
        })
    }

    /// The names on the way to the marked row, the given path first.
    pub(super) fn chosen(&self) -> Vec<&[u8]> {
        let names = self.way.iter().map(|level| &level.name[..]);
        names.chain(self.rows.get(self.marked).map(|row| &row.name[..])).collect()
    }

    /// The sum that shares are shares of.
    pub(super) fn whole(&self) -> u64 {
        match self.here() {
            Some(here) => self.measure.of(&here),
            None => self.rows.iter().map(|row| row.value).sum(),
        }
    }

    /// Makes the rows of where one is.
    fn list(&mut self) {
        let nodes: Vec<Node<'_>> = match self.here() {
            Some(here) => here.directories().chain(here.files()).collect(),
            None => self.scan.tree.roots().collect(),
        };
        let sought = self.search.to_lowercase();
        let matches = |node: &Node<'_>| {
            sought.is_empty()
                || String::from_utf8_lossy(node.name()).to_lowercase().contains(&sought)
        };
        let row = |node: Node<'_>| Row {
            name: node.name().to_vec(),
            kind: node.kind(),
            value: self.measure.of(&node),
            entries: node.entries(),
            modified: node.facts().map(|facts| facts.modified()),
            unread: node.is_unread(),
            elsewhere: node.counts_elsewhere(),
        };
        let mut rows: Vec<Row> = nodes.into_iter().filter(matches).map(row).collect();
        rows.sort_by(|a, b| {
            let by = match self.order {
                Order::Name => std::cmp::Ordering::Equal,
                Order::Entries => b.entries.cmp(&a.entries),
                Order::Time => Reverse(a.modified).cmp(&Reverse(b.modified)),
                Order::Size => b.value.cmp(&a.value),
            };
            by.then_with(|| a.name.cmp(&b.name))
        });
        if self.reverse {
            rows.reverse();
        }
        self.rows = rows;
        self.marked = self.marked.min(self.rows.len().saturating_sub(1));
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
        self.top = self.top.clamp((self.marked + 1).saturating_sub(page), self.marked);
    }

    fn order_by(&mut self, order: Order) {
        self.reverse = if self.order == order { !self.reverse } else { false };
        self.order = order;
        let marked = self.rows.get(self.marked).map(|row| row.name.clone());
        self.list();
        self.mark(marked.as_deref());
    }

    fn enter(&mut self) {
        let Some(row) = self.rows.get(self.marked) else { return };
        if row.kind != Kind::Directory {
            return;
        }
        self.way.push(Level { name: row.name.clone(), marked: self.marked });
        if self.here().is_none() {
            self.way.pop();
            "what is in it is not known".clone_into(&mut self.message);
            return;
        }
        (self.marked, self.top) = (0, 0);
        self.search.clear();
        self.list();
    }

    fn leave(&mut self) {
        let several = self.scan.tree.roots().count() > 1;
        if self.way.len() > usize::from(!several)
            && let Some(level) = self.way.pop()
        {
            self.search.clear();
            self.marked = level.marked;
            self.list();
            self.mark(Some(&level.name));
        }
    }

    fn step(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.marked = self.marked.saturating_add_signed(by).min(last);
        self.scroll();
    }

    /// Does what a key says.
    pub(super) fn press(&mut self, key: Key) -> Wish {
        self.message.clear();
        if key == Key::Interrupt {
            return Wish::Quit;
        }
        match &self.mode {
            Mode::Browse => self.browse(key),
            Mode::Search => {
                self.type_search(key);
                Wish::None
            }
            Mode::Help => {
                self.mode = Mode::Browse;
                Wish::None
            }
            Mode::Confirm(_) => {
                self.mode = Mode::Browse;
                if key == Key::Char('y') {
                    return Wish::Delete;
                }
                "nothing was deleted".clone_into(&mut self.message);
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
            Key::Enter | Key::Right | Key::Char('l') => self.enter(),
            Key::Left | Key::Backspace | Key::Char('h') => self.leave(),
            Key::Char('s') => self.order_by(Order::Size),
            Key::Char('n') => self.order_by(Order::Name),
            Key::Char('c') => self.order_by(Order::Entries),
            Key::Char('t') => self.order_by(Order::Time),
            Key::Char('/') => self.mode = Mode::Search,
            Key::Char('?') => self.mode = Mode::Help,
            Key::Char('R') => return Wish::Rescan,
            Key::Char('d') if !self.rows.is_empty() => return Wish::Plan,
            Key::Escape if !self.search.is_empty() => {
                self.search.clear();
                self.list();
            }
            Key::Char('q') | Key::Escape => return Wish::Quit,
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
