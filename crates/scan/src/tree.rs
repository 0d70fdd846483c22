//! The tree that a scan leaves behind, held by index in arenas.
//!
//! Each worker writes into an [`Arena`] of its own, so that nothing is shared while the walk runs:
//! an [`Entry`] of 24 bytes for what is kept, its name in one string of bytes, and a [`Listing`] for
//! each directory that was read. A directory's entries are written by the one worker that reads it
//! and while it reads nothing else, so they lie in one stretch. When the walk is done [`build()`] turns
//! the listings into [`Directory`]s of 40 bytes, links them, and sums them up from the leaves. So an
//! entry takes at most 64 bytes beside its name, and a file that nobody asks about takes none.
//!
//! Nothing here recurses: a tree may be as deep as memory allows.

use std::ffi::CStr;

use crate::sys::Kind;

mod build;

pub(crate) use build::{Alias, HardLink, Root, build};

/// Where an entry or a listing lies: the arena in the upper 16 bits, the index in the lower 48.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id(u64);

impl Id {
    /// No entry: the parent of a root.
    pub(crate) const NONE: Id = Id(u64::MAX);

    #[inline]
    pub(crate) fn new(arena: u16, index: usize) -> Id {
        Id(u64::from(arena) << 48 | index as u64)
    }

    #[inline]
    fn arena(self) -> usize {
        (self.0 >> 48) as usize
    }

    #[inline]
    fn index(self) -> usize {
        (self.0 & ((1 << 48) - 1)) as usize
    }
}

/// One entry: its name's place and kind in one word, and its sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The name's offset in the arena's `names` in the lower 48 bits, then [`Kind`], then [`SPENT`].
    name: u64,
    /// Bytes; of a directory, once built, with all that is in it.
    apparent: u64,
    disk: u64,
}

/// Set in [`Entry::name`]: another name of the same file bears its size.
const SPENT: u64 = 1 << 56;

impl Entry {
    fn kind(&self) -> Kind {
        match self.name >> 48 & 0xff {
            0 => Kind::Directory,
            1 => Kind::File,
            2 => Kind::Symlink,
            _ => Kind::Other,
        }
    }
}

/// A directory that a worker has read, or tried to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing {
    /// Its own entry, in the arena of whoever read its parent.
    pub(crate) entry: Id,
    /// Its parent's listing, or [`Id::NONE`].
    pub(crate) parent: Id,
    /// The first of its kept entries, and how many there are.
    pub(crate) first: usize,
    pub(crate) kept: u32,
    /// Entries in it that are no directories.
    pub(crate) leaves: u32,
    /// Bytes of its own and of the leaves that have one name.
    pub(crate) apparent: u64,
    pub(crate) disk: u64,
}

/// What one worker writes.
#[derive(Debug)]
pub(crate) struct Arena {
    number: u16,
    entries: Vec<Entry>,
    /// Names, each ended by a NUL.
    names: Vec<u8>,
    listings: Vec<Listing>,
}

impl Arena {
    pub(crate) fn new(number: u16) -> Arena {
        Arena { number, entries: Vec::new(), names: Vec::new(), listings: Vec::new() }
    }

    /// How many entries are kept so far.
    #[inline]
    pub(crate) fn kept(&self) -> usize {
        self.entries.len()
    }

    /// Keeps an entry. Amortised constant time.
    #[inline]
    pub(crate) fn keep(&mut self, name: &CStr, kind: Kind, apparent: u64, disk: u64) -> Id {
        let at = self.names.len() as u64;
        self.names.extend_from_slice(name.to_bytes_with_nul());
        self.entries.push(Entry { name: at | (kind as u64) << 48, apparent, disk });
        Id::new(self.number, self.entries.len() - 1)
    }

    /// Keeps the name of an entry of which nothing else could be learnt. A directory without a
    /// listing is what it is held as, and those are shown by no view of the tree.
    #[cold]
    pub(crate) fn keep_name(&mut self, name: &CStr) -> Id {
        self.keep(name, Kind::Directory, 0, 0)
    }

    /// Begins the listing of a directory, to be completed through [`listing`](Self::listing).
    #[inline]
    pub(crate) fn list(&mut self, entry: Id, parent: Id) -> Id {
        let first = self.entries.len();
        let (kept, leaves, apparent, disk) = (0, 0, 0, 0);
        self.listings.push(Listing { entry, parent, first, kept, leaves, apparent, disk });
        Id::new(self.number, self.listings.len() - 1)
    }

    /// The listing that was begun last.
    #[inline]
    pub(crate) fn listing(&mut self) -> &mut Listing {
        self.listings.last_mut().expect("a directory is listed before it is read")
    }
}

/// A directory of the finished tree.
#[derive(Clone, Copy, Debug)]
struct Directory {
    entry: Id,
    /// Its kept entries are `kept` from here on in this arena.
    first: Id,
    kept: u32,
    /// Indices of directories, or [`ABSENT`].
    parent: u32,
    child: u32,
    sibling: u32,
    /// Entries below it.
    entries: u64,
}

