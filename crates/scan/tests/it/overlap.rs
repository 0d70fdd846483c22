//! Several paths: each entry counts once, however the paths lie.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::ffi::CStr;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use poach_scan::{Control, Engine, Node, Options, scan_on};
#[cfg(target_os = "linux")]
use poach_scan::{Kind, linked};

use crate::rig::{self, Deed};

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
            assert_eq!(rig::told(scan.totals), expected, "{way:?} of {below:?}");
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
    tree.counts_once(&["outer-1/..", ""], 1);
    if cfg!(unix) {
        tree.counts_once(&["outer-1/..", "", "outer-0/loop"], 1);
    }
}

#[test]
fn the_same_path_twice_counts_once() {
    let tree = Tree::new();
    tree.counts_once(&["", "", "."], 1);
}

#[test]
fn a_file_within_another_path_counts_there() {
    let tree = Tree::new();
    tree.counts_once(&["outer-2/inner-0/file-3", "", "hole"], 1);
    if cfg!(unix) {
        tree.counts_once(&["outer-2/inner-0/file-3", "", "hole", "outer-5/dangling"], 1);
    }
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
        let totals = rig::told(way.scan(&paths, &Options::default()).totals);
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

#[cfg(unix)]
#[test]
fn a_symbolic_link_is_counted_and_followed_only_when_asked() {
    let tree = Tree::new();
    let elsewhere = tempfile::tempdir().expect("a directory for the test");
    let link = elsewhere.path().join("link");
    std::os::unix::fs::symlink(tree.0.path(), &link).expect("a link");
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

#[cfg(unix)]
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

/// A directory mounted below another one (a bind mount) is a second path to the same entries.
fn mounted(tree: &Tree, point: &str, seen: &str) -> rig::Rigged<'static, rig::Direct> {
    fs::create_dir(tree.path(point)).expect("a mount point");
    // As the system tells of mounts: by the whole path, which on Windows begins with a prefix of
    // its own.
    let point = tree.path(point).canonicalize().expect("it was just made");
    let mounts = vec![(point, tree.path(seen))];
    rig::Rigged { mounts, ..rig::Rigged::new(&|_, _| None) }
}

#[test]
fn what_two_mounts_show_counts_once_with_one_path_and_with_two() {
    // Seen within itself; and beside itself, at names before and after.
    for (point, seen) in [
        ("empty/self", ""),
        ("outer-1/self", "outer-1"),
        ("a-mount", "outer-4"),
        ("z-mount", "outer-4"),
    ] {
        let tree = Tree::new();
        let before = rig::second_opinion(tree.0.path());
        let rigged = mounted(&tree, point, seen);
        // The mount point itself is covered; its parent may have grown by its name.
        let own = |path: PathBuf| fs::metadata(path).expect("it is there");
        let bytes = own(tree.path(point)).len();
        let expected = rig::second_opinion(tree.0.path()).apparent_bytes - bytes;
        for engine in Engine::ALL {
            let roots = [vec![tree.path("")], vec![tree.path(""), tree.path("outer-4")]];
            for roots in roots {
                let scan = rigged.scan(&roots, engine);
                let found = (scan.totals.entries(), scan.totals.apparent_bytes);
                assert_eq!(
                    found,
                    (before.entries(), expected),
                    "{engine}: {point} of {seen}, {roots:?}"
                );
                let root = scan.tree.roots().next().expect("a root");
                assert_eq!((scan.tree.roots().count(), root.entries() + 1), (1, before.entries()));
                // Whichever worker came first, it stands at the name that comes first in byte
                // order.
                let at = |name: &str| root.directories().find(|it| it.name() == name.as_bytes());
                if seen == "outer-4" {
                    assert_eq!(at("a-mount").is_some(), point == "a-mount", "{engine}");
                    assert_eq!(at("outer-4").is_some(), point == "z-mount", "{engine}");
                }
            }
        }
    }
}

#[test]
fn a_file_given_before_a_directory_hides_no_overlap() {
    let tree = Tree::new();
    let elsewhere = tempfile::tempdir().expect("a directory for the test");
    fs::write(elsewhere.path().join("file"), b"1").expect("a file");
    let paths = [elsewhere.path().join("file"), tree.path("outer-3"), tree.path("")];
    for way in rig::ways() {
        let scan = way.scan(&paths, &Options::default());
        assert_eq!(scan.tree.roots().count(), 2, "{way:?}");
        assert_eq!(scan.repeated, [tree.path("outer-3")], "{way:?}");
    }
}

#[test]
fn the_directory_of_many_given_files_is_looked_up_once() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let file = |number: usize| tree.path().join(format!("{number}"));
    (0..3000).for_each(|number| fs::write(file(number), b"").expect("a file"));
    let paths: Vec<PathBuf> = (0..3000).map(file).collect();
    let asked = AtomicUsize::new(0);
    let hook = |deed, _: &CStr| {
        asked.fetch_add(usize::from(deed == Deed::Find), Ordering::Relaxed);
        None
    };
    let scan = rig::Rigged::new(&hook).scan(&paths, Engine::Sequential);
    assert_eq!(scan.totals.files, 3000);
    assert_eq!(asked.into_inner(), 3001);
}

