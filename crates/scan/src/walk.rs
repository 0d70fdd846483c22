//! What happens to one directory: open it, read it, hand its directories on.
//!
//! An engine decides which worker visits which directory, and when; [`Walk::visit`] is all it
//! calls. A visit writes only to its [`Worker`], so the walk shares nothing but directory handles.
//!
//! **Handles.** A directory is opened relative to its parent, so the parent stays open until the last
//! of its directories has been opened: a [`Family`] owns the handle and each [`Task`] owns a share of
//! the family. Depth first that is a few handles; in a wide and deep tree it may be many. So each
//! worker may have only so many families open; beyond that a family has no handle, and its children
//! are opened by walking down from the root along the [`Link`]s, which cost memory but no handle.
//! Each step of that holds two handles at most. Where the system refuses even these, the task is set
//! aside and [`run`] visits it when all others are done and nothing else is open; only if it is
//! refused then is it an error. So a walk loses nothing as long as it can have three handles.
//!
//! **Order.** Entries are appended while their directory is read; a directory with very many
//! directories hands them on in portions, so that other workers need not wait for its end.

use std::ffi::CStr;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_utils::CachePadded;

use crate::control::Control;
use crate::engine::{self, Engine, Job};
use crate::sys::{Found, Kind, Meta, Sys};
use crate::tree::{Alias, Arena, HardLink, Id};
use crate::{Error, Totals};

/// How many directories of one directory are handed on at once.
const PORTION: usize = 256;

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

/// A walk over some roots on some system.
pub(crate) struct Walk<'a, S: Sys> {
    pub(crate) sys: &'a S,
    pub(crate) control: &'a Control,
    pub(crate) roots: &'a [RootDirectory],
    pub(crate) root_files: &'a [RootFile],
    pub(crate) one_file_system: bool,
    pub(crate) keep_files: bool,
    handles: &'a Handles,
    deferred: Mutex<Vec<Task<'a, S>>>,
}

/// How many families each worker holds open.
pub(crate) struct Handles {
    held: Box<[CachePadded<AtomicUsize>]>,
    limit: AtomicUsize,
    /// Whether nothing else is running, so that a handle lacking now will lack for good.
    alone: AtomicBool,
}

impl Handles {
    pub(crate) fn new(threads: usize, total: usize) -> Handles {
        let held = (0..threads).map(|_| CachePadded::new(AtomicUsize::new(0))).collect();
        Handles { held, limit: AtomicUsize::new(total / threads), alone: AtomicBool::new(false) }
    }
}

/// A directory that is held open for its children.
struct Held<'a, D> {
    directory: D,
    gauge: &'a AtomicUsize,
}

impl<D> Drop for Held<'_, D> {
    fn drop(&mut self) {
        // Relaxed: a count that nothing is published by. A reader that sees it late holds one
        // handle fewer than it might.
        self.gauge.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Directories of one directory, waiting to be visited.
struct Family<'a, S: Sys> {
    /// The directory they are in, if it could be kept open.
    held: Option<Held<'a, S::Directory>>,
    link: Arc<Link>,
    listing: Id,
    root: usize,
}

/// A directory's way up, and the names of some of its directories, each ended by a NUL.
struct Link {
    above: Above,
    names: Box<[u8]>,
}

enum Above {
    Root,
    /// The name begins at this offset of the names of the link above.
    Below(Arc<Link>, u32),
}

impl Drop for Link {
    fn drop(&mut self) {
        // One link after the other: the chain is as long as the tree is deep.
        let mut above = std::mem::replace(&mut self.above, Above::Root);
        while let Above::Below(link, _) = above {
            let Some(mut link) = Arc::into_inner(link) else { break };
            above = std::mem::replace(&mut link.above, Above::Root);
        }
    }
}

/// A directory to visit.
pub(crate) struct Task<'a, S: Sys> {
    /// None for a root.
    family: Option<Arc<Family<'a, S>>>,
    /// Where its name begins among the family's names; or the number of the root.
    at: u32,
    entry: Id,
}

impl<S: Sys> Family<'_, S> {
    fn name(&self, at: u32) -> &CStr {
        name(&self.link.names, at)
    }
}

fn name(names: &[u8], at: u32) -> &CStr {
    CStr::from_bytes_until_nul(&names[at as usize..]).expect("each name was written with its NUL")
}

/// Something that could not be read.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) entry: Id,
    pub(crate) parent: Id,
    pub(crate) doing: &'static str,
    pub(crate) error: io::Error,
}

/// What one worker has to itself.
pub(crate) struct Worker<S: Sys> {
    number: usize,
    buffer: S::Buffer,
    pub(crate) found: Findings,
    /// Directories of the directory being read: their names, and where each begins.
    names: Vec<u8>,
    children: Vec<(u32, Id)>,
}

