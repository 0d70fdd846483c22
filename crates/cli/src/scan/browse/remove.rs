//! Deleting what was shown, and nothing else; moving it to the trash likewise.
//!
//! A [`Plan`] lists entries and everything in them, with the device and number of each, by open
//! directories: no link is followed, and a file system mounted below is refused. The question shows
//! this list.
//!
//! [`Plan::carry_out`] then deletes exactly this list, from the leaves up, each name by the handle
//! of its directory. An entry must be unchanged: the same device and number, and for a file the
//! same length and the same times of content and attributes. The number alone is not enough,
//! because a new file may get it, and a time can be set back. A directory that was replaced by a
//! link or another directory is refused. A directory with new entries stays.
//!
//! A file that is deleted because another one is equal to it is compared with that file, byte by
//! byte, right before. On Unix the kept file is written to its disk (`fsync`) before the first of
//! the others goes; on a file system that writes nothing it is there already. The file to delete
//! then gets another name (`.poach-…`) beside its own, and the kept file is looked at again, by its
//! name. Only then is the file deleted: two mounts may show one file as two.
//!
//! On Unix a moment is left, between the last look at a name and its deletion, in which a file can
//! take another's place: no system call deletes a file by its identity. A directory is held open
//! from the look on. Windows does delete by a handle, so the file that was compared is the file
//! that goes. An entry that was moved to the trash is looked at once more there, and brought back
//! if it is not the entry that was meant.
//!
//! While a directory is listed one handle is open for each level, so deeper entries than
//! [`DEEPEST`] are refused before anything goes. A plan holds no handle: a directory is opened
//! again by the way to it, and is refused if it is another directory by then.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use poach_scan::Control;
use poach_scan::duplicates::same_content;
use poach_scan::report::escape;
use poach_scan::sys::Native;

use super::act::Act;
use super::item::{self, Handle, Identity, Item, Parent, changed, open};
use super::lines::Lines;
use super::names::{Names, joined, of};
use super::trash;
pub(super) use super::trash::Trashed;

mod delete;

use delete::delete;

/// How many levels may lie below an entry that is to go.
const DEEPEST: usize = 400;

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
    groups: Vec<Group>,
    pub(super) act: Act,
    pub(super) files: u64,
    pub(super) directories: u64,
    /// On disk; a file that keeps another name frees nothing.
    pub(super) bytes: u64,
    /// How many of them stay: other files have them, too, where the file system says so.
    pub(super) shared: u64,
    /// How many names of each file that has several are to go.
    names: HashMap<Identity, u64>,
}

/// What goes of one directory.
#[derive(Debug)]
struct Group {
    parent: Arc<Parent>,
    chosen: Vec<Chosen>,
}

#[derive(Debug)]
struct Chosen {
    names: Names,
    item: Item,
    twin: Option<Arc<Twin>>,
}

/// A file that stays.
#[derive(Debug)]
struct Twin {
    parent: Arc<Parent>,
    name: CString,
    names: Names,
    /// What it was when its content was written to its disk, once that was asked: an error is told
    /// once only.
    synced: OnceLock<Result<State, String>>,
}

/// What a file that stays is.
type State = (Identity, item::Touched);

/// The files with several names of which one goes.
#[derive(Debug, Default)]
struct Begun(Mutex<HashSet<Identity>>);

