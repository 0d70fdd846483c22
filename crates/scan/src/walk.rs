//! What happens to one directory: open it, read it, hand its directories on.
//!
//! An engine decides which worker visits which directory, and when; [`Walk::visit`] is all it
//! calls. A visit writes only to its [`Worker`], so the walk shares nothing but directory handles,
//! which are [`family`]'s affair.
//!
//! **Order.** Entries are appended while their directory is read; a directory with very many
//! directories hands them on in portions, so that other workers need not wait for its end.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use poach_runtime::Stats;

use crate::control::Control;
use crate::engine::{self, Engine, Job};
use crate::sys::{Found, Kind, Meta, Sys};
use crate::tree::{Alias, HardLink, Id};
use crate::{Error, Options};

mod family;
mod findings;

use family::Task;

pub(crate) use family::Handles;
pub(crate) use findings::{Failure, Findings};

/// How many directories of one directory are handed on at once.
const PORTION: usize = 256;

/// A walk over some roots on some system.
pub(crate) struct Walk<'a, S: Sys> {
    sys: &'a S,
    options: &'a Options,
    control: &'a Control,
    handles: &'a Handles,
    roots: &'a [RootDirectory],
    root_files: &'a [RootFile],
    deferred: Mutex<Vec<Task<'a, S>>>,
}

/// A directory that was given by path.
#[derive(Debug)]
pub(crate) struct RootDirectory {
    pub(crate) path: PathBuf,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) entry: Id,
}

/// A file that was given by path: it is counted by itself unless its directory is read anyway.
#[derive(Debug)]
pub(crate) struct RootFile {
    /// Of the directory that holds it.
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) covered: AtomicBool,
}

/// What one worker has to itself.
pub(crate) struct Worker<S: Sys> {
    number: usize,
    buffer: S::Buffer,
    found: Findings,
    /// Directories of the directory being read: their names, and where each begins.
    names: Vec<u8>,
    children: Vec<(u32, Id)>,
}

impl<S: Sys> Worker<S> {
    /// The worker of a number, which writes into the arena of that number plus one.
    pub(crate) fn new(sys: &S, number: usize) -> Worker<S> {
        Worker {
            number,
            buffer: sys.buffer(),
            found: Findings::new(number as u16 + 1),
            names: Vec::new(),
            children: Vec::new(),
        }
    }
}

impl<'a, S: Sys> Job for Walk<'a, S> {
    type Task = Task<'a, S>;
    type Worker = Worker<S>;

    #[inline]
    fn visit(&self, worker: &mut Worker<S>, task: Task<'a, S>, sink: &mut impl FnMut(Task<'a, S>)) {
        if self.control.is_stopped() {
            worker.found.interrupted = true;
            return;
        }
        let directory = match self.open(&task) {
            Ok(directory) => directory,
            Err(error) => return self.unopened(worker, &task, error),
        };
        match self.sys.meta_of(&directory) {
            Ok(meta) => self.visit_open(worker, &task, directory, &meta, sink),
            Err(error) => {
                worker.found.fail(&task, "cannot ask for the size of the directory", error);
            }
        }
    }
}

impl<'a, S: Sys> Walk<'a, S> {
    pub(crate) fn new(
        sys: &'a S,
        options: &'a Options,
        control: &'a Control,
        handles: &'a Handles,
        roots: &'a [RootDirectory],
        root_files: &'a [RootFile],
    ) -> Self {
        Walk { sys, options, control, handles, roots, root_files, deferred: Mutex::default() }
    }

    #[inline]
    fn open(&self, task: &Task<'a, S>) -> io::Result<S::Directory> {
        match task.place() {
            Some((family, name)) => {
                family.with(self.sys, |root| self.open_root(root), |it| self.sys.open(it, name))
            }
            None => self.open_root(task.root()),
        }
    }

    fn open_root(&self, number: usize) -> io::Result<S::Directory> {
        self.sys.open_path(&self.roots[number].path)
    }

