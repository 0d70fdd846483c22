//! Writing an export.

use std::collections::HashMap;
use std::io::{self, Write};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::cbor::{self, Major};
use super::{DATA, HEADS, INDEX, LARGEST, PLACE, SIGNATURE, key, kind};
use crate::document::ncdu::mode_of;
use crate::document::needs_files;
use crate::report::Extent;
use crate::{Kind, Node, Scan};

/// A block ends with the item that makes it this long, as ncdu's smallest do.
const BLOCK: usize = 64 << 10;

/// Writes ncdu's binary export. It holds everything that the scan found, in compressed blocks: ncdu
/// 2.6 and later shows it without reading all of it.
///
/// # Errors
///
/// The writer's own; and [`io::ErrorKind::InvalidInput`] of a scan without
/// [`Options::keep_files`](crate::Options::keep_files).
pub fn ncdu_binary(scan: &Scan, out: &mut impl Write) -> io::Result<()> {
    write_to(scan, out)
}

fn write_to(scan: &Scan, out: &mut dyn Write) -> io::Result<()> {
    needs_files(scan)?;
    let mut blocks = Blocks { out, at: 0, raw: Vec::new(), index: Vec::new() };
    blocks.put(&SIGNATURE)?;
    let roots: Vec<Node<'_>> = scan.tree.roots().collect();
    let mut levels = match roots[..] {
        [root] if root.kind() == Kind::Directory => vec![Level::of(root, 0)],
        _ => vec![Level::new(None, roots, 0)],
    };
    // What an interrupted scan has not read lies anywhere below.
    levels[0].part = scan.interrupted;
    let root = loop {
        let level = levels.last_mut().expect("the first is left by the break");
        let node = level.inside.get(level.next).copied();
        level.next += usize::from(node.is_some());
        match node {
            Some(node) if node.kind() == Kind::Directory => {
                let below = Level::of(node, level.device);
                levels.push(below);
            }
            Some(_) => {}
            None => {
                let mut ended = levels.pop().expect("it is there");
                blocks.entries(&mut ended)?;
                match levels.last_mut() {
                    Some(above) => above.take(ended),
                    None => break blocks.directory(&ended.end().0, None, None)?,
                }
            }
        }
    };
    blocks.finish(root)
}

/// A directory whose entries are being written.
struct Level<'s> {
    /// None for the row above several given paths, or above a given path that is a file.
    node: Option<Node<'s>>,
    /// Its entries, and which of them is looked at next.
    inside: Vec<Node<'s>>,
    next: usize,
    /// The directories among them whose entries were written.
    ended: Vec<Ended<'s>>,
    device: u64,
    /// The item that was written last.
    last: Option<u64>,
    /// Sums of what has been written, without files that have several names.
    apparent: u64,
    disk: u64,
    items: u64,
    /// The files that have several names: how many of them were seen, of how many, and the file's
    /// bytes.
    links: HashMap<(u64, u64), Several>,
    /// Whether something below could not be read.
    unread: bool,
    /// Whether it is the whole of a scan that was interrupted.
    part: bool,
}

/// A directory whose entries were written, and which is to be written itself.
struct Ended<'s> {
    node: Option<Node<'s>>,
    device: u64,
    last: Option<u64>,
    /// By length and on disk.
    all: (u64, u64),
    shared: (u64, u64),
    items: u64,
    unread: bool,
    part: bool,
}

#[derive(Clone, Copy)]
struct Several {
    seen: u32,
    links: u32,
    apparent: u64,
    disk: u64,
}

impl<'s> Level<'s> {
    /// A directory within a directory on `device`.
    fn of(directory: Node<'s>, device: u64) -> Level<'s> {
        let mut inside = Extent::default().inside(&directory);
        inside.sort_unstable_by_key(Node::name);
        // Only files with several names tell their device; all files of a directory have one
        // device.
        let own = inside.iter().find_map(|node| Some(node.link()?.device));
        Level::new(Some(directory), inside, own.unwrap_or(device))
    }

    fn new(node: Option<Node<'s>>, inside: Vec<Node<'s>>, device: u64) -> Level<'s> {
        let (apparent, disk) = node.as_ref().map_or((0, 0), Node::own);
        Level {
            node,
            inside,
            next: 0,
            ended: Vec::new(),
            device,
            last: None,
            apparent,
            disk,
            items: 0,
            links: HashMap::new(),
            unread: false,
            part: false,
        }
    }

    /// The values that are written of it, and the files in it that have several names.
    fn end(self) -> (Ended<'s>, HashMap<(u64, u64), Several>) {
        // A directory counts the bytes of a file with several names once if any of the names lies
        // below it.
        let (all_apparent, all_disk) = self.sums(|_| true);
        let all = (self.apparent.saturating_add(all_apparent), self.disk.saturating_add(all_disk));
        let shared = self.sums(|it| it.links > 1 && it.seen < it.links);
        let Level { node, device, last, items, unread, part, links, .. } = self;
        (Ended { node, device, last, all, shared, items, unread, part }, links)
    }

