//! A snapshot: everything that a scan found in a compact file, for [`read`](super::read()) and
//! [`diff`](mod@crate::diff).
//!
//! ```text
//! 89 50 4F 41 43 48 0D 0A     \x89POACH\r\n
//! 01 00 00 00                 the version of the format, little-endian
//! ..                          one gzip member (RFC 1952) to the end of the file, which holds:
//!
//!   head      the version of the program (string), taken (seconds since 1970), elapsed
//!             (nanoseconds), the engine's name (string), threads, flags: 1 interrupted,
//!             2 one_file_system, 4 follow_paths, 8 facts were kept
//!   repeated  how many, and each path (string)
//!   errors    how many, and each path and message (strings)
//!   entries   depth first, those of a directory by name:
//!               tag: in its lowest three bits 1 a directory, 2 a file, 3 a symbolic link, 4 other;
//!                    8 the file has several names; 16 its bytes on disk are its length, rounded up
//!                    to a multiple of 4096
//!               name (string), length, bytes on disk unless 16; device and inode if 8;
//!               if facts were kept, when it was changed (seconds since 1970, as twice the
//!               number, or one less than twice its negative), mode, owner, group
//!             tag 0 ends a directory, and at the end of all the entries
//!   totals    directories, files, symlinks, other, apparent_bytes, disk_bytes: as the reader must
//!             have counted them
//! ```
//!
//! A number is LEB128, unsigned and at most 64 bits long; a string is a number of bytes, at most
//! 1,048,576, and these bytes. Lengths and bytes on disk are an entry's own: of a directory without
//! what is in it, of a file with several names at each of them. Names are bytes, UTF-8 or not.
//!
//! gzip's CRC-32 and length cover the contents, and nothing may follow it: a file that was cut, or
//! of whose contents a bit was changed, is refused. `tail -c +13 FILE | zcat` shows what is in it.

mod read;
mod write;

pub(super) use read::read;
pub use write::snapshot;

/// How it begins.
pub(super) const MAGIC: [u8; 8] = *b"\x89POACH\r\n";
const VERSION: u32 = 1;
const STRING: u64 = 1 << 20;

/// The bits of a tag.
mod tag {
    pub(super) const KIND: u64 = 7;
    pub(super) const SEVERAL: u64 = 8;
    pub(super) const ROUNDED: u64 = 16;
}

/// The bits of the head's flags.
mod flag {
    pub(super) const INTERRUPTED: u64 = 1;
    pub(super) const ONE_FILE_SYSTEM: u64 = 2;
    pub(super) const FOLLOW_PATHS: u64 = 4;
    pub(super) const FACTS: u64 = 8;
}

/// A length, rounded up to whole blocks, as most files have it on disk.
fn rounded(apparent: u64) -> Option<u64> {
    apparent.checked_next_multiple_of(4096)
}
