//! `poach scan` as a user meets it: exit codes, streams, pipes, signals.
#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::rig;

const POACH: &str = env!("CARGO_BIN_EXE_poach");

fn poach(arguments: &[&str], path: &Path) -> Output {
    Command::new(POACH)
        .arg("scan")
        .args(arguments)
        .arg(path)
        .env_remove("CLICOLOR_FORCE")
        .output()
        .expect("the program starts")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON document on stdout")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("what is printed is UTF-8 whatever the names are")
}

fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for directory in ["large", "small", "large/inner"] {
        fs::create_dir(tree.path().join(directory)).expect("a directory");
    }
    fs::write(tree.path().join("large/inner/file"), vec![1; 300_000]).expect("a file");
    fs::write(tree.path().join("small/file"), b"1").expect("a file");
    symlink("..", tree.path().join("loop")).expect("a link");
    tree
}

#[test]
fn a_pseudo_file_system_is_left_out_if_that_alone_is_asked_for() {
    let device = |path: &str| fs::metadata(path).map(|metadata| metadata.dev()).ok();
    let [devices, terminals, one] = ["/dev", "/dev/pts", "/dev/pts/ptmx"].map(device);
    if one.is_none() || terminals == devices {
        let _ = writeln!(std::io::stderr(), "left out: no terminals' file system here");
        return;
    }
    for (words, listed) in [(&[][..], true), (&["--exclude-pseudo"], false)] {
        let words = [&["--no-config", "--format", "csv", "-a"], words].concat();
        let out = poach(&words, Path::new("/dev")).stdout;
        assert!(text(&out).contains("/dev/null"), "{words:?}: {}", text(&out));
        assert_eq!(text(&out).contains("/dev/pts/ptmx"), listed, "{words:?}: {}", text(&out));
    }
}

#[test]
fn what_the_workers_did_is_shown_when_asked_for() {
    let tree = grown();
    let shown = poach(&["--stats", "--threads", "2"], tree.path());
    assert_eq!(shown.status.code(), Some(0));
    let table: Vec<_> = text(&shown.stdout).lines().rev().take(4).collect();
    assert!(table[3].trim_start().starts_with("worker  tasks"), "{table:?}");
    assert!(table[0].trim_start().starts_with("all"), "{table:?}");

    let document = json(&poach(&["--stats", "--threads", "2", "--json"], tree.path()));
    let workers = document["stats"].as_array().expect("a row for each worker");
    assert_eq!(workers.len(), 2);
    // The calling thread works in the place of one of them.
    let tasks: u64 = workers.iter().map(|worker| worker["tasks"].as_u64().unwrap()).sum();
    assert!(tasks > 0, "{workers:?}");

    assert!(json(&poach(&["--json"], tree.path())).get("stats").is_none());
    let refused = poach(&["--stats", "--engine", "pool"], tree.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--stats"), "{}", text(&refused.stderr));
}

#[test]
fn all_well_is_0_and_the_largest_stands_first() {
    let tree = grown();
    let output = poach(&[], tree.path());
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "no terminal, no progress: {}", text(&output.stderr));
    let shown = text(&output.stdout);
    let at = |name: &str| shown.find(name).unwrap_or_else(|| panic!("no {name} in\n{shown}"));
    assert!(at("100.0%") < at("─ large") && at("─ large") < at("─ inner"));
    assert!(
        at("─ inner") < at("─ small") && at("─ small") < at("4 directories, 2 files, 1 symlink")
    );
    assert!(!shown.contains('\x1b'), "colour without a terminal");
}