const ABSENT: u32 = u32::MAX;

const _: () = assert!(size_of::<Entry>() + size_of::<Directory>() <= 64);

/// A scanned tree, or several: one for each path that lies in no other.
///
/// Sizes of a directory include all that is in it. A file with several names is counted once, under
/// the name that comes first in byte order, so that the answer is the same whoever found it first.
#[derive(Debug)]
pub struct Tree {
    arenas: Vec<Arena>,
    directories: Vec<Directory>,
    roots: Vec<Place>,
}

/// An entry of the tree and, if it is a directory that could be listed, its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    entry: Id,
    directory: u32,
    parent: u32,
}

/// One entry of a [`Tree`].
#[derive(Clone, Copy, Debug)]
pub struct Node<'t> {
    tree: &'t Tree,
    place: Place,
}

impl Tree {
    /// The scanned paths, in the order they were given, without those that lie within another.
    pub fn roots(&self) -> impl Iterator<Item = Node<'_>> {
        self.roots.iter().map(|&place| Node { tree: self, place })
    }

    /// How many directories the tree holds.
    pub fn directories(&self) -> usize {
        self.directories.len()
    }

    fn entry(&self, id: Id) -> &Entry {
        &self.arenas[id.arena()].entries[id.index()]
    }

    fn name(&self, id: Id) -> &CStr {
        let arena = &self.arenas[id.arena()];
        let at = (arena.entries[id.index()].name & ((1 << 48) - 1)) as usize;
        CStr::from_bytes_until_nul(&arena.names[at..]).expect("each name was kept with its NUL")
    }

    /// The bytes of an entry's path, from the path that the user gave. Linear in the depth.
    pub(crate) fn path(&self, entry: Id, parent: u32) -> Vec<u8> {
        let mut names = vec![self.name(entry).to_bytes()];
        let mut above = parent;
        while above != ABSENT {
            let directory = &self.directories[above as usize];
            names.push(self.name(directory.entry).to_bytes());
            above = directory.parent;
        }
        let mut path = Vec::with_capacity(names.iter().map(|name| name.len() + 1).sum());
        for name in names.into_iter().rev() {
            if !path.is_empty() && path.last() != Some(&(std::path::MAIN_SEPARATOR as u8)) {
                path.push(std::path::MAIN_SEPARATOR as u8);
            }
            path.extend_from_slice(name);
        }
        path
    }
}

impl<'t> Node<'t> {
    /// Its name; of a root, the path as it was given.
    pub fn name(&self) -> &'t [u8] {
        self.tree.name(self.place.entry).to_bytes()
    }

    /// Its path, beginning with the path as it was given. Linear in the depth.
    pub fn path(&self) -> Vec<u8> {
        self.tree.path(self.place.entry, self.place.parent)
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.tree.entry(self.place.entry).kind()
    }

    /// Its length in bytes, with all that is in it; 0 if another name of it bears it.
    pub fn apparent_bytes(&self) -> u64 {
        let entry = self.tree.entry(self.place.entry);
        if entry.name & SPENT == 0 { entry.apparent } else { 0 }
    }

    /// The bytes it takes on disk, with all that is in it; 0 if another name of it bears them.
    pub fn disk_bytes(&self) -> u64 {
        let entry = self.tree.entry(self.place.entry);
        if entry.name & SPENT == 0 { entry.disk } else { 0 }
    }

    /// How many entries lie below it, at any depth.
    pub fn entries(&self) -> u64 {
        self.directory().map_or(0, |directory| directory.entries)
    }

    fn directory(&self) -> Option<&'t Directory> {
        self.tree.directories.get(self.place.directory as usize)
    }

    /// The directories in it, in no particular order.
    pub fn directories(&self) -> impl Iterator<Item = Node<'t>> + use<'t> {
        let tree = self.tree;
        let parent = self.place.directory;
        let mut next = self.directory().map_or(ABSENT, |directory| directory.child);
        std::iter::from_fn(move || {
            let index = next;
            let directory = tree.directories.get(index as usize)?;
            next = directory.sibling;
            let place = Place { entry: directory.entry, directory: index, parent };
            Some(Node { tree, place })
        })
    }

    /// What else was kept of it: every other entry if [`Options::keep_files`](crate::Options) says
    /// so, in the order the system listed them.
    pub fn files(&self) -> impl Iterator<Item = Node<'t>> + use<'t> {
        let tree = self.tree;
        let parent = self.place.directory;
        let (first, kept) = self.directory().map_or((Id::new(0, 0), 0), |it| (it.first, it.kept));
        let index = first.index();
        (index..index + kept as usize)
            .map(move |index| Id::new(first.arena() as u16, index))
            .filter(move |&id| tree.entry(id).kind() != Kind::Directory)
            .map(move |entry| Node { tree, place: Place { entry, directory: ABSENT, parent } })
    }
}
