//! The paths that a user gives: what they name, which of them are the same or lie within each other,
//! and what they add up to in the end.
//!
//! Two directories are the same if device and inode agree. Whether one lies within another is found
//! out by the walk itself, which knows both numbers of each directory that it opens: it leaves a
//! directory that is a root to that root, and [`tree::build`](crate::tree::build) hangs the root
//! where it was found. So a link, a bind mount or a `..` on the way cannot make anything count twice,
//! and a root on another file system counts where `--one-file-system` keeps the walk from it. A file
//! lies within another path if the walk has read the directory that it is in.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::{Kind, Meta, Sys};
use crate::tree::{HardLink, Id, Root, build};
use crate::walk::{self, Findings, RootDirectory, RootFile};
use crate::{Engine, Scan, Totals};

pub(crate) struct Roots {
    pub(crate) directories: Vec<RootDirectory>,
    pub(crate) files: Vec<RootFile>,
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

impl Roots {
    pub(crate) fn gather<S: Sys>(sys: &S, paths: &[PathBuf], follow: bool) -> Roots {
        let mut roots = Roots {
            directories: Vec::new(),
            files: Vec::new(),
            found: Findings::new(0),
            given: Vec::new(),
            repeated: Vec::new(),
        };
        for path in paths {
            roots.add(sys, path, follow);
        }
        roots
    }

    fn add<S: Sys>(&mut self, sys: &S, path: &Path, follow: bool) {
        let name = CString::new(path.as_os_str().as_encoded_bytes());
        let name = match name {
            Ok(name) => name,
            Err(error) => return self.fail(c"(a path with a NUL byte)", error.into()),
        };
        let meta = match sys.meta(path, follow) {
            Ok(meta) => meta,
            Err(error) => return self.fail(&name, error),
        };
        let what = if meta.kind == Kind::Directory {
            if self.directories.iter().any(|known| same(known, path, &meta)) {
                return self.repeated.push(path.to_owned());
            }
            What::Directory(self.directories.len())
        } else {
            let parent = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            let parent = sys.meta(parent, true).ok();
            let (device, inode) = parent.map_or((0, 0), |parent| (parent.device, parent.inode));
            let known = self.given.iter().any(|given| match given.what {
                What::File(index, _) => {
                    let file = &self.files[index];
                    (file.device, file.inode) == (device, inode)
                        && given.path.file_name() == path.file_name()
                        && (inode != 0 || given.path == path)
                }
                What::Directory(_) => false,
            });
            if known {
                return self.repeated.push(path.to_owned());
            }
            self.files.push(RootFile { device, inode, covered: AtomicBool::new(false) });
            What::File(self.files.len() - 1, meta)
        };
        let entry = self.found.arena.keep(&name, meta.kind, meta.apparent, meta.disk);
        if let What::Directory(_) = what {
            let Meta { device, inode, .. } = meta;
            self.directories.push(RootDirectory { path: path.to_owned(), device, inode, entry });
        }
        self.given.push(Given { path: path.to_owned(), entry, what });
    }

    #[cold]
    fn fail(&mut self, name: &std::ffi::CStr, error: std::io::Error) {
        let entry = self.found.arena.keep_name(name);
        let (parent, doing) = (Id::NONE, "cannot find the path");
        self.found.failures.push(walk::Failure { entry, parent, doing, error });
    }

    /// Puts together what the workers found.
    pub(crate) fn finish(&mut self, found: Vec<Findings>) -> Scan {
        let mut totals = Totals::default();
        let mut arenas = Vec::with_capacity(found.len() + 1);
        let (mut links, mut aliases, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        let mut listings = vec![Id::NONE; self.directories.len()];
        let mut interrupted = false;
        let own = std::mem::replace(&mut self.found, Findings::new(0));
        for part in std::iter::once(own).chain(found) {
            totals.add(&part.totals);
            links.extend(part.links);
            aliases.extend(part.aliases);
            failures.extend(part.failures);
            part.listings.iter().for_each(|&(root, listing)| listings[root] = listing);
            interrupted |= part.interrupted;
            arenas.push(part.arena);
        }

        let mut roots = Vec::new();
        let mut paths = Vec::new();
        for Given { path, entry, what } in self.given.drain(..) {
            let listing = match what {
                What::Directory(index) => listings[index],
                // Relaxed: the workers have been joined.
                What::File(index, _) if self.files[index].covered.load(Ordering::Relaxed) => {
                    self.repeated.push(path);
                    continue;
                }
                What::File(_, meta) => {
                    totals.count(meta.kind);
                    if meta.links > 1 {
                        let (device, inode, parent) = (meta.device, meta.inode, Id::NONE);
                        links.push(HardLink { device, inode, entry, parent });
                    }
                    Id::NONE
                }
            };
            roots.push(Root { entry, listing });
            paths.push(path);
        }

        let built = build(arenas, &roots, links, aliases);
        let within = paths.into_iter().zip(&built.outermost).filter(|(_, outermost)| !**outermost);
        self.repeated.extend(within.map(|(path, _)| path));
        let mut errors: Vec<_> = failures
            .into_iter()
            .map(|failure| crate::Failure {
                path: built.path(failure.entry, failure.parent),
                message: format!("{}: {}", failure.doing, failure.error),
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
            elapsed: std::time::Duration::ZERO,
            engine: Engine::default(),
            threads: 0,
            stats: None,
        }
    }
}

/// Whether `path` names a directory that is a root already.
fn same(known: &RootDirectory, path: &Path, meta: &Meta) -> bool {
    if meta.inode != 0 {
        return (known.device, known.inode) == (meta.device, meta.inode);
    }
    matches!((known.path.canonicalize(), path.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
