//! The export format of ncdu (<https://dev.yorhel.nl/ncdu/jsonfmt>, major version 1): nested JSON
//! arrays, one for each directory, with sizes of each entry by itself.
//!
//! | of an entry | written | read |
//! |---|---|---|
//! | `name` | its bytes; control characters, `"` and `\` escaped | bytes |
//! | `asize`, `dsize` | its own length and bytes on disk | 0 where absent |
//! | `ino`, `dev`, `hlnkc` | of a file with several names | the same file is counted once |
//! | `notreg` | what is neither a file nor a directory | a link if `mode` says so |
//! | `mtime`, `mode`, `uid`, `gid` | if they were kept | kept, if there is an `mtime` |
//! | `read_error` | what could not be read, and each given path of an interrupted scan | an error |
//! | `excluded` | never | the entry is left out |
//!
//! Of a symbolic link the type is always written, as `mode`. ncdu counts names of one file in the
//! same way.
//!
//! A name that is not UTF-8 is written as the bytes that it has, as ncdu itself writes and reads
//! it. Such a document is no valid JSON, and means the same name to ncdu. ncdu knows one root:
//! several given paths, or a given path that is a file, lie in a directory called `(several
//! paths)`. An entry of which nothing could be learnt is not written: it is in
//! [`Scan::errors`](crate::Scan::errors) alone.

use crate::{Kind, Node};

pub(super) mod binary;
mod read;
mod write;

pub use binary::ncdu_binary;
pub(super) use read::read;
pub use write::ncdu;

const FORMAT: &str = "export of ncdu";
const UNREAD_DIRECTORY: &str = "ncdu could not read all of the directory";
const UNREAD_ENTRY: &str = "ncdu could not read the entry";
/// The bits of a mode that are the type, and those of a symbolic link.
const TYPE: u32 = 0o170_000;
const SYMLINK: u32 = 0o120_000;
const FILE: u32 = 0o100_000;
const PIPE: u32 = 0o010_000;

/// Whether a type is that of a pipe, a device or a socket.
fn is_other(kind: u32) -> bool {
    matches!(kind, PIPE | 0o020_000 | 0o060_000 | 0o140_000)
}

/// The mode that is written of an entry, if any. The type in a mode may not be the entry's: a scan
/// of Windows has no types. Then a type is written where a reader needs one: a pipe stands for
/// every entry that is neither file nor link.
fn mode_of(node: &Node<'_>) -> Option<u32> {
    let mode = node.facts().map(|facts| u32::from(facts.mode()));
    let told = mode.unwrap_or(0) & TYPE;
    let meant = match node.kind() {
        Kind::Symlink => SYMLINK,
        Kind::File if told != 0 => FILE,
        Kind::Other if !is_other(told) && (told != 0 || node.link().is_some()) => PIPE,
        _ => told,
    };
    (mode.is_some() || meant != 0).then_some(mode.unwrap_or(0) & !TYPE | meant)
}
