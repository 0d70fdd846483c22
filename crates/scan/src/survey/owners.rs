//! Entries by the user that owns them.

use std::any::Any;
use std::collections::HashMap;

use super::section::{APPARENT, Column, DISK, ENTRIES};
use super::tally::{Tally, merge, ranked};
use super::{Cell, Collector, Report, Section, Sources, other};
use crate::visit::Seen;

#[derive(Default)]
pub(super) struct Owners(HashMap<u32, Tally>);

impl Collector for Owners {
    fn entry(&mut self, seen: &Seen<'_>) {
        self.0.entry(seen.meta.owner).or_default().count(seen);
    }

    fn merge(&mut self, others: Box<dyn Any>) {
        merge(&mut self.0, other::<Self>(others).0);
    }

    fn finish(self: Box<Self>, sources: &Sources<'_>) -> Section {
        const COLUMNS: &[Column] =
            &[ENTRIES, DISK, APPARENT, Column::count("uid", "uid"), Column::text("owner", "owner")];
        let (found, left_out) = ranked(self.0, sources.settings);
        let row = |(uid, tally): &(u32, Tally)| {
            let name = sources.settings.owners.get(uid).cloned().unwrap_or_default();
            let who = [Cell::Count(u64::from(*uid)), Cell::Text(name.into())];
            tally.cells().into_iter().chain(who).collect()
        };
        let rows = found.iter().map(row).collect();
        Section { left_out, ..Section::complete(Report::Owners, COLUMNS, rows) }
    }
}
