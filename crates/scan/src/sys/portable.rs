//! Any system, by `std::fs` and whole paths.
//!
//! A directory is a path here, so a tree deeper than the system's longest path ends in errors that
//! say so. On Windows the standard library does not tell which names are of one file, nor how much
//! a file takes on disk. So each name counts as a file of its own, and the length stands for the
//! bytes on disk.

use std::ffi::{CStr, CString};
use std::fs::{DirEntry, File, FileType, Metadata};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::{Found, Kind, Meta, Sys};

/// Any system that `std::fs` knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Portable;

impl Sys for Portable {
    type Directory = PathBuf;
    type Buffer = ();
    type Found<'a> = Entry;

    fn buffer(&self) {}

    fn handles(&self) -> usize {
        // A path is no handle: hold as many as there are.
        usize::MAX / 2
    }

    fn meta(&self, path: &Path, follow: bool) -> io::Result<Meta> {
        let metadata = if follow { path.metadata() } else { path.symlink_metadata() };
        Ok(meta(&metadata?))
    }

    fn open_path(&self, path: &Path) -> io::Result<PathBuf> {
        directory(path, path.metadata()?.file_type())
    }

    fn open(&self, parent: &PathBuf, name: &CStr) -> io::Result<PathBuf> {
        let path = parent.join(name_to_path(name)?);
        let kind = path.symlink_metadata()?.file_type();
        directory(&path, kind)
    }

    fn duplicate(&self, directory: &PathBuf) -> io::Result<PathBuf> {
        Ok(directory.clone())
    }

    fn meta_of(&self, directory: &PathBuf) -> io::Result<Meta> {
        Ok(meta(&directory.metadata()?))
    }

    fn meta_in(&self, parent: &PathBuf, name: &CStr) -> io::Result<Meta> {
        Ok(meta(&parent.join(name_to_path(name)?).symlink_metadata()?))
    }

    fn read(
        &self,
        directory: &PathBuf,
        _buffer: &mut (),
        each: &mut impl FnMut(&Entry) -> ControlFlow<()>,
    ) -> io::Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let name = CString::new(entry.file_name().into_encoded_bytes())?;
            if each(&Entry { name, entry }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn open_file(&self, directory: &PathBuf, name: &CStr) -> io::Result<(File, Meta)> {
        let path = directory.join(name_to_path(name)?);
        // Before it is opened: that might wait for a pipe's other end, or follow a link.
        if !path.symlink_metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = File::open(path)?;
        let meta = meta(&file.metadata()?);
        Ok((file, meta))
    }

    fn exhausted(&self, error: &io::Error) -> bool {
        #[cfg(unix)]
        const EXHAUSTED: [i32; 2] = [23, 24]; // ENFILE, EMFILE: the same on every Unix in use
        #[cfg(not(unix))]
        const EXHAUSTED: [i32; 1] = [4]; // ERROR_TOO_MANY_OPEN_FILES
        error.raw_os_error().is_some_and(|number| EXHAUSTED.contains(&number))
    }
}

/// An entry that `std::fs` found.
#[derive(Debug)]
pub struct Entry {
    name: CString,
    entry: DirEntry,
}

impl Found for Entry {
    fn name(&self) -> &CStr {
        &self.name
    }

    fn kind(&self) -> Option<Kind> {
        self.entry.file_type().ok().map(kind)
    }

    fn meta(&self) -> io::Result<Meta> {
        Ok(meta(&self.entry.metadata()?))
    }
}

fn directory(path: &Path, kind: FileType) -> io::Result<PathBuf> {
    if kind.is_dir() { Ok(path.to_owned()) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

fn kind(kind: FileType) -> Kind {
    if kind.is_dir() {
        Kind::Directory
    } else if kind.is_file() {
        Kind::File
    } else if kind.is_symlink() {
        Kind::Symlink
    } else {
        Kind::Other
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "the other systems' answer can be an error")]
fn name_to_path(name: &CStr) -> io::Result<&Path> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())))
}

#[cfg(not(unix))]
fn name_to_path(name: &CStr) -> io::Result<&Path> {
    // A Windows name that is no UTF-16 has no `&str`; opening it by another spelling would open
    // something else.
    name.to_str().map(Path::new).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, "the name holds an unpaired surrogate")
    })
}

#[cfg(unix)]
fn meta(metadata: &Metadata) -> Meta {
    use std::os::unix::fs::MetadataExt;
    Meta {
        kind: kind(metadata.file_type()),
        device: metadata.dev(),
        inode: metadata.ino(),
        links: metadata.nlink(),
        apparent: metadata.size(),
        disk: metadata.blocks().saturating_mul(512),
        modified: metadata.mtime(),
        accessed: metadata.atime(),
        changed: metadata.ctime(),
        mode: metadata.mode(),
        owner: metadata.uid(),
        group: metadata.gid(),
    }
}

#[cfg(not(unix))]
fn meta(metadata: &Metadata) -> Meta {
    let since = |time: std::time::SystemTime| match time.duration_since(std::time::UNIX_EPOCH) {
        Ok(after) => after.as_secs() as i64,
        // A second that has begun counts, as everywhere else.
        Err(before) => -before.duration().as_secs_f64().ceil() as i64,
    };
    Meta {
        apparent: metadata.len(),
        disk: metadata.len(),
        modified: metadata.modified().map_or(0, since),
        ..Meta::of(kind(metadata.file_type()))
    }
}
