//! Blocks that several files have in common (reflinks, snapshots), counted once.
//!
//! Each file is asked where it lies on its disk. Files of a directory come before what lies
//! deeper, each by name. Bytes that lie where an earlier file has something take no further space
//! on the disk. They are taken out of the file's size, at each of its names, and of all sums above
//! it. Only stretches that the file system calls shared are remembered.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::path::Path;

use crate::duplicates::part_of;
use crate::sys::{DiskExtent, Meta, Native, Sys, path_of};
use crate::tree::{Link, Sum};
use crate::{Control, Failure, Kind, Node, Scan};

/// What files have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Shared {
    /// Bytes on disk that count at another file.
    pub bytes: u64,
    /// How many files have such bytes.
    pub files: u64,
    /// How many files lie on a file system that does not say where. They count whole.
    pub unknown_files: u64,
}

/// Stretches of disks.
#[derive(Default)]
struct Stretches {
    /// By file system: where each begins and ends. No two touch.
    plain: HashMap<u64, BTreeMap<u64, u64>>,
    /// File system, begin and length of those that are [encoded](DiskExtent::encoded): they take
    /// fewer bytes than they have, so that others may begin within them.
    encoded: HashSet<(u64, u64, u64)>,
}

impl Stretches {
    /// Adds a stretch. Returns how many bytes of it are there already.
    fn add(&mut self, volume: u64, extent: &DiskExtent) -> u64 {
        let &DiskExtent { physical, length, encoded, .. } = extent;
        if encoded {
            let is_new = self.encoded.insert((volume, physical, length));
            return if is_new { 0 } else { length };
        }
        self.add_plain(volume, physical, length)
    }

    fn add_plain(&mut self, volume: u64, start: u64, length: u64) -> u64 {
        let all = self.plain.entry(volume).or_default();
        let (mut start, mut end, mut there) = (start, start.saturating_add(length), 0);
        let (first, last) = (start, end);
        while let Some((&other, &its_end)) = all.range(..=end).next_back() {
            if its_end < start {
                break;
            }
            there += its_end.min(last).saturating_sub(other.max(first));
            all.remove(&other);
            (start, end) = (start.min(other), end.max(its_end));
        }
        if start < end {
            all.insert(start, end);
        }
        there
    }
}

/// What is known of the files so far.
struct Counting<'s, S> {
    sys: &'s S,
    follows: bool,
    stretches: Stretches,
    /// The file system that each device is of.
    volumes: HashMap<u64, u64>,
    shared: Shared,
    failures: Vec<Failure>,
}

impl<S: Sys> Counting<'_, S> {
    /// How many of a file's bytes on disk count at an earlier one. Nothing, where nobody knows.
    fn again(&mut self, (file, meta): &(File, Meta), disk: u64) -> Option<u64> {
        if meta.kind != Kind::File {
            return Some(0);
        }
        let device = meta.device;
        let volume = *self.volumes.entry(device).or_insert_with(|| self.sys.volume(file, device));
        let (mut all, mut there) = (0_u64, 0_u64);
        let told = self.sys.extents(file, &mut |it| {
            all = all.saturating_add(it.length);
            if it.shared {
                there = there.saturating_add(self.stretches.add(volume, &it));
            }
        });
        told.ok().map(|()| part_of(there, all, disk).min(disk))
    }

    fn open(&self, directory: Option<&S::Directory>, node: &Node<'_>) -> io::Result<(File, Meta)> {
        let name = CString::new(node.name())?;
        match directory {
            Some(directory) => self.sys.open_file(directory, &name),
            None => open_given(self.sys, &name, self.follows),
        }
    }

    /// Asks about each of some files. Returns the bytes to take out of their sizes.
    fn ask<'t>(
        &mut self,
        directory: Option<&S::Directory>,
        mut files: Vec<Node<'t>>,
        control: &Control,
    ) -> Vec<(Node<'t>, u64)> {
        files.retain(|it| it.kind() == Kind::File && it.disk_bytes() > 0);
        files.sort_unstable_by_key(Node::name);
        let mut found = Vec::new();
        for node in files {
            if control.is_stopped() {
                break;
            }
            let again = match self.open(directory, &node) {
                Ok(file) => self.again(&file, node.disk_bytes()),
                Err(error) => {
                    let message = format!("cannot find out which blocks it shares: {error}");
                    self.failures.push(Failure { path: node.path(), message });
                    continue;
                }
            };
            match again {
                None => self.shared.unknown_files += 1,
                Some(0) => {}
                Some(again) => {
                    self.shared.bytes += again;
                    self.shared.files += 1;
                    found.push((node, again));
                }
            }
        }
        found
    }
}

/// Opens a file that was given by path.
pub(crate) fn open_given<S: Sys>(sys: &S, path: &CStr, follow: bool) -> io::Result<(File, Meta)> {
    let path = path_of(path.to_bytes())?;
    let path = if follow { path.canonicalize()? } else { path };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name = CString::new(name.as_encoded_bytes())?;
    sys.open_file(&sys.open_path(directory)?, &name)
}

