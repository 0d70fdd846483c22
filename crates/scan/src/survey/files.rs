//! Lists of files: the largest, the newest, the oldest, the empty ones.

use std::any::Any;

use super::section::{APPARENT, DISK, MODIFIED, PATH};
use super::top::{Candidate, Top};
use super::{Cell, Collector, Column, Report, Section, Settings, Sources, other};
use crate::Kind;
use crate::report::Measure;
use crate::visit::Seen;

const COLUMNS: &[Column] = &[DISK, APPARENT, MODIFIED, PATH];

fn is_file(seen: &Seen<'_>) -> bool {
    seen.meta.kind == Kind::File && seen.bears
}

fn section(report: Report, top: Top, sources: &Sources<'_>) -> Section {
    let totals = [top.disk, top.apparent].map(Cell::Bytes);
    let (found, left_out) = top.finish(sources.scan);
    let row = |(it, path): (Candidate, Vec<u8>)| {
        let [disk, apparent] = [it.disk, it.apparent].map(Cell::Bytes);
        vec![disk, apparent, Cell::Time(it.modified), Cell::Path(path)]
    };
    let rows = found.into_iter().map(row).collect();
    Section { left_out, totals: Some(totals), ..Section::complete(report, COLUMNS, rows) }
}

macro_rules! top_of_files {
    ($name:ident, $report:expr) => {
        impl Collector for $name {
            fn entry(&mut self, seen: &Seen<'_>) {
                if is_file(seen) {
                    if let Some(key) = self.key(seen) {
                        self.top.offer(key, seen);
                    }
                }
            }

            fn merge(&mut self, others: Box<dyn Any>) {
                self.top.merge(other::<Self>(others).top);
            }

            fn finish(self: Box<Self>, sources: &Sources<'_>) -> Section {
                section($report, self.top, sources)
            }
        }
    };
}

pub(super) struct Largest {
    top: Top,
    measure: Measure,
}

impl Largest {
    pub(super) fn new(settings: &Settings) -> Largest {
        Largest { top: Top::new(settings.top), measure: settings.measure }
    }

    #[expect(clippy::unnecessary_wraps, reason = "the other reports leave files out")]
    fn key(&self, seen: &Seen<'_>) -> Option<i128> {
        Some(i128::from(if self.measure == Measure::Apparent {
            seen.apparent()
        } else {
            seen.disk()
        }))
    }
}

top_of_files!(Largest, Report::LargestFiles);

pub(super) struct Recent {
    top: Top,
    since: i64,
}

impl Recent {
    pub(super) fn new(settings: &Settings) -> Recent {
        let since = settings.now.saturating_sub(settings.recent);
        Recent { top: Top::new(settings.top), since }
    }

    fn key(&self, seen: &Seen<'_>) -> Option<i128> {
        let modified = seen.meta.modified;
        (modified >= self.since).then_some(i128::from(modified))
    }
}

top_of_files!(Recent, Report::Recent);

pub(super) struct Oldest {
    top: Top,
}

impl Oldest {
    pub(super) fn new(settings: &Settings) -> Oldest {
        Oldest { top: Top::new(settings.top) }
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as the other reports do it")]
    fn key(&self, seen: &Seen<'_>) -> Option<i128> {
        Some(-i128::from(seen.meta.modified))
    }
}

top_of_files!(Oldest, Report::Oldest);

pub(super) struct Empty {
    top: Top,
}

impl Empty {
    pub(super) fn new(settings: &Settings) -> Empty {
        Empty { top: Top::new(settings.top) }
    }

    #[expect(clippy::unused_self, reason = "as the other reports do it")]
    fn key(&self, seen: &Seen<'_>) -> Option<i128> {
        (seen.meta.apparent == 0).then_some(0)
    }
}

top_of_files!(Empty, Report::EmptyFiles);
