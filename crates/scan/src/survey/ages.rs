//! Files by how long ago they were changed.

use std::any::Any;

use serde::{Deserialize, Serialize};

use super::section::{APPARENT, Column, DISK, FILES};
use super::tally::Tally;
use super::{Cell, Collector, Report, Section, Settings, Sources, other};
use crate::Kind;
use crate::sys::Meta;
use crate::visit::Seen;

const DAY: i64 = 24 * 60 * 60;

/// The age in seconds at which each group ends, and its name. A month is 30 days and a year 365.
const AGES: [(i64, &str); 9] = [
    (0, "in the future"),
    (60 * 60, "up to an hour"),
    (DAY, "up to a day"),
    (7 * DAY, "up to a week"),
    (30 * DAY, "up to a month"),
    (180 * DAY, "up to half a year"),
    (365 * DAY, "up to a year"),
    (5 * 365 * DAY, "up to five years"),
    (i64::MAX, "older"),
];

const COLUMNS: &[Column] = &[FILES, DISK, APPARENT, Column::text("age", "changed")];

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ages {
    now: i64,
    groups: [Tally; AGES.len()],
}

impl Ages {
    pub(super) fn new(settings: &Settings) -> Ages {
        Ages::to(settings.now)
    }

    pub(super) fn to(now: i64) -> Ages {
        Ages { now, groups: Default::default() }
    }

    pub(super) fn count(&mut self, meta: &Meta, bears: bool) {
        if meta.kind == Kind::File && bears {
            let age = self.now.saturating_sub(meta.modified);
            self.groups[group(age)].add(&Tally::of(meta, true));
        }
    }

    pub(super) fn add(&mut self, others: &Ages) {
        self.groups.iter_mut().zip(&others.groups).for_each(|(into, from)| into.add(from));
    }

    pub(super) fn section(&self) -> Section {
        let groups = self.groups.iter().zip(AGES).filter(|(tally, _)| tally.entries > 0);
        let row = |(tally, (_, name)): (&Tally, (i64, &'static str))| {
            tally.cells().into_iter().chain([Cell::Text(name.into())]).collect()
        };
        Section::complete(Report::ByAge, COLUMNS, groups.map(row).collect())
    }
}

fn group(age: i64) -> usize {
    if age < 0 {
        return 0;
    }
    AGES.iter().skip(1).position(|&(end, _)| age < end).map_or(AGES.len() - 1, |at| at + 1)
}

impl Collector for Ages {
    fn entry(&mut self, seen: &Seen<'_>) {
        self.count(seen.meta, seen.bears);
    }

    fn merge(&mut self, others: Box<dyn Any>) {
        self.add(&other::<Self>(others));
    }

    fn finish(self: Box<Self>, _: &Sources<'_>) -> Section {
        self.section()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_age_has_its_group() {
        for (age, name) in [
            (i64::MIN, "in the future"),
            (-1, "in the future"),
            (0, "up to an hour"),
            (3599, "up to an hour"),
            (3600, "up to a day"),
            (DAY, "up to a week"),
            (364 * DAY, "up to a year"),
            (5 * 365 * DAY, "older"),
            (i64::MAX, "older"),
        ] {
            assert_eq!(AGES[group(age)].1, name, "{age}");
        }
    }
}
