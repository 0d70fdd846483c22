//! Writing a snapshot.

use std::io::{self, BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{MAGIC, STRING, VERSION, flag, rounded, tag};
use crate::document::entries::{Entries, Order};
use crate::document::needs_files;
use crate::report::Extent;
use crate::{Kind, Scan};

/// Writes the snapshot.
///
/// # Errors
///
/// The writer's own; and [`io::ErrorKind::InvalidInput`] of a scan without
/// [`Options::keep_files`](crate::Options::keep_files), or with a path of more than 1,048,576
/// bytes.
pub fn snapshot(scan: &Scan, out: &mut impl Write) -> io::Result<()> {
    snapshot_to(scan, out)
}

fn snapshot_to(scan: &Scan, mut out: &mut dyn Write) -> io::Result<()> {
    let out = &mut out;
    needs_files(scan)?;
    out.write_all(&MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    let gzip = GzEncoder::new(out, Compression::default());
    let mut out = Fields(BufWriter::with_capacity(1 << 16, gzip));
    head(scan, &mut out)?;

    let keep_facts = scan.options.keep_facts;
    let mut open = 0;
    for entry in Entries::new(scan, &Extent::default(), Order::Name) {
        for _ in entry.depth..open {
            out.number(0)?;
        }
        let node = entry.node;
        open = entry.depth + usize::from(node.kind() == Kind::Directory);
        let (apparent, disk) = node.own();
        let file = node.link();
        let is_rounded = rounded(apparent) == Some(disk);
        let several = if file.is_some() { tag::SEVERAL } else { 0 };
        let length = if is_rounded { tag::ROUNDED } else { 0 };
        out.number((node.kind() as u64 + 1) | several | length)?;
        out.string(node.name())?;
        out.number(apparent)?;
        if !is_rounded {
            out.number(disk)?;
        }
        if let Some(file) = file {
            out.number(file.device)?;
            out.number(file.inode)?;
        }
        if keep_facts {
            let facts = node.facts().unwrap_or_default();
            let modified = facts.modified();
            out.number((modified << 1 ^ modified >> 63) as u64)?;
            for fact in [facts.mode().into(), facts.owner(), facts.group()] {
                out.number(fact.into())?;
            }
        }
    }
    for _ in 0..=open {
        out.number(0)?;
    }
    let it = &scan.totals;
    for total in [it.directories, it.files, it.symlinks, it.other, it.apparent_bytes, it.disk_bytes]
    {
        out.number(total)?;
    }
    let gzip = out.0.into_inner().map_err(io::IntoInnerError::into_error)?;
    gzip.finish().map(drop)
}

fn head(scan: &Scan, out: &mut Fields<impl Write>) -> io::Result<()> {
    let flags = [
        (scan.interrupted, flag::INTERRUPTED),
        (scan.options.one_file_system, flag::ONE_FILE_SYSTEM),
        (scan.options.follow_paths, flag::FOLLOW_PATHS),
        (scan.options.keep_facts, flag::FACTS),
    ];
    out.string(env!("CARGO_PKG_VERSION").as_bytes())?;
    out.number(scan.taken)?;
    out.number(scan.elapsed.as_nanos().try_into().unwrap_or(u64::MAX))?;
    out.string(scan.engine.name().as_bytes())?;
    out.number(scan.threads as u64)?;
    out.number(flags.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum())?;
    out.number(scan.repeated.len() as u64)?;
    for path in &scan.repeated {
        out.string(path.as_os_str().as_encoded_bytes())?;
    }
    out.number(scan.errors.len() as u64)?;
    for failure in &scan.errors {
        out.string(&failure.path)?;
        out.string(failure.message.as_bytes())?;
    }
    Ok(())
}

struct Fields<W>(W);

impl<W: Write> Fields<W> {
    fn number(&mut self, mut number: u64) -> io::Result<()> {
        let mut bytes = [0; 10];
        let mut length = 0;
        loop {
            let more = number > 0x7f;
            bytes[length] = (number & 0x7f) as u8 | u8::from(more) << 7;
            length += 1;
            number >>= 7;
            if !more {
                return self.0.write_all(&bytes[..length]);
            }
        }
    }

    fn string(&mut self, string: &[u8]) -> io::Result<()> {
        if string.len() as u64 > STRING {
            let message = "a snapshot holds no path of more than 1,048,576 bytes";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.number(string.len() as u64)?;
        self.0.write_all(string)
    }
}
