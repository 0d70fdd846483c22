//! Files of equal content: by size, then by a hash of samples, then by a hash of the whole.
//!
//! Files are grouped by their length; a file whose length no other has is not opened. Of each other
//! file a few blocks are hashed. Files whose samples agree are hashed whole, with BLAKE3, on the
//! threads of a pool; a file of at most one block is read once. A file is opened by the directories
//! that lead to it, and no link is followed on the way. A file that is not the scanned one any more
//! is left out.
//!
//! **Told apart.** Names of one file (hard links) are one file, by device and number. Empty files
//! are not compared. A hole is not read, and equals zeros that are written: a file of 16 TiB of
//! nothing takes no longer than an empty one. Blocks that a file shares with other files
//! (reflinks, snapshots) are not freed with it: where the system says so, each copy has the number
//! of its shared bytes.
//!
//! **In order, as soon as possible.** A set of files of one length can free at most what all but
//! one of them take: this bound never grows when a set is split. Sets are compared by falling
//! bounds, and a group is told once no unfinished set has a bound as great as what the group frees.
//! So the groups come largest first, whichever thread found them.
//!
//! A hash is not a proof: before a copy is deleted for another's sake, [`same_content`] compares
//! the two byte by byte.
//!
//! At a time, each thread has one file open and holds one block; a candidate takes 40 bytes and its
//! name.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use poach_parallel::par_map_init;
use poach_runtime::ThreadPool;

use crate::report::Measure;
use crate::shared::open_given;
use crate::sys::{Kind, Meta, Sys, path_of};
use crate::{Control, Error, Failure, Scan};

mod candidates;
mod content;
mod digest;
mod text;

pub(crate) use candidates::Candidates;
use candidates::{Candidate, Set};
pub use content::same_content;
use digest::{Digest, Reader};
pub(crate) use text::write;

/// Files of equal content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The length of each.
    pub apparent_bytes: u64,
    /// The bytes that are free at least once one of them is left. The largest copy is taken to
    /// stay and, of equally large copies, a shared copy. By bytes on disk, what a copy shares with
    /// other files does not count.
    pub freed_bytes: u64,
    /// The files, by path; at least two.
    pub copies: Vec<Copy>,
}

/// One of several files of equal content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copy {
    /// The bytes of its path, beginning with the path as it was given.
    pub path: Vec<u8>,
    /// The bytes it takes on disk: fewer than its length if it is sparse.
    pub disk_bytes: u64,
    /// How many of these it shares with other files, or with snapshots; 0 where the system does
    /// not say.
    pub shared_bytes: u64,
}

impl Group {
    /// A group of some copies, by path, of at least two; by length or by bytes on disk.
    pub fn new(apparent_bytes: u64, copies: Vec<Copy>, measure: Measure) -> Group {
        // What it takes, and what of that is free once it is gone.
        let sizes = copies.iter().map(|copy| match measure {
            Measure::Apparent => (apparent_bytes, apparent_bytes),
            _ => (copy.disk_bytes, copy.disk_bytes.saturating_sub(copy.shared_bytes)),
        });
        let kept = sizes.clone().max_by_key(|&(takes, frees)| (takes, Reverse(frees)));
        let sum: u128 = sizes.map(|(_, frees)| u128::from(frees)).sum();
        let freed = sum - kept.map_or(0, |(_, frees)| u128::from(frees));
        let freed_bytes = u64::try_from(freed).unwrap_or(u64::MAX);
        Group { apparent_bytes, freed_bytes, copies }
    }

    /// What is free if one copy is left, in the order of the groups: the greatest first.
    pub(crate) fn rank(&self) -> Reverse<(Reverse<u64>, &[u8])> {
        Reverse((Reverse(self.freed_bytes), &self.copies[0].path))
    }
}

/// The result of a comparison beside its groups.
#[derive(Debug, Default)]
pub struct Made {
    /// Files that could not be compared, by path.
    pub errors: Vec<Failure>,
    /// Whether [`Control::stop`] ended it early.
    pub interrupted: bool,
}

/// What the pool's threads tell the thread that asked.
enum News {
    Group(Group),
    /// The set of this index is done.
    Done(usize),
}

