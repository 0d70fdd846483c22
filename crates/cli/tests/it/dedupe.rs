//! `poach scan --dedupe` as a user meets it: which files stay, what happens to the others, and
//! which are left, with the reason.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::rig;

const POACH: &str = env!("CARGO_BIN_EXE_poach");

fn poach(arguments: &[&str], paths: &[&Path]) -> Output {
    Command::new(POACH)
        .args(["scan", "--no-config"])
        .args(arguments)
        .args(paths)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("what is printed is UTF-8 whatever the names are")
}

fn file(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().expect("it lies in a directory")).expect("directories");
    fs::write(path, content).expect("a file");
}

fn number(path: &Path) -> (u64, u64) {
    let meta = path.symlink_metadata().expect("it is there");
    (meta.dev(), meta.ino())
}

/// A name that a terminal would obey, which is no UTF-8.
fn hostile() -> &'static OsStr {
    OsStr::from_bytes(b"two\nlines \x1b[31m \xff")
}

/// Three equal files of 20,000 bytes, of which one has two names, others of the same length, and
/// empty ones.
fn grown(root: &Path) -> [PathBuf; 4] {
    let content = vec![7; 20_000];
    let paths = [
        root.join("a/first"),
        root.join("a/deep/second"),
        root.join("b").join(hostile()),
        root.join("b/other name"),
    ];
    for path in &paths[..3] {
        file(path, &content);
    }
    fs::hard_link(&paths[2], &paths[3]).expect("a link");
    let mut differs = content;
    differs[13_000] = 8;
    file(&root.join("b/of the same length"), &differs);
    for name in ["empty", "empty too"] {
        file(&root.join(name), b"");
    }
    symlink("a/first", root.join("link")).expect("a link");
    paths
}

/// Every entry of a tree: its path, its number, its length, and when its content and its attributes
/// were changed.
fn state(root: &Path) -> Vec<(PathBuf, u64, u64, [i64; 4])> {
    let (mut all, mut waiting) = (Vec::new(), vec![root.to_owned()]);
    while let Some(path) = waiting.pop() {
        let meta = path.symlink_metadata().expect("it is there");
        if meta.is_dir() {
            waiting.extend(fs::read_dir(&path).expect("ours").map(|it| it.expect("ours").path()));
        }
        let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
        all.push((path, meta.ino(), meta.len(), times));
    }
    all.sort();
    all
}

#[test]
fn a_plan_says_what_would_be_done_and_nothing_is() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    grown(tree.path());
    let before = state(tree.path());
    for (how, verb) in [("link", "become hard links"), ("delete", "be deleted")] {
        let plan = poach(&["--dedupe", how, "--dry-run"], &[tree.path()]);
        assert_eq!(plan.status.code(), Some(0), "{}", text(&plan.stderr));
        let shown = text(&plan.stdout);
        let lines: Vec<_> = shown.lines().filter(|line| !line.is_empty()).collect();
        assert!(lines[0].ends_with("a/first"), "{shown}");
        assert!(lines[1].contains(how) && lines[1].ends_with("b/other name"), "{shown}");
        assert!(lines[2].ends_with("two\\nlines \\e[31m \\xff"), "{shown}");
        assert!(lines[3].ends_with("a/deep/second"), "{shown}");
        assert!(
            lines[4].contains(&format!("2 files would {verb}, that would free 40.0 KiB")),
            "{shown}"
        );
        assert_eq!(lines.len(), 5, "{shown}");
        let list = poach(&["--dedupe", how, "--dry-run", "--print0"], &[tree.path()]);
        let names: Vec<_> = list.stdout.split(|&byte| byte == 0).collect();
        assert_eq!(names.len(), 4, "{:?}", text(&plan.stdout));
        assert!(names[1].ends_with(hostile().as_bytes()) && names[3].is_empty());
    }
    assert_eq!(state(tree.path()), before);
    // An options file does not order changes.
    let options = tree.path().join("options");
    for line in ["--dedupe delete\n", "--dedupe link --dry-run --print0\n"] {
        fs::write(&options, line).expect("a file");
        let mut scan = Command::new(POACH);
        scan.arg("scan").arg("--config").arg(&options).arg(tree.path());
        let scanned = scan.output().expect("the program starts");
        assert!(text(&scanned.stdout).contains("8 files"), "{}", text(&scanned.stderr));
    }
    assert!(tree.path().join("a/deep/second").exists());
}

