//! Which entries count: what is excluded is not there, and a selection says which of the others do.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

mod rig;

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use poach_scan::choice::{Choice, PatternError, Patterns};
use poach_scan::{Control, Kind, Node, Options, Scan, scan_on};

fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    for directory in ["a/b/c", "target/debug", "cache/inner", "false-cache"] {
        fs::create_dir_all(path(directory)).expect("a directory");
    }
    for (name, size) in [
        ("a/1.rs", 10),
        ("a/b/2.rs", 200),
        ("a/b/c/3.txt", 3000),
        ("a/b/c/keep.log", 1),
        ("a/4.log", 4),
        ("target/debug/big.o", 100_000),
        ("cache/inner/x", 5),
        ("false-cache/y", 6),
    ] {
        fs::write(path(name), vec![1; size]).expect("a file");
    }
    rig::symlink("a", path("link")).expect("a link");
    fs::write(path("cache/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n# why")
        .expect("a tag");
    fs::write(path("false-cache/CACHEDIR.TAG"), "Signature: none").expect("a tag");
    tree
}

fn patterns(globs: &[&str]) -> Patterns {
    let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
    Patterns::new(&globs, &[]).expect("patterns")
}

/// The names below the root of everything that is there.
fn names(scan: &Scan, root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<Node<'_>> = scan.tree.roots().collect();
    while let Some(node) = waiting.pop() {
        let path = String::from_utf8(node.path()).expect("UTF-8");
        let path = path[root.as_os_str().len()..].replace(std::path::MAIN_SEPARATOR, "/");
        found.insert(path.trim_start_matches('/').to_owned());
        waiting.extend(node.directories().chain(node.files()));
    }
    found.remove("");
    found
}

/// In every way: the names that are there, and that totals and tree agree.
fn chosen(root: &Path, choice: &Choice) -> (BTreeSet<String>, Scan) {
    let options =
        Options { keep_files: true, choice: Some(Arc::new(choice.clone())), ..Options::default() };
    let mut all = rig::ways().map(|way| way.scan(&[root.into()], &options));
    let first = all.next().expect("a way");
    for other in all {
        assert_eq!(names(&other, root), names(&first, root));
        assert_eq!(other.totals, first.totals);
    }
    let top = first.tree.roots().next().expect("a root");
    assert_eq!(top.apparent_bytes(), first.totals.apparent_bytes);
    (names(&first, root), first)
}

fn has(names: &BTreeSet<String>, there: &[&str], not_there: &[&str]) {
    for name in there {
        assert!(names.contains(*name), "{name} is not in {names:?}");
    }
    for name in not_there {
        assert!(!names.contains(*name), "{name} is in {names:?}");
    }
}

#[test]
fn what_is_excluded_is_not_there() {
    let tree = grown();
    let choice = |globs| Choice { exclude: patterns(globs), ..Choice::default() };
    let (found, scan) = chosen(tree.path(), &choice(&["target", "*.log"]));
    has(
        &found,
        &["a/1.rs", "a/b/c/3.txt"],
        &["target", "target/debug", "a/4.log", "a/b/c/keep.log"],
    );
    assert_eq!(found.contains("link"), cfg!(unix));
    // Directories have their own size, as without a choice; on Windows they may have none.
    assert!(cfg!(windows) || scan.totals.apparent_bytes > 4096);
    assert_eq!(scan.totals.directories, 7);
    let (found, _) = chosen(tree.path(), &choice(&["a/b/*.rs", "/cache"]));
    has(&found, &["a/1.rs", "a/b/c"], &["a/b/2.rs", "cache"]);
}

#[test]
fn nothing_is_asked_of_a_file_that_is_excluded() {
    let tree = grown();
    let asked = AtomicUsize::new(0);
    let hook = |deed, name: &CStr| {
        asked.fetch_add(usize::from(deed == rig::Deed::Meta), Ordering::Relaxed);
        assert_ne!(name, c"target", "an excluded directory is not opened");
        None
    };
    let choice = Choice {
        exclude: patterns(&["*.log", "target"]),
        include: patterns(&["*.rs"]),
        ..Choice::default()
    };
    let options = Options { choice: Some(Arc::new(choice)), ..Options::default() };
    let rigged = rig::Rigged::new(&hook);
    let scan = scan_on(&rigged, &[tree.path().into()], &options, &Control::new()).expect("a scan");
    assert_eq!((scan.totals.files, asked.into_inner()), (2, 2));
}

