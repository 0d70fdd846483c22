//! `poach scan` as a user likes it: defaults from a file, looks, completions, a manual, groups of
//! equal files.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::rig;

const POACH: &str = env!("CARGO_BIN_EXE_poach");

/// The program, with nothing of the user's in its environment.
fn poach(words: &[&str]) -> Command {
    let mut command = rig::program(POACH);
    command.args(words);
    for name in ["POACH_SCAN_OPTIONS", "XDG_CONFIG_HOME", "HOME", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

fn run(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("what is printed is UTF-8")
}

fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    for (name, size) in [("a", 1000), ("b", 300_000), ("c", 60_000)] {
        fs::create_dir(tree.path().join(name)).expect("a directory");
        fs::write(tree.path().join(name).join("file"), vec![1; size]).expect("a file");
    }
    tree
}

/// The last words of the lines of the tree.
fn names(output: &Output) -> Vec<String> {
    let rows = text(&output.stdout).lines().filter(|line| line.contains('%'));
    rows.filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect()
}

#[test]
fn the_order_the_names_and_the_numbers_are_those_asked_for() {
    let tree = grown();
    let shown = |words: &[&str]| run(poach(words).arg(tree.path()));
    let order = |words: &[&str]| names(&shown(&[&["scan"], words].concat()))[1..].to_vec();
    assert_eq!(order(&[]), ["b/", "c/", "a/"]);
    assert_eq!(order(&["--sort", "name"]), ["a/", "b/", "c/"]);
    assert_eq!(order(&["--sort", "name", "--reverse"]), ["c/", "b/", "a/"]);
    assert_eq!(order(&["-r"]), ["a/", "c/", "b/"]);
    fs::write(tree.path().join("c/another"), b"").expect("a file");
    assert_eq!(order(&["--sort", "entries"])[0], "c/");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000);
    for (name, age) in [("b", 3), ("a", 1), ("c", 2)] {
        let directory = fs::File::open(tree.path().join(name)).expect("a directory");
        directory.set_modified(old - std::time::Duration::from_secs(age)).expect("it is ours");
    }
    assert_eq!(order(&["--sort", "time"]), ["a/", "c/", "b/"]);
    // The largest are shown in any order.
    assert_eq!(order(&["--sort", "name", "--top", "1"])[0], "b/");
    assert_eq!(order(&["--min-size", "50K"]), ["b/", "c/"]);

    let whole = tree.path().to_str().expect("a plain path");
    assert_eq!(order(&["--full-paths"])[0], format!("{whole}/b/"));
    let bytes = shown(&["scan", "--units", "bytes", "--apparent-size", "-a"]);
    assert!(text(&bytes.stdout).contains("   300,000 B"), "{}", text(&bytes.stdout));
    let si = shown(&["scan", "--units", "si", "--apparent-size", "-a"]);
    assert!(text(&si.stdout).contains("    300 kB"), "{}", text(&si.stdout));
    let narrow = shown(&["scan", "--width", "40", "--full-paths", "--units", "bytes"]);
    assert!(text(&narrow.stdout).lines().all(|line| line.chars().count() <= 40));
    let document = shown(&["scan", "--json", "--min-size", "50K"]);
    let document: serde_json::Value = serde_json::from_slice(&document.stdout).expect("JSON");
    assert_eq!(document["tree"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        (&document["complete"], &document["options"]["min_size"]),
        (&false.into(), &51200.into())
    );
}

#[test]
fn defaults_come_from_a_file_and_a_variable_and_the_last_word_counts() {
    let tree = grown();
    let home = tempfile::tempdir().expect("a directory for the test");
    let file = home.path().join("poach/scan.conf");
    fs::create_dir(home.path().join("poach")).expect("a directory");
    fs::write(&file, "# what I like\n\n  --all --top 1\n--exclude 'c'\n--json\n").expect("a file");
    let json = |command: &mut Command| {
        let output = run(command.arg(tree.path()));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    let from = |words: &[&str]| {
        let mut command = poach(&[&["scan"], words].concat());
        command.env("XDG_CONFIG_HOME", home.path());
        command
    };
    let both = json(&mut from(&[]));
    assert_eq!((&both["options"]["all"], &both["options"]["top"]), (&true.into(), &1.into()));
    assert_eq!(both["totals"]["files"], 2);
    // The variable after the file, the command line after both; what is given several times adds
    // up.
    let variable = json(from(&[]).env("POACH_SCAN_OPTIONS", "--top 2 -X b"));
    assert_eq!((&variable["options"]["top"], &variable["totals"]["files"]), (&2.into(), &1.into()));
    let line = json(from(&["--top", "3"]).env("POACH_SCAN_OPTIONS", "--top 2"));
    assert_eq!(line["options"]["top"], 3);
    // What contradicts a later word is left out: --json here.
    let csv = run(from(&["--format", "csv"]).arg(tree.path()));
    assert!(text(&csv.stdout).starts_with("path,"), "{}", text(&csv.stdout));
    let none = run(from(&["--no-config"]).env("POACH_SCAN_OPTIONS", "--json").arg(tree.path()));
    assert!(text(&none.stdout).contains("3 files"), "{}", text(&none.stdout));
    let home = home.path().join("poach/scan.conf");
    assert_eq!(json(poach(&["scan", "--config"]).arg(&home))["options"]["top"], 1);
}

#[test]
fn what_is_wrong_in_a_file_is_named_with_its_line() {
    let tree = grown();
    let file = tree.path().join("conf");
    for (line, named) in [
        ("--to 3", "conf:2: unexpected argument '--to'"),
        ("--threads many", "conf:2: invalid value 'many'"),
        ("--exclude 'a", "conf:2: a quote is not closed"),
        ("some/path", "conf:2: a path"),
        ("--config other", "conf:2: --config"),
        ("--help", "conf:2: help"),
    ] {
        fs::write(&file, format!("--all\n{line}\n")).expect("a file");
        let refused = run(poach(&["scan", "--config"]).arg(&file).arg(tree.path()));
        assert_eq!(refused.status.code(), Some(2), "{line}");
        assert!(text(&refused.stderr).contains(named), "{line}: {}", text(&refused.stderr));
        assert!(refused.stdout.is_empty());
    }
    let missing = run(poach(&["scan", "--config", "no/such"]).arg(tree.path()));
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("no/such"), "{}", text(&missing.stderr));
    fs::write(&file, b"--engine \xff").expect("a file");
    let bytes = run(poach(&["scan", "--config"]).arg(&file));
    assert!(text(&bytes.stderr).contains("UTF-8"), "{}", text(&bytes.stderr));
    // A name is bytes, and a byte order mark is none of the first line.
    fs::write(&file, b"\xef\xbb\xbf# mine\r\n-X $'caf\xe9'\r\n-X 'a*'\r\n--json").expect("a file");
    let bytes = run(poach(&["scan", "--config"]).arg(&file).arg(tree.path()));
    assert_eq!(bytes.status.code(), Some(0), "{}", text(&bytes.stderr));
    let variable = run(poach(&["scan"]).env("POACH_SCAN_OPTIONS", "--nothing"));
    assert!(text(&variable.stderr).contains("POACH_SCAN_OPTIONS: "), "{}", text(&variable.stderr));
}

#[test]
fn what_an_import_cannot_heed_is_refused() {
    for words in
        [&["-x"][..], &["--threads", "2"], &["-X", "a"], &["--facts"], &["--report", "stats"]]
    {
        let refused = run(poach(&["scan", "--import", "file"]).args(words));
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(text(&refused.stderr).contains("cannot be used with"), "{}", text(&refused.stderr));
    }
}

#[test]
fn without_sizes_entries_are_counted() {
    let tree = grown();
    let shown = run(poach(&["scan", "--no-sizes"]).arg(tree.path()));
    let out = text(&shown.stdout);
    assert!(out.contains("4 directories, 3 files") && !out.contains("on disk"), "{out}");
    let document = run(poach(&["scan", "--no-sizes", "--json"]).arg(tree.path()));
    let document: serde_json::Value = serde_json::from_slice(&document.stdout).expect("JSON");
    assert_eq!(
        (&document["options"]["no_sizes"], &document["options"]["by"]),
        (&true.into(), &"entries".into())
    );
    for words in [&["--by", "disk"][..], &["--format", "ncdu"], &["--newer", "1d"]] {
        let refused = run(poach(&["scan", "--no-sizes"]).args(words).arg(tree.path()));
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn shells_complete_the_flags_and_the_manual_has_them_all() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&mut poach(&["completions", shell]));
        assert_eq!(script.status.code(), Some(0));
        assert!(text(&script.stdout).contains("full-paths"), "{shell}");
    }
    let completed = run(Command::new("bash").args([
        "-c",
        "source <(\"$0\" completions bash)
        COMP_WORDS=(poach scan --rep); COMP_CWORD=2; _poach poach --rep scan
        echo \"${COMPREPLY[@]}\"
        COMP_WORDS=(poach scan --sort ''); COMP_CWORD=3; _poach poach '' --sort
        echo \"${COMPREPLY[@]}\"",
        POACH,
    ]));
    assert_eq!(text(&completed.stdout), "--report\nsize name entries time\n");

    let page = run(&mut poach(&["man", "scan"]));
    let page = text(&page.stdout).replace("\\-", "-");
    assert!(page.contains(".TH poach-scan 1"), "{}", &page[..300]);
    let help = run(&mut poach(&["scan", "--help"]));
    let flags = text(&help.stdout).split_whitespace().filter(|word| word.starts_with("--"));
    let letters = |word: &str| word.trim_matches(|it: char| !it.is_ascii_alphanumeric()).to_owned();
    for flag in flags.map(letters).filter(|flag| !flag.is_empty()) {
        assert!(page.contains(&flag), "{flag} is not in the manual");
    }
    assert_eq!(run(&mut poach(&["man", "no-verb"])).status.code(), Some(2));
    let page = run(&mut poach(&["man", "measure", "capacity"]));
    assert!(text(&page.stdout).replace("\\-", "-").contains(".TH poach-measure-capacity 1"));
    assert_eq!(run(&mut poach(&["man", "measure", "no-verb"])).status.code(), Some(2));
    let all = tempfile::tempdir().expect("a directory for the test");
    let into = all.path().join("man1");
    assert!(run(poach(&["man", "--into"]).arg(&into)).status.success());
    for page in ["poach.1", "poach-scan.1", "poach-measure-capacity.1"] {
        assert!(into.join(page).is_file(), "{page}");
    }
    let file = into.join("poach.1/below");
    assert_eq!(run(poach(&["man", "--into"]).arg(&file)).status.code(), Some(1));
}

