//! Reading it.

use std::io::{BufRead, Read as _};

use ruzstd::decoding::FrameDecoder;

use super::cbor::{Head, Major, TRUE, Values};
use super::{DATA, HEADS, INDEX, LARGEST, LENGTH, PLACE, SIGNATURE, key, kind};
use crate::Scan;
use crate::document::input::{ImportError, WRONG_CHECKSUM, is_sound};
use crate::document::ncdu::{SYMLINK, TYPE, UNREAD_DIRECTORY, UNREAD_ENTRY, is_other};
use crate::sys::{Kind, Meta};
use crate::tree::{Facts, Imported, Importer, Link};

const FORMAT: &str = "binary export of ncdu";
/// Blocks may decompress to this much, and to as many times the bytes of the file.
const FREE: u64 = 64 << 20;
const TIMES: u64 = 256;

/// Reads the export. It is read into memory whole, as its end says where to begin; blocks are decompressed when an item in them is needed.
pub(in crate::document) fn read(document: impl BufRead, memory: u64) -> Result<Scan, ImportError> {
    let mut bytes = Vec::new();
    document.take(memory.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.capacity() as u64 > memory {
        return Err(ImportError::Memory(memory));
    }
    let (mut blocks, root) = Blocks::new(&bytes, memory)?;
    let held = blocks.held;
    let mut tree = Importer::new();
    // For each directory that has begun: the entry to be read next, and its device.
    let mut open: Vec<(Option<u64>, u64)> = Vec::new();
    let mut next = Some((root, 0));
    // Items that share no byte with another have no more of them than there are.
    let mut taken = 0;
    while let Some((place, device)) = next {
        let (item, decompressed) = blocks.item(place)?;
        if tree.bytes() + held + decompressed > memory {
            return Err(ImportError::Memory(memory));
        }
        taken += item.length;
        if taken > decompressed {
            return Err(damaged(bytes.len(), "its items refer to each other in a circle"));
        }
        if let Some(directory) = open.last_mut() {
            directory.0 = item.previous;
        } else if item.kind != kind::DIRECTORY {
            return Err(damaged(bytes.len(), "its root is no directory"));
        }
        let device = item.device.unwrap_or(device);
        // Below are those that ncdu left out.
        if item.kind >= kind::UNREADABLE {
            let imported = item.imported(device).map_err(|what| damaged(bytes.len(), what))?;
            let is_directory = imported.kind == Kind::Directory;
            tree.take(imported).map_err(|what| damaged(bytes.len(), what))?;
            if is_directory {
                open.push((item.last, device));
            }
        }
        next = loop {
            match open.last() {
                Some(&(Some(place), device)) => break Some((place, device)),
                Some((None, _)) => {
                    tree.close();
                    open.pop();
                }
                None => break None,
            }
        };
    }
    Ok(tree.finish())
}

fn damaged(at: usize, what: impl Into<String>) -> ImportError {
    ImportError::Damaged { format: FORMAT, at: at as u64, what: what.into() }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The file, and what was decompressed of it.
struct Blocks<'a> {
    bytes: &'a [u8],
    index: Vec<Block>,
    /// How many bytes the file and its index have.
    held: u64,
    /// How many bytes all blocks that are needed so far have.
    decompressed: u64,
}

struct Block {
    at: usize,
    length: usize,
    contents: Option<Vec<u8>>,
}

impl<'a> Blocks<'a> {
    /// The blocks, and a reference to the root's item.
    fn new(bytes: &'a [u8], memory: u64) -> Result<(Blocks<'a>, u64), ImportError> {
        let end = bytes.len();
        let head = end.checked_sub(4).and_then(|at| u32_at(bytes, at)).unwrap_or_default();
        let length = (head & LENGTH) as usize;
        let start = end.checked_sub(length).filter(|start| *start >= SIGNATURE.len());
        let same = start.and_then(|start| u32_at(bytes, start)) == Some(head);
        let Some(start) = start.filter(|_| same && head >> 28 == INDEX && length >= HEADS + 8)
        else {
            return Err(damaged(end, "no index is at its end: it was cut, perhaps"));
        };
        let entries = &bytes[start + 4..end - 4];
        // Each is there twice for a moment.
        let each = size_of::<u64>() + size_of::<Block>();
        let held = (end + entries.len() / size_of::<u64>() * each) as u64;
        if held > memory {
            return Err(ImportError::Memory(memory));
        }
        let mut index: Vec<u64> = entries
            .chunks(8)
            .filter_map(|entry| Some(u64::from_be_bytes(entry.try_into().ok()?)))
            .collect();
        let root = index.pop().expect("it has one");
        let place = |entry: u64| Block {
            at: (entry >> PLACE) as usize,
            length: entry as usize & LARGEST,
            contents: None,
        };
        let index = index.into_iter().map(place).collect();
        Ok((Blocks { bytes, index, held, decompressed: 0 }, root))
    }

    /// Makes the contents of a block be there.
    fn decompress(&mut self, number: usize) -> Result<(), ImportError> {
        let end = self.bytes.len();
        let Some(&Block { at, length, ref contents }) = self.index.get(number) else {
            return Err(damaged(
                end,
                format!("an item refers to block {number}, which is not in its index"),
            ));
        };
        if contents.is_none() {
            let decompressed = decompress(self.bytes, at, length, number)?;
            self.decompressed += decompressed.len() as u64;
            if self.decompressed > FREE + TIMES * end as u64 {
                return Err(damaged(
                    at,
                    format!("its blocks decompress to more than {TIMES} times its length"),
                ));
            }
            self.index[number].contents = Some(decompressed);
        }
        Ok(())
    }

    /// An item, and how many bytes were decompressed so far.
    fn item(&mut self, place: u64) -> Result<(Item<'_>, u64), ImportError> {
        let number = usize::try_from(place >> PLACE).unwrap_or(usize::MAX);
        let at = place as usize & LARGEST;
        let block = self.index.get(number).map_or(self.bytes.len(), |block| block.at);
        self.decompress(number)?;
        let decompressed = self.decompressed;
        let contents = self.index[number].contents.as_deref().unwrap_or_default();
        let item = contents.get(at..).and_then(|bytes| Item::read(bytes, place));
        let item =
            item.ok_or_else(|| damaged(block, format!("block {number} has no item at {at}")))?;
        Ok((item, decompressed))
    }
}

fn decompress(
    bytes: &[u8],
    at: usize,
    length: usize,
    number: usize,
) -> Result<Vec<u8>, ImportError> {
    let block = at.checked_add(length).and_then(|end| bytes.get(at..end));
    let block = block.filter(|block| {
        let head = DATA << 28 | length as u32;
        let heads = [u32_at(block, 0), length.checked_sub(4).and_then(|at| u32_at(block, at))];
        length > HEADS + 4 && heads == [Some(head); 2] && u32_at(block, 4) == Some(number as u32)
    });
    let Some(block) = block else {
        return Err(damaged(at, format!("block {number} is not where the index has it")));
    };
    let mut frame = &block[8..length - 4];
    let mut decoder = FrameDecoder::new();
    let mut contents = Vec::new();
    let decoded = decoder.init(&mut frame).map(|()| decoder.content_size());
    let wrong = |error: &dyn std::fmt::Display| {
        damaged(at, format!("block {number} cannot be decompressed: {error}"))
    };
    let size = decoded.map_err(|error| wrong(&error))?;
    if size > LARGEST as u64 {
        return Err(wrong(&"it is too large"));
    }
    contents.reserve(size as usize);
    // One block of the frame after the other, so that no more is made than fits.
    while !decoder.is_finished() && contents.len() <= LARGEST {
        let step = ruzstd::decoding::BlockDecodingStrategy::UptoBlocks(1);
        decoder.decode_blocks(&mut frame, step).map_err(|error| wrong(&error))?;
        decoder.read_to_end(&mut contents)?;
    }
    decoder.read_to_end(&mut contents)?;
    if contents.len() > LARGEST || contents.len() as u64 != size {
        return Err(wrong(&"its length is not what its head says"));
    }
    if !is_sound(&decoder) {
        return Err(wrong(&WRONG_CHECKSUM));
    }
    Ok(contents)
}

/// What an item says.
#[derive(Default)]
struct Item<'b> {
    /// How many bytes it has.
    length: u64,
    kind: i128,
    name: &'b [u8],
    previous: Option<u64>,
    last: Option<u64>,
    apparent: u64,
    disk: u64,
    device: Option<u64>,
    unread: bool,
    inode: Option<u64>,
    links: u32,
    owner: Option<u32>,
    group: Option<u32>,
    mode: Option<u32>,
    modified: Option<i64>,
}

