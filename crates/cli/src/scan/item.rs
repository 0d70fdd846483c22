//! The identity of a listed entry, which distinguishes it from another entry of the same name.

use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};

use poach_scan::duplicates;
use poach_scan::report::escape;
use poach_scan::sys::Native;

use super::names::{Names, joined};

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(super) use unix::{DIRECTORY, beside, stat};
#[cfg(unix)]
pub(super) use unix::{
    Handle, Identity, Seen, Touched, identity_of, is_mounted_in, links_in, list, open_file,
    open_given, open_in, place, remove, remove_copy, see, sync, touched,
};
#[cfg(windows)]
pub(super) use windows::{
    Handle, Identity, Touched, identity_of, is_mounted_in, links_in, list, open_file, open_given,
    open_in, place, remove, remove_copy, see, sync, touched,
};

/// An entry, and all that is in it.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) name: CString,
    pub(super) identity: Identity,
    /// When its attributes were last changed, where that is known; nothing of a directory.
    pub(super) changed: Option<(i64, i64)>,
    /// Whether it is a file with several names: deleting one name changes all of them.
    pub(super) is_several: bool,
    /// Of a directory, what is in it.
    pub(super) inside: Option<Vec<Item>>,
}

impl Item {
    /// Whether this is the listed entry, unchanged. The attributes of a file with several names may
    /// have changed.
    #[cfg(unix)]
    pub(super) fn is(&self, seen: &Seen) -> bool {
        seen.identity == self.identity && (self.is_several || seen.changed == self.changed)
    }

    /// How many entries go with it.
    pub(super) fn count(&self) -> u64 {
        let (mut count, mut waiting) = (0, vec![self]);
        while let Some(item) = waiting.pop() {
            count += 1;
            waiting.extend(item.inside.iter().flatten());
        }
        count
    }

    /// Whether a name still stands for this entry.
    #[cfg(target_os = "linux")]
    pub(super) fn is_at(&self, within: &Handle, name: &CString) -> io::Result<()> {
        if see(within, name)?.identity == self.identity { Ok(()) } else { Err(changed(&self.name)) }
    }
}

/// A directory that entries are in, by the way to it. It is not open: there may be more of them
/// than a process may have open.
#[derive(Debug)]
pub(super) struct Parent {
    root: PathBuf,
    /// The given path's is the first.
    names: Names,
    identity: Identity,
}

impl Parent {
    /// The directory at the end of some names, of which there is one at least, and its handle.
    pub(super) fn new(root: &Path, names: &[Vec<u8>]) -> io::Result<(Parent, Handle)> {
        let handle = at_end(root, names)?;
        let (root, names) = (root.to_owned(), names.to_vec());
        Ok((Parent { root, names, identity: identity_of(&handle)? }, handle))
    }

    pub(super) fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Opens it, if it is the same directory as before.
    pub(super) fn open(&self) -> io::Result<Handle> {
        let handle = at_end(&self.root, &self.names)?;
        if identity_of(&handle)? == self.identity {
            return Ok(handle);
        }
        Err(changed(&CString::new(joined(self.names.iter().map(Vec::as_slice)))?))
    }
}

/// Opens the directory at the end of some names, and follows no link below the given path.
fn at_end(root: &Path, names: &[Vec<u8>]) -> io::Result<Handle> {
    let root = open_given(root)?;
    let mut below = names[1..].iter();
    below.try_fold(root, |within, name| open_in(&within, &CString::new(&name[..])?))
}

/// Opens a directory, if it is the expected one.
pub(super) fn open(within: &Handle, name: &CString, expected: Identity) -> io::Result<Handle> {
    let directory = open_in(within, name)?;
    if identity_of(&directory)? == expected { Ok(directory) } else { Err(changed(name)) }
}

/// How many of a file's bytes on disk stay when it is deleted, because other files share them, as
/// far as that is known. `bytes`: all of its bytes on disk.
pub(super) fn shared_bytes(within: &Handle, name: &CString, bytes: u64) -> u64 {
    if bytes == 0 || !can_share(within) {
        return 0;
    }
    let shared = |(file, _)| duplicates::shared_bytes(&Native::default(), &file, bytes);
    open_file(within, name).map_or(0, shared).min(bytes)
}

/// Whether files of a file system can share blocks, so that it is worth while to open each.
#[cfg(target_os = "linux")]
fn can_share(within: &Handle) -> bool {
    /// bcachefs, btrfs, ocfs2 and xfs, as statfs(2) numbers them.
    const KINDS: [u32; 4] = [0xca45_1a4e, 0x9123_683e, 0x7461_636f, 0x5846_5342];
    rustix::fs::fstatfs(within).is_ok_and(|told| KINDS.contains(&(told.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn can_share(_: &Handle) -> bool {
    false
}

pub(super) fn changed(name: &CString) -> io::Error {
    let name = escape(name.to_bytes());
    io::Error::other(format!("{name} has changed since it was listed"))
}
