//! The export format of ncdu (<https://dev.yorhel.nl/ncdu/jsonfmt>, major version 1): nested JSON
//! arrays, one for each directory, with sizes of each entry by itself.
//!
//! | of an entry | written | read |
//! |---|---|---|
//! | `name` | its bytes; control characters, `"` and `\` escaped | bytes |
//! | `asize`, `dsize` | its own length and bytes on disk | 0 where absent |
//! | `ino`, `dev`, `hlnkc` | of a file with several names | the same file is counted once, as ncdu does |
//! | `notreg` | what is neither a file nor a directory | a link if `mode` says so |
//! | `mtime`, `mode`, `uid`, `gid` | if they were kept; of a symbolic link its type always, as `mode` | kept, if there is an `mtime` |
//! | `read_error` | what could not be read | an error |
//! | `excluded` | never | the entry is left out |
//!
//! A name that is not UTF-8 is written as the bytes that it has, as ncdu itself does and reads it: such
//! a document is no valid JSON, and means the same name to ncdu. ncdu knows one root: several given
//! paths, or one that is a file, lie in a directory called `(several paths)`. An entry of which nothing
//! could be learnt is not written: it is in [`Scan::errors`](crate::Scan::errors) alone.

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
