//! The visit of one directory: open it, read it, hand its directories on.
//!
//! An engine decides which worker visits which directory, and when; [`Walk::visit`] is all it
//! calls. A visit writes only to its [`Worker`], so the walk shares nothing but directory handles,
//! which are [`family`]'s affair.
//!
//! **Order.** Entries are appended while their directory is read; a directory with very many
//! directories hands them on in portions, so that other workers need not wait for its end.

use std::ffi::CStr;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::Options;
use crate::choice::{self, Choice, Rules};
use crate::control::Control;
use crate::engine::Job;
use crate::sys::{Found, Kind, Meta, Sys};
use crate::tree::{Alias, HardLink, Id};
use crate::visit::{Seen, Visitor, Within};

mod family;
mod findings;
mod known;
mod run;
mod unread;
mod worker_count;

use family::Task;
use known::Claim;

pub(crate) use family::Handles;
pub(crate) use findings::{Failure, Findings, Summed};
pub(crate) use known::Known;
pub(crate) use run::{Outcome, run};
pub(crate) use worker_count::WorkerCount;

/// How many directories of one directory are handed on at once.
const PORTION: usize = 256;

/// After how many entries of one directory a worker tells its progress and looks whether to stop.
const BATCH: u32 = 64;

/// A walk over some roots on some system.
pub(crate) struct Walk<'a, S: Sys, V> {
    sys: &'a S,
    visitor: &'a V,
    options: &'a Options,
    control: &'a Control,
    handles: &'a Handles,
    worker_count: &'a WorkerCount,
    roots: &'a [RootDirectory],
    root_files: &'a [RootFile],
    known: &'a Known,
    /// The absolute paths of each root, if the choice asks for them.
    absolute: Vec<Vec<Vec<u8>>>,
    /// How many bytes of the tree each worker may keep.
    share: Option<u64>,
    /// To be visited when nothing else is open.
    deferred: Mutex<Vec<Task<'a, S>>>,
    /// To be visited by another number of workers.
    put_back: Mutex<Vec<Task<'a, S>>>,
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

/// Where a walk begins.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) directories: &'a [RootDirectory],
    pub(crate) files: &'a [RootFile],
    /// The directories that are to be counted once, whatever leads to them.
    pub(crate) known: &'a Known,
}

/// The state of one worker.
pub(crate) struct Worker<S: Sys, V: Visitor> {
    number: usize,
    buffer: S::Buffer,
    found: Findings,
    part: V::Part,
    /// After how many visits the next one is measured.
    until_measured: u32,
    /// Directories of the directory being read: their names, and where each begins.
    names: Vec<u8>,
    children: Vec<(u32, Id)>,
    /// The path of the directory being read below its root, if the choice wants it, with an
    /// entry's name at its end.
    path: Vec<u8>,
}

impl<S: Sys, V: Visitor> Worker<S, V> {
    /// The worker of a number, which writes into the arena of that number plus one.
    pub(crate) fn new(sys: &S, visitor: &V, keep_facts: bool, number: usize) -> Self {
        Worker {
            number,
            buffer: sys.buffer(),
            found: Findings::new(number as u16 + 1, keep_facts),
            part: visitor.part(),
            until_measured: 1,
            names: Vec::new(),
            children: Vec::new(),
            path: Vec::new(),
        }
    }
}

impl<'a, S: Sys, V: Visitor> Job for Walk<'a, S, V> {
    type Task = Task<'a, S>;
    type Worker = Worker<S, V>;

    fn visit(
        &self,
        worker: &mut Worker<S, V>,
        task: Task<'a, S>,
        sink: &mut dyn FnMut(Task<'a, S>),
    ) {
        if self.control.is_asked() && self.answer(worker, &task) {
            return;
        }
        if self.worker_count.varies() {
            if self.worker_count.is_regrouping() {
                return self.put_back(task);
            }
            worker.until_measured -= 1;
            if worker.until_measured == 0 {
                return self.visit_measured(worker, &task, sink);
            }
        }
        self.visit_unmeasured(worker, &task, sink);
    }
}

impl<'a, S: Sys, V: Visitor> Walk<'a, S, V> {
    pub(crate) fn new(
        sys: &'a S,
        visitor: &'a V,
        options: &'a Options,
        control: &'a Control,
        (worker_count, handles): (&'a WorkerCount, &'a Handles),
        start: Start<'a>,
    ) -> Self {
        let Start { directories, files, known } = start;
        let wants_absolute = options.choice.as_ref().is_some_and(|choice| choice.wants_absolute());
        let wanted = if wants_absolute { directories } else { &[] };
        Walk {
            sys,
            visitor,
            options,
            control,
            handles,
            worker_count,
            roots: directories,
            root_files: files,
            known,
            absolute: wanted.iter().map(|root| choice::absolute(&root.path)).collect(),
            share: options.memory.map(|memory| memory / worker_count.most() as u64),
            deferred: Mutex::default(),
            put_back: Mutex::default(),
        }
    }