#[test]
fn the_others_become_links_to_the_one_that_stays() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let paths = grown(tree.path());
    let stays = number(&paths[0]);
    let modified = paths[0].metadata().expect("it is there").modified().expect("a time");
    let done = poach(&["--dedupe", "link", "--json"], &[tree.path()]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    for path in &paths {
        assert_eq!(number(path), stays, "{}", path.display());
    }
    let meta = paths[0].metadata().expect("it is there");
    assert_eq!((meta.nlink(), meta.modified().expect("a time")), (4, modified));
    assert_eq!(fs::read(&paths[2]).expect("it is there"), vec![7; 20_000]);
    assert_eq!(fs::read(tree.path().join("b/of the same length")).expect("it is there")[13_000], 8);
    assert_ne!(number(&tree.path().join("empty")), number(&tree.path().join("empty too")));
    assert_eq!(
        fs::read_dir(tree.path().join("b")).expect("ours").count(),
        3,
        "nothing is left behind"
    );
    let document: Value = serde_json::from_slice(&done.stdout).expect("one document");
    assert_eq!((&document["schema"], &document["dedupe"]), (&1.into(), &"link".into()));
    assert_eq!(
        document["totals"],
        serde_json::json!({"files": 2, "freed_bytes": 40_960, "left": 0})
    );
    let files = document["files"].as_array().expect("a list");
    assert!(files.iter().all(|file| file["result"] == "done"), "{document}");
    assert_eq!(document["errors"], serde_json::json!([]));
    let other = &files[0]["other_names"][0];
    assert!(other["path"].as_str().expect("a path").contains("two\nlines"), "{document}");
    assert!(other["path_hex"].as_str().expect("its bytes").ends_with("20ff"), "{document}");
    // What could not be read is in the document, too.
    let none = tree.path().join("none");
    let missed = poach(&["--dedupe", "link", "--dry-run", "--json"], &[tree.path(), &none]);
    let document: Value = serde_json::from_slice(&missed.stdout).expect("one document");
    let said = document["errors"][0]["path"].as_str().expect("a path");
    assert!(said.ends_with("/none"), "{document}");
    // Again, there is nothing to do.
    let again = poach(&["--dedupe", "link"], &[tree.path()]);
    assert_eq!(again.status.code(), Some(0));
    assert!(text(&again.stdout).contains("0 files became hard links"), "{}", text(&again.stdout));
}

#[test]
fn one_is_left_and_it_is_the_one_that_was_asked_for() {
    let old = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 5);
    for (keep, expected) in [("first", 1), ("oldest", 2), ("newest", 0)] {
        let tree = tempfile::tempdir().expect("a directory for the test");
        let paths = ["one/x", "two/y", "two/z"].map(|name| tree.path().join(name));
        for (age, path) in paths.iter().enumerate() {
            file(path, b"the same");
            // A nanosecond apart.
            let time = old - std::time::Duration::from_nanos(age as u64);
            let file = fs::File::options().write(true).open(path).expect("ours");
            file.set_modified(time).expect("ours");
        }
        // The path that is given first is the first, whatever its name.
        let roots = [tree.path().join("two"), tree.path().join("one")];
        let done = poach(&["--dedupe", "delete", "--keep", keep], &[&roots[0], &roots[1]]);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        let left: Vec<_> = (0..3).filter(|&at| paths[at].exists()).collect();
        assert_eq!(left, [expected], "{keep}");
    }
}

#[test]
fn a_file_given_by_path_is_one_of_them_and_only_the_groups_that_free_the_most_can_be_asked_for() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let paths = ["a", "b", "small-a", "small-b"].map(|name| tree.path().join(name));
    for (at, path) in paths.iter().enumerate() {
        file(path, &vec![1; if at < 2 { 9000 } else { 10 }]);
    }
    let paths = paths.each_ref().map(PathBuf::as_path);
    let done = poach(&["--dedupe", "link", "--top", "1"], &paths);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(number(paths[0]), number(paths[1]));
    assert_ne!(number(paths[2]), number(paths[3]));
}

