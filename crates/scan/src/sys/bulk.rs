//! What `getattrlistbulk(2)` of macOS writes into a buffer, read without trust in it.
//!
//! By Apple's manual pages getattrlist(2) and getattrlistbulk(2), a buffer holds as many records as
//! the call says, one after the other:
//!
//! ```text
//! length      4 bytes: of the record, with these
//! returned    5 times 4 bytes: which attributes follow: common, of the volume, of a directory, of
//!             a file, of a fork
//! error       4 bytes, if it is among the common ones: why there are no others
//! ..          the other attributes by their bits, the lowest first: the common ones, then those of
//!             a file. Numbers are the machine's own, aligned to 4 bytes
//! name        of 8 bytes among the common ones: how far from there the name lies in the record
//!             (signed), and how long it is with its NUL
//! ```
//!
//! The code is compiled for macOS, and on every system for its tests, which read records made by
//! hand from that description. No machine with macOS has run it.

use std::ffi::CStr;

use super::{Kind, Meta};

/// The common attributes that are asked for.
pub(super) mod common {
    pub(crate) const NAME: u32 = 0x1;
    pub(super) const DEVICE: u32 = 0x2;
    pub(super) const KIND: u32 = 0x8;
    pub(super) const MODIFIED: u32 = 0x400;
    pub(super) const CHANGED: u32 = 0x800;
    pub(super) const ACCESSED: u32 = 0x1000;
    pub(super) const OWNER: u32 = 0x8000;
    pub(super) const GROUP: u32 = 0x1_0000;
    pub(super) const MODE: u32 = 0x2_0000;
    pub(super) const INODE: u32 = 0x200_0000;
    pub(super) const ERROR: u32 = 0x2000_0000;
    const RETURNED: u32 = 0x8000_0000;
    pub(crate) const ALL: u32 = NAME
        | DEVICE
        | KIND
        | MODIFIED
        | CHANGED
        | ACCESSED
        | OWNER
        | GROUP
        | MODE
        | INODE
        | ERROR
        | RETURNED;
    /// What is told of every entry that has no error.
    pub(super) const NEEDED: u32 = ALL & !(ERROR | RETURNED);
}

/// The attributes of files, and of all else that is no directory, that are asked for.
pub(super) mod file {
    pub(super) const LINKS: u32 = 0x1;
    pub(super) const ALLOCATED: u32 = 0x4;
    pub(super) const LENGTH: u32 = 0x200;
    pub(crate) const ALL: u32 = LINKS | ALLOCATED | LENGTH;
}

/// A record of the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record<'b> {
    pub(super) name: &'b CStr,
    /// None where the system does not say.
    pub(super) kind: Option<Kind>,
    /// All that is known of an entry that is no directory, if all of it was told.
    pub(super) meta: Option<Meta>,
}

/// The records of a buffer. None in the place of a record: the record is not as described, and
/// nothing is known of what follows.
#[derive(Debug)]
pub(super) struct Records<'b> {
    rest: &'b [u8],
    left: usize,
}

impl<'b> Records<'b> {
    /// `count` records, at the beginning of a buffer.
    pub(super) fn new(buffer: &'b [u8], count: usize) -> Records<'b> {
        Records { rest: buffer, left: count }
    }
}

impl<'b> Iterator for Records<'b> {
    type Item = Option<Record<'b>>;

    fn next(&mut self) -> Option<Option<Record<'b>>> {
        self.left = self.left.checked_sub(1)?;
        let length = Fields { record: self.rest, at: 0 }.u32();
        let split = length.and_then(|length| self.rest.split_at_checked(length as usize));
        let record = split.and_then(|(record, rest)| {
            self.rest = rest;
            record_of(record)
        });
        if record.is_none() {
            self.left = 0;
        }
        Some(record)
    }
}

