//! Documents that are read back, and the formats of files.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::input::{ImportError, Limited, Metered, Zstd};
use super::{ncdu, snapshot};
use crate::Scan;

const NEITHER: &str =
    "it is neither a snapshot of poach nor an export of ncdu (`ncdu -o FILE` or `ncdu -O FILE`)";

/// Reads a snapshot, or an export of ncdu of either format, which may be compressed by gzip or
/// zstd.
///
/// The format is known from the document's beginning. Beside the tree, memory holds the path to one
/// entry, with its siblings; for ncdu's binary format, the file and what it decompresses to. The
/// depth has no limit.
///
/// # Errors
///
/// If it is none of these, was cut, or is damaged: never a part of a tree without a word.
pub fn read(mut document: impl Read) -> Result<Scan, ImportError> {
    read_from(&mut document, u64::MAX)
}

/// As [`read`], with a limit of memory. The tree, and the memory to read it, take `memory` bytes at
/// most. As with [`Options::memory`](crate::Options::memory), what a tree holds counts twice,
/// because vectors grow.
///
/// # Errors
///
/// As [`read`], and [`ImportError::Memory`] as soon as it takes more: never a part of a tree.
pub fn read_within(mut document: impl Read, memory: u64) -> Result<Scan, ImportError> {
    read_from(&mut document, memory)
}

fn read_from(document: &mut dyn Read, memory: u64) -> Result<Scan, ImportError> {
    let length = Rc::new(Cell::new(0));
    let document = Metered { reader: document, read: Rc::clone(&length) };
    let mut document = BufReader::with_capacity(1 << 16, document);
    let start = document.fill_buf()?;
    if start.starts_with(&[0x1f, 0x8b]) {
        let decoder = MultiGzDecoder::new(document);
        return read_plain(BufReader::with_capacity(1 << 16, decoder), memory);
    }
    // The magic number of a zstd frame (RFC 8878, 3.1.1).
    if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        // Of gzip no byte stands for more than 1,032.
        let decoder = Limited::new(Zstd::new(document)?, length);
        return read_plain(BufReader::with_capacity(1 << 16, decoder), memory);
    }
    read_plain(document, memory)
}

