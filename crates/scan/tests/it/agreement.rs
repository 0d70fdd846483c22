//! Every engine, on either system, with any number of threads, finds the same; and it is right.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use poach_scan::document::json;
use poach_scan::report::Extent;
use poach_scan::{Control, Engine, Error, Kind, Node, Options, Scan, scan};

use crate::rig;

/// Everything that a scan found but when, and the time it took.
fn portrait(scan: &Scan) -> serde_json::Value {
    let mut out = Vec::new();
    json(scan, &Extent::default(), &mut out).expect("a vector can be written to");
    let mut document: serde_json::Value = serde_json::from_slice(&out).expect("it is JSON");
    let members = document.as_object_mut().expect("it is an object");
    for name in ["engine", "threads", "taken", "elapsed_s", "entries_per_s"] {
        assert!(members.remove(name).is_some(), "{name} is missing");
    }
    // What the runtime's workers did: only engines that have some say it.
    members.remove("stats");
    document
}

#[test]
fn all_engines_find_the_same() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    let expected = rig::second_opinion(tree.path());
    assert!(expected.directories > 40 && expected.files > 300, "{expected:?}");
    assert_eq!((expected.symlinks, expected.other), if cfg!(unix) { (25, 1) } else { (0, 0) });

    let options = Options { keep_files: true, ..Options::default() };
    let mut first = None;
    for way in rig::ways() {
        let scan = way.scan(&[tree.path().into()], &options);
        assert_eq!(rig::told(scan.totals), expected, "{way:?}");
        assert!(!scan.interrupted && scan.errors.is_empty() && scan.repeated.is_empty());
        assert_eq!(
            (scan.engine, scan.tree.directories()),
            (way.engine, expected.directories as usize)
        );
        let portrait = portrait(&scan);
        assert_eq!(*first.get_or_insert_with(|| portrait.clone()), portrait, "{way:?}");
    }
}

#[test]
fn a_directory_is_the_sum_of_what_is_in_it() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    let options = Options { keep_files: true, ..Options::default() };
    let scan = scan(&[tree.path().into()], &options, &Control::new()).expect("a scan");

    let root = scan.tree.roots().next().expect("one path, one root");
    let mut entries = 0;
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        let inside: Vec<Node<'_>> = node.directories().chain(node.files()).collect();
        let sum: u64 = inside.iter().map(Node::apparent_bytes).sum();
        let path = std::path::PathBuf::from(String::from_utf8_lossy(&node.path()).into_owned());
        if node.kind() == Kind::Directory {
            // A name that is no text is shown by another, so its directory is not found.
            let unknown = if cfg!(unix) { 4096 } else { 0 };
            let own = path.symlink_metadata().map_or(unknown, |metadata| metadata.len());
            assert_eq!(node.apparent_bytes(), own + sum, "{}", path.display());
            let below: u64 = inside.iter().map(|node| node.entries() + 1).sum();
            assert_eq!(node.entries(), below, "{}", path.display());
        }
        entries += inside.len() as u64;
        waiting.extend(inside);
    }
    assert_eq!(entries + 1, scan.totals.entries());
    assert_eq!(root.entries(), entries);
    assert_eq!(root.disk_bytes(), scan.totals.disk_bytes);
}

#[test]
fn a_hard_link_weighs_once_and_always_at_the_same_place() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    for directory in ["a", "b", "c"] {
        std::fs::create_dir(path(directory)).expect("a directory");
    }
    std::fs::write(path("c/first-made"), [1; 10_000]).expect("a file");
    std::fs::hard_link(path("c/first-made"), path("b/second")).expect("a link");
    std::fs::hard_link(path("c/first-made"), path("b/third")).expect("a link");
    for way in rig::ways() {
        let scan = way.scan(&[tree.path().into()], &Options::default());
        assert_eq!(scan.totals.files, 3, "{way:?}: three names");
        let root = scan.tree.roots().next().expect("a root");
        let own = |name: &str| path(name).metadata().expect("it is there").len();
        for directory in root.directories() {
            let name = String::from_utf8_lossy(directory.name()).into_owned();
            let borne = directory.apparent_bytes() - own(&name);
            // The path that comes first in byte order bears it.
            assert_eq!(borne, if name == "b" { 10_000 } else { 0 }, "{way:?}: {name}");
        }
    }
}

