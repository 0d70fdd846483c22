//! The floor that a scan stands on: open a directory, read it, ask for an entry's size.
//!
//! [`Sys`] is all that the walker knows of an operating system. `Linux` and `Windows` open entries
//! by their names in open directories, so that no path is built and no depth is too deep. `MacOs`
//! does so, too; no machine has run it. [`Portable`] is `std::fs`, for every other system and, with
//! the feature `portable`, for these two as well. Tests use a system of their own that fails where
//! it is told to.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(test)]
mod allocated;
#[cfg(any(test, target_os = "macos"))]
mod bulk;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod portable;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::Linux;
#[cfg(target_os = "macos")]
pub use macos::MacOs;
pub use portable::Portable;
#[cfg(windows)]
pub use windows::{Identity, Windows};

/// What [`scan`](crate::scan) runs on in this build.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub type Native = Linux;
/// What [`scan`](crate::scan) runs on in this build.
#[cfg(all(windows, not(feature = "portable")))]
pub type Native = Windows;
/// What [`scan`](crate::scan) runs on in this build.
#[cfg(any(feature = "portable", not(any(target_os = "linux", windows))))]
pub type Native = Portable;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link. It is never followed.
    Symlink,
    /// A socket, a named pipe, a device.
    Other,
}

/// What a system knows of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// What it is.
    pub kind: Kind,
    /// The device of the file system it lies on; 0 where the system does not say.
    pub device: u64,
    /// Its number on that file system; 0 where the system does not say.
    pub inode: u64,
    /// How many names it has; 1 where the system does not say.
    pub links: u64,
    /// Its length in bytes.
    pub apparent: u64,
    /// The bytes it takes on disk; its length where the system does not say.
    pub disk: u64,
    /// When its content was last changed, in seconds since 1970; 0 where the system does not say.
    pub modified: i64,
    /// When it was last read, in seconds since 1970; 0 where the system does not say, and on
    /// Windows.
    pub accessed: i64,
    /// When it, its owner or its mode was last changed, in seconds since 1970; 0 where the system
    /// does not say, and on Windows.
    pub changed: i64,
    /// Its type and permissions, as Unix numbers them; 0 where the system does not say.
    pub mode: u32,
    /// The user that owns it; 0 where the system does not say.
    pub owner: u32,
    /// The group that owns it; 0 where the system does not say.
    pub group: u32,
}

impl Meta {
    /// What it is, and where it lies, as one of one name.
    pub(crate) fn without_sizes(self) -> Meta {
        Meta { device: self.device, inode: self.inode, ..Meta::of(self.kind) }
    }

    /// An entry of a kind of which nothing else is known.
    pub fn of(kind: Kind) -> Meta {
        Meta {
            kind,
            device: 0,
            inode: 0,
            links: 1,
            apparent: 0,
            disk: 0,
            modified: 0,
            accessed: 0,
            changed: 0,
            mode: 0,
            owner: 0,
            group: 0,
        }
    }
}

/// A stretch of a file's bytes on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskExtent {
    /// Where it begins on the disk, in bytes.
    pub physical: u64,
    /// In bytes.
    pub length: u64,
    /// Whether other files, or snapshots, have it, too.
    pub shared: bool,
    /// Whether the bytes on the disk have another form: compressed, as a rule. `length` is then
    /// their length in the file, and other extents may begin within that length.
    pub encoded: bool,
}

/// What a thread has spent since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// On a processor.
    pub computed: Duration,
    /// How often it gave up its processor to wait for something: a disk, a lock.
    pub waits: u64,
}

/// An entry that [`Sys::read`] came upon.
pub trait Found {
    /// Its name: one component, any bytes but NUL and the separator.
    fn name(&self) -> &CStr;

    /// What it is, where the directory says so itself.
    fn kind(&self) -> Option<Kind>;

    /// Its size and the rest, the link itself for a symbolic link.
    ///
    /// # Errors
    ///
    /// The system's own: the entry may have vanished by now.
    fn meta(&self) -> io::Result<Meta>;
}

/// A system to walk on. Every method may be called by any thread at any time.
pub trait Sys: Sync {
    /// An open directory.
    type Directory: Send + Sync;
    /// What one worker reads directories into.
    type Buffer: Send;
    /// An entry, while it is being read.
    type Found<'a>: Found
    where
        Self: 'a;

    /// A buffer to read into.
    fn buffer(&self) -> Self::Buffer;

    /// How many directories may be held open at a time, beside those being read.
    fn handles(&self) -> usize;

    /// What a path given by the user names; the link itself unless `follow`.
    ///
    /// # Errors
    ///
    /// The system's own.
    fn meta(&self, path: &Path, follow: bool) -> io::Result<Meta>;

    /// Opens a directory given by the user.
    ///
    /// # Errors
    ///
    /// The system's own.
    fn open_path(&self, path: &Path) -> io::Result<Self::Directory>;

    /// Opens the directory `name` of the directory `parent`. A symbolic link is refused.
    ///
    /// # Errors
    ///
    /// The system's own.
    fn open(&self, parent: &Self::Directory, name: &CStr) -> io::Result<Self::Directory>;

