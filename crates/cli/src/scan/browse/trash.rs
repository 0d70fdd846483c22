//! The trash of the desktop, as freedesktop.org specifies it (version 1.0), and the way back out of
//! it.
//!
//! This is not the crate `trash`, which takes paths, follows them when it moves, and copies where
//! it cannot rename. Here an entry is named by the handle of its directory, and checked before and
//! after the move.
//!
//! An entry on the file system of the user's own trash goes there. Any other entry goes to the
//! trash at the top of its file system: `.Trash/<uid>` where an administrator has made `.Trash`
//! with the sticky bit, else `.Trash-<uid>`. Nothing is copied, so an entry is moved whole or not
//! at all. An entry's origin is written to `info` before it is moved. A rename that replaces
//! nothing brings it back.
//!
//! Other users can make any of these directories first, and could then read what is moved there. So
//! a trash and its directories must belong to the user who moves something, and no other user may
//! write to the directories. A trash at the top of a file system must have no access for others.
//! These checks are made on open directories, after they were created.

use std::collections::HashMap;
use std::env;
use std::ffi::{CStr, CString};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::item::{DIRECTORY, Identity, Item, Parent, changed, see, stat};
use super::names::Names;

/// Whether there is a trash.
pub(super) const IS_THERE: bool = true;

/// How many entries of one name a trash takes.
const MOST_OF_A_NAME: u32 = 10_000;

/// How long a name in the trash is at most: `.trashinfo` and a number come behind it.
const LONGEST: usize = 200;

/// Something in the trash.
#[derive(Debug)]
pub(super) struct Trashed {
    names: Names,
    parent: Arc<Parent>,
    item_name: CString,
    identity: Identity,
    bin: Arc<Bin>,
    name: CString,
    info: CString,
}

/// An open trash.
#[derive(Debug)]
struct Bin {
    files: OwnedFd,
    info: OwnedFd,
    /// Where it is the trash of one file system, the top of that.
    top: Option<PathBuf>,
}

/// The trashes that were opened, by file system.
#[derive(Debug, Default)]
pub(super) struct Bins(HashMap<u64, Arc<Bin>>);

impl Bins {
    /// The trash for what lies in a directory.
    fn of(&mut self, within: &OwnedFd) -> io::Result<Arc<Bin>> {
        let device = rustix::fs::fstat(within)?.st_dev;
        if let Some(bin) = self.0.get(&device) {
            return Ok(Arc::clone(bin));
        }
        let bin = Arc::new(Bin::of(within, home().as_deref())?);
        self.0.insert(device, Arc::clone(&bin));
        Ok(bin)
    }
}

impl Trashed {
    /// Moves an entry from `within`, which is `parent`, to the trash, if it is what was listed
    /// still.
    ///
    /// # Errors
    ///
    /// The system's own, or that it is not what was listed; it is where it was then.
    pub(super) fn put(
        within: &OwnedFd,
        parent: &Arc<Parent>,
        item: &Item,
        names: &Names,
        bins: &mut Bins,
    ) -> io::Result<Trashed> {
        if !item.is(&see(within, &item.name)?) {
            return Err(changed(&item.name));
        }
        let bin = bins.of(within)?;
        let own = std::fs::read_link(path_of(within))?
            .join(std::ffi::OsStr::from_bytes(item.name.to_bytes()));
        let path = match &bin.top {
            Some(top) => own.strip_prefix(top).unwrap_or(&own).to_owned(),
            None => own,
        };
        let (name, info) = bin.note(&item.name, &path)?;
        let forget = || rustix::fs::unlinkat(&bin.info, &info, AtFlags::empty());
        if let Err(error) = rename(within, &item.name, &bin.files, &name) {
            let _ = forget();
            return Err(error);
        }
        if let Err(error) = item.is_at(&bin.files, &name) {
            // Something took its place in between. The rename has changed when it was changed.
            rename(&bin.files, &name, within, &item.name)?;
            let _ = forget();
            return Err(error);
        }
        let (parent, item_name) = (Arc::clone(parent), item.name.clone());
        let names = names.clone();
        Ok(Trashed { names, parent, item_name, identity: item.identity, bin, name, info })
    }