#[test]
fn json_is_one_document_with_the_promised_members() {
    let tree = grown();
    for engine in ["sequential", "pool", "mutex-stealing", "lock-free", "split"] {
        let output = poach(&["--json", "--engine", engine, "--threads", "3", "--all"], tree.path());
        assert_eq!(output.status.code(), Some(0));
        let document = json(&output);
        assert_eq!(document["schema"], 1);
        assert_eq!(document["engine"], engine);
        assert_eq!(document["threads"], if engine == "sequential" { 1 } else { 3 });
        assert!(document["elapsed_s"].as_f64().is_some_and(|seconds| seconds > 0.0));
        let totals = &document["totals"];
        let kinds = ["directories", "files", "symlinks", "other", "errors"];
        assert_eq!(kinds.map(|kind| totals[kind].as_u64()), [4, 2, 1, 0, 0].map(Some));
        let own: u64 = ["", "large", "small", "large/inner", "loop"]
            .map(|name| tree.path().join(name).symlink_metadata().expect("it is there").size())
            .iter()
            .sum();
        assert_eq!(totals["apparent_bytes"], own + 300_001);
        assert!(totals["disk_bytes"].as_u64().is_some());
        assert_eq!(document["errors"], Value::Array(Vec::new()));
        let rows = document["tree"].as_array().expect("a tree");
        assert_eq!(rows.len(), 7);
        assert_eq!(rows[0]["name"], tree.path().to_str().expect("a plain path"));
        assert_eq!((&rows[0]["parent"], &rows[0]["entries"]), (&Value::Null, &6.into()));
        assert_eq!((&rows[1]["name"], &rows[1]["parent"]), (&"large".into(), &0.into()));
    }
}

#[test]
fn a_path_that_is_not_there_is_1_and_the_others_are_shown() {
    let tree = grown();
    let missing = tree.path().join("no such thing");
    let output = Command::new(POACH)
        .args(["scan", "--json"])
        .args([&missing, tree.path()])
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("no such thing: cannot find the path: No such file"), "{said}");
    let document = json(&output);
    assert_eq!(document["errors"][0]["path"], missing.to_str().expect("a plain path"));
    assert_eq!(
        (&document["totals"]["errors"], &document["totals"]["files"]),
        (&1.into(), &2.into())
    );
}

#[test]
fn arguments_that_make_no_sense_are_2_and_named() {
    let cases: [(&[&str], &str); 9] = [
        (&["--threads", "0"], "--threads"),
        (&["--threads", "100000"], "from 1 to 1024"),
        (&["--threads", "many"], "--threads"),
        (&["--engine", "dfs"], "mutex-stealing"),
        (&["--depth", "-1"], "-1"),
        (&["--top", "some"], "--top"),
        (&["--by", "colour"], "--by"),
        (&["--no-such-flag"], "--no-such-flag"),
        (&["--by", "disk", "--apparent-size"], "--apparent-size"),
    ];
    for (arguments, named) in cases {
        let output = poach(arguments, Path::new("."));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(named), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
    }
    // Once is enough.
    let output = poach(&["--exclude", "["], Path::new("."));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr).matches("unclosed").count(), 1, "{}", text(&output.stderr));
}

#[test]
fn names_are_escaped_as_text_and_lossless_as_json() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let names: [&[u8]; 5] =
        [b"new\nline", b"\x1b[31mred", b"\xff\xfe", "\u{202e}gpj".as_bytes(), b"\"quote\\"];
    for name in names {
        let directory = tree.path().join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir(&directory).expect("a directory");
        fs::write(directory.join("file"), name).expect("a file");
    }
    let output = poach(&["--all"], tree.path());
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output.stdout);
    for escaped in [r"new\nline", r"\e[31mred", r"\xff\xfe", r"\u{202e}gpj", r#""quote\\"#] {
        assert!(shown.contains(escaped), "no {escaped} in\n{shown}");
    }
    assert!(!shown.chars().any(|shown| shown != '\n' && shown.is_control() || shown == '\u{202e}'));

    let document = json(&poach(&["--all", "--json"], tree.path()));
    let mut found: Vec<Vec<u8>> = document["tree"]
        .as_array()
        .expect("a tree")
        .iter()
        .filter(|row| row["depth"] == 1)
        .map(|row| match row["name_hex"].as_str() {
            None => row["name"].as_str().expect("a name").into(),
            Some(hex) => (0..hex.len() / 2)
                .map(|at| u8::from_str_radix(&hex[2 * at..][..2], 16).expect("hexadecimal"))
                .collect(),
        })
        .collect();
    found.sort();
    let mut expected = names.map(<[u8]>::to_vec);
    expected.sort();
    assert_eq!(found, expected);
}

