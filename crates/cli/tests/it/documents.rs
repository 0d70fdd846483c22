//! `poach scan`'s documents as a user and other programs meet them: complete, replaced as a whole,
//! and read by ncdu.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;

use crate::rig;

const POACH: &str = env!("CARGO_BIN_EXE_poach");

fn scan(arguments: &[&str], path: &Path) -> Output {
    let mut command = Command::new(POACH);
    command.arg("scan").args(arguments).arg(path).output().expect("the program starts")
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("one JSON document")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("what is printed is UTF-8 whatever the names are")
}

/// Thirty directories, nine levels, two names of one file, a link, and a name that no terminal
/// should get.
fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| tree.path().join(name);
    for number in 0..30 {
        fs::create_dir(path(&format!("wide-{number}"))).expect("a directory");
    }
    fs::create_dir_all(path("a/b/c/d/e/f/g/h/i")).expect("directories");
    fs::write(path("a/b/one"), vec![1; 70_000]).expect("a file");
    fs::hard_link(path("a/b/one"), path("a/two")).expect("a link");
    symlink("nowhere", path("link")).expect("a link");
    let odd = OsStr::from_bytes(b"\xff \x1b[31m \"\\ \xc2\x9b \n");
    fs::write(tree.path().join(odd), b"1").expect("a file");
    tree
}

#[test]
fn json_is_complete_unless_it_is_asked_not_to_be() {
    let tree = grown();
    let whole = json(&scan(&["--json"], tree.path()).stdout);
    assert_eq!(whole["complete"], true);
    assert_eq!(whole["tree"].as_array().map(Vec::len), Some(1 + 30 + 9));
    assert_eq!(whole["options"]["all"], false);
    let all = json(&scan(&["--json", "--all"], tree.path()).stdout);
    assert_eq!(all["tree"].as_array().map(Vec::len), Some(1 + 30 + 9 + 4));

    let cut = json(
        &scan(&["--json", "--top", "2", "--depth", "3", "--by", "entries"], tree.path()).stdout,
    );
    assert_eq!(cut["tree"].as_array().map(Vec::len), Some(3));
    assert_eq!(cut["complete"], false);
    let expected = serde_json::json!({"all": false, "one_file_system": false,
        "dereference_args": false, "by": "entries", "depth": 3, "top": 2});
    assert_eq!(cut["options"], expected);
    assert_eq!(cut["totals"], whole["totals"]);
}

#[test]
fn a_file_is_replaced_as_a_whole_or_not_at_all() {
    let tree = grown();
    let place = tempfile::tempdir().expect("a directory for the test");
    let file = place.path().join("document");
    let names = || {
        let inside = fs::read_dir(place.path()).expect("it is there");
        inside.map(|entry| entry.expect("an entry").file_name()).collect::<Vec<_>>()
    };
    for format in ["text", "json", "ndjson", "csv", "ncdu", "snapshot", "html"] {
        fs::write(&file, b"old").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("it is ours");
        // A disk that is full before the document ends: files of one block, and no signal for it.
        let full = Command::new("sh")
            .args([
                "-c",
                "trap '' XFSZ; ulimit -f 0; exec \"$0\" scan -a --format \"$1\" -o \"$2\" \"$3\"",
            ])
            .args([OsStr::new(POACH), format.as_ref(), file.as_ref(), tree.path().as_ref()])
            .output()
            .expect("the program starts");
        assert_eq!(full.status.code(), Some(1), "{format}: {}", text(&full.stderr));
        assert!(text(&full.stderr).contains("could not write"), "{}", text(&full.stderr));
        assert_eq!(fs::read(&file).expect("it is there"), b"old", "{format}");
        assert_eq!(names(), ["document"], "{format}: nothing is left beside it");

        let output =
            scan(&["-a", "--format", format, "-o", file.to_str().expect("UTF-8")], tree.path());
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b""[..]), "{format}");
        assert!(fs::read(&file).expect("it is there").len() > 100, "{format}");
        let mode = fs::metadata(&file).expect("it is there").permissions().mode();
        assert_eq!((mode & 0o777, names().len()), (0o640, 1), "{format}");
    }
    // The file behind a link is replaced, a device is written to.
    let link = place.path().join("link");
    symlink("document", &link).expect("a link");
    let snapshot =
        scan(&["--snapshot", link.to_str().expect("UTF-8"), "-o", "/dev/null"], tree.path());
    assert_eq!(snapshot.status.code(), Some(0), "{}", text(&snapshot.stderr));
    assert!(link.is_symlink() && fs::read(&file).expect("it is there").starts_with(b"\x89POACH"));
}

