//! Deleting what was shown, and nothing else; moving it to the trash likewise.
//!
//! A [`Plan`] lists entries and all that is in them, with device and number of each, by open directories: no link is followed,
//! and a file system mounted below is refused. The list is what the question shows. [`Plan::carry_out`] then deletes exactly
//! this list, from the leaves up, each name by the handle of its directory and only if it is what was listed still: the same
//! device and number and, of a file, the same length and time of change, as a number may be given to a new file. A directory
//! that was replaced since, by a link or another directory, is refused; what was added since keeps its directory.
//!
//! A file that is deleted because another one is equal to it is compared with that, byte by byte, right before.
//!
//! On Unix a moment is left, between the last look at a name and its deletion, in which a file can take another's place: no system
//! call deletes a file by what it is. A directory is held open from the look on. Windows does delete by a handle, so what was
//! compared is what goes. What is moved to the trash is looked at once more when it is there, and brought back if it is not what
//! was meant.
//!
//! One handle is open for each level, so what is deeper than [`DEEPEST`] is refused before anything goes.
//!
//! Many entries are deleted by several threads, which divide the chosen entries, and what is in each directory, among them. Each
//! ends at the first entry that any of them could not delete, or once it was stopped; the entry in hand goes.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use poach_runtime::ThreadPool;
use poach_scan::Control;
use poach_scan::duplicates::same_content;
use poach_scan::report::escape;
use poach_scan::sys::Native;

use super::act::Act;
use super::item::{self, Handle, Identity, Item, changed, open};
use super::names::{Names, joined, of};
use super::trash;
pub(super) use super::trash::Trashed;

/// How many levels may lie below an entry that is to go.
const DEEPEST: usize = 400;

/// The fewest entries that several threads delete.
const MANY: u64 = 1000;

/// The most levels of what several threads delete: each of them has a handle open for each.
const DEEPEST_OF_MANY: usize = 40;

/// The most threads that delete: a disk has so much to do at a time.
const MOST_THREADS: usize = 8;

/// What is to go: a given path, and the names below it.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) root: PathBuf,
    /// The given path's is the first.
    pub(super) names: Names,
    /// A file that stays, to which this one must be equal.
    pub(super) twin: Option<(PathBuf, Names)>,
}

/// What is to go, as it was when it was listed.
#[derive(Debug)]
pub(super) struct Plan {
    chosen: Vec<Chosen>,
    pub(super) act: Act,
    pub(super) files: u64,
    pub(super) directories: u64,
    /// On disk; a file that keeps another name frees nothing.
    pub(super) bytes: u64,
    /// How many names of each file that has several are to go.
    names: HashMap<Identity, u64>,
    /// The levels of what lies deepest.
    levels: usize,
}

#[derive(Debug)]
struct Chosen {
    names: Names,
    /// The directory that the entry is in.
    within: Arc<Handle>,
    item: Item,
    twin: Option<Twin>,
}

/// A file that stays.
#[derive(Debug)]
struct Twin {
    within: Arc<Handle>,
    name: CString,
    names: Names,
}

/// What a deletion came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What is gone whole.
    pub(super) went: Vec<Names>,
    /// What is gone in part.
    pub(super) partly: Vec<Names>,
    /// What is in the trash.
    pub(super) trashed: Vec<Trashed>,
    /// Why it ended before its end.
    pub(super) error: Option<io::Error>,
}

impl Plan {
    /// Lists what lies at some places, of which there is at least one, below given paths. `control` can stop it.
    ///
    /// # Errors
    ///
    /// The system's own, or that something is not to be deleted.
    pub(super) fn new(act: Act, targets: &[Target], control: &Control) -> io::Result<Plan> {
        if act == Act::Trash && !trash::IS_THERE {
            return Err(io::Error::other("on this system nothing is moved to the trash from here"));
        }
        let (chosen, names) = (Vec::new(), HashMap::new());
        let mut plan = Plan { chosen, act, files: 0, directories: 0, bytes: 0, names, levels: 0 };
        let mut opened = Opened::default();
        for Target { root, names, twin } in targets {
            let (within, name, is_link) =
                opened.open(root, names).map_err(|error| of(names, error))?;
            let item = plan.list(&within, name, is_link, control, 0)?;
            let twin = match twin {
                None => None,
                Some((root, names)) => {
                    let (within, name, _) =
                        opened.open(root, names).map_err(|error| of(names, error))?;
                    Some(Twin { within, name, names: names.clone() })
                }
            };
            plan.chosen.push(Chosen { names: names.clone(), within, item, twin });
        }
        Ok(plan)
    }

