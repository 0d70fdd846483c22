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

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use crate::Scan;
    use crate::document::{ImportError, csv, ncdu_binary, read};
    use crate::report::Extent;

    /// Enough entries for several blocks, of which a directory's lie in more than one.
    fn export() -> Vec<u8> {
        let mut export =
            b"[1,2,{\"timestamp\":1},[{\"name\":\"/r\",\"asize\":1,\"dev\":7}".to_vec();
        for directory in 0..60 {
            export
                .extend(format!(",[{{\"name\":\"directory {directory:03}\",\"asize\":2}}").bytes());
            for file in 0..97 {
                let (size, inode) = (directory * 1000 + file, file / 2);
                let name = format!("a name that takes some bytes of its block {file}");
                let link = if file % 5 == 0 { ",\"hlnkc\":true,\"nlink\":3" } else { "" };
                let text = format!(
                    ",{{\"name\":\"{name}\",\"asize\":{size},\"dsize\":512,\"ino\":{inode}{link}}}"
                );
                export.extend(text.bytes());
            }
            export.extend(b"]");
        }
        export.extend(b"]]");
        export
    }

    fn written(scan: &Scan) -> Vec<u8> {
        let mut out = Vec::new();
        ncdu_binary(scan, &mut out).expect("memory");
        out
    }

    fn rows(scan: &Scan) -> Vec<u8> {
        let mut out = Vec::new();
        csv(scan, &Extent::default(), &mut out).expect("memory");
        out
    }

    #[test]
    fn an_export_of_many_blocks_is_read_back_as_it_was() {
        let export = export();
        let scan = read(&export[..]).expect("an export");
        let out = written(&scan);
        assert!(out.len() * 3 < export.len(), "{} bytes", out.len());
        let again = read(&out[..]).expect("a binary export");
        assert!(again.totals == scan.totals && rows(&again) == rows(&scan));
        let packed = compress_to_vec(&export[..], CompressionLevel::Fastest);
        let again = read(&packed[..]).expect("an export that is compressed by zstd");
        assert!(again.totals == scan.totals && rows(&again) == rows(&scan));
    }

    /// A frame that says nothing twice, a file of two frames, and a bit of a checksum.
    #[test]
    fn a_file_that_is_compressed_by_zstd_is_read_whole_or_refused() {
        let export = export();
        let whole = read(&export[..]).expect("an export");
        let (first, second) = export.split_at(export.len() / 2);
        let [mut first, second] =
            [first, second].map(|it| compress_to_vec(it, CompressionLevel::Fastest));
        let both = [&first[..], &second].concat();
        assert_eq!(rows(&read(&both[..]).expect("two frames")), rows(&whole));
        // Its last four bytes are the checksum.
        *first.last_mut().expect("a frame") ^= 1;
        let error = read(&[&first[..], &second].concat()[..]).expect_err("a wrong checksum");
        assert!(error.to_string().contains("checksum"), "{error}");
    }

    /// Items that refer to themselves, or lie in each other's names.
    #[test]
    fn a_small_file_cannot_say_much() {
        // A root whose last entry is a file that comes before itself.
        let mut raw = vec![0xbf, 0, 1, 1, 0x5a, 0, 0, 0xff, 0xff];
        raw.extend(vec![b'x'; 0xffff]);
        raw.extend([2, 0, 0xff]);
        let root = raw.len() as u64;
        raw.extend([0xbf, 0, 0, 1, 0x41, b'r', 12, 0, 0xff]);
        raw.resize(1 << 20, 0);
        let frame = super::write::frame(&raw);
        let length = (8 + 4 + frame.len()) as u32;
        let mut file = super::SIGNATURE.to_vec();
        for part in [&length.to_be_bytes()[..], &[0; 4], &frame, &length.to_be_bytes()] {
            file.extend(part);
        }
        let index = ((1_u32 << 28) + 24).to_be_bytes();
        for part in [
            &index[..],
            &(8_u64 << 24 | u64::from(length)).to_be_bytes(),
            &root.to_be_bytes(),
            &index,
        ] {
            file.extend(part);
        }
        let error = read(&file[..]).expect_err("a circle");
        assert!(error.to_string().contains("in a circle"), "{error}");
    }

    /// Bytes that change are refused or change what it says, and nothing panics.
    #[test]
    fn an_export_that_was_changed_is_read_or_refused() {
        let export = b"[1,2,{},[{\"name\":\"/r\",\"asize\":1,\"dev\":7},{\"name\":\"a\",\"asize\":300},
            [{\"name\":\"b\",\"read_error\":true},{\"name\":\"c\",\"ino\":5,\"nlink\":2,\"asize\":70000}]]]";
        let out = written(&read(&export[..]).expect("an export"));
        for bit in 0..8 * out.len() {
            let mut changed = out.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            match read(&changed[..]) {
                Ok(_) | Err(ImportError::Damaged { .. } | ImportError::Unknown(_)) => {}
                Err(error) => panic!("bit {bit} was changed: {error}"),
            }
        }
    }
}
