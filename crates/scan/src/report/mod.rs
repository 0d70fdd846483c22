//! A finished scan as text for people and as JSON for programs, written to a writer.
//!
//! Nothing here prints or asks the environment: the caller gives the terminal's width, and says
//! whether it shows colour.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Kind, Node, Scan};

mod columns;
mod escape;
mod text;
mod units;

pub(crate) use columns::Fit;
pub use columns::{clusters, cut, width};
pub use escape::escape;
pub(crate) use escape::is_unfit;
pub use text::{Look, text};
pub use units::{Units, bytes, count};

/// The measure by which directories are the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Bytes on disk.
    #[default]
    Disk,
    /// Lengths.
    Apparent,
    /// The number of entries.
    Entries,
}

impl Measure {
    /// The measure of an entry.
    pub fn of(self, node: &Node<'_>) -> u64 {
        match self {
            Measure::Disk => node.disk_bytes(),
            Measure::Apparent => node.apparent_bytes(),
            Measure::Entries => node.entries(),
        }
    }
}

/// How much of the tree to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// By what entries are compared.
    pub measure: Measure,
    /// The deepest level shown; the given paths are level 0. No limit, if not said.
    pub depth: Option<usize>,
    /// How many entries are shown beside the given paths: the largest. No limit, if not said.
    pub top: Option<usize>,
    /// Whether to show directories alone, where the scan has kept the files, too.
    pub directories_only: bool,
    /// Entries that are smaller by the measure are not shown; the given paths are.
    pub at_least: u64,
    /// By what the entries of a directory are ordered.
    pub order: Order,
    /// Whether that order is turned around.
    pub reverse: bool,
}

/// What the entries of a directory, or the given paths in a report, are ordered by. The order does
/// not change which of them are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The measure, the largest first.
    #[default]
    Size,
    /// The names, in byte order.
    Name,
    /// The number of entries below, the most first.
    Entries,
    /// The time of the last change, the newest first; if the scan has kept none, as `Name`.
    Time,
}

impl Order {
    /// The order of two rows.
    fn compare(self, a: &Row<'_>, b: &Row<'_>) -> std::cmp::Ordering {
        let names = || a.node.name().cmp(b.node.name());
        let time = |row: &Row<'_>| Reverse(row.node.facts().map(|facts| facts.modified()));
        match self {
            Order::Size => Reverse(a.value).cmp(&Reverse(b.value)).then_with(names),
            Order::Name => names(),
            Order::Entries => {
                Reverse(a.node.entries()).cmp(&Reverse(b.node.entries())).then_with(names)
            }
            Order::Time => time(a).cmp(&time(b)).then_with(names),
        }
    }
}

impl Extent {
    /// What is shown of what is in a directory, in no particular order.
    pub(crate) fn inside<'t>(&self, directory: &Node<'t>) -> Vec<Node<'t>> {
        let mut inside = Vec::new();
        self.each_inside(directory, |node| inside.push(node));
        inside
    }

    fn each_inside<'t>(&self, directory: &Node<'t>, tell: impl FnMut(Node<'t>)) {
        let files = (!self.directories_only).then(|| directory.files());
        let inside = directory.directories().chain(files.into_iter().flatten());
        inside.filter(|node| self.measure.of(node) >= self.at_least).for_each(tell);
    }
}

/// An entry that is to be shown.
pub(crate) struct Row<'t> {
    pub(crate) node: Node<'t>,
    value: u64,
    pub(crate) depth: usize,
    /// The row of the directory that it is in; none for a given path.
    parent: Option<usize>,
    /// Whether no row after it is in the same directory.
    last: bool,
    /// The entries in it that are not shown, if others in it are.
    hidden: Hidden,
}

/// Entries of one directory, or given paths, that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    entries: usize,
    value: u64,
}

impl Hidden {
    fn add(&mut self, value: u64) {
        self.entries += 1;
        self.value = self.value.saturating_add(value);
    }

    fn remove(&mut self, value: u64) {
        self.entries -= 1;
        self.value = self.value.saturating_sub(value);
    }
}

