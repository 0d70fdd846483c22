//! The handles of open directories: which are held, for which tasks, and how long.
//!
//! A directory is opened relative to its parent, so the parent stays open until the last of its
//! directories has been opened: a [`Family`] owns the handle and each [`Task`] owns a share of the
//! family. Depth first, that is a few handles; in a wide and deep tree it may be many.
//!
//! So each worker has a limit of open families. A family beyond the limit has no handle: its
//! children are opened by walking down from the root along the [`Link`]s, which cost memory but no
//! handle. Each step of that holds two handles at most.
//!
//! If the system refuses even these, the task is set aside. [`run`](super::run) visits it when all
//! others are done and nothing else is open; if it is refused then, that is an error. So a walk
//! loses nothing as long as it can have three handles.

use std::ffi::CStr;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

use crate::choice::Rules;
use crate::sys::Sys;
use crate::tree::Id;

/// A directory to visit.
pub(crate) struct Task<'a, S: Sys> {
    /// None for a root.
    family: Option<Arc<Family<'a, S>>>,
    /// Where its name begins among the family's names; or the number of the root.
    at: u32,
    entry: Id,
}

/// Directories of one directory, waiting to be visited.
pub(super) struct Family<'a, S: Sys> {
    /// The directory they are in, if it could be kept open.
    held: Option<Held<'a, S::Directory>>,
    link: Arc<Link>,
    listing: Id,
    root: usize,
    /// How deep they lie.
    depth: u32,
    /// The ignore rules that hold there.
    rules: Option<Arc<Rules>>,
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

impl Link {
    fn name(&self, at: u32) -> &CStr {
        CStr::from_bytes_until_nul(&self.names[at as usize..])
            .expect("each name was written with its NUL")
    }
}

impl<'a, S: Sys> Task<'a, S> {
    pub(super) fn of_root(number: usize, entry: Id) -> Self {
        Task { family: None, at: number as u32, entry }
    }

    /// Its entry in the tree.
    #[inline]
    pub(super) fn entry(&self) -> Id {
        self.entry
    }

    /// Its name and the family it is in; none for a root.
    #[inline]
    pub(super) fn place(&self) -> Option<(&Family<'a, S>, &CStr)> {
        self.family.as_deref().map(|family| (family, family.link.name(self.at)))
    }

    /// The listing that its entry is in, or [`Id::NONE`].
    #[inline]
    pub(super) fn parent(&self) -> Id {
        self.family.as_ref().map_or(Id::NONE, |family| family.listing)
    }

    /// The number of the root that it is, or lies below.
    #[inline]
    pub(super) fn root(&self) -> usize {
        self.family.as_ref().map_or(self.at as usize, |family| family.root)
    }

    /// How deep it lies; a root at 0.
    #[inline]
    pub(super) fn depth(&self) -> u32 {
        self.family.as_ref().map_or(0, |family| family.depth)
    }

    /// The ignore rules that hold there.
    pub(super) fn rules(&self) -> Option<&Arc<Rules>> {
        self.family.as_ref()?.rules.as_ref()
    }

    /// Its path below its root, with a slash after each name. Linear in the depth.
    pub(super) fn path(&self, path: &mut Vec<u8>) {
        path.clear();
        let mut names = Vec::new();
        if let Some((family, name)) = self.place() {
            names.push(name);
            let mut link = &family.link;
            while let Above::Below(above, at) = &link.above {
                names.push(above.name(*at));
                link = above;
            }
        }
        for name in names.into_iter().rev() {
            path.extend_from_slice(name.to_bytes());
            path.push(b'/');
        }
    }

    /// Whether the tree has no entry for it: what it holds is added to the nearest directory that
    /// has one, its [`parent`](Self::parent).
    #[inline]
    pub(super) fn is_summed(&self) -> bool {
        self.entry == Id::NONE
    }

    /// Whether it is a root itself.
    #[inline]
    pub(super) fn is_root(&self) -> bool {
        self.family.is_none()
    }

    /// The same directory to be visited later, without a handle kept for it.
    #[cold]
    pub(super) fn set_aside(&self) -> Self {
        let family = self.family.as_ref().map(|family| {
            let link = Arc::clone(&family.link);
            let Family { listing, root, depth, .. } = **family;
            Arc::new(Family { held: None, link, listing, root, depth, rules: family.rules.clone() })
        });
        Task { family, at: self.at, entry: self.entry }
    }

