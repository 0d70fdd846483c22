//! Deleting an entry only if it is the one that was shown.
//!
//! An entry is opened by its name in an open directory, without following it. The comparison and
//! the deletion both go by that handle, so nothing can take its place between them.

use std::ffi::CStr;
use std::io;
use std::os::windows::io::{AsHandle, BorrowedHandle};

use windows_sys::Wdk::Storage::FileSystem::FILE_OPEN_REPARSE_POINT;
use windows_sys::Win32::Storage::FileSystem::{DELETE, FILE_READ_ATTRIBUTES};

use super::handle::{delete, identity, open};
use super::{Attributes, Directory, Windows};
use crate::sys::{Kind, Meta};

/// The identity of an entry, which an entry that takes its name later does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    volume: u64,
    /// The file's number on the volume.
    number: u64,
    kind: Kind,
    /// Of a reparse point, its tag.
    tag: u32,
    /// Of what is no directory: its length, and when its content was changed. A number may be
    /// given to a new file.
    content: Option<(u64, u64)>,
}

impl Identity {
    /// What a handle is of, and what else is known of it.
    fn of(handle: BorrowedHandle<'_>) -> io::Result<(Identity, Meta)> {
        let attributes = Attributes::of(handle)?;
        let meta = attributes.meta(handle)?;
        let (volume, number) = identity(handle)?;
        if number == 0 {
            return Err(io::Error::other("its file system does not number its files"));
        }
        let content = (meta.kind != Kind::Directory).then_some((meta.apparent, attributes.changed));
        let Attributes { tag, .. } = attributes;
        Ok((Identity { volume, number, kind: meta.kind, tag, content }, meta))
    }

    /// Whether both are of one file, by whatever names.
    pub fn is_same_file(&self, other: &Identity) -> bool {
        (self.volume, self.number) == (other.volume, other.number)
    }

    /// Whether both lie on one volume.
    pub fn is_on_same_volume(&self, other: &Identity) -> bool {
        self.volume == other.volume
    }
}

impl Windows {
    /// What the entry `name` of a directory is: a reparse point that stands for another entry is
    /// itself.
    ///
    /// # Errors
    ///
    /// The system's own, or that the file system does not number its files.
    pub fn identify(&self, parent: &Directory, name: &CStr) -> io::Result<(Identity, Meta)> {
        let parent = parent.handle.as_handle();
        let opened = open(parent, name, FILE_READ_ATTRIBUTES, FILE_OPEN_REPARSE_POINT)?;
        Identity::of(opened.as_handle())
    }

    /// What an open file is.
    ///
    /// # Errors
    ///
    /// As [`identify`](Self::identify).
    pub fn identity_of(&self, handle: &impl AsHandle) -> io::Result<Identity> {
        Ok(Identity::of(handle.as_handle())?.0)
    }

    /// Deletes the entry `name` of a directory if it is the one that is expected, and says whether
    /// it was. A directory must be empty. A reparse point goes by itself.
    ///
    /// # Errors
    ///
    /// The system's own.
    pub fn remove(&self, parent: &Directory, name: &CStr, expected: &Identity) -> io::Result<bool> {
        let parent = parent.handle.as_handle();
        let access = DELETE | FILE_READ_ATTRIBUTES;
        let opened = open(parent, name, access, FILE_OPEN_REPARSE_POINT)?;
        if Identity::of(opened.as_handle())?.0 != *expected {
            return Ok(false);
        }
        delete(opened.as_handle())?;
        Ok(true)
    }
}

impl AsHandle for Directory {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.handle.as_handle()
    }
}
