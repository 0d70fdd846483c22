//! Changing a finished scan in one place: a fresh scan of a directory replaces what was known of
//! it, or an entry is taken out. The sums of the directories above, the totals, and the names that
//! bear the size of a file with several names (hard links) are then those that a new walk would
//! find.
//!
//! A directory's own size and time change with what is in it: [`Scan::renew_own`]. What is known of
//! the rest stays. So a file outside of the directory that had one name when it was scanned, and
//! has a second name in the directory now, counts twice until the next walk.
//!
//! What was replaced stays in its arena, unreachable, until the scan is dropped.

use std::collections::{HashMap, HashSet};
use std::io;

use super::build::{HardLink, Sum, settle};
use super::{ABSENT, Directory, Entry, Facts, GONE, Id, Node, NodeId, Place, SPENT, Tree, UNREAD};
use crate::choice::Choice;
use crate::sys::{Meta, Sys, path_of};
use crate::{Kind, Scan, Totals};

/// Why a scan cannot be changed in a place, so that the whole must be walked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenewError {
    /// The tree holds no files, so what is taken out cannot be counted.
    #[error("the scan has not kept its files")]
    NoFiles,
    /// The names lead to no directory below a given path.
    #[error("no directory of the scan lies there")]
    NotThere,
    /// What was scanned is not one directory.
    #[error("it is no directory any more")]
    NoDirectory,
    /// The tree has been changed too often.
    #[error("the scan was changed so often that it has no room for more")]
    Full,
}

impl Scan {
    /// Puts a scan of one directory in the place of what was known of that directory: `names` lead
    /// there, from the given path on. `fresh` must have kept files, and facts if this scan has.
    /// Where `fresh` found nothing at all, the directory is [forgotten](Self::forget). Linear
    /// in what the directory held and in the names of files that have several.
    ///
    /// # Errors
    ///
    /// [`RenewError`]; nothing has changed then.
    pub fn renew(&mut self, names: &[impl AsRef<[u8]>], fresh: Scan) -> Result<(), RenewError> {
        let place = self.place(names)?;
        if place.directory == ABSENT {
            return Err(RenewError::NotThere);
        }
        let Some(&root) = fresh.tree.roots.first() else { return self.forget(names) };
        if root.directory == ABSENT || fresh.tree.roots.len() > 1 {
            return Err(RenewError::NoDirectory);
        }
        if !fresh.tree.keep_files || fresh.summed > 0 {
            return Err(RenewError::NoFiles);
        }
        let paths = self.paths(&[place]);
        let went = self.tree.replace(place, root, fresh.tree).ok_or(RenewError::Full)?;
        self.account(&paths, &went, Some(&fresh.totals));
        self.errors.extend(fresh.errors);
        self.errors.sort_by(|a, b| a.path.cmp(&b.path));
        self.totals.errors = self.errors.len() as u64;
        self.interrupted |= fresh.interrupted;
        Ok(())
    }

    /// Takes an entry out, with all that is in it: it was deleted or moved. A given path stays.
    /// Linear in what goes and in the names of files that have several.
    ///
    /// # Errors
    ///
    /// [`RenewError`]; nothing has changed then.
    pub fn forget(&mut self, names: &[impl AsRef<[u8]>]) -> Result<(), RenewError> {
        self.forget_all([names])
    }

    /// [Forgets](Self::forget) many entries. Linear in them, in what goes, in what the directories
    /// on the ways to them hold, and in the names of files that have several; but for the order
    /// that the ways are put in.
    ///
    /// # Errors
    ///
    /// [`RenewError`], if one of them cannot be forgotten; nothing has changed then.
    pub fn forget_all<'n, N: AsRef<[u8]> + 'n>(
        &mut self,
        ways: impl IntoIterator<Item = &'n [N]>,
    ) -> Result<(), RenewError> {
        if !self.tree.keep_files || self.summed > 0 {
            return Err(RenewError::NoFiles);
        }
        let names = |way: &&'n [N]| way.iter().map(AsRef::as_ref).collect::<Vec<&[u8]>>();
        let mut ways: Vec<Vec<&[u8]>> = ways.into_iter().map(|way| names(&way)).collect();
        ways.sort_unstable();
        // An entry inside another entry that goes, goes with it.
        ways.dedup_by(|way, before| way.starts_with(before));
        let nodes = self.tree.find_each(ways.iter().map(Vec::as_slice)).into_iter();
        let places = nodes.map(|node| node.map(|it| it.place).filter(|it| it.parent != ABSENT));
        let places = places.collect::<Option<Vec<_>>>().ok_or(RenewError::NotThere)?;
        let paths = self.paths(&places);
        let mut links = self.tree.lift_links();
        let went = self.tree.bury(&places, &mut links);
        self.tree.settle_links(links);
        self.account(&paths, &went, None);
        self.totals.errors = self.errors.len() as u64;
        Ok(())
    }

