//! Files of equal content, as a table; how they are found is in [`crate::duplicates`].

use std::any::Any;

use super::section::{APPARENT, DISK, PATH};
use super::{Cell, Collector, Column, Report, Section, Sources, other};
use crate::Kind;
use crate::duplicates::{Candidates, Group};
use crate::visit::Seen;

const COLUMNS: &[Column] = &[
    Column::count("group", "group"),
    Column::count("freed_bytes", "frees"),
    APPARENT,
    DISK,
    Column::count("shared_bytes", "shared"),
    PATH,
];

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
        let (mut rows, mut sum) = (Vec::new(), Sum::default());
        (sources.compare)(self.0, &mut |group, each| {
            sum.add(&group);
            if sum.groups <= limit {
                rows.extend(rows_of(sum.groups, &group));
                each(&group);
            }
        });
        sum.section(rows, limit)
    }
}

/// The sums of groups.
#[derive(Default)]
struct Sum {
    groups: usize,
    files: u64,
    freed: u64,
    length: u64,
}

impl Sum {
    fn add(&mut self, group: &Group) {
        let copies = group.copies.len() as u64 - 1;
        self.groups += 1;
        self.files += copies;
        self.freed = self.freed.saturating_add(group.freed_bytes);
        self.length = self.length.saturating_add(group.apparent_bytes.saturating_mul(copies));
    }

    fn section(self, rows: Vec<Vec<Cell>>, limit: usize) -> Section {
        Section {
            left_out: self.groups.saturating_sub(limit) as u64,
            totals: Some([Cell::Bytes(self.freed), Cell::Bytes(self.length)]),
            files: self.files,
            ..Section::complete(Report::Duplicates, COLUMNS, rows)
        }
    }
}

impl Section {
    /// The report on groups of equal files, which are put in its order: the first of them have
    /// rows, and all of them count.
    pub fn of_groups(groups: &mut [Group], top: Option<usize>) -> Section {
        groups.sort_by(|a, b| b.rank().cmp(&a.rank()));
        let (mut rows, mut sum, limit) = (Vec::new(), Sum::default(), top.unwrap_or(usize::MAX));
        for group in groups {
            sum.add(group);
            if sum.groups <= limit {
                rows.extend(rows_of(sum.groups, group));
            }
        }
        sum.section(rows, limit)
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
            Cell::Bytes(copy.shared_bytes),
            Cell::Path(copy.path.clone()),
        ]
    })
}