#[test]
fn groups_of_equal_files_are_shown_and_named_as_json() {
    let tree = grown();
    for name in ["twin-1", "c/twin-2"] {
        fs::write(tree.path().join(name), vec![5; 200_000]).expect("a file");
    }
    let shown = run(poach(&["scan", "--report", "summary,duplicates"]).arg(tree.path()));
    assert_eq!((shown.status.code(), text(&shown.stderr)), (Some(0), ""));
    let out = text(&shown.stdout);
    assert!(out.contains("/c/twin-2\n") && out.contains("freed if 1 file went"), "{out}");
    assert!(out.find("summary") < out.find("duplicates"), "{out}");
    let document = run(poach(&["scan", "--json", "--report", "duplicates"]).arg(tree.path()));
    let document: serde_json::Value = serde_json::from_slice(&document.stdout).expect("JSON");
    let rows = document["reports"]["duplicates"]["rows"].as_array().expect("rows");
    assert_eq!(
        (rows.len(), &rows[1]["group"], &rows[1]["freed_bytes"]),
        (2, &1.into(), &().into())
    );
    assert_eq!(rows[0]["apparent_bytes"], 200_000);
}

#[test]
fn a_group_is_shown_before_the_others_are_compared_and_ctrl_c_ends_it() {
    let tree = tempfile::tempdir().expect("a directory for the test");
    let file = |name: &str, size, byte| {
        fs::write(tree.path().join(name), vec![byte; size]).expect("a file");
    };
    // More than a pipe holds: groups of two with long names.
    for number in 0..800_usize {
        for twin in ["one", "two"] {
            file(&format!("{number}-{}-{twin}", "n".repeat(200)), 8000 + number, 1);
        }
    }
    let mut child = poach(&["scan", "--top", "all", "--report", "duplicates"])
        .arg(tree.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("freed by one of 2") {
        line.clear();
        assert!(out.read_line(&mut line).expect("a line") > 0, "no group");
    }
    rig::wait_until_full(out.get_ref());
    // It waits for the pipe now, and compares nothing: one Ctrl-C is enough.
    rig::interrupt(&child);
    let status = child.wait().expect("it ends");
    assert!(matches!(status.code(), Some(1 | 130)), "{status:?}");
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).expect("bytes");
}