impl<'b> Item<'b> {
    /// Reads the item that begins these bytes, and lies at `place`. What this version does not know is passed over.
    fn read(bytes: &'b [u8], place: u64) -> Option<Item<'b>> {
        let mut values = Values(bytes);
        let map = values.head().filter(|head| head.major == Major::Map)?;
        let mut left = map.argument;
        let mut item = Item::default();
        let mut kind = None;
        while !values.map_ends(&mut left) {
            let name = values.head()?;
            let key = (name.major == Major::Positive).then_some(name.argument).flatten();
            if key.is_none() {
                values.skip(name)?;
            }
            let head = values.head()?;
            let number = || head.number().and_then(|number| u64::try_from(number).ok());
            let small = || head.number().and_then(|number| u32::try_from(number).ok());
            match key {
                Some(key::TYPE) => kind = Some(head.number()?),
                Some(key::NAME) => {
                    item.name = values.string(head)?;
                    continue;
                }
                Some(key::PREVIOUS) => item.previous = Some(reference(head, place)?),
                Some(key::LAST) => item.last = Some(reference(head, place)?),
                Some(key::APPARENT) => item.apparent = number()?,
                Some(key::DISK) => item.disk = number()?,
                Some(key::DEVICE) => item.device = Some(number()?),
                Some(key::UNREAD) => item.unread = head.argument == Some(TRUE),
                Some(key::INODE) => item.inode = Some(number()?),
                Some(key::LINKS) => item.links = small()?,
                Some(key::OWNER) => item.owner = Some(small()?),
                Some(key::GROUP) => item.group = Some(small()?),
                Some(key::MODE) => item.mode = Some(small()?),
                Some(key::MODIFIED) => item.modified = Some(number()? as i64),
                _ => {}
            }
            values.skip(head)?;
        }
        item.kind = kind?;
        item.length = (bytes.len() - values.0.len()) as u64;
        (!item.name.is_empty()).then_some(item)
    }

    fn imported(&self, device: u64) -> Result<Imported<'b>, &'static str> {
        let symlink = self.mode.is_some_and(|mode| mode & TYPE == SYMLINK);
        let kind = match self.kind {
            kind::DIRECTORY => Kind::Directory,
            // Of a file with several names the mode alone says what it is.
            kind::LINK if self.mode.is_some_and(|mode| is_other(mode & TYPE)) => Kind::Other,
            kind::FILE | kind::LINK if !symlink => Kind::File,
            kind::FILE | kind::LINK | kind::OTHER if symlink => Kind::Symlink,
            kind::OTHER => Kind::Other,
            kind::UNREADABLE => Kind::File,
            _ => return Err("an item is of a type that this version does not know"),
        };
        let error = match self.kind {
            kind::DIRECTORY if self.unread => Some(UNREAD_DIRECTORY),
            kind::UNREADABLE => Some(UNREAD_ENTRY),
            _ => None,
        };
        let facts = self.modified.map(|modified| {
            let (owner, group) = (self.owner.unwrap_or(0), self.group.unwrap_or(0));
            Facts::of(&Meta {
                modified,
                mode: self.mode.unwrap_or(0),
                owner,
                group,
                ..Meta::of(kind)
            })
        });
        let inode = self.inode.filter(|_| self.kind == kind::LINK);
        let link = inode.map(|inode| Link { device, inode, links: self.links.max(1) });
        let (name, apparent, disk) = (self.name, self.apparent, self.disk);
        Ok(Imported { name, kind, apparent, disk, link, facts, error })
    }
}

/// A reference to an item, in one at `place`.
fn reference(head: Head, place: u64) -> Option<u64> {
    match head.number()? {
        back @ ..0 => {
            // It stays in the block.
            let at = i128::from(place & LARGEST as u64) + back;
            Some(place & !(LARGEST as u64) | u64::try_from(at).ok()?)
        }
        to => u64::try_from(to).ok(),
    }
}
