//! The directories that are to be counted once though several paths may lead to them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The roots, the mounts that other paths lead to as well, and the directories of files given by
/// path; by device and inode. The roots come first. A mount that is a root is that root.
#[derive(Debug, Default)]
pub(crate) struct Known {
    numbers: HashMap<(u64, u64), usize>,
    directories: Vec<Directory>,
    files: HashMap<(u64, u64), Vec<usize>>,
}

#[derive(Debug)]
struct Directory {
    /// A mount is read where it is found first; a root has a task of its own.
    mount: bool,
    found: AtomicBool,
}

/// What is known of a directory that was just opened.
pub(super) enum Claim {
    /// Nothing.
    None,
    /// The directory is this one, which is read elsewhere.
    Elsewhere(usize),
    /// It is this mount, which is to be read here.
    Here(usize),
}

impl Known {
    pub(crate) fn add_directory(&mut self, identity: (u64, u64), mount: bool) {
        if !mount || !self.numbers.contains_key(&identity) {
            self.numbers.insert(identity, self.directories.len());
        }
        self.directories.push(Directory { mount, found: AtomicBool::new(false) });
    }

    pub(crate) fn add_file(&mut self, directory: (u64, u64), index: usize) {
        self.files.entry(directory).or_default().push(index);
    }

    /// Whether there is nothing to recognise.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.directories.is_empty()
    }

    /// How many roots and mounts there are.
    pub(crate) fn len(&self) -> usize {
        self.directories.len()
    }

    /// Decides who reads a directory; `root` says whether it is the task of a root itself.
    pub(super) fn claim(&self, identity: (u64, u64), root: bool) -> Claim {
        let Some(&number) = self.numbers.get(&identity) else { return Claim::None };
        let known = &self.directories[number];
        match known.mount {
            false if root => Claim::None,
            false => Claim::Elsewhere(number),
            // Relaxed: of all tasks that ask, one gets `false`; what it reads is published by the
            // joining of the workers.
            true if known.found.swap(true, Ordering::Relaxed) => Claim::Elsewhere(number),
            true => Claim::Here(number),
        }
    }

    /// The files given by path that lie in a directory.
    pub(super) fn files(&self, identity: (u64, u64)) -> &[usize] {
        self.files.get(&identity).map_or(&[], Vec::as_slice)
    }
}