/// Root may read everything, so where the tests run as root the program does not.
#[test]
fn an_unreadable_directory_is_1_and_listed() {
    let tree = grown();
    let open = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    };
    open(tree.path(), 0o755);
    let program = tree.path().join("poach");
    fs::copy(POACH, &program).expect("a copy that anybody may run");
    open(&program, 0o755);
    let locked = tree.path().join("large/inner");
    open(&locked, 0o000);
    let mut command = Command::new(&program);
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        command.uid(65534).gid(65534);
    }
    let output = command.args(["scan", "--json"]).arg(tree.path()).output();
    open(&locked, 0o755);
    let output = output.expect("the program starts");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let document = json(&output);
    assert_eq!(document["errors"].as_array().map(Vec::len), Some(1));
    assert_eq!(document["errors"][0]["path"], locked.to_str().expect("a plain path"));
    let message = document["errors"][0]["message"].as_str().expect("a message");
    assert!(message.contains("cannot open the directory: Permission denied"), "{message}");
    // The directory itself is counted, what is in it is not: a file less, but the copy of the
    // program.
    assert_eq!(
        (&document["totals"]["directories"], &document["totals"]["files"]),
        (&4.into(), &2.into())
    );
}

#[test]
fn a_handful_of_descriptors_is_enough() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for outer in 0..40 {
        for inner in 0..10 {
            let inner = tree.path().join(format!("{outer}/{inner}/a/b/c"));
            fs::create_dir_all(inner).expect("directories");
        }
    }
    for engine in ["sequential", "pool", "mutex-stealing", "lock-free", "split"] {
        // Three streams, two for Ctrl-C, and three directories.
        let output = Command::new("sh")
            .args(["-c", "ulimit -n 8; exec \"$0\" \"$@\"", POACH, "scan", "--json", "-t4", "-e"])
            .arg(engine)
            .arg(tree.path())
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{engine}: {}", text(&output.stderr));
        assert_eq!(json(&output)["totals"]["directories"], 1 + 40 + 40 * 10 * 4, "{engine}");
    }
}

