//! A choice of entries: by name, by kind, by size, by time, by ignore files; and directories that
//! are left out.
//!
//! An *excluded* entry is not there: it is not counted, a directory is not read, and a file is not
//! asked about. Of what is left, a *selection* (by included names, kinds, sizes, times, owners)
//! says which files, links and others count. Directories are walked all the same, and with a
//! selection they have no size of their own. The given paths themselves are always scanned.

use std::ffi::CStr;

use crate::Kind;
use crate::sys::Meta;

mod caches;
mod glob;
mod ignored;
mod patterns;
mod wildmatch;

pub(crate) use caches::is_cache;
pub(crate) use ignored::Rules;
pub(crate) use patterns::absolute;
pub use patterns::{PatternError, Patterns};

/// One of an entry's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Time {
    /// When its content was last changed.
    #[default]
    Modified,
    /// When it was last read.
    Accessed,
    /// When it, its owner or its mode was last changed.
    Changed,
}

impl Time {
    fn of(self, meta: &Meta) -> i64 {
        match self {
            Time::Modified => meta.modified,
            Time::Accessed => meta.accessed,
            Time::Changed => meta.changed,
        }
    }
}

/// A choice of the entries that count. The default is all of them.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// What matches is not there.
    pub exclude: Patterns,
    /// Only what matches counts, if there is any pattern.
    pub include: Patterns,
    /// Only these kinds count, if there are any.
    pub kinds: Vec<Kind>,
    /// Only entries of at least this length count.
    pub at_least: Option<u64>,
    /// Only entries of at most this length count.
    pub at_most: Option<u64>,
    /// The time of an entry that the next two are about.
    pub time: Time,
    /// Only entries of this time or a later one count, in seconds since 1970.
    pub since: Option<i64>,
    /// Only entries of an earlier time count.
    pub before: Option<i64>,
    /// Only entries of these users count, if there are any.
    pub owners: Vec<u32>,
    /// Only entries of these groups count, if there are any.
    pub groups: Vec<u32>,
    /// Whether `.gitignore` and `.ignore` files at and below the given paths exclude what they
    /// name.
    pub ignore_files: bool,
    /// Whether directories with a valid `CACHEDIR.TAG` are not there.
    pub exclude_caches: bool,
    /// Whether pseudo file systems (`/proc`, `/sys` and the like) below a given path are not
    /// there.
    pub exclude_pseudo: bool,
}

impl Choice {
    /// Whether it says which files, links and others count, and not only what is not there.
    pub fn selects(&self) -> bool {
        !self.include.is_empty()
            || !self.kinds.is_empty()
            || [self.at_least, self.at_most].iter().any(Option::is_some)
            || [self.since, self.before].iter().any(Option::is_some)
            || !self.owners.is_empty()
            || !self.groups.is_empty()
    }

    /// Whether directories count.
    pub(crate) fn counts_directories(&self) -> bool {
        !self.selects() || self.kinds.contains(&Kind::Directory)
    }

    /// Whether it asks for the path below the root.
    pub(crate) fn wants_paths(&self) -> bool {
        self.ignore_files || self.exclude.wants_paths() || self.include.wants_paths()
    }

    /// Whether it asks for the [`absolute`] paths of the roots.
    pub(crate) fn wants_absolute(&self) -> bool {
        self.exclude.wants_absolute() || self.include.wants_absolute()
    }

    /// Whether an entry, by its name, its path below the root, and what is above that, is not
    /// there.
    pub(crate) fn excludes(&self, name: &CStr, path: &[u8], above: &[Vec<u8>]) -> bool {
        self.exclude.matches(name.to_bytes(), path, above)
    }

    /// Whether something that is no directory may count, by what is known without asking for more.
    pub(crate) fn may_count(
        &self,
        name: &CStr,
        path: &[u8],
        above: &[Vec<u8>],
        kind: Kind,
    ) -> bool {
        let included =
            || self.include.is_empty() || self.include.matches(name.to_bytes(), path, above);
        included() && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }

    /// Whether something that is no directory counts, that [may](Self::may_count).
    pub(crate) fn counts(&self, meta: &Meta) -> bool {
        self.at_least.is_none_or(|least| meta.apparent >= least)
            && self.at_most.is_none_or(|most| meta.apparent <= most)
            && self.since.is_none_or(|since| self.time.of(meta) >= since)
            && self.before.is_none_or(|before| self.time.of(meta) < before)
            && (self.owners.is_empty() || self.owners.contains(&meta.owner))
            && (self.groups.is_empty() || self.groups.contains(&meta.group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_and_groups_are_not_taken_for_each_other() {
        let meta = Meta { owner: 1, group: 2, ..Meta::of(Kind::File) };
        for (owners, groups, counts) in
            [(&[1][..], &[][..], true), (&[2], &[], false), (&[], &[2], true), (&[], &[1], false)]
        {
            let (owners, groups) = (owners.to_vec(), groups.to_vec());
            let choice = Choice { owners, groups, ..Choice::default() };
            assert_eq!(choice.counts(&meta), counts, "{choice:?}");
        }
    }
}
