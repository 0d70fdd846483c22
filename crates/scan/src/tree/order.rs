//! The order of two paths: by their names, from the given path on, as bytes.
//!
//! Few paths are compared by climbing from both to the given path. When these climbs have taken
//! more steps than the tree has directories, each directory gets its depth and a jump to a
//! directory further up (Myers, "An applicative random-access stack", 1983). Jumps compare two
//! paths in logarithmic time: a document may hold very many names of files at very great depth.

use std::cmp::Ordering;
use std::ffi::CStr;

use super::{ABSENT, Directory, Id, Tree};

/// Compares paths of a tree whose directories have their parents and keep them.
#[derive(Debug, Default)]
pub(super) struct PathOrder {
    steps: usize,
    /// Of each directory, once they are worth their making.
    depths: Vec<u32>,
    jumps: Vec<u32>,
}

/// An entry, and the directory that it is in.
type Path = (Id, u32);

impl PathOrder {
    /// Compares two paths. Equal names in one directory are in some order.
    pub(super) fn compare(&mut self, tree: &Tree, a: Path, b: Path) -> Ordering {
        if a.1 == b.1 {
            return tree.name(a.0).cmp(tree.name(b.0));
        }
        if self.depths.is_empty() {
            if self.steps <= tree.directories.len() {
                let (a, b) = (names(tree, a), names(tree, b));
                self.steps += a.len() + b.len();
                return a.iter().rev().cmp(b.iter().rev());
            }
            self.measure(tree);
        }
        self.by_jumps(tree, a, b)
    }

    fn by_jumps(&self, tree: &Tree, a: Path, b: Path) -> Ordering {
        let (depth_of_a, depth_of_b) = (self.depth(a), self.depth(b));
        let depth = depth_of_a.min(depth_of_b);
        let (x, y) = (self.at(tree, a, depth), self.at(tree, b, depth));
        if x.0 == y.0 {
            return depth_of_a.cmp(&depth_of_b);
        }
        if x.1 == y.1 {
            return tree.name(x.0).cmp(tree.name(y.0)).then(x.0.cmp(&y.0));
        }
        // Both lie equally deep, so neither is a given path.
        let (mut x, mut y) = (x.1, y.1);
        while above(tree, x) != above(tree, y) {
            let [jump_of_x, jump_of_y] = [x, y].map(|it| self.jumps[it as usize]);
            if jump_of_x == jump_of_y {
                (x, y) = (above(tree, x), above(tree, y));
            } else {
                (x, y) = (jump_of_x, jump_of_y);
            }
        }
        let [x, y] = [x, y].map(|it| tree.directories[it as usize].entry);
        tree.name(x).cmp(tree.name(y)).then(x.cmp(&y))
    }

    /// How deep an entry lies; a given path at 0.
    fn depth(&self, (_, parent): Path) -> u32 {
        if parent == ABSENT { 0 } else { self.depths[parent as usize] + 1 }
    }

    /// What lies at this depth on the way to an entry.
    fn at(&self, tree: &Tree, path: Path, depth: u32) -> Path {
        if self.depth(path) == depth {
            return path;
        }
        let mut at = path.1;
        while self.depths[at as usize] > depth {
            let jump = self.jumps[at as usize];
            at = if self.depths[jump as usize] >= depth { jump } else { above(tree, at) };
        }
        let Directory { entry, parent, .. } = tree.directories[at as usize];
        (entry, parent)
    }

    /// Linear in the directories.
    fn measure(&mut self, tree: &Tree) {
        let count = tree.directories.len();
        (self.depths, self.jumps) = (vec![0; count], vec![ABSENT; count]);
        let mut way = Vec::new();
        for index in 0..count as u32 {
            let mut at = index;
            while at != ABSENT && self.jumps[at as usize] == ABSENT {
                way.push(at);
                at = above(tree, at);
            }
            while let Some(below) = way.pop() {
                let (depth, jump) = if at == ABSENT {
                    (0, below)
                } else {
                    let first = self.jumps[at as usize];
                    let second = self.jumps[first as usize];
                    let [at_depth, first_depth, second_depth] =
                        [at, first, second].map(|it| self.depths[it as usize]);
                    let alike = at_depth - first_depth == first_depth - second_depth;
                    (at_depth + 1, if alike { second } else { at })
                };
                (self.depths[below as usize], self.jumps[below as usize]) = (depth, jump);
                at = below;
            }
        }
    }
}

fn above(tree: &Tree, directory: u32) -> u32 {
    tree.directories[directory as usize].parent
}

/// The names of a path, the last one first.
fn names(tree: &Tree, (entry, parent): Path) -> Vec<&CStr> {
    let mut names = vec![tree.name(entry)];
    let mut at = parent;
    while at != ABSENT {
        names.push(tree.name(tree.directories[at as usize].entry));
        at = above(tree, at);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::tree::{Imported, Importer};

    #[test]
    fn both_ways_to_compare_agree() {
        let mut random = fastrand::Rng::with_seed(45);
        for _ in 0..30 {
            let mut tree = Importer::new();
            let take = |tree: &mut Importer, kind, name: &str| {
                let entry = Imported {
                    name: name.as_bytes(),
                    kind,
                    apparent: 0,
                    disk: 0,
                    link: None,
                    facts: None,
                    error: None,
                };
                tree.take(entry).expect("a tree can hold it");
            };
            for number in 0..random.usize(1..120) {
                // Of ten letters, so that the longer of two names may come first.
                let name = format!("{}{number}", random.alphabetic());
                match random.u32(0..10) {
                    0..5 => take(&mut tree, Kind::Directory, &name),
                    5..8 => take(&mut tree, Kind::File, &name),
                    _ if tree.depth() > 0 => tree.close(),
                    _ => {}
                }
            }
            while tree.depth() > 0 {
                tree.close();
            }
            let tree = tree.finish().tree;
            let mut paths: Vec<Path> = Vec::new();
            let mut waiting: Vec<_> = tree.roots().collect();
            while let Some(node) = waiting.pop() {
                paths.push((node.place.entry, node.place.parent));
                waiting.extend(node.directories().chain(node.files()));
            }
            let mut by_jumps = PathOrder::default();
            by_jumps.measure(&tree);
            for &a in &paths {
                for &b in &paths {
                    let by_names = names(&tree, a).iter().rev().cmp(names(&tree, b).iter().rev());
                    assert_eq!(by_jumps.compare(&tree, a, b), by_names, "{a:?} and {b:?}");
                }
            }
        }
    }
}