    /// Where it was.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    /// Moves it back to where it was.
    ///
    /// # Errors
    ///
    /// The system's own; or that something else is there, or that what is in the trash is not what
    /// was moved there.
    pub(super) fn bring_back(&self) -> io::Result<()> {
        if Identity::of(&stat(&self.bin.files, &self.name)?) != self.identity {
            return Err(io::Error::other("what is in the trash is not what was moved there"));
        }
        rename(&self.bin.files, &self.name, &self.parent.open()?, &self.item_name)?;
        rustix::fs::unlinkat(&self.bin.info, &self.info, AtFlags::empty())?;
        Ok(())
    }
}

/// The user's own trash.
fn home() -> Option<PathBuf> {
    let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")))?;
    Some(data.join("Trash"))
}

impl Bin {
    /// The trash for what lies in a directory.
    fn of(within: &OwnedFd, home: Option<&Path>) -> io::Result<Bin> {
        let device = rustix::fs::fstat(within)?.st_dev;
        let uid = rustix::process::getuid().as_raw();
        if let Some(home) = home {
            if let Some(bin) = Bin::at_home(home, device, uid)? {
                return Ok(bin);
            }
        }
        let top = top(within)?;
        let path = std::fs::read_link(path_of(&top))?;
        Bin::at_top(&top, path, uid)
    }

    /// The trash in a user's home, if the home is the user's and lies on a device. For root with
    /// another user's HOME it is the other user's trash.
    fn at_home(home: &Path, device: u64, uid: u32) -> io::Result<Option<Bin>> {
        // Files that root makes in another user's home are root's, and that user's own programs
        // could not use them.
        let there = home.ancestors().find_map(|above| std::fs::metadata(above).ok());
        if there.is_none_or(|above| std::os::unix::fs::MetadataExt::uid(&above) != uid) {
            return Ok(None);
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home)?;
        let home = rustix::fs::openat(CWD, home, DIRECTORY, Mode::empty())?;
        if rustix::fs::fstat(&home)?.st_dev != device || !belongs(&home, uid, Mode::empty())? {
            return Ok(None);
        }
        Bin::open(&home, None, uid).map(Some)
    }

    /// The user's own directory in a trash that all users share, if both are safe to use.
    fn in_shared(shared: &OwnedFd, uid: u32) -> io::Result<Option<OwnedFd>> {
        if rustix::fs::fstat(shared)?.st_mode & Mode::SVTX.as_raw_mode() == 0 {
            return Ok(None);
        }
        let Ok(own) = make(shared, &CString::new(uid.to_string())?) else { return Ok(None) };
        Ok(belongs(&own, uid, ANYTHING)?.then_some(own))
    }

    /// The trash of a user at the top of a file system.
    fn at_top(top: &OwnedFd, path: PathBuf, uid: u32) -> io::Result<Bin> {
        let shared = rustix::fs::openat(top, c".Trash", DIRECTORY, Mode::empty());
        let own = shared.map_or(Ok(None), |shared| Bin::in_shared(&shared, uid))?;
        if let Some(own) = own {
            return Bin::open(&own, Some(path), uid);
        }
        let own = make(top, &CString::new(format!(".Trash-{uid}"))?)?;
        if !belongs(&own, uid, ANYTHING)? {
            let message =
                "the trash of this file system belongs to another user, or others may write to it";
            return Err(io::Error::other(message));
        }
        Bin::open(&own, Some(path), uid)
    }

