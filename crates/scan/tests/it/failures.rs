//! Entries that cannot be read: the total of the rest is correct, and each failure is listed with
//! its path.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Mutex;

use poach_scan::{Engine, Options, Scan, Totals};

use crate::rig::{self, Deed, Rigged};

/// The system's errors for an entry that may not be opened, for a missing entry, and for the lack
/// of handles.
#[cfg(unix)]
mod said {
    pub(crate) const DENIED: (i32, &str) = (13, "Permission denied");
    pub(crate) const GONE: (i32, &str) = (2, "No such file");
    pub(crate) const EXHAUSTED: [i32; 2] = [24, 23];
}

#[cfg(windows)]
mod said {
    pub(crate) const DENIED: (i32, &str) = (5, "os error 5");
    pub(crate) const GONE: (i32, &str) = (2, "os error 2");
    pub(crate) const EXHAUSTED: [i32; 2] = [4, 1450];
}

use said::{DENIED, EXHAUSTED, GONE};

fn system(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    tree
}

fn paths(scan: &Scan) -> Vec<PathBuf> {
    let path = |failure: &poach_scan::Failure| {
        PathBuf::from(String::from_utf8(failure.path.clone()).expect("the test's names are"))
    };
    scan.errors.iter().map(path).collect()
}

/// The totals of a tree without what is below some directories of it.
fn without(tree: &Path, below: &[PathBuf]) -> Totals {
    let mut totals = rig::second_opinion(tree);
    for path in below {
        let part = rig::second_opinion(path);
        let own = path.metadata().expect("it is there");
        totals.directories -= part.directories - 1;
        totals.files -= part.files;
        totals.symlinks -= part.symlinks;
        totals.apparent_bytes -= part.apparent_bytes - own.len();
        #[cfg(unix)]
        let disk = std::os::unix::fs::MetadataExt::blocks(&own) * 512;
        #[cfg(windows)]
        let disk = 0;
        totals.disk_bytes -= part.disk_bytes - disk;
    }
    totals
}

#[test]
fn an_unreadable_directory_counts_itself_and_is_listed() {
    let tree = grown();
    let hook =
        |deed, name: &CStr| (deed == Deed::Open && name == c"outer-7").then(|| system(DENIED.0));
    let unreadable = tree.path().join("outer-7");
    for engine in Engine::ALL {
        let scan = Rigged::new(&hook).scan(&[tree.path().into()], engine);
        assert_eq!(paths(&scan), slice::from_ref(&unreadable), "{engine}");
        assert!(scan.errors[0].message.contains(DENIED.1), "{}", scan.errors[0].message);
        let root = scan.tree.roots().next().expect("a root");
        for node in root.directories() {
            assert_eq!(node.is_unread(), node.name() == b"outer-7", "{engine}");
        }
        let expected = Totals { errors: 1, ..without(tree.path(), slice::from_ref(&unreadable)) };
        assert_eq!(rig::told(scan.totals), expected, "{engine}");
    }
}

#[test]
fn a_directory_that_fails_halfway_keeps_what_it_gave() {
    let tree = grown();
    let hook = |deed, name: &CStr| {
        (deed == Deed::Read && name == c"outer-7").then(|| io::Error::other("no"))
    };
    for engine in Engine::ALL {
        let scan = Rigged::new(&hook).scan(&[tree.path().into()], engine);
        assert_eq!(paths(&scan), [tree.path().join("outer-7")], "{engine}");
        let expected = Totals { errors: 1, ..rig::second_opinion(tree.path()) };
        assert_eq!(rig::told(scan.totals), expected);
        let root = scan.tree.roots().next().expect("a root");
        let unread = root.directories().filter(poach_scan::Node::is_unread);
        assert_eq!(unread.map(|it| it.name()).collect::<Vec<_>>(), [b"outer-7"], "{engine}");
    }
}

#[test]
fn what_vanishes_between_listing_and_looking_is_listed() {
    for engine in Engine::ALL {
        let tree = grown();
        let before = rig::second_opinion(tree.path());
        let once = Mutex::new(());
        // Removed from the disk at the very moment at which the walk is about to look.
        let hook = |deed, name: &CStr| {
            let _one_at_a_time = once.lock();
            if deed == Deed::Open && name == c"outer-5" {
                let _ = fs::remove_dir_all(tree.path().join("outer-5"));
            }
            if deed == Deed::Meta && name == c"hole" {
                let _ = fs::remove_file(tree.path().join("hole"));
            }
            None
        };
        let scan = Rigged::new(&hook).scan(&[tree.path().into()], engine);
        assert_eq!(paths(&scan), [tree.path().join("hole"), tree.path().join("outer-5")]);
        for error in &scan.errors {
            assert!(error.message.contains(GONE.1), "{}", error.message);
        }
        let after = rig::second_opinion(tree.path());
        assert!(after.entries() < before.entries());
        // The root's own size may have been read before or after; all else is exact.
        assert_eq!(scan.totals.entries(), after.entries(), "{engine}");
        assert_eq!(scan.totals.errors, 2, "{engine}");
    }
}

