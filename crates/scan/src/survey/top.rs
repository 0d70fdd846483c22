//! The foremost of many. Candidates that equal the last of them, by name too, wait until their paths
//! are known; the others take no space.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Scan;
use crate::visit::{Seen, Within};

/// An entry that may be listed.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) key: i128,
    name: Box<[u8]>,
    pub(super) apparent: u64,
    pub(super) disk: u64,
    pub(super) modified: i64,
    within: Within,
}

impl Candidate {
    /// The greatest come first; of equal keys the first names come first.
    fn rank(&self) -> (i128, Reverse<&[u8]>) {
        (self.key, Reverse(&self.name))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// The entries with the greatest keys, and how many there were.
#[derive(Debug)]
pub(super) struct Top {
    limit: usize,
    heap: BinaryHeap<Reverse<Candidate>>,
    /// For these there was no room, and they equal the least of those for which there was.
    ties: Vec<Candidate>,
    pub(super) seen: u64,
    pub(super) apparent: u64,
    pub(super) disk: u64,
}

impl Top {
    pub(super) fn new(limit: Option<usize>) -> Top {
        let limit = limit.unwrap_or(usize::MAX);
        Top { limit, heap: BinaryHeap::new(), ties: Vec::new(), seen: 0, apparent: 0, disk: 0 }
    }

    /// Takes an entry in time logarithmic in the limit; most are turned away in constant time.
    pub(super) fn offer(&mut self, key: i128, seen: &Seen<'_>) {
        self.seen += 1;
        self.apparent = self.apparent.saturating_add(seen.apparent());
        self.disk = self.disk.saturating_add(seen.disk());
        let full = self.heap.len() >= self.limit;
        let rank = (key, Reverse(seen.name));
        if full && self.heap.peek().is_none_or(|Reverse(least)| rank < least.rank()) {
            return;
        }
        self.put(Candidate {
            key,
            name: seen.name.into(),
            apparent: seen.apparent(),
            disk: seen.disk(),
            modified: seen.meta.modified,
            within: seen.within,
        });
    }

    fn put(&mut self, candidate: Candidate) {
        self.heap.push(Reverse(candidate));
        if self.heap.len() <= self.limit {
            return;
        }
        let (worst, least) = (self.heap.pop(), self.heap.peek());
        if let (Some(worst), Some(least)) = (worst, least) {
            if self.ties.first().is_some_and(|tie| *tie != least.0) {
                self.ties.clear();
            }
            if worst == *least {
                self.ties.push(worst.0);
            }
        }
    }

    pub(super) fn merge(&mut self, other: Top) {
        self.seen += other.seen;
        self.apparent = self.apparent.saturating_add(other.apparent);
        self.disk = self.disk.saturating_add(other.disk);
        let kept = other.heap.into_iter().map(|Reverse(it)| it);
        kept.chain(other.ties).for_each(|candidate| self.put(candidate));
    }

    /// The candidates, the greatest first, and their paths; and how many are left out. Of equal keys
    /// and names the first paths come first.
    pub(super) fn finish(self, scan: &Scan) -> (Vec<(Candidate, Vec<u8>)>, u64) {
        let left_out = self.seen - self.heap.len() as u64;
        let kept = self.heap.into_iter().map(|Reverse(it)| it).chain(self.ties);
        let with_path = |it: Candidate| {
            let path = scan.tree.path_within(it.within, &it.name);
            (it, path)
        };
        let mut found: Vec<_> = kept.map(with_path).collect();
        found.sort_by(|(a, a_path), (b, b_path)| b.cmp(a).then_with(|| a_path.cmp(b_path)));
        found.truncate(self.limit);
        (found, left_out)
    }
}
