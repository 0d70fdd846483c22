//! Safe code against a scan: a system of one's own that lies, and options of any value. A scan
//! ends, with sums.

#![forbid(unsafe_code)]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use poach_scan::choice::Choice;
use poach_scan::document::json;
use poach_scan::listing::{self, Growing, Live, Row, Stored, Sums, find, row, search};
use poach_scan::report::{Extent, Look, Measure, Order, Units, bytes, count, escape, text};
use poach_scan::survey::{Report, Settings, Survey, Tallies, Text, Told, time};
use poach_scan::sys::{DiskExtent, Found, Kind, Meta, Native, Sys};
use poach_scan::{
    Control, Engine, Error, MAX_THREADS, NodeId, Options, Progress, Scan, Shared, Totals, linked,
    scan, scan_on, scan_with,
};

/// A system whose answers have nothing to do with each other.
#[derive(Default)]
struct Liar(AtomicU64);

impl Liar {
    fn lie(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
    }

    fn maybe<T>(&self, value: T) -> io::Result<T> {
        if self.lie().is_multiple_of(7) { Err(io::Error::other("no")) } else { Ok(value) }
    }

    fn any_meta(&self) -> Meta {
        let kind =
            [Kind::Directory, Kind::File, Kind::Symlink, Kind::Other][self.lie() as usize % 4];
        let [device, inode, links] = [(); 3].map(|()| self.lie() % 3);
        let [modified, accessed, changed] = [(); 3].map(|()| self.lie().wrapping_shl(30) as i64);
        let [mode, owner, group] = [(); 3].map(|()| self.lie() as u32);
        let (apparent, disk) = (self.lie(), self.lie());
        Meta {
            kind,
            device,
            inode,
            links,
            apparent,
            disk,
            modified,
            accessed,
            changed,
            mode,
            owner,
            group,
        }
    }
}

struct Any<'a>(&'a Liar);

impl Found for Any<'_> {
    fn name(&self) -> &CStr {
        [c"", c"..", c"a/b", c"\xff\n", c"name"][self.0.lie() as usize % 5]
    }
    fn kind(&self) -> Option<Kind> {
        self.0.lie().is_multiple_of(2).then(|| self.0.any_meta().kind)
    }
    fn meta(&self) -> io::Result<Meta> {
        self.0.maybe(self.0.any_meta())
    }
}

impl Sys for Liar {
    /// How deep it claims to be: below some depth there are no more entries, so that a scan has an
    /// end.
    type Directory = u32;
    type Buffer = ();
    type Found<'a> = Any<'a>;

