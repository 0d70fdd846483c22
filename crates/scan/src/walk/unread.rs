//! Directories that cannot be opened: set aside, left out, or counted by what their parents know of
//! them.

use std::io;
use std::sync::PoisonError;

use super::family::Task;
use super::{Summed, Walk, Worker};
use crate::choice::Choice;
use crate::sys::{Kind, Meta, Sys};
use crate::visit::Visitor;

impl<'a, S: Sys, V: Visitor> Walk<'a, S, V> {
    /// Sets a task aside if handles were lacking; otherwise counts what its parent knows of it.
    #[cold]
    pub(super) fn unopened(&self, worker: &mut Worker<S, V>, task: &Task<'a, S>, error: io::Error) {
        if self.sys.exhausted(&error) && !self.handles.is_alone() {
            let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
            return deferred.push(task.set_aside());
        }
        let meta = match task.place() {
            Some((family, name)) => family.with(
                self.sys,
                |root| self.open_root(root),
                |it| {
                    let meta = self.sys.meta_in(it, name)?;
                    let choice = self.options.choice.as_deref();
                    let pseudo = choice.is_some_and(|choice| choice.exclude_pseudo)
                        && self.is_mounted(task, &meta)
                        && self.sys.is_pseudo_in(it, name);
                    Ok((meta, pseudo || self.is_elsewhere(task, &meta)))
                },
            ),
            None => self.sys.meta(&self.roots[task.root()].path, true).map(|meta| (meta, false)),
        };
        match meta {
            // A directory that is left out need not be readable.
            Ok((Meta { kind: Kind::Directory, .. }, true)) => return,
            Ok((meta, _)) => self.count_unread(worker, task, &self.wanted(meta)),
            Err(_) => {}
        }
        let path = self.path_of_summed(task, b"");
        worker.found.fail(task, "cannot open the directory", error, path);
    }

    /// Counts a directory of which only its own size is known.
    #[cold]
    fn count_unread(&self, worker: &mut Worker<S, V>, task: &Task<'a, S>, meta: &Meta) {
        if meta.kind != Kind::Directory {
            return;
        }
        let found = &mut worker.found;
        let parent = task.parent();
        let choice = self.options.choice.as_deref();
        let sized = choice.is_none_or(|choice| !choice.selects());
        let listing = if task.is_summed() {
            let (apparent, disk) = if sized { (meta.apparent, meta.disk) } else { (0, 0) };
            found.sum_up(parent, Summed { apparent, disk, entries: 1 });
            found.without_entry += 1;
            parent
        } else {
            found.arena.list(task.entry(), parent, meta)
        };
        if task.is_root() {
            found.listings.push((task.root(), listing));
        }
        if sized && !task.is_summed() {
            let listing = found.arena.listing();
            (listing.apparent, listing.disk) = (meta.apparent, meta.disk);
        }
        if choice.is_none_or(Choice::counts_directories) {
            found.totals.directories += 1;
            self.tell(&mut worker.part, task, listing, meta);
        }
    }
}