#[test]
fn what_cannot_be_linked_is_left_and_said() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let paths = ["a", "b", "c"].map(|name| tree.path().join(name));
    for path in &paths {
        file(path, b"the same");
    }
    fs::set_permissions(&paths[1], Permissions::from_mode(0o600)).expect("ours");
    let before = state(tree.path());
    let tagged = rustix::fs::setxattr(&paths[2], "user.tag", b"x", rustix::fs::XattrFlags::CREATE);
    let done = poach(&["--dedupe", "link"], &[tree.path()]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("b: every equal file has another owner, group or mode"), "{said}");
    if tagged.is_ok() {
        assert!(
            said.contains("c: its extended attributes differ from those of the kept file"),
            "{said}"
        );
        assert!(
            text(&done.stdout)
                .contains("0 files became hard links, that freed 0 B; left as they were: 2")
        );
        assert_eq!(state(tree.path())[2], before[2]);
        let again = poach(&["--dedupe", "link", "--json"], &[tree.path()]);
        let document: Value = serde_json::from_slice(&again.stdout).expect("one document");
        let files = document["files"].as_array().expect("a list");
        let frees = |file: &Value| (file["result"] == "left").then(|| file["freed_bytes"].clone());
        assert_eq!(files.iter().filter_map(frees).collect::<Vec<_>>(), [0, 0], "{document}");
        assert_eq!(fs::read_dir(tree.path()).expect("ours").count(), 3);
    } else {
        let _ = writeln!(std::io::stderr(), "left out: no extended attributes on this file system");
    }
}

#[test]
fn a_file_that_keeps_a_name_elsewhere_frees_nothing() {
    let place = tempfile::tempdir().expect("a directory for the test");
    let tree = place.path().join("tree");
    for name in ["a", "b", "c"] {
        file(&tree.join(name), &[3; 9000]);
    }
    fs::hard_link(tree.join("b"), place.path().join("outside")).expect("a link");
    for how in ["link", "delete"] {
        let plan = poach(&["--dedupe", how, "--dry-run"], &[&tree]);
        assert!(text(&plan.stdout).contains("that would free 12.0 KiB"), "{}", text(&plan.stdout));
    }
    // Blocks are shared whatever names a file has.
    fs::hard_link(tree.join("c"), tree.join("d")).expect("a link");
    for (how, names) in [("reflink", 0), ("delete", 1)] {
        let plan = poach(&["--dedupe", how, "--dry-run", "--json"], &[&tree]);
        let document: Value = serde_json::from_slice(&plan.stdout).expect("one document");
        let files = document["files"].as_array().expect("a list");
        let others = |file: &Value| file["other_names"].as_array().map_or(0, Vec::len);
        assert_eq!(files.iter().map(others).sum::<usize>(), names, "{document}");
    }
    fs::remove_file(tree.join("d")).expect("ours");
    let done = poach(&["--dedupe", "delete"], &[&tree]);
    assert!(text(&done.stdout).contains("that freed 12.0 KiB"), "{}", text(&done.stdout));
    // And what is outside is not touched.
    assert_eq!(place.path().join("outside").metadata().expect("it is there").nlink(), 1);
    assert!(tree.join("a").exists() && !tree.join("b").exists() && !tree.join("c").exists());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for (arguments, named) in [
        (&["--dedupe", "link", "--report", "duplicates"][..], "--report"),
        (&["--dedupe", "link", "--depth", "1"], "--depth"),
        (&["--dedupe", "link", "--format", "csv"], "--format"),
        (&["--dedupe", "link", "--print0"], "--print0"),
        // Nothing would heed it.
        (&["--dedupe", "delete", "--min-size", "10M"], "--min-length"),
        (&["--dedupe", "delete", "--by", "apparent"], "--by"),
        (&["--dedupe", "delete", "--sort", "name"], "--sort"),
        (&["--dedupe", "delete", "--all"], "--all"),
        (&["--dedupe", "delete", "--recent", "7d"], "--recent"),
        (&["--dedupe", "delete", "--facts", "--json"], "--facts"),
        (&["-L", "--dedupe", "delete"], "-L"),
        (&["--dedupe", "move"], "--dedupe"),
        (&["--dry-run"], "--dedupe"),
        (&["--keep", "oldest"], "--dedupe"),
        (&["--print0"], "--report"),
        (&["--report", "recent,summary", "--print0"], "--print0"),
        (&["--report", "recent", "--print0", "--json"], "--print0"),
    ] {
        let refused = poach(arguments, &[tree.path()]);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        let said = text(&refused.stderr);
        assert!(said.contains(named) && refused.stdout.is_empty(), "{arguments:?}: {said}");
    }
}