#[test]
fn ctrl_c_while_a_file_is_written_leaves_the_old_one() {
    let place = tempfile::tempdir().expect("a directory for the test");
    let [export, file] = ["export", "out/document"].map(|name| place.path().join(name));
    let mut text = b"[1,2,{},[{\"name\":\"many\"}".to_vec();
    for number in 0..200_000 {
        write!(text, ",{{\"name\":\"file-{number}\"}}").expect("a vector can be written to");
    }
    text.extend(b"]]");
    fs::write(&export, text).expect("a file");
    fs::create_dir(place.path().join("out")).expect("a directory");
    let names = || {
        let inside = fs::read_dir(place.path().join("out")).expect("it is there");
        inside.map(|entry| entry.expect("an entry").file_name()).collect::<Vec<_>>()
    };
    let write = || {
        rig::program(POACH)
            .args(["scan", "--all", "--json", "--import"])
            .arg(&export)
            .arg("-o")
            .arg(&file)
            .spawn()
            .expect("the program starts")
    };
    // It is being written while there is a file beside it; then it is held until the signal is
    // there. Where this test is not given a processor in that time, the program has ended
    // before, and is started again.
    let ended = (0..50).find_map(|_| {
        fs::write(&file, b"old").expect("a file");
        let mut child = write();
        let pid = Pid::from_child(&child);
        while names().len() < 2 && child.try_wait().expect("it is ours").is_none() {}
        if child.try_wait().expect("it is ours").is_none() {
            kill_process(pid, Signal::STOP).expect("it is not reaped");
            let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(pid), options).expect("it is ours");
            let is_written = names().len() == 2;
            if is_written {
                kill_process(pid, Signal::INT).expect("it is not reaped");
            }
            kill_process(pid, Signal::CONT).expect("it is not reaped");
            if is_written {
                return Some(child.wait());
            }
        }
        assert!(child.wait().expect("it ends").success());
        None
    });
    let ended = ended.expect("one of fifty is stopped while it writes").expect("it ends");
    assert_eq!(ended.code(), Some(130));
    assert_eq!(names(), ["document"]);
    assert_eq!(fs::read(&file).expect("it is there"), b"old");
}

#[test]
fn a_pipe_that_nobody_reads_ends_every_format_quietly() {
    let tree = grown();
    let formats = ["text", "json", "ndjson", "csv", "ncdu", "snapshot", "html"];
    let documents = formats.map(|format| ["-a", "--format", format]);
    for arguments in
        documents.into_iter().chain([["--no-config", "--report", "summary,duplicates"]])
    {
        let mut child = Command::new(POACH)
            .arg("scan")
            .args(arguments)
            .arg(tree.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn what_was_written_is_imported() {
    let tree = grown();
    let place = tempfile::tempdir().expect("a directory for the test");
    let file = place.path().join("document");
    let file = file.to_str().expect("UTF-8");
    let expected = json(&scan(&["--json", "--all"], tree.path()).stdout);
    for format in ["ncdu", "snapshot"] {
        scan(&["--format", format, "-o", file], tree.path());
        let again =
            Command::new(POACH).args(["scan", "--json", "--all", "--import", file]).output();
        let again = json(&again.expect("the program starts").stdout);
        assert_eq!(again["tree"], expected["tree"], "{format}");
        assert_eq!(again["totals"], expected["totals"], "{format}");

        // From a pipe.
        let mut child = Command::new(POACH)
            .args(["scan", "--import", "-", "--format", format])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let document = fs::read(file).expect("it is there");
        child.stdin.take().expect("piped").write_all(&document).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.stdout, document, "{format}");

        // A damaged one is 1, and nothing is shown of it.
        fs::write(file, &document[..document.len() / 2]).expect("a file");
        let output = Command::new(POACH).args(["scan", "--import", file]).output();
        let output = output.expect("the program starts");
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]));
        let said = text(&output.stderr);
        assert!(said.contains(file) && said.contains("damaged: "), "{said}");
    }
}

