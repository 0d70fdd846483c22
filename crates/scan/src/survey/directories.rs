//! Directories: the largest, and the empty ones. They are read from the finished tree.

use super::section::{APPARENT, DISK, ENTRIES, PATH};
use super::{Cell, Column, Report, Section, Sources};
use crate::Node;

const COLUMNS: &[Column] = &[DISK, APPARENT, ENTRIES, PATH];

fn row(node: &Node<'_>) -> Vec<Cell> {
    vec![
        Cell::Bytes(node.disk_bytes()),
        Cell::Bytes(node.apparent_bytes()),
        Cell::Count(node.entries()),
        Cell::Path(node.path()),
    ]
}

/// The largest; of equally large ones the first by path.
pub(super) fn largest(sources: &Sources<'_>) -> Section {
    let mut found: Vec<(u64, Node<'_>)> = Vec::new();
    let measure = sources.settings.measure;
    sources.scan.tree.each_directory(|node| found.push((measure.of(&node), node)));
    let (count, top) = (found.len(), sources.settings.top.unwrap_or(usize::MAX));
    if top < count && top > 0 {
        // Paths are made only of those that may be shown.
        let (_, (least, _), _) = found.select_nth_unstable_by(top - 1, |a, b| b.0.cmp(&a.0));
        let least = *least;
        found.retain(|(value, _)| *value >= least);
    }
    found.sort_by_cached_key(|(value, node)| (std::cmp::Reverse(*value), node.path()));
    found.truncate(top);
    let rows: Vec<_> = found.iter().map(|(_, node)| row(node)).collect();
    let left_out = (count - rows.len()) as u64;
    Section { left_out, ..Section::complete(Report::LargestDirectories, COLUMNS, rows) }
}

/// Directories that were read and hold nothing, by path.
pub(super) fn empty(sources: &Sources<'_>) -> Section {
    let mut found = Vec::new();
    sources.scan.tree.each_directory(|node| {
        if node.entries() == 0 && !node.is_unread() {
            found.push(node.path());
        }
    });
    found.sort();
    let count = found.len();
    found.truncate(sources.settings.top.unwrap_or(usize::MAX));
    let left_out = (count - found.len()) as u64;
    let rows = found.into_iter().map(|path| vec![Cell::Path(path)]).collect();
    Section { left_out, ..Section::complete(Report::EmptyDirectories, &[PATH], rows) }
}
