//! ncdu's binary export (<https://dev.yorhel.nl/ncdu/binfmt>, since ncdu 2.6): entries in compressed blocks that refer to each other, so
//! that a reader may begin anywhere.
//!
//! ```text
//! BF 6E 63 64 75 45 58 31     \xbfncduEX1
//! blocks                      a head, contents, and the head again. The head is 4 bytes, big-endian: the type in the highest four
//!                             bits, and the length of the block with both heads
//!   type 0, data              the block's number (4 bytes, big-endian), and one zstd frame, which holds items
//!   type 1, index             at the end: for each number 8 bytes, big-endian, the block's place in the file in the upper 40 bits and
//!                             its length in the lower 24; then a reference to the item of the root
//! ```
//!
//! An item is a CBOR map from the numbers in [`key`] to values. A reference is the number of a block times 2^24 and the item's place in the
//! uncompressed block; a negative one counts back from the item that holds it. A directory refers to its last entry, and each entry to
//! the one before it. So entries are written before the directory that they are in, and the root comes last.
//!
//! What is written and read of an entry is what [ncdu's JSON](super) has, with these differences: the device is that of the directory; an
//! entry that could not be read has a name and nothing else; and a directory has the sums of what is in it, which [`read`] leaves out.

mod cbor;
mod read;
mod write;

pub(in crate::document) use read::read;
pub use write::ncdu_binary;

/// How the file begins.
pub(in crate::document) const SIGNATURE: [u8; 8] = *b"\xbfncduEX1";
const DATA: u32 = 0;
const INDEX: u32 = 1;
/// The bits of a block's head that are its length.
const LENGTH: u32 = (1 << 28) - 1;
/// A block's length in the index, and a place in an uncompressed block, have so many bits.
const PLACE: u32 = 24;
/// Both heads of a block.
const HEADS: usize = 8;
/// The largest uncompressed block.
const LARGEST: usize = (1 << PLACE) - 1;

/// What an item says, by the number of its key.
mod key {
    pub(super) const TYPE: u64 = 0;
    pub(super) const NAME: u64 = 1;
    /// The entry before this one in its directory.
    pub(super) const PREVIOUS: u64 = 2;
    pub(super) const APPARENT: u64 = 3;
    pub(super) const DISK: u64 = 4;
    /// Of a directory; if it is absent, that of the directory above.
    pub(super) const DEVICE: u64 = 5;
    /// True if a directory could not be read, false if one below it could not.
    pub(super) const UNREAD: u64 = 6;
    /// Sums of a directory, itself included.
    pub(super) const ALL_APPARENT: u64 = 7;
    pub(super) const ALL_DISK: u64 = 8;
    /// How much of these sums is of files that have names elsewhere, too.
    pub(super) const SHARED_APPARENT: u64 = 9;
    pub(super) const SHARED_DISK: u64 = 10;
    /// How many entries lie below a directory.
    pub(super) const ITEMS: u64 = 11;
    /// The last entry of a directory.
    pub(super) const LAST: u64 = 12;
    /// Of a file with several names.
    pub(super) const INODE: u64 = 13;
    pub(super) const LINKS: u64 = 14;
    pub(super) const OWNER: u64 = 15;
    pub(super) const GROUP: u64 = 16;
    pub(super) const MODE: u64 = 17;
    pub(super) const MODIFIED: u64 = 18;
}

/// The values of [`key::TYPE`]. Below [`UNREADABLE`](kind::UNREADABLE) are those that ncdu left out: by a pattern, on another file
/// system, of the kernel.
mod kind {
    pub(super) const DIRECTORY: i128 = 0;
    pub(super) const FILE: i128 = 1;
    pub(super) const OTHER: i128 = 2;
    /// A file that has several names.
    pub(super) const LINK: i128 = 3;
    pub(super) const UNREADABLE: i128 = -1;
}