#[test]
fn paths_of_reports_are_ended_by_a_nul_as_they_are() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let paths = grown(tree.path());
    let list = |reports| {
        let list = poach(&["--report", reports, "--print0", "--top", "all"], &[tree.path()]);
        assert_eq!(list.status.code(), Some(0), "{}", text(&list.stderr));
        let mut paths: Vec<_> = list.stdout.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
        assert_eq!(paths.pop(), Some(Vec::new()));
        paths
    };
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    assert!(list("largest-files").contains(&bytes(&paths[1])));
    assert_eq!(list("symlinks"), [bytes(&tree.path().join("link"))]);
    // An empty one ends a group.
    let groups = list("duplicates");
    assert_eq!(groups, [bytes(&paths[1]), bytes(&paths[0]), bytes(&paths[3]), Vec::new()]);
    assert_eq!(list("empty-files,symlinks").len(), 3);
}

#[test]
fn blocks_are_shared_where_the_file_system_can_and_what_is_shared_frees_nothing() {
    let place = tempfile::tempdir().expect("a directory for the test");
    for kind in ["btrfs", "xfs"] {
        let Some(mounted) = rig::Mounted::new(kind, place.path()) else { continue };
        let root = mounted.0.join("tree");
        let paths = ["a", "b", "c"].map(|name| root.join(name));
        // More than is shared at a time, and not a whole number of blocks.
        let content: Vec<u8> = (0..20_000_001_u32).map(|it| ((it * 7) >> 3) as u8).collect();
        for path in &paths {
            file(path, &content);
        }
        fs::set_permissions(&paths[1], Permissions::from_mode(0o600)).expect("ours");
        let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        fs::File::options()
            .write(true)
            .open(&paths[1])
            .expect("ours")
            .set_modified(old)
            .expect("ours");
        let numbers = paths.each_ref().map(|path| number(path));
        rustix::fs::sync();
        let freed = || {
            let report = poach(&["--report", "duplicates", "--json"], &[&root]);
            let report: Value = serde_json::from_slice(&report.stdout).expect("one document");
            let groups = report["reports"]["duplicates"]["rows"].as_array().expect("rows").clone();
            groups[0]["freed_bytes"].as_u64().expect("a number")
        };
        assert!(freed() > 39_900_000, "{kind}: {}", freed());
        let done = poach(&["--dedupe", "reflink"], &[&root]);
        assert_eq!(done.status.code(), Some(0), "{kind}: {}", text(&done.stderr));
        assert!(
            text(&done.stdout).contains("2 files share their blocks now, that freed 38.1 MiB"),
            "{}",
            text(&done.stdout)
        );
        assert_eq!(freed(), 0, "{kind}");
        // Each is what it was.
        assert_eq!(paths.each_ref().map(|path| number(path)), numbers);
        let meta = paths[1].metadata().expect("it is there");
        assert_eq!((meta.mode() & 0o777, meta.modified().expect("a time")), (0o600, old));
        for path in &paths {
            assert!(fs::read(path).expect("it is there") == content);
        }
        let again = poach(&["--dedupe", "reflink"], &[&root]);
        assert!(text(&again.stdout).contains("0 files share"), "{}", text(&again.stdout));
        // What is written to one of them is its own again.
        file(&paths[2], &content);
        rustix::fs::sync();
        assert!(freed() > 19_900_000, "{kind}: {}", freed());
        // From one file system to another neither links nor blocks lead.
        let outside = place.path().join(format!("outside-{kind}"));
        file(&outside, b"across");
        file(&root.join("inside"), b"across");
        for how in ["link", "reflink"] {
            let done = poach(&["--dedupe", how], &[&root.join("inside"), &outside]);
            assert_eq!(done.status.code(), Some(1));
            assert!(
                text(&done.stderr).contains("lies on another file system"),
                "{}",
                text(&done.stderr)
            );
        }
        // On either side one stays.
        let beside = place.path().join(format!("beside-{kind}"));
        file(&beside, b"across");
        let done = poach(&["--dedupe", "link"], &[&root.join("inside"), &outside, &beside]);
        assert_eq!((done.status.code(), number(&outside)), (Some(1), number(&beside)));
        let done = poach(&["--dedupe", "delete"], &[&root.join("inside"), &outside]);
        assert_eq!((done.status.code(), outside.exists()), (Some(0), false));
        // One file at two places is no copy of itself.
        let again = root.join("again");
        file(&again, b"");
        let mount = |arguments: &[&OsStr]| {
            let (program, arguments) = arguments.split_first().expect("a program");
            assert!(Command::new(program).args(arguments).status().is_ok_and(|it| it.success()));
        };
        let (inside, bind) = (root.join("inside"), ["mount", "--bind"].map(OsStr::new));
        mount(&[bind[0], bind[1], inside.as_os_str(), again.as_os_str()]);
        let report = poach(&["--report", "duplicates"], &[&inside, &again]);
        mount(&[OsStr::new("umount"), again.as_os_str()]);
        assert!(text(&report.stdout).contains("nothing"), "{}", text(&report.stdout));
        // A file system that is mounted read-only.
        let point = mounted.0.as_os_str();
        let read_only = Command::new("mount").args(["-o", "remount,ro"]).arg(point).status();
        assert!(read_only.is_ok_and(|it| it.success()));
        for (how, said) in
            [("link", "Read-only"), ("delete", "Read-only"), ("reflink", "Read-only")]
        {
            let done = poach(&["--dedupe", how], &[&root]);
            assert_eq!(done.status.code(), Some(1), "{how}");
            assert!(text(&done.stderr).contains(said), "{how}: {}", text(&done.stderr));
        }
    }
}