    /// Takes over what a directory is by itself: its own size, time and owner, as they have changed
    /// with what is in it. Linear in what is in it, without what lies deeper.
    ///
    /// # Errors
    ///
    /// [`RenewError`]; nothing has changed then.
    pub fn renew_own(&mut self, names: &[impl AsRef<[u8]>], meta: &Meta) -> Result<(), RenewError> {
        let node = self.tree.find(names).ok_or(RenewError::NotThere)?;
        let (place, (apparent, disk)) = (node.place, node.own());
        if place.directory == ABSENT || meta.kind != Kind::Directory {
            return Err(RenewError::NoDirectory);
        }
        let choice = self.options.choice.as_deref();
        if !self.options.without_sizes && !choice.is_some_and(Choice::selects) {
            self.tree.take_above(place.directory, Sum { apparent, disk, entries: 0 });
            let (apparent, disk) = (meta.apparent, meta.disk);
            self.tree.add_above(place.directory, Sum { apparent, disk, entries: 0 });
        }
        let facts = self.tree.arenas[place.entry.arena()].facts.get_mut(place.entry.index());
        if let Some(facts) = facts.filter(|_| !self.options.without_sizes) {
            *facts = Facts::of(meta);
        }
        self.sum_up();
        Ok(())
    }

    /// The paths of entries; none, where no error can lie below them.
    fn paths(&self, places: &[Place]) -> HashSet<Vec<u8>> {
        let path = |place: &Place| self.tree.path(place.entry, place.parent);
        let places = if self.errors.is_empty() { &[][..] } else { places };
        places.iter().map(path).collect()
    }

    /// Where names lead that end below a given path.
    fn place(&self, names: &[impl AsRef<[u8]>]) -> Result<Place, RenewError> {
        if !self.tree.keep_files || self.summed > 0 {
            return Err(RenewError::NoFiles);
        }
        let place = self.tree.find(names).map(|node| node.place);
        place.filter(|place| place.parent != ABSENT).ok_or(RenewError::NotThere)
    }

    /// Corrects the totals and the errors for what went from some paths, and what came.
    fn account(&mut self, paths: &HashSet<Vec<u8>>, went: &Totals, came: Option<&Totals>) {
        let totals = &mut self.totals;
        // Saturating: where a choice counts no directories there are none to take away.
        let less = |now: &mut u64, by: u64| *now = now.saturating_sub(by);
        less(&mut totals.directories, went.directories);
        less(&mut totals.files, went.files);
        less(&mut totals.symlinks, went.symlinks);
        less(&mut totals.other, went.other);
        if let Some(came) = came {
            totals.add(came);
        }
        self.sum_up();
        let separator = std::path::MAIN_SEPARATOR as u8;
        self.errors.retain(|error| {
            let path = &error.path;
            let ends = (0..path.len()).filter(|&at| path[at] == separator).chain([path.len()]);
            !ends.into_iter().any(|end| paths.contains(&path[..end]))
        });
    }

    /// The bytes of the totals are those of the given paths.
    pub(crate) fn sum_up(&mut self) {
        let mut sum = Sum::default();
        for node in self.tree.roots() {
            let (apparent, disk) = (node.apparent_bytes(), node.disk_bytes());
            sum.add(Sum { apparent, disk, entries: 0 });
        }
        (self.totals.apparent_bytes, self.totals.disk_bytes) = (sum.apparent, sum.disk);
    }
}

impl Tree {
    /// Takes bytes out of a file, and of all directories above it.
    pub(crate) fn take_out(&mut self, id: NodeId, sum: Sum) {
        let NodeId(Place { entry, parent, .. }) = id;
        let own = self.entry_mut(entry);
        own.apparent = own.apparent.saturating_sub(sum.apparent);
        own.disk = own.disk.saturating_sub(sum.disk);
        self.take_above(parent, sum);
    }

