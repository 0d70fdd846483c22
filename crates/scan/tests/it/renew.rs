//! A finished scan that is changed in one place is the scan that a new walk would be.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use poach_scan::choice::{Choice, Patterns};
use poach_scan::survey::{Report, Settings, Survey, text};
use poach_scan::sys::{DiskExtent, Kind, Native, Sys as _};
use poach_scan::{Control, Node, Options, RenewError, Scan, scan, scan_on, scan_with};

use crate::rig;

fn options(threads: usize) -> Options {
    let threads = NonZeroUsize::new(threads);
    Options { keep_files: true, keep_facts: true, threads, ..Options::default() }
}

fn scanned(path: &Path, options: &Options) -> Scan {
    scan(&[path.to_owned()], options, &Control::new()).expect("a scan")
}

/// Everything that a tree says of its entries.
type Known = BTreeMap<Vec<u8>, (Kind, u64, u64, u64, bool, bool, Option<i64>)>;

fn known(scan: &Scan) -> Known {
    let mut known = Known::new();
    let mut waiting: Vec<Node<'_>> = scan.tree.roots().collect();
    while let Some(node) = waiting.pop() {
        let changed = node.facts().map(|facts| facts.modified());
        let what = (
            node.kind(),
            node.apparent_bytes(),
            node.disk_bytes(),
            node.entries(),
            node.counts_elsewhere(),
            node.is_unread(),
            changed,
        );
        assert_eq!(known.insert(node.path(), what), None, "an entry is there once");
        waiting.extend(node.directories().chain(node.files()));
    }
    known
}

fn same(changed: &Scan, fresh: &Scan, when: &str) {
    let (a, b) = (known(changed), known(fresh));
    let differ = a.keys().chain(b.keys()).find(|path| a.get(*path) != b.get(*path));
    if let Some(path) = differ {
        let shown = String::from_utf8_lossy(path);
        panic!("{when}: {shown}: {:?} and not {:?}", a.get(path), b.get(path));
    }
    assert_eq!(changed.totals, fresh.totals, "{when}");
    assert_eq!(changed.errors, fresh.errors, "{when}");
    assert_eq!(changed.tree.directories(), fresh.tree.directories(), "{when}");
}

fn names<'a>(root: &'a Path, below: &'a str) -> Vec<&'a [u8]> {
    let below = below.split('/').filter(|name| !name.is_empty()).map(str::as_bytes);
    std::iter::once(root.as_os_str().as_encoded_bytes()).chain(below).collect()
}

