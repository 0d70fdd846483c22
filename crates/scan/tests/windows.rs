//! What Windows has and other systems have not: files told by their directories, names of 16-bit units, drives.

#![forbid(unsafe_code)]
#![cfg(windows)]

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::fs;
use std::ops::ControlFlow;
use std::os::windows::ffi::OsStringExt as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use poach_scan::sys::{Found as _, Kind, Meta, Sys as _, Windows};
use poach_scan::{Control, Node, Options, Scan, scan_on};

fn scanned(path: PathBuf) -> Scan {
    let options = Options { keep_files: true, keep_facts: true, ..Options::default() };
    scan_on(&Windows, &[path], &options, &Control::new()).expect("threads can be had")
}

/// Each entry of a directory by name, as its listing tells of it.
fn listed(path: &std::path::Path) -> BTreeMap<Vec<u8>, Meta> {
    let directory = Windows.open_path(path).expect("a directory");
    let mut found = BTreeMap::new();
    let mut buffer = Windows.buffer();
    // Twice, as a directory is read from its beginning each time.
    for _ in 0..2 {
        found.clear();
        Windows
            .read(&directory, &mut buffer, &mut |entry| {
                let meta = entry.meta().expect("it is there");
                assert_eq!(entry.kind(), Some(meta.kind));
                assert_eq!(found.insert(entry.name().to_bytes().to_vec(), meta), None);
                ControlFlow::Continue(())
            })
            .expect("it can be read");
    }
    found
}

#[test]
fn an_entry_is_told_of_as_the_system_tells_of_its_path() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    fs::create_dir(path("inner")).expect("a directory");
    fs::write(path("empty"), b"").expect("a file");
    fs::write(path("some"), vec![1; 70_000]).expect("a file");
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_007);
    let file = fs::File::options().write(true).open(path("some")).expect("it is there");
    file.set_modified(changed).expect("it is ours");
    drop(file);
    let found = listed(tree.path());
    let [some, empty, inner] = [&b"some"[..], b"empty", b"inner"].map(|name| found[name]);
    assert_eq!((some.kind, some.apparent, some.links), (Kind::File, 70_000, 1));
    assert_eq!(some.modified, 1_000_000_007);
    assert!(some.disk >= 65_536 && some.disk < 1 << 20, "{some:?}");
    assert_eq!((empty.kind, empty.apparent), (Kind::File, 0));
    assert_eq!(inner.kind, Kind::Directory);
    assert_eq!(found.len(), 3);

    let parent = Windows.open_path(tree.path()).expect("a directory");
    assert_eq!(Windows.meta_in(&parent, c"some").expect("it is there"), some);
    assert_eq!(Windows.meta(&path("some"), false).expect("it is there"), some);
    // A directory knows where it is, whatever leads to it.
    let opened = Windows.open(&parent, c"inner").expect("a directory");
    let own = Windows.meta_of(&opened).expect("it is open");
    assert!(own.inode != 0 && own.kind == Kind::Directory);
    assert_eq!(
        own,
        Windows.meta(&path("inner").join("..").join("inner"), true).expect("it is there")
    );
    assert_eq!(
        own,
        Windows.meta_of(&Windows.duplicate(&opened).expect("a handle")).expect("it is open")
    );
}

#[test]
fn names_of_one_file_are_known_and_counted_once() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    fs::create_dir(path("a")).expect("a directory");
    fs::write(path("z"), vec![1; 50_000]).expect("a file");
    for name in ["a/y", "x"] {
        fs::hard_link(path("z"), path(name)).expect("a link");
    }
    // Longer since, by one of its names: each name has to tell.
    fs::write(path("x"), vec![1; 90_000]).expect("a file");
    let found = scanned(tree.path().into());
    assert_eq!((found.totals.files, found.totals.directories), (3, 2));
    let root = found.tree.roots().next().expect("a root");
    let inner = root.directories().next().expect("a directory");
    let borne = inner.files().next().expect("a file");
    assert_eq!((borne.name(), borne.apparent_bytes()), (&b"y"[..], 90_000));
    assert!(root.files().all(|it| it.counts_elsewhere() && it.apparent_bytes() == 0));
    assert_eq!(borne.link().expect("it has three names").links, 3);
}

#[test]
fn a_name_of_any_units_is_read_and_opened() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for units in [&[0xd800][..], &[0x61, 0xdfff], &[0xd83d, 0xde00], &[0xe9, 0x65e5]] {
        let directory = tree.path().join(OsString::from_wide(units));
        // Not each system below Wine takes an unpaired surrogate.
        if fs::create_dir(&directory).is_ok() {
            fs::write(directory.join("inside"), b"12345").expect("a file");
        }
    }
    let found = scanned(tree.path().into());
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    assert!(found.totals.files >= 2 && found.totals.directories == found.totals.files + 1);
    assert_eq!(
        found.tree.roots().map(|it: Node<'_>| it.apparent_bytes()).sum::<u64>(),
        found.totals.apparent_bytes
    );
}

#[test]
fn what_no_entry_can_be_called_is_refused() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    fs::create_dir_all(tree.path().join("a/b")).expect("directories");
    fs::write(tree.path().join("file"), b"1").expect("a file");
    let parent = Windows.open_path(tree.path()).expect("a directory");
    let names: [&CStr; 7] = [c"", c"a\\b", c"a/b", c"..", c".", c"a:b", c"\xff"];
    for name in names {
        assert!(Windows.open(&parent, name).is_err(), "{name:?}");
    }
    assert!(Windows.open(&parent, c"file").is_err());
    assert!(Windows.open_path(&tree.path().join("file")).is_err());
    let gone = Windows.open(&parent, c"gone").err().map(|error| error.kind());
    assert_eq!(gone, Some(std::io::ErrorKind::NotFound));
    assert!(Windows.meta(&tree.path().join("gone"), true).is_err());
    // What is no file has no content; a file has what was written.
    assert!(Windows.open_file(&parent, c"a").is_err());
    assert_eq!(Windows.read_file(&parent, c"file", 9).expect("it is there"), b"1");
}

#[test]
fn a_path_longer_than_windows_programs_mostly_take_is_walked() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let mut path = tree.path().to_owned();
    for level in 0..20 {
        path.push(format!("{level}-{}", "n".repeat(60)));
        fs::create_dir(&path).expect("a directory");
        fs::write(path.join("file"), b"123").expect("a file");
    }
    assert!(path.as_os_str().len() > 1000);
    let found = scanned(tree.path().into());
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    assert_eq!((found.totals.directories, found.totals.files), (21, 20));
    // One of those directories is a path by itself, too.
    assert_eq!(scanned(path).totals.files, 1);
}

#[test]
fn a_file_that_another_program_has_for_itself_is_counted() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = tree.path().join("file");
    fs::write(&path, vec![1; 5000]).expect("a file");
    let _held = fs::File::options().read(true).share_mode(0).open(&path).expect("ours alone");
    for path in [tree.path().to_owned(), path] {
        let found = scanned(path);
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        assert_eq!((found.totals.files, found.totals.errors), (1, 0));
        let root = found.tree.roots().next().expect("a root");
        assert!(root.apparent_bytes() >= 5000);
    }
}
