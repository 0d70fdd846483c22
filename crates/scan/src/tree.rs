//! The tree that a scan leaves behind, held by index in arenas.
//!
//! Each worker writes into an [`Arena`] of its own, so that nothing is shared while the walk runs.
//! It has an [`Entry`] of 24 bytes for each kept entry (and [`Facts`] of 18 if they are asked
//! for), its name in one string of bytes, and a [`Listing`] for each directory that was read. A
//! directory's entries are written by the one worker that reads it and while it reads nothing else,
//! so they lie in one stretch.
//!
//! When the walk is done [`build()`] turns the listings into [`Directory`]s of 40 bytes, links
//! them, and sums them up from the leaves. So an entry takes at most 64 bytes beside its name
//! without its facts, and a file that nobody asks about takes none. With facts a file takes 42 and
//! a directory 82.
//!
//! Nothing here recurses: a tree may be as deep as memory allows.

use std::ffi::CStr;

pub(crate) use crate::id::Id;
use crate::sys::{Kind, Meta};
use crate::visit::{Seen, Within};

mod build;
mod facts;
mod find;
mod import;
mod order;
mod own;
mod renew;
mod told;

pub(crate) use build::Sum;
pub(crate) use build::{Alias, HardLink, Root, build};
pub use facts::Facts;
pub(crate) use import::{Imported, Importer};
pub use own::Link;
pub use renew::RenewError;

/// One entry: its name's place and kind in one word, and its sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The name's offset in the arena's `names` in the lower 48 bits, then [`Kind`], then
    /// [`SPENT`], [`UNREAD`], [`GONE`] and [`SUMMED`].
    name: u64,
    /// Bytes; of a directory, once built, with all that is in it.
    apparent: u64,
    disk: u64,
}

/// Set in [`Entry::name`]: another name of the same file bears its size.
const SPENT: u64 = 1 << 56;
/// Set in [`Entry::name`]: it could not be read, or not to its end.
const UNREAD: u64 = 1 << 57;
/// Set in [`Entry::name`]: it holds more than the tree has entries for.
const SUMMED: u64 = 1 << 59;
/// Set in [`Entry::name`]: [`Scan::forget`](crate::Scan::forget) has taken it out.
const GONE: u64 = 1 << 58;

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
    /// Its own entry, in the arena of the worker that read its parent.
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
    /// Of each entry, if they are kept: of a directory once it is built. And those of the listed
    /// directories.
    facts: Vec<Facts>,
    listed: Vec<Facts>,
    keep_facts: bool,
}

impl Arena {
    pub(crate) fn new(number: u16, keep_facts: bool) -> Arena {
        Arena {
            number,
            entries: Vec::new(),
            names: Vec::new(),
            listings: Vec::new(),
            facts: Vec::new(),
            listed: Vec::new(),
            keep_facts,
        }
    }

    /// How many entries are kept so far.
    #[inline]
    pub(crate) fn kept(&self) -> usize {
        self.entries.len()
    }

    /// How many bytes the finished tree takes for what is kept, with the room that vectors keep to
    /// grow and what is summed up at the end.
    pub(crate) fn bytes(&self) -> u64 {
        let facts = if self.keep_facts { size_of::<Facts>() } else { 0 };
        let entries = self.entries.len() * (size_of::<Entry>() + facts);
        // Its listing, what becomes of that, and a count.
        let directory = size_of::<Listing>() + size_of::<Directory>() + 4 + facts;
        (2 * (entries + self.names.len() + self.listings.len() * directory)) as u64
    }

    /// Keeps an entry. Amortised constant time.
    #[inline]
    pub(crate) fn keep(&mut self, name: &CStr, meta: &Meta) -> Id {
        if self.keep_facts {
            self.facts.push(Facts::of(meta));
        }
        self.keep_entry(name, meta.kind, meta.apparent, meta.disk)
    }

    /// Keeps a directory that is yet to be read. Amortised constant time.
    #[inline]
    pub(crate) fn keep_directory(&mut self, name: &CStr) -> Id {
        if self.keep_facts {
            self.facts.push(Facts::default());
        }
        self.keep_entry(name, Kind::Directory, 0, 0)
    }

    #[inline]
    fn keep_entry(&mut self, name: &CStr, kind: Kind, apparent: u64, disk: u64) -> Id {
        let at = self.names.len() as u64;
        self.names.extend_from_slice(name.to_bytes_with_nul());
        self.entries.push(Entry { name: at | (kind as u64) << 48, apparent, disk });
        Id::new(self.number, self.entries.len() - 1)
    }

    /// Keeps the name of an entry of which nothing else could be learnt. A directory without a
    /// listing is what it is held as, and those are shown by no view of the tree.
    #[cold]
    pub(crate) fn keep_name(&mut self, name: &CStr) -> Id {
        self.keep_directory(name)
    }