    /// Takes bytes on disk out of the names of files, by device and number, that count at another
    /// of their names.
    pub(crate) fn take_out_elsewhere(&mut self, files: &HashMap<(u64, u64), u64>) {
        for HardLink { device, inode, entry, .. } in &self.links {
            let entry = &mut self.arenas[entry.arena()].entries[entry.index()];
            if let Some(disk) = files.get(&(*device, *inode)).filter(|_| entry.name & SPENT != 0) {
                entry.disk = entry.disk.saturating_sub(*disk);
            }
        }
    }

    /// Opens a directory by the directories that lead to it.
    pub(crate) fn open<S: Sys>(&self, sys: &S, node: &Node<'_>) -> io::Result<S::Directory> {
        let (mut way, mut above) = (Vec::new(), node.place.directory);
        while let Some(directory) = self.directories.get(above as usize) {
            way.push(self.name(directory.entry));
            above = directory.parent;
        }
        way.reverse();
        let root = sys.open_path(&path_of(way[0].to_bytes())?)?;
        sys.open_below(root, &way[1..])
    }

    /// Replaces a directory, and counts what it held. Returns nothing if there is no room.
    fn replace(&mut self, place: Place, root: Place, mut fresh: Tree) -> Option<Totals> {
        let (arenas, directories) = (self.arenas.len(), self.directories.len());
        let room = u16::try_from(arenas + fresh.arenas.len()).is_ok()
            && directories + fresh.directories.len() < ABSENT as usize;
        if !room {
            return None;
        }
        let moved = |id: Id| match id {
            Id::NONE => id,
            id => Id::new((id.arena() + arenas) as u16, id.index()),
        };
        let shifted = |index: u32| match index {
            ABSENT => index,
            index => index + directories as u32,
        };
        let mut links = self.lift_links();
        let fresh_links = fresh.lift_links();
        let went = self.bury(&[place], &mut links);
        let top = *fresh.entry(root.entry);
        let facts = fresh.arenas[root.entry.arena()].facts.get(root.entry.index()).copied();

        for (number, mut arena) in fresh.arenas.into_iter().enumerate() {
            arena.number = (arenas + number) as u16;
            self.arenas.push(arena);
        }
        self.bases.0.extend(fresh.bases.0.into_iter().map(shifted));
        self.directories.extend(fresh.directories.into_iter().map(|it| Directory {
            entry: moved(it.entry),
            first: moved(it.first),
            kept: it.kept,
            parent: shifted(it.parent),
            child: shifted(it.child),
            sibling: shifted(it.sibling),
            entries: it.entries,
        }));
        self.gone += fresh.gone;

        // Its entry stays where its parent's entries are, with its name.
        let new = shifted(root.directory);
        let old = self.entry(place.entry).name & !UNREAD;
        *self.entry_mut(place.entry) = Entry { name: old | top.name & UNREAD, ..top };
        let own = self.arenas[place.entry.arena()].facts.get_mut(place.entry.index());
        if let (Some(own), Some(facts)) = (own, facts) {
            *own = facts;
        }
        let sibling = std::mem::replace(&mut self.directories[place.parent as usize].child, new);
        let directory = &mut self.directories[new as usize];
        (directory.entry, directory.parent, directory.sibling) =
            (place.entry, place.parent, sibling);
        let entries = directory.entries + 1;
        self.add_above(place.parent, Sum { apparent: top.apparent, disk: top.disk, entries });

        links.extend(fresh_links.into_iter().map(|link| HardLink {
            entry: moved(link.entry),
            parent: moved(link.parent),
            ..link
        }));
        self.settle_links(links);
        Some(went)
    }

