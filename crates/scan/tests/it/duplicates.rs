//! Files of equal content: found, told apart from what only looks like them, in order.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use poach_scan::duplicates::{Copy, Group, Made, same_content};
use poach_scan::report::{Look, Measure};
use poach_scan::survey::{Report, Section, Settings, Survey, Text, Told};
use poach_scan::sys::{Portable, Sys};
use poach_scan::{Control, Engine, Options, scan_with};

use crate::rig::{Deed, Direct, Rigged, symlink};

/// What was told, in which order.
struct Found {
    groups: Vec<Group>,
    section: Section,
    made: Made,
    text: String,
}

fn find_on<S: Sys>(sys: &S, paths: &[PathBuf], settings: &Settings, threads: usize) -> Found {
    let survey = Survey::new(&[Report::Duplicates], settings.clone());
    let options = Options { threads: NonZeroUsize::new(threads), ..Options::default() };
    let control = Control::new();
    let (scan, parts) = scan_with(sys, paths, &options, &control, &survey).expect("threads");
    let (mut groups, mut section, mut out) = (Vec::new(), None, Vec::new());
    let mut text = Text::new(Look::default());
    let made = survey.finish_each_on(sys, &scan, parts, &control, &mut |told| {
        text.write(told, &mut out).expect("a vector can be written to");
        match told {
            Told::Group(group) => groups.push(group.clone()),
            Told::Section(finished) => section = Some(finished.clone()),
        }
    });
    let progress = control.progress();
    assert!(
        progress.compared.is_some_and(|compared| compared <= progress.to_compare * 2 + 4096 * 3)
    );
    let (section, text) = (section.expect("a report"), String::from_utf8(out).expect("text"));
    // The same, from the groups alone.
    let mut again: Vec<Group> = groups
        .iter()
        .rev()
        .map(|group| Group::new(group.apparent_bytes, group.copies.clone(), settings.measure))
        .collect();
    let again = Section::of_groups(&mut again, settings.top);
    assert_eq!(again.rows, section.rows);
    assert!(section.left_out > 0 || again.totals == section.totals);
    Found { groups, section, made: made.expect("threads"), text }
}

fn find(root: &Path) -> Found {
    find_on(&Direct, &[root.into()], &Settings::default(), 3)
}

fn names(group: &Group, root: &Path) -> Vec<String> {
    let name = |copy: &Copy| {
        let path = std::str::from_utf8(&copy.path).expect("the test's names are");
        path[root.as_os_str().len() + 1..].replace(std::path::MAIN_SEPARATOR, "/")
    };
    group.copies.iter().map(name).collect()
}

/// A file of blocks, each filled with one byte.
fn blocks(path: &Path, bytes: &[u8]) {
    let content: Vec<u8> = bytes.iter().flat_map(|&byte| vec![byte; 64 << 10]).collect();
    fs::write(path, content).expect("a file");
}

#[test]
fn what_is_equal_is_found_and_nothing_else() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    fs::create_dir_all(path("deep/er")).expect("a directory");
    // Large files that are equal but for a block that no sample meets.
    let mut content = vec![7; 20];
    for name in ["large-1", "deep/er/large-2", "large-3"] {
        blocks(&path(name), &content);
    }
    content[5] = 8;
    blocks(&path("other-in-the-midst"), &content);
    // Small equal files, and a file of the same length.
    for (name, text) in [("small-1", "abc"), ("deep/small-2", "abc"), ("small-other", "abd")] {
        fs::write(path(name), text).expect("a file");
    }
    // An empty file, another name of a file, a link, and a file with a length of its own.
    for name in ["empty-1", "empty-2"] {
        fs::write(path(name), "").expect("a file");
    }
    fs::hard_link(path("large-1"), path("another-name")).expect("a link");
    symlink("small-1", path("link")).expect("a link");
    fs::write(path("alone"), vec![1; 77]).expect("a file");

    for threads in [1, 4] {
        let found = find_on(&Direct, &[tree.path().into()], &Settings::default(), threads);
        assert_eq!(found.groups.len(), 2, "{:#?}", found.groups);
        // The name that bears the size, of the file that has two.
        assert_eq!(
            names(&found.groups[0], tree.path()),
            ["another-name", "deep/er/large-2", "large-3"]
        );
        assert_eq!(names(&found.groups[1], tree.path()), ["deep/small-2", "small-1"]);
        assert_eq!(found.groups[0].freed_bytes, 2 * found.groups[0].copies[0].disk_bytes);
        assert_eq!(found.groups[0].apparent_bytes, 20 * (64 << 10));
        assert!(found.made.errors.is_empty() && !found.made.interrupted);
        assert_eq!((found.section.rows.len(), found.section.left_out), (5, 0));
        assert!(found.text.contains("freed if 3 files went"), "{}", found.text);
        assert_eq!(found.text.matches("large-2").count(), 1);
    }
    if cfg!(windows) {
        return;
    }
    // On Windows it does not know that two names are of one file.
    let portable = find_on(&Portable, &[tree.path().into()], &Settings::default(), 2);
    assert_eq!(portable.groups, find(tree.path()).groups);
}