#[test]
fn where_blocks_cannot_be_shared_the_file_system_is_named_and_what_to_do() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let paths = ["a", "b"].map(|name| tree.path().join(name));
    for path in &paths {
        file(path, &[5; 9000]);
    }
    let done = poach(&["--dedupe", "reflink"], &[tree.path()]);
    if done.status.code() == Some(0) {
        let _ = writeln!(std::io::stderr(), "left out: blocks can be shared here");
        return;
    }
    let said = text(&done.stderr);
    assert!(
        said.contains("cannot share blocks between files") && said.contains("--dedupe link"),
        "{said}"
    );
}

/// An overlay of a directory, as long as this lives: each file is there at two places.
struct Overlaid(PathBuf);

impl Overlaid {
    /// Makes one, if this is root and the system can. If not, says why.
    fn new(place: &Path) -> Option<Overlaid> {
        let [lower, upper, work, merged] =
            ["lower", "upper", "work", "merged"].map(|name| place.join(name));
        for path in [&lower, &upper, &work, &merged] {
            fs::create_dir(path).expect("a directory");
        }
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.display(),
            upper.display(),
            work.display()
        );
        let mut mount = Command::new("mount");
        mount.args(["-t", "overlay", "overlay", "-o", &options]).arg(&merged);
        let mounted = mount.output().is_ok_and(|it| it.status.success());
        if !mounted {
            let _ = writeln!(std::io::stderr(), "left out: no overlay can be mounted here");
        }
        mounted.then_some(Overlaid(merged))
    }
}

