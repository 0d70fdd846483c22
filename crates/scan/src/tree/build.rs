//! Builds a linked and summed [`Tree`] from what the workers wrote.

use super::order::PathOrder;
use super::{
    ABSENT, Arena, Bases, Directory, Entry, Facts, Id, Listing, Place, SPENT, SUMMED, Tree, UNREAD,
};
use crate::sys::Meta;
use crate::walk::Summed;

/// A name of a file that has several names: the worker that found it set it aside, and it is
/// counted here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HardLink {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) entry: Id,
    /// The listing it was found in, or [`Id::NONE`].
    pub(crate) parent: Id,
    pub(crate) links: u32,
    pub(crate) facts: Facts,
}

impl HardLink {
    #[inline]
    pub(crate) fn new(meta: &Meta, entry: Id, parent: Id) -> HardLink {
        let Meta { device, inode, .. } = *meta;
        let links = u32::try_from(meta.links).unwrap_or(u32::MAX);
        HardLink { device, inode, entry, parent, links, facts: Facts::of(meta) }
    }
}

/// A directory that turned out to be one of the roots, found within another of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alias {
    pub(crate) entry: Id,
    pub(crate) parent: Id,
    pub(crate) root: usize,
}

/// A given path, or a directory that other paths lead to as well: its entry, and its listing or
/// [`Id::NONE`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Root {
    pub(crate) entry: Id,
    pub(crate) listing: Id,
    /// Whether it was given, and so stands by itself unless it lies within another.
    pub(crate) given: bool,
}

/// Bytes and entries that are summed up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) apparent: u64,
    pub(crate) disk: u64,
    pub(crate) entries: u64,
}

impl Sum {
    pub(super) fn add(&mut self, other: Sum) {
        // A sparse file may claim 2^63 bytes, so two of them could pass the word's end.
        self.apparent = self.apparent.saturating_add(other.apparent);
        self.disk = self.disk.saturating_add(other.disk);
        self.entries += other.entries;
    }
}

/// The finished tree, and its totals.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) tree: Tree,
    pub(crate) apparent: u64,
    pub(crate) disk: u64,
    /// For each root, whether it stands in the tree by itself, and not within another.
    pub(crate) outermost: Vec<bool>,
}

impl Built {
    /// The path of an entry that lies in a listing or, if that is [`Id::NONE`], is a root.
    pub(crate) fn path(&self, entry: Id, parent: Id) -> Vec<u8> {
        self.tree.path(entry, self.tree.bases.directory(parent))
    }
}

/// Links the listings, gives each file with several names to one of them, and sums up.
///
/// Time: linear in the directories, and n log n in the names of files that have several.
///
/// # Panics
///
/// If there are more than 4,294,967,294 directories.
pub(crate) fn build(
    mut arenas: Vec<Arena>,
    roots: &[Root],
    mut links: Vec<HardLink>,
    mut aliases: Vec<Alias>,
    unread: &[Id],
    summed: &[(Id, Summed)],
    keep_files: bool,
) -> Built {
    for id in unread.iter().filter(|id| **id != Id::NONE) {
        arenas[id.arena()].entries[id.index()].name |= UNREAD;
    }
    let mut bases = Bases(Vec::with_capacity(arenas.len()));
    let mut count = 0_usize;
    for arena in &arenas {
        bases.0.push(count as u32);
        count += arena.listings.len();
    }
    assert!(count < ABSENT as usize, "a tree holds at most 4,294,967,294 directories");

    let mut directories = Vec::with_capacity(count);
    for number in 0..arenas.len() {
        for listing in std::mem::take(&mut arenas[number].listings) {
            let Listing { entry, parent, first, kept, leaves, apparent, disk } = listing;
            // The directory's own sums stand in its entry, to which those of its subdirectories are
            // added.
            let own = &mut arenas[entry.arena()].entries[entry.index()];
            (own.apparent, own.disk) = (apparent, disk);
            directories.push(Directory {
                entry,
                first: Id::new(arenas[number].number, first),
                kept,
                parent: bases.directory(parent),
                child: ABSENT,
                sibling: ABSENT,
                entries: leaves.into(),
            });
        }
    }

    let (roots_found, links_found) = (Vec::new(), Vec::new());
    let mut tree = Tree {
        arenas,
        directories,
        roots: roots_found,
        keep_files,
        links: links_found,
        bases,
        gone: 0,
    };
    let outermost = graft(&mut tree, roots, &mut aliases);
    for &(listing, Summed { apparent, disk, entries }) in summed {
        let directory = tree.bases.directory(listing);
        add(&mut tree, directory, Sum { apparent, disk, entries });
        let entry = tree.directories[directory as usize].entry;
        tree.arenas[entry.arena()].entries[entry.index()].name |= SUMMED;
    }
    settle(&mut tree, &mut links, |tree, parent, sum| {
        // A root's own entry bears its size already.
        if parent != ABSENT {
            add(tree, parent, sum);
        }
    });
    links.sort_unstable_by_key(|link| link.entry);
    tree.links = links;
    place_facts(&mut tree);
    sum_up(&mut tree);

    let by_itself = |(root, outermost): &(&Root, &bool)| root.given && **outermost;
    for (root, _) in roots.iter().zip(&outermost).filter(by_itself) {
        let directory = tree.bases.directory(root.listing);
        tree.roots.push(Place { entry: root.entry, directory, parent: ABSENT });
    }
    let mut total = Sum::default();
    for node in tree.roots() {
        total.add(Sum { apparent: node.apparent_bytes(), disk: node.disk_bytes(), entries: 0 });
    }
    Built { apparent: total.apparent, disk: total.disk, tree, outermost }
}

