//! Windows: directories by handle, with hard links, compressed sizes and paths of any length.
//!
//! A directory is listed by `GetFileInformationByHandleEx`, which tells the name, kind, length,
//! allocated bytes and time of each entry. It does not tell how many names a file has, and for a
//! file with several names its sizes may be out of date. So each file is opened for its attributes
//! alone and asked. A file that cannot be opened counts with what the listing says.
//!
//! An entry is opened by its name in an open directory (`NtCreateFile`), so no path is built and no
//! depth is too deep.
//!
//! **Reparse points.** Where the tag says that an entry stands for another one (a symbolic link, a
//! junction, the mount point of a volume), it is a link, which is not followed. An entry with any
//! other tag (a file kept in a cloud, a deduplicated one) is the file or directory that it looks
//! like, and looking at it fetches nothing. Wine gives a symbolic link to a directory a reparse
//! point without a tag: it is a link, too. Only a listing says so: Wine follows the link wherever
//! it is opened. A symbolic link to a file is, under Wine, that file, and a broken one is not
//! listed.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::ControlFlow;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsHandle as _, BorrowedHandle, OwnedHandle};
use std::path::Path;

use windows_sys::Wdk::Storage::FileSystem::{
    FILE_DIRECTORY_FILE, FILE_NON_DIRECTORY_FILE, FILE_OPEN_REPARSE_POINT,
};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_FILE_NOT_FOUND, ERROR_NO_MORE_FILES, ERROR_NO_SYSTEM_RESOURCES,
    ERROR_PATH_NOT_FOUND, ERROR_SHARING_VIOLATION, ERROR_TOO_MANY_OPEN_FILES,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_OFFLINE, FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS,
    FILE_ATTRIBUTE_RECALL_ON_OPEN, FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_GENERIC_READ, FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES,
    FileAttributeTagInfo, FileBasicInfo, FileIdBothDirectoryInfo, FileIdBothDirectoryRestartInfo,
    FileStandardInfo, SYNCHRONIZE,
};

use super::{Found, Kind, Meta, Sys, portable};

mod handle;
mod names;
mod remove;

pub use remove::Identity;

use handle::{SHARE, ask, identity, open};

/// The largest answer that every file server gives at once.
const BUFFER: usize = 64 << 10;

/// Enough for every tree but those made to use more.
const MOST_HANDLES: usize = 4096;

/// How a directory is opened to be read.
const DIRECTORY: u32 = FILE_LIST_DIRECTORY | FILE_READ_ATTRIBUTES | SYNCHRONIZE;

/// The content is elsewhere, and reading would fetch it.
const FETCHED: u32 =
    FILE_ATTRIBUTE_OFFLINE | FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS | FILE_ATTRIBUTE_RECALL_ON_OPEN;

/// Windows, by handles of open directories.
#[derive(Clone, Copy, Debug, Default)]
pub struct Windows;

/// An open directory, and what was said of it when it was opened.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedHandle,
    meta: Meta,
}

impl Directory {
    /// The directory that a handle is of.
    fn new(handle: OwnedHandle) -> io::Result<Directory> {
        let meta = Attributes::of(handle.as_handle())?.meta(handle.as_handle())?;
        match meta.kind {
            Kind::Directory => Ok(Directory { handle, meta }),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }
}

/// What one worker reads directories into.
#[derive(Debug)]
pub struct Buffer {
    /// Records of the system, which are aligned to eight bytes.
    words: Box<[u64]>,
    /// A name with its NUL.
    name: Vec<u8>,
}

/// The kind of an entry, and when it was changed.
#[derive(Clone, Copy, Debug)]
struct Attributes {
    flags: u32,
    tag: u32,
    /// In units of 100 ns since 1601.
    changed: u64,
}

impl Attributes {
    fn of(handle: BorrowedHandle<'_>) -> io::Result<Attributes> {
        let mut basic = [0; 5];
        ask(handle, FileBasicInfo, &mut basic)?;
        let flags = basic[4] as u32;
        let mut tag = [0];
        if flags & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
            ask(handle, FileAttributeTagInfo, &mut tag)?;
        }
        Ok(Attributes { flags, tag: (tag[0] >> 32) as u32, changed: basic[2] })
    }