    /// Adds the sums of a directory in it.
    fn take(&mut self, below: Level<'s>) {
        self.apparent = self.apparent.saturating_add(below.apparent);
        self.disk = self.disk.saturating_add(below.disk);
        self.items += below.items + 1;
        self.unread |= below.unread || below.node.is_some_and(|node| node.is_unread());
        let (ended, links) = below.end();
        self.ended.push(ended);
        // The smaller goes into the larger, so that each file is moved a few times, however deep it
        // lies.
        let (mut small, mut large) = (links, std::mem::take(&mut self.links));
        if small.len() > large.len() {
            (small, large) = (large, small);
        }
        for (file, several) in small {
            large
                .entry(file)
                .and_modify(|it| it.seen = it.seen.saturating_add(several.seen))
                .or_insert(several);
        }
        self.links = large;
    }

    fn sums(&self, which: impl Fn(&Several) -> bool) -> (u64, u64) {
        let of = self.links.values().filter(|several| which(several));
        of.fold((0, 0), |(apparent, disk): (u64, u64), several| {
            (apparent.saturating_add(several.apparent), disk.saturating_add(several.disk))
        })
    }
}

/// The file, and the block that is being filled.
struct Blocks<'w> {
    out: &'w mut dyn Write,
    at: u64,
    raw: Vec<u8>,
    /// Place and length of each block that was written.
    index: Vec<u64>,
}

