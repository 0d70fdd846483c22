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

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use poach_scan::Control;
use poach_scan::duplicates::same_content;
use poach_scan::report::escape;
use poach_scan::sys::Native;

use super::act::Act;
use super::item::{self, Handle, Item, changed, open};
use super::names::{Names, joined};
use super::trash;
pub(super) use super::trash::Trashed;

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
    chosen: Vec<Chosen>,
    pub(super) act: Act,
    pub(super) files: u64,
    pub(super) directories: u64,
    /// On disk; a file that keeps another name frees nothing.
    pub(super) bytes: u64,
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
    pub(super) partly: Option<Names>,
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
        let mut plan = Plan { chosen: Vec::new(), act, files: 0, directories: 0, bytes: 0 };
        let mut opened = Opened::default();
        for Target { root, names, twin } in targets {
            let (within, name, is_link) = opened.open(root, names)?;
            let item = plan.list(&within, name, is_link, control, 0)?;
            let twin = match twin {
                None => None,
                Some((root, names)) => {
                    let (within, name, _) = opened.open(root, names)?;
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
        let seen = item::see(within, &name)?;
        let identity = seen.identity;
        if !seen.is_directory {
            self.files += 1;
            if seen.names == 1 {
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
        let directory = open(within, &name, identity)?;
        if !item::identity_of(within)?.is_on_same_volume(&identity) {
            return Err(io::Error::other("another file system is mounted in it"));
        }
        self.directories += 1;
        self.bytes += seen.bytes;
        let mut names = item::list(&directory)?;
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

    /// Deletes or moves what was listed, and counts it in `gone`. Ends at the first that is not as it was, or cannot be deleted.
    pub(super) fn carry_out(self, control: &Control, gone: &AtomicU64) -> Outcome {
        let (mut outcome, mut bins) = (Outcome::default(), trash::Bins::default());
        for chosen in self.chosen {
            // Relaxed, here and below: the count is for people to watch.
            let before = gone.load(Ordering::Relaxed);
            let done = chosen.compare(control).and_then(|()| match self.act {
                Act::Delete => remove(&chosen.within, &chosen.item, control, gone).map(|()| None),
                Act::Trash => {
                    let trashed =
                        Trashed::put(&chosen.within, &chosen.item, &chosen.names, &mut bins)?;
                    gone.fetch_add(chosen.item.count(), Ordering::Relaxed);
                    Ok(Some(trashed))
                }
            });
            match done {
                Ok(trashed) => {
                    outcome.trashed.extend(trashed);
                    outcome.went.push(chosen.names);
                }
                Err(error) => {
                    let some = gone.load(Ordering::Relaxed) > before;
                    outcome.partly = some.then_some(chosen.names);
                    outcome.error = Some(error);
                    break;
                }
            }
        }
        outcome
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

fn remove(within: &Handle, item: &Item, control: &Control, gone: &AtomicU64) -> io::Result<()> {
    if let Some(inside) = &item.inside {
        let directory = open(within, &item.name, item.identity)?;
        inside.iter().try_for_each(|item| remove(&directory, item, control, gone))?;
    }
    if control.is_stopped() {
        return Err(stopped());
    }
    item::remove(within, item)?;
    gone.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Names as a path that a terminal can show.
fn shown(names: &Names) -> String {
    escape(&joined(names.iter().map(Vec::as_slice))).into_owned()
}

fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "it was stopped")
}

#[cfg(test)]
mod tests;