fn record_of(record: &[u8]) -> Option<Record<'_>> {
    let mut fields = Fields { record, at: 4 };
    let returned = [(); 5].map(|()| fields.u32());
    let [Some(common), Some(0), Some(0), Some(file), Some(0)] = returned else { return None };
    // Attributes that were not asked for have an unknown length.
    if common & !common::ALL != 0 || file & !file::ALL != 0 {
        return None;
    }
    let has = |attribute: u32| common & attribute != 0;
    if has(common::ERROR) {
        fields.u32()?;
    }
    let name = has(common::NAME).then(|| fields.name()).flatten()?;
    let mut meta = Meta::of(Kind::Other);
    if has(common::DEVICE) {
        // As `stat` has it, which extends the sign.
        meta.device = fields.u32()? as i32 as u64;
    }
    let kind = if has(common::KIND) { fields.u32()? } else { 0 };
    let mut seconds = |attribute| {
        if !has(attribute) {
            return Some(0);
        }
        let seconds = fields.u64()? as i64;
        fields.u64().map(|_nanoseconds| seconds)
    };
    meta.modified = seconds(common::MODIFIED)?;
    meta.changed = seconds(common::CHANGED)?;
    meta.accessed = seconds(common::ACCESSED)?;
    if has(common::OWNER) {
        meta.owner = fields.u32()?;
    }
    if has(common::GROUP) {
        meta.group = fields.u32()?;
    }
    if has(common::MODE) {
        meta.mode = fields.u32()?;
    }
    if has(common::INODE) {
        meta.inode = fields.u64()?;
    }
    if file & file::LINKS != 0 {
        meta.links = fields.u32()?.into();
    }
    if file & file::ALLOCATED != 0 {
        meta.disk = fields.u64()?;
    }
    if file & file::LENGTH != 0 {
        meta.apparent = fields.u64()?;
    }
    // The types of vnodes, and the type in a mode, which macOS leaves out.
    let (kind, bits) = match kind {
        1 => (Some(Kind::File), 0o100_000),
        2 => (Some(Kind::Directory), 0o040_000),
        3 => (Some(Kind::Other), 0o060_000),
        4 => (Some(Kind::Other), 0o020_000),
        5 => (Some(Kind::Symlink), 0o120_000),
        6 => (Some(Kind::Other), 0o140_000),
        7 => (Some(Kind::Other), 0o010_000),
        _ => (None, 0),
    };
    meta.mode = meta.mode & 0o7777 | bits;
    let known = kind.filter(|&kind| {
        let all = common & common::NEEDED == common::NEEDED && file == file::ALL;
        kind != Kind::Directory && all && !has(common::ERROR)
    });
    let meta = known.map(|kind| Meta { kind, ..meta });
    Some(Record { name, kind: kind.filter(|_| !has(common::ERROR)), meta })
}

/// The fields of a record, one after the other. Each is none where the record ends too early.
struct Fields<'b> {
    record: &'b [u8],
    at: usize,
}