#[cfg(unix)]
#[test]
fn a_directory_that_becomes_a_link_is_not_followed() {
    for engine in Engine::ALL {
        let tree = grown();
        let hook = |deed, name: &CStr| {
            let outer = tree.path().join("outer-5");
            if deed == Deed::Open && name == c"outer-5" && !outer.is_symlink() {
                fs::rename(&outer, tree.path().join("empty/moved")).expect("it can be moved");
                std::os::unix::fs::symlink("/", &outer).expect("a link");
            }
            None
        };
        let scan = Rigged::new(&hook).scan(&[tree.path().into()], engine);
        assert_eq!(paths(&scan), [tree.path().join("outer-5")], "{engine}");
    }
}

#[test]
fn where_descriptors_run_out_nothing_is_lost() {
    let tree = grown();
    for number in EXHAUSTED {
        for engine in Engine::ALL {
            // The first opening of each of these fails, as if others held every descriptor then.
            let refused = Mutex::new(HashSet::new());
            let hook = |deed, name: &CStr| {
                let lacking = deed == Deed::Open && name.to_bytes().starts_with(b"outer");
                let mut refused = refused.lock().expect("no test panics with it");
                (lacking && refused.insert(name.to_owned())).then(|| system(number))
            };
            let scan = Rigged::new(&hook).scan(&[tree.path().into()], engine);
            let expected = rig::second_opinion(tree.path());
            assert_eq!(rig::told(scan.totals), expected, "{engine}: {number}");
            assert_eq!(refused.lock().expect("as above").len(), 12, "the hook was never asked");
        }
    }
}

#[test]
fn where_there_are_no_descriptors_at_all_each_directory_is_listed() {
    let tree = grown();
    let hook = |deed, _: &CStr| (deed == Deed::Open).then(|| system(EXHAUSTED[0]));
    for engine in Engine::ALL {
        let scan = Rigged::new(&hook).scan(&[tree.path().into()], engine);
        let directories = fs::read_dir(tree.path())
            .expect("it is there")
            .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir()))
            .count();
        // `itself` is a loop, not a directory; the links below are not reached.
        assert_eq!(scan.totals.errors, directories as u64, "{engine}");
        assert_eq!(scan.totals.directories, directories as u64 + 1, "{engine}");
        let said = system(EXHAUSTED[0]).to_string();
        assert!(scan.errors[0].message.contains(&said), "{}", scan.errors[0].message);
    }
}

#[test]
fn a_path_that_is_not_there_is_listed_and_the_others_are_scanned() {
    let tree = grown();
    let missing = tree.path().join("not here");
    for way in rig::ways() {
        let scan = way.scan(&[missing.clone(), tree.path().into()], &Options::default());
        assert_eq!(paths(&scan), slice::from_ref(&missing), "{way:?}");
        let expected = Totals { errors: 1, ..rig::second_opinion(tree.path()) };
        assert_eq!(rig::told(scan.totals), expected);
    }
}

#[test]
fn what_the_error_says_is_what_the_system_says() {
    let tree = grown();
    let gone = system(GONE.0);
    let hook =
        |deed, name: &CStr| (deed == Deed::Meta && name == c"file-0").then(|| system(GONE.0));
    let scan = Rigged::new(&hook).scan(&[tree.path().into()], Engine::default());
    let files = rig::second_opinion(tree.path()).files;
    assert_eq!(scan.totals.errors + scan.totals.files, files);
    assert!(scan.totals.errors > 12);
    for error in &scan.errors {
        assert_eq!(error.message, format!("cannot ask for the size of the file: {gone}"));
        assert!(error.path.ends_with(b"file-0"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn proc_is_a_tree_like_any_other() {
    // Processes come and go while this runs, so only what must hold at any moment is asserted.
    for way in rig::ways() {
        let scan = way.scan(&["/proc/self".into(), "/proc/sys".into()], &Options::default());
        assert!(scan.totals.entries() > 200, "{way:?}: {:?}", scan.totals);
        assert_eq!(scan.totals.errors, scan.errors.len() as u64);
        assert!(scan.errors.iter().all(|error| error.path.starts_with(b"/proc/")));
    }
}
