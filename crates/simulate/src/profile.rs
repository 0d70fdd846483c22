//! What cost how much: by the place in the source and by role.

use std::collections::HashMap;
use std::panic::Location;

use crate::lines::Fetch;

/// A place in the source, and the role of the thread that was there.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Where the word was accessed.
    pub place: &'static Location<'static>,
    /// The thread's role.
    pub role: &'static str,
    /// The threads of that role spent this on it, beyond what a hit takes, in picoseconds.
    pub cost: Cost,
}

/// What accesses cost, and how many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Time that threads waited, in picoseconds.
    pub waited: u64,
    /// The part of `waited` in a queue for the line.
    pub queued: u64,
    /// Lines that came from another cache, or whose copies there had to go.
    pub transfers: u64,
    /// Lines that came from memory.
    pub fills: u64,
}

/// Something that a program counts, by role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// What was counted.
    pub what: &'static str,
    /// The role of the threads that counted it.
    pub role: &'static str,
    /// How often.
    pub times: u64,
}

impl Cost {
    pub(crate) fn add(&mut self, other: Cost) {
        self.waited += other.waited;
        self.queued += other.queued;
        self.transfers += other.transfers;
        self.fills += other.fills;
    }

    pub(crate) fn of(fetch: Fetch) -> Cost {
        Cost {
            waited: 0,
            queued: fetch.queued,
            transfers: u64::from(fetch.transfer),
            fills: u64::from(fetch.fill),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Profile {
    sites: HashMap<(usize, usize), Site>,
    counts: Vec<Count>,
}

impl Profile {
    /// Adds to a site's cost.
    pub(crate) fn charge(
        &mut self,
        place: &'static Location<'static>,
        role: &'static str,
        cost: Cost,
    ) {
        let key = (std::ptr::from_ref(place).addr(), role.as_ptr().addr());
        let site = self.sites.entry(key).or_insert(Site { place, role, cost: Cost::default() });
        site.cost.add(cost);
    }

    pub(crate) fn count(&mut self, what: &'static str, role: &'static str, times: u64) {
        match self.counts.iter_mut().find(|it| it.what == what && it.role == role) {
            Some(found) => found.times += times,
            None => self.counts.push(Count { what, role, times }),
        }
    }

    /// The sites, the costliest first, and the counts in the order in which they were made.
    pub(crate) fn finish(self) -> (Vec<Site>, Vec<Count>) {
        let mut sites: Vec<Site> = self.sites.into_values().collect();
        sites.sort_by_key(|site| {
            let place = site.place;
            let at = (place.file(), place.line(), place.column(), site.role);
            (std::cmp::Reverse((site.cost.waited, site.cost.transfers)), at)
        });
        (sites, self.counts)
    }
}