    fn kind(self) -> Kind {
        /// The bit of a tag that says that the entry stands for another one.
        const SURROGATE: u32 = 1 << 29;
        /// Sockets, pipes and devices of the Linux subsystem.
        const OTHER: std::ops::RangeInclusive<u32> = 0x8000_0023..=0x8000_0026;
        if self.flags & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
            match self.tag {
                0 => return Kind::Symlink,
                tag if tag & SURROGATE != 0 => return Kind::Symlink,
                tag if OTHER.contains(&tag) => return Kind::Other,
                _ => {}
            }
        }
        if self.flags & FILE_ATTRIBUTE_DIRECTORY != 0 { Kind::Directory } else { Kind::File }
    }

    /// In seconds since 1970.
    fn modified(self) -> i64 {
        const SECONDS_TO_1970: i64 = 11_644_473_600;
        (self.changed / 10_000_000) as i64 - SECONDS_TO_1970
    }

    /// What an open entry is.
    fn meta(self, handle: BorrowedHandle<'_>) -> io::Result<Meta> {
        let mut standard = [0; 3];
        ask(handle, FileStandardInfo, &mut standard)?;
        let [disk, apparent, links] = standard;
        let kind = self.kind();
        // A directory has one name.
        let links = if kind == Kind::Directory { 1 } else { (links & 0xffff_ffff).max(1) };
        let mut meta = Meta { links, apparent, disk, modified: self.modified(), ..Meta::of(kind) };
        if kind == Kind::Directory || links > 1 {
            (meta.device, meta.inode) = identity(handle).unwrap_or_default();
        }
        // Names that cannot be told to be of one file are files of their own.
        meta.links = if meta.inode == 0 { 1 } else { meta.links };
        Ok(meta)
    }
}

impl Sys for Windows {
    type Directory = Directory;
    type Buffer = Buffer;
    type Found<'a> = Entry<'a>;

    fn buffer(&self) -> Buffer {
        Buffer { words: vec![0; BUFFER / 8].into(), name: Vec::new() }
    }

    fn handles(&self) -> usize {
        MOST_HANDLES
    }

