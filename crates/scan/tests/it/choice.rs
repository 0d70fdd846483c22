//! Choices of entries: an excluded entry is not there, and a selection says which of the others
//! count.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use poach_scan::choice::{Choice, PatternError, Patterns};
use poach_scan::{Control, Kind, Node, Options, Scan, scan_on};

use crate::rig;

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

#[cfg(unix)]
#[test]
fn owners_groups_and_other_times_select() {
    use std::os::unix::fs::MetadataExt as _;
    let tree = grown();
    let file = fs::File::open(tree.path().join("a/1.rs")).expect("a file");
    let epoch = std::time::UNIX_EPOCH;
    let old = std::time::Duration::from_secs(1000);
    let times = fs::FileTimes::new().set_accessed(epoch + old).set_modified(epoch + 2 * old);
    file.set_times(times).expect("it is ours");
    let files = |choice: Choice| chosen(tree.path(), &choice).1.totals.files;
    let before = |time, before| files(Choice { time, before: Some(before), ..Choice::default() });
    assert_eq!(
        [
            before(poach_scan::choice::Time::Accessed, 1001),
            before(poach_scan::choice::Time::Accessed, 1000)
        ],
        [1, 0]
    );
    assert_eq!(
        [
            before(poach_scan::choice::Time::Modified, 1001),
            before(poach_scan::choice::Time::Modified, 2001)
        ],
        [0, 1]
    );
    assert_eq!(before(poach_scan::choice::Time::Changed, 2001), 0);
    let metadata = file.metadata().expect("it is ours");
    let (owner, group) = (metadata.uid(), metadata.gid());
    let of = |owners: &[u32], groups: &[u32]| {
        files(Choice { owners: owners.into(), groups: groups.into(), ..Choice::default() })
    };
    assert_eq!(
        [of(&[owner], &[]), of(&[owner + 1], &[]), of(&[owner + 1, owner], &[])],
        [10, 0, 10]
    );
    assert_eq!([of(&[], &[group]), of(&[owner], &[group + 1])], [10, 0]);
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
fn ignore_files_are_bytes_and_a_byte_order_mark_is_none_of_them() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for name in [&b"foo"[..], b"bar", b"caf\xe9", b"caf\xc3\xa9", b"x\xff1", b"kept\xff"] {
        let written = fs::write(tree.path().join(rig::path_of(name)), "");
        assert!(written.is_ok() || cfg!(windows), "such a system has Unicode alone for names");
    }
    let rules = b"\xef\xbb\xbffoo\r\ncaf\xe9\nx?[0-9]\n*\xff\n!kept\xff\n";
    fs::write(tree.path().join(".gitignore"), rules).expect("a file");
    let choice = Choice { ignore_files: true, ..Choice::default() };
    let options =
        Options { keep_files: true, choice: Some(Arc::new(choice)), ..Options::default() };
    for way in rig::ways() {
        let scan = way.scan(&[tree.path().into()], &options);
        let root = scan.tree.roots().next().expect("a root");
        let names: BTreeSet<&[u8]> = root.files().map(|file| file.name()).collect();
        let there = [&b".gitignore"[..], b"bar", b"caf\xc3\xa9", b"kept\xff"];
        let there = there.into_iter().filter(|name| cfg!(unix) || name.is_ascii());
        assert!(!names.contains(&b"foo"[..]) && !names.contains(&b"caf\xe9"[..]), "{names:?}");
        assert!(there.into_iter().all(|name| names.contains(name)), "{names:?}");
        assert!(!cfg!(unix) || names.len() == 4, "{names:?}");
    }
}