impl Blocks<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Writes the block that is being filled, and begins the next.
    fn flush(&mut self) -> io::Result<()> {
        if self.raw.is_empty() {
            return Ok(());
        }
        let frame = frame(&self.raw);
        let number = self.index.len() as u32;
        self.index.push(self.at << PLACE | (HEADS + 4 + frame.len()) as u64);
        let head = (DATA << 28 | (HEADS + 4 + frame.len()) as u32).to_be_bytes();
        for part in [&head[..], &number.to_be_bytes(), &frame, &head] {
            self.put(part)?;
        }
        self.raw.clear();
        Ok(())
    }

    fn finish(mut self, root: u64) -> io::Result<()> {
        self.flush()?;
        let length = HEADS + 8 * (self.index.len() + 1);
        let too_large = || {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "it has too many entries for ncdu's binary export",
            )
        };
        let head = u32::try_from(length)
            .ok()
            .filter(|length| *length <= super::LENGTH)
            .ok_or_else(too_large)?;
        let head = (INDEX << 28 | head).to_be_bytes();
        self.out.write_all(&head)?;
        for entry in self.index.iter().chain([&root]) {
            self.out.write_all(&entry.to_be_bytes())?;
        }
        self.out.write_all(&head)
    }

    /// Begins an item; a reference to it.
    fn begin(&mut self, item: i128, name: &[u8], previous: Option<u64>) -> io::Result<u64> {
        if self.raw.len() >= BLOCK {
            self.flush()?;
        }
        if name.len() > LARGEST / 2 {
            let message = "a path is too long for ncdu's binary export";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let here = (self.index.len() as u64) << PLACE | self.raw.len() as u64;
        self.raw.push(cbor::BEGIN_MAP);
        self.number(key::TYPE, item);
        cbor::head(Major::Positive, key::NAME, &mut self.raw);
        cbor::head(Major::Bytes, name.len() as u64, &mut self.raw);
        self.raw.extend_from_slice(name);
        self.reference(key::PREVIOUS, here, previous);
        Ok(here)
    }

    fn end(&mut self) {
        self.raw.push(cbor::BREAK);
    }

    fn number(&mut self, key: u64, number: impl Into<i128>) {
        cbor::head(Major::Positive, key, &mut self.raw);
        match number.into() {
            number @ ..0 => cbor::head(Major::Negative, (-1 - number) as u64, &mut self.raw),
            number => cbor::head(Major::Positive, number as u64, &mut self.raw),
        }
    }

    /// Writes a reference to another item into the item that begins `here`.
    fn reference(&mut self, key: u64, here: u64, to: Option<u64>) {
        let Some(to) = to else { return };
        // Within a block it counts back: that is shorter, and alike for many items, so that it
        // compresses well.
        if to >> PLACE == here >> PLACE {
            self.number(key, i128::from(to) - i128::from(here));
        } else {
            self.number(key, to);
        }
    }

    /// Writes the entries of a directory, side by side.
    fn entries(&mut self, level: &mut Level<'_>) -> io::Result<()> {
        let mut ended = std::mem::take(&mut level.ended).into_iter();
        for node in std::mem::take(&mut level.inside) {
            level.last = Some(if node.kind() == Kind::Directory {
                let below = ended.next().expect("each directory in it has ended");
                self.directory(&below, Some(level.device), level.last)?
            } else {
                self.leaf(&node, level)?
            });
        }
        Ok(())
    }

    /// Writes an entry that is no directory, and adds it to its directory's sums.
    fn leaf(&mut self, node: &Node<'_>, level: &mut Level<'_>) -> io::Result<u64> {
        level.items += 1;
        if node.is_unread() {
            level.unread = true;
            let here = self.begin(kind::UNREADABLE, node.name(), level.last)?;
            self.end();
            return Ok(here);
        }
        let (apparent, disk) = node.own();
        let link = node.link();
        let item = match node.kind() {
            _ if link.is_some() => kind::LINK,
            Kind::File => kind::FILE,
            _ => kind::OTHER,
        };
        let here = self.begin(item, node.name(), level.last)?;
        self.number(key::APPARENT, apparent);
        self.number(key::DISK, disk);
        if let Some(file) = link {
            self.number(key::INODE, file.inode);
            self.number(key::LINKS, file.links);
            let new = Several { seen: 0, links: file.links, apparent, disk };
            let several = level.links.entry((file.device, file.inode)).or_insert(new);
            several.seen = several.seen.saturating_add(1);
        } else {
            level.apparent = level.apparent.saturating_add(apparent);
            level.disk = level.disk.saturating_add(disk);
        }
        self.facts(node);
        self.end();
        Ok(here)
    }

    /// Writes a directory whose entries have been written. `above`: the device of the directory
    /// that it is in; the root is in none.
    fn directory(
        &mut self,
        level: &Ended<'_>,
        above: Option<u64>,
        previous: Option<u64>,
    ) -> io::Result<u64> {
        let name = level.node.as_ref().map_or(&b"(several paths)"[..], Node::name);
        let here = self.begin(kind::DIRECTORY, name, previous)?;
        let (apparent, disk) = level.node.as_ref().map_or((0, 0), Node::own);
        self.number(key::APPARENT, apparent);
        self.number(key::DISK, disk);
        if above != Some(level.device) {
            self.number(key::DEVICE, level.device);
        }
        let own = level.part || level.node.as_ref().is_some_and(Node::is_unread);
        if own || level.unread {
            cbor::head(Major::Positive, key::UNREAD, &mut self.raw);
            cbor::head(Major::Simple, if own { cbor::TRUE } else { cbor::FALSE }, &mut self.raw);
        }
        self.number(key::ALL_APPARENT, level.all.0);
        self.number(key::ALL_DISK, level.all.1);
        let (apparent, disk) = level.shared;
        for (key, shared) in [(key::SHARED_APPARENT, apparent), (key::SHARED_DISK, disk)] {
            if shared > 0 {
                self.number(key, shared);
            }
        }
        self.number(key::ITEMS, level.items);
        self.reference(key::LAST, here, level.last);
        if let Some(node) = &level.node {
            self.facts(node);
        }
        self.end();
        Ok(here)
    }

    fn facts(&mut self, node: &Node<'_>) {
        if let Some(facts) = node.facts() {
            self.number(key::OWNER, facts.owner());
            self.number(key::GROUP, facts.group());
            // ncdu has no sign: a time before 1970 is as far below 2^64.
            self.number(key::MODIFIED, facts.modified() as u64);
        }
        if let Some(mode) = mode_of(node) {
            self.number(key::MODE, mode);
        }
    }
}

/// A zstd frame (RFC 8878, 3.1.1) with these contents and their length in its head, without which
/// ncdu refuses it.
/// The crate writes no length, so the length is put into its frame: the descriptor at byte 4 says
/// that four bytes of length follow the descriptor and the window's size.
pub(super) fn frame(contents: &[u8]) -> Vec<u8> {
    const DESCRIPTOR: usize = 4;
    /// After the descriptor and the window's size.
    const LENGTH_AT: usize = 6;
    /// In the descriptor: a length of four bytes.
    const LENGTH_OF_FOUR: u8 = 2 << 6;
    /// In the descriptor: there is a length, there is no window, and there is a dictionary.
    const OTHERS: u8 = 3 << 6 | 1 << 5 | 3;
    let mut frame = compress_to_vec(contents, CompressionLevel::Fastest);
    assert_eq!(
        frame[DESCRIPTOR] & OTHERS,
        0,
        "the frame has a window, and neither length nor dictionary"
    );
    frame[DESCRIPTOR] |= LENGTH_OF_FOUR;
    frame.splice(LENGTH_AT..LENGTH_AT, (contents.len() as u32).to_le_bytes());
    frame
}
