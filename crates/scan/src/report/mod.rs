//! A finished scan as text for people and as JSON for programs, written to a writer.
//!
//! Nothing here prints or asks the environment: who calls says how wide the terminal is and whether
//! it shows colour.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Node, Scan};

mod escape;
mod json;
mod text;
mod units;

pub use escape::escape;
pub use json::{SCHEMA, json};
pub use text::{Look, text};
pub use units::{bytes, count};

/// What the largest directories are the largest by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    fn of(self, node: &Node<'_>) -> u64 {
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
}

/// An entry that is to be shown.
struct Row<'t> {
    node: Node<'t>,
    value: u64,
    depth: usize,
    /// The row of the directory that it is in; none for a given path.
    parent: Option<usize>,
    /// Whether no row after it is in the same directory.
    last: bool,
}

/// The entries to show, each directory before what is in it, siblings by size and then by name.
///
/// A directory is at least as large as all that is in it, so the largest entries form a tree and are
/// found from the top: time n log n in what the shown directories hold, whatever lies below them.
fn rows<'t>(scan: &'t Scan, extent: &Extent) -> Vec<Row<'t>> {
    let mut found: Vec<Row<'t>> = Vec::new();
    // The largest first, of equals the one that was met first; a place in `met`.
    let mut heap: BinaryHeap<(u64, Reverse<usize>)> = BinaryHeap::new();
    let mut met: Vec<(Node<'t>, usize, Option<usize>)> = Vec::new();
    for node in scan.tree.roots() {
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
        found.push(Row { node, value, depth, parent, last: false });
        if extent.depth.is_none_or(|limit| depth < limit) {
            let mut inside: Vec<Node<'t>> = node.directories().chain(node.files()).collect();
            inside.sort_by_cached_key(|node| (Reverse(extent.measure.of(node)), node.name()));
            for node in inside {
                heap.push((extent.measure.of(&node), Reverse(met.len())));
                met.push((node, depth + 1, Some(row)));
            }
        }
    }
    in_order(found)
}

/// Puts each row after the one it is in, and before the next sibling of that.
fn in_order(found: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); found.len()];
    let mut waiting = Vec::new();
    for (index, row) in found.iter().enumerate().rev() {
        match row.parent {
            Some(parent) => inside[parent].push(index),
            None => waiting.push(index),
        }
    }
    let mut place = vec![0; found.len()];
    let mut order: Vec<Option<Row<'_>>> = found.into_iter().map(Some).collect();
    let mut rows: Vec<Row<'_>> = Vec::with_capacity(order.len());
    while let Some(index) = waiting.pop() {
        place[index] = rows.len();
        if let Some(mut row) = order[index].take() {
            // Those inside were pushed last first, so the smallest stands first there.
            let siblings = row.parent.map(|parent| &inside[parent]);
            row.last = siblings.is_none_or(|siblings| siblings.first() == Some(&index));
            row.parent = row.parent.map(|parent| place[parent]);
            rows.push(row);
        }
        waiting.extend(&inside[index]);
    }
    rows
}
