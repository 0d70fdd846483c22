//! ncdu's binary export (<https://dev.yorhel.nl/ncdu/binfmt>, since ncdu 2.6): entries in
//! compressed blocks that refer to each other, so that a reader may begin anywhere.
//!
//! ```text
//! BF 6E 63 64 75 45 58 31     \xbfncduEX1
//! blocks                      a head, contents, and the head again. The head is 4 bytes,
//!                             big-endian: the type in the highest four bits, and the length of the
//!                             block with both heads
//!   type 0, data              the block's number (4 bytes, big-endian), and one zstd frame, which
//!                             holds items
//!   type 1, index             at the end: for each number 8 bytes, big-endian, the block's place
//!                             in the file in the upper 40 bits and its length in the lower 24;
//!                             then a reference to the item of the root
//! ```
//!
//! An item is a CBOR map from the numbers in [`key`] to values. A reference is the number of a
//! block times 2^24 and the item's place in the uncompressed block; a negative reference counts
//! back from the item that holds it. A directory refers to its last entry, and each entry to the
//! one before it. So entries are written before the directory that they are in, and the root comes
//! last. The entries of one directory are written side by side, after all that lies deeper, so that
//! a reader that lists the directory needs few blocks.
//!
//! An entry is written and read as in [ncdu's JSON](super), with three differences. The device is
//! that of the directory. An entry that could not be read has a name and nothing else. A directory
//! has the sums of what is in it, which [`read`] leaves out.

mod cbor;
mod read;
mod write;

pub(in crate::document) use read::read;
pub(crate) use read::{Blocks, Directory, Entry, circle};
pub use write::ncdu_binary;

/// How the file begins.
pub(in crate::document) const SIGNATURE: [u8; 8] = *b"\xbfncduEX1";
const DATA: u32 = 0;
const INDEX: u32 = 1;
/// The bits of a block's head that are its length.
const LENGTH: u32 = (1 << 28) - 1;
/// The bits of a block's length in the index, and of a place in an uncompressed block.
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