#[test]
fn what_is_renewed_or_forgotten_is_what_a_new_walk_finds() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let root = tree.path();
    rig::grow(root).expect("a tree for the test");
    let options = options(3);
    let mut known = scanned(root, &options);
    let inner = root.join("outer-0/inner-0");

    // Files come, go and grow; one of three names of a file goes, the first in byte order.
    fs::write(inner.join("new"), vec![1; 70_000]).expect("a file");
    fs::remove_file(inner.join("file-3")).expect("ours");
    fs::remove_file(inner.join("file-8")).expect("ours");
    fs::create_dir_all(inner.join("deep/er")).expect("directories");
    fs::write(inner.join("deep/er/x"), "x").expect("a file");
    rig::symlink("x", inner.join("deep/er/link")).expect("a link");
    let way = names(root, "outer-0/inner-0");
    known.interrupted = true;
    known.renew(&way, scanned(&inner, &options)).expect("it is there");
    // A scan of a part does not complete a scan that was ended early, nor the other way round.
    assert!(known.interrupted);
    known.interrupted = false;
    let stopped = Scan { interrupted: true, ..scanned(&inner, &options) };
    known.renew(&way, stopped).expect("it is there");
    assert!(known.interrupted);
    // The directories above have changed only by what is in them.
    same(&known, &scanned(root, &options), "renewed");

    // What was renewed can be renewed, in part and as a whole, and something in it can go.
    fs::write(inner.join("deep/er/y"), vec![1; 9000]).expect("a file");
    let way = names(root, "outer-0/inner-0/deep/er");
    known.renew(&way, scanned(&inner.join("deep/er"), &options)).expect("it is there");
    same(&known, &scanned(root, &options), "renewed again");
    // If every directory keeps its time and has a size that does not follow from its entries (as on
    // ext4, and not on tmpfs), an entry that goes is the whole difference.
    let size = |path: &Path| path.metadata().expect("it is there").len();
    let (probe, before) = (root.join("empty"), size(&root.join("empty")));
    fs::write(probe.join("x"), "").expect("a file");
    let steady = size(&probe) == before;
    fs::remove_file(probe.join("x")).expect("ours");
    known.renew(&names(root, "empty"), scanned(&probe, &options)).expect("it is there");
    if !steady {
        return;
    }
    let gone = |known: &mut Scan, below: &str| {
        let path = root.join(below);
        let above = path.parent().expect("it has one").to_owned();
        let times = above.metadata().and_then(|it| it.modified()).expect("it is there");
        if path.symlink_metadata().expect("it is there").is_dir() {
            fs::remove_dir_all(&path).expect("ours");
        } else {
            fs::remove_file(&path).expect("ours");
        }
        rig::set_modified(&above, times).expect("ours");
        known.forget(&names(root, below)).expect("it was there");
        same(known, &scanned(root, &options), below);
    };
    if cfg!(unix) {
        gone(&mut known, "outer-0/inner-0/deep/er/link");
    }
    gone(&mut known, "outer-0/inner-0/deep");
    let ids = |known: &Scan, below: &str| {
        let node = known.tree.find(&names(root, below)).expect("it is there");
        node.directories()
            .chain(node.files())
            .chain([node])
            .map(|node| node.id())
            .collect::<Vec<_>>()
    };
    let of_gone = ids(&known, "outer-7/inner-1");
    let of_there = ids(&known, "outer-7/inner-0");
    // A name of a file that has two more, then the directory of another.
    gone(&mut known, "outer-0/inner-0/twin");
    gone(&mut known, "outer-3");
    if cfg!(unix) {
        gone(&mut known, "itself");
    }
    gone(&mut known, "outer-7/inner-1");
    // What leads to an entry leads nowhere once that is gone.
    assert!(of_gone.iter().all(|&id| known.tree.node(id).is_none()));
    assert!(of_there.iter().all(|&id| known.tree.node(id).is_some_and(|node| node.id() == id)));

    // A directory that is gone when it is looked at is forgotten.
    let path = root.join("outer-9");
    let times = root.metadata().and_then(|it| it.modified()).expect("it is there");
    fs::remove_dir_all(&path).expect("ours");
    rig::set_modified(root, times).expect("ours");
    known.renew(&names(root, "outer-9"), scanned(&path, &options)).expect("it was there");
    same(&known, &scanned(root, &options), "vanished");
}

/// The paths of all that lies below the root, from there on.
fn paths_below(scan: &Scan, root: &Path) -> Vec<String> {
    let below = |path: Vec<u8>| {
        let path = String::from_utf8(path).expect("plain");
        let path = path.strip_prefix(root.to_str().expect("plain")).expect("it begins so");
        path.trim_start_matches(std::path::MAIN_SEPARATOR).replace('\\', "/")
    };
    known(scan).into_keys().map(below).filter(|below| !below.is_empty()).collect()
}

/// Deletes some entries, of which one may lie in another, and tells the scan.
fn delete(scan: &mut Scan, root: &Path, below: &[String]) {
    for path in below.iter().map(|below| root.join(below)) {
        match path.symlink_metadata() {
            Ok(meta) if meta.is_dir() => fs::remove_dir_all(&path).expect("ours"),
            Ok(_) => fs::remove_file(&path).expect("ours"),
            Err(_) => {}
        }
    }
    let ways: Vec<Vec<&[u8]>> = below.iter().map(|below| names(root, below)).collect();
    scan.forget_all(ways.iter().map(Vec::as_slice)).expect("they were there");
    assert!(scan.tree.find_each(ways.iter().map(Vec::as_slice)).iter().all(Option::is_none));
    for way in &ways {
        let path = way[1..way.len() - 1].iter().fold(root.to_owned(), |path, name| {
            path.join(std::str::from_utf8(name).expect("plain"))
        });
        if let Ok(meta) = Native::default().meta(&path, false) {
            scan.renew_own(&way[..way.len() - 1], &meta).expect("it is there");
        }
    }
}

