//! Reports on a walk: the same from every engine, and right.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::fs;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use std::{ffi::CStr, io};

use poach_scan::duplicates::Made;
use poach_scan::report::{Look, Measure};
use poach_scan::survey::{Cell, Column, Report, Section, Settings, Survey, json, text};
use poach_scan::{Control, Engine, Options, scan_with};

use crate::rig;

const NOW: i64 = 1_700_000_000;
const DAY: i64 = 24 * 60 * 60;

/// Ten files of known sizes and ages, and some more.
fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    for directory in ["a", "b/inner", "empty", "b/also-empty"] {
        fs::create_dir_all(path(directory)).expect("a directory");
    }
    for (number, name) in
        ["a/0.txt", "a/1.RS", "b/2.rs", "b/inner/3", "4.png", "5.rs"].iter().enumerate()
    {
        fs::write(path(name), vec![1; number * 10_000]).expect("a file");
        let age = DAY * [0, 3, 40, 400, 4000, -1][number];
        let changed = UNIX_EPOCH + Duration::from_secs((NOW - age - 10) as u64);
        fs::File::options()
            .write(true)
            .open(path(name))
            .and_then(|it| it.set_modified(changed))
            .expect("ours");
    }
    fs::hard_link(path("5.rs"), path("b/6.rs")).expect("a link");
    rig::symlink("a", path("whole")).expect("a link");
    rig::symlink("nowhere", path("broken")).expect("a link");
    tree
}

fn reports(root: &Path, reports: &[Report], settings: &Settings, engine: Engine) -> Vec<Section> {
    let survey = Survey::new(reports, settings.clone());
    let options = Options { engine, threads: std::num::NonZeroUsize::new(3), ..Options::default() };
    let (scan, parts) = scan_with(&rig::Direct, &[root.into()], &options, &Control::new(), &survey)
        .expect("a scan");
    survey.finish_on(&rig::Direct, &scan, parts).expect("threads")
}

fn settings() -> Settings {
    Settings { now: NOW, measure: Measure::Apparent, ..Settings::default() }
}

fn one(root: &Path, report: Report, settings: &Settings) -> Section {
    let all = Engine::ALL.map(|engine| reports(root, &[report], settings, engine).remove(0));
    for other in &all[1..] {
        assert_eq!(other.rows, all[0].rows, "{report}: engines differ");
    }
    let [first, ..] = all;
    first
}

/// The paths of a report, below the root, with slashes.
fn paths(section: &Section, root: &Path) -> Vec<String> {
    let at = section.columns.iter().position(|column| column.name == "path").expect("a path");
    let below = |row: &Vec<Cell>| match &row[at] {
        Cell::Path(path) => {
            let path = PathBuf::from(String::from_utf8(path.clone()).expect("UTF-8"));
            let below = path.strip_prefix(root).expect("below the root").display().to_string();
            below.replace(MAIN_SEPARATOR, "/")
        }
        other => panic!("{other:?} is no path"),
    };
    section.rows.iter().map(below).collect()
}

/// The cells of the row that has this text.
fn row<'s>(section: &'s Section, text: &str) -> &'s [Cell] {
    let text = Cell::Text(text.to_owned().into());
    section
        .rows
        .iter()
        .find(|row| row.contains(&text))
        .unwrap_or_else(|| panic!("no {text:?} in {section:?}"))
}