fn read_plain(mut document: impl BufRead, memory: u64) -> Result<Scan, ImportError> {
    /// Some programs write it before a text.
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    if document.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        document.consume(BYTE_ORDER_MARK.len());
    }
    let start = document.fill_buf()?;
    let begins = |magic: &[u8]| start.starts_with(magic);
    match start.iter().find(|byte| !byte.is_ascii_whitespace()) {
        _ if begins(&snapshot::MAGIC) => snapshot::read(document, memory),
        Some(b'[') => ncdu::read(document, memory),
        None => Err(ImportError::Unknown("it is empty")),
        _ if begins(&ncdu::binary::SIGNATURE) => ncdu::binary::read(document, memory),
        _ if begins(b"\xbfncduEX") => Err(ImportError::Unknown(
            "it is a binary export of a later ncdu than 2.8: make one with `ncdu -o FILE`",
        )),
        Some(_) => Err(ImportError::Unknown(NEITHER)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crate::document::{ncdu, ncdu_binary, read, snapshot};
    use crate::{Failure, Options, Scan};

    /// What is told of a scan as a whole.
    #[test]
    fn a_snapshot_says_how_the_scan_was_made() {
        let failure = Failure { path: b"/p/\xff".to_vec(), message: "why".to_owned() };
        for flag in 0..8_u8 {
            let (one_file_system, follow_paths) = (flag & 1 != 0, flag & 2 != 0);
            let scan = Scan {
                taken: 1_700_000_000,
                elapsed: std::time::Duration::from_nanos(u64::from(flag) + 7),
                engine: crate::Engine::Pool,
                threads: 3,
                interrupted: flag & 4 != 0,
                repeated: vec!["/again".into(), "/and again".into()],
                errors: vec![failure.clone()],
                options: Options {
                    one_file_system,
                    follow_paths,
                    keep_files: true,
                    ..Options::default()
                },
                ..Scan::default()
            };
            let mut out = Vec::new();
            snapshot(&scan, &mut out).expect("a vector can be written to");
            let again = read(&out[..]).expect("a snapshot");
            let told = |scan: &Scan| {
                let flags = [
                    scan.interrupted,
                    scan.options.one_file_system,
                    scan.options.follow_paths,
                    scan.options.keep_facts,
                ];
                let times = (scan.taken, scan.elapsed, scan.engine, scan.threads);
                (flags, times, scan.repeated.clone(), scan.errors.clone())
            };
            assert_eq!(told(&again), told(&scan));
            assert_eq!(again.totals.errors, 1);
        }
    }

    /// All entries in a directory have its device, at any depth; inode numbers are unique per
    /// device.
    #[test]
    fn files_are_told_apart_by_the_device_that_is_above_them() {
        let export = br#"[1,2,{},[{"name":"/r","dev":7},{"name":"a","asize":10,"ino":5,"nlink":2},
            [{"name":"same"},[{"name":"deep"},{"name":"b","asize":10,"ino":5,"nlink":2}]],
            [{"name":"other","dev":8},[{"name":"deep"},{"name":"c","asize":10,"ino":5,"nlink":2}]],
            [{"name":"none","dev":0},{"name":"d","asize":10,"ino":5,"nlink":2}]]]"#;
        let scan = read(&export[..]).expect("an export");
        let mut binary = Vec::new();
        ncdu_binary(&scan, &mut binary).expect("a vector can be written to");
        for scan in [scan, read(&binary[..]).expect("an export")] {
            assert_eq!((scan.totals.files, scan.totals.apparent_bytes), (4, 30));
            let deep = scan.tree.find(&["/r", "other", "deep"]).expect("it is there");
            assert_eq!(deep.files().next().and_then(|it| it.link()).map(|it| it.device), Some(8));
        }
    }

    /// Whatever the mode says, or whether there is one.
    #[test]
    fn an_entry_is_what_it_is_in_every_export() {
        let modes = ["", ",\"mode\":420", ",\"mode\":33188", ",\"mode\":49572"];
        for (mode, times) in modes.into_iter().flat_map(|mode| [(mode, ""), (mode, ",\"mtime\":1")])
        {
            let export = format!(
                r#"[1,2,{{}},[{{"name":"/r"}},{{"name":"a","ino":5,"nlink":2,"notreg":true{mode}{times}}},
                    {{"name":"b","ino":5,"nlink":2,"notreg":true{mode}{times}}},{{"name":"c","notreg":true{mode}{times}}},
                    {{"name":"d"{mode}{times}}},{{"name":"e","ino":6,"nlink":2{mode}{times}}},
                    {{"name":"f","ino":7,"nlink":2,"mode":41471{times}}}]]"#
            );
            let scan = read(export.as_bytes()).expect("an export");
            assert_eq!((scan.totals.files, scan.totals.symlinks, scan.totals.other), (2, 1, 3));
            let (mut json, mut binary) = (Vec::new(), Vec::new());
            ncdu(&scan, &mut json).expect("a vector can be written to");
            ncdu_binary(&scan, &mut binary).expect("a vector can be written to");
            for document in [json, binary] {
                assert_eq!(read(&document[..]).expect("an export").totals, scan.totals, "{export}");
            }
        }
    }

    /// A given path may be of any length; the names below it are those of a system.
    #[test]
    fn the_name_of_a_given_path_has_no_limit() {
        let export = format!("[1,2,{{}},[{{\"name\":\"/{}\"}}]]", "r".repeat(70_000));
        assert_eq!(read(export.as_bytes()).expect("an export").totals.directories, 1);
    }

    /// White space, names and unknown members that do not end, in a few kilobytes.
    #[test]
    fn what_swells_is_refused_with_its_place() {
        const AT_A_TIME: usize = 64 << 10;
        // A frame whose window is 64 KiB (RFC 8878, 3.1.1), of blocks that repeat a byte.
        let frame = |begins: &[u8], byte: u8, times: usize| {
            let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 6 << 3];
            let mut block = |kind: usize, length: usize, content: &[u8]| {
                frame.extend(&(kind << 1 | length << 3).to_le_bytes()[..3]);
                frame.extend(content);
            };
            block(0, begins.len(), begins);
            (0..times).for_each(|_| block(1, AT_A_TIME, &[byte]));
            // The last one, which is empty.
            frame.extend([1, 0, 0]);
            frame
        };
        let refused = |document: &[u8], what: &str| {
            let error = read(document).expect_err("it swells").to_string();
            assert!(error.contains(what) && error.contains("at byte "), "{error}");
        };
        let start = &b"[1,2,{},[{\"name\":\"r\"},{"[..];
        let spaces = frame(b"[1,2,{}", b' ', 400);
        assert!(spaces.len() < 2000);
        refused(&spaces, "1,024 times");
        refused(&frame(&[start, b"\"name\":\""].concat(), b'n', 40), "1048576 bytes");
        refused(&frame(&[start, b"\"x\":"].concat(), b'[', 40), "1048576 bytes");
        refused(&frame(&[start, b"\"x\":\""].concat(), b'x', 40), "1048576 bytes");
        // What is long by itself is not compressed much.
        let mut long = start[..start.len() - 2].to_vec();
        for number in 0..4_000_000_u32 {
            long.extend(format!(",{{\"name\":\"{number}\"}}").as_bytes());
            if long.len() > 10 << 20 {
                break;
            }
        }
        long.extend(b"]]");
        let packed = ruzstd::encoding::compress_to_vec(
            &long[..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        assert!(long.len() > 8 << 20 && packed.len() < long.len() / 2);
        assert!(read(&packed[..]).expect("an export").totals.files > 400_000);
    }

    #[test]
    fn a_document_in_several_members_of_gzip_is_read_to_its_end() {
        let export = b"[1,2,{},[{\"name\":\"r\"},{\"name\":\"a\"},{\"name\":\"b\"}]]";
        let members = export.chunks(20).map(|part| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(part).and_then(|()| gzip.finish()).expect("a vector can be written to")
        });
        let document = members.collect::<Vec<_>>().concat();
        assert_eq!(read(&document[..]).expect("an export").totals.files, 2);
    }
}