    /// Takes entries out of their directories and of the sums, while no file that has several names
    /// is in them; marks what they held as gone, counts it, and drops its names of such files.
    /// None of them lies in another.
    fn bury(&mut self, places: &[Place], links: &mut Vec<HardLink>) -> Totals {
        let mut went = Totals::default();
        let mut waiting = Vec::new();
        for &Place { entry: id, directory, parent } in places {
            let Entry { name, apparent, disk } = *self.entry(id);
            if directory != ABSENT {
                let entries = self.directories[directory as usize].entries + 1;
                self.take_above(parent, Sum { apparent, disk, entries });
                waiting.push(directory);
                continue;
            }
            went.count(self.entry(id).kind());
            self.entry_mut(id).name = name | GONE;
            let linked = links.binary_search_by_key(&id, |link| link.entry).is_ok();
            let (apparent, disk) = if linked { (0, 0) } else { (apparent, disk) };
            self.take_above(parent, Sum { apparent, disk, entries: 1 });
        }
        while let Some(index) = waiting.pop() {
            let Directory { first, kept, child, .. } = self.directories[index as usize];
            for at in first.index()..first.index() + kept as usize {
                let entry = &self.arenas[first.arena()].entries[at];
                if entry.kind() != Kind::Directory && entry.name & GONE == 0 {
                    went.count(entry.kind());
                }
            }
            went.directories += 1;
            self.gone += 1;
            self.directories[index as usize].entry = Id::NONE;
            let mut next = child;
            while next != ABSENT {
                waiting.push(next);
                next = self.directories[next as usize].sibling;
            }
        }
        let mut above: Vec<u32> = places
            .iter()
            .filter(|place| place.directory != ABSENT)
            .map(|place| place.parent)
            .collect();
        above.sort_unstable();
        above.dedup();
        for parent in above {
            self.unlink_gone(parent);
        }
        links.retain(|link| {
            let above = self.bases.directory(link.parent);
            let is_there = |above: &Directory| above.entry != Id::NONE;
            self.directories.get(above as usize).is_none_or(is_there)
                && self.entry(link.entry).name & GONE == 0
        });
        went
    }

    /// Takes the directories that are gone out of their parent's.
    fn unlink_gone(&mut self, parent: u32) {
        let mut next = std::mem::replace(&mut self.directories[parent as usize].child, ABSENT);
        let mut last = ABSENT;
        while next != ABSENT {
            let index = next;
            let Directory { entry, sibling, .. } = self.directories[index as usize];
            next = sibling;
            if entry == Id::NONE {
                continue;
            }
            self.directories[index as usize].sibling = ABSENT;
            match self.directories.get_mut(last as usize) {
                Some(last) => last.sibling = index,
                None => self.directories[parent as usize].child = index,
            }
            last = index;
        }
    }

    /// Takes the sizes of files that have several names out of the sums, and hands their names
    /// over.
    fn lift_links(&mut self) -> Vec<HardLink> {
        let links = std::mem::take(&mut self.links);
        for link in &links {
            let Entry { apparent, disk, name } = *self.entry(link.entry);
            if name & SPENT == 0 {
                let parent = self.bases.directory(link.parent);
                self.take_above(parent, Sum { apparent, disk, entries: 0 });
            }
            self.entry_mut(link.entry).name &= !SPENT;
        }
        links
    }

    /// Gives them back.
    fn settle_links(&mut self, mut links: Vec<HardLink>) {
        settle(self, &mut links, Tree::add_above);
        links.sort_unstable_by_key(|link| link.entry);
        self.links = links;
    }

    fn entry_mut(&mut self, id: Id) -> &mut Entry {
        &mut self.arenas[id.arena()].entries[id.index()]
    }

    /// Adds to a directory and all above it.
    fn add_above(&mut self, directory: u32, sum: Sum) {
        self.change_above(directory, |now| now.add(sum));
    }

    /// Takes away from a directory and all above it.
    fn take_above(&mut self, directory: u32, sum: Sum) {
        self.change_above(directory, |now| {
            now.apparent = now.apparent.saturating_sub(sum.apparent);
            now.disk = now.disk.saturating_sub(sum.disk);
            now.entries = now.entries.saturating_sub(sum.entries);
        });
    }

    fn change_above(&mut self, directory: u32, change: impl Fn(&mut Sum)) {
        let mut above = directory;
        while above != ABSENT {
            let Directory { entry, parent, entries, .. } = self.directories[above as usize];
            let Entry { apparent, disk, .. } = *self.entry(entry);
            let mut sum = Sum { apparent, disk, entries };
            change(&mut sum);
            self.directories[above as usize].entries = sum.entries;
            let entry = self.entry_mut(entry);
            (entry.apparent, entry.disk) = (sum.apparent, sum.disk);
            above = parent;
        }
    }
}
