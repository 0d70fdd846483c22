//! Entries of Unix: by the handle of their directory and their name.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};

use rustix::io::Errno;

use super::{Item, changed};

/// An open directory.
pub(in super::super) type Handle = OwnedFd;

/// How a directory is opened: no link is followed.
pub(in super::super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// The identity of an entry, which another entry of the same name does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Identity {
    device: u64,
    inode: u64,
    /// For entries other than directories: the length, and the time of the last change of content.
    content: Option<(i64, i64, u64)>,
}

/// What is known of an entry.
pub(in super::super) struct Seen {
    pub(in super::super) identity: Identity,
    /// When its attributes were last changed; nothing of a directory, which changes with what is
    /// deleted in it.
    pub(in super::super) changed: Option<(i64, i64)>,
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
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let changed = (stat.st_ctime as i64, stat.st_ctime_nsec as i64);
    Ok(Seen {
        identity: Identity::of(&stat),
        changed: (!is_directory).then_some(changed),
        is_directory,
        names: stat.st_nlink.into(),
        bytes: stat.st_blocks as u64 * 512,
    })
}

pub(in super::super) fn identity_of(directory: &Handle) -> io::Result<Identity> {
    Ok(Identity::of(&rustix::fs::fstat(directory)?))
}

/// Whether a directory is another mount than its parent: of another file system, or of the same
/// file system once more.
pub(in super::super) fn is_mounted_in(within: &Handle, directory: &Handle) -> io::Result<bool> {
    if identity_of(within)?.device != identity_of(directory)?.device {
        return Ok(true);
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{StatxFlags, statx};
        let mount = |handle: &Handle| {
            let told = statx(handle, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
            // A kernel before 5.8 does not say it.
            (told.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(told.stx_mnt_id)
        };
        if mount(within) != mount(directory) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// When the attributes of a file were last changed, its names among them, and how many it has.
pub(in super::super) type Touched = (i64, i64, u64);

/// What changes with the attributes of an open file.
pub(in super::super) fn touched(file: &File) -> io::Result<Touched> {
    let meta = file.metadata()?;
    Ok((meta.ctime(), meta.ctime_nsec(), meta.nlink()))
}

/// Writes a file's content to its disk. Content that its file system has no way to write (squashfs,
/// iso9660, erofs) lies there already.
pub(in super::super) fn sync(file: &File) -> io::Result<()> {
    file.sync_all().or_else(|error| {
        let number = error.raw_os_error().map(Errno::from_raw_os_error);
        if matches!(number, Some(Errno::INVAL | Errno::ROFS)) { Ok(()) } else { Err(error) }
    })
}

/// Opens a directory that the user gave.
pub(in super::super) fn open_given(path: &Path) -> io::Result<Handle> {
    Ok(rustix::fs::openat(CWD, path, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())?)
}

/// Opens a directory in a directory.
pub(in super::super) fn open_in(within: &Handle, name: &CString) -> io::Result<Handle> {
    Ok(rustix::fs::openat(within, name, DIRECTORY, Mode::empty())?)
}

/// The entries of a directory, and the links in it that opening would follow in spite of the flags:
/// none.
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

/// None: opening follows no link here.
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
    if !item.is(&see(within, &item.name)?) {
        return Err(changed(&item.name));
    }
    let flags = if item.inside.is_some() { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(rustix::fs::unlinkat(within, &item.name, flags)?)
}

/// Deletes a file of which an equal file stays.
///
/// First it renames the file, beside its name. Then `stays` checks the kept file again, and the
/// file is deleted. The check is needed because two files by their numbers may be one file that two
/// mounts show (overlayfs, bindfs, sshfs): then the rename has also renamed or removed the kept
/// file. If anything is wrong, the file gets its name back. A crash in between leaves it under the
/// other name.
pub(in super::super) fn remove_copy(
    within: &Handle,
    item: &Item,
    stays: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    if !item.is(&see(within, &item.name)?) {
        return Err(changed(&item.name));
    }
    let aside = loop {
        let aside = beside();
        match rename_to_none(within, &item.name, &aside) {
            Ok(()) => break aside,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    };
    // The rename has changed it.
    let gone =
        see(within, &aside)
            .and_then(|seen| {
                if seen.identity == item.identity { stays() } else { Err(changed(&item.name)) }
            })
            .and_then(|()| Ok(rustix::fs::unlinkat(within, &aside, AtFlags::empty())?));
    gone.map_err(|error| match rename_to_none(within, &aside, &item.name) {
        Ok(()) => error,
        Err(back) => {
            let aside = aside.to_string_lossy();
            io::Error::other(format!("{error}; it is called {aside} now: {back}"))
        }
    })
}

/// A name for a temporary file beside a file.
pub(in super::super) fn beside() -> CString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Relaxed: the number is all there is to it.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!(".poach-{}-{number}", std::process::id());
    CString::new(name).unwrap_or_default()
}

/// Renames an entry to a name that nothing has.
fn rename_to_none(within: &Handle, from: &CString, to: &CString) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    match rustix::fs::renameat_with(within, from, within, to, rustix::fs::RenameFlags::NOREPLACE) {
        // The file system cannot ask for that.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        renamed => return Ok(renamed?),
    }
    match rustix::fs::statat(within, to, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(Errno::NOENT) => Ok(rustix::fs::renameat(within, from, within, to)?),
        Err(error) => Err(error.into()),
    }
}