/// What one worker has found.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) arena: Arena,
    pub(crate) links: Vec<HardLink>,
    pub(crate) aliases: Vec<Alias>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) totals: Totals,
    /// The listing of each root that this worker visited.
    pub(crate) listings: Vec<(usize, Id)>,
    pub(crate) interrupted: bool,
}

impl Findings {
    pub(crate) fn new(arena: u16) -> Findings {
        Findings {
            arena: Arena::new(arena),
            links: Vec::new(),
            aliases: Vec::new(),
            failures: Vec::new(),
            totals: Totals::default(),
            listings: Vec::new(),
            interrupted: false,
        }
    }
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
            Err(error) => return self.unopened(worker, task, error),
        };
        match self.sys.meta_of(&directory) {
            Ok(meta) => self.visit_open(worker, &task, directory, &meta, sink),
            Err(error) => self.fail(worker, &task, "cannot ask for the size of", error),
        }
    }
}

impl<'a, S: Sys> Walk<'a, S> {
    pub(crate) fn new(
        sys: &'a S,
        control: &'a Control,
        roots: (&'a [RootDirectory], &'a [RootFile]),
        handles: &'a Handles,
        (one_file_system, keep_files): (bool, bool),
    ) -> Self {
        Walk {
            sys,
            control,
            roots: roots.0,
            root_files: roots.1,
            one_file_system,
            keep_files,
            handles,
            deferred: Mutex::default(),
        }
    }

