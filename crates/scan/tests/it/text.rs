//! The text for people, by its lines.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::fs;
use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf};

use poach_scan::diff;
use poach_scan::document::read;
use poach_scan::duplicates::{Copy, Group};
use poach_scan::report::{Extent, Look, Measure, Units, clusters, text, width};
use poach_scan::survey::{self, Report, Settings, Survey, Told};
use poach_scan::{Control, Engine, Node, Options, Scan, scan};
use unicode_width::UnicodeWidthStr;

use crate::rig;

const PLAIN: Look = Look {
    width: 80,
    height: None,
    colour: false,
    units: Units::Binary,
    full_paths: false,
    own_files: false,
};

fn shown(scan: &Scan, extent: Extent, look: Look) -> Vec<String> {
    let mut out = Vec::new();
    text(scan, &extent, look, &mut out).expect("a vector can be written to");
    let text = String::from_utf8(out).expect("what is printed is UTF-8 whatever the names are");
    text.lines().map(str::to_owned).collect()
}

fn everything(paths: &[PathBuf]) -> Scan {
    let options = Options { keep_files: true, ..Options::default() };
    scan(paths, &options, &Control::new()).expect("a scan")
}

/// The lines of the tree: those before the first empty one, but for the one at the very top.
fn tree(lines: &[String]) -> &[String] {
    let end = lines[1..].iter().position(String::is_empty).expect("totals below the tree");
    &lines[1..=end]
}

/// The line that ends so. Slashes stand for what separates names and marks directories here.
fn line<'l>(lines: &'l [String], end: &str) -> &'l str {
    let end = &end.replace('/', MAIN_SEPARATOR_STR);
    let found = lines.iter().find(|line| line.ends_with(end));
    found.unwrap_or_else(|| panic!("no line ends with {end} in\n{}", lines.join("\n")))
}

/// A chain of directories, each with a file of some bytes in it.
fn chain(root: &Path, levels: usize) {
    let mut path = root.to_owned();
    for level in 0..levels {
        path.push(format!("level-{level}"));
        fs::create_dir(&path).expect("a directory");
        fs::write(path.join("a file with a rather long name, to be cut"), vec![1; 5000])
            .expect("a file");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    rig::grow(directory.path()).expect("a tree for the test");
    chain(directory.path(), 60);
    fs::write(directory.path().join("日本語".repeat(20)), vec![1; 1 << 20]).expect("a file");
    let other = tempfile::tempdir().expect("a directory for the test");
    let paths = [directory.path().into(), other.path().into(), directory.path().join("empty")];
    let scan = everything(&paths);
    for width in [0, 40, 59, 60, 80, 200] {
        let lines = shown(&scan, Extent::default(), Look { width, ..PLAIN });
        for line in &lines {
            assert!(line.width() <= width, "{} columns, not {width}: {line}", line.width());
        }
        if width == 0 {
            continue;
        }
        // What lies deep is still told by its name and the end of the path to it.
        let deep = line(&lines, "level-59/");
        assert!(
            width < 80 || deep.contains(&*format!("level-58{MAIN_SEPARATOR_STR}level-59")),
            "{deep}"
        );
    }
}

#[test]
fn where_nothing_limits_the_width_names_are_whole() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let name = "n".repeat(255);
    fs::write(directory.path().join(&name), b"1").expect("a file");
    chain(directory.path(), 40);
    let scan = everything(&[directory.path().into()]);
    let lines = shown(&scan, Extent::default(), Look { width: usize::MAX, ..PLAIN });
    line(&lines, &format!("─ {name}"));
    // The indentation has a limit all the same.
    assert!(line(&lines, "/level-39/").width() < 200);
}

#[test]
fn kinds_are_told_apart_without_colour() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    rig::grow(directory.path()).expect("a tree for the test");
    let lines = shown(&everything(&[directory.path().into()]), Extent::default(), PLAIN);
    for end in ["─ outer-3/", "─ hole", "─ a-twin (hard link)"] {
        line(&lines, end);
    }
    if cfg!(unix) {
        line(&lines, "─ itself@");
        line(&lines, "─ socket=");
    }
    // The name that bears the size says nothing.
    line(&lines, "─ file-8");
}

#[test]
fn what_could_not_be_read_is_marked() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    rig::grow(directory.path()).expect("a tree for the test");
    let hook = |deed, name: &std::ffi::CStr| {
        (deed == rig::Deed::Open && name == c"outer-7")
            .then(|| std::io::ErrorKind::PermissionDenied.into())
    };
    let scan = rig::Rigged::new(&hook).scan(&[directory.path().into()], Engine::default());
    let lines = shown(&scan, Extent::default(), PLAIN);
    line(&lines, "─ outer-7/ (unreadable)");
    assert_eq!(lines.iter().filter(|line| line.contains("unreadable")).count(), 1);
}