#[test]
fn files_are_ranked_by_size_and_by_age() {
    let tree = grown();
    let top = Settings { top: Some(3), ..settings() };
    let largest = one(tree.path(), Report::LargestFiles, &top);
    // A file with two names is listed once, at the name that comes first.
    assert_eq!(paths(&largest, tree.path()), ["5.rs", "4.png", "b/inner/3"]);
    assert_eq!(largest.left_out, 3);
    assert_eq!(largest.totals.as_ref().map(|it| &it[1]), Some(&Cell::Bytes(150_000)));
    let recent = one(tree.path(), Report::Recent, &Settings { recent: 5 * DAY, ..settings() });
    assert_eq!(paths(&recent, tree.path()), ["5.rs", "a/0.txt", "a/1.RS"]);
    let oldest = one(tree.path(), Report::Oldest, &Settings { top: Some(2), ..settings() });
    assert_eq!(paths(&oldest, tree.path()), ["4.png", "b/inner/3"]);
    assert_eq!(paths(&one(tree.path(), Report::EmptyFiles, &settings()), tree.path()), ["a/0.txt"]);
    let ages = one(tree.path(), Report::ByAge, &settings());
    assert_eq!(ages.rows.len(), 6);
    assert_eq!(row(&ages, "in the future")[0], Cell::Count(1));
    assert_eq!(row(&ages, "older")[2], Cell::Bytes(40_000));
}

#[test]
fn extensions_and_types_add_up() {
    let tree = grown();
    let extensions = one(tree.path(), Report::Extensions, &settings());
    // 1.RS, 2.rs, and 5.rs by two names, whose bytes count once.
    assert_eq!(
        row(&extensions, "rs")[..],
        [
            Cell::Count(4),
            row(&extensions, "rs")[1].clone(),
            Cell::Bytes(80_000),
            Cell::Text("rs".into())
        ]
    );
    assert_eq!(row(&extensions, "(none)")[2], Cell::Bytes(30_000));
    let types = one(tree.path(), Report::Types, &settings());
    assert_eq!(
        (&row(&types, "source code")[0], &row(&types, "images")[2]),
        (&Cell::Count(4), &Cell::Bytes(40_000))
    );
    let one_row = one(tree.path(), Report::Types, &Settings { top: Some(1), ..settings() });
    assert_eq!((one_row.rows.len(), one_row.left_out), (1, 3));
}

#[test]
fn directories_are_ranked_and_the_empty_ones_found() {
    let tree = grown();
    let largest =
        one(tree.path(), Report::LargestDirectories, &Settings { top: Some(3), ..settings() });
    assert_eq!(paths(&largest, tree.path()), ["", "b", "b/inner"]);
    assert_eq!(largest.left_out, 3);
    let empty = one(tree.path(), Report::EmptyDirectories, &settings());
    assert_eq!(paths(&empty, tree.path()), ["b/also-empty", "empty"]);
}

#[test]
fn a_directory_that_could_not_be_read_is_not_empty_and_is_told_of() {
    let tree = grown();
    let closed = |deed, name: &CStr| {
        let refused = deed == rig::Deed::Open && name == c"a";
        refused.then(|| io::ErrorKind::PermissionDenied.into())
    };
    let wanted = [Report::EmptyDirectories, Report::Owners];
    let survey = Survey::new(&wanted, settings());
    let (rigged, options) = (rig::Rigged::new(&closed), Options::default());
    let (scan, parts) =
        scan_with(&rigged, &[tree.path().into()], &options, &Control::new(), &survey)
            .expect("a scan");
    let sections = survey.finish_on(&rigged, &scan, parts).expect("threads");
    assert_eq!(paths(&sections[0], tree.path()), ["b/also-empty", "empty"]);
    if cfg!(unix) {
        assert_eq!(sections[1].rows[0][0], Cell::Count(scan.totals.entries()));
    }
}

#[cfg(unix)]
#[test]
fn links_that_lead_nowhere_are_marked() {
    let tree = grown();
    let links = one(tree.path(), Report::Symlinks, &settings());
    assert_eq!(paths(&links, tree.path()), ["broken", "whole"]);
    let states: Vec<&Cell> = links.rows.iter().map(|row| &row[0]).collect();
    assert_eq!(states, [&Cell::Text("broken".into()), &Cell::Text("leads on".into())]);
    assert_eq!(links.rows[0][2], Cell::Path(b"nowhere".into()));
    // They come before all that lead on.
    rig::symlink("b", tree.path().join("another")).expect("a link");
    let links = one(tree.path(), Report::Symlinks, &settings());
    assert_eq!(paths(&links, tree.path()), ["broken", "another", "whole"]);
}