    fn visit_unmeasured(
        &self,
        worker: &mut Worker<S, V>,
        task: &Task<'a, S>,
        sink: &mut dyn FnMut(Task<'a, S>),
    ) {
        let directory = match self.open(task) {
            Ok(directory) => directory,
            Err(error) => return self.unopened(worker, task, error),
        };
        let meta = if self.names_suffice() {
            Ok(Meta::of(Kind::Directory))
        } else {
            self.sys.meta_of(&directory)
        };
        match meta {
            Ok(meta) => self.visit_open(worker, task, directory, &self.wanted(meta), sink),
            Err(error) => {
                let path = self.path_of_summed(task, b"");
                worker.found.fail(task, "cannot ask for the size of the directory", error, path);
            }
        }
    }

    /// Visits a directory, and notes how long that took.
    #[cold]
    fn visit_measured(
        &self,
        worker: &mut Worker<S, V>,
        task: &Task<'a, S>,
        sink: &mut dyn FnMut(Task<'a, S>),
    ) {
        let (before, began) = (self.sys.spent(), Instant::now());
        self.visit_unmeasured(worker, task, sink);
        worker.until_measured = match (before, self.sys.spent()) {
            (Some(before), Some(after)) => {
                self.worker_count.measured(began.elapsed(), before, after)
            }
            _ => u32::MAX,
        };
    }

    /// Leaves a directory to the workers that come after these.
    #[cold]
    fn put_back(&self, task: Task<'a, S>) {
        self.put_back.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    /// Does what the control asks for. Whether that is to end.
    #[cold]
    fn answer(&self, worker: &mut Worker<S, V>, task: &Task<'a, S>) -> bool {
        self.control.tell_path(|| self.path_of(task));
        worker.found.interrupted |= self.control.is_stopped();
        self.control.is_stopped()
    }

    /// The path of a directory, with a separator at its end but for a given one.
    #[cold]
    fn path_of(&self, task: &Task<'a, S>) -> Vec<u8> {
        let mut path = self.roots[task.root()].path.as_os_str().as_encoded_bytes().to_vec();
        let mut below = Vec::new();
        task.path(&mut below);
        let separator = std::path::MAIN_SEPARATOR as u8;
        if !below.is_empty() && path.last() != Some(&separator) {
            path.push(separator);
        }
        path.extend(below.iter().map(|&byte| if byte == b'/' { separator } else { byte }));
        path
    }

    /// The path of something in a directory that has no entry, or of that directory if the name is
    /// empty.
    #[cold]
    fn path_of_summed(&self, task: &Task<'a, S>, name: &[u8]) -> Option<Vec<u8>> {
        if !task.is_summed() {
            return None;
        }
        let mut path = self.path_of(task);
        path.extend_from_slice(name);
        if name.is_empty() {
            path.pop();
        }
        Some(path)
    }

    /// Whether a worker has used up its share of the memory.
    #[inline]
    fn is_full(&self, found: &Findings) -> bool {
        self.share.is_some_and(|share| found.arena.bytes() >= share)
    }

    /// Whether nothing is asked about a directory but that it is one.
    #[inline]
    fn names_suffice(&self) -> bool {
        let by_device = self.options.one_file_system
            || self.options.choice.as_ref().is_some_and(|choice| choice.exclude_pseudo);
        self.options.without_sizes && self.known.is_empty() && !by_device
    }

    /// The part of the system's answer that the options ask for.
    #[inline]
    fn wanted(&self, meta: Meta) -> Meta {
        if self.options.without_sizes { meta.without_sizes() } else { meta }
    }

    /// Tells the visitor of a directory.
    #[inline]
    fn tell(&self, part: &mut V::Part, task: &Task<'a, S>, listing: Id, meta: &Meta) {
        let name = match task.place() {
            Some((_, name)) => name.to_bytes(),
            None => self.roots[task.root()].path.as_os_str().as_encoded_bytes(),
        };
        let (within, depth) = (Within(task.parent()), task.depth());
        let own = Some(Within(listing));
        self.visitor.entry(part, &Seen { name, meta, within, depth, bears: true, own });
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
        worker: &mut Worker<S, V>,
        task: &Task<'a, S>,
        directory: S::Directory,
        meta: &Meta,
        sink: &mut dyn FnMut(Task<'a, S>),
    ) {
        let Worker { number, buffer, found, part, names, children, path, .. } = worker;
        let parent = task.parent();
        if self.is_elsewhere(task, meta) {
            return;
        }
        let choice = self.options.choice.as_deref();
        if choice.is_some_and(|choice| self.is_left_out(choice, task, &directory, meta)) {
            return;
        }
        let claim = if self.known.is_empty() { Claim::None } else { self.claim(found, task, meta) };
        if let Claim::Elsewhere(_) = claim {
            return;
        }
        let summed = task.is_summed();
        let listing = if summed { parent } else { found.arena.list(task.entry(), parent, meta) };
        match claim {
            _ if summed => {}
            Claim::Here(mount) => found.listings.push((mount, listing)),
            _ if task.is_root() => found.listings.push((task.root(), listing)),
            _ => {}
        }
        if choice.is_none_or(Choice::counts_directories) {
            found.totals.directories += 1;
            self.tell(part, task, listing, meta);
        }
        let failures = &mut found.failures;
        let rules = choice
            .and_then(|choice| self.prepare(choice, task, (&directory, listing), path, failures));

        let first = found.arena.kept();
        let mut full = summed || self.is_full(found);
        let own =
            if choice.is_some_and(Choice::selects) { (0, 0) } else { (meta.apparent, meta.disk) };
        let ((mut apparent, mut disk), mut leaves) = (own, 0_u32);
        let path_length = path.len();
        let above = self.absolute.get(task.root()).map_or(&[][..], |above| &**above);
        let mut until_look = BATCH;
        let depth = task.depth() + 1;
        names.clear();
        children.clear();
        let read = self.sys.read(&directory, buffer, &mut |entry| {
            until_look -= 1;
            if until_look == 0 {
                until_look = BATCH;
                let bytes = found.totals.disk_bytes.saturating_add(disk);
                self.control.advance(*number, found.totals.entries(), bytes);
                full = full || self.is_full(found);
                if self.control.is_stopped() {
                    found.interrupted = true;
                    return ControlFlow::Break(());
                }
            }
            if let Some(choice) = choice {
                path.truncate(path_length);
                if choice.wants_paths() {
                    path.extend_from_slice(entry.name().to_bytes());
                }
                if !admits(choice, rules.as_deref(), entry.name(), entry.kind(), (path, above)) {
                    return ControlFlow::Continue(());
                }
            }
            let meta = match entry.kind() {
                Some(Kind::Directory) => None,
                Some(kind) if self.options.without_sizes => Some(Meta::of(kind)),
                kind => match entry.meta() {
                    // A file of an unlisted kind, or an entry that became a directory since.
                    Ok(meta) if meta.kind == Kind::Directory => None,
                    Ok(meta) => Some(self.wanted(meta)),
                    Err(error) => {
                        let path = self.path_of_summed(task, entry.name().to_bytes());
                        let entry = found.arena.keep_name(entry.name());
                        let (doing, parent) = (doing(kind), listing);
                        found.failures.push(Failure { entry, parent, doing, error, path });
                        return ControlFlow::Continue(());
                    }
                },
            };
            let kind = meta.map_or(Kind::Directory, |meta| meta.kind);
            if let Some(choice) = choice {
                if entry.kind() != Some(kind)
                    && !admits(choice, rules.as_deref(), entry.name(), Some(kind), (path, above))
                {
                    return ControlFlow::Continue(());
                }
            }
            let Some(meta) = meta else {
                if children.len() == PORTION {
                    let again = self.sys.duplicate(&directory).ok();
                    let held = again.and_then(|again| self.handles.hold(*number, again));
                    task.hand_on(held, listing, rules.as_ref(), names, children, sink);
                }
                let id = if full { Id::NONE } else { found.arena.keep_directory(entry.name()) };
                children.push((names.len() as u32, id));
                names.extend_from_slice(entry.name().to_bytes_with_nul());
                return ControlFlow::Continue(());
            };
            if let Some(choice) = choice {
                if !choice.counts(&meta) {
                    return ControlFlow::Continue(());
                }
            }
            leaves += 1;
            found.totals.count(meta.kind);
            if meta.links > 1 {
                let entry = found.arena.keep(entry.name(), &meta);
                found.links.push(HardLink::new(&meta, entry, listing));
            } else {
                let (name, within) = (entry.name().to_bytes(), Within(listing));
                let seen = Seen { name, meta: &meta, within, depth, bears: true, own: None };
                self.visitor.entry(part, &seen);
                apparent = apparent.saturating_add(meta.apparent);
                disk = disk.saturating_add(meta.disk);
                if self.options.keep_files && !full {
                    found.arena.keep(entry.name(), &meta);
                } else if self.options.keep_files && !summed {
                    found.sum_up(listing, Summed::default());
                }
            }
            ControlFlow::Continue(())
        });
        if !children.is_empty() {
            let held = self.handles.hold(*number, directory);
            task.hand_on(held, listing, rules.as_ref(), names, children, sink);
        }
        if let Err(error) = read {
            found.fail(task, "cannot read the directory", error, self.path_of_summed(task, b""));
        }
        if summed {
            let entries = u64::from(leaves) + 1;
            found.sum_up(listing, Summed { apparent, disk, entries });
            found.without_entry += 1;
        } else {
            let kept = (found.arena.kept() - first) as u32;
            let listing = found.arena.listing();
            (listing.kept, listing.leaves) = (kept, leaves);
            (listing.apparent, listing.disk) = (apparent, disk);
        }
        found.totals.disk_bytes = found.totals.disk_bytes.saturating_add(disk);
        self.control.advance(*number, found.totals.entries(), found.totals.disk_bytes);
    }

    /// Whether a directory that was found in another one is not to be there.
    #[cold]
    fn is_left_out(
        &self,
        choice: &Choice,
        task: &Task<'a, S>,
        directory: &S::Directory,
        meta: &Meta,
    ) -> bool {
        if task.is_root() {
            return false;
        }
        choice.exclude_caches && choice::is_cache(self.sys, directory)
            || choice.exclude_pseudo && self.is_mounted(task, meta) && self.sys.is_pseudo(directory)
    }

    /// Whether a directory lies on another file system than the root.
    #[inline]
    fn is_mounted(&self, task: &Task<'a, S>, meta: &Meta) -> bool {
        meta.device != self.roots[task.root()].device
    }

    /// Makes the path of a directory, if it is wanted, and the rules that hold in it.
    #[cold]
    fn prepare(
        &self,
        choice: &Choice,
        task: &Task<'a, S>,
        (directory, listing): (&S::Directory, Id),
        path: &mut Vec<u8>,
        failures: &mut Vec<Failure>,
    ) -> Option<Arc<Rules>> {
        path.clear();
        if choice.wants_paths() {
            task.path(path);
        }
        if !choice.ignore_files {
            return None;
        }
        Rules::of(self.sys, directory, path, task.rules(), |name, error| {
            let mut path = self.path_of(task);
            path.extend(task.is_root().then_some(std::path::MAIN_SEPARATOR as u8));
            path.extend_from_slice(name.to_bytes());
            let (entry, doing) = (Id::NONE, "cannot read the ignore file");
            failures.push(Failure { entry, parent: listing, doing, error, path: Some(path) });
        })
    }

    /// Whether a directory lies on another file system, and is to be left out for it.
    #[inline]
    fn is_elsewhere(&self, task: &Task<'a, S>, meta: &Meta) -> bool {
        self.options.one_file_system && self.is_mounted(task, meta)
    }

    /// Decides who reads a directory that several paths may lead to, and notes which of the files
    /// given by path it holds.
    #[cold]
    fn claim(&self, found: &mut Findings, task: &Task<'a, S>, meta: &Meta) -> Claim {
        let identity = (meta.device, meta.inode);
        if meta.inode == 0 {
            return Claim::None;
        }
        let claim = self.known.claim(identity, task.is_root());
        // A task without an entry cannot show a given path below it: the given path stands by
        // itself.
        if let Claim::Elsewhere(root) | Claim::Here(root) = claim {
            if !task.is_summed() {
                found.aliases.push(Alias { entry: task.entry(), parent: task.parent(), root });
            }
        }
        if !matches!(claim, Claim::Elsewhere(_)) {
            for &file in self.known.files(identity) {
                // Relaxed: read after the workers have been joined.
                self.root_files[file].covered.store(true, Ordering::Relaxed);
            }
        }
        claim
    }
}

/// Whether an entry is there and, if it is known to be no directory, may count, by what is known of
/// its kind.
#[cold]
fn admits(
    choice: &Choice,
    rules: Option<&Rules>,
    name: &CStr,
    kind: Option<Kind>,
    (path, above): (&[u8], &[Vec<u8>]),
) -> bool {
    let ignored = |rules: &Rules| match kind {
        Some(kind) => rules.exclude(path, kind == Kind::Directory),
        None => rules.exclude(path, false) && rules.exclude(path, true),
    };
    !choice.excludes(name, path, above)
        && !rules.is_some_and(ignored)
        && kind
            .is_none_or(|kind| kind == Kind::Directory || choice.may_count(name, path, above, kind))
}

#[cold]
fn doing(kind: Option<Kind>) -> &'static str {
    match kind {
        Some(Kind::File) => "cannot ask for the size of the file",
        Some(Kind::Symlink) => "cannot ask for the size of the symbolic link",
        _ => "cannot ask for the size of the entry",
    }
}