impl Drop for Overlaid {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn one_file_that_two_mounts_show_is_no_copy_of_itself() {
    for order in [["upper", "merged"], ["merged", "upper"]] {
        let place = tempfile::tempdir().expect("a directory for the test");
        let Some(_overlaid) = Overlaid::new(place.path()) else { return };
        let paths = order.map(|name| place.path().join(name));
        let files = ["f", "g"].map(|name| place.path().join("upper").join(name));
        file(&files[0], b"the only one");
        fs::hard_link(&files[0], &files[1]).expect("a link");
        let seen = paths.each_ref().map(|path| number(&path.join("f")).0);
        assert_ne!(seen[0], seen[1], "it would be told by its number");
        let done = poach(&["--dedupe", "delete"], &[&paths[0], &paths[1]]);
        assert_eq!(done.status.code(), Some(1), "{}", text(&done.stdout));
        assert!(text(&done.stderr).contains("the kept file has changed"), "{order:?}");
        for file in &files {
            assert_eq!(fs::read(file).expect("it is there"), b"the only one", "{order:?}");
        }
        assert_eq!(fs::read_dir(place.path().join("upper")).expect("ours").count(), 2);
        // A copy goes.
        let copy = place.path().join("upper/z");
        file(&copy, b"the only one");
        let done = poach(&["--dedupe", "delete"], &[&place.path().join("upper")]);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        assert!(files[0].exists() && !copy.exists());
        assert_eq!(fs::read_dir(place.path().join("upper")).expect("ours").count(), 2);
    }
}

#[test]
fn what_cannot_be_told_ends_it_and_it_is_said_what_was_done() {
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").expect("a device"));
    let unread = || Stdio::from(OwnedFd::from(UnixStream::pair().expect("a pair").1));
    let outs: [&dyn Fn() -> Stdio; 2] = [&full, &unread];
    for (out, format, gone) in [(0, "text", 1), (1, "text", 1), (0, "json", 2), (1, "json", 2)] {
        let tree = tempfile::tempdir().expect("a directory for the test");
        for name in ["a", "b", "c"] {
            file(&tree.path().join(name), b"the same");
        }
        let mut scan = Command::new(POACH);
        scan.args(["scan", "--no-config", "--dedupe", "delete", "--format", format]);
        let done = scan.arg(tree.path()).stdout(outs[out]()).stderr(Stdio::piped()).output();
        let done = done.expect("the program starts");
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{format}: {said}");
        let number = if gone == 1 { "1 file" } else { "2 files" };
        assert!(said.contains("could not write") && said.contains(number), "{said}");
        assert_eq!(fs::read_dir(tree.path()).expect("ours").count(), 3 - gone, "{format}");
    }
}

#[test]
fn a_file_of_which_some_names_cannot_be_had_is_told_of_name_by_name() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let paths = ["a/stays", "b/goes", "c/goes"].map(|name| tree.path().join(name));
    let change = |sign: &str| {
        let changed = Command::new("chattr").arg(sign).arg(tree.path().join("c")).output();
        changed.is_ok_and(|output| output.status.success())
    };
    for (how, sign) in [("link", "linked"), ("delete", "deleted")] {
        for path in &paths[..2] {
            file(path, b"the same");
        }
        fs::create_dir_all(tree.path().join("c")).expect("a directory");
        fs::hard_link(&paths[1], &paths[2]).expect("a link");
        if !change("+i") {
            let _ = writeln!(std::io::stderr(), "left out: nothing can be made immutable here");
            return;
        }
        let plan = poach(&["--dedupe", how, "--dry-run", "--print0"], &[tree.path()]);
        let done = poach(&["--dedupe", how], &[tree.path()]);
        assert!(change("-i"));
        assert_eq!(plan.stdout.split(|&byte| byte == 0).count(), 3);
        let (shown, said) = (text(&done.stdout), text(&done.stderr));
        assert_eq!(done.status.code(), Some(1), "{shown}");
        let line = |name: &str| shown.lines().find(|it| it.ends_with(name)).expect("a line");
        assert!(line("b/goes").contains(sign) && line("c/goes").contains("left"), "{shown}");
        assert!(shown.contains("done to some of their names: 1"), "{shown}");
        assert!(said.contains("c/goes: "), "{said}");
        assert!(paths[2].exists() && (how == "link") == paths[1].exists());
        for path in paths.iter().filter(|path| path.exists()) {
            fs::remove_file(path).expect("ours");
        }
    }
}