#[test]
fn every_engine_finds_the_same_in_the_same_order() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let mut random = fastrand::Rng::with_seed(11);
    for number in 0..300 {
        let directory = tree.path().join(format!("{}", number % 7));
        fs::create_dir_all(&directory).expect("a directory");
        let content = vec![random.u8(0..3); 5000 * random.usize(1..20)];
        fs::write(directory.join(format!("{number}")), content).expect("a file");
    }
    let settings = Settings { measure: Measure::Apparent, top: None, ..Settings::default() };
    let survey = Survey::new(&[Report::Duplicates], settings);
    let all = Engine::ALL.map(|engine| {
        let options = Options { engine, threads: NonZeroUsize::new(3), ..Options::default() };
        let (scan, parts) =
            scan_with(&Direct, &[tree.path().into()], &options, &Control::new(), &survey)
                .expect("threads");
        survey.finish_on(&Direct, &scan, parts).expect("threads").remove(0)
    });
    assert!(all[0].rows.len() > 200);
    for other in &all[1..] {
        assert_eq!(other.rows, all[0].rows);
    }
    let freed: Vec<_> = all[0].rows.iter().map(|row| &row[1]).collect();
    let numbers: Vec<u64> = freed
        .iter()
        .filter_map(|cell| match cell {
            poach_scan::survey::Cell::Bytes(number) => Some(*number),
            _ => None,
        })
        .collect();
    assert!(numbers.is_sorted_by(|a, b| a >= b), "{numbers:?}");
}

// Elsewhere nobody tells where a file's holes are, and what is made long is written.
#[cfg(target_os = "linux")]
#[test]
fn holes_are_not_read_and_equal_zeros() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    // 16 TiB where the file system holds such a length: reading it would take hours.
    let huge = [1_u64 << 44, 1 << 42].into_iter().find(|&length| {
        let file = File::create(tree.path().join("nothing-1")).expect("a file");
        file.set_len(length).is_ok()
    });
    let length = huge.expect("a sparse file");
    File::create(tree.path().join("nothing-2")).and_then(|it| it.set_len(length)).expect("a file");
    for (name, byte) in [("one-byte", 1), ("another-byte", 2)] {
        let mut file = File::create(tree.path().join(name)).expect("a file");
        file.set_len(length).expect("a length");
        file.seek(SeekFrom::Start(length / 3)).expect("a place");
        file.write_all(&[byte]).expect("a byte");
    }
    // The same content, with a hole and with zeros in its place.
    blocks(&tree.path().join("written"), &[5, 0, 0, 0, 6]);
    let mut file = File::create(tree.path().join("hole")).expect("a file");
    for (block, byte) in [(0, 5), (4, 6)] {
        file.seek(SeekFrom::Start(block << 16)).expect("a place");
        file.write_all(&vec![byte; 64 << 10]).expect("a block");
    }
    // One block at one place, and at another, neither of which a sample meets.
    for (name, block) in [("early", 2), ("late", 5)] {
        let mut file = File::create(tree.path().join(name)).expect("a file");
        file.set_len(16 << 16).expect("a length");
        file.seek(SeekFrom::Start(block << 16)).expect("a place");
        file.write_all(&vec![7; 64 << 10]).expect("a block");
    }
    let found = find(tree.path());
    let groups: Vec<_> = found.groups.iter().map(|group| names(group, tree.path())).collect();
    assert_eq!(groups, [["hole", "written"], ["nothing-1", "nothing-2"]]);
    assert!(found.groups[0].freed_bytes <= 192 << 10 && found.groups[1].freed_bytes == 0);
    assert!(found.text.contains("nothing-1 (sparse: 0 B on disk)"), "{}", found.text);
}

