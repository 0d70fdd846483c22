//! Reading a snapshot.

use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::time::Duration;

use flate2::bufread::GzDecoder;

use super::{MAGIC, STRING, VERSION, flag, rounded, tag};
use crate::document::input::{Counted, ImportError};
use crate::sys::{Kind, Meta};
use crate::tree::{Facts, Imported, Importer, Link};
use crate::{Failure, Options, Scan};

/// Reads the snapshot, which begins with [`MAGIC`].
pub(in crate::document) fn read(
    mut document: impl BufRead,
    memory: u64,
) -> Result<Scan, ImportError> {
    let mut start = [0; MAGIC.len() + 4];
    document.read_exact(&mut start).map_err(|error| told(error, 0))?;
    let version = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
    if version != VERSION {
        return Err(damaged(8, format!("its version is {version}; {VERSION} is read")));
    }
    let contents = BufReader::with_capacity(1 << 16, GzDecoder::new(&mut document));
    let mut fields = Fields(Counted { reader: contents, at: 0 });
    let head = head(&mut fields, memory)?;
    let entries = entries(&mut fields, head.options.keep_facts, memory)?;
    let it = &entries.totals;
    let counted =
        [it.directories, it.files, it.symlinks, it.other, it.apparent_bytes, it.disk_bytes];
    for total in counted {
        if fields.number()? != total {
            return Err(damaged(fields.0.at, "its totals are not those of its entries"));
        }
    }
    // The checksum is compared where the contents end.
    let mut ends = fields.byte()?.is_none();
    let at = fields.0.at;
    ends &= document.fill_buf()?.is_empty();
    if !ends {
        return Err(damaged(at, "something follows its end"));
    }
    let mut scan = Scan { totals: entries.totals, tree: entries.tree, ..head };
    scan.totals.errors = scan.errors.len() as u64;
    Ok(scan)
}

fn head(from: &mut Fields<impl Read>, memory: u64) -> Result<Scan, ImportError> {
    from.string()?;
    let (taken, elapsed) = (from.number()?, Duration::from_nanos(from.number()?));
    // A name of another version is no reason to refuse what was found.
    let engine = String::from_utf8_lossy(&from.string()?).parse().unwrap_or_default();
    let threads = from.number()? as usize;
    let flags = from.number()?;
    let is_set = |bit: u64| flags & bit != 0;
    let mut scan = Scan {
        taken,
        elapsed,
        engine,
        threads,
        interrupted: is_set(flag::INTERRUPTED),
        options: Options {
            engine,
            one_file_system: is_set(flag::ONE_FILE_SYSTEM),
            follow_paths: is_set(flag::FOLLOW_PATHS),
            keep_files: true,
            keep_facts: is_set(flag::FACTS),
            ..Options::default()
        },
        ..Scan::default()
    };
    // Of a path: its bytes, and what it and its message take beside them, as vectors grow.
    let mut held = 0;
    let mut hold = |bytes: usize| {
        held += bytes as u64 + 96;
        if held > memory { Err(ImportError::Memory(memory)) } else { Ok(()) }
    };
    for _ in 0..from.number()? {
        scan.repeated.push(path(from.path()?));
        hold(scan.repeated[scan.repeated.len() - 1].as_os_str().len())?;
    }
    for _ in 0..from.number()? {
        let path = from.path()?;
        let message = String::from_utf8_lossy(&from.string()?).into_owned();
        hold(path.len() + message.len())?;
        scan.errors.push(Failure { path, message });
    }
    Ok(scan)
}

fn entries(
    from: &mut Fields<impl Read>,
    has_facts: bool,
    memory: u64,
) -> Result<Scan, ImportError> {
    let mut tree = Importer::new();
    loop {
        if tree.bytes() > memory {
            return Err(ImportError::Memory(memory));
        }
        let bits = from.number()?;
        let kind = match bits & tag::KIND {
            0 if bits == 0 && tree.depth() == 0 => return Ok(tree.finish()),
            0 if bits == 0 => {
                tree.close();
                continue;
            }
            1 => Kind::Directory,
            2 => Kind::File,
            3 => Kind::Symlink,
            4 => Kind::Other,
            _ => return Err(damaged(from.0.at, format!("there is no tag {bits}"))),
        };
        if bits > (tag::KIND | tag::SEVERAL | tag::ROUNDED) {
            return Err(damaged(from.0.at, format!("there is no tag {bits}")));
        }
        let name = from.string()?;
        let apparent = from.number()?;
        let disk = match bits & tag::ROUNDED {
            0 => from.number()?,
            _ => rounded(apparent).ok_or_else(|| damaged(from.0.at, "a length is too large"))?,
        };
        let link = match bits & tag::SEVERAL {
            0 => None,
            _ => Some(Link { device: from.number()?, inode: from.number()?, links: 1 }),
        };
        let facts = if has_facts { Some(facts(from, kind)?) } else { None };
        let entry = Imported { name: &name, kind, apparent, disk, link, facts, error: None };
        tree.take(entry).map_err(|what| damaged(from.0.at, what))?;
    }
}

fn facts(from: &mut Fields<impl Read>, kind: Kind) -> Result<Facts, ImportError> {
    let modified = from.number()?;
    let modified = (modified >> 1) as i64 ^ -((modified & 1) as i64);
    let mut small = [0_u32; 3];
    for number in &mut small {
        *number = u32::try_from(from.number()?)
            .map_err(|_| damaged(from.0.at, "a number is longer than 32 bits"))?;
    }
    let [mode, owner, group] = small;
    Ok(Facts::of(&Meta { modified, mode, owner, group, ..Meta::of(kind) }))
}

struct Fields<R>(Counted<R>);

impl<R: Read> Fields<R> {
    /// The next byte, or none at the end.
    fn byte(&mut self) -> Result<Option<u8>, ImportError> {
        let mut byte = [0];
        let at = self.0.at;
        match self.0.read(&mut byte) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(byte[0])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.byte(),
            Err(error) => Err(told(error, at)),
        }
    }

    fn number(&mut self) -> Result<u64, ImportError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?.ok_or_else(|| damaged(self.0.at, CUT))?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(damaged(self.0.at, "a number is longer than 64 bits"))
    }

    /// A string that is not empty: lists of nothing at all would take far more memory than a
    /// document has bytes.
    fn path(&mut self) -> Result<Vec<u8>, ImportError> {
        let path = self.string()?;
        if path.is_empty() {
            return Err(damaged(self.0.at, "a path is empty"));
        }
        Ok(path)
    }

    fn string(&mut self) -> Result<Vec<u8>, ImportError> {
        let length = self.number()?;
        let at = self.0.at;
        if length > STRING {
            return Err(damaged(at, format!("a string of {length} bytes is too long")));
        }
        let mut string = Vec::new();
        (&mut self.0).take(length).read_to_end(&mut string).map_err(|error| told(error, at))?;
        if (string.len() as u64) < length {
            return Err(damaged(self.0.at, CUT));
        }
        Ok(string)
    }
}

const FORMAT: &str = "snapshot";
const CUT: &str = "it ends too soon";

fn damaged(at: u64, what: impl Into<String>) -> ImportError {
    ImportError::Damaged { format: FORMAT, at, what: what.into() }
}

/// What an error of the decompression says of the file.
fn told(error: io::Error, at: u64) -> ImportError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(at, CUT),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => damaged(at, error.to_string()),
        _ => error.into(),
    }
}

#[cfg(unix)]
fn path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn path(bytes: Vec<u8>) -> PathBuf {
    use std::string::FromUtf8Error;
    let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
    String::from_utf8(bytes).unwrap_or_else(lossy).into()
}
