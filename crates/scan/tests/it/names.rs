//! Counting by names and kinds alone: the same numbers, and nothing is asked of any entry.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use poach_scan::{Control, Options, scan_on};

use crate::rig::{Deed, Rigged, grow, ways};

#[test]
fn the_counts_are_those_of_a_whole_scan_from_every_engine() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    grow(tree.path()).expect("a tree");
    let paths = [tree.path().to_owned()];
    for way in ways() {
        let whole = way.scan(&paths, &Options::default());
        let options = Options { without_sizes: true, keep_files: true, ..Options::default() };
        let names = way.scan(&paths, &options);
        let kinds = |scan: &poach_scan::Scan| {
            let it = scan.totals;
            [it.directories, it.files, it.symlinks, it.other, it.errors]
        };
        assert_eq!(kinds(&names), kinds(&whole), "{way:?}");
        assert_eq!((names.totals.disk_bytes, names.totals.apparent_bytes), (0, 0), "{way:?}");
        let root = names.tree.roots().next().expect("a root");
        assert_eq!(root.entries() + 1, names.totals.entries(), "{way:?}");
    }
}

#[test]
fn nothing_is_asked_of_any_entry() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    grow(tree.path()).expect("a tree");
    let asked = AtomicU64::new(0);
    let hook = |deed, _: &std::ffi::CStr| {
        if matches!(deed, Deed::Meta | Deed::Own) {
            asked.fetch_add(1, Ordering::Relaxed);
        }
        None
    };
    let count = |paths: &[PathBuf], without_sizes, one_file_system| {
        asked.store(0, Ordering::Relaxed);
        let options = Options { without_sizes, one_file_system, ..Options::default() };
        let found =
            scan_on(&Rigged::new(&hook), paths, &options, &Control::new()).expect("threads");
        assert!(found.errors.is_empty());
        (asked.load(Ordering::Relaxed), found.totals)
    };
    let one = [tree.path().to_owned()];
    assert_eq!(count(&one, true, false).0, 0);
    let (whole, totals) = count(&one, false, false);
    assert_eq!(whole, totals.entries());
    // Directories are asked where they lie, if that matters; and no file is.
    assert_eq!(count(&one, true, true).0, totals.directories);
    let file = tree.path().join("file");
    fs::write(&file, "content").expect("a file");
    let (asked, given) = count(&[file, tree.path().join("empty")], true, false);
    assert_eq!((asked, given.files, given.disk_bytes), (1, 1, 0));
}