/// The entries to show, each directory before what is in it, siblings by size and then by name; and
/// the given paths that are left out.
///
/// A directory is at least as large as all that is in it, so the largest entries form a tree, and
/// are found from the top. Time: n log n in what the shown directories hold, whatever lies below
/// them. Memory: for each shown directory as many entries as may be shown, however many it holds.
pub(crate) fn rows<'t>(scan: &'t Scan, extent: &Extent) -> (Vec<Row<'t>>, Hidden) {
    let selects = scan.options.choice.as_ref().is_some_and(|choice| choice.selects());
    let mut found: Vec<Row<'t>> = Vec::new();
    // The largest first, of equals the one that was met first; a place in `met`.
    let mut heap: BinaryHeap<(u64, Reverse<usize>)> = BinaryHeap::new();
    let mut met: Vec<(Node<'t>, usize, Option<usize>)> = Vec::new();
    let (roots, left_out) = roots(scan, extent);
    for node in roots {
        met.push((node, 0, None));
    }
    let roots = met.len();
    let mut next_root = 0;
    loop {
        let (value, at) = if next_root < roots {
            next_root += 1;
            (extent.measure.of(&met[next_root - 1].0), next_root - 1)
        } else if extent.top.is_none_or(|top| found.len() < top.saturating_add(roots)) {
            let Some((value, Reverse(at))) = heap.pop() else { break };
            (value, at)
        } else {
            break;
        };
        let (node, depth, parent) = met[at];
        let row = found.len();
        if let Some(parent) = parent {
            found[parent].hidden.remove(value);
        }
        let mut hidden = Hidden::default();
        if extent.depth.is_none_or(|limit| depth < limit) {
            // No more of it can be shown than there is room for.
            let room = extent.top.map(|top| top.saturating_add(roots) - found.len());
            for node in largest(&node, extent, selects, room, &mut hidden) {
                heap.push((extent.measure.of(&node), Reverse(met.len())));
                met.push((node, depth + 1, Some(row)));
            }
        }
        found.push(Row { node, value, depth, parent, last: false, hidden });
    }
    (in_order(found, extent), left_out)
}

/// The entries of a directory, the largest first and then by name, as many as there is room for;
/// `hidden` counts all of them. `selects`: directories in which nothing was selected would hide
/// directories that hold something.
fn largest<'t>(
    directory: &Node<'t>,
    extent: &Extent,
    selects: bool,
    room: Option<usize>,
    hidden: &mut Hidden,
) -> Vec<Node<'t>> {
    let measure = |node: &Node<'_>| extent.measure.of(node);
    let by_size = |a: &Node<'_>, b: &Node<'_>| {
        Reverse(measure(a)).cmp(&Reverse(measure(b))).then_with(|| a.name().cmp(b.name()))
    };
    // Twice as many entries wait before they are sorted out, so each takes constant time.
    let mut inside = Vec::new();
    extent.each_inside(directory, |node| {
        if selects && node.kind() == Kind::Directory && measure(&node) == 0 {
            return;
        }
        hidden.add(measure(&node));
        inside.push(node);
        if let Some(room) = room {
            if inside.len() / 2 > room {
                inside.select_nth_unstable_by(room, by_size);
                inside.truncate(room);
            }
        }
    });
    inside.sort_unstable_by(by_size);
    inside.truncate(room.unwrap_or(usize::MAX));
    inside
}

/// The given paths to show, in their order: if they are more than the limit, the largest.
fn roots<'t>(scan: &'t Scan, extent: &Extent) -> (Vec<Node<'t>>, Hidden) {
    let mut roots: Vec<(usize, Node<'t>)> = scan.tree.roots().enumerate().collect();
    let mut left_out = Hidden::default();
    if let Some(top) = extent.top.map(|top| top.max(1)).filter(|&top| top < roots.len()) {
        roots.sort_by_key(|(_, node)| Reverse(extent.measure.of(node)));
        roots[top..].iter().for_each(|(_, node)| left_out.add(extent.measure.of(node)));
        roots.truncate(top);
        roots.sort_by_key(|&(place, _)| place);
    }
    (roots.into_iter().map(|(_, node)| node).collect(), left_out)
}

/// Puts each row after its directory's row, and before the next sibling of that.
fn in_order<'t>(found: Vec<Row<'t>>, extent: &Extent) -> Vec<Row<'t>> {
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); found.len()];
    let mut waiting = Vec::new();
    for (index, row) in found.iter().enumerate().rev() {
        match row.parent {
            Some(parent) => inside[parent].push(index),
            None => waiting.push(index),
        }
    }
    if extent.reverse || extent.order != Order::Size {
        let order = |&a: &usize, &b: &usize| extent.order.compare(&found[b], &found[a]);
        for siblings in &mut inside {
            siblings.sort_by(order);
            if extent.reverse {
                siblings.reverse();
            }
        }
    }
    let mut place = vec![0; found.len()];
    let mut order: Vec<Option<Row<'t>>> = found.into_iter().map(Some).collect();
    let mut rows: Vec<Row<'t>> = Vec::with_capacity(order.len());
    while let Some(index) = waiting.pop() {
        place[index] = rows.len();
        if let Some(mut row) = order[index].take() {
            // Rows inside were pushed last first, so the last shown row stands first there.
            let siblings = row.parent.map(|parent| &inside[parent]);
            row.last = siblings.is_none_or(|siblings| siblings.first() == Some(&index));
            row.parent = row.parent.map(|parent| place[parent]);
            if inside[index].is_empty() {
                row.hidden = Hidden::default();
            }
            rows.push(row);
        }
        waiting.extend(&inside[index]);
    }
    rows
}
