//! Reading an export. The arrays are followed here, so that no depth is too deep; each object
//! within them is `serde_json`'s.

use std::fmt;
use std::io::{BufRead, BufReader, Read};

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};

use super::{FORMAT, SYMLINK, TYPE, UNREAD_DIRECTORY, UNREAD_ENTRY};
use crate::Scan;
use crate::document::input::{Counted, ImportError};
use crate::sys::{Kind, Meta};
use crate::tree::{Facts, Imported, Importer, Link};

/// The most bytes that an object may have: a path that was given, and members that are not known.
const LARGEST: u64 = 1 << 20;

/// Bytes of a string, whether they are UTF-8 or not.
#[derive(Debug, Default)]
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.into()))
            }
            fn visit_str<E>(self, text: &str) -> Result<Bytes, E> {
                Ok(Bytes(text.into()))
            }
        }
        from.deserialize_byte_buf(Any)
    }
}

/// Seconds since 1970. ncdu writes a time before that as the 64 bits that it has, without a sign;
/// other programs write a sign, or a fraction.
#[derive(Clone, Copy, Debug, Default)]
struct Seconds(i64);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Seconds, D::Error> {
        let number = serde_json::Number::deserialize(from)?;
        let whole = number.as_i64().or(number.as_u64().map(|bits| bits as i64));
        let seconds = whole.or(number.as_f64().map(|seconds| seconds.floor() as i64));
        Ok(Seconds(seconds.unwrap_or(0)))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    timestamp: Seconds,
}

#[derive(Debug, Deserialize)]
struct Item {
    name: Bytes,
    #[serde(default)]
    asize: u64,
    #[serde(default)]
    dsize: u64,
    dev: Option<u64>,
    ino: Option<u64>,
    #[serde(default)]
    hlnkc: bool,
    #[serde(default)]
    nlink: u64,
    #[serde(default)]
    notreg: bool,
    mode: Option<u32>,
    mtime: Option<Seconds>,
    #[serde(default)]
    uid: u32,
    #[serde(default)]
    gid: u32,
    #[serde(default)]
    read_error: bool,
    excluded: Option<serde::de::IgnoredAny>,
}

/// A directory's array that has begun.
struct Array {
    /// The values that its entries inherit.
    device: u64,
    /// Whether it is left out, with all that is in it.
    excluded: bool,
}

struct Reader<R> {
    source: Counted<BufReader<R>>,
    /// How much memory may be taken.
    memory: u64,
}

/// Reads the export.
pub(in crate::document) fn read(document: impl BufRead, memory: u64) -> Result<Scan, ImportError> {
    let source = Counted { reader: BufReader::with_capacity(1 << 16, document), at: 0 };
    let mut reader = Reader { source, memory };
    reader.expect(b'[')?;
    let major = reader.number()?;
    if major != 1 {
        return Err(reader.damaged(format!("its major version is {major}; 1 is read")));
    }
    reader.expect(b',')?;
    reader.number()?;
    reader.expect(b',')?;
    let metadata: Metadata = reader.object(memory)?;
    reader.expect(b',')?;
    let mut scan = reader.directory()?;
    reader.expect(b']')?;
    if let Some(byte) = reader.peek()? {
        return Err(reader.damaged(format!("{:?} follows its end", byte as char)));
    }
    scan.taken = u64::try_from(metadata.timestamp.0).unwrap_or(0);
    Ok(scan)
}

impl<R: Read> Reader<R> {
    /// Reads a directory's array to its end, and all that is in it.
    fn directory(&mut self) -> Result<Scan, ImportError> {
        let memory = self.memory;
        let mut tree = Importer::new();
        let mut arrays: Vec<Array> = Vec::new();
        self.begin(&mut tree, &mut arrays, memory)?;
        while !arrays.is_empty() {
            let Some(left) = memory.checked_sub(tree.bytes()) else {
                return Err(ImportError::Memory(memory));
            };
            match self.next()? {
                b']' => {
                    let ended = arrays.pop();
                    if ended.is_some_and(|array| !array.excluded) {
                        tree.close();
                    }
                }
                b',' => match self.peek()? {
                    Some(b'[') => self.begin(&mut tree, &mut arrays, left)?,
                    Some(b'{') => self.item(&mut tree, &mut arrays, false, left)?,
                    _ => return Err(self.unexpected("an entry")),
                },
                _ => return Err(self.unexpected("`,` or `]`")),
            }
        }
        Ok(tree.finish())
    }

    fn begin(
        &mut self,
        tree: &mut Importer,
        arrays: &mut Vec<Array>,
        memory: u64,
    ) -> Result<(), ImportError> {
        self.expect(b'[')?;
        self.item(tree, arrays, true, memory)
    }