#[test]
fn random_changes_add_up() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let tree = tempfile::tempdir().expect("a directory for the test");
        let root = tree.path();
        let mut directories = vec![String::new()];
        for number in 0..12 {
            let above = directories[random.usize(..directories.len())].clone();
            let name = format!("{above}/d{number}");
            fs::create_dir(root.join(&name[1..])).expect("a directory");
            directories.push(name);
        }
        let place = |random: &mut fastrand::Rng, number: usize| {
            let above = &directories[random.usize(..directories.len())];
            root.join(format!("{above}/f{number}").trim_start_matches('/'))
        };
        let mut files = Vec::new();
        for number in 0..30 {
            let path = place(&mut random, number);
            if number > 3 && random.bool() {
                let other: &PathBuf = &files[random.usize(..files.len())];
                fs::hard_link(other, &path).expect("a link");
            } else {
                fs::write(&path, vec![1; random.usize(..20_000)]).expect("a file");
            }
            files.push(path);
        }
        // A file of one name cannot be told from others once it has two.
        fs::hard_link(&files[0], root.join("second")).expect("a link");
        let options = options(1 + random.usize(..3));
        let mut known = scanned(root, &options);
        for round in 0..6 {
            let below = directories[1 + random.usize(..directories.len() - 1)].clone();
            let path = root.join(&below[1..]);
            for number in 0..3 {
                // Contents of one size, so that other names of a file outside say the same of it.
                let new = path.join(format!("r{round}-{number}"));
                if random.bool() {
                    fs::write(&new, vec![2; random.usize(..20_000)]).expect("a file");
                } else {
                    fs::hard_link(&files[0], &new).expect("a link");
                }
            }
            known.renew(&names(root, &below), scanned(&path, &options)).expect("it is there");
            same(&known, &scanned(root, &options), &format!("seed {seed}, round {round}"));
            let doomed: Vec<String> = random
                .choose_multiple(paths_below(&known, root), 1 + round)
                .into_iter()
                .filter(|below| !directories.contains(&format!("/{below}")) || random.u8(..4) == 0)
                // Two names of this one stay, as above.
                .filter(|below| below != "second" && !files[0].starts_with(root.join(below)))
                .collect();
            delete(&mut known, root, &doomed);
            same(&known, &scanned(root, &options), &format!("seed {seed}, deletion {round}"));
            directories.retain(|below| root.join(below.trim_start_matches('/')).exists());
            if directories.len() < 2 {
                break;
            }
        }
    }
}

