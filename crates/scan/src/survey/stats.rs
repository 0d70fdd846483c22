//! Means, medians, depth and width. The median of the files' lengths takes 8 bytes a file.

use std::any::Any;

use super::section::Column;
use super::top::Top;
use super::{Cell, Collector, Report, Section, Sources, other};
use crate::visit::Seen;
use crate::{Kind, Node};

pub(super) struct Sizes {
    lengths: Vec<u64>,
    entries: u64,
    depths: u64,
    deepest: Top,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { lengths: Vec::new(), entries: 0, depths: 0, deepest: Top::new(Some(1)) }
    }
}

impl Collector for Sizes {
    fn entry(&mut self, seen: &Seen<'_>) {
        self.entries += 1;
        self.depths += u64::from(seen.depth);
        self.deepest.offer(seen.depth.into(), seen);
        if seen.meta.kind == Kind::File && seen.bears {
            self.lengths.push(seen.meta.apparent);
        }
    }

    fn merge(&mut self, others: Box<dyn Any>) {
        let others = other::<Self>(others);
        self.lengths.extend(others.lengths);
        self.entries += others.entries;
        self.depths += others.depths;
        self.deepest.merge(others.deepest);
    }

    fn finish(mut self: Box<Self>, sources: &Sources<'_>) -> Section {
        const COLUMNS: &[Column] = &[
            Column::text("name", "what"),
            Column::any("value", "value"),
            Column::path("path", "where"),
        ];
        let tree = &sources.scan.tree;
        let row = |name: &'static str, value, path| vec![Cell::Text(name.into()), value, path];
        let mut rows = Vec::new();
        let files = self.lengths.len();
        if files > 0 {
            let sum: u128 = self.lengths.iter().map(|&length| u128::from(length)).sum();
            let mean = (sum / files as u128) as u64;
            let (_, median, _) = self.lengths.select_nth_unstable((files - 1) / 2);
            rows.push(row("mean length of a file", Cell::Bytes(mean), Cell::None));
            rows.push(row("median length of a file", Cell::Bytes(*median), Cell::None));
        }
        if self.entries > 0 {
            let mean = self.depths as f64 / self.entries as f64;
            rows.push(row("mean depth", Cell::Number(mean), Cell::None));
        }
        if let Some((deepest, path)) = self.deepest.finish(sources.scan).0.pop() {
            let depth = Cell::Count(deepest.key as u64);
            rows.push(row("greatest depth", depth, Cell::Path(path)));
        }
        let mut widths = Vec::new();
        tree.each_directory(|node| widths.push((width(&node), node)));
        if !widths.is_empty() {
            let mean =
                widths.iter().map(|(width, _)| *width).sum::<u64>() as f64 / widths.len() as f64;
            let first = |node: &Node<'_>| std::cmp::Reverse(node.path());
            let most = widths.iter().map(|(width, _)| *width).max().unwrap_or(0);
            let widest = widths.iter().filter(|(width, _)| *width == most).map(|(_, node)| *node);
            let path = widest.max_by_key(first).map_or(Cell::None, |node| Cell::Path(node.path()));
            let middle = (widths.len() - 1) / 2;
            let (_, (median, _), _) =
                widths.select_nth_unstable_by_key(middle, |(width, _)| *width);
            rows.push(row("mean entries of a directory", Cell::Number(mean), Cell::None));
            rows.push(row("median entries of a directory", Cell::Count(*median), Cell::None));
            rows.push(row("widest directory", Cell::Count(most), path));
        }
        Section::complete(Report::Stats, COLUMNS, rows)
    }
}

/// How many entries lie in a directory itself.
fn width(node: &Node<'_>) -> u64 {
    node.entries() - node.directories().map(|inner| inner.entries()).sum::<u64>()
}
