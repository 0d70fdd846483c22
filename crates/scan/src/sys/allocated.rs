//! What a scan allocates for an entry, at its peak: the tree, while it grows and is built, and the
//! report. The engine is the sequential one, which runs on the thread that asks, so that other
//! tests beside it do not count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use super::{Found, Kind, Meta, Sys};
use crate::report::{Extent, Look, text};
use crate::{Control, Engine, Options, scan_on};

/// The system's allocator, which counts what each thread has allocated, and the most that it had. A
/// block that grows counts as moved by the system's page tables, as large blocks are.
struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let now = NOW.get() + bytes;
    NOW.set(now);
    MOST.set(now.max(MOST.get()));
}

// SAFETY: it is the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promises are passed on; every block is the system's.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller's promises are passed on; every block is the system's.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Files of one directory: as many as fill vectors that double. With the NUL at its end each name
/// takes 9 bytes.
const FILES: u32 = 1 << 16;
const NAME: usize = 9;

/// One directory, of which no call reaches the kernel.
struct Flat;

struct File {
    name: CString,
    length: u64,
}

impl Found for File {
    fn name(&self) -> &CStr {
        &self.name
    }
    fn kind(&self) -> Option<Kind> {
        Some(Kind::File)
    }
    fn meta(&self) -> io::Result<Meta> {
        Ok(Meta { apparent: self.length, disk: self.length, ..Meta::of(Kind::File) })
    }
}

impl Sys for Flat {
    type Directory = ();
    type Buffer = ();
    type Found<'a> = File;

    fn buffer(&self) {}
    fn handles(&self) -> usize {
        100
    }
    fn meta(&self, _: &Path, _: bool) -> io::Result<Meta> {
        Ok(Meta::of(Kind::Directory))
    }
    fn open_path(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
    fn open(&self, (): &(), _: &CStr) -> io::Result<()> {
        Ok(())
    }
    fn duplicate(&self, (): &()) -> io::Result<()> {
        Ok(())
    }
    fn meta_of(&self, (): &()) -> io::Result<Meta> {
        Ok(Meta::of(Kind::Directory))
    }
    fn meta_in(&self, (): &(), _: &CStr) -> io::Result<Meta> {
        Ok(Meta::of(Kind::Directory))
    }
    fn read(
        &self,
        (): &(),
        (): &mut (),
        each: &mut impl FnMut(&File) -> ControlFlow<()>,
    ) -> io::Result<()> {
        for number in 0..FILES {
            let name = CString::new(format!("f-{number:06}")).expect("no NUL");
            if each(&File { name, length: u64::from(number) }).is_break() {
                break;
            }
        }
        Ok(())
    }
    fn exhausted(&self, _: &io::Error) -> bool {
        false
    }
}

/// The most bytes for each file during a scan and its report, beside those allocated before.
fn bytes_a_file(keep_files: bool, keep_facts: bool, top: Option<usize>) -> f64 {
    let engine = Engine::Sequential;
    let options = Options { engine, keep_files, keep_facts, ..Options::default() };
    let before = NOW.get();
    MOST.set(before);
    let scan =
        scan_on(&Flat, &["made-up".into()], &options, &Control::new()).expect("threads can be had");
    assert_eq!(scan.totals.files, u64::from(FILES));
    let extent = Extent { top, ..Extent::default() };
    text(&scan, &extent, Look::default(), &mut io::sink()).expect("it takes everything");
    (MOST.get() - before) as f64 / f64::from(FILES)
}

#[test]
fn a_file_takes_24_bytes_and_its_name_and_16_for_its_facts_and_a_report_of_some_takes_none() {
    // Buffers of reading and the report, whose size does not depend on the number of files.
    const REST: f64 = 3.0;
    let name = NAME as f64;
    let held = |bytes: f64, bound: f64| bound - 1.0 < bytes && bytes < bound + REST;
    let kept = bytes_a_file(true, false, Some(20));
    assert!(held(kept, 24.0 + name), "{kept}");
    let with_facts = bytes_a_file(true, true, Some(20));
    assert!(held(with_facts, 40.0 + name), "{with_facts}");
    let counted = bytes_a_file(false, false, Some(20));
    assert!(held(counted, 0.0), "{counted}");
    // A report of everything has a row for each, and is what the bound does not hold for.
    let all = bytes_a_file(true, false, None);
    assert!(!held(all, 24.0 + name), "{all}");
}
