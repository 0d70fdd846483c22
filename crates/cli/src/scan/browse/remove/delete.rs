//! Deleting what a plan lists, by several threads if it is much.
//!
//! The entries to delete are divided into units: the entries of one directory that are no
//! directories. Each thread takes the next unit, in the order of the plan. A directory goes once
//! its unit and the directories in it are gone: whichever thread finishes the last of them removes
//! it, and so on upwards. So no thread waits for another, and each has only a few handles open,
//! however many entries go. A directory's unit belongs to one thread, because the kernel lets one
//! at a time take names out of a directory: on ext4 two threads took twice the processor time of
//! one, for its lock.
//!
//! Each thread ends at the first entry that any of them could not delete, or once it was stopped;
//! the entry in hand goes.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use poach_runtime::ThreadPool;
use poach_scan::Control;

use super::item::{self, Handle, Item, open};
use super::{Begun, Chosen, Group, Outcome, Plan, of, of_item, stopped};

/// The fewest entries that several threads delete.
const MANY: u64 = 1000;

/// The most threads that delete; a disk handles a limited number of requests at a time.
const MOST_THREADS: usize = 8;

/// How many files a thread takes at a time if they are compared before they go.
const COMPARED: usize = 64;

/// How many directories a thread keeps open.
const KEPT: usize = 8;

/// A directory that goes.
struct Directory<'p> {
    item: &'p Item,
    within: Place,
    /// The chosen directory that it is, or that it lies in.
    chosen: usize,
    /// What is left in it: one for its unit, and one for each directory in it.
    left: AtomicUsize,
}

/// A directory that something goes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It stays.
    Group(usize),
    /// It goes, too.
    Directory(usize),
}

/// A thread's next piece of work.
enum Unit<'p> {
    /// Files that were chosen, of a group.
    Chosen(usize, Vec<&'p Chosen>),
    /// Files of a directory that goes.
    Inside(usize, Vec<&'p Item>),
}

/// A directory that was chosen.
struct Whole<'p> {
    chosen: &'p Chosen,
    /// How many entries of it are gone.
    gone: AtomicU64,
}

/// A deletion that runs.
struct Run<'r, 'p> {
    control: &'r Control,
    groups: &'p [Group],
    directories: Vec<Directory<'p>>,
    wholes: Vec<Whole<'p>>,
    units: Vec<Unit<'p>>,
    next: AtomicUsize,
    /// How many entries are gone.
    gone: &'r AtomicU64,
    /// Whether one could not be deleted.
    ended: AtomicBool,
    outcome: Mutex<Outcome>,
    begun: Begun,
}

/// Deletes the listed entries. Ends at the first entry that has changed, or cannot be deleted.
pub(super) fn delete(plan: &Plan, control: &Control, gone: &AtomicU64) -> Outcome {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS);
    let run = Run::new(plan, control, gone);
    let threads = threads.min(run.units.len());
    let is_worth_it = plan.entries() >= MANY && threads > 1;
    // Without a pool one thread does it all.
    let pool =
        is_worth_it.then(|| ThreadPool::builder().num_threads(threads).build().ok()).flatten();
    match pool {
        Some(pool) => drop(pool.broadcast(|_| run.work())),
        None => run.work(),
    }
    let partly = run.wholes.into_iter().filter(|whole| {
        // Relaxed: the threads have been joined.
        let gone = whole.gone.load(Ordering::Relaxed);
        (1..whole.chosen.item.count()).contains(&gone)
    });
    let mut outcome = run.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcome.partly.extend(partly.map(|whole| whole.chosen.names.clone()));
    outcome
}

impl<'r, 'p> Run<'r, 'p> {
    fn new(plan: &'p Plan, control: &'r Control, gone: &'r AtomicU64) -> Run<'r, 'p> {
        let mut run = Run {
            control,
            groups: &plan.groups,
            directories: Vec::new(),
            wholes: Vec::new(),
            units: Vec::new(),
            next: AtomicUsize::new(0),
            gone,
            ended: AtomicBool::new(false),
            outcome: Mutex::default(),
            begun: Begun::default(),
        };
        for (group, Group { chosen, .. }) in plan.groups.iter().enumerate() {
            let (directories, mut files): (Vec<&Chosen>, Vec<_>) =
                chosen.iter().partition(|chosen| chosen.item.inside.is_some());
            files.sort_by_key(|chosen| item::place(&chosen.item.identity));
            // Comparisons of one directory's files are worth several threads.
            let is_compared = files.iter().any(|chosen| chosen.twin.is_some());
            let most = if is_compared { COMPARED } else { files.len().max(1) };
            let units = files.chunks(most).map(|files| Unit::Chosen(group, files.to_vec()));
            run.units.extend(units);
            for chosen in directories {
                run.wholes.push(Whole { chosen, gone: AtomicU64::new(0) });
                run.add(&chosen.item, Place::Group(group));
            }
        }
        run
    }

    /// Adds a directory below the last added entry. The deepest comes first, as it is deleted
    /// first.
    fn add(&mut self, item: &'p Item, within: Place) {
        let (number, chosen) = (self.directories.len(), self.wholes.len() - 1);
        let directory = Directory { item, within, chosen, left: AtomicUsize::new(0) };
        self.directories.push(directory);
        let inside = item.inside.as_deref().unwrap_or_default();
        // Its unit.
        let mut left = 1;
        for directory in inside.iter().filter(|item| item.inside.is_some()) {
            self.add(directory, Place::Directory(number));
            left += 1;
        }
        let mut files: Vec<_> = inside.iter().filter(|item| item.inside.is_none()).collect();
        files.sort_by_key(|item| item::place(&item.identity));
        // Without files, too: something has to find that nothing is left in it.
        self.units.push(Unit::Inside(number, files));
        self.directories[number].left = AtomicUsize::new(left);
    }