#[test]
fn a_document_is_imported_within_a_limit_of_memory_or_not_at_all() {
    let tree = grown();
    let file = tree.path().join("today");
    for format in ["snapshot", "ncdu", "ncdu-binary"] {
        let to = ["--format", format, "-o", file.to_str().expect("UTF-8")];
        assert!(scan(&to, tree.path()).status.success());
        let shown = scan(&["--depth", "0", "--memory", "1M", "--import"], &file);
        assert!(shown.status.success(), "{}", text(&shown.stderr));
        let refused = scan(&["--depth", "0", "--memory", "1000", "--import"], &file);
        assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(1), ""));
        let why = text(&refused.stderr);
        assert!(why.contains("today: it takes more than 1000 bytes of memory"), "{why}");
    }
    let refused = scan(&["-i", "--memory", "1M"], tree.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--memory: -i keeps every entry"));
}

#[test]
fn a_document_that_wants_the_files_changes_nothing_of_the_text() {
    let tree = grown();
    let place = tempfile::tempdir().expect("a directory for the test");
    let file = place.path().join("snapshot");
    let shown = |arguments: &[&str]| {
        let output = scan(arguments, tree.path());
        let text = text(&output.stdout).to_owned();
        text.lines().filter(|line| !line.contains("entries/s")).collect::<Vec<_>>().join("\n")
    };
    let file = file.to_str().expect("UTF-8");
    assert_eq!(shown(&["--snapshot", file]), shown(&[]));
    assert_ne!(shown(&["--snapshot", file, "--all"]), shown(&[]));
}

#[test]
fn two_sides_of_any_kind_are_compared() {
    let (tree, place) = (grown(), tempfile::tempdir().expect("a directory for the test"));
    let [snapshot, export] = ["snapshot", "export"].map(|name| place.path().join(name));
    let name = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    scan(&["--format", "ncdu", "--snapshot", &name(&snapshot), "-o", &name(&export)], tree.path());
    fs::write(tree.path().join("a/come"), vec![1; 9000]).expect("a file");
    fs::remove_dir(tree.path().join("wide-7")).expect("it is empty");
    let compare = |old: &Path, new: &Path, more: &[&str]| {
        let output =
            Command::new(POACH).args(["scan", "--diff"]).args([old, new]).args(more).output();
        let output = output.expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        output.stdout
    };
    for old in [&snapshot, &export] {
        let document = json(&compare(old, tree.path(), &["--json"]));
        let changed = document["differences"].as_array().expect("a list");
        let changed: Vec<_> = changed
            .iter()
            .map(|row| {
                let path = row["path"].as_str().expect("a path").rsplit('/').next();
                (path.unwrap_or_default(), row["change"].as_str().expect("a change"))
            })
            .collect();
        let [root, rest @ ..] = &changed[..] else { panic!("nothing has changed") };
        assert_eq!(root.1, "grown");
        assert_eq!(rest, [("a", "grown"), ("come", "new"), ("wide-7", "gone")]);
        assert_eq!(
            json(&compare(tree.path(), tree.path(), &["--json"]))["differences"],
            json(b"[]")
        );
        assert_eq!(json(&compare(&export, &snapshot, &["--json"]))["differences"], json(b"[]"));
        let shown = compare(old, tree.path(), &[]);
        assert!(text(&shown).contains("gone       wide-7/"), "{}", text(&shown));
    }
    let mut missing = Command::new(POACH);
    let missing =
        missing.args(["scan", "--diff"]).args([&snapshot, &place.path().join("no")]).output();
    let missing = missing.expect("the program starts");
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("No such file"), "{}", text(&missing.stderr));
}