/// Hangs each root that was found within another below the directory that it was found in.
///
/// A root may be found more than once (bind mounts): the path that comes first takes it. It may be
/// found, through others, within itself: then the last link of that chain is left out.
fn graft(tree: &mut Tree, roots: &[Root], aliases: &mut [Alias]) -> Vec<bool> {
    let mut order = PathOrder::default();
    aliases.sort_by(|a, b| {
        let place = |alias: &Alias| (alias.entry, tree.bases.directory(alias.parent));
        order.compare(tree, place(a), place(b))
    });
    let mut outermost = vec![true; roots.len()];
    for alias in aliases {
        let grafted = tree.bases.directory(roots[alias.root].listing);
        if grafted == ABSENT || !outermost[alias.root] {
            continue;
        }
        let parent = tree.bases.directory(alias.parent);
        let mut above = parent;
        while above != ABSENT && above != grafted {
            above = tree.directories[above as usize].parent;
        }
        if above == ABSENT {
            let directory = &mut tree.directories[grafted as usize];
            directory.parent = parent;
            let before = std::mem::replace(&mut directory.entry, alias.entry);
            let Entry { name, apparent, disk } = *tree.entry(before);
            let entry = &mut tree.arenas[alias.entry.arena()].entries[alias.entry.index()];
            entry.name |= name & UNREAD;
            (entry.apparent, entry.disk) = (apparent, disk);
            outermost[alias.root] = false;
        }
    }
    outermost
}

/// Gives the size of each file that has several names to the first of those that were found, and
/// tells the directory that this name is in.
pub(super) fn settle(
    tree: &mut Tree,
    links: &mut [HardLink],
    mut bear: impl FnMut(&mut Tree, u32, Sum),
) {
    let mut order = PathOrder::default();
    links.sort_unstable_by_key(|link| (link.device, link.inode));
    for names in links.chunk_by(|a, b| (a.device, a.inode) == (b.device, b.inode)) {
        let bearer = names
            .iter()
            .min_by(|a, b| {
                let place = |link: &HardLink| (link.entry, tree.bases.directory(link.parent));
                order.compare(tree, place(a), place(b))
            })
            .expect("a chunk is never empty");
        for link in names {
            let entry = &mut tree.arenas[link.entry.arena()].entries[link.entry.index()];
            if link.entry == bearer.entry {
                let sum = Sum { apparent: entry.apparent, disk: entry.disk, entries: 0 };
                let parent = tree.bases.directory(link.parent);
                bear(tree, parent, sum);
            } else {
                entry.name |= SPENT;
            }
        }
    }
}

/// Gives what is known of each listed directory to its entry.
fn place_facts(tree: &mut Tree) {
    for arena in 0..tree.arenas.len() {
        let first = tree.bases.0[arena] as usize;
        for (listing, facts) in
            std::mem::take(&mut tree.arenas[arena].listed).into_iter().enumerate()
        {
            let entry = tree.directories[first + listing].entry;
            tree.arenas[entry.arena()].facts[entry.index()] = facts;
        }
    }
}

/// The sums of a directory so far.
fn sum(tree: &Tree, directory: u32) -> Sum {
    let Directory { entry, entries, .. } = tree.directories[directory as usize];
    let Entry { apparent, disk, .. } = *tree.entry(entry);
    Sum { apparent, disk, entries }
}

/// Adds to what a directory holds, but not to the ones above it.
fn add(tree: &mut Tree, directory: u32, more: Sum) {
    let mut now = sum(tree, directory);
    now.add(more);
    let directory = &mut tree.directories[directory as usize];
    directory.entries = now.entries;
    let entry = &mut tree.arenas[directory.entry.arena()].entries[directory.entry.index()];
    (entry.apparent, entry.disk) = (now.apparent, now.disk);
}

/// Adds each directory to its parent, the deepest first, and links siblings.
fn sum_up(tree: &mut Tree) {
    let mut unsummed = vec![0_u32; tree.directories.len()];
    for index in 0..tree.directories.len() {
        let parent = tree.directories[index].parent;
        if parent != ABSENT {
            let above = &mut tree.directories[parent as usize];
            let sibling = std::mem::replace(&mut above.child, index as u32);
            tree.directories[index].sibling = sibling;
            unsummed[parent as usize] += 1;
        }
    }
    for index in 0..tree.directories.len() {
        // From each directory without subdirectories upwards, as far as all subdirectories are
        // summed.
        let mut done = index as u32;
        if tree.directories[index].child != ABSENT {
            continue;
        }
        loop {
            let below = sum(tree, done);
            done = tree.directories[done as usize].parent;
            if done == ABSENT {
                break;
            }
            add(tree, done, Sum { entries: below.entries + 1, ..below });
            unsummed[done as usize] -= 1;
            if unsummed[done as usize] > 0 {
                break;
            }
        }
    }
}
