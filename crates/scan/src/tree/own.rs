//! Facts of one entry by itself, for documents whose readers sum up.

use super::{HardLink, Node, Tree};
use crate::Kind;

/// The identity of a file with several names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The device of the file system it lies on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// How many names it has, those outside of the tree included; 1 where a document does not say.
    pub links: u32,
}

impl Tree {
    /// Makes [`Node::link`] answer, or forgets which names are of the same file.
    pub(crate) fn index_links(&mut self, wanted: bool) {
        if wanted {
            self.links.sort_unstable_by_key(|link| link.entry);
        } else {
            self.links = Vec::new();
        }
    }
}

impl Node<'_> {
    /// The file behind it, if that has several names and the tree holds every file.
    pub fn link(&self) -> Option<Link> {
        let links = &self.tree.links;
        let found = links.binary_search_by_key(&self.place.entry, |link| link.entry).ok()?;
        let HardLink { device, inode, links, .. } = links[found];
        Some(Link { device, inode, links })
    }

    /// Its length and its bytes on disk: of a directory without what is in it, of a file that has
    /// several names at each of them. Right only if the tree holds every file.
    pub(crate) fn own(&self) -> (u64, u64) {
        let entry = self.tree.entry(self.place.entry);
        if self.kind() != Kind::Directory {
            return (entry.apparent, entry.disk);
        }
        let inside = |bytes: fn(&Self) -> u64| {
            self.directories()
                .chain(self.files())
                .map(|node| bytes(&node))
                .fold(0, u64::saturating_add)
        };
        (
            entry.apparent.saturating_sub(inside(Node::apparent_bytes)),
            entry.disk.saturating_sub(inside(Node::disk_bytes)),
        )
    }
}