impl Begun {
    /// Looks, before the first name of a file with several goes, whether it is what was listed.
    /// With that name all of them are changed.
    fn check(&self, within: &Handle, item: &Item) -> io::Result<()> {
        if !item.is_several {
            return Ok(());
        }
        // Nobody takes a name of it away between the look and the note.
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.contains(&item.identity) {
            return Ok(());
        }
        if item::see(within, &item.name)?.changed != item.changed {
            return Err(changed(&item.name));
        }
        begun.insert(item.identity);
        Ok(())
    }
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
    /// Lists what lies at some places, of which there is at least one, below given paths. `control`
    /// can stop it.
    ///
    /// # Errors
    ///
    /// The system's own, or that something is not to be deleted.
    pub(super) fn new(act: Act, targets: &[Target], control: &Control) -> io::Result<Plan> {
        if act == Act::Trash && !trash::IS_THERE {
            return Err(io::Error::other("this system has no trash that poach can use"));
        }
        let (groups, names) = (Vec::new(), HashMap::new());
        let mut plan = Plan { groups, act, files: 0, directories: 0, bytes: 0, shared: 0, names };
        let (mut opened, mut numbers) = (Opened::default(), HashMap::new());
        let mut twins: HashMap<&Names, Arc<Twin>> = HashMap::new();
        for Target { root, names, twin } in targets {
            let (within, name, is_link) =
                opened.open(root, names).map_err(|error| of(names, error))?;
            let (parent, handle) = (Arc::clone(&within.parent), &within.handle);
            let item = plan.list(handle, name, is_link, control, 0)?;
            let twin = match twin {
                None => None,
                Some((_, names)) if twins.contains_key(names) => twins.get(names).map(Arc::clone),
                Some((root, names)) => {
                    let (within, name, _) =
                        opened.open(root, names).map_err(|error| of(names, error))?;
                    let parent = Arc::clone(&within.parent);
                    let synced = OnceLock::new();
                    let twin = Arc::new(Twin { parent, name, names: names.clone(), synced });
                    twins.insert(names, Arc::clone(&twin));
                    Some(twin)
                }
            };
            let groups = &mut plan.groups;
            let number = *numbers.entry(&names[..names.len() - 1]).or_insert_with(|| {
                groups.push(Group { parent, chosen: Vec::new() });
                groups.len() - 1
            });
            groups[number].chosen.push(Chosen { names: names.clone(), item, twin });
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
                if self.act == Act::Delete {
                    self.shared += item::shared_bytes(within, &name, seen.bytes);
                }
            }
            let (changed, is_several) = (seen.changed, seen.names > 1);
            return Ok(Item { name, identity, changed, is_several, inside: None });
        }
        if is_link {
            let name = escape(name.to_bytes());
            return Err(io::Error::other(format!("{name} is a link, which this system follows")));
        }
        if depth == DEEPEST {
            return Err(io::Error::other(format!("more than {DEEPEST} levels lie in it")));
        }
        let directory = open(within, &name, identity).map_err(|error| of_item(&name, error))?;
        if item::is_mounted_in(within, &directory)? {
            return Err(io::Error::other("another file system is mounted in it"));
        }
        self.directories += 1;
        self.bytes += seen.bytes;
        let mut names = item::list(&directory).map_err(|error| of_item(&name, error))?;
        names.sort_unstable();
        let inside = names
            .into_iter()
            .map(|(name, is_link)| self.list(&directory, name, is_link, control, depth + 1));
        let inside = Some(inside.collect::<io::Result<_>>()?);
        Ok(Item { name, identity, changed: None, is_several: false, inside })
    }

    /// Tells what goes, an entry a line: all of it, however much that is.
    pub(super) fn tell(&self, lines: &mut Lines) {
        /// Levels that are indented.
        const INDENTED: usize = 20;
        const INDENT: &str = "                                          ";
        let mut waiting = Vec::new();
        for chosen in self.groups.iter().flat_map(|group| &group.chosen).rev() {
            waiting.push((&chosen.item, 0, Some(chosen)));
        }
        while let Some((item, depth, chosen)) = waiting.pop() {
            let sign = if item.inside.is_some() { "/" } else { "" };
            match chosen {
                Some(Chosen { names, twin: Some(twin), .. }) => {
                    lines.push(&["  ", &shown(names), "  which equals ", &shown(&twin.names)]);
                }
                Some(chosen) => lines.push(&["  ", &shown(&chosen.names), sign]),
                None => {
                    let indent = &INDENT[..2 + 2 * INDENTED.min(depth)];
                    lines.push(&[indent, &escape(item.name.to_bytes()), sign]);
                }
            }
            let inside = item.inside.iter().flatten().rev();
            waiting.extend(inside.map(|item| (item, depth + 1, None)));
        }
    }

    /// How many entries go.
    pub(super) fn entries(&self) -> u64 {
        self.files + self.directories
    }

    /// Deletes or moves what was listed, and counts it in `gone`. Ends at the first that is not as
    /// it was, or cannot be deleted.
    pub(super) fn carry_out(self, control: &Control, gone: &AtomicU64) -> Outcome {
        match self.act {
            Act::Delete => delete(&self, control, gone),
            Act::Trash => self.to_trash(control, gone),
        }
    }

    fn to_trash(&self, control: &Control, gone: &AtomicU64) -> Outcome {
        let (mut outcome, mut bins) = (Outcome::default(), trash::Bins::default());
        let begun = Begun::default();
        for group in &self.groups {
            let mut within = None;
            for chosen in &group.chosen {
                match chosen.to_trash(&mut within, &group.parent, control, (&mut bins, &begun)) {
                    Ok(trashed) => outcome.trashed.push(trashed),
                    Err(error) => {
                        outcome.error = Some(of(&chosen.names, error));
                        return outcome;
                    }
                }
                // Relaxed: a number to watch.
                gone.fetch_add(chosen.item.count(), Ordering::Relaxed);
                outcome.went.push(chosen.names.clone());
            }
        }
        outcome
    }
}

impl Chosen {
    /// Moves it to the trash. `within`: its directory, once that is open.
    fn to_trash(
        &self,
        within: &mut Option<Handle>,
        parent: &Arc<Parent>,
        control: &Control,
        (bins, begun): (&mut trash::Bins, &Begun),
    ) -> io::Result<Trashed> {
        if control.is_stopped() {
            return Err(stopped());
        }
        let within = match within {
            Some(within) => within,
            none => none.insert(parent.open()?),
        };
        if let Some(twin) = &self.twin {
            self.compare(twin, within, control)?;
        }
        begun.check(within, &self.item)?;
        Trashed::put(within, parent, &self.item, &self.names, bins)
    }

