//! Two scans compared: what a comparison of all their paths says.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use poach_scan::diff::{self, Change, Diff, Difference, Sum, diff};
use poach_scan::document::read;
use poach_scan::report::{Extent, Look, Measure};
use poach_scan::{Control, Kind, Node, Options, Scan, scan};
use serde_json::Value;

/// A name with a control character, and how it is shown; Windows has none.
const ODD: (&str, &str) = if cfg!(windows) { ("is", "is") } else { ("is\x1b", r"is\e") };

/// A path of slashes as the system has it.
fn native(path: &str) -> String {
    path.replace('/', std::path::MAIN_SEPARATOR_STR)
}

fn scanned(path: &Path) -> Scan {
    let options = Options { keep_files: true, ..Options::default() };
    scan(&[path.into()], &options, &Control::new()).expect("threads can be had")
}

/// A tree of files with these sizes, some of them in directories.
fn grow(files: &[(&str, usize)]) -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for (path, size) in files {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().expect("it lies in the tree")).expect("directories");
        fs::write(path, vec![1; *size]).expect("a file");
    }
    tree
}

/// Sizes by kind and path from the given path on.
fn sizes(scan: &Scan) -> BTreeMap<(Vec<u8>, Kind), (u64, u64, u64)> {
    let root = scan.tree.roots().next().expect("a root");
    let mut sizes = BTreeMap::new();
    let mut waiting: Vec<Node<'_>> = vec![root];
    while let Some(node) = waiting.pop() {
        let path = node.path()[root.name().len()..].to_vec();
        let it = (node.apparent_bytes(), node.disk_bytes(), node.entries());
        sizes.insert((path, node.kind()), it);
        waiting.extend(node.directories().chain(node.files()));
    }
    sizes
}

#[test]
fn what_differs_is_what_two_lists_of_paths_differ_in() {
    let mut random = fastrand::Rng::with_seed(23);
    for _ in 0..40 {
        let [old, new] = [(); 2].map(|()| {
            let tree = tempfile::tempdir().expect("a directory for the test");
            for _ in 0..random.usize(..30) {
                let mut path = tree.path().to_owned();
                for _ in 0..random.usize(1..4) {
                    path.push(["a", "b", "c", "\u{e9}", "x\ny"][random.usize(..5)]);
                }
                // A file in the middle of a path stays a file, and a directory stays a directory.
                let _ = fs::create_dir_all(path.parent().expect("it lies in the tree"))
                    .and_then(|()| fs::write(&path, vec![1; random.usize(..3) * 5000]));
            }
            tree
        });
        let (before, after) = (scanned(old.path()), scanned(new.path()));
        for measure in [Measure::Disk, Measure::Apparent, Measure::Entries] {
            let diff = diff(&before, &after, measure);
            let (olds, news) = (sizes(&before), sizes(&after));
            let is_within_one = |sizes: &BTreeMap<_, _>, (path, _): &(Vec<u8>, Kind)| {
                let above = |it: &usize| path[*it] == std::path::MAIN_SEPARATOR as u8 && *it > 0;
                (0..path.len())
                    .filter(above)
                    .any(|at| !sizes.contains_key(&(path[..at].to_vec(), Kind::Directory)))
            };
            let mut expected: Vec<_> = news
                .keys()
                .filter(|key| !olds.contains_key(*key) && !is_within_one(&olds, key))
                .chain(
                    olds.keys()
                        .filter(|key| !news.contains_key(*key) && !is_within_one(&news, key)),
                )
                .cloned()
                .collect();
            let mut found = Vec::new();
            for it in &diff.differences {
                let it: &Difference<'_> = it;
                let (old, new) = (
                    it.old.map(|it| measured(measure, &it)),
                    it.new.map(|it| measured(measure, &it)),
                );
                let delta = i128::from(new.unwrap_or(0)) - i128::from(old.unwrap_or(0));
                assert_eq!(it.delta, delta);
                assert!(u128::from(it.turnover) >= delta.unsigned_abs());
                let parent = it.parent.map(|parent| &diff.differences[parent]);
                assert_eq!(parent.map_or(0, |parent| parent.depth + 1), it.depth);
                assert!(parent.is_none_or(|parent| parent.turnover >= it.turnover));
                if matches!(it.change, Change::New | Change::Gone) {
                    let root = if it.change == Change::New { &after } else { &before };
                    let root = root.tree.roots().next().expect("a root").name().len();
                    found.push((it.node().path()[root..].to_vec(), it.node().kind()));
                }
            }
            expected.sort();
            found.sort();
            assert_eq!(found, expected);
            let both =
                olds.keys().filter(|key| news.contains_key(*key) && olds[*key] != news[*key]);
            let changed = diff.differences.len() - found.len();
            // A directory is listed, too, if what is in it has changed and its sums are the same.
            assert!(changed >= both.count(), "{diff:?}");
            // The sums of what is no directory, and of directories themselves, are the whole.
            if let Some(root) = diff.differences.first() {
                let total = |scan: &Scan| match measure {
                    Measure::Disk => scan.totals.disk_bytes,
                    Measure::Apparent => scan.totals.apparent_bytes,
                    Measure::Entries => scan.totals.entries(),
                };
                assert_eq!(root.delta, i128::from(total(&after)) - i128::from(total(&before)));
            } else {
                assert_eq!(olds, news);
            }
        }
    }
}