/// Files of rules made from a seed, on a tree of names that rules are about: what git ignores, and
/// nothing else.
#[cfg(target_os = "linux")]
#[test]
fn what_git_ignores_is_ignored() {
    const DIRECTORIES: [&str; 7] = ["", "a", "b", "a/b", "a/b/d.e", "b/[a]", "b/a"];
    const FILES: [&[u8]; 13] = [
        b"ab",
        b"a.b",
        b"abc",
        b"x y",
        b"x ",
        b"caf\xc3\xa9",
        b"caf\xe9",
        b"{a,b}",
        b"]",
        b"!a",
        b"#a",
        b"A-",
        b"\\",
    ];
    const PARTS: [&[u8]; 34] = [
        b"a",
        b"b",
        b"ab",
        b"c",
        b"d.e",
        b"x",
        b" ",
        b"*",
        b"*",
        b"**",
        b"**/",
        b"/**",
        b"?",
        b"/",
        b"/",
        b"[ab]",
        b"[!a]",
        b"[^b]",
        b"[a-c]",
        b"[[:alpha:]]",
        b"[[:upper:][:space:]]",
        b"[]-]",
        b"[\\]a]",
        b"\\",
        b"\\a",
        b"\\*",
        b"{a,b}",
        b"[",
        b"]",
        b"\xc3\xa9",
        b"\xe9",
        b"[\xc3\xa9]",
        b".",
        b"caf",
    ];
    const STARTS: [&[u8]; 12] =
        [b"", b"", b"", b"", b"!", b"!", b"/", b"\\!", b"\\#", b"#", b" ", b"\xef\xbb\xbf"];
    const ENDS: [&[u8]; 10] = [b"", b"", b"", b"", b"/", b" ", b"\\ ", b"\t", b"\r", b"/*"];
    let tree = tempfile::tempdir().expect("a directory for the test");
    for directory in DIRECTORIES {
        fs::create_dir_all(tree.path().join(directory)).expect("a directory");
        for file in FILES {
            fs::write(tree.path().join(directory).join(rig::path_of(file)), "").expect("a file");
        }
    }
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "core.excludesFile=/dev/null"]).args(arguments).current_dir(tree.path());
        git.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        git.spawn()
    };
    if !git(&["init", "-q"]).and_then(|mut git| git.wait()).is_ok_and(|status| status.success()) {
        eprintln!("there is no git to compare with");
        return;
    }
    fs::write(tree.path().join(".git/info/exclude"), "").expect("a file");
    let exclude = patterns(&["/.git"]);
    let found = |ignore_files| {
        let choice = Choice { ignore_files, exclude: exclude.clone(), ..Choice::default() };
        let options =
            Options { keep_files: true, choice: Some(Arc::new(choice)), ..Options::default() };
        let scan = poach_scan::scan(&[tree.path().into()], &options, &Control::new());
        let scan = scan.expect("a scan");
        assert!(scan.errors.is_empty(), "{:?}", scan.errors);
        let mut found = BTreeSet::new();
        let mut waiting: Vec<Node<'_>> = scan.tree.roots().collect();
        while let Some(node) = waiting.pop() {
            found.insert(node.path()[tree.path().as_os_str().len()..].to_vec());
            waiting.extend(node.directories().chain(node.files()));
        }
        found.remove(&b""[..]);
        found.iter().map(|path| path[1..].to_vec()).collect::<BTreeSet<_>>()
    };
    let random = std::cell::RefCell::new(fastrand::Rng::with_seed(45));
    let one = |of: &[&[u8]]| random.borrow_mut().choice(of).expect("some").to_vec();
    let rounds = std::env::var("POACH_ROUNDS").map_or(40, |it| it.parse().expect("a number"));
    for round in 0..rounds {
        let mut all = Vec::new();
        for directory in ["", "a", "b"] {
            let lines = (0..random.borrow_mut().usize(0..6)).map(|_| {
                let parts = (0..random.borrow_mut().usize(1..5)).map(|_| one(&PARTS));
                let parts = parts.collect::<Vec<_>>().concat();
                [one(&STARTS), parts, one(&ENDS)].concat()
            });
            let lines = lines.collect::<Vec<_>>().join(&b'\n');
            fs::write(tree.path().join(directory).join(".gitignore"), &lines).expect("a file");
            all.push(lines.escape_ascii().to_string());
        }
        let there = found(false);
        let mut child = git(&["check-ignore", "--no-index", "-z", "--stdin"]).expect("git");
        let asked = there.iter().map(|path| [path, &b"\0"[..]].concat()).collect::<Vec<_>>();
        let mut stdin = child.stdin.take().expect("it is a pipe");
        std::io::Write::write_all(&mut stdin, &asked.concat()).expect("git reads");
        drop(stdin);
        let ignored = child.wait_with_output().expect("git ends").stdout;
        let ignored: BTreeSet<_> = ignored.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
        let kept: BTreeSet<_> = there.difference(&ignored).cloned().collect();
        let ours = found(true);
        let shown = |paths: Vec<&Vec<u8>>| {
            paths.iter().map(|path| path.escape_ascii().to_string()).collect::<Vec<_>>()
        };
        let (more, fewer) =
            (shown(ours.difference(&kept).collect()), shown(kept.difference(&ours).collect()));
        assert!(
            more.is_empty() && fewer.is_empty(),
            "round {round}, rules {all:?}: git ignores {more:?}, and does not ignore {fewer:?}"
        );
    }
}