    /// Deletes a file. `within`: the directory that it is in.
    fn delete(&self, within: &Handle, begun: &Begun, control: &Control) -> io::Result<()> {
        let Some(twin) = &self.twin else {
            begun.check(within, &self.item)?;
            return item::remove(within, &self.item);
        };
        let (other, seen) = self.compare(twin, within, control)?;
        let state = twin.sync(&other, seen)?;
        begun.check(within, &self.item)?;
        item::remove_copy(within, &self.item, || {
            // By the handle first: the mount that shows it may remember its name.
            if item::touched(&other)? == state.1 {
                let (again, now) = item::open_file(&twin.parent.open()?, &twin.name)
                    .map_err(|error| of(&twin.names, error))?;
                if (now, item::touched(&again)?) == state {
                    return Ok(());
                }
            }
            let twin = shown(&twin.names);
            Err(io::Error::other(format!("{twin}, which stays, went or changed with it")))
        })
    }

    /// Opens the one that stays, if the file is equal to it. `within`: the directory that the file
    /// is in.
    fn compare(
        &self,
        twin: &Twin,
        within: &Handle,
        control: &Control,
    ) -> io::Result<(File, Identity)> {
        let (file, identity) = item::open_file(within, &self.item.name)?;
        let (other, stays) = item::open_file(&twin.parent.open()?, &twin.name)?;
        if identity != self.item.identity {
            return Err(changed(&self.item.name));
        }
        // Another name of the same file, or the same name by another way, is no copy.
        if identity.is_same_file(&stays) {
            let twin = shown(&twin.names);
            return Err(io::Error::other(format!("it is the same file as {twin}")));
        }
        if same_content(&Native::default(), &file, &other, control)? {
            return Ok((other, stays));
        }
        let (one, twin) = (shown(&self.names), shown(&twin.names));
        Err(io::Error::other(format!("{one} does not equal {twin} any more")))
    }
}

impl Twin {
    /// Writes its content to its disk, if that was not done yet. What it is.
    ///
    /// # Errors
    ///
    /// If that failed, for whichever of the files that equal it, or it has changed since.
    fn sync(&self, file: &File, seen: Identity) -> io::Result<State> {
        let state = (seen, item::touched(file)?);
        let sync = || item::sync(file).map(|()| state).map_err(|error| error.to_string());
        let names = shown(&self.names);
        Err(io::Error::other(match self.synced.get_or_init(sync) {
            Ok(synced) if *synced == state => return Ok(state),
            Ok(_) => format!("{names}, which stays, has changed"),
            Err(error) => {
                format!("{names}, which stays, could not be written to its disk: {error}")
            }
        }))
    }
}

/// Directories that entries are to go from, of which the last few are open.
#[derive(Default)]
struct Opened {
    open: VecDeque<Open>,
    parents: HashMap<Names, Arc<Parent>>,
}

/// A directory that is open, and the names in it that are links by its list.
struct Open {
    parent: Arc<Parent>,
    handle: Handle,
    links: HashSet<CString>,
}

impl Opened {
    /// How many are open at most: a copy, and the file that stays of each group, are in different
    /// ones.
    const MOST: usize = 8;

    /// The directory that the last of some names is in, that name, and whether it is a link by that
    /// directory's list.
    fn open(&mut self, root: &Path, names: &Names) -> io::Result<(&Open, CString, bool)> {
        let Some((last, above)) = names.split_last().filter(|(_, above)| !above.is_empty()) else {
            return Err(io::Error::other("a path that was given is not deleted from here"));
        };
        let last = CString::new(&last[..])?;
        let at = self.open.iter().position(|open| open.parent.names() == above);
        if at.is_none() {
            let open =
                self.parents.get(above).map(|parent| Ok((Arc::clone(parent), parent.open()?)));
            let anew =
                || Parent::new(root, above).map(|(parent, handle)| (Arc::new(parent), handle));
            let (parent, handle) = open.unwrap_or_else(anew)?;
            self.parents.entry(above.to_vec()).or_insert_with(|| Arc::clone(&parent));
            let links = item::links_in(&handle)?;
            self.open.truncate(Self::MOST - 1);
            self.open.push_front(Open { parent, handle, links });
        }
        // What was opened now is the first.
        let at = at.unwrap_or(0);
        let open = &self.open[at];
        let is_link = open.links.contains(&last);
        Ok((open, last, is_link))
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
    io::Error::new(io::ErrorKind::Interrupted, "stopped")
}

#[cfg(test)]
mod tests;