    fn outcome(&self) -> std::sync::MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it, for a reason. The first one is told.
    fn end(&self, error: io::Error) {
        self.outcome().error.get_or_insert(error);
        // Relaxed, here and below: what the others see is only that they need not go on, and the
        // counts are for people to watch.
        self.ended.store(true, Ordering::Relaxed);
    }

    fn has_ended(&self) -> bool {
        if self.control.is_stopped() {
            self.end(stopped());
        }
        self.ended.load(Ordering::Relaxed)
    }

    /// Takes units until none is left.
    fn work(&self) {
        let mut open = Open { run: self, kept: VecDeque::new() };
        // Relaxed: the number is all there is to it.
        while let Some(unit) = self.units.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let done = match unit {
                Unit::Chosen(group, files) => files.iter().try_for_each(|chosen| {
                    open.delete_chosen(*group, chosen).map_err(|error| of(&chosen.names, error))
                }),
                Unit::Inside(directory, files) => open.empty(*directory, files),
            };
            match done {
                Ok(()) => {}
                Err(error) => return self.end(error),
            }
        }
    }

    /// Takes note of an entry that is gone.
    fn went(&self, chosen: Option<usize>) {
        if let Some(chosen) = chosen {
            self.wholes[chosen].gone.fetch_add(1, Ordering::Relaxed);
        }
        self.gone.fetch_add(1, Ordering::Relaxed);
    }
}

/// The directories that one thread has open, each but the first of a way by the one that it is in.
struct Open<'r, 'p> {
    run: &'r Run<'r, 'p>,
    kept: VecDeque<(Place, Handle)>,
}

impl Open<'_, '_> {
    /// The handle of a directory, which is opened from the nearest one above it that is open.
    fn handle(&mut self, place: Place) -> io::Result<&Handle> {
        let (mut below, mut next) = (Vec::new(), place);
        let at = loop {
            if let Some(at) = self.kept.iter().position(|(kept, _)| *kept == next) {
                break Some(at);
            }
            below.push(next);
            match next {
                Place::Directory(number) => next = self.run.directories[number].within,
                Place::Group(_) => break None,
            }
        };
        // What comes behind it lies in it or is done with.
        self.kept.truncate(at.map_or(0, |at| at + 1));
        while let Some(place) = below.pop() {
            let handle = match (place, self.kept.back()) {
                (Place::Directory(number), Some((_, within))) => {
                    let Item { name, identity, .. } = self.run.directories[number].item;
                    open(within, name, *identity).map_err(|error| of_item(name, error))?
                }
                (Place::Group(group), _) => self.run.groups[group].parent.open()?,
                (Place::Directory(_), None) => unreachable!("a way begins at what stays"),
            };
            self.kept.push_back((place, handle));
            if self.kept.len() > KEPT {
                self.kept.pop_front();
            }
        }
        let (_, handle) = self.kept.back().expect("the last is the one that is looked for");
        Ok(handle)
    }

    fn delete_chosen(&mut self, group: usize, chosen: &Chosen) -> io::Result<()> {
        let run = self.run;
        if run.has_ended() {
            return Err(stopped());
        }
        let within = self.handle(Place::Group(group))?;
        chosen.delete(within, &run.begun, run.control)?;
        run.went(None);
        run.outcome().went.push(chosen.names.clone());
        Ok(())
    }

    /// Deletes some files of a directory, and the directory if they were the last.
    fn empty(&mut self, number: usize, files: &[&Item]) -> io::Result<()> {
        let (run, directory) = (self.run, &self.run.directories[number]);
        for file in files {
            if run.has_ended() {
                return Err(stopped());
            }
            let within = self.handle(Place::Directory(number))?;
            let removed = run.begun.check(within, file).and_then(|()| item::remove(within, file));
            removed.map_err(|error| of_item(&file.name, error))?;
            run.went(Some(directory.chosen));
        }
        self.finish(number)
    }

    /// Takes note that the unit of a directory, or a directory in it, is gone. A directory in which
    /// nothing is left goes, and so on upwards.
    fn finish(&mut self, mut number: usize) -> io::Result<()> {
        let run = self.run;
        loop {
            let directory = &run.directories[number];
            // It is closed before it may go: Windows keeps the name of an open directory.
            self.close(Place::Directory(number));
            // AcqRel: the deletions of every other thread in it happen before the thread that finds
            // nothing left goes on.
            if directory.left.fetch_sub(1, Ordering::AcqRel) > 1 {
                return Ok(());
            }
            if run.has_ended() {
                return Err(stopped());
            }
            let within = self.handle(directory.within)?;
            let Item { name, .. } = directory.item;
            item::remove(within, directory.item).map_err(|error| of_item(name, error))?;
            run.went(Some(directory.chosen));
            match directory.within {
                Place::Directory(above) => number = above,
                Place::Group(_) => {
                    let names = &run.wholes[directory.chosen].chosen.names;
                    run.outcome().went.push(names.clone());
                    return Ok(());
                }
            }
        }
    }

    /// Closes a directory, and what lies in it.
    fn close(&mut self, place: Place) {
        if let Some(at) = self.kept.iter().position(|(kept, _)| *kept == place) {
            self.kept.truncate(at);
        }
    }
}