    /// `is_link`: its directory's list says so.
    fn list(
        &mut self,
        within: &Handle,
        name: CString,
        is_link: bool,
        control: &Control,
        depth: usize,
    ) -> io::Result<Item> {
        if control.is_stopped() {
            return Err(stopped());
        }
        let seen = item::see(within, &name).map_err(|error| of_item(&name, error))?;
        let identity = seen.identity;
        if !seen.is_directory {
            self.files += 1;
            let names = match seen.names {
                1 => 1,
                _ => *self.names.entry(identity).and_modify(|names| *names += 1).or_insert(1),
            };
            // With the last of its names the file goes.
            if names == seen.names {
                self.bytes += seen.bytes;
            }
            return Ok(Item { name, identity, inside: None });
        }
        if is_link {
            let name = escape(name.to_bytes());
            return Err(io::Error::other(format!("{name} is a link, which this system follows")));
        }
        if depth == DEEPEST {
            return Err(io::Error::other(format!("more than {DEEPEST} levels lie in it")));
        }
        let directory = open(within, &name, identity).map_err(|error| of_item(&name, error))?;
        if !item::identity_of(within)?.is_on_same_volume(&identity) {
            return Err(io::Error::other("another file system is mounted in it"));
        }
        self.directories += 1;
        self.bytes += seen.bytes;
        self.levels = self.levels.max(depth);
        let mut names = item::list(&directory).map_err(|error| of_item(&name, error))?;
        names.sort();
        let inside = names
            .into_iter()
            .map(|(name, is_link)| self.list(&directory, name, is_link, control, depth + 1));
        let inside = Some(inside.collect::<io::Result<_>>()?);
        Ok(Item { name, identity, inside })
    }

    /// What goes, an entry a line: all of it, however much that is.
    pub(super) fn lines(&self) -> Vec<String> {
        /// Levels that are indented.
        const INDENTED: usize = 20;
        let (mut lines, mut waiting) = (Vec::new(), Vec::new());
        for chosen in self.chosen.iter().rev() {
            waiting.push((&chosen.item, 0, Some(chosen)));
        }
        while let Some((item, depth, chosen)) = waiting.pop() {
            let sign = if item.inside.is_some() { "/" } else { "" };
            lines.push(match chosen {
                Some(Chosen { names, twin: Some(twin), .. }) => {
                    format!("  {}  which equals {}", shown(names), shown(&twin.names))
                }
                Some(chosen) => format!("  {}{sign}", shown(&chosen.names)),
                None => {
                    let indent = " ".repeat(2 + 2 * INDENTED.min(depth));
                    format!("{indent}{}{sign}", escape(item.name.to_bytes()))
                }
            });
            let inside = item.inside.iter().flatten().rev();
            waiting.extend(inside.map(|item| (item, depth + 1, None)));
        }
        lines
    }

    /// How many entries go.
    pub(super) fn entries(&self) -> u64 {
        self.files + self.directories
    }

    /// Deletes or moves what was listed, and counts it in `gone`. Ends at the first that is not as it was, or cannot be deleted.
    pub(super) fn carry_out(self, control: &Control, gone: &AtomicU64) -> Outcome {
        let threads =
            thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS);
        let is_worth_it = self.act == Act::Delete
            && self.entries() >= MANY
            && self.levels <= DEEPEST_OF_MANY
            && threads > 1;
        // Without a pool one thread does it all.
        let pool =
            is_worth_it.then(|| ThreadPool::builder().threads(threads).build().ok()).flatten();
        let ended = AtomicBool::new(false);
        let outcome = Mutex::default();
        let run = Run { control, gone, ended, outcome, divides: pool.is_some() };
        match pool {
            Some(pool) => pool.install(|| run.each(&self.chosen, &|chosen| run.delete(chosen))),
            None if self.act == Act::Trash => run.to_trash(&self.chosen),
            None => run.each(&self.chosen, &|chosen| run.delete(chosen)),
        };
        run.outcome.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A deletion that runs.
struct Run<'a> {
    control: &'a Control,
    /// How many entries are gone.
    gone: &'a AtomicU64,
    /// Whether one could not be deleted.
    ended: AtomicBool,
    outcome: Mutex<Outcome>,
    /// Whether several threads work at it.
    divides: bool,
}

