//! Reading an export.

use std::collections::{HashSet, VecDeque};
use std::io::{BufRead, Cursor, Read, Seek, SeekFrom};

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

/// Reads the export. It is read into memory whole, as its end says where to begin; blocks are
/// decompressed when an item in them is needed.
pub(in crate::document) fn read(document: impl BufRead, memory: u64) -> Result<Scan, ImportError> {
    let mut bytes = Vec::new();
    document.take(memory.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.capacity() as u64 > memory {
        return Err(ImportError::Memory(memory));
    }
    let length = bytes.len() as u64;
    let blocks = Blocks::new(Box::new(Cursor::new(bytes)), memory - length, u64::MAX);
    let (mut blocks, root) = blocks.map_err(|error| match error {
        ImportError::Memory(_) => ImportError::Memory(memory),
        error => error,
    })?;
    let held = length + blocks.held;
    let mut tree = Importer::new();
    // For each directory that has begun: the entry to be read next, and its device.
    let mut open: Vec<(Option<u64>, u64)> = Vec::new();
    let mut next = Some((root, 0));
    // Items that do not overlap have together at most the bytes that were decompressed.
    let mut taken = 0;
    while let Some((place, device)) = next {
        let (item, decompressed) = blocks.item(place)?;
        if tree.bytes() + held + decompressed > memory {
            return Err(ImportError::Memory(memory));
        }
        if decompressed > FREE + TIMES * length {
            let what = format!("its blocks decompress to more than {TIMES} times its length");
            return Err(damaged(length, what));
        }
        taken += item.length;
        if taken > decompressed {
            return Err(damaged(length, CIRCLE));
        }
        if let Some(directory) = open.last_mut() {
            directory.0 = item.previous;
        } else if item.kind != kind::DIRECTORY {
            return Err(damaged(length, NO_ROOT));
        }
        let device = item.device.unwrap_or(device);
        // Below are those that ncdu left out.
        if item.kind >= kind::UNREADABLE {
            let imported = item.imported(device).map_err(|what| damaged(length, what))?;
            let is_directory = imported.kind == Kind::Directory;
            tree.take(imported).map_err(|what| damaged(length, what))?;
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

const CIRCLE: &str = "its items refer to each other in a circle";
/// Blocks that do not fit into memory together refer to each other, item by item.
const AGAIN: &str = "its blocks would be decompressed again and again to list one directory";
const NO_ROOT: &str = "its root is no directory";

fn damaged(at: u64, what: impl Into<String>) -> ImportError {
    ImportError::Damaged { format: FORMAT, at, what: what.into() }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The source of an export.
pub(crate) trait Source: Read + Seek {}

impl<S: Read + Seek> Source for S {}

/// The file, and what was decompressed of it.
pub(crate) struct Blocks {
    from: Box<dyn Source>,
    /// How many bytes the file has.
    length: u64,
    index: Vec<Block>,
    /// How many bytes the index has in memory.
    held: u64,
    /// How many bytes were decompressed, those that were dropped since included.
    decompressed: u64,
    /// The blocks whose contents are held, the one that was asked for last at the end, and what
    /// they [count](charge).
    recent: VecDeque<usize>,
    charged: u64,
    /// How much that is at most, but for one block.
    most: u64,
}

struct Block {
    at: u64,
    length: usize,
    contents: Option<Vec<u8>>,
}

/// The part of a directory that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directory {
    /// A reference to its last entry.
    last: Option<u64>,
    device: u64,
}

/// An entry, as it lies in the file.
pub(crate) struct Entry<'b> {
    pub(crate) imported: Imported<'b>,
    /// Sums of a directory, itself included: by length, on disk, and how many entries are in it.
    pub(crate) all: (u64, u64, u64),
    /// Whether something in a directory could not be read.
    pub(crate) unread: bool,
    /// A reference to it.
    pub(crate) place: u64,
    pub(crate) directory: Directory,
}

impl Blocks {
    /// The blocks of a file, of whose contents `most` bytes are kept, and a reference to the root's
    /// item.
    fn new(
        mut from: Box<dyn Source>,
        memory: u64,
        most: u64,
    ) -> Result<(Blocks, u64), ImportError> {
        let end = from.seek(SeekFrom::End(0))?;
        let mut last = [0; 4];
        if let Some(at) = end.checked_sub(4) {
            from.seek(SeekFrom::Start(at))?;
            from.read_exact(&mut last)?;
        }
        let head = u32::from_be_bytes(last);
        let length = (head & LENGTH) as usize;
        let start = end.checked_sub(length as u64).filter(|it| *it >= SIGNATURE.len() as u64);
        let Some(start) = start.filter(|_| head >> 28 == INDEX && length >= HEADS + 8) else {
            return Err(damaged(end, CUT));
        };
        // Each is there twice for a moment.
        let each = size_of::<u64>() + size_of::<Block>();
        let held = ((length - HEADS) / size_of::<u64>() * each) as u64;
        if held > memory {
            return Err(ImportError::Memory(memory));
        }
        let mut block = vec![0; length];
        from.seek(SeekFrom::Start(start))?;
        from.read_exact(&mut block)?;
        if u32_at(&block, 0) != Some(head) {
            return Err(damaged(end, CUT));
        }
        let entries = block[4..length - 4].chunks_exact(8);
        let mut index: Vec<u64> =
            entries.filter_map(|entry| Some(u64::from_be_bytes(entry.try_into().ok()?))).collect();
        let root = index.pop().expect("it has one");
        let place = |entry: u64| {
            let (at, length) = (entry >> PLACE, entry as usize & LARGEST);
            Block { at, length, contents: None }
        };
        let index = index.into_iter().map(place).collect();
        let (recent, length) = (VecDeque::new(), end);
        let (decompressed, charged) = (0, 0);
        Ok((Blocks { from, length, index, held, decompressed, recent, charged, most }, root))
    }

    /// An export whose blocks are read when they are asked for, and its root. Nothing, if it is
    /// none.
    pub(crate) fn open(
        mut from: Box<dyn Source>,
        memory: u64,
        most: u64,
    ) -> Result<Option<(Blocks, u64)>, ImportError> {
        let mut begins = Vec::new();
        from.seek(SeekFrom::Start(0))?;
        from.by_ref().take(SIGNATURE.len() as u64).read_to_end(&mut begins)?;
        if begins != SIGNATURE {
            return Ok(None);
        }
        Blocks::new(from, memory, most).map(Some)
    }

    /// Makes the contents of a block be there.
    fn decompress(&mut self, number: usize) -> Result<(), ImportError> {
        let end = self.length;
        let Some(&Block { at, length, ref contents }) = self.index.get(number) else {
            return Err(damaged(
                end,
                format!("an item refers to block {number}, which is not in its index"),
            ));
        };
        if contents.is_none() {
            let mut block = Vec::new();
            if at.checked_add(length as u64).is_some_and(|behind| behind <= end) {
                block.resize(length, 0);
                self.from.seek(SeekFrom::Start(at))?;
                self.from.read_exact(&mut block)?;
            }
            let decompressed = decompress(&block, at, number)?;
            self.decompressed += decompressed.len() as u64;
            self.charged += charge(&decompressed);
            self.index[number].contents = Some(decompressed);
            self.recent.push_back(number);
            while self.charged > self.most && self.recent.len() > 1 {
                let oldest = self.recent.pop_front().and_then(|it| self.index[it].contents.take());
                self.charged -= oldest.map_or(0, |contents| charge(&contents));
            }
        } else if self.most < u64::MAX && self.recent.back() != Some(&number) {
            self.recent.retain(|&other| other != number);
            self.recent.push_back(number);
        }
        Ok(())
    }

    /// An item, and how many bytes were decompressed so far.
    fn item(&mut self, place: u64) -> Result<(Item<'_>, u64), ImportError> {
        let number = usize::try_from(place >> PLACE).unwrap_or(usize::MAX);
        let at = place as usize & LARGEST;
        let block = self.index.get(number).map_or(self.length, |block| block.at);
        self.decompress(number)?;
        let decompressed = self.decompressed;
        let contents = self.index[number].contents.as_deref().unwrap_or_default();
        let item = contents.get(at..).and_then(|bytes| Item::read(bytes, place));
        let item =
            item.ok_or_else(|| damaged(block, format!("block {number} has no item at {at}")))?;
        Ok((item, decompressed))
    }

    /// The entry that is the root.
    pub(crate) fn root(&mut self, root: u64) -> Result<Entry<'_>, ImportError> {
        let end = self.length;
        let (item, _) = self.item(root)?;
        if item.kind != kind::DIRECTORY {
            return Err(damaged(end, NO_ROOT));
        }
        item.entry(root, 0).map_err(|what| damaged(end, what))
    }

    /// Calls `each` for each entry of a directory, the last one first, until `each` breaks.
    pub(crate) fn each(
        &mut self,
        directory: Directory,
        each: &mut dyn FnMut(Entry<'_>) -> bool,
    ) -> Result<(), ImportError> {
        let end = self.length;
        let mut next = directory.last;
        let most = self.decompressed + FREE + TIMES * end;
        // The blocks that it came to, their bytes, and the bytes of the items.
        let (mut met, mut there, mut taken) = (HashSet::new(), 0, 0);
        while let Some(place) = next {
            let (item, decompressed) = self.item(place)?;
            if decompressed > most {
                return Err(damaged(end, AGAIN));
            }
            taken += item.length;
            next = item.previous;
            let goes_on = if item.kind >= kind::UNREADABLE {
                each(item.entry(place, directory.device).map_err(|what| damaged(end, what))?)
            } else {
                true
            };
            let number = (place >> PLACE) as usize;
            if met.insert(number) {
                there += self.index[number].contents.as_ref().map_or(0, Vec::len) as u64;
            }
            if taken > there {
                return Err(damaged(end, CIRCLE));
            }
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// The entry of a directory that lies at a place which [`each`](Self::each) has told.
    pub(crate) fn at(
        &mut self,
        place: u64,
        directory: Directory,
    ) -> Result<Entry<'_>, ImportError> {
        let end = self.length;
        let (item, _) = self.item(place)?;
        item.entry(place, directory.device).map_err(|what| damaged(end, what))
    }

    /// How many bytes of memory the index takes.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }
}

/// The cost of a block's contents. It limits the number of small blocks that are held, too: all
/// held blocks are looked through for each block that is asked for.
fn charge(contents: &[u8]) -> u64 {
    contents.len().max(64 << 10) as u64
}

/// The error for an item that lies in itself.
pub(crate) fn circle() -> ImportError {
    damaged(0, CIRCLE)
}

const CUT: &str = "no index is at its end: it was cut, perhaps";

/// The contents of a block that lies `at` a place of the file.
fn decompress(block: &[u8], at: u64, number: usize) -> Result<Vec<u8>, ImportError> {
    let length = block.len();
    let block = Some(block).filter(|block| {
        let head = DATA << 28 | length as u32;
        let heads = [u32_at(block, 0), length.checked_sub(4).and_then(|at| u32_at(block, at))];
        length > HEADS + 4 && heads == [Some(head); 2] && u32_at(block, 4) == Some(number as u32)
    });
    let Some(block) = block else {
        return Err(damaged(at, format!("block {number} is not where the index has it")));
    };
    let mut frame = &block[8..length - 4];
    let mut decoder = FrameDecoder::new();
    // What is too large for a block needs no room.
    decoder.set_max_window_size(LARGEST as u64 + 1);
    let mut contents = Vec::new();
    let decoded = decoder.init(&mut frame).map(|()| decoder.content_size());
    let wrong = |error: &dyn std::fmt::Display| {
        damaged(at, format!("block {number} cannot be decompressed: {error}"))
    };
    let size = decoded.map_err(|error| wrong(&error))?;
    if size > LARGEST as u64 {
        return Err(wrong(&"it is too large"));
    }
    // Not more at first than an ordinary block has.
    contents.reserve(size.min(ORDINARY) as usize);
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

/// The most contents that ncdu puts into a block.
const ORDINARY: u64 = 2 << 20;

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
    /// Sums of a directory, and how many entries are in it.
    all: [Option<u64>; 3],
    /// Whether it could not be read, or what is in it.
    unread: Option<bool>,
    inode: Option<u64>,
    links: u32,
    owner: Option<u32>,
    group: Option<u32>,
    mode: Option<u32>,
    modified: Option<i64>,
}

impl<'b> Item<'b> {
    /// Reads the item that begins these bytes, and lies at `place`. What this version does not know
    /// is passed over.
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
                Some(key::UNREAD) => item.unread = Some(head.argument == Some(TRUE)),
                Some(key::ALL_APPARENT) => item.all[0] = Some(number()?),
                Some(key::ALL_DISK) => item.all[1] = Some(number()?),
                Some(key::ITEMS) => item.all[2] = Some(number()?),
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

    /// The entry that it is, in a directory that lies on `device`.
    fn entry(self, place: u64, device: u64) -> Result<Entry<'b>, &'static str> {
        let device = self.device.unwrap_or(device);
        let imported = self.imported(device)?;
        let [apparent, disk, items] = self.all;
        let all = (
            apparent.unwrap_or(self.apparent),
            disk.unwrap_or(self.disk),
            items.unwrap_or_default(),
        );
        let unread = imported.error.is_some() || self.unread.is_some();
        let directory = Directory { last: self.last, device };
        Ok(Entry { imported, all, unread, place, directory })
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
            kind::DIRECTORY if self.unread == Some(true) => Some(UNREAD_DIRECTORY),
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