#[test]
fn a_pipe_that_nobody_reads_is_no_error() {
    let tree = grown();
    let mut child = Command::new(POACH)
        .args(["scan", "--json"])
        .arg(tree.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn ctrl_c_shows_what_there_is() {
    // Everything there is, by one thread: there is work left when the signal comes.
    let mut child = rig::program(POACH)
        .args(["scan", "--json", "--engine", "sequential", "/"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    rig::interrupt(&child);
    let mut out = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut out).expect("UTF-8");
    let status = child.wait().expect("it ends");
    let document: Value = serde_json::from_str(&out).expect("one JSON document all the same");
    assert_eq!(document["interrupted"], true);
    assert_eq!(status.code(), Some(1));
}

#[test]
fn one_ctrl_c_is_enough_while_nobody_reads_the_document() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    // A document that no pipe holds as a whole.
    for number in 0..2000 {
        fs::create_dir(tree.path().join(format!("{number}-{}", "n".repeat(100))))
            .expect("a directory");
    }
    let mut child = rig::program(POACH)
        .args(["scan", "--json", "--top", "all"])
        .arg(tree.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It is being written once something can be read.
    let mut first = [0];
    child.stdout.as_mut().expect("piped").read_exact(&mut first).expect("a document");
    rig::interrupt(&child);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    const HANGUP: u64 = 1;
    let mut child = rig::program("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", POACH, "scan", "--json", "/"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let pid = rustix::process::Pid::from_child(&child).as_raw_nonzero().get();
    let ignored = rig::wait_for_handler(pid);
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    assert!(ignored & 1 << (HANGUP - 1) != 0, "the mask of ignored signals is {ignored:x}");
}

#[test]
fn names_are_whole_in_a_pipe_and_fit_where_a_width_is_known() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let name = "n".repeat(250);
    fs::create_dir(tree.path().join(&name)).expect("a directory");
    let output = poach(&[], tree.path());
    assert!(text(&output.stdout).contains(&name), "{}", text(&output.stdout));
}

#[test]
fn names_of_one_file_are_shown_with_the_files_only() {
    let tree = grown();
    fs::hard_link(tree.path().join("small/file"), tree.path().join("another")).expect("a link");
    let shown = |arguments: &[&str]| text(&poach(arguments, tree.path()).stdout).to_owned();
    assert!(!shown(&[]).contains("another"));
    assert!(shown(&["--all"]).contains("another") && shown(&["--all"]).contains("(hard link)"));
}

#[test]
fn reports_take_the_place_of_the_tree() {
    let tree = grown();
    let reported =
        poach(&["--report", "largest-files,symlinks,errors", "--apparent-size"], tree.path());
    assert_eq!(reported.status.code(), Some(0));
    let shown = text(&reported.stdout);
    let at = |name: &str| shown.find(name).unwrap_or_else(|| panic!("no {name} in\n{shown}"));
    assert!(
        at("largest-files") < at("large/inner/file") && at("large/inner/file") < at("small/file")
    );
    assert!(
        at("small/file") < at("symlinks") && at("leads on") < at("errors") && at("nothing") > 0
    );
    let document = json(&poach(&["--report", "summary,owners", "--json"], tree.path()));
    assert_eq!(document["reports"]["summary"]["rows"][0]["value"], 7);
    assert!(document["reports"]["owners"]["rows"][0]["owner"].is_string());
    for (arguments, named) in [
        (&["--report", "sizes"][..], "largest-files"),
        (&["--report", "stats", "--format", "csv"], "--report"),
        (&["--report", "recent", "--recent", "soon"], "--recent"),
    ] {
        let refused = poach(arguments, tree.path());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).contains(named), "{}", text(&refused.stderr));
    }
}

#[test]
fn what_is_chosen_counts_and_nothing_else() {
    let tree = grown();
    fs::write(tree.path().join("small/notes.txt"), b"12345").expect("a file");
    let totals = |arguments: &[&str]| {
        let document = json(&poach(&[&["--json"], arguments].concat(), tree.path()));
        (document["totals"]["files"].as_u64(), document["totals"]["apparent_bytes"].as_u64())
    };
    assert_eq!(totals(&["-X", "large", "-X", "*.txt"]).0, Some(1));
    assert_eq!(totals(&["-I", "*.txt"]), (Some(1), Some(5)));
    assert_eq!(totals(&["--min-length", "100K"]), (Some(1), Some(300_000)));
    assert_eq!(totals(&["--type", "f"]), (Some(3), Some(300_006)));
    assert_eq!(totals(&["--type", "f", "--older", "1d"]), (Some(0), Some(0)));
    assert_eq!(totals(&["--include-regex", "inner/f", "--newer", "1d"]), (Some(1), Some(300_000)));
    assert_eq!(
        totals(&["--type", "f", "--newer", "2020-01-31", "--min-length", "0.5K"]).0,
        Some(1)
    );
    assert_eq!(totals(&["--older", "2020-01-31T12:00+02:00"]).0, Some(0));
    assert_eq!(totals(&["--time", "changed", "--older", "1.5h"]).0, Some(0));
    let owner = fs::metadata(tree.path()).expect("it is there").uid();
    assert_eq!(totals(&["--owner", &owner.to_string()]).0, Some(3));
    assert_eq!(totals(&["--owner", &(owner + 1).to_string()]).0, Some(0));
    let group = fs::metadata(tree.path()).expect("it is there").gid();
    let if_root = |id| Some(if id == 0 { 3 } else { 0 });
    assert_eq!(totals(&["--owner", "root"]).0, if_root(owner));
    assert_eq!(totals(&["--group", "root"]).0, if_root(group));
    // One option that excludes is a choice by itself.
    fs::create_dir(tree.path().join("cache")).expect("a directory");
    let tag = "Signature: 8a477f597d28d172789f06886806bc55";
    fs::write(tree.path().join("cache/CACHEDIR.TAG"), tag).expect("a file");
    assert_eq!([totals(&[]).0, totals(&["--exclude-caches"]).0], [Some(4), Some(3)]);
    let shown = poach(&["-I", "*.txt", "--all"], tree.path());
    assert!(text(&shown.stdout).contains("notes.txt") && !text(&shown.stdout).contains("inner"));
    for (arguments, named) in [
        (["--exclude", "a["], "a["),
        (["--include-regex", "a("], "a("),
        (["--min-length", "much"], "--min-length"),
        (["--owner", "no-such-user"], "there is no such user"),
        (["--newer", "2026-02-30"], "2026-01-31"),
    ] {
        let refused = poach(&arguments, tree.path());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).contains(named), "{}", text(&refused.stderr));
    }
}