    fn open(trash: &OwnedFd, top: Option<PathBuf>, uid: u32) -> io::Result<Bin> {
        let (files, info) = (make(trash, c"files")?, make(trash, c"info")?);
        if belongs(&files, uid, WRITABLE)? && belongs(&info, uid, WRITABLE)? {
            return Ok(Bin { files, info, top });
        }
        Err(io::Error::other(
            "a directory of the trash belongs to another user, or others may write to it",
        ))
    }

    /// Writes down where an entry is from, and so takes a name for it. Returns this name, and the
    /// name of the file that was written.
    fn note(&self, name: &CString, path: &Path) -> io::Result<(CString, CString)> {
        let name = name.to_bytes();
        let name = &name[..name.len().min(LONGEST)];
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        for number in 1..MOST_OF_A_NAME {
            let mut own = name.to_vec();
            if number > 1 {
                own.extend_from_slice(format!(".{number}").as_bytes());
            }
            let info = CString::new([&own[..], b".trashinfo"].concat())?;
            let own = CString::new(own)?;
            let mode = Mode::RUSR | Mode::WUSR;
            let file = match rustix::fs::openat(&self.info, &info, flags, mode) {
                Ok(file) => file,
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            };
            // A file that is not written down may have the name all the same.
            if stat(&self.files, &own).is_ok() {
                let _ = rustix::fs::unlinkat(&self.info, &info, AtFlags::empty());
                continue;
            }
            let now = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S").to_string();
            let text = format!("[Trash Info]\nPath={}\nDeletionDate={now}\n", encoded(path));
            if let Err(error) = std::fs::File::from(file).write_all(text.as_bytes()) {
                let _ = rustix::fs::unlinkat(&self.info, &info, AtFlags::empty());
                return Err(error);
            }
            return Ok((own, info));
        }
        Err(io::Error::other("the trash has too many entries of this name"))
    }
}

/// The permissions that other users must not have on the parts of a trash.
const WRITABLE: Mode = Mode::WGRP.union(Mode::WOTH);

/// The permissions that other users must not have on a trash at the top of a file system.
const ANYTHING: Mode = Mode::RWXG.union(Mode::RWXO);

/// Whether an open directory is a user's, and others have none of the permissions `mode`.
fn belongs(directory: &OwnedFd, uid: u32, mode: Mode) -> io::Result<bool> {
    let stat = rustix::fs::fstat(directory)?;
    Ok(stat.st_uid == uid && stat.st_mode & mode.as_raw_mode() == 0)
}

/// Opens a directory of the trash, and makes it if it is not there. A link is refused.
fn make(within: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
    let made = match rustix::fs::mkdirat(within, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => rustix::fs::openat(within, name, DIRECTORY, Mode::empty()),
        Err(error) => Err(error),
    };
    made.map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("the trash's {}: {error}", name.to_string_lossy()))
    })
}

/// The top of the file system that a directory lies on.
fn top(within: &OwnedFd) -> io::Result<OwnedFd> {
    let mut top = within.try_clone()?;
    loop {
        let above = rustix::fs::openat(&top, c"..", DIRECTORY, Mode::empty())?;
        let (own, other) = (rustix::fs::fstat(&top)?, rustix::fs::fstat(&above)?);
        if own.st_dev != other.st_dev || own.st_ino == other.st_ino {
            return Ok(top);
        }
        top = above;
    }
}

/// Renames, and replaces nothing.
fn rename(from: &OwnedFd, old: &CString, to: &OwnedFd, new: &CString) -> io::Result<()> {
    match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // A file system or a kernel that knows no such flag.
        Err(Errno::INVAL | Errno::NOSYS) if stat(to, new).is_err() => {
            Ok(rustix::fs::renameat(from, old, to, new)?)
        }
        Err(Errno::XDEV) => Err(io::Error::other("its file system has no trash within reach")),
        other => Ok(other?),
    }
}

/// Where the kernel shows the path of a handle.
fn path_of(directory: &OwnedFd) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