#[test]
fn what_is_immutable_is_left_and_why_is_said() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let paths = ["a", "b"].map(|name| tree.path().join(name));
    for path in &paths {
        file(path, b"the same");
    }
    let change = |sign: &str| {
        let changed = Command::new("chattr").arg(sign).arg(&paths[1]).output();
        changed.is_ok_and(|output| output.status.success())
    };
    if !change("+i") {
        let _ = writeln!(std::io::stderr(), "left out: nothing can be made immutable here");
        return;
    }
    let done = ["link", "delete"].map(|how| poach(&["--dedupe", how], &[tree.path()]));
    assert!(change("-i"));
    for done in done {
        assert_eq!(done.status.code(), Some(1));
        assert!(text(&done.stderr).contains("b: it is immutable"), "{}", text(&done.stderr));
    }
    assert_eq!(fs::read_dir(tree.path()).expect("ours").count(), 2);
    // The next one is not left for it.
    let next = tree.path().join("c");
    file(&next, b"the same");
    assert!(change("+i"));
    let done = poach(&["--dedupe", "link"], &[tree.path()]);
    assert!(change("-i"));
    assert_eq!(number(&next), number(&paths[0]), "{}", text(&done.stderr));
    assert_ne!(number(&paths[1]), number(&paths[0]));
}

