//! A tree from entries that come depth first, as documents hold them.
//!
//! A [`Tree`] wants the entries of a directory side by side, and a document has the entries of its
//! subdirectories between them. So the entries of each directory that has begun wait until it ends:
//! the entries beside the path to the current entry.

use super::{Arena, Entry, Facts, HardLink, Id, Link, Listing, Root, build};
use crate::sys::{Kind, Meta};
use crate::{Failure, Options, Scan, Totals};

/// The longest name of an entry that is no given path. Systems have names of some hundred bytes,
/// and they are compared.
const LONGEST_NAME: usize = u16::MAX as usize;

/// The most bytes that the paths of failures may take beyond a share of the entries. Each is a
/// whole path, so in a deep tree a document of some kilobytes would take gigabytes otherwise.
const FREE_PATHS: u64 = 64 << 20;

/// Takes entries in, and gives the scan that they make.
#[derive(Debug)]
pub(crate) struct Importer {
    arena: Arena,
    links: Vec<HardLink>,
    failures: Vec<(Id, Id, Box<str>)>,
    /// How long the paths of the failures are, together.
    failed_paths: u64,
    totals: Totals,
    open: Vec<Open>,
    waiting: Vec<Entry>,
    /// Of each that waits, once one had any.
    facts: Vec<Facts>,
    has_facts: bool,
    /// The directories and files that must be told an entry's final place: with the entry's index
    /// in `waiting`, rising.
    notes: Vec<(usize, Note)>,
}

/// A directory whose entries are coming; the first of all is what holds the given paths.
#[derive(Debug)]
struct Open {
    /// The index of its listing.
    listing: usize,
    /// Where its own entries begin.
    waiting: usize,
    notes: usize,
    /// How long its path is, with a separator at its end.
    path: u64,
}

#[derive(Debug)]
enum Note {
    /// Of a directory: the index of its listing.
    Listing(usize),
    /// Of a file that has several names.
    Link(Link),
    Error(Box<str>),
}

/// An entry of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Imported<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: Kind,
    /// Bytes of its own; of a file that has several names, at each of them.
    pub(crate) apparent: u64,
    pub(crate) disk: u64,
    /// Of a file that has several names. Where a document does not say how many, 1.
    pub(crate) link: Option<Link>,
    pub(crate) facts: Option<Facts>,
    pub(crate) error: Option<&'a str>,
}

impl Importer {
    pub(crate) fn new() -> Importer {
        Importer {
            arena: Arena::new(0, false),
            links: Vec::new(),
            failures: Vec::new(),
            failed_paths: 0,
            totals: Totals::default(),
            open: vec![Open { listing: usize::MAX, waiting: 0, notes: 0, path: 0 }],
            waiting: Vec::new(),
            facts: Vec::new(),
            has_facts: false,
            notes: Vec::new(),
        }
    }

    /// How many directories have begun and not ended.
    pub(crate) fn depth(&self) -> usize {
        self.open.len() - 1
    }

    /// How many bytes it takes, with the room that vectors keep to grow.
    pub(crate) fn bytes(&self) -> u64 {
        let waiting = self.waiting.len() * (size_of::<Entry>() + size_of::<Facts>());
        let open = self.open.len() * size_of::<Open>();
        let notes = self.notes.len() * size_of::<(usize, Note)>();
        let links = self.links.len() * size_of::<HardLink>();
        // Each is a whole path in the end, and has a message.
        let failures = self.failures.len() as u64 * 128 + self.failed_paths;
        self.arena.bytes() + 2 * (waiting + open + notes + links) as u64 + failures
    }

