//! Trees deeper than any path may be long.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

use std::ffi::CStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;

use poach_scan::sys::{Linux, Portable};
use poach_scan::{Control, Engine, Options, scan_on};
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, symlinkat, unlinkat};

const LEVELS: usize = 3000;
const NAME: &CStr = c"a level below";
const SIDE: &CStr = c"side";

/// A comb: each level holds the next one, another directory, and a link.
struct Deep(tempfile::TempDir);

fn enter(above: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    openat(above, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

impl Deep {
    fn new() -> Deep {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let mut at: OwnedFd = fs::File::open(directory.path()).expect("it is there").into();
        for _ in 0..LEVELS {
            mkdirat(&at, NAME, Mode::RWXU).expect("one level more");
            mkdirat(&at, SIDE, Mode::RWXU).expect("one beside it");
            symlinkat(c"..", &at, c"up").expect("a link");
            at = enter(&at, NAME).expect("the level just made");
        }
        Deep(directory)
    }
}

impl Drop for Deep {
    fn drop(&mut self) {
        // Level by level from the top: what is below is moved up to where a handle is short.
        let top: OwnedFd = fs::File::open(self.0.path()).expect("it is there").into();
        for level in 0..LEVELS {
            let below = enter(&top, NAME).expect("a level");
            if level + 1 < LEVELS {
                rustix::fs::renameat(&below, NAME, &top, c"kept").expect("moved up");
            }
            for at in [&below, &top] {
                let _ = unlinkat(at, SIDE, AtFlags::REMOVEDIR);
                let _ = unlinkat(at, c"up", AtFlags::empty());
            }
            unlinkat(&top, NAME, AtFlags::REMOVEDIR).expect("it is empty");
            if level + 1 < LEVELS {
                rustix::fs::renameat(&top, c"kept", &top, NAME).expect("the next one");
            }
        }
    }
}

#[test]
fn every_engine_reaches_the_bottom() {
    let deep = Deep::new();
    for engine in Engine::ALL {
        // As many handles as there are; for two of the engines also few, and none to spare.
        let frugal = matches!(engine, Engine::Sequential | Engine::Split);
        let budgets = [None, Some(64), Some(0)];
        for handles in budgets.into_iter().take(if frugal { 3 } else { 1 }) {
            let options = Options { engine, handles, ..Options::default() };
            let scan = scan_deep(deep.0.path(), &options);
            assert!(scan.errors.is_empty(), "{engine}: {:?}", scan.errors.first());
            assert_eq!(scan.totals.directories, 2 * LEVELS as u64 + 1, "{engine}, {handles:?}");
            assert_eq!(scan.totals.symlinks, LEVELS as u64, "{engine}, {handles:?}");
            let mut depth = 0;
            let mut at = scan.tree.roots().next();
            while let Some(node) = at {
                at = node.directories().find(|node| node.name() == NAME.to_bytes());
                depth += usize::from(at.is_some());
                assert_eq!(node.entries(), 3 * (LEVELS - depth + usize::from(at.is_some())) as u64);
            }
            assert_eq!(depth, LEVELS);
        }
    }
}

fn scan_deep(path: &Path, options: &Options) -> poach_scan::Scan {
    scan_on(&Linux, &[path.into()], options, &Control::new()).expect("threads can be had")
}

#[test]
fn a_small_stack_is_enough() {
    let deep = Deep::new();
    let path = deep.0.path().to_owned();
    thread::Builder::new()
        .stack_size(128 << 10)
        .spawn(move || {
            let options = Options { engine: Engine::Sequential, ..Options::default() };
            let scan = scan_deep(&path, &options);
            assert_eq!(scan.totals.directories, 2 * LEVELS as u64 + 1);
            let mut out = Vec::new();
            let look = poach_scan::report::Look { width: 80, colour: true, ..Default::default() };
            let extent = poach_scan::report::Extent::default();
            poach_scan::report::text(&scan, &extent, look, &mut out).expect("a vector");
            poach_scan::document::json(&scan, &extent, &mut out).expect("a vector");
            drop(scan);
        })
        .expect("a thread")
        .join()
        .expect("128 KiB of stack are enough");
}

#[test]
fn the_portable_path_says_where_a_path_grows_too_long() {
    let deep = Deep::new();
    let scan = scan_on(&Portable, &[deep.0.path().into()], &Options::default(), &Control::new())
        .expect("threads can be had");
    // Every level whose path can be written is counted, and where they end is an error.
    let reached = (4096 - deep.0.path().as_os_str().len()) / (NAME.to_bytes().len() + 1);
    assert!(scan.totals.directories >= 2 * reached as u64 - 4, "{:?}", scan.totals);
    assert!(scan.totals.errors > 0);
    let error = &scan.errors[0];
    assert!(error.message.contains("name too long"), "{}", error.message);
    assert!(error.path.len() > 4000, "the path is {} bytes long", error.path.len());
}