#[test]
fn means_medians_depth_and_width() {
    let tree = grown();
    let stats = one(tree.path(), Report::Stats, &settings());
    let deepest = tree.path().join("b").join("inner").join("3");
    assert_eq!(row(&stats, "mean length of a file")[1], Cell::Bytes(25_000));
    assert_eq!(row(&stats, "median length of a file")[1], Cell::Bytes(20_000));
    assert_eq!(
        row(&stats, "greatest depth")[1..],
        [Cell::Count(3), Cell::Path(deepest.into_os_string().into_encoded_bytes())]
    );
    assert_eq!(row(&stats, "widest directory")[1], Cell::Count(if cfg!(unix) { 7 } else { 5 }));
    assert_eq!(row(&stats, "median entries of a directory")[1], Cell::Count(1));
}

#[cfg(unix)]
#[test]
fn owners_have_names_where_they_are_known() {
    use std::collections::HashMap;
    use std::os::unix::fs::MetadataExt as _;
    use std::sync::atomic::{AtomicUsize, Ordering};
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let tree = grown();
    let uid = tree.path().metadata().expect("it is there").uid();
    let owners = HashMap::from([(uid, "who\u{1b}ever".to_owned())]);
    let owners = one(tree.path(), Report::Owners, &Settings { owners, ..settings() });
    assert_eq!(row(&owners, "who\u{1b}ever")[0], Cell::Count(15));
    let name_of: Option<fn(u32) -> Option<String>> = Some(|uid| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        Some(format!("user {uid}"))
    });
    let owners = one(tree.path(), Report::Owners, &Settings { name_of, ..settings() });
    assert_eq!(row(&owners, &format!("user {uid}"))[0], Cell::Count(15));
    // All 15 are one user's.
    assert_eq!(ASKED.load(Ordering::Relaxed), Engine::ALL.len());
}

#[test]
fn all_reports_share_a_walk_and_are_written_as_text_and_as_json() {
    let tree = grown();
    // Windows has no name with the first of these.
    let name =
        if cfg!(windows) { "odd\u{202e} \u{9b}[31m" } else { "odd\u{202e}\u{9b} \u{1b}[31m" };
    fs::write(tree.path().join(name), vec![1; 1 << 20]).expect("a file");
    let sections = reports(tree.path(), &Report::ALL, &settings(), Engine::default());
    assert_eq!(sections.iter().map(|it| it.report).collect::<Vec<_>>(), Report::ALL);
    for section in &sections {
        assert!(section.rows.iter().all(|row| row.len() == section.columns.len()), "{section:?}");
        let distinct: std::collections::HashSet<_> =
            section.columns.iter().map(|it: &Column| it.name).collect();
        assert_eq!(distinct.len(), section.columns.len());
    }
    let mut out = Vec::new();
    json(&sections, &Made::default(), &mut out).expect("a vector can be written to");
    let document: serde_json::Value = serde_json::from_slice(&out).expect("it is JSON");
    let plain = |it: char| it == '\n' || !it.is_control() && it != '\u{202e}';
    assert!(std::str::from_utf8(&out).expect("JSON is UTF-8").chars().all(plain));
    assert_eq!(document["schema"], 1);
    for report in Report::ALL {
        assert!(document["reports"][report.name()]["rows"].is_array(), "{report}");
    }
    let first = &document["reports"]["largest-files"]["rows"][0];
    assert!(first["path"].as_str().is_some_and(|path| path.ends_with("[31m")), "{first}");
    assert_eq!(first["apparent_bytes"], 1 << 20);
    for width in [40, 80, usize::MAX] {
        let mut out = Vec::new();
        text(&sections, Look { width, ..Look::default() }, &mut out).expect("as above");
        let out = String::from_utf8(out).expect("UTF-8");
        assert!(!out.chars().any(|it| it.is_control() && it != '\n'));
        for line in out.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= width, "{width}: {line}");
        }
    }
}

