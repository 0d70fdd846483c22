//! What a visitor is told, and what a tree keeps: each entry once, with what the system knows of it.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod rig;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use poach_scan::sys::{Linux, Portable};
use poach_scan::{Control, Engine, Link, Node, Options, Scan, Seen, Visitor, Within, scan_with};

/// Notes everything it is told.
struct Notes;

/// A name, where it lies and how deep, whether it bears its size, and its times and owner.
type Note = (Vec<u8>, Within, u32, bool, u64, i64, u32);

impl Visitor for Notes {
    type Part = Vec<Note>;

    fn part(&self) -> Vec<Note> {
        Vec::new()
    }

    fn entry(&self, part: &mut Vec<Note>, seen: &Seen<'_>) {
        assert_eq!(seen.apparent(), if seen.bears { seen.meta.apparent } else { 0 });
        assert_eq!(seen.disk(), if seen.bears { seen.meta.disk } else { 0 });
        let meta = seen.meta;
        let (size, modified, owner) = (meta.apparent, meta.modified, meta.owner);
        part.push((seen.name.into(), seen.within, seen.depth, seen.bears, size, modified, owner));
    }
}

fn told(paths: &[PathBuf], options: &Options, portable: bool) -> (Scan, Vec<Note>) {
    let control = Control::new();
    let (scan, parts) = if portable {
        scan_with(&Portable, paths, options, &control, &Notes)
    } else {
        scan_with(&Linux, paths, options, &control, &Notes)
    }
    .expect("threads can be had");
    (scan, parts.into_iter().flatten().collect())
}

fn below(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        if path.symlink_metadata().expect("it is there").is_dir() {
            found.extend(
                fs::read_dir(path).expect("it can be read").map(|it| it.expect("as above").path()),
            );
        }
    }
    found
}

#[test]
fn each_entry_is_told_once_with_what_the_system_knows_of_it() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    let expected = below(tree.path());
    let totals = rig::second_opinion(tree.path());
    for engine in Engine::ALL {
        for portable in [false, true] {
            let options = Options { engine, threads: NonZeroUsize::new(3), ..Options::default() };
            // A path within another one, and a file by itself, are told as often.
            let outside = tempfile::tempdir().expect("a directory for the test");
            let file = outside.path().join("file");
            fs::write(&file, b"1").expect("a file");
            let paths = [
                tree.path().join("outer-3"),
                tree.path().into(),
                file.clone(),
                tree.path().join("hole"),
            ];
            let (scan, notes) = told(&paths, &options, portable);
            let mut found = BTreeMap::new();
            let mut bytes = 0;
            for (name, within, depth, bears, size, modified, owner) in notes {
                let path = scan.tree.path_within(within, &name);
                let path = PathBuf::from(OsStr::from_bytes(&path));
                let metadata = path.symlink_metadata().expect("a path that is there");
                assert_eq!(
                    (size, modified, owner),
                    (metadata.size(), metadata.mtime(), metadata.uid())
                );
                bytes += if bears { size } else { 0 };
                assert_eq!(
                    found.insert(path.clone(), depth),
                    None,
                    "{engine}: {} again",
                    path.display()
                );
            }
            assert_eq!(found.remove(&file), Some(0));
            assert!(
                found
                    .keys()
                    .eq(&expected.iter().cloned().collect::<std::collections::BTreeSet<_>>()),
                "{engine}"
            );
            assert_eq!(bytes, totals.apparent_bytes + 1, "{engine}");
            assert_eq!(found[&tree.path().join("outer-0/inner-0/twin")], 3);
        }
    }
}

#[test]
fn facts_are_kept_of_files_and_directories_when_they_are_asked_for() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    let changed = std::time::UNIX_EPOCH - std::time::Duration::from_secs(5);
    fs::File::open(tree.path().join("empty"))
        .and_then(|it| it.set_modified(changed))
        .expect("it is ours");
    for way in rig::ways() {
        let options = Options { keep_files: true, keep_facts: true, ..Options::default() };
        let scan = way.scan(&[tree.path().join("outer-3"), tree.path().into()], &options);
        let mut waiting: Vec<Node<'_>> = scan.tree.roots().collect();
        let mut links = 0;
        while let Some(node) = waiting.pop() {
            let path = node.path();
            let metadata =
                Path::new(OsStr::from_bytes(&path)).symlink_metadata().expect("it is there");
            let facts = node.facts().expect("they were asked for");
            assert_eq!(
                (facts.modified(), u32::from(facts.mode())),
                (metadata.mtime(), metadata.mode()),
                "{way:?}"
            );
            assert_eq!((facts.owner(), facts.group()), (metadata.uid(), metadata.gid()));
            if let Some(link) = node.link() {
                let (device, inode) = (metadata.dev(), metadata.ino());
                assert_eq!(link, Link { device, inode, links: 3 }, "{way:?}");
                links += 1;
            }
            waiting.extend(node.directories().chain(node.files()));
        }
        assert_eq!(links, 3, "{way:?}");
        let without = Options { keep_files: true, ..Options::default() };
        let scan = way.scan(&[tree.path().into()], &without);
        assert!(scan.tree.roots().all(|root| root.facts().is_none()));
    }
}