#[test]
fn two_documents_are_compared_without_what_a_walk_would_heed() {
    let tree = grown();
    let place = tempfile::tempdir().expect("a directory for the test");
    let document = place.path().join("snapshot");
    let name = document.to_str().expect("plain");
    let made = scan(&["--format", "snapshot", "--output", name], tree.path());
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let compare = |flags: &[&str], new: &Path| {
        let mut words = vec!["scan", "--diff", name];
        words.push(new.to_str().expect("plain"));
        words.extend(flags);
        Command::new(POACH).args(&words).output().expect("the program runs")
    };
    for flags in [
        &["-x"][..],
        &["-D"],
        &["--threads", "2"],
        &["--engine", "pool"],
        &["--facts"],
        &["--exclude", "a"],
        &["--exclude-regex", "a"],
        &["--include", "a"],
        &["--include-regex", "a"],
        &["--type", "f"],
        &["--min-length", "1"],
        &["--max-length", "1"],
        &["--newer", "1"],
        &["--older", "1"],
        &["--ignore-files"],
        &["--exclude-caches"],
        &["--exclude-pseudo"],
        &["--files0-from", name],
    ] {
        let refused = compare(flags, &document);
        assert_eq!(refused.status.code(), Some(2), "{flags:?}: {}", text(&refused.stdout));
        let why = text(&refused.stderr);
        assert!(why.contains("diff"), "{flags:?}: {why}");
        if flags[0].starts_with("--") {
            assert!(why.contains(flags[0]), "{flags:?}: {why}");
            // Where one side is a directory they have a meaning, but for --facts.
            if !matches!(flags[0], "--files0-from" | "--facts") {
                let compared = compare(flags, tree.path());
                assert_eq!(compared.status.code(), Some(0), "{}", text(&compared.stderr));
            }
        }
    }
    assert_eq!(compare(&["--depth", "1"], &document).status.code(), Some(0));
    // What a default says is left out where it has no meaning.
    let mut command = Command::new(POACH);
    command.args(["scan", "--diff", name, name]).env("POACH_SCAN_OPTIONS", "-x --threads 2");
    assert_eq!(command.output().expect("it runs").status.code(), Some(0));
}

#[test]
fn times_modes_and_owners_are_there_when_asked_for() {
    let tree = grown();
    let row = |arguments: &[&str]| json(&scan(arguments, tree.path()).stdout)["tree"][0].clone();
    assert!(row(&["--json"]).get("modified").is_none());
    let row = row(&["--json", "--facts"]);
    let metadata = fs::metadata(tree.path()).expect("it is there");
    assert_eq!(
        (&row["modified"], &row["owner"]),
        (&metadata.mtime().into(), &metadata.uid().into())
    );
    assert_eq!(row["mode"], metadata.mode());
}

