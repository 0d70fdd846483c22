//! Symbolic links; broken links come first.

use std::any::Any;

use super::section::{Column, PATH};
use super::{Cell, Collector, Report, Section, Sources, other};
use crate::Kind;
use crate::sys::path_of;
use crate::visit::{Seen, Within};

/// Names and places; a link is looked at when the walk is over.
#[derive(Default)]
pub(super) struct Symlinks(Vec<(Box<[u8]>, Within)>);

impl Collector for Symlinks {
    fn entry(&mut self, seen: &Seen<'_>) {
        if seen.meta.kind == Kind::Symlink {
            self.0.push((seen.name.into(), seen.within));
        }
    }

    fn merge(&mut self, others: Box<dyn Any>) {
        self.0.extend(other::<Self>(others).0);
    }

    fn finish(self: Box<Self>, sources: &Sources<'_>) -> Section {
        const COLUMNS: &[Column] =
            &[Column::text("state", "state"), PATH, Column::path("target", "target")];
        let mut links: Vec<(bool, Vec<u8>)> = self
            .0
            .iter()
            .map(|(name, within)| sources.scan.tree.path_within(*within, name))
            .map(|path| ((sources.leads)(&path), path))
            .collect();
        links.sort();
        let left_out = links.len();
        links.truncate(sources.settings.top.unwrap_or(usize::MAX));
        let left_out = (left_out - links.len()) as u64;
        let row = |(leads, path): (bool, Vec<u8>)| {
            let target = path_of(&path).and_then(|path| path.read_link()).ok();
            let target = target.map_or(Cell::None, |target| {
                Cell::Path(target.into_os_string().into_encoded_bytes())
            });
            let state = if leads { "leads on" } else { "broken" };
            vec![Cell::Text(state.into()), Cell::Path(path), target]
        };
        let rows = links.into_iter().map(row).collect();
        Section { left_out, ..Section::complete(Report::Symlinks, COLUMNS, rows) }
    }
}