    /// Begins the listing of a directory, to be completed through [`listing`](Self::listing).
    #[inline]
    pub(crate) fn list(&mut self, entry: Id, parent: Id, meta: &Meta) -> Id {
        if self.keep_facts {
            self.listed.push(Facts::of(meta));
        }
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
    /// [`Id::NONE`] once it was taken out.
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
/// the name that comes first in byte order, so that the answer is the same whichever worker found
/// it first.
#[derive(Debug, Default)]
pub struct Tree {
    arenas: Vec<Arena>,
    directories: Vec<Directory>,
    roots: Vec<Place>,
    /// Whether files are shown; if not, some may be kept all the same, for they have several
    /// names.
    keep_files: bool,
    /// The names of files that have several, by entry.
    links: Vec<HardLink>,
    /// Where each arena's listings begin among the directories.
    bases: Bases,
    /// How many of the directories were taken out.
    gone: usize,
}

/// Where each arena's listings begin among the directories.
#[derive(Debug, Default)]
struct Bases(Vec<u32>);

impl Bases {
    fn directory(&self, listing: Id) -> u32 {
        if listing == Id::NONE { ABSENT } else { self.0[listing.arena()] + listing.index() as u32 }
    }

    /// The listing that became a directory; of no directory, [`Id::NONE`].
    fn listing(&self, directory: u32) -> Id {
        if directory == ABSENT {
            return Id::NONE;
        }
        // Arenas without listings begin where the next one does.
        let arena = self.0.partition_point(|&base| base <= directory) - 1;
        Id::new(arena as u16, (directory - self.0[arena]) as usize)
    }
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

/// The identity of a [`Node`], without a borrow of its tree: [`Tree::node`] leads back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeId(Place);

impl Tree {
    /// The scanned paths, in the order they were given, without those that lie within another.
    pub fn roots(&self) -> impl Iterator<Item = Node<'_>> {
        self.roots.iter().map(|&place| Node { tree: self, place })
    }

    /// The entry that [`Node::id`] was asked of; none, if it was taken out or replaced since. Of
    /// another tree's entry: some entry of this one, or none. Constant time.
    pub fn node(&self, NodeId(place): NodeId) -> Option<Node<'_>> {
        let entries = &self.arenas.get(place.entry.arena())?.entries;
        let is_directory = |index| {
            let directory = self.directories.get(index as usize);
            index == ABSENT || directory.is_some_and(|it| it.entry != Id::NONE)
        };
        let is_there = |entry: &Entry| entry.name & GONE == 0;
        let known = entries.get(place.entry.index()).is_some_and(is_there)
            && is_directory(place.directory)
            && is_directory(place.parent);
        known.then_some(Node { tree: self, place })
    }

    /// How many directories the tree holds.
    pub fn directories(&self) -> usize {
        self.directories.len() - self.gone
    }

    /// The entry at the end of these names: the given path, as [`roots`](Self::roots) have it, and
    /// the names below it. Linear in what the directories on the way hold.
    pub fn find(&self, names: &[impl AsRef<[u8]>]) -> Option<Node<'_>> {
        let (first, others) = names.split_first()?;
        let root = self.roots().find(|root| root.name() == first.as_ref())?;
        others.iter().try_fold(root, |above, name| above.find(name.as_ref()))
    }

    fn entry(&self, id: Id) -> &Entry {
        &self.arenas[id.arena()].entries[id.index()]
    }

    fn name(&self, id: Id) -> &CStr {
        let arena = &self.arenas[id.arena()];
        let at = (arena.entries[id.index()].name & ((1 << 48) - 1)) as usize;
        CStr::from_bytes_until_nul(&arena.names[at..]).expect("each name was kept with its NUL")
    }

    /// Tells of each directory that is listed in the tree, in no particular order.
    pub(crate) fn each_directory<'t>(&'t self, mut tell: impl FnMut(Node<'t>)) {
        for (index, directory) in self.directories.iter().enumerate() {
            let Directory { entry, parent, .. } = *directory;
            if entry == Id::NONE {
                continue;
            }
            tell(Node { tree: self, place: Place { entry, directory: index as u32, parent } });
        }
    }

    /// The path of something that a [`Visitor`](crate::Visitor) was told of, beginning with a path
    /// as it was given. Linear in the depth.
    pub fn path_within(&self, within: Within, name: &[u8]) -> Vec<u8> {
        let directory = self.bases.directory(within.0);
        match self.directories.get(directory as usize) {
            None => name.to_vec(),
            Some(above) => joined(self.path(above.entry, above.parent), name),
        }
    }