/// The values of [`key::TYPE`]. Below [`UNREADABLE`](kind::UNREADABLE) are those that ncdu left
/// out: by a pattern, on another file system, of the kernel.
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
    use std::cell::Cell;
    use std::fmt::Write as _;
    use std::io::{self, Cursor, Read, Seek, SeekFrom};
    use std::rc::Rc;

    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use crate::document::{ImportError, csv, ncdu_binary, read};
    use crate::listing::{Row, Stored, Sums, rows as rows_of};
    use crate::report::{Extent, Measure};
    use crate::{Node, Scan};

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

    /// A file of one block, with these items in it, of which the root begins at a place.
    fn file_of(raw: &[u8], root: u64) -> Vec<u8> {
        file_of_frames(&[super::write::frame(raw)], root)
    }

    /// A file whose blocks have these contents, compressed.
    fn file_of_frames(frames: &[Vec<u8>], root: u64) -> Vec<u8> {
        let mut file = super::SIGNATURE.to_vec();
        let mut places = Vec::new();
        for (number, frame) in (0_u32..).zip(frames) {
            let length = (8 + 4 + frame.len()) as u32;
            places.extend(((file.len() as u64) << 24 | u64::from(length)).to_be_bytes());
            let (head, number) = (length.to_be_bytes(), number.to_be_bytes());
            file.extend([&head[..], &number, frame, &head].concat());
        }
        let index = ((1_u32 << 28) + 16 + places.len() as u32).to_be_bytes();
        file.extend([&index[..], &places, &root.to_be_bytes(), &index].concat());
        file
    }

    /// A frame of almost 16 MiB: these bytes, and then nothing but zeros.
    fn frame_of_zeros(begins: &[u8], times: usize) -> Vec<u8> {
        const AT_A_TIME: usize = 128 << 10;
        let length = (begins.len() + times * AT_A_TIME) as u32;
        // A length of four bytes that is the window's size, too.
        let mut frame =
            [&0xfd2f_b528_u32.to_le_bytes()[..], &[0xa0], &length.to_le_bytes()].concat();
        let mut block = |is_last: bool, repeats: bool, length: usize, content: &[u8]| {
            let head = usize::from(is_last) | usize::from(repeats) << 1 | length << 3;
            frame.extend([&head.to_le_bytes()[..3], content].concat());
        };
        block(false, false, begins.len(), begins);
        for time in 1..=times {
            block(time == times, true, AT_A_TIME, &[0]);
        }
        frame
    }

    /// Two blocks of which one is dropped when the other is read, and whose items refer to each
    /// other.
    #[test]
    fn blocks_are_not_decompressed_again_and_again_for_one_list() {
        // A file whose previous entry lies at the begin of a block, and the root's.
        let item = |block: u8| {
            [&[0xbf, 0, 1, 1, 0x41, b'x', 2, 0x1a, block, 0, 0, 0][..], &[0xff]].concat()
        };
        let root = [0xbf, 0, 0, 1, 0x41, b'r', 12, 0, 0xff];
        let (first, second) = (item(1), item(0));
        let frames =
            [frame_of_zeros(&[&first[..], &root].concat(), 127), frame_of_zeros(&second, 127)];
        let file = file_of_frames(&frames, first.len() as u64);
        assert!(file.len() < 2000, "{} bytes", file.len());
        let (length, count) = (file.len() as u64, Rc::new(Cell::new(0)));
        let from = Counting(Cursor::new(file), Rc::clone(&count));
        let mut stored = Stored::open(from, u64::MAX).expect("sound").expect("an export");
        for _ in 0..2 {
            let before = count.get();
            let error = stored.rows(&[b"r"], Measure::Disk).expect_err("blocks that are large");
            let said = error.to_string();
            assert!(said.contains("again and again"), "{said}");
            assert!(matches!(error, ImportError::Damaged { at, .. } if at == length), "{said}");
            // Each time half of the file is read.
            assert!(count.get() - before < 4 * length, "{count:?} of {length}");
        }
        assert!(stored.knows(&[b"r"]).expect("the root is there still"));
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
        let file = file_of(&raw, root);
        let error = read(&file[..]).expect_err("a circle");
        assert!(error.to_string().contains("in a circle"), "{error}");
        let mut stored = stored(file).expect("its root can be read").expect("it is one");
        let error = stored.rows(&[b"r"], Measure::Disk).expect_err("a circle");
        assert!(error.to_string().contains("in a circle"), "{error}");
    }

    fn stored(file: Vec<u8>) -> Result<Option<Stored>, ImportError> {
        Stored::open(Cursor::new(file), u64::MAX)
    }

    /// Counts what is read of a file.
    struct Counting(Cursor<Vec<u8>>, Rc<Cell<u64>>);

    impl Read for Counting {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(buffer)?;
            self.1.set(self.1.get() + read as u64);
            Ok(read)
        }
    }

    impl Seek for Counting {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn of_a_large_export_little_is_read_to_go_two_levels_down() {
        let mut export = String::from("[1,2,{},[{\"name\":\"/r\"}");
        for directory in 0..10_u64 {
            let _ = write!(export, ",[{{\"name\":\"{directory}\"}}");
            for below in 0..10_u64 {
                let _ = write!(export, ",[{{\"name\":\"{below}\"}}");
                for file in 0..200_u64 {
                    let size = (directory * 7919 + below * 104_729 + file * 15_485_863) % 999_983;
                    let _ = write!(
                        export,
                        ",{{\"name\":\"{size} the name of a file {file}\",\"asize\":{size},\"dsize\":{}}}",
                        size / 512 * 512
                    );
                }
                export.push(']');
            }
            export.push(']');
        }
        export.push_str("]]");
        let scan = read(export.as_bytes()).expect("an export");
        let out = written(&scan);
        let (whole, count) = (out.len() as u64, Rc::new(Cell::new(0)));
        let from = Counting(Cursor::new(out), Rc::clone(&count));
        let mut stored = Stored::open(from, u64::MAX).expect("sound").expect("an export");
        assert_eq!((stored.root(), stored.is_unread()), (&b"/r"[..], false));
        let opened = count.get();
        assert_eq!(stored.rows(&[b"/r"], Measure::Disk).expect("sound").len(), 10);
        assert_eq!(stored.rows(&[b"/r", b"7"], Measure::Disk).expect("sound").len(), 10);
        assert_eq!(stored.rows(&[b"/r", b"7", b"3"], Measure::Disk).expect("sound").len(), 200);
        assert!(opened * 8 < whole && count.get() * 5 < whole, "{opened} and {count:?} of {whole}");
        // A block that was read is not read again.
        let before = count.get();
        stored.rows(&[b"/r", b"7"], Measure::Apparent).expect("sound");
        assert!(!stored.knows(&[b"/r", b"7", b"none"]).expect("sound"));
        assert_eq!(count.get(), before);
    }

    /// As ncdu writes it: each directory of the root lies after its entries, so the root's list is
    /// spread over the whole file.
    #[test]
    fn to_go_to_a_directory_that_was_listed_the_list_is_not_read_again() {
        let frames: Vec<Vec<u8>> = (0..10)
            .map(|number| {
                let file = [0xbf, 0, 1, 1, 0x41, b'x', 0xff];
                let name = [0xbf, 0, 0, 1, 0x41, b'0' + number];
                let before = [2, 0x1a, number.wrapping_sub(1), 0, 0, 7];
                let before = if number == 0 { &before[..0] } else { &before[..] };
                let first = if number == 9 { 13 } else { 0 };
                let last = [12, 0x1a, number, 0, 0, first, 0xff];
                let root = [0xbf, 0, 0, 1, 0x41, b'r', 12, 0x1a, 9, 0, 0, 20, 0xff];
                let items = [&root[..], &file, &name, before, &last].concat();
                frame_of_zeros(if number == 9 { &items } else { &items[root.len()..] }, 24)
            })
            .collect();
        let frame = frames[0].len() as u64;
        // The root stands before the others of its block.
        let file = file_of_frames(&frames, 9 << 24);
        let count = Rc::new(Cell::new(0));
        let from = Counting(Cursor::new(file), Rc::clone(&count));
        let mut stored = Stored::open(from, u64::MAX).expect("sound").expect("an export");
        let mut rows = |names: &[&[u8]]| {
            let before = count.get();
            let rows = stored.rows(names, Measure::Disk).expect("sound").len();
            (rows, count.get() - before)
        };
        assert_eq!(rows(&[b"r"]).0, 10);
        for name in [&b"0"[..], b"8", b"4"] {
            let (files, read) = rows(&[b"r", name]);
            assert!(files == 1 && read < 2 * frame, "{read} bytes, of {frame} in a block");
            let (all, read) = rows(&[b"r"]);
            assert!(all == 10 && read > 6 * frame, "{read} bytes, of {frame} in a block");
        }
        assert!(!stored.knows(&[b"r", b"none"]).expect("sound"));
    }

    /// Every row of every directory, and what the directory holds.
    fn compare(scan: &Scan, stored: &mut Stored) {
        let mut waiting: Vec<Node<'_>> = scan.tree.roots().collect();
        let mut names: Vec<Vec<&[u8]>> = waiting.iter().map(|root| vec![root.name()]).collect();
        let roots = stored.rows(&[], Measure::Disk).expect("sound");
        assert_eq!((roots.len(), &roots[0].name[..]), (1, stored.root()));
        while let (Some(node), Some(way)) = (waiting.pop(), names.pop()) {
            assert!(stored.knows(&way).expect("sound"));
            let sums = stored.sum(&way).expect("sound");
            assert_eq!((sums.apparent, sums.entries), (node.apparent_bytes(), node.entries()));
            for measure in [Measure::Disk, Measure::Apparent, Measure::Entries] {
                let mut told = stored.rows(&way, measure).expect("sound");
                let mut expected = rows_of(scan, Some(node), measure);
                for rows in [&mut told, &mut expected] {
                    rows.sort_by(|a, b| a.name.cmp(&b.name));
                }
                let shown = |rows: &[Row]| {
                    let shown =
                        |it: &Row| (it.name.clone(), it.kind, it.value, it.entries, it.modified);
                    rows.iter().map(shown).collect::<Vec<_>>()
                };
                assert_eq!(shown(&told), shown(&expected));
            }
            for below in node.directories() {
                waiting.push(below);
                names.push(way.iter().copied().chain([below.name()]).collect());
            }
        }
    }

    #[test]
    fn what_is_read_block_by_block_is_what_is_read_whole() {
        let export =
            br#"[1,2,{},[{"name":"/r","asize":9,"mtime":5},{"name":"a","asize":3,"dsize":512},
            [{"name":"b","asize":1},{"name":"c","asize":4,"mtime":-7,"notreg":true},[{"name":"d"}]],
            [{"name":"\u00e4","asize":2},{"name":"b","excluded":"pattern"}]]]"#;
        for export in [&export[..], &export_without_links()] {
            let scan = read(export).expect("an export");
            let out = written(&scan);
            let again = read(&out[..]).expect("an export");
            compare(&again, &mut stored(out).expect("sound").expect("an export"));
        }
        // A path that is not there, and what is no directory.
        let out = written(&read(&export[..]).expect("an export"));
        let mut stored = stored(out).expect("sound").expect("an export");
        for names in [&[&b"/r"[..], b"a"][..], &[b"/r", b"none"], &[b"other"]] {
            assert!(!stored.knows(names).expect("sound"));
            assert!(stored.rows(names, Measure::Disk).expect("sound").is_empty());
            assert_eq!(stored.sum(names).expect("sound"), Sums::default());
        }
        assert!(stored.knows(&[b"/r", b"b", b"d"]).expect("sound"));
        for other in [&b"[1,2,{},[{\"name\":\"r\"}]]"[..], b"", b"\xbfncduEX2"] {
            let other = Stored::open(Cursor::new(other.to_vec()), u64::MAX);
            assert!(other.expect("it can be read").is_none());
        }
    }

    /// The sizes of files with several names are told otherwise.
    fn export_without_links() -> Vec<u8> {
        let text = String::from_utf8(export()).expect("text");
        text.replace(",\"hlnkc\":true,\"nlink\":3", "").into_bytes()
    }

    #[test]
    fn what_could_not_be_read_is_told_of_above_it_and_each_name_has_the_bytes() {
        let export = br#"[1,2,{},[{"name":"/r","dev":1},[{"name":"b"},{"name":"no","read_error":true}],
            [{"name":"c"},{"name":"x","asize":5,"ino":3,"nlink":2},{"name":"y","asize":5,"ino":3,"nlink":2}]]]"#;
        let out = written(&read(&export[..]).expect("an export"));
        let mut stored = stored(out).expect("sound").expect("an export");
        assert!(stored.is_unread());
        let mut rows = stored.rows(&[b"/r"], Measure::Apparent).expect("sound");
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        let told: Vec<_> = rows.iter().map(|it| (&it.name[..], it.unread, it.value)).collect();
        assert_eq!(told, [(&b"b"[..], true, 0), (b"c", false, 5)]);
        let rows = stored.rows(&[b"/r", b"c"], Measure::Apparent).expect("sound");
        assert!(rows.len() == 2 && rows.iter().all(|it| it.value == 5), "{rows:?}");
        let rows = stored.rows(&[b"/r", b"b"], Measure::Apparent).expect("sound");
        assert!(rows.len() == 1 && rows[0].unread, "{rows:?}");
    }

    /// A directory that lies in itself, however many levels further down.
    #[test]
    fn a_directory_that_lies_in_itself_is_not_gone_down_without_end() {
        // `a` at 0 has `b` as its last entry, and that has `a`; the root has `a`.
        let item = |name: u8, last: u8| [0xbf, 0, 0, 1, 0x41, name, 12, last, 0xff];
        let (a, b, root) = (item(b'a', 9), item(b'b', 0), item(b'r', 0));
        let file = file_of(&[a, b, root].concat(), 18);
        let error = read(&file[..]).expect_err("a circle");
        assert!(error.to_string().contains("in a circle"), "{error}");
        let mut stored = stored(file).expect("its root can be read").expect("it is one");
        let way: [&[u8]; 5] = [b"r", b"a", b"b", b"a", b"b"];
        for depth in 1..4 {
            assert_eq!(stored.rows(&way[..depth], Measure::Disk).expect("sound").len(), 1);
        }
        for depth in 4..6 {
            let error = stored.rows(&way[..depth], Measure::Disk).expect_err("a circle");
            assert!(error.to_string().contains("in a circle"), "{error}");
        }
        // The earlier entries are there still.
        assert!(stored.knows(&way[..3]).expect("sound"));
    }

    #[test]
    fn a_block_that_claims_to_be_large_is_refused_before_it_takes_memory() {
        let raw = [0xbf, 0, 0, 1, 0x41, b'r', 0xff];
        let file = file_of(&raw, 0);
        assert!(stored(file.clone()).expect("sound").is_some());
        let refused = |file: Vec<u8>, what: &str| {
            let errors = [
                read(&file[..]).expect_err("it is none").to_string(),
                stored(file).expect_err("it is none").to_string(),
            ];
            assert!(errors.iter().all(|error| error.contains(what)), "{errors:?}");
        };
        // The frame's length of contents lies behind its magic number, descriptor and window.
        let contents = super::SIGNATURE.len() + 8 + 6;
        for claims in [super::LARGEST as u32, super::LARGEST as u32 + 1, u32::MAX] {
            let mut file = file.clone();
            file[contents..contents + 4].copy_from_slice(&claims.to_le_bytes());
            refused(file, "cannot be decompressed");
        }
        // The index says that the block has 16 MiB, or lies behind the end.
        let index = file.len() - 20;
        for entry in [8_u64 << 24 | super::LARGEST as u64, u64::MAX, (9 << 24) + 30, 0] {
            let mut file = file.clone();
            file[index..index + 8].copy_from_slice(&entry.to_be_bytes());
            refused(file, "not where the index has it");
        }
        // So does the index of itself.
        let mut claims = file.clone();
        let end = claims.len();
        claims[end - 4..].copy_from_slice(&((1_u32 << 28) + super::LARGEST as u32).to_be_bytes());
        refused(claims, "no index is at its end");
        // And of the root, that it lies in another block.
        let mut other = file.clone();
        other[index + 8..index + 16].copy_from_slice(&(7_u64 << 24).to_be_bytes());
        refused(other, "block 7, which is not in its index");
        for length in 8..file.len() {
            refused(file[..length].to_vec(), "no index is at its end");
        }
    }

    #[test]
    fn rows_and_index_keep_within_the_memory_that_is_allowed() {
        let out = written(&read(&export()[..]).expect("an export"));
        let open = |memory| Stored::open(Cursor::new(out.clone()), memory);
        assert!(matches!(open(1), Err(ImportError::Memory(1))));
        let mut stored = open(20_000).expect("the index is small").expect("an export");
        assert_eq!(stored.rows(&[b"/r"], Measure::Disk).expect("60 rows").len(), 60);
        let error = stored.rows(&[b"/r", b"directory 007"], Measure::Disk).expect_err("97 rows");
        assert!(matches!(error, ImportError::Memory(20_000)), "{error}");
    }

    /// Changed bytes are refused, or change the result; nothing panics.
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
            let listed = stored(changed).and_then(|it| {
                let Some(mut it) = it else { return Ok(()) };
                let root = it.root().to_vec();
                it.rows(&[&root], Measure::Disk)?;
                it.rows(&[&root, b"b"], Measure::Disk).map(drop)
            });
            match listed {
                Ok(()) | Err(ImportError::Damaged { .. }) => {}
                Err(error) => panic!("bit {bit} was changed: {error}"),
            }
        }
    }
}
