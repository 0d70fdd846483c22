//! Deleting what was shown, and nothing else.
//!
//! A [`Plan`] lists an entry and all that is in it, with device and number of each, by open directories: no link is
//! followed, and a file system mounted below is refused. [`Plan::carry_out`] then deletes exactly this list, from the leaves
//! up, each name by the handle of its directory and only if it is what was listed still. A directory that was replaced since,
//! by a link or another directory, is refused; what was added since keeps its directory.
//!
//! Between the last look at a name and its deletion a moment is left in which a file can take another's place: no system
//! call deletes a file by what it is. A directory is held open from the look on.
//!
//! One handle is open for each level, so a tree deeper than the process's limit of files is refused before anything goes.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// What is to go, as it was when it was listed.
#[derive(Debug)]
pub(super) struct Plan {
    /// The directory that the entry is in.
    within: OwnedFd,
    item: Item,
    pub(super) files: u64,
    pub(super) directories: u64,
    /// On disk; a file that keeps another name frees nothing.
    pub(super) bytes: u64,
}

#[derive(Debug)]
struct Item {
    name: CString,
    identity: (u64, u64),
    /// Of a directory, what is in it.
    inside: Option<Vec<Item>>,
}

/// What a deletion came to.
#[derive(Debug)]
pub(super) struct Outcome {
    /// How many entries are gone.
    pub(super) gone: u64,
    /// Why it ended before its end.
    pub(super) error: Option<io::Error>,
}

impl Plan {
    /// Lists what lies below a given path at the end of some names, of which there is at least one.
    ///
    /// # Errors
    ///
    /// The system's own, or that something is not to be deleted.
    pub(super) fn new(root: &Path, names: &[&[u8]]) -> io::Result<Plan> {
        let Some((last, above)) = names.split_last() else {
            return Err(io::Error::other("a path that was given is not deleted from here"));
        };
        let root =
            rustix::fs::openat(CWD, root, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())?;
        let open = |within: OwnedFd, name: &&[u8]| {
            rustix::fs::openat(&within, *name, DIRECTORY, Mode::empty())
        };
        let within = above.iter().try_fold(root, open)?;
        let name = CString::new(*last)?;
        let mut plan = Plan {
            within,
            item: Item { name: CString::default(), identity: (0, 0), inside: None },
            files: 0,
            directories: 0,
            bytes: 0,
        };
        let within = plan.within.try_clone()?;
        plan.item = plan.list(&within, name)?;
        Ok(plan)
    }

    fn list(&mut self, within: &OwnedFd, name: CString) -> io::Result<Item> {
        let stat = stat(within, &name)?;
        let identity = identity(&stat);
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            self.files += 1;
            if stat.st_nlink == 1 {
                self.bytes += stat.st_blocks as u64 * 512;
            }
            return Ok(Item { name, identity, inside: None });
        }
        let directory = open(within, &name, identity)?;
        if rustix::fs::fstat(within)?.st_dev != stat.st_dev {
            return Err(io::Error::other("another file system is mounted in it"));
        }
        self.directories += 1;
        self.bytes += stat.st_blocks as u64 * 512;
        let mut names = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let name = entry?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name);
            }
        }
        let inside = names.into_iter().map(|name| self.list(&directory, name));
        let inside = Some(inside.collect::<io::Result<_>>()?);
        Ok(Item { name, identity, inside })
    }

    /// Deletes what was listed. Ends at the first that is not as it was, or cannot be deleted.
    pub(super) fn carry_out(self) -> Outcome {
        let mut gone = 0;
        let error = remove(&self.within, &self.item, &mut gone).err();
        Outcome { gone, error }
    }
}

fn remove(within: &OwnedFd, item: &Item, gone: &mut u64) -> io::Result<()> {
    let flags = match &item.inside {
        Some(inside) => {
            let directory = open(within, &item.name, item.identity)?;
            inside.iter().try_for_each(|item| remove(&directory, item, gone))?;
            AtFlags::REMOVEDIR
        }
        None => AtFlags::empty(),
    };
    if identity(&stat(within, &item.name)?) != item.identity {
        return Err(changed(&item.name));
    }
    rustix::fs::unlinkat(within, &item.name, flags)?;
    *gone += 1;
    Ok(())
}