/// With a terminal of its own, by `script`.
fn on_a_terminal(columns: &str, words: &[&OsStr]) -> Option<String> {
    if !rig::has("script", "--version") {
        return None;
    }
    let quoted: Vec<String> =
        words.iter().map(|word| format!("'{}'", word.to_str().expect("plain"))).collect();
    let line = format!("stty cols {columns} rows 24; '{POACH}' {}", quoted.join(" "));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
    Some(text(&run(&mut command).stdout).to_owned())
}

#[test]
fn the_line_of_progress_names_a_directory_and_is_cleared() {
    let path = |path: &'static str| Path::new(path).as_os_str();
    let words = ["scan", "--engine", "sequential", "--top", "1", "/usr", "/proc"].map(path);
    let Some(shown) = on_a_terminal("100", &words) else { return };
    // It is there only if the scan took as long as the line waits.
    if shown.contains("entries,") {
        let mut lines = shown.split('\r').filter(|line| line.contains("entries,"));
        assert!(lines.any(|line| line.contains("  /usr") || line.contains("  /proc")), "{shown:?}");
        assert!(shown.contains("\x1b[2K"));
    }
}

#[test]
fn a_terminal_gets_no_control_character_of_a_name_or_an_argument() {
    const ODD: &str = "odd\u{1b}]0;x\u{7}\u{9b}31m\u{202e}";
    let place = tempfile::tempdir().expect("a directory for the test");
    let tree = place.path().join(ODD);
    fs::create_dir(&tree).expect("a directory");
    fs::write(tree.join(ODD), vec![1; 9000]).expect("a file");
    fs::write(tree.join("equal"), vec![1; 9000]).expect("a file");
    let snapshot = place.path().join("snapshot");
    assert!(run(poach(&["scan", "--snapshot"]).arg(&snapshot).arg(&tree)).status.success());
    fs::write(tree.join(format!("new{ODD}")), b"1").expect("a file");
    let inside = tree.to_str().expect("UTF-8");
    let (snapshot, absent) = (snapshot.to_str().expect("plain"), format!("{inside}/absent"));
    let all =
        "summary,largest-files,largest-directories,recent,stats,duplicates,empty-files,errors";
    let cases: [&[&str]; 20] = [
        &["-a", inside],
        &["-a", "--full-paths", inside, &absent],
        &["-a", "--json", inside],
        &["-a", "--format", "csv", inside],
        &["-a", "--format", "ndjson", inside],
        &["--format", "html", inside],
        &["--format", "ncdu", inside],
        &["--format", "snapshot", inside],
        &["--snapshot", "-", inside],
        &["--report", all, inside],
        &["--report", all, "--json", inside],
        &["--diff", snapshot, inside],
        &["--diff", snapshot, inside, "--json"],
        &["-o", &absent, &absent],
        &["--html", &format!("{absent}/page"), inside],
        &["--exclude", "[\u{1b}[31m", inside],
        &["--import", &absent],
        &["--files0-from", &absent],
        &["--config", &absent],
        &["--depth", ODD],
    ];
    for words in cases {
        let words = [&["scan"], words].concat();
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        let Some(shown) = on_a_terminal("80", &words) else { return };
        // Of the program's own there are colours, and the line of progress that is cleared.
        let mut rest = shown.as_str();
        let mut plain = String::new();
        while let Some((before, after)) = rest.split_once("\x1b[") {
            plain.push_str(before);
            let end = after.find(|it: char| !it.is_ascii_digit() && it != ';').expect("an end");
            assert!(after[end..].starts_with(['m', 'K']), "{words:?}: {shown:?}");
            assert!(!after.starts_with("31m\u{202e}"), "{words:?}: {shown:?}");
            rest = &after[end + 1..];
        }
        plain.push_str(rest);
        let odd = |it: char| it.is_control() && it != '\n' && it != '\r' || it == '\u{202e}';
        assert!(!plain.chars().any(odd), "{words:?}: {shown:?}");
        assert!(!plain.is_empty() || words.contains(&OsStr::new("-o")), "{words:?}");
    }
}

