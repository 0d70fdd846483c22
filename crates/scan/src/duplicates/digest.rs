//! Hashes of files and of samples of them.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use crate::Control;
use crate::sys::{Meta, Sys};

/// How much is read at a time. A file that is no longer is read whole at once.
const BLOCK: usize = 64 << 10;

/// How long a sample is. There is one at the beginning, one in the middle, one at the end.
const SAMPLE: usize = 4 << 10;

/// A hash of a file, or of its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Digest {
    hash: [u8; 32],
    whole: bool,
}

impl Digest {
    /// Whether equal digests mean equal files.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }
}

/// What one thread reads files into.
#[derive(Debug, Default)]
pub(super) struct Reader {
    block: Vec<u8>,
}

impl Reader {
    /// Hashes samples, or the whole file if it is short.
    pub(super) fn samples<S: Sys>(
        &mut self,
        sys: &S,
        file: &File,
        meta: &Meta,
        control: &Control,
    ) -> io::Result<Digest> {
        let length = meta.apparent;
        if length <= BLOCK as u64 {
            return self.whole(sys, file, meta, control);
        }
        let mut hash = blake3::Hasher::new();
        let last = length - SAMPLE as u64;
        for offset in [0, last / 2, last] {
            hash.update(self.read(file, offset, SAMPLE)?);
        }
        control.compared(3 * SAMPLE as u64);
        Ok(Digest { hash: hash.finalize().into(), whole: false })
    }

    /// Hashes each block that does not consist of zeros, and where it lies: holes and written zeros
    /// are equal.
    pub(super) fn whole<S: Sys>(
        &mut self,
        sys: &S,
        file: &File,
        meta: &Meta,
        control: &Control,
    ) -> io::Result<Digest> {
        let length = meta.apparent;
        let sparse = meta.disk < length;
        let mut hash = blake3::Hasher::new();
        let mut offset = 0;
        while offset < length {
            let data = if sparse { sys.data_after(file, offset)? } else { Some(offset..length) };
            let Some(data) = data else { break };
            // From the beginning of a block, wherever the data begin in it.
            offset = data.start / BLOCK as u64 * BLOCK as u64;
            let end = data.end.min(length);
            while offset < end {
                if control.is_stopped() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                let size = (length - offset).min(BLOCK as u64) as usize;
                let block = self.read(file, offset, size)?;
                if !is_zero(block) {
                    hash.update(&offset.to_le_bytes());
                    hash.update(block);
                }
                control.compared(size as u64);
                offset += BLOCK as u64;
            }
        }
        Ok(Digest { hash: hash.finalize().into(), whole: true })
    }

    fn read(&mut self, mut file: &File, offset: u64, size: usize) -> io::Result<&[u8]> {
        self.block.resize(BLOCK, 0);
        file.seek(SeekFrom::Start(offset))?;
        let block = &mut self.block[..size];
        file.read_exact(block).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => changed(),
            _ => error,
        })?;
        Ok(block)
    }
}

/// A file that is not what it was during the walk.
pub(super) fn changed() -> io::Error {
    io::Error::other("it has changed since it was scanned")
}

/// Whether a block consists of zeros.
fn is_zero(block: &[u8]) -> bool {
    // Stretch by stretch, so that the compiler compares many at a time and most blocks end at the
    // first.
    block.chunks(512).all(|stretch| stretch.iter().fold(0, |any, byte| any | byte) == 0)
}
