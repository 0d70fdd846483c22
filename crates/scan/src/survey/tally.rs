//! Counts and bytes by some key.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use super::{Cell, Settings};
use crate::report::Measure;
use crate::sys::Meta;
use crate::visit::Seen;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) entries: u64,
    pub(super) apparent: u64,
    pub(super) disk: u64,
}

impl Tally {
    pub(super) fn count(&mut self, seen: &Seen<'_>) {
        self.add(&Tally { entries: 1, apparent: seen.apparent(), disk: seen.disk() });
    }

    /// An entry, and its size if it bears it.
    pub(super) fn of(meta: &Meta, bears: bool) -> Tally {
        Tally { entries: 1, ..if bears { Tally::size(meta) } else { Tally::default() } }
    }

    /// A size, of an entry that was counted before.
    pub(super) fn size(meta: &Meta) -> Tally {
        Tally { entries: 0, apparent: meta.apparent, disk: meta.disk }
    }

    pub(super) fn add(&mut self, other: &Tally) {
        self.entries += other.entries;
        self.apparent = self.apparent.saturating_add(other.apparent);
        self.disk = self.disk.saturating_add(other.disk);
    }

    pub(super) fn cells(&self) -> [Cell; 3] {
        [Cell::Count(self.entries), Cell::Bytes(self.disk), Cell::Bytes(self.apparent)]
    }

    fn value(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Disk => self.disk,
            Measure::Apparent => self.apparent,
            Measure::Entries => self.entries,
        }
    }
}

/// Adds up the counts of two workers.
pub(super) fn merge<K: Eq + Hash>(into: &mut HashMap<K, Tally>, from: HashMap<K, Tally>) {
    for (key, tally) in from {
        into.entry(key).or_default().add(&tally);
    }
}

/// The largest, and how many are left out.
pub(super) fn ranked<K: Ord>(of: HashMap<K, Tally>, settings: &Settings) -> (Vec<(K, Tally)>, u64) {
    let mut all: Vec<(K, Tally)> = of.into_iter().collect();
    all.sort_by(|(a, x), (b, y)| {
        y.value(settings.measure).cmp(&x.value(settings.measure)).then_with(|| a.cmp(b))
    });
    let count = all.len();
    all.truncate(settings.top.unwrap_or(usize::MAX));
    let left_out = (count - all.len()) as u64;
    (all, left_out)
}