    fn buffer(&self) {}
    fn handles(&self) -> usize {
        self.lie() as usize % 4
    }
    fn meta(&self, _: &Path, _: bool) -> io::Result<Meta> {
        Ok(Meta { kind: Kind::Directory, ..self.any_meta() })
    }
    fn open_path(&self, _: &Path) -> io::Result<u32> {
        Ok(0)
    }
    fn open(&self, parent: &u32, _: &CStr) -> io::Result<u32> {
        self.maybe(parent + 1)
    }
    fn open_below(&self, parent: u32, names: &[&CStr]) -> io::Result<u32> {
        self.maybe(parent + names.len() as u32)
    }
    fn duplicate(&self, directory: &u32) -> io::Result<u32> {
        self.maybe(*directory)
    }
    fn meta_of(&self, _: &u32) -> io::Result<Meta> {
        self.maybe(self.any_meta())
    }
    fn meta_in(&self, _: &u32, _: &CStr) -> io::Result<Meta> {
        self.maybe(self.any_meta())
    }
    fn read(
        &self,
        directory: &u32,
        (): &mut (),
        each: &mut impl FnMut(&Any<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        // Whatever depth it says, the whole has an end.
        if *directory < 6 && self.0.load(Ordering::Relaxed) < 20_000 {
            // It goes on where it is told to stop, too.
            for _ in 0..5 {
                let _ = each(&Any(self));
            }
        }
        self.maybe(())
    }
    fn read_file(&self, _: &u32, _: &CStr, _: usize) -> io::Result<Vec<u8>> {
        self.maybe(b"[\n*\n!a/".to_vec())
    }
    fn open_file(&self, _: &u32, _: &CStr) -> io::Result<(File, Meta)> {
        self.maybe((File::open("Cargo.toml")?, self.any_meta()))
    }
    fn data_after(&self, _: &File, offset: u64) -> io::Result<Option<Range<u64>>> {
        self.maybe(Some(offset..self.lie()))
    }
    fn extents(&self, _: &File, each: &mut dyn FnMut(DiskExtent)) -> io::Result<()> {
        each(DiskExtent {
            physical: self.lie(),
            length: self.lie(),
            shared: self.lie().is_multiple_of(2),
            encoded: self.lie().is_multiple_of(2),
        });
        self.maybe(())
    }
    fn share(&self, _: &File, _: &File, _: u64, length: u64) -> io::Result<Option<u64>> {
        self.maybe(Some(length))
    }
    fn is_pseudo_in(&self, _: &u32, _: &CStr) -> bool {
        false
    }

    fn is_pseudo(&self, _: &u32) -> bool {
        self.lie().is_multiple_of(5)
    }
    fn mounted_twice(&self) -> Vec<PathBuf> {
        vec!["/".into(), "no/such/mount".into()]
    }
    fn exhausted(&self, _: &io::Error) -> bool {
        self.lie().is_multiple_of(9) && self.0.load(Ordering::Relaxed) < 40_000
    }
}

fn all_of(scan: &Scan) {
    assert!(scan.entries_per_second() >= 0.0);
    for measure in [Measure::Disk, Measure::Apparent, Measure::Entries] {
        for limit in [None, Some(0), Some(usize::MAX)] {
            let directories_only = limit.is_none();
            let extent = Extent {
                measure,
                depth: limit,
                top: limit,
                directories_only,
                at_least: u64::from(directories_only) << 20,
                order: if directories_only { Order::Entries } else { Order::Time },
                reverse: directories_only,
            };
            let mut written = Vec::new();
            for node in scan.tree.roots() {
                assert!(!Look::default().amount(measure, measure.of(&node)).is_empty());
            }
            json(scan, &extent, &mut written).unwrap();
            text(scan, &extent, Look { colour: true, ..Look::default() }, &mut written).unwrap();
            text(
                scan,
                &extent,
                Look { width: 0, height: Some(1), ..Look::default() },
                &mut written,
            )
            .unwrap();
            assert!(!written.is_empty());
        }
    }
}

#[test]
fn a_system_that_lies() {
    for engine in Engine::ALL {
        for handles in [None, Some(0), Some(usize::MAX)] {
            for keep_files in [false, true] {
                let threads = NonZeroUsize::new(3);
                let options = Options {
                    engine,
                    threads,
                    handles,
                    keep_files,
                    keep_facts: keep_files,
                    choice: keep_files.then(|| {
                        Choice {
                            ignore_files: true,
                            exclude_caches: true,
                            exclude_pseudo: true,
                            ..Choice::default()
                        }
                        .into()
                    }),
                    one_file_system: keep_files,
                    without_sizes: handles == Some(0),
                    follow_paths: true,
                    memory: (handles == Some(usize::MAX)).then_some(4000),
                };
                let control = Control::new();
                let paths = ["a".into(), "a".into(), "../a".into()];
                let found = scan_on(&Liar::default(), &paths, &options, &control).unwrap();
                // One lie in seven is an error, so that every root may be one; and where something
                // is chosen, every root may be left out, as a cache or as a pseudo
                // file system.
                let told = found.totals.entries() + found.totals.errors;
                assert!(
                    (told > 0 || options.choice.is_some()) && !control.is_stopped(),
                    "{engine}"
                );
                assert!(found.totals.entries() == 0 || control.progress() != Progress::default());
                all_of(&found);
                take_apart(found);
            }
        }
    }
}

/// Takes everything out of a scan that lies below its roots, by whatever names it has.
fn take_apart(mut found: Scan) {
    let first = |found: &Scan| -> Option<[Vec<u8>; 2]> {
        let root = found.tree.roots().find(|root| found.tree.find(&[root.name()]).is_some())?;
        let below = root.directories().chain(root.files()).next()?;
        Some([root.name().to_vec(), below.name().to_vec()])
    };
    let mut went = 0;
    while let Some(names) = first(&found) {
        // A name may be there twice, and then another one goes; without files nothing can.
        if found.forget(&names).is_err() {
            assert!(!found.options.keep_files || went > 0 || found.tree.find(&names).is_none());
            return;
        }
        went += 1;
    }
    let Some(root) = found.tree.roots().next().map(|root| root.name().to_vec()) else { return };
    assert!(found.renew(&[root], Scan::default()).is_err());
}

#[test]
fn tallies_of_parts_are_those_of_the_whole() {
    let liar = Liar::default();
    let (mut whole, mut parts) = (Tallies::new(9), [Tallies::new(9), Tallies::new(9)]);
    for number in 0..500 {
        let (meta, name) = (liar.any_meta(), format!("{number}.{}", number % 7));
        for tallies in [&mut whole, &mut parts[number % 2]] {
            tallies.count(name.as_bytes(), &meta, number % 3 > 0);
            if number % 3 == 0 && number % 2 == 0 {
                tallies.bear(name.as_bytes(), &meta);
            }
        }
    }
    let [mut sum, other] = parts;
    sum.merge(&other);
    let settings = Settings { top: None, ..Settings::default() };
    for report in Report::ALL {
        let rows = |tallies: &Tallies| tallies.section(report, &settings).map(|it| it.rows);
        assert_eq!(rows(&sum), rows(&whole), "{report}");
        assert_eq!(rows(&sum).is_some(), Tallies::REPORTS.contains(&report), "{report}");
    }
}

#[test]
fn totals_are_counted_by_kind() {
    let mut totals = Totals::default();
    for kind in [Kind::Directory, Kind::File, Kind::File, Kind::Symlink, Kind::Other] {
        totals.count(kind);
    }
    assert_eq!((totals.directories, totals.files), (1, 2));
    assert_eq!((totals.symlinks, totals.other, totals.entries()), (1, 1, 5));
    assert_eq!((totals.apparent_bytes, totals.errors), (0, 0));
}

#[test]
fn reports_on_a_system_that_lies() {
    let survey = Survey::new(&Report::ALL, Settings::default());
    for engine in Engine::ALL {
        let options = Options { engine, ..Options::default() };
        let (liar, control) = (Liar::default(), Control::new());
        let (found, parts) = scan_with(&liar, &["a".into()], &options, &control, &survey).unwrap();
        let (mut text, mut out) = (Text::new(Look::default()), Vec::new());
        let made = survey.finish_each_on(&liar, &found, parts, &control, &mut |told: Told<'_>| {
            text.write(told, &mut out).unwrap();
        });
        assert!(!made.unwrap().interrupted && !out.is_empty());
        let path = control.path();
        assert!(path.is_empty() || path.starts_with(b"a"));
    }
}