fn measured(measure: Measure, node: &Node<'_>) -> u64 {
    match measure {
        Measure::Disk => node.disk_bytes(),
        Measure::Apparent => node.apparent_bytes(),
        Measure::Entries => node.entries() + 1,
    }
}

#[test]
fn the_text_and_the_document_name_what_has_changed() {
    let old = grow(&[
        ("same", 10),
        ("more", 100_000),
        ("less/inner", 300_000),
        ("was/a", 1),
        ("was/b", 1),
    ]);
    let new = grow(&[
        ("same", 10),
        ("more", 200_000),
        ("less/inner", 10),
        (&format!("{}/c", ODD.0), 50_000),
    ]);
    let (old, new) = (scanned(old.path()), scanned(new.path()));
    let diff: Diff<'_> = diff(&old, &new, Measure::Apparent);
    assert_eq!((diff.come.entries, diff.gone.entries), (2, 3));
    assert_eq!(diff.grown, Sum { entries: 1, amount: 100_000 });
    assert_eq!(diff.shrunk, Sum { entries: 1, amount: 299_990 });

    let shown = |extent: Extent| {
        let mut text = Vec::new();
        diff::text(&diff, &extent, Look::default(), &mut text).expect("a vector can be written to");
        String::from_utf8(text).expect("UTF-8")
    };
    let text = shown(Extent::default());
    let line = |named: &str| {
        let found = text.lines().find(|line| line.ends_with(named));
        found.unwrap_or_else(|| panic!("no {named} in\n{text}"))
    };
    assert!(line("  less/").contains("-293 KiB") && line("less/").contains("shrunk"));
    assert!(line("    inner").contains("shrunk") && line("  more").contains("grown"));
    assert!(line(&format!("  {}/", ODD.1)).contains("new") && line("  was/").contains("gone"));
    assert!(!text.contains("same") && !text.contains('\x1b'), "{text}");
    let cut = shown(Extent { top: Some(2), ..Extent::default() });
    assert!(cut.contains("less/") && !cut.contains("more\n"), "{cut}");
    assert!(cut.contains("4 more, smaller"), "{cut}");
    assert!(!shown(Extent { depth: Some(1), ..Extent::default() }).contains("inner"));

    let mut document = Vec::new();
    diff::json(&diff, &mut document).expect("a vector can be written to");
    let document: Value = serde_json::from_slice(&document).expect("JSON");
    let changes = document["differences"].as_array().expect("a list");
    let row = |name: &str| {
        let name = native(name);
        let is = |row: &&Value| row["path"].as_str().is_some_and(|path| path.ends_with(&name));
        changes.iter().find(is).unwrap_or_else(|| panic!("no {name} in {document}"))
    };
    assert_eq!(
        (&row("/more")["change"], &row("/more")["delta"]),
        (&"grown".into(), &100_000.into())
    );
    assert_eq!((&row("/was")["change"], &row("/was")["new"]), (&"gone".into(), &Value::Null));
    assert_eq!(row(&format!("/{}", ODD.0))["old"], Value::Null);
    assert_eq!(row("/less/inner")["old"]["apparent_bytes"], 300_000);
    assert_eq!(document["summary"]["gone"]["entries"], 3);
    assert_eq!(document["by"], "apparent");
}

