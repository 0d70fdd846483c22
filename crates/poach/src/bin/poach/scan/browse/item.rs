//! An entry as it was listed, to be told from one that took its name.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

use poach_scan::report::escape;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

/// How a directory is opened: no link is followed.
pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// An entry, and all that is in it.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) name: CString,
    pub(super) identity: Identity,
    /// Of a directory, what is in it.
    pub(super) inside: Option<Vec<Item>>,
}

/// What tells an entry from one that took its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Of what is no directory: its length, and when its content was changed.
    content: Option<(i64, i64, u64)>,
}

impl Item {
    /// How many entries go with it.
    pub(super) fn count(&self) -> u64 {
        let (mut count, mut waiting) = (0, vec![self]);
        while let Some(item) = waiting.pop() {
            count += 1;
            waiting.extend(item.inside.iter().flatten());
        }
        count
    }

    /// Whether a name is this entry's still.
    pub(super) fn is_at(&self, within: &OwnedFd, name: &CString) -> io::Result<()> {
        if Identity::of(&stat(within, name)?) == self.identity {
            Ok(())
        } else {
            Err(changed(&self.name))
        }
    }
}

/// Opens a directory, if it is the one that was meant.
pub(super) fn open(within: &OwnedFd, name: &CString, expected: Identity) -> io::Result<OwnedFd> {
    let directory = rustix::fs::openat(within, name, DIRECTORY, Mode::empty())?;
    if Identity::of(&rustix::fs::fstat(&directory)?) == expected {
        Ok(directory)
    } else {
        Err(changed(name))
    }
}

pub(super) fn stat(within: &OwnedFd, name: &CString) -> io::Result<Stat> {
    Ok(rustix::fs::statat(within, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

impl Identity {
    #[expect(clippy::useless_conversion, reason = "the fields' types differ between processors")]
    #[allow(clippy::unnecessary_cast, reason = "the fields' types differ between processors")]
    pub(super) fn of(stat: &Stat) -> Identity {
        let directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let content = (stat.st_size as i64, stat.st_mtime as i64, stat.st_mtime_nsec as u64);
        Identity {
            device: stat.st_dev as u64,
            inode: stat.st_ino.into(),
            content: (!directory).then_some(content),
        }
    }
}

pub(super) fn changed(name: &CString) -> io::Error {
    let name = escape(name.to_bytes());
    io::Error::other(format!("{name} is not what was listed any more"))
}
