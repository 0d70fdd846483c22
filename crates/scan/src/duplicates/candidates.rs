//! The files of a walk that may have twins.

use std::cmp::Reverse;
use std::ffi::CStr;
use std::ops::Range;

use super::all_but_one;
use crate::report::Measure;
use crate::visit::{Seen, Within};

/// Files that are not empty, and their names.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// Names, each ended by a NUL.
    pub(super) names: Vec<u8>,
    pub(super) all: Vec<Candidate>,
}

/// A file that may have a twin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) apparent: u64,
    pub(super) disk: u64,
    pub(super) within: Within,
    /// Where its name begins.
    name: usize,
}

impl Candidate {
    pub(super) fn name(self, names: &[u8]) -> &CStr {
        CStr::from_bytes_until_nul(&names[self.name..]).expect("each name was kept with its NUL")
    }

    pub(super) fn size(&self, measure: Measure) -> u64 {
        if measure == Measure::Apparent { self.apparent } else { self.disk }
    }
}

/// Files of one length, at least two.
#[derive(Debug)]
pub(super) struct Set {
    /// The set's files among the candidates.
    pub(super) range: Range<usize>,
    /// What can be freed at most.
    pub(super) bound: u64,
    /// The bytes on disk of all of them.
    pub(super) bytes: u64,
}

impl Candidates {
    /// Keeps a file. Amortised constant time.
    pub(crate) fn keep(&mut self, seen: &Seen<'_>) {
        let name = self.names.len();
        self.names.extend_from_slice(seen.name);
        self.names.push(0);
        let (apparent, disk) = (seen.meta.apparent, seen.meta.disk);
        self.all.push(Candidate { apparent, disk, within: seen.within, name });
    }

    /// Takes over what another worker has kept.
    pub(crate) fn merge(&mut self, other: Candidates) {
        let before = self.names.len();
        self.names.extend_from_slice(&other.names);
        let moved = |it: Candidate| Candidate { name: it.name + before, ..it };
        self.all.extend(other.all.into_iter().map(moved));
    }

    /// Sorts the candidates into sets of one length each, that of the greatest bound first; forgets
    /// files without company.
    pub(super) fn sets(&mut self, measure: Measure) -> Vec<Set> {
        self.all.sort_unstable_by_key(|file| (Reverse(file.apparent), file.name));
        let mut alone = vec![true; self.all.len()];
        for (at, pair) in self.all.windows(2).enumerate() {
            if pair[0].apparent == pair[1].apparent {
                (alone[at], alone[at + 1]) = (false, false);
            }
        }
        let mut alone = alone.into_iter();
        self.all.retain(|_| alone.next() == Some(false));
        self.all.shrink_to_fit();
        let mut first = 0;
        let set = |files: &[Candidate]| {
            let range = first..first + files.len();
            first = range.end;
            let bytes = files.iter().map(|file| file.disk).fold(0, u64::saturating_add);
            let bound = all_but_one(files.iter().map(|file| file.size(measure)));
            Set { range, bound, bytes }
        };
        let mut sets: Vec<Set> =
            self.all.chunk_by(|a, b| a.apparent == b.apparent).map(set).collect();
        sets.sort_by_key(|set| Reverse(set.bound));
        sets
    }
}