#[test]
fn a_part_says_so_and_replaces_nothing_unless_it_is_asked_to() {
    let tree = grown();
    let place = tempfile::tempdir().expect("a directory for the test");
    let [part, file, other] = ["part", "file", "other"].map(|name| place.path().join(name));
    let options = poach_scan::Options { keep_files: true, ..Default::default() };
    let scanned = poach_scan::scan(&[tree.path().into()], &options, &poach_scan::Control::new());
    let mut scanned = scanned.expect("threads can be had");
    scanned.interrupted = true;
    let mut snapshot = Vec::new();
    poach_scan::document::snapshot(&scanned, &mut snapshot).expect("a vector can be written to");
    fs::write(&part, snapshot).expect("a file");
    let run = |words: &[&OsStr]| {
        let mut command = Command::new(POACH);
        command.args(["scan", "-a"]).args(words).output().expect("the program starts")
    };
    let import = ["--import".as_ref(), part.as_os_str()];
    for format in ["text", "json", "ndjson", "csv", "ncdu", "ncdu-binary", "snapshot", "html"] {
        let write = |words: &[&str], file: &Path| {
            let words = words.iter().map(OsStr::new);
            let to = ["--format".as_ref(), format.as_ref(), "-o".as_ref(), file.as_os_str()];
            let output = run(&import.into_iter().chain(to).chain(words).collect::<Vec<_>>());
            assert_eq!(output.status.code(), Some(1), "{format}");
            text(&output.stderr).to_owned()
        };
        fs::write(&file, b"old").expect("a file");
        let said = write(&[], &file);
        assert_eq!(fs::read(&file).expect("it is there"), b"old", "{format}");
        assert!(said.contains("file was not replaced") && said.contains("--partial"), "{said}");
        let said = write(&["--partial"], &file);
        assert!(fs::read(&file).expect("it is there").len() > 100, "{format}: {said}");
        // A file that was not there takes nothing away; and what has no word for it has one beside
        // it.
        let _ = fs::remove_file(&other);
        let said = write(&[], &other);
        assert!(other.exists() && !said.contains("kept"), "{format}: {said}");
        let whole = fs::read(&other).expect("it is there");
        let in_it = String::from_utf8_lossy(&whole).contains("interrupted");
        assert!(in_it || said.contains("interrupted"), "{format}: {said}");
        // An export has no word for it, but each reader marks a directory that was not read.
        if format.starts_with("ncdu") {
            for words in [&["--import"][..], &["--diff", tree.path().to_str().expect("ours")]] {
                let words = words.iter().map(OsStr::new).chain([other.as_os_str()]);
                let mut command = Command::new(POACH);
                let output = command.arg("scan").args(words).output().expect("the program starts");
                let said = text(&output.stderr);
                assert_eq!(output.status.code(), Some(1), "{format}: {said}");
                assert!(said.contains("ncdu could not read all of the directory"), "{said}");
            }
        }
    }
    // A scan that found nothing is whole, and replaces nothing, either.
    let missing = tree.path().join("none");
    let words = ["--json".as_ref(), "-o".as_ref(), file.as_os_str(), missing.as_os_str()];
    fs::write(&file, b"old").expect("a file");
    let said = run(&words).stderr;
    assert!(text(&said).contains("file was not replaced: nothing was found"), "{}", text(&said));
    assert_eq!(fs::read(&file).expect("it is there"), b"old");
    let here = tree.path().as_os_str();
    let compare =
        |words: &[&OsStr]| Command::new(POACH).args(words).output().expect("the program starts");
    let diff = |old: &OsStr, new: &OsStr| {
        text(&compare(&["scan".as_ref(), "--diff".as_ref(), old, new]).stdout).to_owned()
    };
    let old = diff(part.as_os_str(), here);
    assert!(old.contains("old  was interrupted: what it had not read yet counts as new"), "{old}");
    let new = diff(here, part.as_os_str());
    assert!(new.contains("new  was interrupted: what it had not read yet counts as gone"), "{new}");
}

#[test]
fn an_error_names_the_file_that_was_to_be_written() {
    let tree = grown();
    let file = tree.path().join("none/document");
    let output = scan(&["--json", "-o", file.to_str().expect("UTF-8")], tree.path());
    assert_eq!(output.status.code(), Some(1));
    let said = format!(
        "poach scan: could not write {}: No such file or directory (os error 2)\n",
        file.display()
    );
    assert_eq!(text(&output.stderr), said);
}

#[test]
fn a_side_that_is_a_link_is_the_directory_behind_it() {
    let tree = grown();
    let link = tree.path().join("current");
    symlink("a", &link).expect("a link");
    let output = Command::new(POACH)
        .args(["scan", "--json", "--diff"])
        .arg(&link)
        .arg(tree.path().join("a"))
        .output();
    let document = json(&output.expect("the program starts").stdout);
    assert_eq!(document["differences"].as_array().map(Vec::len), Some(0), "{document}");
    assert_eq!(document["old"]["totals"]["directories"], 9);
}

