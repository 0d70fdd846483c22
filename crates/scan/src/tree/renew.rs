//! Changing a finished scan in one place: a fresh scan of a directory takes the place of what was known of it, and an entry is
//! taken out. The sums of the directories above, the totals and the names that bear the size of a file with several
//! (hard links) are those that a new walk would find.
//!
//! What is known of the rest stays: a file outside of the directory that had one name when it was scanned, and has a second one in
//! the directory now, counts twice until the next walk.
//!
//! What was replaced stays in its arena, unreachable, until the scan is dropped.

use super::build::{HardLink, Sum, settle};
use super::{ABSENT, Directory, Entry, GONE, Id, Place, Tree, UNREAD};
use crate::choice::Choice;
use crate::{Kind, Scan, Totals};

/// Why a scan cannot be changed in a place, so that a walk of all is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenewError {
    /// The tree holds no files, so that what goes cannot be counted.
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
    /// Puts a scan of one directory in the place of what was known of that directory: `names` lead there, from the given path on.
    /// `fresh` must have kept files, and facts if this scan has. Where `fresh` found nothing at all, the directory is
    /// [forgotten](Self::forget). Linear in what the directory held and in the names of files that have several.
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
        if !fresh.tree.keep_files {
            return Err(RenewError::NoFiles);
        }
        let path = self.tree.path(place.entry, place.parent);
        let went = self.tree.replace(place, root, fresh.tree).ok_or(RenewError::Full)?;
        self.account(&path, &went, Some(&fresh.totals));
        self.errors.extend(fresh.errors);
        self.errors.sort_by(|a, b| a.path.cmp(&b.path));
        self.totals.errors = self.errors.len() as u64;
        self.interrupted |= fresh.interrupted;
        Ok(())
    }

    /// Takes an entry out, with all that is in it: it was deleted or moved. A given path stays. Linear in what goes and in the
    /// names of files that have several.
    ///
    /// # Errors
    ///
    /// [`RenewError`]; nothing has changed then.
    pub fn forget(&mut self, names: &[impl AsRef<[u8]>]) -> Result<(), RenewError> {
        let place = self.place(names)?;
        let path = self.tree.path(place.entry, place.parent);
        let went = self.tree.remove(place);
        self.account(&path, &went, None);
        self.totals.errors = self.errors.len() as u64;
        Ok(())
    }

    /// Where names lead that end below a given path.
    fn place(&self, names: &[impl AsRef<[u8]>]) -> Result<Place, RenewError> {
        if !self.tree.keep_files {
            return Err(RenewError::NoFiles);
        }
        let place = self.tree.find(names).map(|node| node.place);
        place.filter(|place| place.parent != ABSENT).ok_or(RenewError::NotThere)
    }

    /// Corrects the totals and the errors for what went from a path, and what came.
    fn account(&mut self, path: &[u8], went: &Totals, came: Option<&Totals>) {
        let choice = self.options.choice.as_deref();
        let mut went = *went;
        if !choice.is_none_or(Choice::counts_directories) {
            went.directories = 0;
        }
        let totals = &mut self.totals;
        let less = |now: &mut u64, by: u64| *now = now.saturating_sub(by);
        less(&mut totals.directories, went.directories);
        less(&mut totals.files, went.files);
        less(&mut totals.symlinks, went.symlinks);
        less(&mut totals.other, went.other);
        if let Some(came) = came {
            totals.add(came);
        }
        let mut sum = Sum::default();
        for node in self.tree.roots() {
            let (apparent, disk) = (node.apparent_bytes(), node.disk_bytes());
            sum.add(Sum { apparent, disk, entries: 0 });
        }
        (totals.apparent_bytes, totals.disk_bytes) = (sum.apparent, sum.disk);
        let below = |other: &[u8]| {
            other
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest[0] == std::path::MAIN_SEPARATOR as u8)
        };
        self.errors.retain(|error| !below(&error.path));
    }
}

impl Tree {
    /// Replaces a directory; what the directory held is counted. Nothing, if there is no room.
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
        let went = self.bury(place, &mut links);
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

    /// Takes an entry out; it, and what it held, is counted.
    fn remove(&mut self, place: Place) -> Totals {
        let mut links = self.lift_links();
        let went = self.bury(place, &mut links);
        self.settle_links(links);
        went
    }

    /// Takes an entry out of its directory and of the sums, while no file that has several names is in them; marks what it held
    /// as gone and drops its names of such files.
    fn bury(&mut self, place: Place, links: &mut Vec<HardLink>) -> Totals {
        let mut went = Totals::default();
        let Entry { name, apparent, disk } = *self.entry(place.entry);
        if place.directory == ABSENT {
            went.count(self.entry(place.entry).kind());
            self.entry_mut(place.entry).name = name | GONE;
            let before = links.len();
            links.retain(|link| link.entry != place.entry);
            let linked = links.len() < before;
            let (apparent, disk) = if linked { (0, 0) } else { (apparent, disk) };
            self.take_above(place.parent, Sum { apparent, disk, entries: 1 });
            return went;
        }
        self.unlink(place);
        let entries = self.directories[place.directory as usize].entries + 1;
        self.take_above(place.parent, Sum { apparent, disk, entries });
        let mut waiting = vec![place.directory];
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
        links.retain(|link| {
            let above = self.bases.directory(link.parent);
            self.directories.get(above as usize).is_none_or(|above| above.entry != Id::NONE)
        });
        went
    }

    /// Takes a directory out of its parent's.
    fn unlink(&mut self, place: Place) {
        let sibling = self.directories[place.directory as usize].sibling;
        let mut before = self.directories[place.parent as usize].child;
        if before == place.directory {
            self.directories[place.parent as usize].child = sibling;
            return;
        }
        while self.directories[before as usize].sibling != place.directory {
            before = self.directories[before as usize].sibling;
        }
        self.directories[before as usize].sibling = sibling;
    }

    /// Takes the sizes of files that have several names out of the sums, and hands their names over.
    fn lift_links(&mut self) -> Vec<HardLink> {
        let links = std::mem::take(&mut self.links);
        for link in &links {
            let Entry { apparent, disk, name } = *self.entry(link.entry);
            if name & super::SPENT == 0 {
                let parent = self.bases.directory(link.parent);
                self.take_above(parent, Sum { apparent, disk, entries: 0 });
            }
            self.entry_mut(link.entry).name &= !super::SPENT;
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