    fn item(
        &mut self,
        tree: &mut Importer,
        arrays: &mut Vec<Array>,
        directory: bool,
        memory: u64,
    ) -> Result<(), ImportError> {
        let item: Item = self.object(memory)?;
        let above = arrays.last();
        let device = item.dev.or(above.map(|above| above.device)).unwrap_or(0);
        let excluded = item.excluded.is_some() || above.is_some_and(|above| above.excluded);
        if directory {
            arrays.push(Array { device, excluded });
        }
        if excluded {
            return Ok(());
        }
        let kind = match item.mode.map(|mode| mode & TYPE) {
            _ if directory => Kind::Directory,
            Some(SYMLINK) => Kind::Symlink,
            _ if item.notreg => Kind::Other,
            _ => Kind::File,
        };
        let several = !directory && (item.hlnkc || item.nlink > 1);
        let links = item.nlink.try_into().unwrap_or(u32::MAX).max(1);
        let link = item.ino.filter(|_| several).map(|inode| Link { device, inode, links });
        let error = item.read_error.then_some(match kind {
            Kind::Directory => UNREAD_DIRECTORY,
            _ => UNREAD_ENTRY,
        });
        let facts = item.mtime.map(|Seconds(modified)| {
            let (mode, owner, group) = (item.mode.unwrap_or(0), item.uid, item.gid);
            Facts::of(&Meta { modified, mode, owner, group, ..Meta::of(kind) })
        });
        let (name, apparent, disk) = (&item.name.0[..], item.asize, item.dsize);
        let taken = tree.take(Imported { name, kind, apparent, disk, link, facts, error });
        taken.map_err(|what| self.damaged(what.to_owned()))
    }

    /// Reads an object of at most `memory` bytes and [`LARGEST`]: it may hold them all in a name.
    fn object<T: for<'de> Deserialize<'de>>(&mut self, memory: u64) -> Result<T, ImportError> {
        if self.peek()? != Some(b'{') {
            return Err(self.unexpected("`{`"));
        }
        let mut source = (&mut self.source).take(memory.min(LARGEST));
        let mut json = serde_json::Deserializer::from_reader(&mut source);
        match T::deserialize(&mut json) {
            Ok(object) => Ok(object),
            Err(error) if error.is_eof() && source.limit() == 0 => Err(if memory <= LARGEST {
                ImportError::Memory(memory)
            } else {
                self.damaged(format!("an entry has more than {LARGEST} bytes"))
            }),
            Err(error) if error.is_io() => Err(std::io::Error::from(error).into()),
            Err(error) => {
                // It counts lines from the object's first.
                let text = error.to_string();
                let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
                Err(self.damaged(what.to_owned()))
            }
        }
    }

    fn number(&mut self) -> Result<u64, ImportError> {
        let mut number = None;
        while let Some(byte @ b'0'..=b'9') = self.peek()? {
            self.eat();
            let digit = u64::from(byte - b'0');
            number = Some(number.unwrap_or(0_u64).saturating_mul(10).saturating_add(digit));
        }
        number.ok_or_else(|| self.unexpected("a number"))
    }

    fn expect(&mut self, byte: u8) -> Result<(), ImportError> {
        if self.peek()? != Some(byte) {
            return Err(self.unexpected(&format!("`{}`", byte as char)));
        }
        self.eat();
        Ok(())
    }

    /// The next byte that is not white space.
    fn next(&mut self) -> Result<u8, ImportError> {
        let byte = self.peek()?.ok_or_else(|| self.unexpected("`,` or `]`"))?;
        if matches!(byte, b',' | b']') {
            self.eat();
        }
        Ok(byte)
    }

    /// The next byte that is not white space, which is left where it is.
    fn peek(&mut self) -> Result<Option<u8>, ImportError> {
        loop {
            match self.source.reader.fill_buf()?.first() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.eat(),
                byte => return Ok(byte.copied()),
            }
        }
    }

    fn eat(&mut self) {
        self.source.reader.consume(1);
        self.source.at += 1;
    }

    fn unexpected(&mut self, expected: &str) -> ImportError {
        match self.peek() {
            Err(error) => error,
            Ok(None) => self.damaged(format!("it ends where {expected} is expected")),
            Ok(Some(byte)) => {
                // A quote needs no escape here.
                let found = match byte {
                    b'"' | b'\'' => char::from(byte).to_string(),
                    _ => byte.escape_ascii().to_string(),
                };
                self.damaged(format!("{expected} is expected where `{found}` stands"))
            }
        }
    }

    fn damaged(&self, what: String) -> ImportError {
        ImportError::Damaged { format: FORMAT, at: self.source.at, what }
    }
}