#[test]
fn paths_come_from_a_file_too() {
    let tree = grown();
    let list = tree.path().join("list");
    let paths: Vec<u8> = ["small", "large/inner/file", "large"]
        .iter()
        .flat_map(|name| [tree.path().join(name).as_os_str().as_bytes(), b"\0"].concat())
        .collect();
    fs::write(&list, paths).expect("a file");
    let from = |list: &Path| {
        Command::new(POACH)
            .args(["scan", "--json", "--files0-from"])
            .arg(list)
            .output()
            .expect("it starts")
    };
    let document = json(&from(&list));
    assert_eq!(document["totals"]["files"], 2);
    assert_eq!(document["repeated"].as_array().map(Vec::len), Some(1));
    // This directory, too, if it is named.
    let here = |words: &[&str]| {
        let mut command = Command::new(POACH);
        command.args(["scan", "--json", "--files0-from"]).arg(&list).args(words);
        json(&command.current_dir(tree.path()).output().expect("it starts"))
    };
    assert_eq!(here(&["."])["totals"]["files"], 3);
    assert_eq!(here(&[])["totals"]["files"], 2);
    fs::write(&list, "").expect("a file");
    let nothing = from(&list);
    assert_eq!(nothing.status.code(), Some(2), "{}", text(&nothing.stderr));
    let missing = from(&tree.path().join("missing"));
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("--files0-from"), "{}", text(&missing.stderr));
}

#[test]
fn a_pattern_that_does_nothing_is_named_and_the_others_mean_what_they_say() {
    let tree = grown();
    let files = |output: &Output| json(output)["totals"]["files"].as_u64();
    let absolute = tree.path().join("large");
    let absolute = absolute.to_str().expect("a plain path");
    for glob in [absolute, &format!("{absolute}/"), "./large", "large//", "//large", "./large/."] {
        let output = poach(&["--json", "-X", glob], tree.path());
        assert_eq!((files(&output), text(&output.stderr)), (Some(1), ""), "{glob}");
    }
    let output = poach(&["--json", "-X", "none", "-X", "../small", "-I", "file"], tree.path());
    assert_eq!((files(&output), output.status.code()), (Some(2), Some(0)));
    assert_eq!(
        text(&output.stderr),
        "poach scan: --exclude: no path below PATH can match '../small'\n\
         poach scan: --exclude: nothing below PATH matches 'none'\n"
    );
    let list = tree.path().join("list");
    let odd = tree.path().join(std::ffi::OsStr::from_bytes(b"small/caf\xe9"));
    fs::write(&odd, b"12").expect("a file");
    fs::write(&list, b"\xef\xbb\xbf# mine\r\n/large\r\n\r\ncaf\xe9\nlist\nb\nc\nd\ne\nf\ng\n")
        .expect("a file");
    let list = list.to_str().expect("a plain path");
    let output = poach(&["--json", "--exclude-from", list], tree.path());
    assert_eq!(files(&output), Some(1));
    assert_eq!(
        text(&output.stderr),
        "poach scan: --exclude: nothing below PATH matches 'b', 'c', 'd', 'e', 'f', and 1 more\n"
    );
    // A default is no demand.
    let defaults = |words: &[&str]| {
        let mut command = Command::new(POACH);
        command.env("POACH_SCAN_OPTIONS", "-X none -X list").args(["scan", "--json"]).args(words);
        command.arg(tree.path()).output().expect("it starts")
    };
    assert_eq!(text(&defaults(&[]).stderr), "");
    assert!(text(&defaults(&["-X", "typed"]).stderr).ends_with("matches 'typed'\n"));
    let missing = poach(&["--exclude-from", "no/such"], tree.path());
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("--exclude-from: could not read no/such"));
}

