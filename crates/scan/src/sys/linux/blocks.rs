//! Where the bytes of a file lie on its disk (`FS_IOC_FIEMAP`), and making two files share them
//! (`FIDEDUPERANGE`).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use rustix::io::{Errno, retry_on_intr};
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

use crate::sys::DiskExtent;

/// How many extents are asked for at a time.
const AT_A_TIME: usize = 128;

/// How many bytes are compared and shared at a time: btrfs takes no more, and a signal is heeded in
/// between.
const STRETCH: u64 = 16 << 20;

/// `struct fiemap` without its extents, of the kernel's fiemap.h.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Head {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
}

/// `struct fiemap_extent`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Mapped {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

#[repr(C)]
struct Map {
    head: Head,
    extents: [Mapped; AT_A_TIME],
}

/// Written data gets its places first (`FIEMAP_FLAG_SYNC`): some file systems know none of it
/// before.
const SYNC: u32 = 0x1;

/// The last one of the file.
const LAST: u32 = 0x1;
/// It has no place on the disk yet, or lies among the file's other data.
const UNPLACED: u32 = 0x2 | 0x4 | 0x200;
/// The bytes on the disk are others than those of the file (compressed, for example).
const ENCODED: u32 = 0x8;
/// Other files have it, too.
const SHARED: u32 = 0x2000;

const FIEMAP: Opcode = opcode::read_write::<Head>(b'f', 11);

/// Asks for some extents of a file. The answer is in `map`.
fn ask(file: &File, map: &mut Map) -> io::Result<()> {
    // SAFETY: the number is FS_IOC_FIEMAP's. The kernel reads and writes a `struct fiemap`, which
    // `Map` is laid out as, with the extents that `room` says it has.
    let ask = unsafe { Updater::<FIEMAP, Map>::new(map) };
    // SAFETY: the call changes nothing but `map`, which lives until it returns, and the descriptor
    // is open.
    Ok(unsafe { ioctl(file, ask) }?)
}

/// Tells of each extent of a file that has a place on the disk.
pub(super) fn extents(file: &File, each: &mut dyn FnMut(DiskExtent)) -> io::Result<()> {
    extents_by(|map| ask(file, map), each)
}

fn extents_by(
    mut ask: impl FnMut(&mut Map) -> io::Result<()>,
    each: &mut dyn FnMut(DiskExtent),
) -> io::Result<()> {
    let mut start = 0;
    loop {
        let (length, room) = (u64::MAX - start, AT_A_TIME as u32);
        let head = Head { start, length, flags: SYNC, room, ..Head::default() };
        let mut map = Map { head, extents: [Mapped::default(); AT_A_TIME] };
        ask(&mut map)?;
        let mapped = &map.extents[..AT_A_TIME.min(map.head.mapped as usize)];
        for it in mapped.iter().filter(|it| it.flags & UNPLACED == 0) {
            let (shared, encoded) = (it.flags & SHARED != 0, it.flags & ENCODED != 0);
            each(DiskExtent { physical: it.physical, length: it.length, shared, encoded });
        }
        let Some(last) = mapped.last() else { return Ok(()) };
        let next = last.logical.saturating_add(last.length);
        if last.flags & LAST != 0 || next <= start {
            return Ok(());
        }
        start = next;
    }
}

/// `struct file_dedupe_range` with one `struct file_dedupe_range_info`, of the kernel's fs.h.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Range {
    source_offset: u64,
    source_length: u64,
    count: u16,
    reserved: u16,
    reserved_too: u32,
    target: i64,
    target_offset: u64,
    done: u64,
    status: i32,
    reserved_last: u32,
}

/// The head of it, whose size the number of the call has in it.
#[repr(C)]
struct RangeHead([u64; 3]);

const DEDUPE: Opcode = opcode::read_write::<RangeHead>(0x94, 54);

/// The content differs.
const DIFFERS: i32 = 1;