#[test]
fn what_cannot_be_read_any_more_is_an_error_and_the_rest_is_found() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for name in ["a", "b", "c", "d"] {
        fs::write(tree.path().join(name), "content").expect("a file");
    }
    let closed = |deed, name: &std::ffi::CStr| {
        let refused = deed == Deed::Open && name == c"b";
        refused.then(|| std::io::ErrorKind::PermissionDenied.into())
    };
    let found = find_on(&Rigged::new(&closed), &[tree.path().into()], &Settings::default(), 2);
    assert_eq!(names(&found.groups[0], tree.path()), ["a", "c", "d"]);
    assert_eq!(found.made.errors.len(), 1);
    assert!(found.made.errors[0].path.ends_with(b"b"));

    // A file that is another file when it is opened: longer, or a link to an equal file.
    let (longer, link) = (tree.path().join("a"), tree.path().join("d"));
    let swap = |deed, name: &std::ffi::CStr| {
        if deed == Deed::Open && name == c"c" {
            fs::write(&longer, "more content").expect("a file");
            fs::remove_file(&link).expect("a file");
            symlink("b", link.clone()).expect("a link");
        }
        None
    };
    let found = find_on(&Rigged::new(&swap), &[tree.path().into()], &Settings::default(), 1);
    let shown: Vec<_> = found.groups.iter().map(|group| names(group, tree.path())).collect();
    assert!(
        shown.iter().flatten().all(|name| name != "d" || found.made.errors.is_empty()),
        "{shown:?}"
    );
    assert!(!found.made.errors.is_empty(), "{shown:?}");
}

#[test]
fn files_given_by_path_are_compared_and_deep_ones() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let mut deep = tree.path().join("deep");
    fs::create_dir(&deep).expect("a directory");
    let given = [tree.path().join("given"), tree.path().join("deep")];
    fs::write(&given[0], "content").expect("a file");
    for _ in 0..12 {
        deep.push("d".repeat(200));
        fs::create_dir(&deep).expect("a directory");
    }
    fs::write(deep.join("file"), "content").expect("a file");
    let found = find_on(&Direct, &given, &Settings::default(), 2);
    assert_eq!((found.groups.len(), found.groups[0].copies.len()), (1, 2), "{:?}", found.made);
}

#[test]
fn a_limit_is_of_groups_and_a_stop_says_so() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for number in 0..30 {
        fs::write(tree.path().join(format!("{number}")), vec![1; 1 + number / 3]).expect("a file");
    }
    let settings = Settings { top: Some(4), measure: Measure::Apparent, ..Settings::default() };
    let found = find_on(&Direct, &[tree.path().into()], &settings, 2);
    assert_eq!((found.groups.len(), found.section.left_out, found.section.rows.len()), (4, 6, 12));
    assert!(found.text.contains("6 more groups"), "{}", found.text);

    let survey = Survey::new(&[Report::Duplicates], settings);
    let control = Control::new();
    let (scan, parts) =
        scan_with(&Direct, &[tree.path().into()], &Options::default(), &control, &survey)
            .expect("threads");
    control.stop();
    let made =
        survey.finish_each_on(&Direct, &scan, parts, &control, &mut |_| ()).expect("threads");
    assert!(made.interrupted);
}

#[test]
fn files_that_have_grown_since_the_walk_are_no_group_though_they_are_equal() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let paths = ["a", "b"].map(|name| tree.path().join(name));
    for path in &paths {
        fs::write(path, "content").expect("a file");
    }
    let survey = Survey::new(&[Report::Duplicates], Settings::default());
    let (control, options) = (Control::new(), Options::default());
    let (scan, parts) =
        scan_with(&Direct, &[tree.path().into()], &options, &control, &survey).expect("threads");
    for path in &paths {
        fs::write(path, "more content").expect("a file");
    }
    let mut groups = 0;
    let made = survey.finish_each_on(&Direct, &scan, parts, &control, &mut |told| {
        groups += usize::from(matches!(told, Told::Group(_)));
    });
    let errors = made.expect("threads").errors;
    assert_eq!((groups, errors.len()), (0, 2));
    assert!(errors[0].message.contains("changed since it was scanned"), "{errors:?}");
}

