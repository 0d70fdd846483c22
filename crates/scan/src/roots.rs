//! The paths that a user gives: what they name, which of them are the same or lie within each
//! other, and what they add up to in the end.
//!
//! Two directories are the same if device and inode agree. Whether one lies within another is found
//! out by the walk itself, which knows both numbers of each directory that it opens. The walk
//! leaves a directory that is a root to that root, and [`tree::build`](crate::tree::build) hangs
//! the root at the place where the walk found it. So a link, a bind mount or a `..` on the way
//! cannot make anything count twice. A root on another file system counts although
//! `--one-file-system` keeps the walk from it. A file lies within another path if the walk has read
//! the file's directory.
//!
//! A mount point below a root, whose device is mounted elsewhere too, is looked up beforehand. The
//! walk reads the mount at the first path that leads to it; [`tree::build`](crate::tree::build)
//! hangs it at the path that comes first in byte order.
//!
//! Gathering takes constant time a path, and ends when the scan is asked to.

use std::collections::HashSet;
use std::ffi::{CString, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::{Kind, Meta, Sys};
use crate::tree::{HardLink, Id, Root, build};
use crate::visit::{Seen, Visitor, Within};
use crate::walk::{self, Findings, Known, RootDirectory, RootFile, Start};
use crate::{Control, Options, Scan, Totals};

pub(crate) struct Roots {
    pub(crate) directories: Vec<RootDirectory>,
    pub(crate) files: Vec<RootFile>,
    /// The directories to be counted once, by whatever path they are reached.
    pub(crate) known: Known,
    /// Where files that were given by path are written, and failures to find them.
    found: Findings,
    given: Vec<Given>,
    repeated: Vec<PathBuf>,
}

struct Given {
    path: PathBuf,
    entry: Id,
    what: What,
}

enum What {
    /// The index among the directories.
    Directory(usize),
    /// The index among the files.
    File(usize, Meta),
}

/// What tells one directory from another.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Identity {
    Number(u64, u64),
    /// Where the system has no numbers: the path without links, or as it was given.
    Path(PathBuf),
}

impl Identity {
    fn of(path: &Path, meta: Option<&Meta>) -> Identity {
        match meta {
            Some(meta) if meta.inode != 0 => Identity::Number(meta.device, meta.inode),
            _ => Identity::Path(path.canonicalize().unwrap_or_else(|_| path.to_owned())),
        }
    }
}

/// The paths met so far, to recognise a path that is given again.
#[derive(Default)]
struct Met {
    directories: HashSet<Identity>,
    files: HashSet<(Identity, OsString)>,
    /// The directory of the last file: those of one directory are mostly given one after another.
    parent: Option<(PathBuf, Identity)>,
}

impl Met {
    fn parent<S: Sys>(&mut self, sys: &S, path: &Path) -> Identity {
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        match &self.parent {
            Some((last, identity)) if last == parent => identity.clone(),
            _ => {
                let identity = Identity::of(parent, sys.meta(parent, true).ok().as_ref());
                self.parent = Some((parent.to_owned(), identity.clone()));
                identity
            }
        }
    }
}