#[test]
fn a_selection_weighs_what_it_selects_alone() {
    let tree = grown();
    let bytes = |choice: Choice| {
        let (_, scan) = chosen(tree.path(), &choice);
        (scan.totals.files, scan.totals.symlinks, scan.totals.apparent_bytes)
    };
    assert_eq!(bytes(Choice { include: patterns(&["*.rs"]), ..Choice::default() }), (2, 0, 210));
    assert_eq!(
        bytes(Choice { at_least: Some(100), at_most: Some(3000), ..Choice::default() }),
        (2, 0, 3200)
    );
    let links = bytes(Choice { kinds: vec![Kind::Symlink], ..Choice::default() });
    assert_eq!(links, if cfg!(unix) { (0, 1, 1) } else { (0, 0, 0) });
    let (_, scan) =
        chosen(tree.path(), &Choice { kinds: vec![Kind::Directory], ..Choice::default() });
    assert_eq!((scan.totals.directories, scan.totals.files), (9, 0));
}

#[test]
fn times_select_from_and_up_to_but_without() {
    let tree = grown();
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000);
    let file = fs::File::options().write(true).open(tree.path().join("a/1.rs")).expect("a file");
    file.set_modified(old).expect("it is ours");
    let files = |since, before| {
        let (_, scan) = chosen(tree.path(), &Choice { since, before, ..Choice::default() });
        scan.totals.files
    };
    assert_eq!((files(None, Some(1001)), files(None, Some(1000))), (1, 0));
    assert_eq!((files(Some(1000), Some(1001)), files(Some(1001), None)), (1, 9));
}

#[test]
fn ignore_files_exclude_by_gits_rules() {
    let tree = grown();
    let rules = |directory: &str, name: &str, rules: &str| {
        fs::write(tree.path().join(directory).join(name), rules).expect("a file");
    };
    rules("", ".gitignore", "/target\n*.log\nb/*.rs\n# comment\n[\n");
    rules("a/b/c", ".gitignore", "!keep.log\n");
    rules("a", ".ignore", "1.rs\n");
    let (found, _) = chosen(tree.path(), &Choice { ignore_files: true, ..Choice::default() });
    has(&found, &["a/b/c/keep.log", "a/b/2.rs", "cache"], &["target", "a/4.log", "a/1.rs"]);
    let (found, _) = chosen(tree.path(), &Choice::default());
    has(&found, &["target", "a/4.log"], &[]);
}

#[test]
fn caches_are_known_by_their_tag() {
    let tree = grown();
    let (found, _) = chosen(tree.path(), &Choice { exclude_caches: true, ..Choice::default() });
    has(&found, &["false-cache/y"], &["cache/inner", "cache/CACHEDIR.TAG"]);
}

#[cfg(target_os = "linux")]
#[test]
fn pseudo_file_systems_are_known_by_the_kernel() {
    // A given path is scanned whatever it is; what is mounted below it is left out.
    let choice = Choice { exclude_pseudo: true, ..Choice::default() };
    let options = Options { choice: Some(Arc::new(choice)), ..Options::default() };
    let control = Control::new();
    let scan = poach_scan::scan(&["/proc/self/fdinfo".into()], &options, &control).expect("a scan");
    assert!(scan.totals.files > 0);
    if Path::new("/sys/kernel").is_dir() && Path::new("/proc/self").is_dir() {
        let exclude =
            patterns(&["/usr", "/home", "/work", "/tmp", "/var", "/root", "/opt", "/dev"]);
        let choice = Choice { exclude_pseudo: true, exclude, ..Choice::default() };
        let options = Options { choice: Some(Arc::new(choice)), ..Options::default() };
        let scan = poach_scan::scan(&["/".into()], &options, &Control::new()).expect("a scan");
        let root = scan.tree.roots().next().expect("a root");
        assert!(root.directories().all(|it| it.name() != b"proc" && it.name() != b"sys"));
    }
}

#[test]
fn what_selects_is_told_from_what_excludes() {
    assert!(
        !Choice { exclude: patterns(&["x"]), ignore_files: true, ..Choice::default() }.selects()
    );
    assert!(Choice { include: patterns(&["x"]), ..Choice::default() }.selects());
    assert!(matches!(Patterns::new(&["[".to_owned()], &[]), Err(PatternError::Glob(_))));
    assert!(matches!(Patterns::new(&[], &["[".to_owned()]), Err(PatternError::Regex(_))));
}
