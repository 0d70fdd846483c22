//! The tree of a seed and the floor, on which `cargo xtask scan-bench` measures, agree with a scan.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use poach_scan::{Control, Options, scan};

#[path = "../../examples/floor.rs"]
#[expect(dead_code, reason = "the example's own `main`")]
mod example;
#[path = "../../examples/make-tree.rs"]
#[expect(dead_code, reason = "the example's own `main`")]
mod make_tree;

use example::linux::{Ask, walk};

/// Each path with its kind, length and number of names.
fn listed(at: &Path, root: &Path, list: &mut Vec<(String, bool, bool, u64, u64)>) {
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        // How long a directory is, is the file system's affair.
        let length = if meta.is_dir() { 0 } else { meta.len() };
        list.push((name, meta.is_dir(), meta.is_symlink(), length, meta.nlink()));
        if meta.is_dir() {
            listed(&path, root, list);
        }
    }
}

#[test]
fn a_seed_makes_the_same_tree_twice_and_another_seed_another() {
    let scratch = tempfile::tempdir().unwrap();
    let [first, second, other] = [("first", 7), ("second", 7), ("other", 8)].map(|(name, seed)| {
        let root = scratch.path().join(name);
        let made = make_tree::make(root.clone(), 2_000, seed).unwrap();
        let mut list = Vec::new();
        listed(&root, &root, &mut list);
        list.sort();
        assert_eq!(list.len() + 1, made[..3].iter().sum::<usize>());
        list
    });
    assert!(first == second);
    assert!(first != other);
}

#[test]
fn the_maker_the_floor_and_a_scan_have_the_same_totals() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("tree");
    let [directories, files, links, hard] = make_tree::make(root.clone(), 3_000, 1).unwrap();
    assert!(hard > 10, "{hard}");
    let made = [directories, files, links, 0].map(|it| it as u64);

    let found = scan(std::slice::from_ref(&root), &Options::default(), &Control::new()).unwrap();
    let totals = found.totals;
    assert_eq!([totals.directories, totals.files, totals.symlinks, totals.other], made);
    for threads in [1, 2, 5] {
        for ask in [Ask::Statx, Ask::Stat, Ask::Names] {
            let sums = walk(&root, threads, ask).unwrap();
            assert_eq!(sums.kinds, made, "{ask:?}, {threads} threads");
            let disk = if matches!(ask, Ask::Names) { 0 } else { totals.disk_bytes };
            assert_eq!(sums.disk, disk, "{ask:?}, {threads} threads");
        }
    }
}

#[test]
fn the_floor_says_what_it_cannot_walk() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file, scratch.path().join("none")] {
        assert!(walk(&path, 2, Ask::Statx).is_err(), "{}", path.display());
    }
}
