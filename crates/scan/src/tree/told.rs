//! Tells a visitor of each entry of a finished tree, as the walk that made it did.

use super::{Id, Node, Tree};
use crate::Kind;
use crate::sys::Meta;
use crate::visit::{Seen, Within};

impl Tree {
    /// Tells of each entry, a directory before what is in it. Right only if the tree holds every
    /// file. What the tree does not keep (times and owners without
    /// [`Options::keep_facts`](crate::Options), device and number of a file that has one name)
    /// is 0.
    pub(crate) fn each_entry(&self, mut tell: impl FnMut(&Seen<'_>)) {
        let mut waiting: Vec<(Node<'_>, Id, u32)> =
            self.roots().map(|root| (root, Id::NONE, 0)).collect();
        while let Some((node, within, depth)) = waiting.pop() {
            let listing = self.bases.listing(node.place.directory);
            let directory = node.kind() == Kind::Directory;
            tell(&Seen {
                name: node.name(),
                meta: &node.meta(),
                within: Within(within),
                depth,
                bears: !node.counts_elsewhere(),
                own: directory.then_some(Within(listing)),
            });
            for file in node.files() {
                tell(&Seen {
                    name: file.name(),
                    meta: &file.meta(),
                    within: Within(listing),
                    depth: depth + 1,
                    bears: !file.counts_elsewhere(),
                    own: None,
                });
            }
            waiting.extend(node.directories().map(|below| (below, listing, depth + 1)));
        }
    }
}

impl Node<'_> {
    /// The tree's facts of it, as the system gave them.
    fn meta(&self) -> Meta {
        let (apparent, disk) = self.own();
        let facts = self.facts().unwrap_or_default();
        let meta = Meta {
            apparent,
            disk,
            modified: facts.modified(),
            mode: facts.mode().into(),
            owner: facts.owner(),
            group: facts.group(),
            ..Meta::of(self.kind())
        };
        match self.link() {
            Some(link) => {
                Meta { device: link.device, inode: link.inode, links: link.links.into(), ..meta }
            }
            None => meta,
        }
    }
}