#[test]
fn what_cannot_be_changed_stays_as_it_was() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let root = tree.path();
    rig::grow(root).expect("a tree for the test");
    let options = options(2);
    let (mut changed, fresh) = (scanned(root, &options), scanned(root, &options));
    let whole = || scanned(root, &options);
    let root_only = names(root, "");
    assert_eq!(changed.renew(&root_only, whole()), Err(RenewError::NotThere));
    assert_eq!(changed.forget(&root_only), Err(RenewError::NotThere));
    assert_eq!(changed.forget(&names(root, "no/such")), Err(RenewError::NotThere));
    let ways = [names(root, "hole"), names(root, "no/such")];
    let ways = ways.iter().map(Vec::as_slice);
    assert_eq!(changed.forget_all(ways), Err(RenewError::NotThere));
    let meta = Native::default().meta(root, false).expect("it is there");
    assert_eq!(changed.renew_own(&names(root, "hole"), &meta), Err(RenewError::NoDirectory));
    // A file has nothing below it, and a directory may have become one.
    assert_eq!(changed.renew(&names(root, "hole"), whole()), Err(RenewError::NotThere));
    let file = scanned(&root.join("hole"), &options);
    assert_eq!(changed.renew(&names(root, "outer-1"), file), Err(RenewError::NoDirectory));
    let without = scanned(&root.join("outer-1"), &Options::default());
    assert_eq!(changed.renew(&names(root, "outer-1"), without), Err(RenewError::NoFiles));
    // Nor does one of which a part was summed up say what lies there.
    let little = Options { memory: Some(1), ..options.clone() };
    let summed = scanned(&root.join("outer-1"), &little);
    assert!(summed.summed > 0);
    assert_eq!(changed.renew(&names(root, "outer-1"), summed), Err(RenewError::NoFiles));
    same(&changed, &fresh, "nothing was changed");
    // A scan of which a part was summed up cannot be changed itself.
    let mut summed = scanned(root, &little);
    assert_eq!(summed.forget(&names(root, "hole")), Err(RenewError::NoFiles));
    let inside = || scanned(&root.join("outer-1"), &options);
    assert_eq!(summed.renew(&names(root, "outer-1"), inside()), Err(RenewError::NoFiles));
    // Directories that went before are not counted where a scan is put into another.
    let mut part = inside();
    part.forget(&names(&root.join("outer-1"), "inner-0")).expect("it is there");
    let directories = changed.tree.directories();
    changed.renew(&names(root, "outer-1"), part).expect("it is there");
    assert_eq!(changed.tree.directories(), directories - 1);
    // Without sizes a directory's own is none.
    let mut counted = scanned(root, &Options { without_sizes: true, ..options.clone() });
    counted.renew_own(&root_only, &meta).expect("it is there");
    assert_eq!(counted.totals.disk_bytes + counted.totals.apparent_bytes, 0);
    let mut without = scanned(root, &Options::default());
    assert_eq!(without.forget(&names(root, "hole")), Err(RenewError::NoFiles));
    let found = fresh.tree.find(&names(root, "outer-0/inner-0/file-8")).expect("it is there");
    assert_eq!(found.name(), b"file-8");
}

/// Nobody may read this directory until the answer is called.
#[cfg(unix)]
fn close(path: &Path) -> impl FnOnce() {
    use std::os::unix::fs::PermissionsExt as _;
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    };
    set(path, 0o000);
    let path = path.to_owned();
    move || set(&path, 0o755)
}

#[cfg(windows)]
fn close(path: &Path) -> impl FnOnce() {
    let held = rig::held(path);
    move || drop(held)
}

#[test]
fn what_could_not_be_read_and_what_was_chosen_are_counted_anew() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let root = tree.path();
    rig::grow(root).expect("a tree for the test");
    let include = Patterns::new(&["file-1".to_owned()], &[]).expect("a pattern");
    let choice = Choice { include, ..Choice::default() };
    let options = Options { choice: Some(choice.into()), ..options(2) };
    let mut known = scanned(root, &options);
    fs::remove_dir_all(root.join("outer-5/inner-0")).expect("ours");
    let way = names(root, "outer-5");
    known.renew(&way, scanned(&root.join("outer-5"), &options)).expect("it is there");
    assert_eq!(known.totals, scanned(root, &options).totals);
    // With a selection a directory has no size of its own.
    let meta = Native::default().meta(&root.join("outer-5"), false).expect("it is there");
    known.renew_own(&way, &meta).expect("it is there");
    assert_eq!(known.totals, scanned(root, &options).totals);
    // Reads and rights: the super-user of Unix reads everything, and finds the same twice.
    let options = self::options(2);
    let closed = root.join("outer-6/inner-0");
    let held = close(&closed);
    let mut known = scanned(root, &options);
    held();
    let way = names(root, "outer-6/inner-0");
    known.renew(&way, scanned(&closed, &options)).expect("it is there");
    same(&known, &scanned(root, &options), "what was closed is open");
}