    /// Takes an entry of the directory that began last. A directory begins with this.
    ///
    /// # Errors
    ///
    /// If no tree can hold it, with the reason.
    pub(crate) fn take(&mut self, entry: Imported<'_>) -> Result<(), &'static str> {
        let Imported { name, kind, apparent, disk, link, facts, error } = entry;
        if name.contains(&0) {
            return Err("a name holds a NUL byte");
        }
        let &Open { listing: parent, path, .. } =
            self.open.last().expect("the first is never closed");
        if self.depth() > 0 && name.len() > LONGEST_NAME {
            return Err("a name is longer than 65,535 bytes");
        }
        let path = path + name.len() as u64 + 1;
        if error.is_some() {
            self.failed_paths += path;
            let taken = self.arena.names.len() as u64 + 64 * self.totals.entries();
            if self.failed_paths > FREE_PATHS + 16 * taken {
                return Err(
                    "its errors lie so deep that their paths are far longer than the document",
                );
            }
        }
        let index = self.waiting.len();
        let at = self.arena.names.len() as u64;
        self.arena.names.extend_from_slice(name);
        self.arena.names.push(0);
        self.keep_facts(facts);
        self.waiting.push(Entry { name: at | (kind as u64) << 48, apparent, disk });
        self.totals.count(kind);
        if let Some(error) = error {
            self.notes.push((index, Note::Error(error.into())));
        }
        if kind == Kind::Directory {
            let listing = self.arena.listings.len();
            if listing >= u32::MAX as usize - 1 {
                return Err("it has more than 4,294,967,294 directories");
            }
            self.notes.push((index, Note::Listing(listing)));
            let parent = if parent == usize::MAX { Id::NONE } else { Id::new(0, parent) };
            let (first, kept, leaves) = (0, 0, 0);
            self.arena.listings.push(Listing {
                entry: Id::NONE,
                parent,
                first,
                kept,
                leaves,
                apparent,
                disk,
            });
            self.open.push(Open { listing, waiting: index + 1, notes: self.notes.len(), path });
            return Ok(());
        }
        if let Some(link) = link {
            self.notes.push((index, Note::Link(link)));
        }
        if let Some(listing) = self.arena.listings.get_mut(parent) {
            listing.leaves = listing.leaves.checked_add(1).ok_or("a directory is too large")?;
            if link.is_none() {
                listing.apparent = listing.apparent.saturating_add(apparent);
                listing.disk = listing.disk.saturating_add(disk);
            }
        }
        Ok(())
    }

    /// Keeps the facts of the entry that is about to wait. Entries before the first one with facts
    /// have none.
    fn keep_facts(&mut self, facts: Option<Facts>) {
        if facts.is_some() && !self.has_facts {
            self.has_facts = true;
            self.facts.resize(self.waiting.len(), Facts::default());
            self.arena.facts.resize(self.arena.entries.len(), Facts::default());
        }
        if self.has_facts {
            self.facts.push(facts.unwrap_or_default());
        }
    }

    /// Ends the directory that began last.
    pub(crate) fn close(&mut self) {
        assert!(self.depth() > 0, "a directory has begun");
        let (listing, first, kept) = self.settle();
        let listing = &mut self.arena.listings[listing];
        (listing.first, listing.kept) = (first, kept);
    }

    /// Gives the entries of the last directory their places: its listing, the first of them, and
    /// how many.
    fn settle(&mut self) -> (usize, usize, u32) {
        let Open { listing, waiting, notes, .. } = self.open.pop().expect("as the caller says");
        let first = self.arena.entries.len();
        let parent = if listing == usize::MAX { Id::NONE } else { Id::new(0, listing) };
        for (index, note) in self.notes.drain(notes..) {
            let entry = Id::new(0, first + index - waiting);
            match note {
                Note::Listing(listing) => self.arena.listings[listing].entry = entry,
                Note::Link(Link { device, inode, links }) => {
                    let links = links.into();
                    let meta = Meta { device, inode, links, ..Meta::of(Kind::File) };
                    self.links.push(HardLink::new(&meta, entry, parent));
                }
                Note::Error(message) => self.failures.push((entry, parent, message)),
            }
        }
        self.arena.entries.extend(self.waiting.drain(waiting..));
        if self.has_facts {
            self.arena.facts.extend(self.facts.drain(waiting..));
        }
        (listing, first, (self.arena.entries.len() - first) as u32)
    }

    /// The scan that was taken in. What a document does not tell is left as [`Scan::default`] has
    /// it.
    ///
    /// # Panics
    ///
    /// If a directory has not ended.
    pub(crate) fn finish(mut self) -> Scan {
        assert_eq!(self.depth(), 0, "each directory has ended");
        let (_, first, count) = self.settle();
        let mut roots: Vec<Root> = (first..first + count as usize)
            .map(|index| Root { entry: Id::new(0, index), listing: Id::NONE, given: true })
            .collect();
        for (index, listing) in self.arena.listings.iter().enumerate() {
            if listing.parent == Id::NONE {
                roots[listing.entry.index() - first].listing = Id::new(0, index);
            }
        }
        let unread: Vec<Id> = self.failures.iter().map(|failure| failure.0).collect();
        let mut built = build(vec![self.arena], &roots, self.links, Vec::new(), &unread, &[], true);
        built.tree.index_links(true);
        let mut errors: Vec<_> = self
            .failures
            .into_iter()
            .map(|(entry, parent, message)| Failure {
                path: built.path(entry, parent),
                message: message.into(),
            })
            .collect();
        errors.sort_by(|a, b| a.path.cmp(&b.path));
        let mut totals = self.totals;
        totals.errors = errors.len() as u64;
        (totals.apparent_bytes, totals.disk_bytes) = (built.apparent, built.disk);
        let keep_facts = self.has_facts;
        let options = Options { keep_files: true, keep_facts, ..Options::default() };
        Scan { totals, tree: built.tree, errors, options, ..Scan::default() }
    }
}
