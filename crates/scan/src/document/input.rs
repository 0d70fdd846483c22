//! What every reader of a document reads from, and what it says where it cannot.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The system's own.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The format is unknown.
    #[error("{0}")]
    Unknown(&'static str),
    /// It takes more memory than this number of bytes, the limit.
    #[error("it takes more than {0} bytes of memory, which is the limit")]
    Memory(u64),
    /// It begins as one of its format, and does not go on as one.
    #[error("damaged: {what}, at byte {at} of the {format}")]
    Damaged {
        /// The format.
        format: &'static str,
        /// How many bytes were read before it; of a snapshot, after it was decompressed.
        at: u64,
        /// What was found or missed.
        what: String,
    },
}

/// Counts what is read.
pub(super) struct Counted<R> {
    pub(super) reader: R,
    pub(super) at: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Counts what is read where the reader itself cannot be asked.
pub(super) struct Metered<R> {
    pub(super) reader: R,
    pub(super) read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

/// What was decompressed of a document. It may not be far longer than the document: a few bytes can
/// stand for as many as somebody likes.
pub(super) struct Limited<R> {
    decoder: R,
    /// How much of the document was read.
    length: Rc<Cell<u64>>,
    decompressed: u64,
}

impl<R> Limited<R> {
    /// How often the document's length may come out, and how much may whatever its length.
    const TIMES: u64 = 1024;
    const FREE: u64 = 8 << 20;

    pub(super) fn new(decoder: R, length: Rc<Cell<u64>>) -> Limited<R> {
        Limited { decoder, length, decompressed: 0 }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.decoder.read(buffer)?;
        self.decompressed += read as u64;
        if self.decompressed > Self::FREE + Self::TIMES * self.length.get() {
            let at = self.decompressed;
            let what = "it decompresses to more than 1,024 times its length";
            return Err(invalid(&format_args!("{what}, at byte {at} of what comes out")));
        }
        Ok(read)
    }
}

pub(super) const WRONG_CHECKSUM: &str = "its checksum is not that of its contents";

/// Whether a zstd frame that was read to its end has the checksum of its contents, or none.
pub(super) fn is_sound(frame: &FrameDecoder) -> bool {
    let said = frame.get_checksum_from_data();
    said.is_none() || said == frame.get_calculated_checksum()
}

/// Decompresses zstd frames, one after the other, and compares their checksums.
pub(super) struct Zstd<R: Read> {
    /// None at the end.
    frame: Option<StreamingDecoder<R, FrameDecoder>>,
}

impl<R: BufRead> Zstd<R> {
    pub(super) fn new(source: R) -> io::Result<Zstd<R>> {
        Ok(Zstd { frame: Some(begin(source, FrameDecoder::new())?) })
    }
}

/// Reads a frame's head.
fn begin<R: Read>(
    source: R,
    decoder: FrameDecoder,
) -> io::Result<StreamingDecoder<R, FrameDecoder>> {
    StreamingDecoder::new_with_decoder(source, decoder).map_err(|error| invalid(&error))
}

fn invalid(error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("as zstd: {error}"))
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(frame) = &mut self.frame {
            let read = frame.read(buffer).map_err(|error| invalid(&error))?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            if !is_sound(&frame.decoder) {
                return Err(invalid(&WRONG_CHECKSUM));
            }
            let (mut source, decoder) = self.frame.take().expect("it is there").into_parts();
            if !source.fill_buf()?.is_empty() {
                self.frame = Some(begin(source, decoder)?);
            }
        }
        Ok(0)
    }
}