/// Compares the candidates of a scan, and tells of each group, the one that frees the most first.
///
/// # Errors
///
/// If the threads cannot be had.
pub(crate) fn find<S: Sys>(
    sys: &S,
    scan: &Scan,
    mut candidates: Candidates,
    measure: Measure,
    control: &Control,
    tell: &mut dyn FnMut(Group),
) -> Result<Made, Error> {
    let sets = candidates.sets(measure);
    let Candidates { names, all } = &candidates;
    let failures = Mutex::default();
    let finder = Finder { sys, scan, names, measure, control, failures };
    control.begin_comparing(sets.iter().map(|set| set.bytes).fold(0, u64::saturating_add));
    if !sets.is_empty() {
        let pool = ThreadPool::builder().num_threads(scan.threads.max(1)).build();
        let pool = pool.map_err(crate::engine::refused)?;
        let (news, heard) = mpsc::channel();
        let search = || {
            // The caller hears all of it, unless it panics.
            let news = news;
            pool.install(|| finder.spread(&sets, all, &news));
        };
        thread::scope(|threads| {
            let named = thread::Builder::new().name("poach-duplicates".to_owned());
            named
                .spawn_scoped(threads, search)
                .map_err(|error| Error::Thread { number: 0, error })?;
            let mut order = Order::new(sets.iter().map(|set| set.bound).collect());
            for news in heard {
                order.hear(news, tell);
            }
            Ok(())
        })?;
    }
    let mut failures = finder.failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Made { errors: failures, interrupted: control.is_stopped() })
}

/// Holds groups back until none that frees more can come.
struct Order {
    /// What each set can free at most, the greatest first.
    bounds: Vec<u64>,
    done: Vec<bool>,
    /// The first set that is not done.
    next: usize,
    held: BinaryHeap<Ranked>,
}

impl Order {
    fn new(bounds: Vec<u64>) -> Order {
        Order { done: vec![false; bounds.len()], bounds, next: 0, held: BinaryHeap::new() }
    }

    fn hear(&mut self, news: News, tell: &mut dyn FnMut(Group)) {
        match news {
            News::Group(group) => self.held.push(Ranked(group)),
            News::Done(index) => {
                self.done[index] = true;
                while self.done.get(self.next) == Some(&true) {
                    self.next += 1;
                }
            }
        }
        let bound = self.bounds.get(self.next);
        let free = |held: &Ranked| bound.is_none_or(|&bound| held.0.freed_bytes > bound);
        while self.held.peek().is_some_and(free) {
            if let Some(Ranked(group)) = self.held.pop() {
                tell(group);
            }
        }
    }
}

/// A group, in the order in which it is told.
struct Ranked(Group);

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> std::cmp::Ordering {
        self.0.rank().cmp(&other.0.rank())
    }
}

/// The state that the threads share.
struct Finder<'a, S> {
    sys: &'a S,
    scan: &'a Scan,
    /// The candidates' names.
    names: &'a [u8],
    measure: Measure,
    control: &'a Control,
    failures: Mutex<Vec<Failure>>,
}

/// A file that was read, or samples of it.
struct Hashed<'c> {
    digest: Digest,
    /// Device and number; both 0 where the system does not say.
    identity: (u64, u64),
    /// How many of its bytes other files have, too.
    shared: u64,
    candidate: &'c Candidate,
}

/// How much of a file is hashed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Samples,
    Whole,
}