#[test]
fn what_cannot_be_read_any_more_is_marked_and_listed_where_it_lies() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let root = tree.path();
    rig::grow(root).expect("a tree for the test");
    let (options, denied) = (options(2), || Some(io::Error::from_raw_os_error(13)));
    let walk = |path: &Path, hook: &rig::Hook<'_>| {
        scan_on(&rig::Rigged::new(hook), &[path.to_owned()], &options, &Control::new())
            .expect("a scan")
    };
    let last = |deed, name: &CStr| {
        if deed == rig::Deed::Open && name == c"outer-9" { denied() } else { None }
    };
    // A given path has no name when it is read.
    let given = |deed, name: &CStr| {
        if deed == rig::Deed::Read && name == c"" { denied() } else { None }
    };
    let both = |deed, name: &CStr| {
        if deed == rig::Deed::Read && name == c"outer-5" { denied() } else { last(deed, name) }
    };
    let mut known = walk(root, &last);
    known.renew(&names(root, "outer-5"), walk(&root.join("outer-5"), &given)).expect("it is there");
    assert_eq!(known.errors.len(), 2);
    same(&known, &walk(root, &both), "what cannot be read");
    // And what can be read again, or lies below, is marked and listed no more.
    let inner = |deed, name: &CStr| {
        if deed == rig::Deed::Open && name == c"inner-0" { denied() } else { None }
    };
    let mut known = walk(root, &both);
    for below in ["outer-5", "outer-9"] {
        known
            .renew(&names(root, below), scanned(&root.join(below), &options))
            .expect("it is there");
    }
    same(&known, &scanned(root, &options), "what can be read again");
    let mut known = walk(root, &inner);
    let before = known.errors.len();
    known.renew(&names(root, "outer-9"), scanned(&root.join("outer-9"), &options)).expect("there");
    assert_eq!((known.errors.len(), known.totals.errors), (before - 1, before as u64 - 1));
    known.forget(&names(root, "outer-8")).expect("it is there");
    assert_eq!((known.errors.len(), known.totals.errors), (before - 2, before as u64 - 2));
}

#[test]
fn reports_on_a_finished_scan_are_those_of_its_walk() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    let settings = Settings { top: None, now: 2_000_000_000, ..Settings::default() };
    let survey = Survey::new(&Report::ALL, settings);
    let (sys, control) = (Native::default(), Control::new());
    let paths = [tree.path().to_owned()];
    let (scan, parts) =
        scan_with(&sys, &paths, &options(3), &control, &survey).expect("threads can be had");
    let mut walked = survey.finish_on(&sys, &scan, parts).expect("threads can be had");
    let mut collected =
        survey.finish_on(&sys, &scan, survey.collect(&scan)).expect("threads can be had");
    for sections in [&mut walked, &mut collected] {
        for section in sections {
            // Rows that rank alike have no order.
            section.rows.sort_by_key(|row| format!("{row:?}"));
        }
    }
    let shown = |sections: &[_]| {
        let mut out = Vec::new();
        text(sections, poach_scan::report::Look::default(), &mut out).expect("a vector takes it");
        String::from_utf8(out).expect("UTF-8")
    };
    assert_eq!(shown(&walked), shown(&collected));
    assert!(walked.iter().all(|section| !section.rows.is_empty() || section.left_out == 0));
}

/// A file with two names, of which the one that counts goes, shares its blocks with another file.
#[test]
fn what_counts_elsewhere_counts_there_at_every_name() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let at = |name: &str| tree.path().join(name);
    fs::write(at("a"), vec![1; 100_000]).expect("a file");
    fs::write(at("b"), vec![1; 100_000]).expect("a file");
    fs::hard_link(at("b"), at("c")).expect("a link");
    let extent = DiskExtent { physical: 4096, length: 1 << 30, shared: true, encoded: false };
    let nothing = |_: rig::Deed, _: &std::ffi::CStr| None;
    let extents = [extent];
    let rigged = rig::Rigged { extents: Some(&extents), ..rig::Rigged::new(&nothing) };
    let paths = [tree.path().to_owned()];
    let mut scan = scan_on(&rigged, &paths, &options(1), &Control::new()).expect("a scan");
    let whole = scan.totals.disk_bytes;
    let root = tree.path().as_os_str().as_encoded_bytes();
    let disk =
        |scan: &Scan, name: &[u8]| scan.tree.find(&[root, name]).expect("it is there").disk_bytes();
    let own = disk(&scan, b"a");
    scan.count_shared_once_on(&rigged, &Control::new());
    assert_eq!(scan.shared.map(|it| (it.bytes, it.files)), Some((own, 1)));
    assert_eq!((disk(&scan, b"a"), scan.totals.disk_bytes), (own, whole - own));
    scan.forget(&[root, b"b"]).expect("it is there");
    assert_eq!((disk(&scan, b"c"), scan.totals.disk_bytes), (0, whole - own));
}
