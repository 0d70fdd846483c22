//! A visitor, and a tree, get each entry once, with what the system knows of it.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::sync::atomic::{AtomicUsize, Ordering};
#[cfg(unix)]
use std::thread::{self, ThreadId};

use poach_scan::sys::Portable;
use poach_scan::{Control, Engine, Node, Options, Scan, Seen, Visitor, Within, scan_with};

use crate::rig;

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

/// The standard library's facts of an entry; nothing of its owner on Windows.
#[derive(Default)]
struct Known {
    size: u64,
    modified: i64,
    mode: u32,
    owner: u32,
    group: u32,
    /// Its device and number there.
    file: Option<(u64, u64)>,
}

impl Known {
    #[cfg(unix)]
    fn of(path: &Path) -> Known {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = path.symlink_metadata().expect("it is there");
        Known {
            size: metadata.size(),
            modified: metadata.mtime(),
            mode: metadata.mode(),
            owner: metadata.uid(),
            group: metadata.gid(),
            file: Some((metadata.dev(), metadata.ino())),
        }
    }

    #[cfg(windows)]
    fn of(path: &Path) -> Known {
        use std::os::windows::fs::MetadataExt as _;
        let metadata = path.symlink_metadata().expect("it is there");
        // Units of 100 ns since 1601.
        let modified = (metadata.last_write_time() / 10_000_000) as i64 - 11_644_473_600;
        Known { size: metadata.len(), modified, ..Known::default() }
    }
}

fn told(paths: &[PathBuf], options: &Options, portable: bool) -> (Scan, Vec<Note>) {
    let control = Control::new();
    let (scan, parts) = if portable {
        scan_with(&Portable, paths, options, &control, &Notes)
    } else {
        scan_with(&rig::Direct, paths, options, &control, &Notes)
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
        // Only on Unix does `Portable` know that a path lies within another one.
        for portable in if cfg!(unix) { &[false, true][..] } else { &[false] } {
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
            let (scan, notes) = told(&paths, &options, *portable);
            let mut found = BTreeMap::new();
            let mut bytes = 0;
            for (name, within, depth, bears, size, modified, owner) in notes {
                let path = scan.tree.path_within(within, &name);
                let path = rig::path_of(&path);
                let known = Known::of(&path);
                assert_eq!((modified, owner), (known.modified, known.owner));
                // The standard library has no length of a directory there.
                if cfg!(unix) || !path.is_dir() {
                    assert_eq!(size, known.size, "{}", path.display());
                }
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
    rig::set_modified(&tree.path().join("empty"), changed).expect("it is ours");
    for way in rig::ways() {
        let options = Options { keep_files: true, keep_facts: true, ..Options::default() };
        let scan = way.scan(&[tree.path().join("outer-3"), tree.path().into()], &options);
        let mut waiting: Vec<Node<'_>> = scan.tree.roots().collect();
        let mut links = 0;
        while let Some(node) = waiting.pop() {
            let path = node.path();
            let known = Known::of(&rig::path_of(&path));
            let facts = node.facts().expect("they were asked for");
            assert_eq!(
                (facts.modified(), u32::from(facts.mode())),
                (known.modified, known.mode),
                "{way:?}"
            );
            assert_eq!((facts.owner(), facts.group()), (known.owner, known.group));
            if let Some(link) = node.link() {
                assert_eq!(link.links, 3, "{way:?}");
                if let Some(file) = known.file {
                    assert_eq!((link.device, link.inode), file, "{way:?}");
                }
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

/// Notes of each entry how many were told before it, whether its file has several names, and which
/// thread told it.
#[cfg(unix)]
#[derive(Default)]
struct Order(AtomicUsize);

#[cfg(unix)]
impl Visitor for Order {
    type Part = Vec<(usize, bool, ThreadId)>;

    fn part(&self) -> Self::Part {
        Vec::new()
    }

    fn entry(&self, part: &mut Self::Part, seen: &Seen<'_>) {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        part.push((before, seen.meta.links > 1 && seen.own.is_none(), thread::current().id()));
    }
}

#[cfg(unix)]
#[test]
fn names_of_a_file_that_has_several_are_told_last_by_the_calling_thread() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    for engine in Engine::ALL {
        let options = Options { engine, threads: NonZeroUsize::new(3), ..Options::default() };
        let (paths, order) = ([tree.path().to_owned()], Order::default());
        let told = scan_with(&rig::Direct, &paths, &options, &Control::new(), &order);
        let mut told: Vec<_> = told.expect("threads").1.into_iter().flatten().collect();
        told.sort_by_key(|(before, ..)| *before);
        let first = told.iter().position(|(_, several, _)| *several).expect("a file of several");
        assert!(told.len() - first >= 3, "{engine}");
        for (before, several, by) in &told[first..] {
            assert!(*several && *by == thread::current().id(), "{engine}: entry {before}");
        }
    }
}

#[test]
fn workers_are_counted_by_one_engine_and_only_if_there_was_a_directory() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let file = tree.path().join("file");
    fs::write(&file, "").expect("a file");
    for engine in Engine::ALL {
        let options = Options { engine, ..Options::default() };
        for (path, counts) in [(tree.path(), engine == Engine::Split), (&file, false)] {
            let scan = poach_scan::scan(&[path.to_owned()], &options, &Control::new());
            let scan = scan.expect("threads");
            assert_eq!(scan.stats.is_some(), counts, "{engine}: {}", path.display());
        }
    }
}
