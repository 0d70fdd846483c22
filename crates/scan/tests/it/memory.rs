//! A scan with a limit of memory: the totals and sums of one without, and fewer entries.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use poach_scan::document::{ImportError, read_within};
use poach_scan::report::{Extent, Look, text};
use poach_scan::sys::{Found, Kind, Meta, Sys};
use poach_scan::{Control, Node, Options, Scan, scan_on};

use crate::rig;

/// Each entry of a tree by its path: its sums, and whether more lies in it than is shown.
fn portrait(scan: &Scan) -> BTreeMap<Vec<u8>, (u64, u64, u64, bool)> {
    let mut portrait = BTreeMap::new();
    let mut waiting: Vec<Node<'_>> = scan.tree.roots().collect();
    while let Some(node) = waiting.pop() {
        let sums = (node.apparent_bytes(), node.disk_bytes(), node.entries(), node.is_summed());
        assert_eq!(portrait.insert(node.path(), sums), None, "an entry is there once");
        waiting.extend(node.directories().chain(node.files()));
    }
    portrait
}

#[test]
fn what_has_no_entry_counts_where_it_lies() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    for way in rig::ways() {
        let scanned = |paths: &[PathBuf], memory| {
            way.scan(paths, &Options { keep_files: true, memory, ..Options::default() })
        };
        let one = vec![tree.path().to_owned()];
        let several = vec![tree.path().join("outer-3"), tree.path().join("outer-4/inner-0")];
        // A given path below a directory without an entry stands by itself.
        let nested = vec![tree.path().to_owned(), tree.path().join("outer-4/inner-0")];
        assert_eq!(scanned(&nested, Some(0)).totals, scanned(&one, None).totals, "{way:?}");
        for paths in [one, several] {
            let whole = scanned(&paths, None);
            let (all, mut shown) = (portrait(&whole), Vec::new());
            assert!(whole.summed == 0 && all.values().all(|sums| !sums.3));
            for memory in [0, 1000, 5000, 20_000, 1 << 30] {
                let capped = scanned(&paths, Some(memory));
                assert_eq!(capped.totals, whole.totals, "{way:?}, {memory}");
                let part = portrait(&capped);
                for (path, sums) in &part {
                    let shown = String::from_utf8_lossy(path);
                    let sums = (sums.0, sums.1, sums.2);
                    let all = all[path];
                    // The name that bears a file's size may differ, and so the sums of the name's
                    // directory.
                    let same = (all.0, all.1, all.2) == sums || shown.contains("outer-");
                    assert!(same && all.2 == sums.2, "{way:?}, {memory}: {shown}: {sums:?}");
                }
                let directories = capped.tree.directories() as u64;
                assert_eq!(directories + capped.summed, whole.totals.directories);
                shown.push(part.len());
            }
            assert!(shown[0] < shown[4], "{way:?}: {shown:?}");
            assert_eq!(shown[4], all.len(), "{way:?}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_listed_with_its_path_all_the_same() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    let fails = |deed, name: &CStr| {
        let refused = match deed {
            rig::Deed::Open => name == c"inner-1",
            _ => name == c"file-3",
        };
        refused.then(|| io::Error::other("no"))
    };
    let rigged = rig::Rigged::new(&fails);
    let scanned = |memory| {
        let threads = NonZeroUsize::new(2);
        let options = Options { keep_files: true, memory, threads, ..Options::default() };
        scan_on(&rigged, &[tree.path().into()], &options, &Control::new()).expect("threads")
    };
    let (whole, capped) = (scanned(None), scanned(Some(0)));
    assert!(whole.errors.len() > 20, "{:?}", whole.errors);
    assert_eq!(capped.errors, whole.errors);
    assert_eq!(capped.totals, whole.totals);
    let directories = capped.tree.directories() as u64;
    assert_eq!(directories + capped.summed, whole.totals.directories);
    let mut out = Vec::new();
    text(&capped, &Extent::default(), Look::default(), &mut out).expect("a vector takes it");
    let out = String::from_utf8(out).expect("UTF-8");
    assert!(out.contains("(summed up)") && out.contains("beyond 0 B of memory"), "{out}");
}

/// Ten directories in each, down to some depth, and files in each, of which no call reaches the
/// kernel.
struct MadeUp {
    depth: u32,
    files: u32,
}

struct Made(Kind);

impl Found for Made {
    fn name(&self) -> &CStr {
        c"a-name"
    }
    fn kind(&self) -> Option<Kind> {
        Some(self.0)
    }
    fn meta(&self) -> io::Result<Meta> {
        Ok(Meta { apparent: 10, disk: 20, ..Meta::of(self.0) })
    }
}

impl Sys for MadeUp {
    type Directory = u32;
    type Buffer = ();
    type Found<'a> = Made;

    fn buffer(&self) {}
    fn handles(&self) -> usize {
        1 << 20
    }
    fn meta(&self, _: &Path, _: bool) -> io::Result<Meta> {
        Ok(Meta::of(Kind::Directory))
    }
    fn open_path(&self, _: &Path) -> io::Result<u32> {
        Ok(0)
    }
    fn open(&self, above: &u32, _: &CStr) -> io::Result<u32> {
        Ok(above + 1)
    }
    fn duplicate(&self, directory: &u32) -> io::Result<u32> {
        Ok(*directory)
    }
    fn meta_of(&self, _: &u32) -> io::Result<Meta> {
        Ok(Meta { apparent: 1, disk: 2, ..Meta::of(Kind::Directory) })
    }
    fn meta_in(&self, _: &u32, _: &CStr) -> io::Result<Meta> {
        Ok(Meta::of(Kind::Directory))
    }
    fn read(
        &self,
        directory: &u32,
        (): &mut (),
        each: &mut impl FnMut(&Made) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let directories = if *directory < self.depth { 10 } else { 0 };
        for number in 0..directories + self.files {
            let kind = if number < directories { Kind::Directory } else { Kind::File };
            if each(&Made(kind)).is_break() {
                break;
            }
        }
        Ok(())
    }
    fn exhausted(&self, _: &io::Error) -> bool {
        false
    }
}

#[test]
fn a_limit_is_kept_however_much_there_is() {
    let sys = MadeUp { depth: 4, files: 9 };
    let paths = [PathBuf::from("made-up")];
    let threads = NonZeroUsize::new(2);
    let options = |memory| Options { keep_files: true, memory, threads, ..Options::default() };
    let scanned =
        |memory| scan_on(&sys, &paths, &options(memory), &Control::new()).expect("threads");
    let whole = scanned(None);
    assert_eq!(whole.totals.entries(), 11_111 * 10);
    for memory in [1 << 16, 1 << 18, 1 << 20] {
        let capped = scanned(Some(memory));
        assert_eq!(capped.totals, whole.totals);
        let kept = portrait_size(&capped);
        // A file takes 24 bytes and its name; what one directory holds may be over the limit.
        assert!(kept * 31 <= memory + 64 * 31 * 8, "{kept} in {memory}");
        assert!(kept * 31 * 40 >= memory, "{kept} in {memory}: that is too few");
    }
}

#[test]
fn a_limit_is_kept_within_one_directory_which_is_marked() {
    let sys = MadeUp { depth: 0, files: 50_000 };
    let threads = NonZeroUsize::new(1);
    let options =
        Options { keep_files: true, memory: Some(1 << 16), threads, ..Options::default() };
    let scan = scan_on(&sys, &["made-up".into()], &options, &Control::new()).expect("a thread");
    assert_eq!((scan.totals.files, scan.summed), (50_000, 0));
    let kept = portrait_size(&scan);
    assert!(kept * 31 <= (1 << 16) + 64 * 31, "{kept}");
    assert!(kept * 31 * 40 >= 1 << 16, "{kept}");
    assert!(scan.tree.roots().all(|root| root.is_summed() && root.entries() == 50_000));
}

/// How many entries a tree shows. Names are no paths there.
fn portrait_size(scan: &Scan) -> u64 {
    let mut count = 0;
    let mut waiting: Vec<Node<'_>> = scan.tree.roots().collect();
    while let Some(node) = waiting.pop() {
        count += 1 + node.files().count() as u64;
        waiting.extend(node.directories());
    }
    count
}

#[test]
fn a_limit_is_told_of_by_documents() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    fs::create_dir_all(tree.path().join("a/b")).expect("directories");
    let options = Options { memory: Some(0), ..Options::default() };
    let scan = poach_scan::scan(&[tree.path().into()], &options, &Control::new()).expect("a scan");
    let mut out = Vec::new();
    poach_scan::document::json(&scan, &Extent::default(), &mut out).expect("a vector takes it");
    let document: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!((&document["complete"], &document["options"]["memory"]), (&false.into(), &0.into()));
    assert_eq!(document["tree"][0]["summed"], true);
    assert_eq!(document["tree"][0]["entries"], 2);
}

#[test]
fn one_name_or_one_index_of_a_document_takes_no_more_than_the_limit() {
    let name = [&b"[1,2,{},[{\"name\":\""[..], &vec![b'a'; 1 << 20]].concat();
    let blocks = 20_000;
    let head = (1_u32 << 28 | (8 + 8 * blocks)).to_be_bytes();
    let index = [&b"\xbfncduEX1"[..], &head[..], &vec![0; 8 * blocks as usize], &head].concat();
    for (document, limit) in [(name, 100_000), (index, 400_000)] {
        let refused = read_within(&document[..], limit).expect_err("more than the limit");
        assert!(matches!(refused, ImportError::Memory(it) if it == limit), "{refused}");
    }
}