#[test]
fn two_files_hold_the_same_only_if_every_byte_does() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    let open = |name: &str| File::open(path(name)).expect("a file");
    let content: Vec<u8> = (0..700_001_u32).map(|at| (at % 251) as u8).collect();
    fs::write(path("a"), &content).expect("a file");
    fs::write(path("b"), &content).expect("a file");
    let mut other = content.clone();
    // The last byte, which no sample that ends before it would tell.
    *other.last_mut().expect("a byte") ^= 1;
    fs::write(path("c"), &other).expect("a file");
    fs::write(path("d"), &content[1..]).expect("a file");
    fs::write(path("beginning"), &content[..699_000]).expect("a file");
    let control = Control::new();
    let same = |one: &str, two: &str| {
        let equal = same_content(&Direct, &open(one), &open(two), &control).expect("it is read");
        let portable = same_content(&Portable, &open(two), &open(one), &control).expect("likewise");
        assert_eq!(equal, portable, "{one} {two}");
        equal
    };
    assert!(same("a", "b") && same("a", "a"));
    assert!(!same("a", "c") && !same("a", "d"));
    assert!(!same("a", "beginning"));
    if cfg!(windows) {
        return;
    }
    // A hole is as good as zeros, and is not read where both have it: 16 TiB are compared at once.
    for name in ["hole", "hole too", "nearly"] {
        let file = File::create(path(name)).expect("a file");
        if file.set_len(1 << 43).is_err() {
            return;
        }
    }
    let mut nearly = fs::OpenOptions::new().write(true).open(path("nearly")).expect("ours");
    nearly.seek(SeekFrom::Start(1 << 42)).and_then(|_| nearly.write_all(b"1")).expect("a byte");
    let equal = |one: &str, two: &str| same_content(&Direct, &open(one), &open(two), &control);
    assert!(equal("hole", "hole too").expect("it is read"));
    assert!(!equal("hole", "nearly").expect("it is read"));
    fs::write(path("zeros"), vec![0; 700_001]).expect("a file");
    File::create(path("short hole")).and_then(|it| it.set_len(700_001)).expect("a file");
    assert!(equal("zeros", "short hole").expect("it is read"));
    control.stop();
    assert!(equal("a", "b").is_err());
}

#[cfg(unix)]
#[test]
fn a_given_link_that_is_followed_is_compared_by_what_it_leads_to() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    for name in ["a", "b"] {
        fs::write(path(name), "content").expect("a file");
    }
    symlink("b", path("link")).expect("a link");
    let survey = Survey::new(&[Report::Duplicates], Settings::default());
    let options = Options { follow_paths: true, ..Options::default() };
    let control = Control::new();
    let paths = [path("a"), path("link")];
    let (scan, parts) = scan_with(&Direct, &paths, &options, &control, &survey).expect("threads");
    let sections = survey.finish_on(&Direct, &scan, parts).expect("threads");
    assert_eq!(sections[0].rows.len(), 2, "{:?}", sections[0]);
}

/// A file that grows while it is compared.
#[test]
fn a_file_that_grows_meanwhile_does_not_hold_the_same() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let paths = ["a", "b"].map(|name| tree.path().join(name));
    for grows in &paths {
        for path in &paths {
            fs::write(path, "content").expect("a file");
        }
        let grow = |deed, _: &std::ffi::CStr| {
            if deed == Deed::Data {
                fs::write(grows, "content and more").expect("a file");
            }
            None
        };
        let [a, b] = [0, 1].map(|at: usize| File::open(&paths[at]).expect("a file"));
        let equal = same_content(&Rigged::new(&grow), &a, &b, &Control::new());
        assert!(!equal.expect("it is read"), "{grows:?}");
    }
}