#[test]
fn an_ignore_file_is_heeded_to_its_end_or_listed_as_unread() {
    let tree = grown();
    let rules = tree.path().join("a/.gitignore");
    let long = format!("{}/b/c/keep.log\n1.rs\n", "# comment\n".repeat(200_000));
    fs::write(&rules, &long).expect("a file");
    let choice = Choice { ignore_files: true, ..Choice::default() };
    let (found, scan) = chosen(tree.path(), &choice);
    has(&found, &["a/b/c/3.txt"], &["a/b/c/keep.log", "a/1.rs"]);
    assert!(scan.errors.is_empty(), "{:?}", scan.errors);

    fs::File::options()
        .write(true)
        .open(&rules)
        .and_then(|file| file.set_len(17 << 20))
        .expect("ours");
    fs::create_dir(tree.path().join(".ignore")).expect("a directory, which is no ignore file");
    let (found, scan) = chosen(tree.path(), &choice);
    has(&found, &["a/b/c/keep.log", "a/1.rs"], &[]);
    let told = |scan: &Scan| {
        let told = scan.errors.iter().map(|it| (it.path.clone(), it.message.clone()));
        told.collect::<Vec<_>>()
    };
    let path = rules.as_os_str().as_encoded_bytes().to_vec();
    let message = "cannot read the ignore file: it is longer than 16 MiB".to_owned();
    assert_eq!((told(&scan), scan.totals.errors), (vec![(path.clone(), message)], 1));
    let a = scan.tree.find(&[tree.path().as_os_str().as_encoded_bytes(), b"a"]).expect("a");
    assert!(!a.is_unread(), "the directory was read");

    let closed = |deed, name: &CStr| {
        let refused = deed == rig::Deed::Open && name == c".gitignore";
        refused.then(|| std::io::ErrorKind::PermissionDenied.into())
    };
    let rigged = rig::Rigged::new(&closed);
    let options = Options { choice: Some(Arc::new(choice)), ..Options::default() };
    for root in [tree.path().to_owned(), tree.path().join("a")] {
        let scan = scan_on(&rigged, std::slice::from_ref(&root), &options, &Control::new());
        let errors = told(&scan.expect("a scan"));
        let below = root.join(".gitignore").as_os_str().as_encoded_bytes().to_vec();
        assert!(errors.iter().any(|(it, _)| *it == below), "{errors:?}");
        assert!(errors.iter().any(|(it, _)| *it == path), "{errors:?}");
        assert!(errors[0].1.starts_with("cannot read the ignore file: "), "{errors:?}");
    }
}

#[test]
fn an_absolute_path_is_of_one_root() {
    let tree = grown();
    fs::create_dir(tree.path().join("a/cache")).expect("a directory");
    let roots = [tree.path().to_owned(), tree.path().join("cache")];
    let glob = format!("{}/cache/inner/", tree.path().display());
    let exclude = patterns(&[&glob, "./nothing", "**/c//"]);
    let choice = Choice { exclude: exclude.clone(), ..Choice::default() };
    let (found, _) = chosen(&roots[0], &choice);
    has(&found, &["cache", "a/cache"], &["cache/inner", "a/b/c"]);
    let (found, _) = chosen(&roots[1], &choice);
    has(&found, &["CACHEDIR.TAG"], &["inner"]);
    let unmatched: Vec<&[u8]> = exclude.unmatched().collect();
    assert_eq!(unmatched, [b"./nothing"]);
    let bytes = Patterns::of_bytes(&[b"\xff", b"../x"], &[]).expect("patterns");
    assert_eq!(bytes.impossible().collect::<Vec<_>>(), [b"../x"]);
}