impl Scan {
    /// Counts blocks that several files have in common once, at the file that comes first, and says
    /// what that was in [`Scan::shared`]. Files of a directory come before what lies deeper, each
    /// by name. On Linux; elsewhere, and on file systems without `FIEMAP`, nobody says where a
    /// file lies.
    ///
    /// An export or a snapshot that is written afterwards has the smaller sizes, and does not say
    /// so.
    ///
    /// Opens each file that takes bytes, which has what was written to it written to its disk. For
    /// a scan that has [kept its files](crate::Options::keep_files) and is as it was made. Once
    /// [`Control::stop`] was called it ends, and the scan is said to be interrupted. Files that
    /// cannot be opened are added to the errors.
    pub fn count_shared_once(&mut self, control: &Control) {
        self.count_shared_once_on(&Native::default(), control);
    }

    /// [`count_shared_once`](Self::count_shared_once), on a system of the caller's.
    pub fn count_shared_once_on<S: Sys>(&mut self, sys: &S, control: &Control) {
        let mut counting = Counting {
            sys,
            follows: self.options.follow_paths,
            stretches: Stretches::default(),
            volumes: HashMap::new(),
            shared: Shared::default(),
            failures: Vec::new(),
        };
        let mut found = Vec::new();
        let mut roots: Vec<Node<'_>> = self.tree.roots().collect();
        found.extend(counting.ask(None, roots.clone(), control));
        roots.retain(|it| it.kind() == Kind::Directory);
        roots.sort_unstable_by(|a, b| b.name().cmp(a.name()));
        // The next one is the last.
        let mut waiting = roots;
        while let Some(node) = waiting.pop().filter(|_| !control.is_stopped()) {
            let first = waiting.len();
            waiting.extend(node.directories());
            waiting[first..].sort_unstable_by(|a, b| b.name().cmp(a.name()));
            let files: Vec<Node<'_>> = node.files().collect();
            if !files.iter().any(|it| it.kind() == Kind::File && it.disk_bytes() > 0) {
                continue;
            }
            match self.tree.open(sys, &node) {
                Ok(directory) => found.extend(counting.ask(Some(&directory), files, control)),
                Err(error) => {
                    let message = format!("cannot find out which blocks are shared in it: {error}");
                    counting.failures.push(Failure { path: node.path(), message });
                }
            }
        }
        let names = found.iter().filter_map(|(node, again)| {
            node.link().map(|Link { device, inode, .. }| ((device, inode), *again))
        });
        let names: HashMap<_, _> = names.collect();
        let found: Vec<_> = found.into_iter().map(|(node, again)| (node.id(), again)).collect();
        let Counting { shared, failures, .. } = counting;
        for (id, disk) in found {
            self.tree.take_out(id, Sum { apparent: 0, disk, entries: 0 });
        }
        self.tree.take_out_elsewhere(&names);
        self.sum_up();
        self.interrupted |= control.is_stopped();
        self.errors.extend(failures);
        self.errors.sort_by(|a, b| a.path.cmp(&b.path));
        self.totals.errors = self.errors.len() as u64;
        self.shared = Some(shared);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_already_is_counted_however_it_lies() {
        let mut stretches = Stretches::default();
        for (start, length, there) in [
            (100, 50, 0),
            (100, 50, 50),
            // In its midst, over either end, and beside it.
            (110, 10, 10),
            (90, 20, 10),
            (140, 20, 10),
            (160, 10, 0),
            // Over all of it, and over two.
            (300, 10, 0),
            (0, 400, 90),
            (200, 0, 0),
            (u64::MAX - 5, 100, 0),
            (u64::MAX - 5, 100, 5),
        ] {
            assert_eq!(stretches.add_plain(1, start, length), there, "{start} and {length}");
        }
        // On another disk nothing is there.
        assert_eq!(stretches.add_plain(2, 100, 50), 0);
        assert_eq!(stretches.plain[&1].len(), 2);
    }

    /// The answer of Linux on btrfs for a compressed file: 128 KiB each, in one block each.
    #[test]
    fn what_is_compressed_is_there_only_if_the_same_of_it_is() {
        let mut stretches = Stretches::default();
        let extent = |block: u64, blocks: u64, encoded| DiskExtent {
            physical: block << 12,
            length: blocks << 12,
            shared: true,
            encoded,
        };
        let neighbours = [extent(31_872, 32, true), extent(31_873, 32, true)];
        for there in [0, 32 << 12] {
            for extent in &neighbours {
                assert_eq!(stretches.add(1, extent), there);
            }
        }
        // Another part of it, another disk, and what is not compressed.
        assert_eq!(stretches.add(1, &extent(31_872, 8, true)), 0);
        assert_eq!(stretches.add(2, &neighbours[0]), 0);
        assert_eq!(stretches.add(1, &extent(31_874, 2, false)), 0);
        assert_eq!(stretches.add(1, &extent(31_875, 2, false)), 1 << 12);
    }
}