/// A path as the specification wants it: all but plain characters in hexadecimal after a `%`.
fn encoded(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            text.push(byte.into());
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The contents of a trash: the names of its files, and the text of the first `.trashinfo`.
    fn inside(trash: &Path) -> (Vec<String>, Option<String>) {
        let names = |of: &str| -> Vec<PathBuf> {
            let mut names: Vec<_> = fs::read_dir(trash.join(of))
                .expect("a trash")
                .map(|entry| entry.expect("an entry").path())
                .collect();
            names.sort();
            names
        };
        let name =
            |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
        let info = names("info").first().map(|path| fs::read_to_string(path).expect("text"));
        (names("files").iter().map(name).collect(), info)
    }

    #[test]
    fn what_is_in_a_trash_has_a_note_and_a_way_back() {
        let tree = tempfile::tempdir().expect("a directory for the test");
        let (home, place) = (tree.path().join("home/Trash"), tree.path().join("pl ace"));
        fs::create_dir_all(place.join("goes/inner")).expect("directories");
        fs::write(place.join("goes/inner/x"), "content").expect("a file");
        let within =
            Arc::new(rustix::fs::openat(CWD, &place, DIRECTORY, Mode::empty()).expect("ours"));
        let bin = Bin::of(&within, Some(&home)).expect("a trash");
        assert!(bin.top.is_none());
        let goes = CString::from(c"goes");
        let (name, info) = bin.note(&goes, &place.join("goes")).expect("a note");
        rename(&within, &goes, &bin.files, &name).expect("it is moved");
        let (files, text) = inside(&home);
        let text = text.expect("a note");
        assert_eq!(files, ["goes"]);
        assert!(text.starts_with("[Trash Info]\nPath=/"), "{text}");
        assert!(text.contains("/pl%20ace/goes\nDeletionDate=20"), "{text}");
        // The next of that name has another one there.
        fs::create_dir(place.join("goes")).expect("a directory");
        let (second, _) = bin.note(&goes, Path::new("/x")).expect("a note");
        assert_eq!(second.as_bytes(), b"goes.2");
        // Nothing is replaced on the way back.
        assert!(rename(&bin.files, &name, &within, &goes).is_err());
        fs::remove_dir(place.join("goes")).expect("ours");
        rename(&bin.files, &name, &within, &goes).expect("it is moved back");
        assert!(place.join("goes/inner/x").exists());
        rustix::fs::unlinkat(&bin.info, &info, AtFlags::empty()).expect("the note");
        // A name that leaves no room for what comes behind it.
        let long = CString::new(vec![b'n'; 255]).expect("no NUL");
        assert!(bin.note(&long, Path::new("/x")).expect("a note").0.as_bytes().len() < 240);
    }

    #[test]
    fn a_trash_that_is_a_link_is_refused_and_every_byte_is_written_down() {
        let tree = tempfile::tempdir().expect("a directory for the test");
        let trash = tree.path().join("Trash");
        fs::create_dir_all(&trash).expect("a directory");
        std::os::unix::fs::symlink("/tmp", trash.join("files")).expect("a link");
        let within = rustix::fs::openat(CWD, tree.path(), DIRECTORY, Mode::empty()).expect("ours");
        assert!(Bin::of(&within, Some(&trash)).is_err());
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/a b/\xff\n%"));
        assert_eq!(encoded(odd), "/a%20b/%FF%0A%25");
        let top = top(&within).expect("a top");
        assert!(path_of(&top).exists());
    }

    fn opened(path: &Path) -> OwnedFd {
        rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty()).expect("a directory")
    }

    fn allow(path: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    }

    /// The trash at the top of a file system that its only user gets.
    fn used(top: &Path) -> io::Result<&'static str> {
        let uid = rustix::process::getuid().as_raw();
        let bin = Bin::at_top(&opened(top), top.to_owned(), uid)?;
        let files = std::fs::read_link(path_of(&bin.files))?;
        let shared = top.canonicalize()?.join(".Trash").join(uid.to_string()).join("files");
        Ok(if files == shared { "shared" } else { "own" })
    }

    #[test]
    fn a_shared_trash_is_used_only_if_it_is_sticky_and_nobody_else_has_a_part_in_ours() {
        let uid = rustix::process::getuid().as_raw();
        let tree = tempfile::tempdir().expect("a directory for the test");
        let top = |name: &str| {
            let top = tree.path().join(name);
            fs::create_dir_all(top.join(".Trash")).expect("directories");
            allow(&top.join(".Trash"), 0o1777);
            top
        };
        assert_eq!(used(&top("sticky")).expect("a trash"), "shared");
        let plain = top("plain");
        allow(&plain.join(".Trash"), 0o777);
        assert_eq!(used(&plain).expect("a trash"), "own");
        let link = tree.path().join("link");
        fs::create_dir(&link).expect("a directory");
        std::os::unix::fs::symlink("../sticky/.Trash", link.join(".Trash")).expect("a link");
        assert_eq!(used(&link).expect("a trash"), "own");
        // Ours, but a link, or open to others.
        let linked = top("linked");
        let place = format!(".Trash/{uid}");
        std::os::unix::fs::symlink("/tmp", linked.join(&place)).expect("a link");
        assert_eq!(used(&linked).expect("a trash"), "own");
        for mode in [0o710, 0o701, 0o755, 0o777] {
            let open = top(&format!("open-{mode:o}"));
            fs::create_dir(open.join(&place)).expect("a directory");
            allow(&open.join(&place), mode);
            assert_eq!(used(&open).expect("a trash"), "own", "{mode:o}");
            fs::remove_dir_all(open.join(format!(".Trash-{uid}"))).expect("ours");
            fs::create_dir(open.join(format!(".Trash-{uid}"))).expect("a directory");
            allow(&open.join(format!(".Trash-{uid}")), mode);
            assert!(used(&open).is_err(), "{mode:o}");
        }
    }

    #[test]
    fn what_another_user_has_made_for_us_is_not_used() {
        const OTHER: u32 = 65_534;
        let uid = rustix::process::getuid().as_raw();
        let tree = tempfile::tempdir().expect("a directory for the test");
        let shared = tree.path().join(format!(".Trash/{uid}"));
        fs::create_dir_all(&shared).expect("directories");
        allow(&tree.path().join(".Trash"), 0o1777);
        allow(&shared, 0o700);
        let give = |path: &Path| std::os::unix::fs::chown(path, Some(OTHER), Some(OTHER));
        if give(&shared).is_err() {
            eprintln!("left out: only root can make a directory of another user");
            return;
        }
        assert_eq!(used(tree.path()).expect("a trash"), "own");
        let own = tree.path().join(format!(".Trash-{uid}"));
        give(&own).expect("root");
        assert!(used(tree.path()).is_err());
        // What another program has put in its place, by its name.
        fs::remove_dir_all(&own).expect("ours");
        std::os::unix::fs::symlink(tree.path(), &own).expect("a link");
        let error = used(tree.path()).expect_err("a link").to_string();
        assert!(error.starts_with(&format!("the trash's .Trash-{uid}: ")), "{error}");
        fs::remove_file(&own).expect("ours");
        fs::create_dir(&own).expect("a directory");
        // A part of ours, and a whole one in a home that is not ours.
        fs::remove_dir_all(&own).expect("ours");
        assert_eq!(used(tree.path()).expect("a trash"), "own");
        give(&own.join("files")).expect("root");
        assert!(used(tree.path()).is_err());
        let home = tree.path().join("home/Trash");
        fs::create_dir_all(&home).expect("directories");
        give(&home).expect("root");
        let device = rustix::fs::fstat(opened(tree.path())).expect("it is open").st_dev;
        assert!(Bin::at_home(&home, device, uid).expect("it can be asked").is_none());
        assert!(!home.join("files").exists());
    }
}