    fn meta(&self, path: &Path, follow: bool) -> io::Result<Meta> {
        let flags = if follow { 0 } else { FILE_FLAG_OPEN_REPARSE_POINT };
        let opened = OpenOptions::new()
            .access_mode(FILE_READ_ATTRIBUTES)
            .share_mode(SHARE)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | flags)
            .open(path);
        match opened {
            Ok(file) => Attributes::of(file.as_handle())?.meta(file.as_handle()),
            // Of a file in use its directory tells.
            Err(error) if is_refusal(&error) => portable::Portable.meta(path, follow),
            Err(error) => Err(error),
        }
    }

    fn open_path(&self, path: &Path) -> io::Result<Directory> {
        let file = OpenOptions::new()
            .access_mode(DIRECTORY)
            .share_mode(SHARE)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
            .open(path)?;
        Directory::new(file.into())
    }

    fn open(&self, parent: &Directory, name: &CStr) -> io::Result<Directory> {
        let options = FILE_DIRECTORY_FILE | FILE_OPEN_REPARSE_POINT;
        Directory::new(open(parent.handle.as_handle(), name, DIRECTORY, options)?)
    }

    fn duplicate(&self, directory: &Directory) -> io::Result<Directory> {
        Ok(Directory { handle: directory.handle.try_clone()?, meta: directory.meta })
    }

    fn meta_of(&self, directory: &Directory) -> io::Result<Meta> {
        Ok(directory.meta)
    }

    fn meta_in(&self, parent: &Directory, name: &CStr) -> io::Result<Meta> {
        let parent = parent.handle.as_handle();
        let opened = open(parent, name, FILE_READ_ATTRIBUTES, FILE_OPEN_REPARSE_POINT)?;
        Attributes::of(opened.as_handle())?.meta(opened.as_handle())
    }

    fn read(
        &self,
        directory: &Directory,
        buffer: &mut Buffer,
        each: &mut impl FnMut(&Entry<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut class = FileIdBothDirectoryRestartInfo;
        loop {
            match ask(directory.handle.as_handle(), class, &mut buffer.words) {
                Ok(()) => {}
                Err(error) if is(&error, ERROR_NO_MORE_FILES) => return Ok(()),
                // The root of a volume that holds nothing has not even the entries of itself and
                // its parent.
                Err(error)
                    if class == FileIdBothDirectoryRestartInfo
                        && is(&error, ERROR_FILE_NOT_FOUND) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            class = FileIdBothDirectoryInfo;
            let Buffer { words, name } = &mut *buffer;
            let mut at = Some(0);
            while let Some(offset) = at {
                let record = Record::at(words, offset).ok_or(io::ErrorKind::InvalidData)?;
                at = record.next;
                names::write(record.name(), name);
                let name = CStr::from_bytes_with_nul(name)
                    .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
                if !matches!(name.to_bytes(), b"." | b"..")
                    && each(&Entry { directory, name, record }).is_break()
                {
                    return Ok(());
                }
            }
        }
    }

    fn open_file(&self, directory: &Directory, name: &CStr) -> io::Result<(File, Meta)> {
        let directory = directory.handle.as_handle();
        let options = FILE_NON_DIRECTORY_FILE | FILE_OPEN_REPARSE_POINT;
        let opened = open(directory, name, FILE_GENERIC_READ, options)?;
        let attributes = Attributes::of(opened.as_handle())?;
        if attributes.kind() != Kind::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if attributes.flags & FETCHED != 0 {
            return Err(io::Error::other("the file's content is not on this machine"));
        }
        let meta = attributes.meta(opened.as_handle())?;
        if attributes.flags & FILE_ATTRIBUTE_REPARSE_POINT == 0 {
            return Ok((opened.into(), meta));
        }
        // A handle of the reparse point does not read the content: its keeper has to be asked.
        let opened = open(directory, name, FILE_GENERIC_READ, FILE_NON_DIRECTORY_FILE)?;
        Ok((opened.into(), meta))
    }

    fn exhausted(&self, error: &io::Error) -> bool {
        is(error, ERROR_TOO_MANY_OPEN_FILES) || is(error, ERROR_NO_SYSTEM_RESOURCES)
    }
}

fn is(error: &io::Error, number: u32) -> bool {
    error.raw_os_error() == Some(number as i32)
}

/// Whether an error says that an entry is there, and may not be opened.
fn is_refusal(error: &io::Error) -> bool {
    is(error, ERROR_ACCESS_DENIED) || is(error, ERROR_SHARING_VIOLATION)
}

/// An entry of a directory, as `FILE_ID_BOTH_DIR_INFO` has it.
#[derive(Clone, Copy, Debug)]
struct Record<'a> {
    words: &'a [u64],
    /// Where it begins, in bytes.
    offset: usize,
    length: usize,
    /// Where the next one begins.
    next: Option<usize>,
}

impl<'a> Record<'a> {
    /// Where the name begins in a record, in bytes.
    const NAME: usize = 104;

    /// The record at some byte; nothing if it does not lie within the words.
    fn at(words: &'a [u64], offset: usize) -> Option<Record<'a>> {
        let all = words.len() * 8;
        if offset % 8 != 0 || offset + Self::NAME > all {
            return None;
        }
        let mut record = Record { words, offset, length: 0, next: None };
        let (next, length) = (record.number(0) as usize, record.number(60) as usize);
        record.length = length;
        record.next = (next > 0).then_some(offset + next);
        (length <= all - offset - Self::NAME).then_some(record)
    }

    /// The number of 32 bits at some byte of the record.
    fn number(&self, at: usize) -> u32 {
        let at = self.offset + at;
        (self.words[at / 8] >> (at % 8 * 8)) as u32
    }

    /// The number of 64 bits at some byte of the record.
    fn long(&self, at: usize) -> u64 {
        self.words[(self.offset + at) / 8]
    }

    fn name(&self) -> impl Iterator<Item = u16> + use<'a> {
        let (words, begin) = (self.words, self.offset + Self::NAME);
        (begin..begin + self.length / 2 * 2)
            .step_by(2)
            .map(move |at| (words[at / 8] >> (at % 8 * 8)) as u16)
    }

