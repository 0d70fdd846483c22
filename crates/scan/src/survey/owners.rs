//! Entries by the user that owns them.

use std::any::Any;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::section::{APPARENT, Column, DISK, ENTRIES};
use super::tally::{Tally, merge, ranked};
use super::{Cell, Collector, Report, Section, Settings, Sources, other};
use crate::sys::Meta;
use crate::visit::Seen;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Owners(HashMap<u32, Tally>);

impl Owners {
    pub(super) fn count(&mut self, meta: &Meta, bears: bool) {
        self.0.entry(meta.owner).or_default().add(&Tally::of(meta, bears));
    }

    pub(super) fn bear(&mut self, meta: &Meta) {
        self.0.entry(meta.owner).or_default().add(&Tally::size(meta));
    }

    pub(super) fn add(&mut self, others: &Owners) {
        merge(&mut self.0, others.0.clone());
    }

    pub(super) fn section(self, settings: &Settings) -> Section {
        const COLUMNS: &[Column] =
            &[ENTRIES, DISK, APPARENT, Column::count("uid", "uid"), Column::text("owner", "owner")];
        let (found, left_out) = ranked(self.0, settings);
        let row = |(uid, tally): &(u32, Tally)| {
            let known = settings.owners.get(uid).cloned();
            let name = known.or_else(|| settings.name_of?(*uid)).unwrap_or_default();
            let who = if cfg!(windows) {
                [Cell::None, Cell::Text("not asked for on Windows".into())]
            } else {
                [Cell::Count(u64::from(*uid)), Cell::Text(name.into())]
            };
            tally.cells().into_iter().chain(who).collect()
        };
        let rows = found.iter().map(row).collect();
        Section { left_out, ..Section::complete(Report::Owners, COLUMNS, rows) }
    }
}

impl Collector for Owners {
    fn entry(&mut self, seen: &Seen<'_>) {
        self.count(seen.meta, seen.bears);
    }

    fn merge(&mut self, others: Box<dyn Any>) {
        merge(&mut self.0, other::<Self>(others).0);
    }

    fn finish(self: Box<Self>, sources: &Sources<'_>) -> Section {
        self.section(sources.settings)
    }
}