impl<S: Sys> Finder<'_, S> {
    /// Compares each set, in a task of its own.
    fn spread(&self, sets: &[Set], all: &[Candidate], news: &mpsc::Sender<News>) {
        poach_runtime::scope(|scope| {
            // The newest task is the one that a worker takes next, so the set of the greatest bound
            // comes last.
            for (index, set) in sets.iter().enumerate().rev() {
                let news = news.clone();
                scope.spawn(move |_| {
                    for group in self.compare(&all[set.range.clone()]) {
                        let _ = news.send(News::Group(group));
                    }
                    let _ = news.send(News::Done(index));
                });
            }
        });
    }

    /// The groups of equal content among files of one length.
    fn compare(&self, set: &[Candidate]) -> Vec<Group> {
        let mut groups = Vec::new();
        let sampled = self.hash(&set.iter().collect::<Vec<_>>(), Part::Samples);
        for alike in sampled.chunk_by(|a, b| a.digest == b.digest).filter(|alike| alike.len() > 1) {
            if alike[0].digest.is_whole() {
                groups.push(self.group(alike));
                continue;
            }
            let alike: Vec<_> = alike.iter().map(|hashed| hashed.candidate).collect();
            let whole = self.hash(&alike, Part::Whole);
            let equal = whole.chunk_by(|a, b| a.digest == b.digest);
            groups.extend(equal.filter(|equal| equal.len() > 1).map(|equal| self.group(equal)));
        }
        groups
    }

    /// Hashes files and sorts them by their digests, each file once. What cannot be read is noted
    /// and left out.
    fn hash<'c>(&self, files: &[&'c Candidate], part: Part) -> Vec<Hashed<'c>> {
        let hashed = par_map_init(files, Reader::default, |reader, file| {
            if self.control.is_stopped() {
                return None;
            }
            match self.read(reader, file, part) {
                Ok((digest, identity, shared)) => {
                    Some(Hashed { digest, identity, shared, candidate: file })
                }
                Err(error) => {
                    let message = format!("cannot compare the file: {error}");
                    let failure = Failure { path: self.path(file), message };
                    self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
                    None
                }
            }
        });
        if self.control.is_stopped() {
            return Vec::new();
        }
        let mut hashed: Vec<_> = hashed.into_iter().flatten().collect();
        hashed.sort_by_key(|it| (it.digest, it.identity));
        hashed.dedup_by(|a, b| a.identity == b.identity && a.identity != (0, 0));
        hashed
    }

    fn read(
        &self,
        reader: &mut Reader,
        candidate: &Candidate,
        part: Part,
    ) -> io::Result<(Digest, (u64, u64), u64)> {
        let (file, meta) = self.open(candidate)?;
        if meta.kind != Kind::File || meta.apparent != candidate.apparent {
            return Err(digest::changed());
        }
        let digest = match part {
            Part::Samples => reader.samples(self.sys, &file, &meta, self.control),
            Part::Whole => reader.whole(self.sys, &file, &meta, self.control),
        }?;
        // Samples alone make no group.
        let shared = if digest.is_whole() { shared_bytes(self.sys, &file, meta.disk) } else { 0 };
        Ok((digest, (meta.device, meta.inode), shared))
    }

    /// Opens a file by the directories that lead to it.
    fn open(&self, candidate: &Candidate) -> io::Result<(File, Meta)> {
        let (name, mut way) = (candidate.name(self.names), self.scan.tree.way(candidate.within));
        if way.is_empty() {
            return open_given(self.sys, name, self.scan.options.follow_paths);
        }
        let root = path_of(way.remove(0).to_bytes())?;
        let directory = self.sys.open_path(&root)?;
        let directory =
            if way.is_empty() { directory } else { self.sys.open_below(directory, &way)? };
        self.sys.open_file(&directory, name)
    }

    fn path(&self, candidate: &Candidate) -> Vec<u8> {
        self.scan.tree.path_within(candidate.within, candidate.name(self.names).to_bytes())
    }

    fn group(&self, equal: &[Hashed<'_>]) -> Group {
        let copy = |hashed: &Hashed<'_>| Copy {
            path: self.path(hashed.candidate),
            disk_bytes: hashed.candidate.disk,
            shared_bytes: hashed.shared,
        };
        let mut copies: Vec<Copy> = equal.iter().map(copy).collect();
        copies.sort();
        Group::new(equal[0].candidate.apparent, copies, self.measure)
    }
}

/// How many of a file's bytes on disk other files have, too, so that they stay when it is deleted;
/// 0 where the system does not say. `disk`: the file's bytes on disk. Data that was written to the
/// file is written to its disk for that.
pub fn shared_bytes<S: Sys>(sys: &S, file: &File, disk: u64) -> u64 {
    let (mut all, mut shared) = (0_u64, 0_u64);
    let told = sys.extents(file, &mut |extent| {
        all = all.saturating_add(extent.length);
        if extent.shared {
            shared = shared.saturating_add(extent.length);
        }
    });
    if told.is_err() { 0 } else { part_of(shared, all, disk) }
}