#[test]
fn names_of_reports_are_read_back() {
    for report in Report::ALL {
        assert_eq!(report.name().parse(), Ok(report));
        assert_eq!(report.to_string(), report.name());
    }
    let unknown = "sizes".parse::<Report>().expect_err("there is none").to_string();
    assert!(unknown.contains("sizes") && unknown.contains("by-age"), "{unknown}");
}

#[test]
fn of_equal_files_those_whose_names_come_first_are_listed() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for number in (10..40).rev() {
        fs::write(tree.path().join(number.to_string()), "content").expect("a file");
    }
    let settings = Settings { top: Some(2), ..settings() };
    let section = one(tree.path(), Report::LargestFiles, &settings);
    let named = |row: &Vec<Cell>| {
        row.iter().any(|cell| matches!(cell, Cell::Path(path) if path.ends_with(b"10") || path.ends_with(b"11")))
    };
    assert!(section.rows.len() == 2 && section.rows.iter().all(named), "{:?}", section.rows);
}

#[test]
fn of_files_of_equal_names_those_whose_paths_come_first_are_listed() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let deep = |number: u32| tree.path().join(format!("{number}/in"));
    let named = |path: &Path| Cell::Path(path.as_os_str().as_encoded_bytes().into());
    for number in (10..40).rev() {
        fs::create_dir_all(deep(number)).expect("a directory");
        fs::write(deep(number).join("x.yy"), "").expect("a file");
    }
    let same_time = UNIX_EPOCH + Duration::from_secs(NOW as u64);
    for number in 10..40 {
        let file = fs::File::options().write(true).open(deep(number).join("x.yy"));
        file.and_then(|it| it.set_modified(same_time)).expect("ours");
    }
    let settings = Settings { top: Some(2), ..settings() };
    for report in [Report::LargestFiles, Report::Recent, Report::Oldest, Report::EmptyFiles] {
        let listed = one(tree.path(), report, &settings);
        assert_eq!(paths(&listed, tree.path()), ["10/in/x.yy", "11/in/x.yy"], "{report}");
        assert_eq!(listed.left_out, 28, "{report}");
    }
    let stats = one(tree.path(), Report::Stats, &settings);
    let deepest = deep(10).join("x.yy");
    assert_eq!(row(&stats, "greatest depth")[1..], [Cell::Count(3), named(&deepest)]);
}

#[test]
fn of_equal_rows_the_first_by_name_comes_first() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for (name, files) in [("b", ["3.zz", "4.yy"]), ("a", ["1.zz", "2.yy"])] {
        fs::create_dir(tree.path().join(name)).expect("a directory");
        for file in files {
            fs::write(tree.path().join(name).join(file), "x").expect("a file");
        }
    }
    let stats = one(tree.path(), Report::Stats, &settings());
    let root = tree.path().as_os_str().as_encoded_bytes();
    assert_eq!(row(&stats, "widest directory")[1..], [Cell::Count(2), Cell::Path(root.into())]);
    let extensions = one(tree.path(), Report::Extensions, &settings());
    let names: Vec<_> = extensions.rows.iter().map(|row| &row[3]).collect();
    assert_eq!(names, [&Cell::Text("yy".into()), &Cell::Text("zz".into())]);
}

#[cfg(unix)]
#[test]
fn a_file_with_several_names_is_its_owners() {
    let tree = grown();
    let owner = std::os::unix::fs::chown(tree.path().join("5.rs"), Some(4321), None);
    // Nobody but the super-user may give a file away.
    if owner.is_ok() {
        let owners = one(tree.path(), Report::Owners, &settings());
        let is_his = |row: &Vec<Cell>| row[0] == Cell::Count(2) && row[3] == Cell::Count(4321);
        assert!(owners.rows.iter().any(is_his), "{owners:?}");
    }
}