#[test]
fn where_directories_name_no_types_every_filter_finds_the_same() {
    let tree = grown();
    let rules = "target/\n!b/\na/b\n*.txt\n/link/\n";
    fs::write(tree.path().join(".gitignore"), rules).expect("a file");
    let nothing = |_: rig::Deed, _: &CStr| None;
    for choice in [
        Choice { ignore_files: true, ..Choice::default() },
        Choice { exclude: patterns(&["b", "./target"]), ..Choice::default() },
        Choice { include: patterns(&["*.rs", "target"]), ..Choice::default() },
        Choice { kinds: vec![Kind::Directory], ..Choice::default() },
        Choice { kinds: vec![Kind::Symlink], ..Choice::default() },
        Choice { at_least: Some(5), ignore_files: true, ..Choice::default() },
        Choice { exclude_caches: true, ..Choice::default() },
    ] {
        let (expected, _) = chosen(tree.path(), &choice);
        for without_sizes in [false, true] {
            let options = Options {
                keep_files: true,
                choice: Some(Arc::new(choice.clone())),
                without_sizes: without_sizes && choice.at_least.is_none(),
                ..Options::default()
            };
            let rigged = rig::Rigged { typeless: true, ..rig::Rigged::new(&nothing) };
            let scan = scan_on(&rigged, &[tree.path().into()], &options, &Control::new());
            assert_eq!(names(&scan.expect("a scan"), tree.path()), expected, "{choice:?}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_left_out_need_not_be_readable() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    fs::create_dir(tree.path().join("mounted")).expect("a directory");
    let closed = |deed, name: &CStr| {
        let refused = deed == rig::Deed::Open && name == c"mounted";
        refused.then(|| std::io::ErrorKind::PermissionDenied.into())
    };
    let mounts = vec![(tree.path().join("mounted"), "/proc".into())];
    let rigged = rig::Rigged { mounts, ..rig::Rigged::new(&closed) };
    let errors = |one_file_system, exclude_pseudo| {
        let choice = Some(Arc::new(Choice { exclude_pseudo, ..Choice::default() }));
        let options = Options { one_file_system, choice, ..Options::default() };
        let scan = scan_on(&rigged, &[tree.path().into()], &options, &Control::new());
        let scan = scan.expect("a scan");
        (scan.errors.len(), scan.totals.directories)
    };
    assert_eq!(errors(false, false), (1, 2));
    assert_eq!((errors(true, false), errors(false, true)), ((0, 1), (0, 1)));
}

#[test]
fn what_cannot_be_read_has_no_size_under_a_selection() {
    let tree = grown();
    let closed = |deed, name: &CStr| {
        let refused = deed == rig::Deed::Open && name == c"a";
        refused.then(|| std::io::ErrorKind::PermissionDenied.into())
    };
    let choice = Choice { include: patterns(&["no such name"]), ..Choice::default() };
    for memory in [None, Some(0)] {
        let choice = Some(Arc::new(choice.clone()));
        let options = Options { choice, memory, ..Options::default() };
        let scan =
            scan_on(&rig::Rigged::new(&closed), &[tree.path().into()], &options, &Control::new());
        let totals = scan.expect("a scan").totals;
        let sums = (totals.errors, totals.apparent_bytes, totals.disk_bytes, totals.directories);
        assert_eq!(sums, (1, 0, 0, 0), "{memory:?}");
    }
}

#[test]
fn a_given_path_is_scanned_though_it_is_a_cache() {
    let tree = grown();
    let choice = Choice { exclude_caches: true, ..Choice::default() };
    let (found, _) = chosen(&tree.path().join("cache"), &choice);
    has(&found, &["inner/x", "CACHEDIR.TAG"], &[]);
}

#[test]
fn of_two_ignore_files_the_one_that_is_not_gits_has_the_last_word() {
    let tree = grown();
    fs::write(tree.path().join(".gitignore"), "a\n!target\n").expect("a file");
    fs::write(tree.path().join(".ignore"), "!a\ntarget\n").expect("a file");
    let (found, _) = chosen(tree.path(), &Choice { ignore_files: true, ..Choice::default() });
    has(&found, &["a/1.rs"], &["target"]);
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
    let scan = poach_scan::scan(&["/proc/self/task".into()], &options, &control).expect("a scan");
    assert!(scan.totals.directories > 1);
    if Path::new("/sys/kernel").is_dir() && Path::new("/proc/self").is_dir() {
        let exclude =
            patterns(&["/usr", "/home", "/work", "/tmp", "/var", "/root", "/opt", "/dev"]);
        let choice = Choice { exclude_pseudo: true, exclude, ..Choice::default() };
        for without_sizes in [false, true] {
            let choice = Some(Arc::new(choice.clone()));
            let options = Options { choice, without_sizes, ..Options::default() };
            let scan = poach_scan::scan(&["/".into()], &options, &Control::new()).expect("a scan");
            let root = scan.tree.roots().next().expect("a root");
            assert!(root.directories().all(|it| it.name() != b"proc" && it.name() != b"sys"));
        }
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