/// Opens a directory, if it is the one that was meant.
fn open(within: &OwnedFd, name: &CString, expected: (u64, u64)) -> io::Result<OwnedFd> {
    let directory = rustix::fs::openat(within, name, DIRECTORY, Mode::empty())?;
    if identity(&rustix::fs::fstat(&directory)?) == expected {
        Ok(directory)
    } else {
        Err(changed(name))
    }
}

fn stat(within: &OwnedFd, name: &CString) -> io::Result<Stat> {
    Ok(rustix::fs::statat(within, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[expect(clippy::useless_conversion, reason = "the fields' types differ between processors")]
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev.into(), stat.st_ino.into())
}

fn changed(name: &CString) -> io::Error {
    let name = poach_scan::report::escape(name.to_bytes());
    io::Error::other(format!("{name} is not what was listed any more"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn grown() -> tempfile::TempDir {
        let tree = tempfile::tempdir().expect("a directory for the test");
        fs::create_dir_all(tree.path().join("goes/inner/most")).expect("directories");
        fs::create_dir(tree.path().join("stays")).expect("a directory");
        for name in ["goes/a", "goes/inner/b", "stays/c"] {
            fs::write(tree.path().join(name), "content").expect("a file");
        }
        symlink("../../stays", tree.path().join("goes/inner/link")).expect("a link");
        tree
    }

    #[test]
    fn what_was_listed_goes_and_no_link_is_followed() {
        let tree = grown();
        let plan = Plan::new(tree.path(), &[b"goes"]).expect("a plan");
        assert_eq!((plan.files, plan.directories), (3, 3));
        let outcome = plan.carry_out();
        assert!(outcome.error.is_none() && outcome.gone == 6, "{outcome:?}");
        assert!(!tree.path().join("goes").exists() && tree.path().join("stays/c").exists());

        let tree = grown();
        let outcome =
            Plan::new(tree.path(), &[b"goes", b"inner", b"link"]).expect("a plan").carry_out();
        assert_eq!((outcome.gone, tree.path().join("stays/c").exists()), (1, true));
        // Not through a link, either.
        assert!(Plan::new(tree.path(), &[b"goes", b"inner", b"link", b"c"]).is_err());
    }

    #[test]
    fn what_has_changed_since_stays() {
        // Something was added.
        let tree = grown();
        let plan = Plan::new(tree.path(), &[b"goes"]).expect("a plan");
        fs::write(tree.path().join("goes/inner/new"), "").expect("a file");
        assert!(plan.carry_out().error.is_some());
        assert!(tree.path().join("goes/inner/new").exists());

        // A directory became a link to another, and another directory.
        for replaced in [true, false] {
            let tree = grown();
            let plan = Plan::new(tree.path(), &[b"goes"]).expect("a plan");
            let inner = tree.path().join("goes/inner");
            fs::rename(&inner, tree.path().join("aside")).expect("it is ours");
            if replaced {
                symlink("../stays", &inner).expect("a link");
            } else {
                fs::rename(tree.path().join("stays"), &inner).expect("it is ours");
            }
            let outcome = plan.carry_out();
            assert!(outcome.error.is_some(), "{outcome:?}");
            let kept = if replaced { "stays/c" } else { "goes/inner/c" };
            assert!(tree.path().join(kept).exists() && tree.path().join("aside/b").exists());
        }

        // A file became another one.
        let tree = grown();
        let plan = Plan::new(tree.path(), &[b"goes", b"a"]).expect("a plan");
        fs::rename(tree.path().join("stays/c"), tree.path().join("goes/a")).expect("it is ours");
        let outcome = plan.carry_out();
        assert_eq!(outcome.gone, 0);
        assert!(tree.path().join("goes/a").exists());
    }

    #[test]
    fn a_given_path_is_not_deleted() {
        let tree = grown();
        assert!(Plan::new(tree.path(), &[]).is_err());
    }
}