/// Runs the browser on a terminal of its own. Types some keys each time it has shown something
/// since it was typed to last.
fn browse(columns: u16, tree: &Path, steps: &[(&str, &str)]) -> Option<(Option<i32>, String)> {
    use std::io::Write as _;
    if !rig::has("script", "--version") {
        return None;
    }
    let tree = tree.display();
    let line = format!(
        "stty cols {columns} rows 12; timeout --foreground 60 '{POACH}' scan --no-config -i '{tree}'"
    );
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .env("TERM", "xterm-256color")
        .spawn()
        .expect("it starts");
    // The end of the input would be an end of the terminal: it stays open as long as the program
    // runs.
    let mut input = child.stdin.take().expect("piped");
    let mut out = child.stdout.take().expect("piped");
    let (mut shown, mut part) = (Vec::new(), [0; 4096]);
    let (mut steps, mut heard) = (steps.iter().peekable(), 0);
    while let Ok(length @ 1..) = out.read(&mut part) {
        shown.extend_from_slice(&part[..length]);
        let wanted = |step: &&(&str, &str)| {
            shown[heard..].windows(step.0.len()).any(|window| window == step.0.as_bytes())
        };
        if let Some((_, keys)) = steps.next_if(wanted) {
            heard = shown.len();
            input.write_all(keys.as_bytes()).expect("the terminal takes keys");
        }
    }
    let status = child.wait().expect("it ends");
    let shown = String::from_utf8_lossy(&shown[..shown.len().min(20_000)]).into_owned();
    Some((status.code(), shown))
}

