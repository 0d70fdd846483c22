//! Linux: `openat`, `getdents64` and `fstatat`, relative to directory handles.
//!
//! Sizes come from `newfstatat` rather than from `statx`: on a warm tree of 630,000 entries the
//! whole walk took 4 to 6 % longer with `statx` and the smallest mask, for the kernel clears and
//! copies a larger record. A directory's own size comes from `fstat` of the handle that is open
//! anyway, which saves looking its name up again (another 4 to 8 %).

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, RawDirEntry, ResolveFlags, Stat};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use super::{Found, Kind, Meta, Sys};

/// A name on Linux has at most 255 bytes and an entry 280, so a buffer holds 400 of the largest.
const BUFFER: usize = 128 << 10;

/// Descriptors left to the rest of the program: its files, its threads' reading.
const SPARED: usize = 64;

/// Enough for every tree but those made to use more; each costs the kernel some 300 bytes.
const MOST_HANDLES: usize = 4096;

/// The kernel's `PATH_MAX`, the closing NUL included.
const LONGEST_PATH: usize = 4096;

/// How a directory is opened to be read.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Linux, by system calls relative to open directories.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

impl Sys for Linux {
    type Directory = OwnedFd;
    type Buffer = Box<[MaybeUninit<u8>]>;
    type Found<'a> = Entry<'a>;

    fn buffer(&self) -> Self::Buffer {
        Box::new_uninit_slice(BUFFER)
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

    #[inline]
    fn open(&self, parent: &OwnedFd, name: &CStr) -> io::Result<OwnedFd> {
        let flags = DIRECTORY.union(OFlags::NOFOLLOW);
        Ok(retry_on_intr(|| rustix::fs::openat(parent, name, flags, Mode::empty()))?)
    }

    /// By paths as long as the kernel takes at a time, each with links forbidden by `openat2`; name
    /// by name where there is no such call, or a sandbox forbids it.
    fn open_below(&self, parent: OwnedFd, names: &[&CStr]) -> io::Result<OwnedFd> {
        let mut directory = parent;
        let mut names = names;
        while !names.is_empty() {
            let mut path = Vec::with_capacity(LONGEST_PATH);
            let mut taken = 0;
            for name in names {
                if taken > 0 && path.len() + name.count_bytes() + 1 >= LONGEST_PATH {
                    break;
                }
                path.extend_from_slice(name.to_bytes());
                path.push(b'/');
                taken += 1;
            }
            let (these, others) = names.split_at(taken);
            directory = match retry_on_intr(|| {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                rustix::fs::openat2(&directory, &path[..], DIRECTORY, Mode::empty(), resolve)
            }) {
                Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {
                    these.iter().try_fold(directory, |above, name| self.open(&above, name))?
                }
                opened => opened?,
            };
            names = others;
        }
        Ok(directory)
    }

    fn duplicate(&self, directory: &OwnedFd) -> io::Result<OwnedFd> {
        directory.try_clone()
    }

    #[inline]
    fn meta_of(&self, directory: &OwnedFd) -> io::Result<Meta> {
        Ok(meta(&retry_on_intr(|| rustix::fs::fstat(directory))?))
    }

    #[inline]
    fn meta_in(&self, parent: &OwnedFd, name: &CStr) -> io::Result<Meta> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        Ok(meta(&retry_on_intr(|| rustix::fs::statat(parent, name, flags))?))
    }

    #[inline]
    fn read(
        &self,
        directory: &OwnedFd,
        buffer: &mut Self::Buffer,
        each: &mut impl FnMut(&Entry<'_>),
    ) -> io::Result<()> {
        use std::os::fd::AsFd;
        let directory = directory.as_fd();
        let mut entries = RawDir::new(directory, buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Err(Errno::INTR) => continue,
                entry => entry?,
            };
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                each(&Entry { directory, entry });
            }
        }
        Ok(())
    }

    fn exhausted(&self, error: &io::Error) -> bool {
        let exhausted = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
        error.raw_os_error().is_some_and(|number| exhausted.contains(&number))
    }
}

/// An entry that `getdents64` wrote into the buffer.
#[derive(Debug)]
pub struct Entry<'a> {
    directory: BorrowedFd<'a>,
    entry: RawDirEntry<'a>,
}

impl Found for Entry<'_> {
    #[inline]
    fn name(&self) -> &CStr {
        self.entry.file_name()
    }

    #[inline]
    fn kind(&self) -> Option<Kind> {
        kind(self.entry.file_type())
    }

    #[inline]
    fn meta(&self) -> io::Result<Meta> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        Ok(meta(&retry_on_intr(|| rustix::fs::statat(self.directory, self.name(), flags))?))
    }
}

#[inline]
fn kind(kind: FileType) -> Option<Kind> {
    match kind {
        FileType::Directory => Some(Kind::Directory),
        FileType::RegularFile => Some(Kind::File),
        FileType::Symlink => Some(Kind::Symlink),
        FileType::Unknown => None,
        _ => Some(Kind::Other),
    }
}

#[inline]
#[expect(clippy::useless_conversion, reason = "the fields' types differ between processors")]
fn meta(stat: &Stat) -> Meta {
    Meta {
        kind: kind(FileType::from_raw_mode(stat.st_mode)).unwrap_or(Kind::Other),
        device: stat.st_dev.into(),
        inode: stat.st_ino.into(),
        links: stat.st_nlink.into(),
        apparent: stat.st_size.max(0) as u64,
        // The unit is 512 bytes whatever the file system's blocks are (stat(3type), st_blocks).
        disk: (stat.st_blocks as u64).saturating_mul(512),
    }
}
