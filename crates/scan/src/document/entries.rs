//! The entries of a scan in the order of documents: each directory before what is in it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::MAIN_SEPARATOR;
use std::vec;

use crate::report::{Extent, Row, rows};
use crate::{Kind, Node, Scan};

/// An entry, with what a document says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'s> {
    pub(super) node: Node<'s>,
    /// The given paths are at 0.
    pub(super) depth: usize,
    /// The number of the directory that it is in, counted in this order; none for a given path.
    pub(super) parent: Option<u64>,
    /// Why it, or a part of it, could not be read.
    pub(super) error: Option<&'s str>,
}

/// In which order the entries of a directory follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The largest first; of equals the name that comes first.
    Size,
    /// By the bytes of their names.
    Name,
}

/// Iterates over the entries. Holds a path, and for each level of it the siblings that follow.
pub(super) struct Entries<'s> {
    source: Source<'s>,
    errors: HashMap<&'s [u8], &'s str>,
    /// The path of the last entry.
    path: Vec<u8>,
    /// The last entry, below the directories above it: their numbers, and the lengths of their
    /// paths.
    above: Vec<(u64, usize)>,
    next: u64,
}

enum Source<'s> {
    Walk(Walk<'s>),
    /// The largest of all entries, which are chosen before the first is written.
    Chosen(vec::IntoIter<Row<'s>>),
}

impl<'s> Entries<'s> {
    pub(super) fn new(scan: &'s Scan, extent: &Extent, order: Order) -> Entries<'s> {
        let source = match extent.top {
            Some(_) => Source::Chosen(rows(scan, extent).0.into_iter()),
            None => Source::Walk(Walk::new(scan, extent, order)),
        };
        let errors = scan.errors.iter().map(|it| (&*it.path, &*it.message)).collect();
        Entries { source, errors, path: Vec::new(), above: Vec::new(), next: 0 }
    }

    /// The bytes of the path of the entry that was returned last.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }
}

impl<'s> Iterator for Entries<'s> {
    type Item = Entry<'s>;

    fn next(&mut self) -> Option<Entry<'s>> {
        let (node, depth) = match &mut self.source {
            Source::Walk(walk) => walk.next()?,
            Source::Chosen(rows) => rows.next().map(|row| (row.node, row.depth))?,
        };
        self.above.truncate(depth);
        let parent = self.above.last().copied();
        self.path.truncate(parent.map_or(0, |(_, length)| length));
        let separator = MAIN_SEPARATOR as u8;
        if self.path.last().is_some_and(|&last| last != separator) {
            self.path.push(separator);
        }
        self.path.extend_from_slice(node.name());
        self.above.push((self.next, self.path.len()));
        self.next += 1;
        // Most scans have no errors: then no path is hashed.
        let error = if self.errors.is_empty() { None } else { self.errors.get(&*self.path) };
        Some(Entry { node, depth, parent: parent.map(|(number, _)| number), error: error.copied() })
    }
}

/// Depth first, without recursion.
struct Walk<'s> {
    extent: Extent,
    order: Order,
    levels: Vec<vec::IntoIter<Node<'s>>>,
}

impl<'s> Walk<'s> {
    fn new(scan: &'s Scan, extent: &Extent, order: Order) -> Walk<'s> {
        let roots: Vec<_> = scan.tree.roots().collect();
        Walk { extent: *extent, order, levels: vec![roots.into_iter()] }
    }

    fn next(&mut self) -> Option<(Node<'s>, usize)> {
        loop {
            let depth = self.levels.len().checked_sub(1)?;
            let Some(node) = self.levels[depth].next() else {
                self.levels.pop();
                continue;
            };
            if node.kind() == Kind::Directory && self.extent.depth.is_none_or(|limit| depth < limit)
            {
                self.levels.push(self.inside(&node).into_iter());
            }
            return Some((node, depth));
        }
    }

    fn inside(&self, directory: &Node<'s>) -> Vec<Node<'s>> {
        let mut inside = self.extent.inside(directory);
        match self.order {
            Order::Name => inside.sort_unstable_by_key(Node::name),
            Order::Size => inside
                .sort_by_cached_key(|node| (Reverse(self.extent.measure.of(node)), node.name())),
        }
        inside
    }
}
