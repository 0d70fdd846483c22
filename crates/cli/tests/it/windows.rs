//! `poach scan` as a user of Windows meets it: paths with single backslashes, long ones, what may
//! not be read, documents, exit codes.
//!
//! `cargo xtask wine` runs it under Wine.
#![cfg(windows)]

use std::ffi::OsStr;
use std::fs;
use std::os::windows::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const REPORTS: &str = "summary,largest-files,largest-directories,recent,oldest,by-age,extensions,types,empty-directories,\
                       empty-files,symlinks,errors,stats,owners,duplicates";

/// The program, with nothing of the user's in its environment.
fn poach() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_poach"));
    command.arg("scan").stdin(Stdio::null()).env("APPDATA", "Z:\\nowhere");
    for name in ["POACH_SCAN_OPTIONS", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

fn scan<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Output {
    poach().args(words).output().expect("the program starts")
}

/// What it printed, if it ended with this code.
fn shown<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>, code: i32) -> String {
    let output = scan(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Two directories and three files, of which two are equal.
fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    fs::create_dir_all(tree.path().join("outer\\inner")).expect("directories");
    for (name, byte) in [("a.txt", 1), ("outer\\b.txt", 1), ("outer\\inner\\c.bin", 2)] {
        fs::write(tree.path().join(name), vec![byte; 50_000]).expect("a file");
    }
    tree
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

#[test]
fn paths_have_single_backslashes_in_every_view() {
    let tree = grown();
    let root = text(tree.path());
    assert!(root.contains('\\'), "{root}");
    let tree_of = shown([root, "-a", "--full-paths"], 0);
    assert!(tree_of.contains(&format!("{root}\\outer\\inner\\c.bin")), "{tree_of}");
    assert!(tree_of.contains("3 directories, 3 files"), "{tree_of}");
    let reports = shown([root, "--report", REPORTS], 0);
    assert!(reports.contains(&format!("{root}\\outer\\b.txt")), "{reports}");
    assert!(reports.contains("freed by one of 2 files of 48.8 KiB"), "{reports}");
    // Nobody is said to own what was not asked about.
    assert!(
        reports.contains("not available on Windows") && !reports.contains("root\n"),
        "{reports}"
    );
    for (format, backslash) in [("csv", "\\"), ("ndjson", "\\\\"), ("json", "\\\\")] {
        let document = shown([root, "-a", "--format", format], 0);
        let path = root.replace('\\', backslash);
        assert!(document.contains(&path), "{format}: {document}");
        assert!(!document.contains(&path.replace('\\', "\\\\")), "{document}");
    }
    for text in [tree_of, reports] {
        assert!(!text.contains("\\\\"), "{text}");
    }
}

#[test]
fn every_document_is_written_to_a_file_and_those_that_can_be_are_read_back() {
    let tree = grown();
    let place = tempfile::tempdir().expect("a directory for the test");
    let file = |name: &str| place.path().join(name);
    let (page, snapshot, export) = (file("page.html"), file("snapshot"), file("export"));
    // A file that is there is replaced.
    fs::write(&page, "what was there before").expect("a file");
    let root = tree.path().as_os_str();
    let flag = OsStr::new;
    let words = [flag("--html"), page.as_os_str(), flag("--snapshot"), snapshot.as_os_str(), root];
    shown(words, 0);
    let page = fs::read_to_string(page).expect("it was written");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("c.bin"), "{}", &page[..99]);
    shown([flag("--format"), flag("ncdu"), flag("-o"), export.as_os_str(), root], 0);
    let totals = |words: &[&OsStr]| -> Value {
        let document: Value =
            serde_json::from_str(&shown([words, &[flag("--json")]].concat(), 0)).expect("JSON");
        document["totals"].clone()
    };
    let walked = totals(&[root]);
    assert_eq!((&walked["directories"], &walked["files"]), (&3.into(), &3.into()));
    for document in [&snapshot, &export] {
        assert_eq!(totals(&[flag("--import"), document.as_os_str()]), walked);
    }
    fs::write(tree.path().join("outer\\new"), vec![1; 9000]).expect("a file");
    let differs = shown([flag("--diff"), snapshot.as_os_str(), root], 0);
    assert!(differs.contains("outer") && differs.contains("new"), "{differs}");
}

#[test]
fn what_is_absent_or_closed_is_1_and_said_and_the_rest_is_shown() {
    let tree = grown();
    let absent = tree.path().join("absent");
    let output = scan([text(&absent), text(&tree.path().join("outer"))]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("poach scan: {}: ", text(&absent))), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 files"), "{output:?}");

    // Opened so that nobody else can; FILE_FLAG_BACKUP_SEMANTICS is for directories.
    let mut options = fs::File::options();
    options.read(true).share_mode(0).custom_flags(0x0200_0000);
    let closed = options.open(tree.path().join("outer\\inner")).expect("ours alone");
    let output = scan([text(tree.path())]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("\\outer\\inner: "), "{said}");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("(unreadable)") && table.contains("1 error"), "{table}");
    drop(closed);
    shown([text(tree.path())], 0);
}

#[test]
fn what_makes_no_sense_is_2_and_a_browser_needs_a_terminal() {
    shown(["--no-such-flag"], 2);
    shown(["--json", "--format", "csv"], 2);
    let output = scan(["-i"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("-i: it needs a terminal"), "{said}");
}

#[test]
fn a_long_path_is_scanned_and_is_a_path_by_itself() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let mut path = tree.path().to_owned();
    for level in 0..12 {
        path.push(format!("{level}-{}", "n".repeat(60)));
        fs::create_dir(&path).expect("a directory");
    }
    fs::write(path.join("leaf"), vec![1; 12_345]).expect("a file");
    assert!(text(&path).len() > 700);
    let all =
        shown([text(tree.path()), "-a", "--full-paths", "--depth", "all", "--apparent-size"], 0);
    assert!(all.contains(&format!("{}\\leaf", text(&path))), "{all}");
    assert!(shown([text(&path), "-a"], 0).contains("1 directory, 1 file,"));
}

#[test]
fn options_and_paths_come_from_files() {
    let tree = grown();
    let place = tempfile::tempdir().expect("a directory for the test");
    fs::create_dir(place.path().join("poach")).expect("a directory");
    fs::write(place.path().join("poach\\scan.conf"), "# mine\n--units bytes\n--exclude *.bin\n")
        .expect("a file");
    let list = place.path().join("list");
    fs::write(&list, format!("{}\0", text(tree.path()))).expect("a file");
    let output = poach()
        .env("APPDATA", place.path())
        .args(["--apparent-size", "-a", "--files0-from"])
        .arg(&list)
        .output()
        .expect("the program starts");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("50,000 B") && table.contains("2 files"), "{table}");
    assert!(!table.contains("c.bin"), "{table}");
}