/// Makes a stretch of `to` share the blocks of `from`, if both hold the same there, and says how
/// many bytes of it.
pub(super) fn share(from: &File, to: &File, offset: u64, length: u64) -> io::Result<Option<u64>> {
    let mut range = Range {
        source_offset: offset,
        source_length: length.min(STRETCH),
        count: 1,
        target: to.as_raw_fd().into(),
        target_offset: offset,
        ..Range::default()
    };
    retry_on_intr(|| {
        // SAFETY: the number is FIDEDUPERANGE's. The kernel reads and writes a `struct
        // file_dedupe_range` with as many targets as `count` says, which `Range` is laid out as.
        let ask = unsafe { Updater::<DEDUPE, Range>::new(&mut range) };
        // SAFETY: the call changes nothing of this process but `range`, which lives until it
        // returns; both descriptors are open.
        unsafe { ioctl(from, ask) }
    })?;
    match range.status {
        DIFFERS => Ok(None),
        error if error < 0 => Err(Errno::from_raw_os_error(-error).into()),
        _ => Ok(Some(range.done.min(length))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers of Linux 6.18 on btrfs for a copy of a file by reflink, in the middle of which 8
    /// KiB had been written, and for a file of 100 bytes: `logical physical length flags`.
    const REFLINKED: [[u64; 4]; 3] = [
        [0, 3328 << 12, 10 << 12, 0x2000],
        [10 << 12, 15_616 << 12, 2 << 12, 0],
        [12 << 12, 3340 << 12, 62 << 12, 0x2001],
    ];
    const INLINE: [[u64; 4]; 1] = [[0, 0, 4096, 0x301]];

    /// Of a compressed file with a reflink: 128 KiB each, in one block after the other.
    const COMPRESSED: [[u64; 4]; 2] =
        [[0, 31_872 << 12, 32 << 12, 0x2008], [32 << 12, 31_873 << 12, 32 << 12, 0x2009]];

    fn told(answers: &[[u64; 4]], at_a_time: usize) -> Vec<(u64, u64, bool)> {
        let told = all_told(answers, at_a_time);
        assert!(told.iter().all(|it| !it.encoded));
        told.into_iter().map(|it| (it.physical, it.length, it.shared)).collect()
    }

    fn all_told(answers: &[[u64; 4]], at_a_time: usize) -> Vec<DiskExtent> {
        let mut told = Vec::new();
        let mut asked = 0;
        let answer = |map: &mut Map| {
            asked += 1;
            assert!(asked < 10, "it asks without end");
            assert_eq!((map.head.flags, map.head.room), (1, AT_A_TIME as u32));
            let from = answers.iter().filter(|it| it[0] >= map.head.start).take(at_a_time);
            for (&[logical, physical, length, flags], into) in from.zip(&mut map.extents) {
                *into =
                    Mapped { logical, physical, length, flags: flags as u32, ..Mapped::default() };
                map.head.mapped += 1;
            }
            Ok(())
        };
        extents_by(answer, &mut |it| told.push(it)).expect("it answers");
        told
    }

    #[test]
    fn extents_are_told_with_whether_they_are_shared_and_what_has_no_place_is_not() {
        let expected = vec![
            (3328 << 12, 10 << 12, true),
            (15_616 << 12, 2 << 12, false),
            (3340 << 12, 62 << 12, true),
        ];
        for at_a_time in 1..5 {
            assert_eq!(told(&REFLINKED, at_a_time), expected, "{at_a_time}");
        }
        let compressed = [31_872, 31_873].map(|block| DiskExtent {
            physical: block << 12,
            length: 32 << 12,
            shared: true,
            encoded: true,
        });
        assert_eq!(all_told(&COMPRESSED, 4), compressed);
        assert_eq!(told(&INLINE, 4), []);
        assert_eq!(told(&[], 4), []);
        // An answer that does not say which extent is the last, and an answer that makes no
        // progress.
        assert_eq!(told(&[[0, 9, 5, 0]], 4), [(9, 5, false)]);
        assert_eq!(told(&[[0, 9, 0, 0]], 4), [(9, 0, false)]);
    }

    #[test]
    fn the_records_have_the_sizes_that_the_kernel_takes_them_to_have() {
        assert_eq!((size_of::<Head>(), size_of::<Mapped>(), size_of::<Range>()), (32, 56, 56));
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!((FIEMAP, DEDUPE), (0xc020_660b, 0xc018_9436));
        }
    }
}
