//! Entries of Windows: each by a handle of its own, which is compared and deleted by.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use poach_scan::sys::{Found as _, Kind, Sys, Windows};

use super::{Item, changed};

/// An open directory.
pub(in super::super) type Handle = <Windows as Sys>::Directory;

pub(in super::super) use poach_scan::sys::Identity;

/// What is known of an entry.
pub(in super::super) struct Seen {
    pub(in super::super) identity: Identity,
    /// When its attributes were last changed: not asked, as it is deleted by a handle.
    pub(in super::super) changed: Option<(i64, i64)>,
    pub(in super::super) is_directory: bool,
    pub(in super::super) names: u64,
    /// On disk.
    pub(in super::super) bytes: u64,
}

pub(in super::super) fn see(within: &Handle, name: &CString) -> io::Result<Seen> {
    let (identity, meta) = Windows.identify(within, name)?;
    let is_directory = meta.kind == Kind::Directory;
    Ok(Seen { identity, changed: None, is_directory, names: meta.links, bytes: meta.disk })
}

/// Where a file system keeps it: this one keeps entries in the order of their names, in which they
/// are listed.
pub(in super::super) fn place(_: &Identity) -> u64 {
    0
}

pub(in super::super) fn identity_of(directory: &Handle) -> io::Result<Identity> {
    Windows.identity_of(directory)
}

/// Whether a directory lies on another volume than the one that it is in.
pub(in super::super) fn is_mounted_in(within: &Handle, directory: &Handle) -> io::Result<bool> {
    Ok(!identity_of(within)?.is_on_same_volume(&identity_of(directory)?))
}

/// When the attributes of a file were last changed, and how many names it has: not asked, as
/// nothing is renamed here.
pub(in super::super) type Touched = ();

/// What changes with the attributes of an open file.
#[expect(clippy::unnecessary_wraps, reason = "other systems have to ask")]
pub(in super::super) fn touched(_: &File) -> io::Result<Touched> {
    Ok(())
}

/// Does nothing: only what may write to a file may ask for that here.
#[expect(clippy::unnecessary_wraps, reason = "other systems can do it")]
pub(in super::super) fn sync(_: &File) -> io::Result<()> {
    Ok(())
}

/// Opens a directory that the user gave.
pub(in super::super) fn open_given(path: &Path) -> io::Result<Handle> {
    Windows.open_path(path)
}

/// Opens a directory in a directory.
pub(in super::super) fn open_in(within: &Handle, name: &CString) -> io::Result<Handle> {
    Windows.open(within, name)
}

/// The entries of a directory, and whether its list says that an entry is a link: Wine follows the
/// links of the system below it when they are opened.
pub(in super::super) fn list(directory: &Handle) -> io::Result<Vec<(CString, bool)>> {
    let mut names = Vec::new();
    Windows.read(directory, &mut Windows.buffer(), &mut |entry| {
        names.push((entry.name().to_owned(), entry.kind() == Some(Kind::Symlink)));
        ControlFlow::Continue(())
    })?;
    Ok(names)
}

/// The entries that the directory's list marks as links.
pub(in super::super) fn links_in(directory: &Handle) -> io::Result<HashSet<CString>> {
    Ok(list(directory)?.into_iter().filter_map(|(name, link)| link.then_some(name)).collect())
}

/// Opens a regular file to be read.
pub(in super::super) fn open_file(within: &Handle, name: &CString) -> io::Result<(File, Identity)> {
    let (file, _) = Windows.open_file(within, name)?;
    let identity = Windows.identity_of(&file)?;
    Ok((file, identity))
}

/// Deletes an entry, if it is what was listed; a directory, if it is empty.
pub(in super::super) fn remove(within: &Handle, item: &Item) -> io::Result<()> {
    if Windows.remove(within, &item.name, &item.identity)? {
        Ok(())
    } else {
        Err(changed(&item.name))
    }
}

/// Deletes a file of which an equal one stays, if `stays` finds that as it was.
pub(in super::super) fn remove_copy(
    within: &Handle,
    item: &Item,
    stays: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    stays()?;
    remove(within, item)
}