#[test]
#[cfg(unix)]
fn an_absolute_pattern_may_lead_through_links_and_a_regular_expression_is_named() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let (real, link) = (tree.path().join("real"), tree.path().join("link"));
    for name in ["kept/a", "left/b", "left/deep/c"] {
        let path = real.join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        fs::write(path, "x").expect("a file");
    }
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    std::os::unix::fs::symlink("left", real.join("alias")).expect("a link");
    let pattern = |below: &str| format!("{}/{below}", link.display());
    let run = |words: &[&str]| {
        let mut command = Command::new(POACH);
        // As a shell that went there through the link.
        command.args(["scan", "--no-config", "--json", "--all"]).args(words).current_dir(&link);
        command.output().expect("the program starts")
    };
    for (below, files) in
        [("left", 1), ("left//", 1), ("left/deep", 2), ("*/b", 2), ("**/c", 2), ("alias", 3)]
    {
        let output = run(&["-X", &pattern(below)]);
        assert_eq!(text(&output.stderr), "", "{below}");
        let totals = &json(&output)["totals"];
        assert_eq!(totals["files"], files, "{below}");
        assert_eq!(totals["symlinks"], u64::from(below != "alias"), "{below}");
    }
    let said =
        run(&["-X", &pattern("nowhere/x"), "--exclude-regex", "^q$", "--include-regex", "^left"]);
    let said = text(&said.stderr);
    assert!(
        said.contains("--exclude: nothing below PATH matches '") && said.contains("nowhere/x'"),
        "{said}"
    );
    assert!(said.contains("--exclude-regex: nothing below PATH matches '^q$'"), "{said}");
    assert!(!said.contains("--include"), "{said}");
}

#[test]
fn many_errors_are_grouped_and_a_document_has_them_all() {
    let tree = grown();
    let paths: Vec<_> =
        (0..30).map(|number| tree.path().join(format!("none-{number:02}"))).collect();
    let run = |words: &[&str]| {
        let mut command = Command::new(POACH);
        command.arg("scan").args(words).args(&paths).output().expect("it starts")
    };
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<&str> = text(&output.stderr).lines().collect();
    assert!(
        lines[2].ends_with("none-02: cannot find the path: No such file or directory (os error 2)")
    );
    let others = [
        "27 more: cannot find the path: No such file or directory (os error 2)",
        "a document (--json) lists every error",
    ];
    assert_eq!(lines[3..], others.map(|line| format!("poach scan: {line}")));
    assert!(output.stdout.is_empty(), "there is nothing to show: {}", text(&output.stdout));
    for words in [&["--json"][..], &["--json", "--report", "duplicates"]] {
        let document = json(&run(words));
        assert_eq!(document["errors"].as_array().map(Vec::len), Some(30), "{words:?}");
        assert_eq!(document["interrupted"], false);
    }
    assert!(run(&["--report", "summary"]).stdout.is_empty());
}

#[test]
fn what_links_lead_to_adds_up_to_what_du_says() {
    let place = grown();
    let tree = place.path().join("large");
    fs::write(place.path().join("lone"), vec![1; 70_000]).expect("a file");
    for (target, link) in [
        ("../small", "out"),
        ("inner", "inside"),
        ("..", "inner/up"),
        ("../../lone", "inner/lone"),
        ("../lone", "lone"),
        ("../small/file", "file\n\u{1b}"),
    ] {
        symlink(target, tree.join(link)).expect("a link");
    }
    let out = json(&poach(&["-L", "--json"], &tree));
    // The links count, too, which du leaves out: on most file systems they take no blocks.
    let links: u64 = ["out", "inside", "inner/up", "inner/lone", "lone", "file\n\u{1b}"]
        .map(|link| tree.join(link).symlink_metadata().expect("it is there").blocks() * 512)
        .iter()
        .sum();
    let du = Command::new("du").args(["-sL", "--block-size=1"]).arg(&tree).output().expect("du");
    let du: u64 = text(&du.stdout).split('\t').next().expect("a number").parse().expect("a number");
    assert_eq!(out["totals"]["disk_bytes"], du + links);
    assert_eq!((&out["totals"]["files"], &out["totals"]["symlinks"]), (&3.into(), &6.into()));
    assert_eq!(json(&poach(&["--json"], &tree))["totals"]["files"], 1);
    let refused = poach(&["-L", "--import", "x"], &tree);
    assert_eq!(refused.status.code(), Some(2));
}