#[test]
fn a_wide_directory_is_handed_on_in_portions() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for number in 0..1500 {
        let directory = tree.path().join(format!("{number}"));
        std::fs::create_dir(&directory).expect("a directory");
        if number % 10 == 0 {
            std::fs::create_dir(directory.join("inner")).expect("a directory");
        }
    }
    for handles in [None, Some(0), Some(1), Some(7)] {
        for way in rig::ways() {
            let options = Options { handles, ..Options::default() };
            let scan = way.scan(&[tree.path().into()], &options);
            assert_eq!(scan.totals.directories, 1651, "{way:?}, {handles:?} handles");
            assert!(scan.errors.is_empty(), "{:?}", scan.errors);
        }
    }
}

#[test]
fn a_scan_stops_when_asked_and_says_so() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    for engine in Engine::ALL {
        let control = Control::new();
        let at_inner = |_, name: &std::ffi::CStr| {
            if name.to_bytes().starts_with(b"inner") {
                control.stop();
            }
            None
        };
        let rigged = rig::Rigged::new(&at_inner);
        let options = Options { engine, ..Options::default() };
        let scan = poach_scan::scan_on(&rigged, &[tree.path().into()], &options, &control)
            .expect("threads can be had");
        assert!(scan.interrupted, "{engine}");
        assert!(scan.totals.directories >= 1, "{engine} kept nothing");
        assert!(scan.totals.entries() < rig::second_opinion(tree.path()).entries(), "{engine}");
        assert_eq!(control.progress().entries, scan.totals.entries(), "{engine}");
    }
}

#[test]
fn a_scan_stops_and_tells_its_progress_in_the_midst_of_a_directory() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for number in 0..1000 {
        std::fs::write(tree.path().join(format!("{number}")), b"1").expect("a file");
    }
    for engine in Engine::ALL {
        let control = Control::new();
        let asked = std::sync::atomic::AtomicU64::new(0);
        let seen = std::sync::atomic::AtomicU64::new(0);
        let at_200 = |deed, _: &std::ffi::CStr| {
            use std::sync::atomic::Ordering::Relaxed;
            if deed == rig::Deed::Meta && asked.fetch_add(1, Relaxed) == 200 {
                seen.store(control.progress().entries, Relaxed);
                control.stop();
            }
            None
        };
        let rigged = rig::Rigged::new(&at_200);
        let options = Options { engine, ..Options::default() };
        let scan = poach_scan::scan_on(&rigged, &[tree.path().into()], &options, &control)
            .expect("threads can be had");
        assert!(scan.interrupted, "{engine}");
        assert!((200..300).contains(&scan.totals.files), "{engine}: {:?}", scan.totals);
        assert!((100..=200).contains(&seen.into_inner()), "{engine}: progress stood still");
    }
}

#[test]
fn names_of_a_file_that_has_several_are_kept_like_any_other() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    std::fs::write(path("b"), [1; 10_000]).expect("a file");
    std::fs::hard_link(path("b"), path("a")).expect("a link");
    std::fs::write(path("single"), vec![1; 20_000]).expect("a file");
    for way in rig::ways() {
        let named = |keep_files| {
            let options = Options { keep_files, ..Options::default() };
            let scan = way.scan(&[tree.path().into()], &options);
            let root = scan.tree.roots().next().expect("a root");
            let mut found: Vec<_> = root
                .files()
                .map(|it| (it.name().to_vec(), it.apparent_bytes(), it.counts_elsewhere()))
                .collect();
            found.sort();
            found
        };
        assert_eq!(named(false), [], "{way:?}");
        let all = [("a", 10_000, false), ("b", 0, true), ("single", 20_000, false)];
        assert_eq!(named(true), all.map(|(name, size, other)| (name.into(), size, other)));
    }
}

#[test]
fn what_cannot_be_scanned_is_an_error_and_no_panic() {
    let nothing = scan(&[], &Options::default(), &Control::new());
    assert!(matches!(nothing, Err(Error::NoPath)));
    let threads = std::num::NonZeroUsize::new(10_000);
    let options = Options { threads, ..Options::default() };
    let crowd = scan(&[".".into()], &options, &Control::new());
    assert!(matches!(crowd, Err(Error::TooManyThreads(10_000))));
}