#[test]
fn what_is_left_out_is_counted_and_weighed() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    for (name, size) in [("large", 400_000), ("a", 40_000), ("b", 20_000), ("c", 20_000)] {
        fs::write(directory.path().join(name), vec![1; size]).expect("a file");
    }
    fs::create_dir(directory.path().join("closed")).expect("a directory");
    fs::write(directory.path().join("closed/file"), b"").expect("a file");
    let scan = everything(&[directory.path().into()]);
    let extent = |top| Extent {
        top: Some(top),
        measure: poach_scan::report::Measure::Apparent,
        ..Extent::default()
    };
    let lines = shown(&scan, extent(2), PLAIN);
    assert_eq!(tree(&lines).len(), 4, "{lines:#?}");
    // A directory has a length on Unix.
    let rest = if cfg!(unix) { "43.1 KiB" } else { "39.1 KiB" };
    assert!(tree(&lines)[3].ends_with("└─ 3 more") && tree(&lines)[3].contains(rest), "{lines:#?}");
    assert!(tree(&lines)[2].ends_with("├─ a"), "{lines:#?}");
    // A directory of which nothing is shown says so by its share alone.
    assert!(!shown(&scan, extent(5), PLAIN).iter().any(|line| line.contains("more")));
}

#[test]
fn what_lies_in_a_directory_itself_has_a_row_beside_its_directories() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    for (name, size) in
        [("a", 400_000), ("b", 40_000), ("sub/c", 100_000), ("sub/low/d", 9), ("leaf/e", 7)]
    {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        fs::write(path, vec![1; size]).expect("a file");
    }
    let scan = everything(&[directory.path().into()]);
    let look = Look { own_files: true, ..PLAIN };
    let measure = poach_scan::report::Measure::Apparent;
    let extent = Extent { directories_only: true, measure, ..Extent::default() };
    let lines = shown(&scan, extent, look);
    // A directory without directories has none, and the last of its siblings is the last line.
    let ends = ["─ sub/", "│  ├─ low/", "│  └─ (files) 1", "├─ leaf/", "└─ (files) 2"];
    assert_eq!(tree(&lines).len(), 1 + ends.len(), "{lines:#?}");
    for (line, end) in tree(&lines)[1..].iter().zip(ends) {
        assert!(line.ends_with(end), "{end}: {line}");
    }
    // With a directory's own length, which it has on Unix.
    let own = if cfg!(unix) { "434 KiB" } else { "430 KiB" };
    assert!(line(&lines, "(files) 2").contains(own), "{lines:#?}");
    let entries = Extent { measure: poach_scan::report::Measure::Entries, ..extent };
    assert!(line(&shown(&scan, entries, look), "(files) 2").trim_start().starts_with("2 "));
    // Not where directories are not shown, and not unless it is asked for.
    let shallow = Extent { depth: Some(1), ..extent };
    assert_eq!(shown(&scan, shallow, look).iter().filter(|it| it.contains("(files)")).count(), 1);
    assert!(!shown(&scan, extent, PLAIN).iter().any(|line| line.contains("(files)")));
    // The lines of a terminal are enough for it.
    let low = Look { height: Some(12), ..look };
    assert!(shown(&scan, extent, low).len() < 12);
}

#[test]
fn several_paths_have_a_total_and_shares_of_it() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| directory.path().join(name);
    for name in ["a", "b", "c"] {
        fs::write(path(name), vec![1; 100 << 10]).expect("a file");
    }
    let scan = everything(&[path("a"), path("b"), path("c")]);
    let lines = shown(&scan, Extent::default(), PLAIN);
    assert_eq!(tree(&lines).len(), 4);
    assert!(tree(&lines)[0].contains(" 33.3%"), "{lines:#?}");
    assert!(line(&lines, "total of 3 paths").contains("100.0%"));
    // More paths than are to be shown: the largest, and how many others there are.
    let lines = shown(&scan, Extent { top: Some(2), ..Extent::default() }, PLAIN);
    assert!(tree(&lines)[2].ends_with("1 more") && tree(&lines)[3].ends_with("total of 3 paths"));
}