#[test]
fn one_browses_on_a_terminal_which_is_left_as_it_was() {
    let tree = grown();
    for columns in [40, 100] {
        let Some((code, shown)) = browse(columns, tree.path(), &[("by size", "lhq")]) else {
            return;
        };
        assert_eq!(code, Some(0), "{shown:?}");
        let (entered, left) = (shown.find("\x1b[?1049h"), shown.rfind("\x1b[?1049l"));
        assert!(entered.is_some() && entered < left, "{shown:?}");
        assert!(shown.rfind("\x1b[?25h") > shown.find("\x1b[?25l"), "{shown:?}");
        assert!(shown.contains("b/") && shown.contains("file"), "{shown:?}");
    }
    let refused = run(poach(&["scan", "-i"]).arg(tree.path()).stdin(Stdio::null()));
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("terminal"), "{}", text(&refused.stderr));
}

#[test]
fn a_deletion_in_the_browser_takes_what_was_asked_for_and_nothing_else() {
    let tree = grown();
    // The largest is marked at first: `b`. A no, then a yes, each to a question that was shown:
    // what is typed before that is no yes. A terminal gets what has changed: blanks that were there
    // are not written, so these are the first words.
    let steps = [("by size", "d"), ("Delete", "n"), ("nothing", "d"), ("Delete", "yq")];
    let Some((code, shown)) = browse(80, tree.path(), &steps) else { return };
    assert_eq!(code, Some(0), "{shown:?}");
    let left = ["a", "b", "c"].map(|name| tree.path().join(name).exists());
    assert_eq!(left, [true, false, true]);
}
