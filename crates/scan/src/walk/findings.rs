//! The findings of a worker, which are its own until the walk is over.

use std::collections::HashMap;
use std::io;

use super::family::Task;
use crate::Totals;
use crate::sys::Sys;
use crate::tree::{Alias, Arena, HardLink, Id};

/// Something that could not be read.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) entry: Id,
    pub(crate) parent: Id,
    pub(crate) doing: &'static str,
    pub(crate) error: io::Error,
    /// Its path, where the tree has no place for it.
    pub(crate) path: Option<Vec<u8>>,
}

/// The sums of entries that a directory of the tree has no room for: entries found when there was
/// no memory for more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summed {
    pub(crate) apparent: u64,
    pub(crate) disk: u64,
    pub(crate) entries: u64,
}

/// What one worker has found.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) arena: Arena,
    pub(crate) links: Vec<HardLink>,
    pub(crate) aliases: Vec<Alias>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) totals: Totals,
    /// By listing, which may be another worker's.
    pub(crate) summed: HashMap<Id, Summed>,
    /// How many directories were summed up.
    pub(crate) without_entry: u64,
    /// The listing of each root that this worker visited.
    pub(crate) listings: Vec<(usize, Id)>,
    pub(crate) interrupted: bool,
}

impl Findings {
    pub(crate) fn new(arena: u16, keep_facts: bool) -> Findings {
        Findings {
            arena: Arena::new(arena, keep_facts),
            links: Vec::new(),
            aliases: Vec::new(),
            failures: Vec::new(),
            totals: Totals::default(),
            summed: HashMap::new(),
            without_entry: 0,
            listings: Vec::new(),
            interrupted: false,
        }
    }

    /// Adds to what a directory holds beside its entries.
    pub(super) fn sum_up(&mut self, listing: Id, found: Summed) {
        let sum = self.summed.entry(listing).or_default();
        sum.apparent = sum.apparent.saturating_add(found.apparent);
        sum.disk = sum.disk.saturating_add(found.disk);
        sum.entries += found.entries;
    }

    #[cold]
    pub(super) fn fail<S: Sys>(
        &mut self,
        task: &Task<'_, S>,
        doing: &'static str,
        error: io::Error,
        path: Option<Vec<u8>>,
    ) {
        let (entry, parent) = (task.entry(), task.parent());
        self.failures.push(Failure { entry, parent, doing, error, path });
    }
}