#[test]
fn reports_are_told_one_by_one() {
    let survey = Survey::new(&[Report::Extensions, Report::Summary], Settings::default());
    let control = Control::new();
    let (found, parts) = survey.scan(&["src".into()], &Options::default(), &control).unwrap();
    let mut told_of = Vec::new();
    let mut keep = |told: Told<'_>| {
        if let Told::Section(section) = told {
            told_of.push(section.report);
        }
    };
    survey.finish_each(&found, parts, &control, &mut keep).unwrap();
    assert_eq!(told_of, [Report::Extensions, Report::Summary]);
}

#[test]
fn directories_of_a_walk_on_a_system_that_lies() {
    for engine in Engine::ALL {
        let options = Options { engine, ..Options::default() };
        let (liar, live) = (Liar::default(), Live::default());
        let mut growing = Growing::new(live.clone());
        let control = Control::new();
        scan_with(&liar, &["a".into(), "b".into()], &options, &control, &live).unwrap();
        growing.take_in();
        let mut rows = growing.rows(&[], Measure::Entries);
        let sum: Sums = growing.sum(&[]);
        for &Row { ref name, value, .. } in &rows {
            assert!(growing.knows(&[&name[..]]) && value <= sum.entries);
            growing.rows(&[&name[..]], Measure::Disk);
        }
        assert!(growing.rows(&[b"none"], Measure::Entries).is_empty());
        listing::sort(&mut rows, Order::Time, true);
        search(&mut rows, "\u{0}");
        assert!(rows.is_empty() && !growing.knows(&[]));
    }
}