impl Run<'_> {
    /// Does something with each, in their order, or divided among the threads. Whether it came to the end.
    fn each<T: Sync>(&self, items: &[T], act: &(impl Fn(&T) -> bool + Sync)) -> bool {
        match items {
            [one] => act(one),
            [_, _, ..] if self.divides => {
                let (left, right) = items.split_at(items.len() / 2);
                let (left, right) =
                    poach_runtime::join(|| self.each(left, act), || self.each(right, act));
                left && right
            }
            _ => items.iter().all(act),
        }
    }

    fn outcome(&self) -> std::sync::MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it, for a reason. The first one is told.
    fn end(&self, error: io::Error) -> bool {
        self.outcome().error.get_or_insert(error);
        // Relaxed, here and below: what the others see is only that they need not go on, and the counts are for people to watch.
        self.ended.store(true, Ordering::Relaxed);
        false
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.control.is_stopped() && !self.end(stopped())
    }

    fn delete(&self, chosen: &Chosen) -> bool {
        if self.has_ended() {
            return false;
        }
        if let Err(error) = chosen.compare(self.control) {
            return self.end(of(&chosen.names, error));
        }
        let gone = AtomicU64::new(0);
        let whole = self.remove(&chosen.within, &chosen.item, &gone);
        if whole {
            self.outcome().went.push(chosen.names.clone());
        } else if gone.into_inner() > 0 {
            self.outcome().partly.push(chosen.names.clone());
        }
        whole
    }

    /// Deletes an entry and, before, what is in it. `gone` counts what is gone of it.
    fn remove(&self, within: &Handle, item: &Item, gone: &AtomicU64) -> bool {
        if let Some(inside) = item.inside.as_deref().filter(|inside| !inside.is_empty()) {
            let directory = match open(within, &item.name, item.identity) {
                Ok(directory) => directory,
                Err(error) => return self.end(of_item(&item.name, error)),
            };
            if !self.each(inside, &|item| self.remove(&directory, item, gone)) {
                return false;
            }
        }
        if self.has_ended() {
            return false;
        }
        if let Err(error) = item::remove(within, item) {
            return self.end(of_item(&item.name, error));
        }
        gone.fetch_add(1, Ordering::Relaxed);
        self.gone.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn to_trash(&self, all: &[Chosen]) -> bool {
        let mut bins = trash::Bins::default();
        all.iter().all(|chosen| {
            if self.has_ended() {
                return false;
            }
            let put = chosen.compare(self.control).and_then(|()| {
                Trashed::put(&chosen.within, &chosen.item, &chosen.names, &mut bins)
            });
            let trashed = match put {
                Ok(trashed) => trashed,
                Err(error) => return self.end(of(&chosen.names, error)),
            };
            self.gone.fetch_add(chosen.item.count(), Ordering::Relaxed);
            let mut outcome = self.outcome();
            outcome.trashed.push(trashed);
            outcome.went.push(chosen.names.clone());
            true
        })
    }
}

impl Chosen {
    /// Whether the file is equal to the one that stays, if there is one.
    fn compare(&self, control: &Control) -> io::Result<()> {
        let Some(twin) = &self.twin else { return Ok(()) };
        let (file, identity) = item::open_file(&self.within, &self.item.name)?;
        let (other, stays) = item::open_file(&twin.within, &twin.name)?;
        if identity != self.item.identity {
            return Err(changed(&self.item.name));
        }
        // Another name of the same file, or the same name by another way, is no copy.
        if identity.is_same_file(&stays) {
            let twin = shown(&twin.names);
            return Err(io::Error::other(format!("it is the same file as {twin}")));
        }
        if same_content(&Native::default(), &file, &other, control)? {
            return Ok(());
        }
        let (one, twin) = (shown(&self.names), shown(&twin.names));
        Err(io::Error::other(format!("{one} does not equal {twin} any more")))
    }
}

/// Directories that were opened to delete from, each once, and the names in them that are links by their lists.
#[derive(Default)]
struct Opened(HashMap<Names, (Arc<Handle>, HashSet<CString>)>);

impl Opened {
    /// The directory that the last of some names is in, that name, and whether it is a link by that directory's list.
    fn open(&mut self, root: &Path, names: &Names) -> io::Result<(Arc<Handle>, CString, bool)> {
        let Some((last, above)) = names.split_last().filter(|(_, above)| !above.is_empty()) else {
            return Err(io::Error::other("a path that was given is not deleted from here"));
        };
        if !self.0.contains_key(above) {
            let root = item::open_given(root)?;
            let within = above[1..]
                .iter()
                .try_fold(root, |within, name| item::open_in(&within, &CString::new(&name[..])?))?;
            let links = item::links_in(&within)?;
            self.0.insert(above.to_vec(), (Arc::new(within), links));
        }
        let (within, links) = &self.0[above];
        let last = CString::new(&last[..])?;
        let is_link = links.contains(&last);
        Ok((Arc::clone(within), last, is_link))
    }
}

/// Names as a path that a terminal can show.
fn shown(names: &Names) -> String {
    escape(&joined(names.iter().map(Vec::as_slice))).into_owned()
}

fn of_item(name: &CString, error: io::Error) -> io::Error {
    of(&[name.to_bytes().to_vec()], error)
}

fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "it was stopped")
}

#[cfg(test)]
mod tests;