/// The shared part of `disk` bytes, if `shared` of the `all` bytes of a file's extents are shared.
/// Extents of compressed data are told by their lengths, and a file may take more than its extents.
pub(crate) fn part_of(shared: u64, all: u64, disk: u64) -> u64 {
    if all <= disk {
        return shared;
    }
    let part = u128::from(shared) * u128::from(disk) / u128::from(all);
    u64::try_from(part).unwrap_or(disk)
}

/// The sum of some sizes without the largest.
fn all_but_one(sizes: impl Iterator<Item = u64>) -> u64 {
    let (sum, most) =
        sizes.fold((0_u128, 0), |(sum, most), size| (sum + u128::from(size), most.max(size)));
    u64::try_from(sum - u128::from(most)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(freed_bytes: u64, name: &str) -> Group {
        let copy = |end: &str| Copy {
            path: format!("{name}{end}").into_bytes(),
            disk_bytes: freed_bytes,
            shared_bytes: 0,
        };
        Group { apparent_bytes: 1, freed_bytes, copies: vec![copy("1"), copy("2")] }
    }

    #[test]
    fn groups_come_by_what_they_free_as_soon_as_none_can_come_before_them() {
        let mut order = Order::new(vec![100, 50, 10]);
        let mut told: Vec<Group> = Vec::new();
        let mut hear = |news| {
            order.hear(news, &mut |group| told.push(group));
            told.iter()
                .map(|group| (group.freed_bytes, group.copies[0].path[0]))
                .collect::<Vec<_>>()
        };
        assert_eq!(hear(News::Group(group(50, "b"))), []);
        assert_eq!(hear(News::Done(1)), []);
        assert_eq!(hear(News::Group(group(60, "c"))), []);
        // What is left can free ten at most.
        assert_eq!(hear(News::Done(0)), [(60, b'c'), (50, b'b')]);
        assert_eq!(hear(News::Group(group(10, "z"))).len(), 2);
        assert_eq!(hear(News::Group(group(10, "a"))).len(), 2);
        assert_eq!(hear(News::Done(2))[2..], [(10, b'a'), (10, b'z')]);
    }

    #[test]
    fn what_a_copy_shares_is_not_freed_with_it() {
        let group = |copies: &[(u64, u64)], measure| {
            let copy =
                |&(disk_bytes, shared_bytes)| Copy { path: vec![b'a'], disk_bytes, shared_bytes };
            Group::new(100, copies.iter().map(copy).collect(), measure).freed_bytes
        };
        let disk = |copies: &[(u64, u64)]| group(copies, Measure::Disk);
        assert_eq!(disk(&[(100, 0), (100, 0), (60, 0)]), 160);
        assert_eq!(disk(&[(100, 100), (100, 100)]), 0);
        // A copy with shared blocks stays, and the copy without any is freed.
        assert_eq!(disk(&[(100, 0), (100, 100), (100, 100)]), 100);
        assert_eq!(disk(&[(100, 30), (100, 50)]), 70);
        assert_eq!(group(&[(100, 100), (100, 100)], Measure::Apparent), 100);
        // A compressed file, and a file that takes more than its extents.
        assert_eq!((part_of(8, 16, 4), part_of(16, 16, 4), part_of(8, 16, 20)), (2, 4, 8));
        assert_eq!((part_of(0, 0, 0), part_of(u64::MAX, u64::MAX, 7)), (0, 7));
    }

    #[test]
    fn what_is_freed_never_grows_when_a_set_is_split() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..1000 {
            let sizes: Vec<u64> = (0..random.usize(1..9)).map(|_| random.u64(..100)).collect();
            let part = sizes.iter().copied().filter(|_| random.bool()).collect::<Vec<_>>();
            assert!(all_but_one(part.into_iter()) <= all_but_one(sizes.into_iter()));
        }
        assert_eq!(all_but_one([u64::MAX; 3].into_iter()), u64::MAX);
    }
}