#[test]
fn an_export_is_listed_by_itself() {
    let options = Options { keep_files: true, ..Options::default() };
    let scan = scan(&["src".into()], &options, &Control::new());
    let mut out = Vec::new();
    poach_scan::document::ncdu_binary(&scan.unwrap(), &mut out).unwrap();
    let mut stored = Stored::open(std::io::Cursor::new(out), u64::MAX).unwrap().unwrap();
    let root = stored.root().to_vec();
    let rows = stored.rows(&[&root], Measure::Entries).unwrap();
    let sum = stored.sum(&[&root]).unwrap();
    assert_eq!(rows.iter().map(|it| it.entries + 1).sum::<u64>(), sum.entries);
    for row in rows {
        let is_directory = row.kind == Kind::Directory;
        assert_eq!(stored.knows(&[&root, &row.name]).unwrap(), is_directory);
        stored.rows(&[&root, &row.name], Measure::Disk).unwrap();
    }
    assert!(!stored.is_unread() && !stored.knows(&[]).unwrap());
}

#[test]
fn what_a_liar_says_of_blocks_is_counted() {
    let options = Options { keep_files: true, ..Options::default() };
    let control = Control::new();
    let mut scan =
        scan_on(&Liar::default(), &["a".into(), "b".into()], &options, &control).unwrap();
    let before = scan.totals.disk_bytes;
    scan.count_shared_once_on(&Liar::default(), &control);
    let Shared { bytes, files, unknown_files } = scan.shared.unwrap();
    assert!(scan.totals.disk_bytes <= before && files + unknown_files <= scan.totals.files);
    assert!(bytes == 0 || files > 0);
    // What it does not say otherwise is the device's.
    let file = std::fs::File::open("Cargo.toml").unwrap();
    assert_eq!(Liar::default().volume(&file, 7), 7);
    let mut own = poach_scan::scan(&["src".into()], &options, &control).unwrap();
    own.count_shared_once(&control);
    assert!(own.shared.is_some() && !own.interrupted);
    control.stop();
    own.count_shared_once(&control);
    assert!(own.interrupted);
}

#[test]
fn entries_are_found_in_a_tree_that_a_liar_told() {
    let options = Options { keep_files: true, keep_facts: true, ..Options::default() };
    let scan = scan_on(&Liar::default(), &["a".into(), "b".into()], &options, &Control::new());
    let scan = scan.unwrap();
    let below = identities(&scan).len() - scan.tree.roots().count();
    for text in ["", "*"] {
        let found = find(&scan, text, &Control::new()).unwrap();
        // A name with a slash, as only a liar has it, is none that a glob without one matches.
        assert!(found.len() == below || text == "*" && found.len() < below, "{text:?}");
        for id in found {
            let row = row(scan.tree.node(id).unwrap(), Measure::Disk);
            assert!(!time(row.modified.unwrap()).is_empty());
        }
    }
}