#[test]
fn as_many_entries_are_shown_as_the_terminal_has_lines_for() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    rig::grow(directory.path()).expect("a tree for the test");
    let scan = everything(&[directory.path().into()]);
    for height in [1, 10, 24, 50, 100] {
        let lines = shown(&scan, Extent::default(), Look { height: Some(height), ..PLAIN });
        assert!(lines.len() < height.max(9), "{height}: {lines:#?}");
        assert!(height < 20 || lines.len() + 12 > height, "{height}: {lines:#?}");
        // A given number of entries is shown, whatever the height.
        let extent = Extent { top: Some(30), ..Extent::default() };
        let lines = shown(&scan, extent, Look { height: Some(height), ..PLAIN });
        assert!(tree(&lines).len() > 30, "{height}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_that_is_not_followed_is_said_to_be_one() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("/usr", &link).expect("a link");
    let lines = shown(&everything(&[link]), Extent::default(), Look { width: usize::MAX, ..PLAIN });
    line(&lines, "link is a symbolic link; -D scans what it points to");
}

/// What names may hold and hardly any two terminals show alike: marks, selectors, skins, flags,
/// syllables of several letters, wide and half-wide characters, signs that turn the line, tabs,
/// bytes that no text has.
const ODD: [&[u8]; 24] = [
    b"a",
    b" ",
    b"long-name.tar.gz",
    "é".as_bytes(),
    "e\u{301}".as_bytes(),
    "⚠\u{fe0f} ".as_bytes(),
    "👍🏽".as_bytes(),
    "🇩🇪".as_bytes(),
    "🇩".as_bytes(),
    "👩\u{200d}👩\u{200d}👧".as_bytes(),
    "日本".as_bytes(),
    "ｶﾞ".as_bytes(),
    "क्ष्म".as_bytes(),
    "ᄀ".as_bytes(),
    "ᅡ".as_bytes(),
    "لا".as_bytes(),
    "\u{301}".as_bytes(),
    "\u{fe0f}".as_bytes(),
    "\u{200b}".as_bytes(),
    "\u{202e}".as_bytes(),
    "1\u{fe0f}\u{20e3}".as_bytes(),
    "\u{600}".as_bytes(),
    b"\t\n\x1b[31m",
    b"\xff\xc3",
];

/// A scan of files and directories with odd names, and with a name that was cut to more columns
/// than asked.
fn of_odd_names(random: &mut fastrand::Rng, entries: usize) -> Scan {
    let mut names = vec![["⚠\u{fe0f} ", &"n".repeat(70)].concat().into_bytes()];
    for number in 0..entries {
        let pieces = (0..random.usize(1..12)).flat_map(|_| ODD[random.usize(..ODD.len())]);
        names.push(pieces.copied().chain(number.to_string().bytes()).collect());
    }
    let mut document =
        br#"[1,2,{"progname":"ncdu","timestamp":1700000000},[{"name":"/root"}"#.to_vec();
    let mut open = 0;
    for (number, name) in names.iter().enumerate() {
        let directory = number % 7 == 6;
        document.extend_from_slice(if directory { b",[" } else { b"," });
        document.extend_from_slice(b"{\"name\":\"");
        for &byte in name {
            match byte {
                0..=0x1f => document.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => document.push(byte),
            }
        }
        let size = (number as u64) << (number % 50);
        document.extend_from_slice(
            format!("\",\"asize\":{size},\"dsize\":{size},\"mtime\":1699999999}}").as_bytes(),
        );
        open += usize::from(directory);
    }
    document.extend(vec![b']'; open + 2]);
    read(&document[..]).expect("a document")
}

/// A line without the escape codes of its colours.
fn without_codes(line: &str) -> String {
    let parts = line.split("\x1b[").enumerate();
    parts
        .map(
            |(number, part)| {
                if number == 0 { part } else { part.split_once('m').expect("a colour").1 }
            },
        )
        .collect()
}

#[test]
fn no_view_is_wider_than_asked_whatever_the_names_and_none_panics() {
    let settings = Settings { now: 1_700_000_000, ..Settings::default() };
    for seed in 0..2 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (scan, other) = (of_odd_names(&mut random, 14), of_odd_names(&mut random, 14));
        let survey = Survey::new(&Report::ALL, settings.clone());
        let sections = survey.finish(&scan, survey.collect(&scan)).expect("threads");
        let difference = diff::diff(&scan, &other, Measure::Disk);
        let copy = |node: Node<'_>| Copy {
            path: node.path(),
            disk_bytes: node.disk_bytes() / 3,
            shared_bytes: 0,
        };
        let root = scan.tree.roots().next().expect("it has one");
        let copies = root.files().map(copy).collect();
        let group = Group { apparent_bytes: 1 << 40, freed_bytes: 1 << 41, copies };
        let views = |look: Look| -> Vec<u8> {
            let (extent, mut out) = (Extent::default(), Vec::new());
            text(&scan, &extent, look, &mut out).expect("a vector takes it");
            survey::text(&sections, look, &mut out).expect("a vector takes it");
            let mut told = survey::Text::new(look);
            told.write(Told::Group(&group), &mut out).expect("a vector takes it");
            diff::text(&difference, &extent, look, &mut out).expect("a vector takes it");
            out
        };
        for columns in 0..=200 {
            let look = match columns % 3 {
                0 => PLAIN,
                1 => Look { full_paths: true, ..PLAIN },
                _ => Look { colour: true, units: Units::Plain, ..PLAIN },
            };
            let out = views(Look { width: columns, ..look });
            for line in String::from_utf8(out).expect("UTF-8").lines() {
                let line = &without_codes(line);
                let sum: usize = clusters(line).map(|(_, columns)| columns).sum();
                assert_eq!(width(line), sum);
                assert!(
                    width(line) <= columns && line.width() <= columns,
                    "seed {seed}: {} columns, not {columns}: {line:?}",
                    width(line)
                );
            }
        }
    }
}
