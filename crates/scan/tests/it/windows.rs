//! Features of Windows alone: files told by their directories, names of 16-bit units, drives.

#![forbid(unsafe_code)]
#![cfg(windows)]

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::fs;
use std::ops::ControlFlow;
use std::os::windows::ffi::OsStringExt as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use poach_scan::sys::{Found as _, Kind, Meta, Sys as _, Windows};
use poach_scan::{Control, Node, Options, Scan, scan, scan_on};

use crate::rig;

fn scanned(path: PathBuf) -> Scan {
    let options = Options { keep_files: true, keep_facts: true, ..Options::default() };
    scan_on(&Windows, &[path], &options, &Control::new()).expect("threads can be had")
}

/// Each entry of a directory by name, as its listing tells of it.
fn listed(path: &Path) -> BTreeMap<Vec<u8>, Meta> {
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
fn a_hole_takes_no_space() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = tree.path().join("hole");
    let file = fs::File::create(&path).expect("a file");
    // Wine's files are sparse by themselves, and it has no such program.
    let _ = Command::new("fsutil").args(["sparse", "setflag"]).arg(&path).output();
    file.set_len(1 << 30).expect("it is ours");
    drop(file);
    let found = listed(tree.path())[&b"hole"[..]];
    assert_eq!((found.apparent, found.links), (1 << 30, 1));
    assert!(found.disk < 1 << 20, "{found:?}");
    let totals = scan(&[tree.path().into()], &Options::default(), &Control::new())
        .expect("threads can be had")
        .totals;
    assert!(totals.apparent_bytes >= 1 << 30 && totals.disk_bytes < 1 << 20, "{totals:?}");
}

/// A junction, which each user may make. Wine 8 makes none: a symbolic link of the system below it
/// is there in its place, and is removed by that system, too, as the standard library would remove
/// what it leads to.
struct Junction<'d> {
    directory: &'d Path,
    name: &'d str,
    by_wine: bool,
}

impl Junction<'_> {
    fn new<'d>(directory: &'d Path, name: &'d str, target: &str) -> Junction<'d> {
        let mut link = Junction { directory, name, by_wine: false };
        link.run(&["mklink", "/j", name, target]);
        link.by_wine = link.directory.join(name).symlink_metadata().is_err();
        if link.by_wine {
            link.run_below(&["/bin/ln", "-s", target, name]);
        }
        assert!(directory.join(name).symlink_metadata().is_ok(), "{name} was made");
        link
    }

    fn run(&self, command: &[&str]) {
        let mut shell = Command::new("cmd");
        shell.arg("/c").args(command).current_dir(self.directory).output().expect("a shell");
    }

    /// Runs a program of the system below Wine. Without `/d` it would run in its own directory.
    fn run_below(&self, command: &[&str]) {
        let directory = self.directory.to_str().expect("a plain path");
        self.run(&[&["start", "/wait", "/d", directory, "/unix"], command].concat());
    }
}

impl Drop for Junction<'_> {
    fn drop(&mut self) {
        if self.by_wine {
            self.run_below(&["/bin/rm", self.name]);
        } else {
            fs::remove_dir(self.directory.join(self.name)).expect("ours");
        }
    }
}

#[test]
fn what_a_link_leads_to_is_not_counted_again() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    fs::create_dir_all(path("real/inner")).expect("directories");
    fs::write(path("real/inner/file"), vec![1; 5000]).expect("a file");
    let link = Junction::new(tree.path(), "link", "real");
    let found = scanned(tree.path().into());
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    let totals = found.totals;
    assert_eq!((totals.directories, totals.files, totals.symlinks), (3, 1, 1));
    assert_eq!(listed(tree.path())[&b"link"[..]].kind, Kind::Symlink);
    if link.by_wine {
        // Wine follows it wherever it is opened, so that nothing but a listing tells of it.
        return;
    }
    let parent = Windows.open_path(tree.path()).expect("a directory");
    assert!(Windows.open(&parent, c"link").is_err(), "a link is not followed");
    // As a path it is a link, too, unless it is to be followed.
    let totals = scanned(path("link")).totals;
    assert_eq!((totals.directories, totals.files, totals.symlinks), (0, 0, 1));
    let options = Options { follow_paths: true, ..Options::default() };
    let found = scan(&[path("link")], &options, &Control::new()).expect("threads can be had");
    assert_eq!((found.totals.directories, found.totals.files), (2, 1));
}

#[test]
fn a_link_to_a_directory_above_it_ends_there() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let inner = tree.path().join("inner");
    fs::create_dir(&inner).expect("a directory");
    fs::write(inner.join("file"), b"1").expect("a file");
    let _links = [("up", ".."), ("self", ".")].map(|(name, to)| Junction::new(&inner, name, to));
    let found = scanned(tree.path().into());
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    let totals = found.totals;
    assert_eq!((totals.directories, totals.files, totals.symlinks), (2, 1, 2));
}

#[test]
fn a_directory_that_may_not_be_read_is_an_error_and_the_rest_counts() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for name in ["open", "closed"] {
        fs::create_dir(tree.path().join(name)).expect("a directory");
        fs::write(tree.path().join(name).join("file"), b"1").expect("a file");
    }
    let _held = rig::held(&tree.path().join("closed"));
    let found = scanned(tree.path().into());
    assert_eq!((found.totals.directories, found.totals.files, found.totals.errors), (3, 1, 1));
    let error = &found.errors[0];
    assert!(error.path.ends_with(b"\\closed"), "{error:?}");
    let root = found.tree.roots().next().expect("a root");
    let unread: Vec<_> = root.directories().map(|it| (it.name(), it.is_unread())).collect();
    assert!(unread.contains(&(&b"closed"[..], true)) && unread.contains(&(b"open", false)));
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

#[test]
fn an_entry_goes_only_if_it_is_the_one_that_was_identified() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    for name in ["a", "b"] {
        fs::write(path(name), name).expect("a file");
    }
    let parent = Windows.open_path(tree.path()).expect("a directory");
    let (a, meta) = Windows::identify(&Windows, &parent, c"a").expect("it is there");
    assert_eq!((meta.kind, meta.apparent), (Kind::File, 1));
    let (b, _) = Windows::identify(&Windows, &parent, c"b").expect("it is there");
    assert!(!a.is_same_file(&b) && a.is_on_same_volume(&b) && a != b);
    let own = Windows::identity_of(&Windows, &parent).expect("a directory");
    assert!(!own.is_same_file(&a));
    assert!(!Windows::remove(&Windows, &parent, c"a", &b).expect("it can be opened"));
    assert!(path("a").exists());
    assert!(Windows::remove(&Windows, &parent, c"a", &a).expect("it is ours"));
    assert!(!path("a").exists() && path("b").exists());
    assert!(Windows::remove(&Windows, &parent, c"a", &a).is_err());
    assert!(Windows::remove(&Windows, &parent, c"b:stream", &b).is_err(), "no name of an entry");
}