impl<'b> Fields<'b> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let field = self.record.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(*field)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    /// A name, to which a reference is here. It has no slash and is not empty.
    fn name(&mut self) -> Option<&'b CStr> {
        let here = self.at;
        let offset = i32::from_ne_bytes(self.take()?);
        let start = here.checked_add_signed(isize::try_from(offset).ok()?)?;
        let end = start.checked_add(usize::try_from(self.u32()?).ok()?)?;
        let name = CStr::from_bytes_with_nul(self.record.get(start..end)?).ok()?;
        let bytes = name.to_bytes();
        (!bytes.is_empty() && !bytes.contains(&b'/')).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as the manual page describes it, with these attributes of those that `entry` has.
    fn record(name: &[u8], common: u32, file: u32, kind: u32) -> Vec<u8> {
        let mut fixed: Vec<u8> = Vec::new();
        for set in [common, 0, 0, file, 0] {
            fixed.extend(u32::to_ne_bytes(set));
        }
        let mut reference = None;
        let order = [
            (common::ERROR, &13_u32.to_ne_bytes()[..]),
            (common::NAME, &[0; 8]),
            (common::DEVICE, &0x0100_0005_u32.to_ne_bytes()),
            (common::KIND, &kind.to_ne_bytes()),
            (common::MODIFIED, &[(-7_i64).to_ne_bytes(), 5_i64.to_ne_bytes()].concat()),
            (common::CHANGED, &[1_700_000_000_i64.to_ne_bytes(), 6_i64.to_ne_bytes()].concat()),
            (common::ACCESSED, &[8_i64.to_ne_bytes(), 7_i64.to_ne_bytes()].concat()),
            (common::OWNER, &501_u32.to_ne_bytes()),
            (common::GROUP, &20_u32.to_ne_bytes()),
            (common::MODE, &0o644_u32.to_ne_bytes()),
            (common::INODE, &0x1_0000_0002_u64.to_ne_bytes()),
        ];
        for (attribute, bytes) in order {
            if common & attribute != 0 {
                if attribute == common::NAME {
                    reference = Some(fixed.len());
                }
                fixed.extend(bytes);
            }
        }
        let order = [
            (file::LINKS, &2_u32.to_ne_bytes()[..]),
            (file::ALLOCATED, &8192_u64.to_ne_bytes()),
            (file::LENGTH, &5000_u64.to_ne_bytes()),
        ];
        for (attribute, bytes) in order {
            if file & attribute != 0 {
                fixed.extend(bytes);
            }
        }
        if let Some(at) = reference {
            let offset = (fixed.len() - at) as i32;
            fixed[at..at + 4].copy_from_slice(&offset.to_ne_bytes());
            fixed[at + 4..at + 8].copy_from_slice(&(name.len() as u32 + 1).to_ne_bytes());
            fixed.extend(name);
            fixed.push(0);
        }
        fixed.resize(fixed.len().next_multiple_of(4), 0);
        [&(fixed.len() as u32 + 4).to_ne_bytes()[..], &fixed].concat()
    }

    const NO_ERROR: u32 = common::ALL & !common::ERROR;

    #[test]
    fn records_tell_names_kinds_and_all_of_what_is_no_directory() {
        let buffer = [
            record(b"file", NO_ERROR, file::ALL, 1),
            record(b"directory", NO_ERROR, 0, 2),
            record(b"link\xff", NO_ERROR, file::ALL, 5),
            record(b"denied", common::ERROR | common::NAME, 0, 0),
            record(b"pipe", NO_ERROR & !common::INODE, file::ALL, 7),
            record(b"unknown", NO_ERROR, file::LINKS, 8),
        ]
        .concat();
        let found: Vec<_> = Records::new(&buffer, 6).map(|it| it.expect("a record")).collect();
        let meta = |kind, mode| Meta {
            kind,
            device: 0x0100_0005,
            inode: 0x1_0000_0002,
            links: 2,
            apparent: 5000,
            disk: 8192,
            modified: -7,
            accessed: 8,
            changed: 1_700_000_000,
            mode,
            owner: 501,
            group: 20,
        };
        let record = |name, kind, meta| Record { name, kind, meta };
        let file = Some(meta(Kind::File, 0o100_644));
        let link = Some(meta(Kind::Symlink, 0o120_644));
        assert_eq!(
            found,
            [
                record(c"file", Some(Kind::File), file),
                record(c"directory", Some(Kind::Directory), None),
                record(c"link\xff", Some(Kind::Symlink), link),
                record(c"denied", None, None),
                record(c"pipe", Some(Kind::Other), None),
                record(c"unknown", None, None),
            ]
        );
        // Bytes after the records, from an earlier call, are no record.
        assert_eq!(Records::new(&buffer, 2).count(), 2);
        assert_eq!(Records::new(&buffer, 0).count(), 0);
    }

    #[test]
    fn a_record_that_is_not_as_described_is_refused_and_ends_the_buffer() {
        let good = record(b"file", NO_ERROR, file::ALL, 1);
        let refused = |buffer: &[u8]| Records::new(buffer, 9).any(|it| it.is_none());
        for length in 0..good.len() {
            // Cut, and saying so.
            let mut cut = good[..length].to_vec();
            assert!(refused(&cut), "{length}");
            if let Some(head) = cut.first_chunk_mut() {
                *head = (length as u32).to_ne_bytes();
            }
            // The last bytes are there for the alignment.
            assert!(refused(&cut) || length > good.len() - 4, "{length}");
        }
        let reference = 4 + 5 * 4;
        for (offset, length) in
            [(-1000_i32, 5_u32), (1000, 5), (i32::MAX, 5), (i32::MIN, 5), (-24, 3)]
        {
            let mut wrong = good.clone();
            wrong[reference..][..4].copy_from_slice(&offset.to_ne_bytes());
            wrong[reference + 4..][..4].copy_from_slice(&length.to_ne_bytes());
            assert!(refused(&wrong), "{offset} {length}");
        }
        for length in [0, 1, 4, u32::MAX] {
            let mut wrong = good.clone();
            wrong[reference + 4..][..4].copy_from_slice(&length.to_ne_bytes());
            assert!(refused(&wrong), "{length}");
        }
        for name in [&b""[..], b"a/b", b"a\0b"] {
            assert!(refused(&record(name, NO_ERROR, file::ALL, 1)), "{name:?}");
        }
        // No name, and attributes that were not asked for.
        assert!(refused(&record(b"x", NO_ERROR & !common::NAME, file::ALL, 1)));
        for set in 0..5 {
            let mut more = good.clone();
            more[4 + 4 * set + 2] |= 0x40;
            assert!(refused(&more), "{set}");
        }
        // Any byte changed: refused or read, and nothing panics.
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut changed = good.clone();
                changed[at] ^= 1 << bit;
                assert!(Records::new(&changed, 1).count() == 1);
            }
        }
    }
}