#[test]
fn arguments_that_contradict_each_other_are_2() {
    let cases: [&[&str]; 9] = [
        &["--stats", "--format", "ndjson"],
        &["--stats", "--import", "x"],
        &["--diff", "x"],
        &["--diff", "x", "y", "z"],
        &["--diff", "x", "y", "--format", "csv"],
        &["--json", "--format", "csv"],
        &["--format", "yaml"],
        &["--import", "x", "."],
        &["--output"],
    ];
    for arguments in cases {
        let output = Command::new(POACH).arg("scan").args(arguments).output();
        assert_eq!(output.expect("the program starts").status.code(), Some(2), "{arguments:?}");
    }
}

/// ncdu reads our export and writes it again, name by name; and what it has found itself is what we
/// found.
#[test]
fn ncdu_and_we_open_each_others_exports() {
    if !rig::has("ncdu", "-v") {
        return;
    }
    let tree = grown();
    let ours = scan(&["--format", "ncdu"], tree.path());
    let mut ncdu = Command::new("ncdu")
        .args(["-f", "-", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it is installed");
    ncdu.stdin.take().expect("piped").write_all(&ours.stdout).expect("it reads all of it");
    let mut theirs = Vec::new();
    ncdu.stdout.take().expect("piped").read_to_end(&mut theirs).expect("it writes");
    assert!(ncdu.wait().expect("it ends").success());

    let place = tempfile::tempdir().expect("a directory for the test");
    let file = place.path().join("export");
    let imported = || {
        let output = Command::new(POACH)
            .args(["scan", "--format", "csv", "-a", "--import"])
            .arg(&file)
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        // ncdu does not keep what is neither a directory nor a file.
        let records = text(&output.stdout).lines().map(|line| line.replace(",symlink,", ",other,"));
        records.collect::<Vec<_>>()
    };
    fs::write(&file, &ours.stdout).expect("a file");
    let expected = imported();
    assert_eq!(expected.len(), 1 + 44);
    fs::write(&file, &theirs).expect("a file");
    assert_eq!(imported(), expected);

    let scanned = Command::new("ncdu").arg("-0xo").arg(&file).arg(tree.path()).status();
    assert!(scanned.expect("it is installed").success());
    assert_eq!(imported(), expected);

    // Times of any age, from us through ncdu and back: it keeps them as 64 bits without a sign.
    let times = [0, 1, -1, i64::MIN, i64::MAX, 1 << 62, -(1 << 62), -315_619_200, 1 << 47];
    let items = times.map(|time| format!(",{{\"name\":\"{time}\",\"mtime\":{time}}}"));
    let export = format!("[1,2,{{}},[{{\"name\":\"/r\"}}{}]]", items.concat());
    fs::write(&file, export).expect("a file");
    let output =
        Command::new(POACH).args(["scan", "--format", "ncdu", "--import"]).arg(&file).output();
    let ours = output.expect("the program starts").stdout;
    let between = place.path().join("between");
    fs::write(&between, &ours).expect("a file");
    let ncdu = Command::new("ncdu").args(["-e", "-o"]).arg(&file).arg("-f").arg(&between).output();
    let ncdu = ncdu.expect("it is installed");
    assert!(ncdu.stdout.is_empty() && ncdu.status.success(), "{}", text(&ncdu.stdout));
    let output = Command::new(POACH).args(["scan", "--json", "-a", "--import"]).arg(&file).output();
    let document = json(&output.expect("the program starts").stdout);
    let rows = document["tree"].as_array().expect("a tree");
    assert_eq!(rows.len(), 1 + times.len());
    for row in &rows[1..] {
        let time = row["modified"].as_i64().expect("a number");
        assert_eq!(row["name"], time.to_string());
    }
}