    #[inline]
    fn visit_open(
        &self,
        worker: &mut Worker<S>,
        task: &Task<'a, S>,
        directory: S::Directory,
        meta: &Meta,
        sink: &mut impl FnMut(Task<'a, S>),
    ) {
        let Worker { number, buffer, found, names, children } = worker;
        let parent = task.parent();
        if self.is_elsewhere(task, meta) {
            return;
        }
        if (self.roots.len() > 1 || !self.root_files.is_empty())
            && self.is_claimed(found, task, meta)
        {
            return;
        }
        let listing = found.arena.list(task.entry(), parent);
        if task.is_root() {
            found.listings.push((task.root(), listing));
        }
        found.totals.directories += 1;

        let first = found.arena.kept();
        let (mut apparent, mut disk, mut leaves) = (meta.apparent, meta.disk, 0_u32);
        names.clear();
        children.clear();
        let read = self.sys.read(&directory, buffer, &mut |entry| {
            let meta = match entry.kind() {
                Some(Kind::Directory) => None,
                kind => match entry.meta() {
                    // A file of an unlisted kind, or one that became a directory since.
                    Ok(meta) if meta.kind == Kind::Directory => None,
                    Ok(meta) => Some(meta),
                    Err(error) => {
                        let entry = found.arena.keep_name(entry.name());
                        let doing = doing(kind);
                        found.failures.push(Failure { entry, parent: listing, doing, error });
                        return;
                    }
                },
            };
            let Some(meta) = meta else {
                if children.len() == PORTION {
                    let again = self.sys.duplicate(&directory).ok();
                    let held = again.and_then(|again| self.handles.hold(*number, again));
                    task.hand_on(held, listing, names, children, sink);
                }
                let id = found.arena.keep(entry.name(), Kind::Directory, 0, 0);
                children.push((names.len() as u32, id));
                names.extend_from_slice(entry.name().to_bytes_with_nul());
                return;
            };
            leaves += 1;
            found.totals.count(meta.kind);
            if meta.links > 1 {
                let entry = found.arena.keep(entry.name(), meta.kind, meta.apparent, meta.disk);
                let Meta { device, inode, .. } = meta;
                found.links.push(HardLink { device, inode, entry, parent: listing });
            } else {
                apparent = apparent.saturating_add(meta.apparent);
                disk = disk.saturating_add(meta.disk);
                if self.options.keep_files {
                    found.arena.keep(entry.name(), meta.kind, meta.apparent, meta.disk);
                }
            }
        });
        if !children.is_empty() {
            let held = self.handles.hold(*number, directory);
            task.hand_on(held, listing, names, children, sink);
        }
        if let Err(error) = read {
            found.fail(task, "cannot read the directory", error);
        }
        let kept = (found.arena.kept() - first) as u32;
        let listing = found.arena.listing();
        (listing.kept, listing.leaves) = (kept, leaves);
        (listing.apparent, listing.disk) = (apparent, disk);
        found.totals.disk_bytes += disk;
        self.control.advance(*number, found.totals.entries(), found.totals.disk_bytes);
    }

    /// Whether a directory lies on another file system, and is to be left out for it.
    #[inline]
    fn is_elsewhere(&self, task: &Task<'a, S>, meta: &Meta) -> bool {
        self.options.one_file_system && meta.device != self.roots[task.root()].device
    }

    /// Whether a directory is another of the roots, which counts it; notes whose files it holds.
    #[cold]
    fn is_claimed(&self, found: &mut Findings, task: &Task<'a, S>, meta: &Meta) -> bool {
        let identity = (meta.device, meta.inode);
        if meta.inode == 0 {
            return false;
        }
        if !task.is_root() {
            let same = |root: &RootDirectory| (root.device, root.inode) == identity;
            if let Some(root) = self.roots.iter().position(same) {
                found.aliases.push(Alias { entry: task.entry(), parent: task.parent(), root });
                return true;
            }
        }
        for file in self.root_files {
            if (file.device, file.inode) == identity {
                // Relaxed: read after the workers have been joined.
                file.covered.store(true, Ordering::Relaxed);
            }
        }
        false
    }

    /// Sets a task aside if only handles were lacking; else counts what its parent knows of it.
    #[cold]
    fn unopened(&self, worker: &mut Worker<S>, task: &Task<'a, S>, error: io::Error) {
        if self.sys.exhausted(&error) && !self.handles.is_alone() {
            let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
            return deferred.push(task.set_aside());
        }
        let meta = match task.place() {
            Some((family, name)) => {
                family.with(self.sys, |root| self.open_root(root), |it| self.sys.meta_in(it, name))
            }
            None => self.sys.meta(&self.roots[task.root()].path, true),
        };
        if let Ok(meta) = meta.as_ref() {
            self.count_unread(worker, task, meta);
        }
        worker.found.fail(task, "cannot open the directory", error);
    }

    /// Counts a directory of which only its own size is known.
    #[cold]
    fn count_unread(&self, worker: &mut Worker<S>, task: &Task<'a, S>, meta: &Meta) {
        if meta.kind != Kind::Directory || self.is_elsewhere(task, meta) {
            return;
        }
        let found = &mut worker.found;
        let parent = task.parent();
        let listing = found.arena.list(task.entry(), parent);
        if task.is_root() {
            found.listings.push((task.root(), listing));
        }
        let listing = found.arena.listing();
        (listing.apparent, listing.disk) = (meta.apparent, meta.disk);
        found.totals.directories += 1;
    }
}

#[cold]
fn doing(kind: Option<Kind>) -> &'static str {
    match kind {
        Some(Kind::File) => "cannot ask for the size of the file",
        Some(Kind::Symlink) => "cannot ask for the size of the symbolic link",
        _ => "cannot ask for the size of the entry",
    }
}

/// Walks all roots and returns what each worker found, and what it counted.
pub(crate) fn run<S: Sys>(
    walk: &Walk<'_, S>,
    engine: Engine,
    mut workers: Vec<Worker<S>>,
) -> Result<(Vec<Findings>, Option<Stats>), Error> {
    let root = |(number, root): (usize, &RootDirectory)| Task::of_root(number, root.entry);
    let mut tasks: Vec<_> = walk.roots.iter().enumerate().map(root).collect();
    let (mut engine, mut stats) = (engine, None);
    while !tasks.is_empty() {
        let done = engine::run(engine, walk, workers, tasks)?;
        (workers, stats) = (done.workers, stats.or(done.stats));
        tasks = std::mem::take(&mut *walk.deferred.lock().unwrap_or_else(PoisonError::into_inner));
        walk.handles.go_alone();
        engine = Engine::Sequential;
    }
    Ok((workers.into_iter().map(|worker| worker.found).collect(), stats))
}
