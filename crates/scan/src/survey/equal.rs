//! Files of equal content, as a table; how they are found is in [`crate::duplicates`].

use std::any::Any;

use super::section::{APPARENT, DISK, PATH};
use super::{Cell, Collector, Column, Report, Section, Sources, other};
use crate::Kind;
use crate::duplicates::{Candidates, Group};
use crate::visit::Seen;

const COLUMNS: &[Column] =
    &[Column::count("group", "group"), Column::count("freed_bytes", "frees"), APPARENT, DISK, PATH];

#[derive(Default)]
pub(super) struct Duplicates(Candidates);

impl Collector for Duplicates {
    fn entry(&mut self, seen: &Seen<'_>) {
        if seen.meta.kind == Kind::File && seen.bears && seen.meta.apparent > 0 {
            self.0.keep(seen);
        }
    }

    fn merge(&mut self, others: Box<dyn Any>) {
        self.0.merge(other::<Self>(others).0);
    }

    fn finish(self: Box<Self>, sources: &Sources<'_>) -> Section {
        let limit = sources.settings.top.unwrap_or(usize::MAX);
        let (mut rows, mut groups, mut files) = (Vec::new(), 0, 0);
        let (mut freed, mut length) = (0_u64, 0_u64);
        (sources.compare)(self.0, &mut |group, each| {
            groups += 1;
            files += group.copies.len() as u64 - 1;
            freed = freed.saturating_add(group.freed_bytes);
            let copies = group.copies.len() as u64 - 1;
            length = length.saturating_add(group.apparent_bytes.saturating_mul(copies));
            if groups <= limit {
                rows.extend(rows_of(groups, &group));
                each(&group);
            }
        });
        Section {
            left_out: groups.saturating_sub(limit) as u64,
            totals: Some([Cell::Bytes(freed), Cell::Bytes(length)]),
            files,
            ..Section::complete(Report::Duplicates, COLUMNS, rows)
        }
    }
}

/// A row for each file; what the group frees stands at the first.
fn rows_of(number: usize, group: &Group) -> impl Iterator<Item = Vec<Cell>> {
    group.copies.iter().enumerate().map(move |(at, copy)| {
        let freed = if at == 0 { Cell::Bytes(group.freed_bytes) } else { Cell::None };
        vec![
            Cell::Count(number as u64),
            freed,
            Cell::Bytes(group.apparent_bytes),
            Cell::Bytes(copy.disk_bytes),
            Cell::Path(copy.path.clone()),
        ]
    })
}