    /// The way to something that a [`Visitor`](crate::Visitor) was told of: the given path, and the
    /// names of the directories below it. Nothing for a given path itself.
    pub(crate) fn way(&self, within: Within) -> Vec<&CStr> {
        let mut names = Vec::new();
        let mut above = self.bases.directory(within.0);
        while let Some(directory) = self.directories.get(above as usize) {
            names.push(self.name(directory.entry));
            above = directory.parent;
        }
        names.reverse();
        names
    }

    /// Tells of each name of a file that has several, in no particular order.
    pub(crate) fn each_link(&self, mut tell: impl FnMut(&Seen<'_>)) {
        // Of each directory that was asked about, so that this is linear however deep they lie.
        let mut depths = vec![0; if self.links.is_empty() { 0 } else { self.directories.len() }];
        for link in &self.links {
            let entry = self.entry(link.entry);
            let meta = Meta {
                device: link.device,
                inode: link.inode,
                links: link.links.into(),
                apparent: entry.apparent,
                disk: entry.disk,
                modified: link.facts.modified(),
                mode: link.facts.mode().into(),
                owner: link.facts.owner(),
                group: link.facts.group(),
                ..Meta::of(entry.kind())
            };
            tell(&Seen {
                name: self.name(link.entry).to_bytes(),
                meta: &meta,
                within: Within(link.parent),
                depth: self.depth_in(self.bases.directory(link.parent), &mut depths),
                bears: entry.name & SPENT == 0,
                own: None,
            });
        }
    }

    /// How deep the entries of a directory lie. `known` has it of directories that were asked about
    /// before, and 0 of others.
    fn depth_in(&self, directory: u32, known: &mut [u32]) -> u32 {
        let (mut way, mut above) = (Vec::new(), directory);
        while above != ABSENT && known[above as usize] == 0 {
            way.push(above);
            above = self.directories[above as usize].parent;
        }
        let mut depth = if above == ABSENT { 0 } else { known[above as usize] };
        for directory in way.into_iter().rev() {
            depth += 1;
            known[directory as usize] = depth;
        }
        depth
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
        let path = Vec::with_capacity(names.iter().map(|name| name.len() + 1).sum());
        names.into_iter().rev().fold(path, joined)
    }
}

fn joined(mut path: Vec<u8>, name: &[u8]) -> Vec<u8> {
    const SEPARATOR: u8 = std::path::MAIN_SEPARATOR as u8;
    if !path.is_empty() && path.last() != Some(&SEPARATOR) {
        path.push(SEPARATOR);
    }
    path.extend_from_slice(name);
    path
}

impl<'t> Node<'t> {
    /// Its identity, for [`Tree::node`].
    pub fn id(&self) -> NodeId {
        NodeId(self.place)
    }

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

    /// When it was changed and whose it is, if [`Options::keep_facts`](crate::Options) says so.
    pub fn facts(&self) -> Option<Facts> {
        let Place { entry, .. } = self.place;
        self.tree.arenas[entry.arena()].facts.get(entry.index()).copied()
    }

    /// Whether another name of the same file bears its size.
    pub fn counts_elsewhere(&self) -> bool {
        self.tree.entry(self.place.entry).name & SPENT != 0
    }

    /// Whether it is a directory that could not be read, or not to its end: more may lie in it.
    pub fn is_unread(&self) -> bool {
        self.tree.entry(self.place.entry).name & UNREAD != 0
    }

    /// Whether it is a directory that holds more than the tree has entries for, as
    /// [`Options::memory`](crate::Options) was used up: its sums are those of everything.
    pub fn is_summed(&self) -> bool {
        self.tree.entry(self.place.entry).name & SUMMED != 0
    }

    /// How many entries lie below it, at any depth.
    pub fn entries(&self) -> u64 {
        self.directory().map_or(0, |directory| directory.entries)
    }

    fn directory(&self) -> Option<&'t Directory> {
        self.tree.directories.get(self.place.directory as usize)
    }

    /// What has a name in it. Linear in what it holds.
    fn find(&self, name: &[u8]) -> Option<Node<'t>> {
        let directory = self.directories().find(|node| node.name() == name);
        directory.or_else(|| self.files().find(|node| node.name() == name))
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

    /// Every other entry in it, in the order the system listed them, if
    /// [`Options::keep_files`](crate::Options) says so; otherwise none.
    pub fn files(&self) -> impl Iterator<Item = Node<'t>> + use<'t> {
        let tree = self.tree;
        let parent = self.place.directory;
        let directory = self.directory().filter(|_| tree.keep_files);
        let (first, kept) = directory.map_or((Id::new(0, 0), 0), |it| (it.first, it.kept));
        let index = first.index();
        (index..index + kept as usize)
            .map(move |index| Id::new(first.arena() as u16, index))
            .filter(move |&id| {
                let entry = tree.entry(id);
                entry.kind() != Kind::Directory && entry.name & GONE == 0
            })
            .map(move |entry| Node { tree, place: Place { entry, directory: ABSENT, parent } })
    }
}