#[test]
fn gathering_ends_when_it_is_asked_to() {
    let tree = Tree::new();
    let paths = vec![tree.path("hole"), tree.path("empty"), tree.path("outer-1")];
    let control = Control::new();
    let asked = AtomicUsize::new(0);
    let hook = |deed, _: &CStr| {
        asked.fetch_add(usize::from(deed == Deed::Find), Ordering::Relaxed);
        control.stop();
        None
    };
    let rigged = rig::Rigged::new(&hook);
    let scan = scan_on(&rigged, &paths, &Options::default(), &control).expect("a scan");
    assert!(scan.interrupted);
    // The first path, and the directory that it is in.
    assert_eq!((asked.into_inner(), scan.totals.files), (2, 1));
}

/// A tree with links inside, out of it, in circles and to nowhere, and what lies beside it.
#[cfg(target_os = "linux")]
fn with_links() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| place.path().join(name);
    for name in
        ["tree/in/file", "beside/file", "beside/deep/file", "lone", "other", "excluded/file"]
    {
        fs::create_dir_all(path(name).parent().expect("it has one")).expect("directories");
        fs::write(path(name), name.repeat(1000)).expect("a file");
    }
    for (link, target) in [
        ("tree/to-in", "in"),
        ("tree/in/up", ".."),
        ("tree/beside", "../beside"),
        ("tree/deep", "../beside/deep"),
        ("tree/lone", "../lone"),
        ("tree/in/lone too", "../../lone"),
        ("tree/nowhere", "nothing"),
        ("tree/itself", "itself"),
        ("tree/left out", "../excluded"),
        // From outside, back and on.
        ("beside/back", "../tree/in/file"),
        ("beside/deep/other\n\u{1b}", "../../other"),
    ] {
        rig::symlink(target, path(link)).expect("a link");
    }
    place
}

#[cfg(target_os = "linux")]
#[test]
fn what_links_lead_to_is_scanned_once_wherever_it_lies() {
    let place = with_links();
    let root = place.path().canonicalize().expect("it is there");
    let choice = poach_scan::choice::Choice {
        exclude: poach_scan::choice::Patterns::new(&["left out".to_owned()], &[]).expect("a glob"),
        kinds: vec![Kind::File],
        ..Default::default()
    };
    let options = Options { follow_paths: true, choice: Some(choice.into()), ..Options::default() };
    let paths = linked(&[root.join("tree")], &options, &Control::new()).expect("threads");
    let beside = ["tree", "beside", "beside/deep", "lone", "other"].map(|name| root.join(name));
    assert_eq!(paths, beside);
    let scan = |paths: &[PathBuf], options: &Options| {
        scan_on(&rig::Direct, paths, options, &Control::new()).expect("threads")
    };
    let found = scan(&paths, &options);
    assert_eq!((found.totals.files, found.errors.len()), (5, 0), "{:?}", found.errors);
    let lengths: usize = ["tree/in/file", "beside/file", "beside/deep/file", "lone", "other"]
        .map(str::len)
        .iter()
        .sum();
    assert_eq!(found.totals.apparent_bytes, 1000 * lengths as u64);
    assert_eq!(found.repeated, [root.join("beside/deep")]);
    // By way of a link that is given, and of a directory in the tree whose link leads above it.
    fs::rename(root.join("tree"), root.join("moved")).expect("ours");
    rig::symlink("moved", root.join("tree")).expect("a link");
    let from_below = linked(&[root.join("tree/in")], &options, &Control::new()).expect("threads");
    assert_eq!(from_below[..2], [root.join("tree/in"), root.join("lone")]);
    assert!(from_below.contains(&root.join("moved")));
    assert_eq!(scan(&from_below, &options).totals.files, 5);
    // To another file system only if that is not to be left out.
    rig::symlink("/proc/version", root.join("moved/elsewhere")).expect("a link");
    for one_file_system in [true, false] {
        let options = Options { one_file_system, ..options.clone() };
        let paths = linked(&[root.join("moved")], &options, &Control::new()).expect("threads");
        assert_eq!(paths.contains(&"/proc/version".into()), !one_file_system);
    }
    // Stopped, it has what it has.
    let stopped = Control::new();
    stopped.stop();
    assert_eq!(linked(&[root.join("tree")], &options, &stopped).expect("threads").len(), 1);
}