impl Roots {
    /// Where the walk of these begins.
    pub(crate) fn start(&self) -> Start<'_> {
        Start { directories: &self.directories, files: &self.files, known: &self.known }
    }

    pub(crate) fn gather<S: Sys>(
        sys: &S,
        paths: &[PathBuf],
        options: &Options,
        control: &Control,
    ) -> Roots {
        let mut roots = Roots {
            directories: Vec::new(),
            files: Vec::new(),
            known: Known::default(),
            found: Findings::new(0, options.keep_facts),
            given: Vec::new(),
            repeated: Vec::new(),
        };
        let mut met = Met::default();
        for path in paths {
            if control.is_stopped() {
                roots.found.interrupted = true;
                break;
            }
            roots.add(sys, &mut met, path, options);
        }
        roots.know(sys);
        roots
    }

    fn add<S: Sys>(&mut self, sys: &S, met: &mut Met, path: &Path, options: &Options) {
        let name = match CString::new(path.as_os_str().as_encoded_bytes()) {
            Ok(name) => name,
            Err(error) => return self.fail(c"(a path with a NUL byte)", error.into()),
        };
        let meta = match sys.meta(path, options.follow_paths) {
            Ok(meta) if options.without_sizes => meta.without_sizes(),
            Ok(meta) => meta,
            Err(error) => return self.fail(&name, error),
        };
        let what = if meta.kind == Kind::Directory {
            if !met.directories.insert(Identity::of(path, Some(&meta))) {
                return self.repeated.push(path.to_owned());
            }
            What::Directory(self.directories.len())
        } else {
            let parent = met.parent(sys, path);
            let (device, inode) = match parent {
                Identity::Number(device, inode) => (device, inode),
                Identity::Path(_) => (0, 0),
            };
            if !met.files.insert((parent, path.file_name().unwrap_or_default().to_owned())) {
                return self.repeated.push(path.to_owned());
            }
            self.files.push(RootFile { device, inode, covered: AtomicBool::new(false) });
            What::File(self.files.len() - 1, meta)
        };
        let entry = self.found.arena.keep(&name, &meta);
        if let What::Directory(_) = what {
            let Meta { device, inode, .. } = meta;
            self.directories.push(RootDirectory { path: path.to_owned(), device, inode, entry });
        }
        self.given.push(Given { path: path.to_owned(), entry, what });
    }

    /// Notes what the walk is to recognise. Nothing, where there is one root and no such mount.
    fn know<S: Sys>(&mut self, sys: &S) {
        let mounts = self.mounts(sys);
        if self.directories.len() + self.files.len() + mounts.len() <= 1 {
            return;
        }
        let directories = self.directories.iter().map(|root| (root.device, root.inode));
        for (index, identity) in directories.chain(mounts).enumerate() {
            self.known.add_directory(identity, index >= self.directories.len());
        }
        for (index, file) in self.files.iter().enumerate() {
            self.known.add_file((file.device, file.inode), index);
        }
    }

    /// The device and inode of each directory at or below a root that other paths may lead to.
    fn mounts<S: Sys>(&self, sys: &S) -> Vec<(u64, u64)> {
        let points = sys.mounted_twice();
        if points.is_empty() {
            return Vec::new();
        }
        let roots = self.directories.iter().filter_map(|root| root.path.canonicalize().ok());
        let roots: HashSet<PathBuf> = roots.collect();
        points
            .iter()
            .filter(|point| point.ancestors().skip(1).any(|above| roots.contains(above)))
            .filter_map(|point| sys.meta(point, false).ok())
            .filter(|meta| meta.kind == Kind::Directory && meta.inode != 0)
            .map(|meta| (meta.device, meta.inode))
            .collect()
    }

    #[cold]
    fn fail(&mut self, name: &std::ffi::CStr, error: std::io::Error) {
        let entry = self.found.arena.keep_name(name);
        let (parent, doing) = (Id::NONE, "cannot find the path");
        self.found.failures.push(walk::Failure { entry, parent, doing, error, path: None });
    }

    /// Puts together what the workers found.
    pub(crate) fn finish<V: Visitor>(
        &mut self,
        found: Vec<Findings>,
        options: &Options,
        visitor: &V,
        part: &mut V::Part,
    ) -> Scan {
        let mut totals = Totals::default();
        let mut arenas = Vec::with_capacity(found.len() + 1);
        let (mut links, mut aliases, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        let mut listings = vec![Id::NONE; self.directories.len().max(self.known.len())];
        let (mut summed, mut without_entry) = (Vec::new(), 0);
        let mut interrupted = false;
        let own = std::mem::replace(&mut self.found, Findings::new(0, false));
        for part in std::iter::once(own).chain(found) {
            totals.add(&part.totals);
            links.extend(part.links);
            summed.extend(part.summed);
            without_entry += part.without_entry;
            aliases.extend(part.aliases);
            failures.extend(part.failures);
            part.listings.iter().for_each(|&(root, listing)| listings[root] = listing);
            interrupted |= part.interrupted;
            arenas.push(part.arena);
        }

        let mut roots = Vec::new();
        let mut paths = Vec::new();
        // Where each directory stands among the roots; the mounts come last.
        let mut places = vec![0; listings.len()];
        for Given { path, entry, what } in self.given.drain(..) {
            let listing = match what {
                What::Directory(index) => {
                    places[index] = roots.len();
                    listings[index]
                }
                // Relaxed: the workers have been joined.
                What::File(index, _) if self.files[index].covered.load(Ordering::Relaxed) => {
                    self.repeated.push(path);
                    continue;
                }
                What::File(_, meta) => {
                    totals.count(meta.kind);
                    if meta.links > 1 {
                        links.push(HardLink::new(&meta, entry, Id::NONE));
                    } else {
                        let (name, within) =
                            (path.as_os_str().as_encoded_bytes(), Within(Id::NONE));
                        visitor.entry(
                            part,
                            &Seen { name, meta: &meta, within, depth: 0, bears: true, own: None },
                        );
                    }
                    Id::NONE
                }
            };
            roots.push(Root { entry, listing, given: true });
            paths.push(path);
        }
        for (place, &listing) in places.iter_mut().zip(&listings).skip(self.directories.len()) {
            *place = roots.len();
            roots.push(Root { entry: Id::NONE, listing, given: false });
        }
        for alias in &mut aliases {
            alias.root = places[alias.root];
        }

        let unread: Vec<Id> = failures.iter().map(|failure| failure.entry).collect();
        let built = build(arenas, &roots, links, aliases, &unread, &summed, options.keep_files);
        built.tree.each_link(|seen| visitor.entry(part, seen));
        let within = paths.into_iter().zip(&built.outermost).filter(|(_, outermost)| !**outermost);
        self.repeated.extend(within.map(|(path, _)| path));
        let mut errors: Vec<_> = failures
            .into_iter()
            .map(|failure| crate::Failure {
                message: format!("{}: {}", failure.doing, failure.error),
                path: failure.path.unwrap_or_else(|| built.path(failure.entry, failure.parent)),
            })
            .collect();
        errors.sort_by(|a, b| a.path.cmp(&b.path));
        totals.errors = errors.len() as u64;
        (totals.apparent_bytes, totals.disk_bytes) = (built.apparent, built.disk);
        Scan {
            totals,
            tree: built.tree,
            errors,
            repeated: std::mem::take(&mut self.repeated),
            interrupted,
            summed: without_entry,
            ..Scan::default()
        }
    }
}
