//! The foremost of many, in constant space.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::visit::{Seen, Within};

/// An entry that may be listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// The greatest come first.
    pub(super) key: i128,
    /// Of equal keys the first names come first.
    pub(super) name: Reverse<Box<[u8]>>,
    pub(super) apparent: u64,
    pub(super) disk: u64,
    pub(super) modified: i64,
    within: Place,
}

/// Compares as equal, so that it decides nothing.
#[derive(Clone, Copy, Debug)]
struct Place(Within);

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl Eq for Place {}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, _: &Place) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Candidate {
    pub(super) fn path(&self, scan: &crate::Scan) -> Vec<u8> {
        scan.tree.path_within(self.within.0, &self.name.0)
    }
}

/// The entries with the greatest keys, and how many there were.
#[derive(Debug)]
pub(super) struct Top {
    limit: usize,
    heap: BinaryHeap<Reverse<Candidate>>,
    pub(super) seen: u64,
    pub(super) apparent: u64,
    pub(super) disk: u64,
}

impl Top {
    pub(super) fn new(limit: Option<usize>) -> Top {
        let limit = limit.unwrap_or(usize::MAX);
        Top { limit, heap: BinaryHeap::new(), seen: 0, apparent: 0, disk: 0 }
    }

    /// Takes an entry in time logarithmic in the limit; most are turned away in constant time.
    pub(super) fn offer(&mut self, key: i128, seen: &Seen<'_>) {
        self.seen += 1;
        self.apparent = self.apparent.saturating_add(seen.apparent());
        self.disk = self.disk.saturating_add(seen.disk());
        let full = self.heap.len() >= self.limit;
        if full && self.heap.peek().is_none_or(|Reverse(least)| key < least.key) {
            return;
        }
        self.put(Candidate {
            key,
            name: Reverse(seen.name.into()),
            apparent: seen.apparent(),
            disk: seen.disk(),
            modified: seen.meta.modified,
            within: Place(seen.within),
        });
    }

    fn put(&mut self, candidate: Candidate) {
        self.heap.push(Reverse(candidate));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    pub(super) fn merge(&mut self, other: Top) {
        self.seen += other.seen;
        self.apparent = self.apparent.saturating_add(other.apparent);
        self.disk = self.disk.saturating_add(other.disk);
        for Reverse(candidate) in other.heap {
            self.put(candidate);
        }
    }

    /// The candidates, the greatest first, and how many are left out.
    pub(super) fn finish(self) -> (Vec<Candidate>, u64) {
        let left_out = self.seen - self.heap.len() as u64;
        (self.heap.into_sorted_vec().into_iter().map(|Reverse(it)| it).collect(), left_out)
    }
}