#[test]
fn blocks_that_files_share_count_once_where_that_is_asked() {
    const MANY: u64 = 8 << 20;
    let place = tempfile::tempdir().expect("a directory for the test");
    let scan = |words: &[&str], root: &Path| -> Value {
        let out = poach(&[&["--json", "--all"], words].concat(), &[root]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        serde_json::from_slice(&out.stdout).expect("one document")
    };
    let disk = |document: &Value| document["totals"]["disk_bytes"].as_u64().expect("a number");
    for kind in ["btrfs", "xfs"] {
        let Some(mounted) = rig::Mounted::new(kind, place.path()) else { continue };
        let run = |words: &[&OsStr]| Command::new(words[0]).args(&words[1..]).status();
        let root = mounted.0.join("tree");
        let (a, b, z) = (root.join("a"), root.join("deep/b"), root.join("z"));
        let content: Vec<u8> =
            (0..MANY as u32).map(|it| (it.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        file(&a, &content);
        file(&z, &content[..1 << 20]);
        fs::create_dir(root.join("deep")).expect("a directory");
        let copied = run(&["cp", "--reflink=always"]
            .map(OsStr::new)
            .into_iter()
            .chain([a.as_os_str(), b.as_os_str()])
            .collect::<Vec<_>>());
        assert!(copied.is_ok_and(|it| it.success()));
        rustix::fs::sync();
        let (plain, shared) = (scan(&[], &root), scan(&["--shared"], &root));
        assert!(plain.get("shared").is_none());
        assert_eq!(disk(&plain) - disk(&shared), MANY, "{kind}");
        let expected = serde_json::json!({ "bytes": MANY, "files": 1, "unknown_files": 0 });
        assert_eq!(shared["shared"], expected, "{kind}");
        // The file that comes first has them, and each directory what is in it.
        let row = |name: &str| {
            let rows = shared["tree"].as_array().expect("rows");
            let row = rows.iter().find(|it| it["name"] == name).expect("it is there");
            row["disk_bytes"].as_u64().expect("a number")
        };
        assert!(row("a") == MANY && row("b") == 0 && row("z") == 1 << 20, "{shared}");
        assert!(row("deep") < 1 << 20, "{shared}");
        let said = poach(&["--shared"], &[&root]);
        let said = text(&said.stdout);
        assert!(
            said.contains("of 1 file lie where another file has them, too, and count once"),
            "{said}"
        );
        // In a directory the first by name, whichever was written first.
        let order = mounted.0.join("order");
        file(&order.join("n2"), &content[..1 << 20]);
        let names = [order.join("n2"), order.join("n1")];
        assert!(
            Command::new("cp")
                .arg("--reflink=always")
                .args(&names)
                .status()
                .is_ok_and(|it| it.success())
        );
        rustix::fs::sync();
        let told = scan(&["--shared"], &order);
        let row = |name: &str| {
            let rows = told["tree"].as_array().expect("rows").iter();
            rows.clone().find(|it| it["name"] == name).expect("it is there")["disk_bytes"].clone()
        };
        assert_eq!((row("n1"), row("n2")), ((1 << 20).into(), 0.into()), "{kind}");
        // Each document says that the sizes are smaller ones.
        for (format, mark) in [
            ("ndjson", format!("\"shared\":{{\"bytes\":{MANY},\"files\":1,\"unknown_files\":0}}")),
            ("csv", ",group,shared_blocks\n".to_owned()),
            ("csv", ",once\n".to_owned()),
            ("html", format!("\"shared\":{{\"bytes\":{MANY},\"files\":1,\"unknown_files\":0}}")),
        ] {
            let written = |words: &[&str]| {
                let out = poach(&[&["--all", "--format", format], words].concat(), &[&root]);
                String::from_utf8_lossy(&out.stdout).into_owned()
            };
            let (with, without) = (written(&["--shared"]), written(&[]));
            assert!(with.contains(&mark) && !without.contains(&mark), "{format}: {with}");
        }
        // What is written to one of them is its own again.
        let mut own = fs::File::options().write(true).open(&b).expect("ours");
        own.write_all(&vec![7; 1 << 20]).expect("ours");
        let shared = scan(&["--shared"], &root);
        assert_eq!(shared["shared"]["bytes"], MANY - (1 << 20), "{kind}");
        // A snapshot has a device of its own, and the blocks of the same disk.
        let subvolume = |words: &[&str], paths: &[&Path]| {
            let words = ["btrfs", "subvolume"].iter().chain(words).map(OsStr::new);
            run(&words.chain(paths.iter().map(|it| it.as_os_str())).collect::<Vec<_>>())
        };
        let (one, two) = (root.join("one"), root.join("two"));
        if kind == "btrfs" && subvolume(&["create"], &[&one]).is_ok_and(|it| it.success()) {
            file(&one.join("f"), &content[..2 << 20]);
            rustix::fs::sync();
            let before = scan(&["--shared"], &root);
            assert!(subvolume(&["snapshot"], &[&one, &two]).is_ok_and(|it| it.success()));
            let after = scan(&["--shared"], &root);
            let more = |it: &Value| it["shared"]["bytes"].as_u64().expect("a number");
            assert_eq!(more(&after) - more(&before), 2 << 20);
        }
        // Of what is compressed one stretch begins within the bytes that another one stands for.
        let succeeds = |it: &mut Command| it.status().is_ok_and(|it| it.success());
        let options = ["-o", "remount,compress-force=zlib"];
        if kind == "btrfs" && succeeds(Command::new("mount").args(options).arg(&mounted.0)) {
            let packed = mounted.0.join("packed");
            file(&packed.join("a"), &vec![b'x'; 1 << 20]);
            rustix::fs::sync();
            let (from, to) = (packed.join("a"), packed.join("b"));
            assert!(succeeds(Command::new("cp").arg("--reflink=always").args([from, to])));
            rustix::fs::sync();
            let (plain, shared) = (scan(&[], &packed), scan(&["--shared"], &packed));
            let expected = serde_json::json!({ "bytes": 1 << 20, "files": 1, "unknown_files": 0 });
            assert_eq!(shared["shared"], expected);
            assert_eq!(disk(&plain) - disk(&shared), 1 << 20);
        }
    }
    // Where the file system does not say it.
    let memory = tempfile::tempdir_in("/dev/shm").expect("a directory for the test");
    fs::write(memory.path().join("f"), "content").expect("a file");
    let said = poach(&["--shared"], &[memory.path()]);
    let said = text(&said.stdout);
    assert!(said.contains("of 1 file: the file system does not say what is shared"), "{said}");
    for word in ["--no-sizes", "--memory=1G", "--report=types", "--import=x"] {
        assert_eq!(poach(&["--shared", word], &[]).status.code(), Some(2), "{word}");
    }
    // What is read again would have the smaller sizes, and nothing says so.
    let target = memory.path().join("out");
    let snapshot = format!("--snapshot={}", target.display());
    for word in ["--format=snapshot", "--format=ncdu", "--format=ncdu-binary", &snapshot] {
        let refused = poach(&["--shared", word], &[memory.path()]);
        assert_eq!(refused.status.code(), Some(2), "{word}");
        assert!(
            text(&refused.stderr).contains("cannot record that its sizes are smaller"),
            "{word}"
        );
        assert!(refused.stdout.is_empty() && !target.exists(), "{word}");
    }
}