    #[inline]
    fn open(&self, task: &Task<'a, S>) -> io::Result<S::Directory> {
        match &task.family {
            Some(family) => match &family.held {
                Some(held) => self.sys.open(&held.directory, family.name(task.at)),
                None => self.sys.open(&self.reopen(family)?, family.name(task.at)),
            },
            None => self.sys.open_path(&self.roots[task.at as usize].path),
        }
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
        let (parent, root) = match &task.family {
            Some(family) => (family.listing, family.root),
            None => (Id::NONE, task.at as usize),
        };
        if self.one_file_system && meta.device != self.roots[root].device {
            return;
        }
        if (self.roots.len() > 1 || !self.root_files.is_empty())
            && self.is_claimed(found, task, parent, meta)
        {
            return;
        }
        let listing = found.arena.list(task.entry, parent);
        if parent == Id::NONE {
            found.listings.push((root, listing));
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
                    let directory = self.sys.duplicate(&directory).ok();
                    self.hand_on(*number, directory, task, listing, names, children, sink);
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
                if self.keep_files {
                    found.arena.keep(entry.name(), meta.kind, meta.apparent, meta.disk);
                }
            }
        });
        if !children.is_empty() {
            self.hand_on(*number, Some(directory), task, listing, names, children, sink);
        }
        if let Err(error) = read {
            let doing = "cannot read the directory";
            found.failures.push(Failure { entry: task.entry, parent, doing, error });
        }
        let kept = (found.arena.kept() - first) as u32;
        let listing = found.arena.listing();
        (listing.kept, listing.leaves) = (kept, leaves);
        (listing.apparent, listing.disk) = (apparent, disk);
        found.totals.disk_bytes += disk;
        self.control.advance(*number, found.totals.entries(), found.totals.disk_bytes);
    }

    /// Makes a family of the children gathered so far and gives each to the engine.
    #[expect(clippy::too_many_arguments, reason = "the parts of a worker, lent apart")]
    fn hand_on(
        &self,
        number: usize,
        directory: Option<S::Directory>,
        task: &Task<'a, S>,
        listing: Id,
        names: &mut Vec<u8>,
        children: &mut Vec<(u32, Id)>,
        sink: &mut impl FnMut(Task<'a, S>),
    ) {
        let (above, root) = match &task.family {
            Some(family) => (Above::Below(Arc::clone(&family.link), task.at), family.root),
            None => (Above::Root, task.at as usize),
        };
        let link = Arc::new(Link { above, names: names.as_slice().into() });
        let held = directory.and_then(|directory| self.hold(number, directory));
        let family = Some(Arc::new(Family { held, link, listing, root }));
        let last = children.pop();
        for (at, entry) in children.drain(..) {
            sink(Task { family: family.clone(), at, entry });
        }
        if let Some((at, entry)) = last {
            sink(Task { family, at, entry });
        }
        names.clear();
    }

    fn hold(&self, number: usize, directory: S::Directory) -> Option<Held<'a, S::Directory>> {
        let gauge = &*self.handles.held[number];
        // Relaxed, both: the limit is set while no worker runs; the count publishes nothing, and
        // only this worker raises it, so it cannot pass the limit unseen.
        if gauge.load(Ordering::Relaxed) >= self.handles.limit.load(Ordering::Relaxed) {
            return None;
        }
        gauge.fetch_add(1, Ordering::Relaxed);
        Some(Held { directory, gauge })
    }

    /// Opens the directory that a family is in, from its root downwards.
    #[cold]
    fn reopen(&self, family: &Family<'a, S>) -> io::Result<S::Directory> {
        let mut names = Vec::new();
        let mut link = &family.link;
        while let Above::Below(above, at) = &link.above {
            names.push(name(&above.names, *at));
            link = above;
        }
        let mut directory = self.sys.open_path(&self.roots[family.root].path)?;
        for name in names.into_iter().rev() {
            directory = self.sys.open(&directory, name)?;
        }
        Ok(directory)
    }

    /// Whether a directory is another of the roots, which counts it; notes whose files it holds.
    #[cold]
    fn is_claimed(
        &self,
        found: &mut Findings,
        task: &Task<'a, S>,
        parent: Id,
        meta: &Meta,
    ) -> bool {
        let identity = (meta.device, meta.inode);
        if meta.inode == 0 {
            return false;
        }
        if task.family.is_some() {
            let same = |root: &RootDirectory| (root.device, root.inode) == identity;
            if let Some(root) = self.roots.iter().position(same) {
                found.aliases.push(Alias { entry: task.entry, parent, root });
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
    fn unopened(&self, worker: &mut Worker<S>, task: Task<'a, S>, error: io::Error) {
        // Relaxed: set while no worker runs.
        if self.sys.exhausted(&error) && !self.handles.alone.load(Ordering::Relaxed) {
            let family = task.family.as_ref().map(|family| {
                let link = Arc::clone(&family.link);
                Arc::new(Family { held: None, link, listing: family.listing, root: family.root })
            });
            let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
            deferred.push(Task { family, ..task });
            return;
        }
        let meta = match &task.family {
            Some(family) => {
                let name = family.name(task.at);
                match &family.held {
                    Some(held) => self.sys.meta_in(&held.directory, name),
                    None => self.reopen(family).and_then(|above| self.sys.meta_in(&above, name)),
                }
            }
            None => self.sys.meta(&self.roots[task.at as usize].path, true),
        };
        if let Ok(meta) = meta.as_ref() {
            self.count_unread(worker, &task, meta);
        }
        self.fail(worker, &task, "cannot open the directory", error);
    }

    /// Counts a directory of which only its own size is known.
    #[cold]
    fn count_unread(&self, worker: &mut Worker<S>, task: &Task<'a, S>, meta: &Meta) {
        let (parent, root) = match &task.family {
            Some(family) => (family.listing, family.root),
            None => (Id::NONE, task.at as usize),
        };
        if meta.kind != Kind::Directory
            || self.one_file_system && meta.device != self.roots[root].device
        {
            return;
        }
        let found = &mut worker.found;
        let listing = found.arena.list(task.entry, parent);
        if parent == Id::NONE {
            found.listings.push((root, listing));
        }
        let listing = found.arena.listing();
        (listing.apparent, listing.disk) = (meta.apparent, meta.disk);
        found.totals.directories += 1;
    }

    #[cold]
    fn fail(
        &self,
        worker: &mut Worker<S>,
        task: &Task<'a, S>,
        doing: &'static str,
        error: io::Error,
    ) {
        let parent = task.family.as_ref().map_or(Id::NONE, |family| family.listing);
        worker.found.failures.push(Failure { entry: task.entry, parent, doing, error });
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

/// Walks all roots and returns what each worker found.
pub(crate) fn run<S: Sys>(
    walk: &Walk<'_, S>,
    engine: Engine,
    mut workers: Vec<Worker<S>>,
) -> Result<Vec<Findings>, Error> {
    let root = |(at, root): (usize, &RootDirectory)| Task {
        family: None,
        at: at as u32,
        entry: root.entry,
    };
    let mut tasks: Vec<_> = walk.roots.iter().enumerate().map(root).collect();
    let mut engine = engine;
    while !tasks.is_empty() {
        workers = engine::run(engine, walk, workers, tasks)?;
        tasks = std::mem::take(&mut *walk.deferred.lock().unwrap_or_else(PoisonError::into_inner));
        // Relaxed, both: the workers have been joined, and the next ones are yet to start.
        walk.handles.limit.store(0, Ordering::Relaxed);
        walk.handles.alone.store(true, Ordering::Relaxed);
        engine = Engine::Sequential;
    }
    Ok(workers.into_iter().map(|worker| worker.found).collect())
}