    /// Gives `sink` a task for each of some directories of this one, whose names are in `names`
    /// from these offsets on. Leaves both empty.
    #[inline]
    pub(super) fn hand_on(
        &self,
        held: Option<Held<'a, S::Directory>>,
        listing: Id,
        rules: Option<&Arc<Rules>>,
        names: &mut Vec<u8>,
        children: &mut Vec<(u32, Id)>,
        sink: &mut dyn FnMut(Self),
    ) {
        let above = match &self.family {
            Some(family) => Above::Below(Arc::clone(&family.link), self.at),
            None => Above::Root,
        };
        let link = Arc::new(Link { above, names: names.as_slice().into() });
        let (root, depth) = (self.root(), self.depth() + 1);
        let family =
            Some(Arc::new(Family { held, link, listing, root, depth, rules: rules.cloned() }));
        let last = children.pop();
        for (at, entry) in children.drain(..) {
            sink(Task { family: family.clone(), at, entry });
        }
        if let Some((at, entry)) = last {
            sink(Task { family, at, entry });
        }
        names.clear();
    }
}

impl<S: Sys> Family<'_, S> {
    /// Calls `act` with the family's directory: the directory held open, or a handle that is opened
    /// for the call, from `root` downwards.
    #[inline]
    pub(super) fn with<T>(
        &self,
        sys: &S,
        root: impl FnOnce(usize) -> io::Result<S::Directory>,
        act: impl FnOnce(&S::Directory) -> io::Result<T>,
    ) -> io::Result<T> {
        match &self.held {
            Some(held) => act(&held.directory),
            None => act(&self.reopen(sys, root(self.root)?)?),
        }
    }

    #[cold]
    fn reopen(&self, sys: &S, root: S::Directory) -> io::Result<S::Directory> {
        let mut names = Vec::new();
        let mut link = &self.link;
        while let Above::Below(above, at) = &link.above {
            names.push(above.name(*at));
            link = above;
        }
        names.reverse();
        sys.open_below(root, &names)
    }
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

/// How many families each worker holds open.
pub(crate) struct Handles {
    held: Box<[CachePadded<AtomicUsize>]>,
    total: usize,
    /// The limit of each worker.
    limit: AtomicUsize,
    /// Whether nothing else is running: a handle that is lacking now stays lacking.
    alone: AtomicBool,
}

/// A directory that is held open for its children.
pub(super) struct Held<'a, D> {
    directory: D,
    gauge: &'a AtomicUsize,
}

impl Handles {
    /// `total` handles, for at most `workers` workers.
    pub(crate) fn new(workers: usize, total: usize) -> Handles {
        let held = (0..workers).map(|_| CachePadded::new(AtomicUsize::new(0))).collect();
        let limit = AtomicUsize::new(total / workers);
        Handles { held, total, limit, alone: AtomicBool::new(false) }
    }

    /// Shares the handles among `workers` workers. Families that hold a handle then keep it, so for
    /// a time there may be twice as many handles.
    pub(super) fn share_among(&self, workers: usize) {
        // Relaxed: the workers have been joined, and the next ones are yet to start.
        self.limit.store(self.total / workers, Ordering::Relaxed);
    }

    /// Keeps a directory open if this worker may have one more.
    #[inline]
    pub(super) fn hold<D>(&self, worker: usize, directory: D) -> Option<Held<'_, D>> {
        let gauge = &*self.held[worker];
        // Relaxed, both: the limit is set while no worker runs; the count publishes nothing, and
        // only this worker raises it, so it cannot pass the limit unseen.
        if gauge.load(Ordering::Relaxed) >= self.limit.load(Ordering::Relaxed) {
            return None;
        }
        gauge.fetch_add(1, Ordering::Relaxed);
        Some(Held { directory, gauge })
    }

    /// Whether [`go_alone`](Self::go_alone) was called.
    pub(super) fn is_alone(&self) -> bool {
        // Relaxed: set while no worker runs.
        self.alone.load(Ordering::Relaxed)
    }

    /// From now on one worker runs and no family is held open.
    pub(super) fn go_alone(&self) {
        // Relaxed, both: the workers have been joined, and the next one is yet to start.
        self.limit.store(0, Ordering::Relaxed);
        self.alone.store(true, Ordering::Relaxed);
    }
}

impl<D> Drop for Held<'_, D> {
    fn drop(&mut self) {
        // Relaxed: a count that nothing is published by. A reader that sees it late holds one
        // handle fewer than it might.
        self.gauge.fetch_sub(1, Ordering::Relaxed);
    }
}