    fn attributes(&self) -> Attributes {
        Attributes { flags: self.number(56), tag: self.number(64), changed: self.long(24) }
    }
}

/// An entry that a directory lists.
#[derive(Debug)]
pub struct Entry<'a> {
    directory: &'a Directory,
    name: &'a CStr,
    record: Record<'a>,
}

impl Found for Entry<'_> {
    fn name(&self) -> &CStr {
        self.name
    }

    fn kind(&self) -> Option<Kind> {
        Some(self.record.attributes().kind())
    }

    fn meta(&self) -> io::Result<Meta> {
        let attributes = self.record.attributes();
        let listed = Meta {
            apparent: self.record.long(40),
            disk: self.record.long(48),
            modified: attributes.modified(),
            ..Meta::of(attributes.kind())
        };
        if listed.kind != Kind::File {
            return Ok(listed);
        }
        let directory = self.directory.handle.as_handle();
        match open(directory, self.name, FILE_READ_ATTRIBUTES, FILE_OPEN_REPARSE_POINT) {
            Ok(opened) => attributes.meta(opened.as_handle()),
            Err(error) if is(&error, ERROR_FILE_NOT_FOUND) || is(&error, ERROR_PATH_NOT_FOUND) => {
                Err(error)
            }
            Err(_) => Ok(listed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(flags: u32, tag: u32) -> Kind {
        Attributes { flags, tag, changed: 0 }.kind()
    }

    #[test]
    fn a_reparse_point_is_a_link_if_its_tag_says_so() {
        const POINT: u32 = FILE_ATTRIBUTE_REPARSE_POINT;
        const BRANCH: u32 = POINT | FILE_ATTRIBUTE_DIRECTORY;
        // A symbolic link, a junction, a link of the Linux subsystem, Wine's without a tag.
        for tag in [0xa000_000c, 0xa000_0003, 0xa000_001d, 0] {
            assert_eq!((kind(POINT, tag), kind(BRANCH, tag)), (Kind::Symlink, Kind::Symlink));
        }
        // OneDrive, deduplication.
        for tag in [0x9000_001a, 0x8000_0013] {
            assert_eq!((kind(POINT, tag), kind(BRANCH, tag)), (Kind::File, Kind::Directory));
        }
        assert_eq!(kind(POINT, 0x8000_0023), Kind::Other);
        // Without the flag the field is no tag.
        assert_eq!(kind(0, 0xa000_000c), Kind::File);
        assert_eq!(kind(FILE_ATTRIBUTE_DIRECTORY, 7), Kind::Directory);
    }

    #[test]
    fn seconds_are_counted_from_1970() {
        let modified = |changed| Attributes { flags: 0, tag: 0, changed }.modified();
        assert_eq!(modified(116_444_736_000_000_000), 0);
        assert_eq!(modified(116_444_736_000_000_000 + 15_000_000), 1);
        assert_eq!(modified(116_444_736_000_000_000 - 1), -1);
        assert_eq!(modified(0), -11_644_473_600);
    }

    #[test]
    fn a_record_that_does_not_lie_in_the_buffer_is_none() {
        let words = |length: u64, next: u64| {
            let mut words = [0_u64; 16];
            (words[0], words[7]) = (next, length << 32);
            words
        };
        let next = |words: &[u64], offset| Record::at(words, offset).map(|record| record.next);
        assert_eq!(next(&words(24, 0), 0), Some(None));
        assert_eq!(next(&words(25, 0), 0), None);
        assert_eq!(next(&words(u64::from(u32::MAX), 0), 0), None);
        assert_eq!(next(&words(2, 0xffff_fff8), 0), Some(Some(0xffff_fff8)));
        for offset in [4, 64, 128, 0xffff_fff8] {
            assert_eq!(next(&words(2, 0), offset), None);
        }
    }
}