/// The identities of all entries of a tree, the given paths first.
fn identities(scan: &Scan) -> Vec<NodeId> {
    let mut waiting: Vec<_> = scan.tree.roots().collect();
    let mut all = Vec::new();
    while let Some(node) = waiting.pop() {
        all.push(node.id());
        waiting.extend(node.files().chain(node.directories()));
    }
    all
}

#[test]
fn identities_of_entries_of_one_tree_and_of_another() {
    let options = Options { keep_files: true, ..Options::default() };
    let of = |path: &str| scan(&[path.into()], &options, &Control::new()).unwrap();
    let (large, small, none) = (of("src"), of("src/engine"), Scan::default());
    let all = identities(&large);
    assert!(all.len() > 20);
    let mut elsewhere = 0;
    for &id in &all {
        let node = large.tree.node(id).unwrap();
        assert!(node.id() == id && node.path().starts_with(b"src"));
        // Of another tree it is some entry or none, and no panic.
        if let Some(other) = small.tree.node(id) {
            assert!(!other.name().is_empty() && other.entries() <= small.totals.entries());
            elsewhere += 1;
        }
        assert!(none.tree.node(id).is_none());
    }
    assert!(elsewhere < all.len());
    assert_eq!(all.len() as u64, large.totals.entries());
}

#[test]
fn options_of_any_value() {
    let control = Control::new();
    assert!(matches!(scan(&[], &Options::default(), &control), Err(Error::NoPath)));
    assert_eq!(linked(&[], &Options::default(), &control).unwrap(), Vec::<PathBuf>::new());
    assert!(control.path().is_empty() && control.progress() == Progress::default());
    scan(&["src".into()], &Options::default(), &control).unwrap();
    assert!(control.progress().entries > 20 && control.progress().compared.is_none());
    assert!(control.path().starts_with(b"src"), "one was asked for above");
    let many = Options { threads: NonZeroUsize::new(MAX_THREADS + 1), ..Options::default() };
    assert!(matches!(scan(&["/".into()], &many, &control), Err(Error::TooManyThreads(_))));
    assert!("none".parse::<Engine>().is_err());
    control.stop();
    assert!(control.is_stopped());
    // A control that was stopped before, and has been another scan's of other threads.
    for threads in [1, 5, 2] {
        let options = Options { threads: NonZeroUsize::new(threads), ..Options::default() };
        let found = scan_on(&Native::default(), &["src".into()], &options, &control).unwrap();
        assert!(found.interrupted);
        all_of(&found);
    }
}

#[test]
fn names_and_numbers_of_any_kind() {
    assert_eq!(Meta::of(Kind::Other).links, 1);
    // On Windows, where a backslash stands between names, a slash marks what is escaped.
    let escaped = if cfg!(windows) { r"/xff\/x00" } else { r"\xff\\\x00" };
    assert_eq!(escape(b"\xff\\\0"), escaped);
    for number in [0, 1, u64::MAX] {
        assert!(!bytes(number).is_empty() && !count(number).is_empty());
        for units in [Units::Binary, Units::Si, Units::Plain] {
            assert!(units.show(number).ends_with('B'));
        }
    }
}

/// The two ways that there are on macOS find the same.
#[cfg(target_os = "macos")]
#[test]
fn macos_tells_what_the_standard_library_tells() {
    use poach_scan::sys::{MacOs, Portable};
    let options = Options { keep_files: true, ..Options::default() };
    let paths = [PathBuf::from(env!("CARGO_MANIFEST_DIR"))];
    let one = scan_on(&MacOs, &paths, &options, &Control::new()).expect("a scan");
    let other = scan_on(&Portable, &paths, &options, &Control::new()).expect("a scan");
    assert_eq!(one.totals, other.totals);
}
