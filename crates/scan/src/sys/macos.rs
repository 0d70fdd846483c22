//! macOS: `openat`, and `getattrlistbulk`, which tells names, kinds and sizes of many entries in
//! one call.
//!
//! No path is built, so no depth is too deep. What [`bulk`] cannot read ends a directory with an
//! error; what the call does not tell of an entry is asked by `fstatat`. This compiles, and the
//! tests of [`bulk`] run everywhere, but no machine with macOS has run it. So [`scan`](crate::scan)
//! uses [`Portable`](super::Portable) there; [`scan_on`](crate::scan_on) runs on this.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use super::bulk::{Record, Records, common, file};
use super::{Found, Kind, Meta, Sys};

/// Some thousand entries.
const BUFFER: usize = 256 << 10;

/// Descriptors left to the rest of the program.
const SPARED: usize = 64;

/// Enough for every tree but those made to use more.
const MOST_HANDLES: usize = 4096;

/// How a directory is opened to be read.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// macOS, by system calls relative to open directories.
#[derive(Clone, Copy, Debug, Default)]
pub struct MacOs;

impl Sys for MacOs {
    type Directory = OwnedFd;
    type Buffer = Box<[u8]>;
    type Found<'a> = Entry<'a>;

    fn buffer(&self) -> Self::Buffer {
        vec![0; BUFFER].into()
    }

    fn handles(&self) -> usize {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        (limit.saturating_sub(SPARED) / 2).min(MOST_HANDLES)
    }

    fn meta(&self, path: &Path, follow: bool) -> io::Result<Meta> {
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        Ok(meta(&retry_on_intr(|| rustix::fs::statat(CWD, path, flags))?))
    }

    fn open_path(&self, path: &Path) -> io::Result<OwnedFd> {
        Ok(retry_on_intr(|| rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty()))?)
    }

    fn open(&self, parent: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
        let flags = DIRECTORY.union(OFlags::NOFOLLOW);
        Ok(retry_on_intr(|| rustix::fs::openat(parent, name, flags, Mode::empty()))?)
    }

    fn duplicate(&self, directory: &OwnedFd) -> io::Result<OwnedFd> {
        directory.try_clone()
    }

    fn meta_of(&self, directory: &OwnedFd) -> io::Result<Meta> {
        Ok(meta(&retry_on_intr(|| rustix::fs::fstat(directory))?))
    }

    fn meta_in(&self, parent: &OwnedFd, name: &CStr) -> io::Result<Meta> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(meta(&retry_on_intr(|| rustix::fs::statat(parent, name, flags))?))
    }

    fn read(
        &self,
        directory: &OwnedFd,
        buffer: &mut Self::Buffer,
        each: &mut impl FnMut(&Entry<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        loop {
            let count = match fill(directory, buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                filled => filled?,
            };
            if count == 0 {
                return Ok(());
            }
            for record in Records::new(buffer, count) {
                let damaged = || io::Error::other("the system's answer is not as it is described");
                let entry = Entry { directory, record: record.ok_or_else(damaged)? };
                if !matches!(entry.name().to_bytes(), b"." | b"..") && each(&entry).is_break() {
                    return Ok(());
                }
            }
        }
    }

    fn open_file(&self, directory: &OwnedFd, name: &CStr) -> io::Result<(File, Meta)> {
        // Without waiting: it may be a pipe that nobody writes to.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = retry_on_intr(|| rustix::fs::openat(directory, name, flags, Mode::empty()))?;
        let meta = self.meta_of(&file)?;
        Ok((file.into(), meta))
    }

    fn exhausted(&self, error: &io::Error) -> bool {
        let exhausted = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
        error.raw_os_error().is_some_and(|number| exhausted.contains(&number))
    }
}

/// An entry that `getattrlistbulk` wrote into the buffer.
#[derive(Debug)]
pub struct Entry<'a> {
    directory: &'a OwnedFd,
    record: Record<'a>,
}

impl Found for Entry<'_> {
    fn name(&self) -> &CStr {
        self.record.name
    }

    fn kind(&self) -> Option<Kind> {
        self.record.kind
    }

    fn meta(&self) -> io::Result<Meta> {
        self.record.meta.map_or_else(|| MacOs.meta_in(self.directory, self.name()), Ok)
    }
}

/// Writes the next records of a directory into a buffer, and returns how many; none at the end.
fn fill(directory: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    let mut wanted = libc::attrlist {
        bitmapcount: libc::ATTR_BIT_MAP_COUNT,
        reserved: 0,
        commonattr: common::ALL,
        volattr: 0,
        dirattr: 0,
        fileattr: file::ALL,
        forkattr: 0,
    };
    let list = (&raw mut wanted).cast();
    let (bytes, length) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the descriptor is open. The list may be read and written, and has the type that the
    // call takes it for. The buffer may be written to, for as many bytes as the call is told. All
    // three outlive the call.
    let count = unsafe { libc::getattrlistbulk(directory.as_raw_fd(), list, bytes, length, 0) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

fn meta(stat: &Stat) -> Meta {
    Meta {
        kind: match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Kind::Directory,
            FileType::RegularFile => Kind::File,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::Other,
        },
        device: stat.st_dev as u64,
        inode: stat.st_ino,
        links: stat.st_nlink.into(),
        apparent: stat.st_size.max(0) as u64,
        disk: (stat.st_blocks as u64).saturating_mul(512),
        modified: stat.st_mtime,
        accessed: stat.st_atime,
        changed: stat.st_ctime,
        mode: stat.st_mode.into(),
        owner: stat.st_uid,
        group: stat.st_gid,
    }
}
