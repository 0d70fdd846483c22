//! Documents that are read back: which format a file has.

use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::input::{ImportError, Zstd};
use super::{ncdu, snapshot};
use crate::Scan;

const NEITHER: &str =
    "it is neither a snapshot of poach nor an export of ncdu (`ncdu -o FILE` or `ncdu -O FILE`)";

/// Reads a snapshot, or an export of ncdu of either format, which may be compressed by gzip or zstd.
///
/// The format is told by how the document begins. Beside the tree no more is held than the way down to
/// one entry, with its siblings; of ncdu's binary format, the file and what it decompresses to. The depth has no limit.
///
/// # Errors
///
/// If it is none of these, was cut, or is damaged: never a part of a tree without a word.
pub fn read(mut document: impl Read) -> Result<Scan, ImportError> {
    read_from(&mut document)
}

fn read_from(document: &mut dyn Read) -> Result<Scan, ImportError> {
    let mut document = BufReader::with_capacity(1 << 16, document);
    let start = document.fill_buf()?;
    if start.starts_with(&[0x1f, 0x8b]) {
        return read_plain(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(document)));
    }
    // The magic number of a zstd frame (RFC 8878, 3.1.1).
    if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let decoder = Zstd::new(document)?;
        return read_plain(BufReader::with_capacity(1 << 16, decoder));
    }
    read_plain(document)
}

fn read_plain(mut document: impl BufRead) -> Result<Scan, ImportError> {
    /// Some programs write it before a text.
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    if document.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        document.consume(BYTE_ORDER_MARK.len());
    }
    let start = document.fill_buf()?;
    let begins = |magic: &[u8]| start.starts_with(magic);
    match start.iter().find(|byte| !byte.is_ascii_whitespace()) {
        _ if begins(&snapshot::MAGIC) => snapshot::read(document),
        Some(b'[') => ncdu::read(document),
        None => Err(ImportError::Unknown("it is empty")),
        _ if begins(&ncdu::binary::SIGNATURE) => ncdu::binary::read(document),
        _ if begins(b"\xbfncduEX") => Err(ImportError::Unknown(
            "it is a binary export of a later ncdu than 2.8: make one with `ncdu -o FILE`",
        )),
        Some(_) => Err(ImportError::Unknown(NEITHER)),
    }
}
