//! An entry as it was listed, to be told from one that took its name.

use std::ffi::CString;
use std::io;

use poach_scan::report::escape;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(super) use unix::{DIRECTORY, stat};
#[cfg(unix)]
pub(super) use unix::{
    Handle, Identity, identity_of, links_in, list, open_file, open_given, open_in, remove, see,
};
#[cfg(windows)]
pub(super) use windows::{
    Handle, Identity, identity_of, links_in, list, open_file, open_given, open_in, remove, see,
};

/// An entry, and all that is in it.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) name: CString,
    pub(super) identity: Identity,
    /// Of a directory, what is in it.
    pub(super) inside: Option<Vec<Item>>,
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
    #[cfg(target_os = "linux")]
    pub(super) fn is_at(&self, within: &Handle, name: &CString) -> io::Result<()> {
        if see(within, name)?.identity == self.identity { Ok(()) } else { Err(changed(&self.name)) }
    }
}

/// Opens a directory, if it is the one that was meant.
pub(super) fn open(within: &Handle, name: &CString, expected: Identity) -> io::Result<Handle> {
    let directory = open_in(within, name)?;
    if identity_of(&directory)? == expected { Ok(directory) } else { Err(changed(name)) }
}

pub(super) fn changed(name: &CString) -> io::Error {
    let name = escape(name.to_bytes());
    io::Error::other(format!("{name} is not what was listed any more"))
}
