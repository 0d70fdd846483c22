//! Entries of Unix: by the handle of their directory and their name.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};

use super::{Item, changed};

/// An open directory.
pub(in super::super) type Handle = OwnedFd;

/// How a directory is opened: no link is followed.
pub(in super::super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// What tells an entry from one that took its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Identity {
    device: u64,
    inode: u64,
    /// Of what is no directory: its length, and when its content was changed.
    content: Option<(i64, i64, u64)>,
}

/// What is known of an entry.
pub(in super::super) struct Seen {
    pub(in super::super) identity: Identity,
    pub(in super::super) is_directory: bool,
    pub(in super::super) names: u64,
    /// On disk.
    pub(in super::super) bytes: u64,
}

impl Identity {
    #[expect(clippy::useless_conversion, reason = "the fields' types differ between processors")]
    #[allow(clippy::unnecessary_cast, reason = "the fields' types differ between processors")]
    pub(in super::super) fn of(stat: &Stat) -> Identity {
        let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let content = (stat.st_size as i64, stat.st_mtime as i64, stat.st_mtime_nsec as u64);
        Identity {
            device: stat.st_dev as u64,
            inode: stat.st_ino.into(),
            content: (!directory).then_some(content),
        }
    }

    /// Whether both are of one file, by whatever names.
    pub(in super::super) fn is_same_file(&self, other: &Identity) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether both lie on one file system.
    pub(in super::super) fn is_on_same_volume(&self, other: &Identity) -> bool {
        self.device == other.device
    }
}

/// Where a file system keeps it: in this order entries are found soonest.
pub(in super::super) fn place(identity: &Identity) -> u64 {
    identity.inode
}

pub(in super::super) fn stat(within: &Handle, name: &CString) -> io::Result<Stat> {
    Ok(rustix::fs::statat(within, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[expect(clippy::useless_conversion, reason = "the fields' types differ between processors")]
#[allow(clippy::unnecessary_cast, reason = "the fields' types differ between processors")]
pub(in super::super) fn see(within: &Handle, name: &CString) -> io::Result<Seen> {
    let stat = stat(within, name)?;
    Ok(Seen {
        identity: Identity::of(&stat),
        is_directory: FileType::from_raw_mode(stat.st_mode) == FileType::Directory,
        names: stat.st_nlink.into(),
        bytes: stat.st_blocks as u64 * 512,
    })
}

pub(in super::super) fn identity_of(directory: &Handle) -> io::Result<Identity> {
    Ok(Identity::of(&rustix::fs::fstat(directory)?))
}

/// Opens a directory that the user gave.
pub(in super::super) fn open_given(path: &Path) -> io::Result<Handle> {
    Ok(rustix::fs::openat(CWD, path, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())?)
}

/// Opens a directory in a directory.
pub(in super::super) fn open_in(within: &Handle, name: &CString) -> io::Result<Handle> {
    Ok(rustix::fs::openat(within, name, DIRECTORY, Mode::empty())?)
}

/// What is in a directory, and which of it is there a link that opening it would follow all the same: nothing.
pub(in super::super) fn list(directory: &Handle) -> io::Result<Vec<(CString, bool)>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push((name, false));
        }
    }
    Ok(names)
}

/// Which entries of a directory are links that opening them may follow all the same: none.
#[expect(clippy::unnecessary_wraps, reason = "other systems have to read the directory")]
pub(in super::super) fn links_in(_: &Handle) -> io::Result<HashSet<CString>> {
    Ok(HashSet::new())
}

/// Opens a regular file to be read.
pub(in super::super) fn open_file(within: &Handle, name: &CString) -> io::Result<(File, Identity)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(within, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(changed(name));
    }
    Ok((file.into(), Identity::of(&stat)))
}

/// Deletes an entry, if it is what was listed; a directory, if it is empty.
pub(in super::super) fn remove(within: &Handle, item: &Item) -> io::Result<()> {
    if see(within, &item.name)?.identity != item.identity {
        return Err(changed(&item.name));
    }
    let flags = if item.inside.is_some() { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(rustix::fs::unlinkat(within, &item.name, flags)?)
}