#[test]
fn what_has_come_and_gone_is_shown_though_it_takes_no_room() {
    let (old, new) = (grow(&[("a", 0), ("b", 1)]), grow(&[("b", 1), ("inner/c", 0)]));
    let (old, new) = (scanned(old.path()), scanned(new.path()));
    let diff = diff(&old, &new, Measure::Apparent);
    let mut text = Vec::new();
    diff::text(&diff, &Extent::default(), Look::default(), &mut text).expect("a vector takes it");
    let text = String::from_utf8(text).expect("UTF-8");
    for (name, change) in [("  a", "gone"), ("  inner/", "new")] {
        let line = text.lines().find(|line| line.ends_with(name));
        assert!(line.is_some_and(|line| line.contains(change)), "{name}\n{text}");
    }
    assert!(!text.contains("more, smaller"), "{text}");
}

#[test]
fn sizes_that_no_disk_has_do_not_overflow() {
    let export = |size: u64| {
        let text = format!(
            r#"[1,2,{{}},[{{"name":"r"}},{{"name":"a","asize":{size},"dsize":{size}}},{{"name":"b","asize":{size}}}]]"#
        );
        read(text.as_bytes()).expect("an export")
    };
    let (old, new) = (export(0), export(u64::MAX));
    for (old, new) in [(&old, &new), (&new, &old)] {
        let diff = diff(old, new, Measure::Apparent);
        assert_eq!(diff.differences.len(), 3);
        let mut out = Vec::new();
        diff::json(&diff, &mut out).expect("a vector can be written to");
        diff::text(&diff, &Extent::default(), Look { colour: true, ..Look::default() }, &mut out)
            .expect("a vector can be written to");
    }
}

#[test]
fn a_directory_that_has_changed_by_itself_differs_though_nothing_in_it_does() {
    let export = |own: u64, file: u64| {
        let text = format!(
            r#"[1,2,{{}},[{{"name":"r"}},[{{"name":"d","asize":{own}}},{{"name":"f","asize":{file}}}]]]"#
        );
        read(text.as_bytes()).expect("an export")
    };
    let found = |old: &Scan, new: &Scan| -> Vec<(Vec<u8>, Change, i128, u64)> {
        let diff = diff(old, new, Measure::Apparent);
        let what =
            |it: &Difference<'_>| (it.node().name().to_vec(), it.change, it.delta, it.turnover);
        diff.differences.iter().map(what).collect()
    };
    let (small, large) = (export(4096, 100), export(8192, 100));
    let row = |name: &str, change, delta, turnover| (name.into(), change, delta, turnover);
    let (grown, shrunk) = (Change::Grown, Change::Shrunk);
    assert_eq!(found(&small, &large), [row("r", grown, 4096, 4096), row("d", grown, 4096, 4096)]);
    assert_eq!(
        found(&large, &small),
        [row("r", shrunk, -4096, 4096), row("d", shrunk, -4096, 4096)]
    );
    assert_eq!(found(&small, &export(4096, 100)), []);
    // What it has gained by itself is what the file in it has lost.
    let same = Change::Changed;
    assert_eq!(
        found(&small, &export(4146, 50)),
        [row("r", same, 0, 100), row("d", same, 0, 100), row("f", shrunk, -50, 50)]
    );
}

#[test]
fn one_root_is_compared_with_several_by_name() {
    let (old, new) = (grow(&[("f", 10)]), grow(&[("b/f", 10), ("c/f", 10)]));
    let paths = ["b", "c"].map(|name| new.path().join(name));
    let options = Options { keep_files: true, ..Options::default() };
    let several = scan(&paths, &options, &Control::new()).expect("threads can be had");
    let old = scanned(old.path());
    let found = diff(&old, &several, Measure::Apparent);
    let changes: Vec<Change> = found.differences.iter().map(|it| it.change).collect();
    assert_eq!(changes.iter().filter(|it| **it == Change::New).count(), 2, "{changes:?}");
    assert_eq!((found.gone.entries, found.come.entries), (2, 4));
}

/// ncdu's export knows no symbolic links.
#[test]
#[cfg(unix)]
fn a_link_that_an_export_says_less_of_is_no_difference() {
    let tree = grow(&[("f", 10)]);
    std::os::unix::fs::symlink("f", tree.path().join("link")).expect("a link");
    let scan = scanned(tree.path());
    let mut export = Vec::new();
    poach_scan::document::ncdu(&scan, &mut export).expect("a vector can be written to");
    let mut told = String::from_utf8(export).expect("text");
    // As ncdu 1 writes it: what is no file has no mode.
    told = told.replace(",\"mode\":41471", "");
    let read = read(told.as_bytes()).expect("an export");
    assert_eq!(diff(&read, &scan, Measure::Apparent).differences.len(), 0);
}
