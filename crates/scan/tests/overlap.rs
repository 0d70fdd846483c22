//! Several paths: each entry counts once, however the paths lie.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod rig;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use poach_scan::Options;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Tree {
        let tree = Tree(tempfile::tempdir().expect("a directory for the test"));
        rig::grow(tree.0.path()).expect("a tree for the test");
        tree
    }

    fn path(&self, below: &str) -> PathBuf {
        if below.is_empty() { self.0.path().into() } else { self.0.path().join(below) }
    }

    /// Scans these in every way; they must count as the whole tree does.
    fn counts_once(&self, below: &[&str], roots: usize) {
        let expected = rig::second_opinion(self.0.path());
        let paths: Vec<PathBuf> = below.iter().map(|below| self.path(below)).collect();
        for way in rig::ways() {
            let scan = way.scan(&paths, &Options::default());
            assert_eq!(scan.totals, expected, "{way:?} of {below:?}");
            assert_eq!(scan.tree.roots().count(), roots, "{way:?} of {below:?}");
            assert_eq!(scan.repeated.len(), paths.len() - roots, "{way:?} of {below:?}");
        }
    }
}

#[test]
fn a_path_within_another_counts_there() {
    let tree = Tree::new();
    tree.counts_once(&["", "outer-3"], 1);
    tree.counts_once(&["outer-3/inner-0", "", "outer-3"], 1);
    tree.counts_once(&["outer-1/..", "", "outer-0/loop"], 1);
}

#[test]
fn the_same_path_twice_counts_once() {
    let tree = Tree::new();
    tree.counts_once(&["", "", "."], 1);
}

#[test]
fn a_file_within_another_path_counts_there() {
    let tree = Tree::new();
    tree.counts_once(&["outer-2/inner-0/file-3", "", "hole", "outer-5/dangling"], 1);
}

#[test]
fn paths_side_by_side_add_up() {
    let tree = Tree::new();
    let paths = ["outer-1", "outer-2", "hole", "hole", "empty"].map(|below| tree.path(below));
    let expected = ["outer-1", "outer-2", "hole", "empty"]
        .map(|below| rig::second_opinion(&tree.path(below)))
        .into_iter()
        .fold((0, 0, 0), |sum, part| {
            (sum.0 + part.entries(), sum.1 + part.disk_bytes, sum.2 + part.apparent_bytes)
        });
    for way in rig::ways() {
        let totals = way.scan(&paths, &Options::default()).totals;
        assert_eq!((totals.entries(), totals.disk_bytes, totals.apparent_bytes), expected);
    }
}

#[test]
fn hard_links_in_two_paths_weigh_once() {
    let tree = Tree::new();
    let paths = ["outer-0", "outer-3"].map(|below| tree.path(below));
    let single: u64 = paths.iter().map(|path| rig::second_opinion(path).apparent_bytes).sum();
    for way in rig::ways() {
        let totals = way.scan(&paths, &Options::default()).totals;
        assert_eq!(totals.apparent_bytes, single - 8 * 911, "{way:?}");
    }
}

#[test]
fn a_symbolic_link_is_counted_and_followed_only_when_asked() {
    let tree = Tree::new();
    let elsewhere = tempfile::tempdir().expect("a directory for the test");
    let link = elsewhere.path().join("link");
    symlink(tree.0.path(), &link).expect("a link");
    for way in rig::ways() {
        let scan = way.scan(std::slice::from_ref(&link), &Options::default());
        assert_eq!((scan.totals.entries(), scan.totals.symlinks), (1, 1), "{way:?}");
        let options = Options { follow_paths: true, ..Options::default() };
        let scan = way.scan(&[link.clone(), tree.path("")], &options);
        assert_eq!(scan.totals, rig::second_opinion(tree.0.path()), "{way:?}");
    }
}

#[test]
fn a_file_is_a_path_too() {
    let tree = Tree::new();
    for way in rig::ways() {
        let scan = way.scan(&[tree.path("outer-0/inner-0/file-8")], &Options::default());
        assert_eq!((scan.totals.files, scan.totals.entries()), (1, 1), "{way:?}");
        assert_eq!(scan.totals.apparent_bytes, 8 * 911, "{way:?}");
        let root = scan.tree.roots().next().expect("a root");
        assert_eq!(root.apparent_bytes(), 8 * 911);
    }
}

#[test]
fn another_file_system_is_left_out_when_asked() {
    // Only where there is one: / and /proc.
    use std::os::unix::fs::MetadataExt;
    let device = |path| fs::metadata(path).map(|metadata| metadata.dev());
    let (Ok(proc), Ok(slash)) = (device("/proc/self/fd"), device("/")) else { return };
    assert_ne!(proc, slash);
    let options = Options { one_file_system: true, ..Options::default() };
    for way in rig::ways() {
        // A path of its own is scanned whatever it lies on.
        let scan = way.scan(&["/proc/self/fd".into(), "/proc/sys/fs/inotify".into()], &options);
        assert!(scan.totals.directories == 2 && scan.totals.entries() > 2, "{:?}", scan.totals);
    }
}