/// Under root everything may be read, so it looks as another user.
#[cfg(target_os = "linux")]
#[test]
fn a_link_to_what_may_not_be_looked_at_is_told_of_once() {
    use rustix::thread::{Uid, set_thread_res_uid};
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().expect("a directory for the test");
    let root = place.path().canonicalize().expect("it is there");
    for name in ["tree", "closed/inner"] {
        fs::create_dir_all(root.join(name)).expect("a directory");
    }
    rig::symlink("../closed/inner", root.join("tree/link")).expect("a link");
    let closed = |mode| fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(mode));
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).expect("ours");
    closed(0).expect("ours");
    let is_root = rustix::process::geteuid().is_root();
    let user = |id| set_thread_res_uid(None, Uid::from_raw(id), None);
    if is_root {
        user(65_534).expect("root may");
    }
    let options = Options { follow_paths: true, ..Options::default() };
    let found = |given: PathBuf| {
        let paths =
            linked(std::slice::from_ref(&given), &options, &Control::new()).expect("threads");
        let scan = scan_on(&rig::Direct, &paths, &options, &Control::new()).expect("threads");
        let errors: Vec<_> = scan.errors.iter().map(|it| it.path.clone()).collect();
        (paths[1..].to_vec(), errors)
    };
    let (both, link) = ([root.join("tree"), root.clone()].map(found), root.join("tree/link"));
    if is_root {
        user(0).expect("it was root");
    }
    closed(0o755).expect("ours");
    for (paths, errors) in both {
        let name = link.as_os_str().as_encoded_bytes();
        assert_eq!(paths, std::slice::from_ref(&link));
        assert!(errors.iter().any(|it| it == name), "{errors:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_target_on_a_file_system_mounted_below_a_given_path_is_followed_there() {
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;
    let device = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
    let [above, below] = ["/dev", "/dev/shm"].map(Path::new);
    let shared = tempfile::tempdir_in(below);
    let Ok(shared) = shared.as_ref().map(tempfile::TempDir::path) else { return };
    if device(above) == device(below) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory for the test");
    for name in ["given", "target"] {
        fs::create_dir(shared.join(name)).expect("a directory");
    }
    let target = shared.join("target");
    rig::symlink(target.to_str().expect("plain"), place.path().join("link")).expect("a link");
    for one_file_system in [true, false] {
        let options = Options { one_file_system, follow_paths: true, ..Options::default() };
        let given = [place.path().to_owned(), above.to_owned(), shared.join("given")];
        let paths = linked(&given, &options, &Control::new()).expect("threads");
        // The walk of `/dev` comes to it, if it leaves its own file system.
        assert_eq!(paths.contains(&target), one_file_system, "{paths:?}");
    }
}

#[test]
fn files_of_one_name_in_two_directories_are_two_files() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let paths = ["a/f", "b/f"].map(|name| tree.path().join(name));
    for path in &paths {
        fs::create_dir(path.parent().expect("it has one")).expect("a directory");
        fs::write(path, "content").expect("a file");
    }
    let scan =
        scan_on(&rig::Direct, &paths, &Options::default(), &Control::new()).expect("threads");
    assert_eq!((scan.totals.files, scan.repeated.len()), (2, 0));
}

#[test]
#[cfg(target_os = "linux")]
fn no_link_in_a_cache_that_is_left_out_is_followed() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    fs::create_dir_all(path("t/cache")).expect("directories");
    fs::create_dir(path("u")).expect("a directory");
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n";
    fs::write(path("t/cache/CACHEDIR.TAG"), tag).expect("a file");
    rig::symlink("../../u", path("t/cache/link")).expect("a link");
    for (exclude_caches, paths) in [(false, 2), (true, 1)] {
        let choice = poach_scan::choice::Choice { exclude_caches, ..Default::default() };
        let options = Options { choice: Some(choice.into()), ..Options::default() };
        let found = linked(&[path("t")], &options, &Control::new()).expect("threads");
        assert_eq!(found.len(), paths, "{found:?}");
    }
}

#[test]
fn a_given_path_that_cannot_be_read_is_marked_where_it_lies() {
    let tree = Tree::new();
    // A given path has no name when it is read.
    let given = |deed, name: &std::ffi::CStr| {
        (deed == rig::Deed::Read && name == c"").then(|| std::io::Error::other("no"))
    };
    let paths = [tree.path(""), tree.path("outer-3")];
    let scan = rig::Rigged::new(&given).scan(&paths, Engine::default());
    let root = scan.tree.roots().next().expect("a root");
    let marked: Vec<_> = root.directories().filter(Node::is_unread).map(|it| it.name()).collect();
    assert_eq!((marked, scan.errors.len()), (vec![&b"outer-3"[..]], 2), "{:?}", scan.errors);
}