    /// Opens the directory that lies below `parent` at the end of these names. No symbolic link is
    /// followed on the way.
    ///
    /// # Errors
    ///
    /// The system's own.
    fn open_below(&self, parent: Self::Directory, names: &[&CStr]) -> io::Result<Self::Directory> {
        names.iter().try_fold(parent, |above, name| self.open(&above, name))
    }

    /// Another handle to the same directory.
    ///
    /// # Errors
    ///
    /// The system's own.
    fn duplicate(&self, directory: &Self::Directory) -> io::Result<Self::Directory>;

    /// What an open directory is.
    ///
    /// # Errors
    ///
    /// The system's own.
    fn meta_of(&self, directory: &Self::Directory) -> io::Result<Meta>;

    /// What the entry `name` of `parent` is; the link itself for a symbolic link.
    ///
    /// # Errors
    ///
    /// The system's own.
    fn meta_in(&self, parent: &Self::Directory, name: &CStr) -> io::Result<Meta>;

    /// Calls `each` for every entry of `directory` but `.` and `..`, until it answers `Break`.
    ///
    /// # Errors
    ///
    /// The system's own. Entries may have been found before it.
    fn read(
        &self,
        directory: &Self::Directory,
        buffer: &mut Self::Buffer,
        each: &mut impl FnMut(&Self::Found<'_>) -> ControlFlow<()>,
    ) -> io::Result<()>;

    /// The beginning of the regular file `name` in a directory, at most `most` bytes. Nothing is
    /// followed.
    ///
    /// # Errors
    ///
    /// The system's own, or that it is no regular file, or that such a system reads no files.
    fn read_file(
        &self,
        directory: &Self::Directory,
        name: &CStr,
        most: usize,
    ) -> io::Result<Vec<u8>> {
        let (file, meta) = self.open_file(directory, name)?;
        if meta.kind != Kind::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut text = Vec::new();
        file.take(most as u64).read_to_end(&mut text)?;
        Ok(text)
    }

    /// Opens the regular file `name` of a directory to be read, and says what it is. Nothing is
    /// followed, and nobody is waited for: what opens may be no regular file, as the answer
    /// says then.
    ///
    /// # Errors
    ///
    /// The system's own, or that such a system reads no files.
    fn open_file(&self, directory: &Self::Directory, name: &CStr) -> io::Result<(File, Meta)> {
        let _ = (directory, name);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The next stretch of a file, at or after an offset, that may hold anything but zeros; what
    /// lies before it is a hole. A stretch may reach beyond the file's end.
    ///
    /// # Errors
    ///
    /// The system's own.
    fn data_after(&self, file: &File, offset: u64) -> io::Result<Option<Range<u64>>> {
        let _ = file;
        Ok(Some(offset..u64::MAX))
    }

    /// Tells of each extent of a file that has a place on its disk, in the order of the file.
    /// Nothing where the system does not say.
    ///
    /// # Errors
    ///
    /// The system's own: a file system may have no extents.
    fn extents(&self, file: &File, each: &mut dyn FnMut(DiskExtent)) -> io::Result<()> {
        let _ = (file, each);
        Ok(())
    }

    /// The number of the file system that a file lies on, whose places [`extents`](Self::extents)
    /// tells. `device` is the file's: of some file systems every volume has a device of its own.
    fn volume(&self, file: &File, device: u64) -> u64 {
        let _ = file;
        device
    }

    /// Makes a stretch of the file `to` share the blocks of `from` at the same offset, if both hold
    /// the same there, which the system compares while it lets nobody write. Says how many bytes it
    /// has shared, which may be fewer; nothing, if they differ.
    ///
    /// # Errors
    ///
    /// The system's own, or that it knows no such call.
    fn share(&self, from: &File, to: &File, offset: u64, length: u64) -> io::Result<Option<u64>> {
        let _ = (from, to, offset, length);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether a directory lies on a file system that holds no data of its own, such as `/proc`.
    fn is_pseudo(&self, directory: &Self::Directory) -> bool {
        let _ = directory;
        false
    }

    /// [`is_pseudo`](Self::is_pseudo) of the directory `name` of a directory, which need not be
    /// readable.
    fn is_pseudo_in(&self, parent: &Self::Directory, name: &CStr) -> bool {
        let _ = (parent, name);
        false
    }

    /// Directories at which a part of a file system is mounted that can be reached by another path,
    /// too (bind mounts). Empty where the system does not say.
    fn mounted_twice(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// What the calling thread has spent; nothing, where the system does not say. It is asked about
    /// now and then, to learn whether a walk waits for its disk.
    fn spent(&self) -> Option<Spent> {
        None
    }

    /// Whether an error says that this process, or the system, has no file descriptor left, so
    /// that the call may succeed later.
    fn exhausted(&self, error: &io::Error) -> bool;
}

/// The bytes of a path as a path.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have names that are no path")]
pub(crate) fn path_of(bytes: &[u8]) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(std::ffi::OsStr::from_bytes(bytes).into())
}

/// The bytes of a path as a path. A name that is no Unicode cannot be told from another.
#[cfg(not(unix))]
pub(crate) fn path_of(bytes: &[u8]) -> io::Result<PathBuf> {
    let path = std::str::from_utf8(bytes);
    path.map(PathBuf::from).map_err(|_| io::ErrorKind::InvalidInput.into())
}
