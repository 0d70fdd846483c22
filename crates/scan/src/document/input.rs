//! What every reader of a document reads from, and what it says where it cannot.

use std::io::{self, Read};

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The system's own.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is none that can be read.
    #[error("{0}")]
    Unknown(&'static str),
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
