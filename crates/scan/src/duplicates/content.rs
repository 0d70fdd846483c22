//! Whether two files hold the same, byte by byte.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use crate::Control;
use crate::sys::Sys;

/// How much of each is read at a time.
const BLOCK: usize = 256 << 10;

/// Whether two open files hold the same bytes: what to ask before one of them is deleted for the
/// other's sake. Both are read, but for where both have a hole.
///
/// # Errors
///
/// The system's own, or [`io::ErrorKind::Interrupted`] once [`Control::stop`] was called.
pub fn same_content<S: Sys>(sys: &S, a: &File, b: &File, control: &Control) -> io::Result<bool> {
    let length = a.metadata()?.len();
    if b.metadata()?.len() != length {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; BLOCK], vec![0; BLOCK]);
    let mut offset = 0;
    while offset < length {
        // Nothing but zeros comes before the first data of either.
        let data =
            |file| Ok::<_, io::Error>(sys.data_after(file, offset)?.map_or(length, |it| it.start));
        offset = offset.max(data(a)?.min(data(b)?));
        let end = offset.saturating_add(SKIP).min(length);
        while offset < end {
            if control.is_stopped() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let size = (length - offset).min(BLOCK as u64) as usize;
            read(a, offset, &mut left[..size])?;
            read(b, offset, &mut right[..size])?;
            if left[..size] != right[..size] {
                return Ok(false);
            }
            offset += size as u64;
        }
    }
    // A file that has grown since is not the file that was compared.
    Ok(a.metadata()?.len() == length && b.metadata()?.len() == length)
}

/// How much is compared before holes are looked for again.
const SKIP: u64 = 64 << 20;

fn read(mut file: &File, offset: u64, block: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(block)
}
