//! Linux: `openat`, `getdents64` and `fstatat`, relative to directory handles.
//!
//! Sizes come from `newfstatat` rather than from `statx`: on a warm tree of 630,000 entries the
//! whole walk took 4 to 6 % longer with `statx` and the smallest mask, for the kernel clears and
//! copies a larger record. A directory's own size comes from `fstat` of the handle that is open
//! anyway, which saves looking its name up again (another 4 to 8 %).

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::{ControlFlow, Range};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, RawDirEntry, ResolveFlags, SeekFrom, Stat,
    StatxFlags,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use super::{DiskExtent, Found, Kind, Meta, Spent, Sys};

mod blocks;
mod mounts;
mod spent;

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
        each: &mut impl FnMut(&Entry<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        use std::os::fd::AsFd;
        let directory = directory.as_fd();
        let mut entries = RawDir::new(directory, buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Err(Errno::INTR) => continue,
                entry => entry?,
            };
            if !matches!(entry.file_name().to_bytes(), b"." | b"..")
                && each(&Entry { directory, entry }).is_break()
            {
                break;
            }
        }
        Ok(())
    }

    fn open_file(&self, directory: &OwnedFd, name: &CStr) -> io::Result<(File, Meta)> {
        // Without waiting: it may be a pipe that nobody writes to.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = retry_on_intr(|| rustix::fs::openat(directory, name, flags, Mode::empty()))?;
        let meta = self.meta_of(&file)?;
        Ok((file.into(), meta))
    }

    fn data_after(&self, file: &File, offset: u64) -> io::Result<Option<Range<u64>>> {
        let start = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
            Ok(start) => start,
            // No data before the end.
            Err(Errno::NXIO) => return Ok(None),
            // A file system that knows no holes.
            Err(_) => return Ok(Some(offset..u64::MAX)),
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(u64::MAX);
        Ok(Some(start..end))
    }

    fn extents(&self, file: &File, each: &mut dyn FnMut(DiskExtent)) -> io::Result<()> {
        blocks::extents(file, each)
    }

    fn volume(&self, file: &File, device: u64) -> u64 {
        let told = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
        // A kernel before 5.8 does not say it.
        let mount = told.ok().filter(|it| it.stx_mask & StatxFlags::MNT_ID.bits() != 0);
        let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        mount.and_then(|it| mounts::device_of(&table, it.stx_mnt_id)).unwrap_or(device)
    }

    fn share(&self, from: &File, to: &File, offset: u64, length: u64) -> io::Result<Option<u64>> {
        blocks::share(from, to, offset, length)
    }

    fn is_pseudo(&self, directory: &OwnedFd) -> bool {
        // statfs(2) and the kernel's magic.h: proc, sysfs, devpts, cgroup, cgroup2, debugfs,
        // tracefs, securityfs, pstore, bpf, configfs, fusectl, mqueue, hugetlbfs,
        // binfmt_misc, efivarfs, selinuxfs, nsfs.
        const PSEUDO: [i64; 18] = [
            0x9fa0,
            0x6265_6572,
            0x1cd1,
            0x0027_e0eb,
            0x6367_7270,
            0x6462_6720,
            0x7472_6163,
            0x7363_6673,
            0x6165_676c,
            0xcafe_4a11,
            0x6265_6570,
            0x6573_5543,
            0x1980_0202,
            0x9584_58f6,
            0x4249_4e4d,
            0xde5e_81e4,
            0xf97c_ff8c,
            0x6e73_6673,
        ];
        #[allow(clippy::unnecessary_cast, reason = "the field's type differs between processors")]
        let kind = retry_on_intr(|| rustix::fs::fstatfs(directory))
            .map(|it| it.f_type as i64 & 0xffff_ffff);
        kind.is_ok_and(|kind| PSEUDO.contains(&kind))
    }

    fn is_pseudo_in(&self, parent: &OwnedFd, name: &CStr) -> bool {
        // A path alone may be opened where the directory may not be read.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = retry_on_intr(|| rustix::fs::openat(parent, name, flags, Mode::empty()));
        directory.is_ok_and(|directory| self.is_pseudo(&directory))
    }

    fn mounted_twice(&self) -> Vec<PathBuf> {
        std::fs::read("/proc/self/mountinfo").map_or_else(|_| Vec::new(), |it| mounts::twice(&it))
    }

    fn spent(&self) -> Option<Spent> {
        spent::spent()
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
        modified: stat.st_mtime.into(),
        accessed: stat.st_atime.into(),
        changed: stat.st_ctime.into(),
        mode: stat.st_mode.into(),
        owner: stat.st_uid,
        group: stat.st_gid,
    }
}
