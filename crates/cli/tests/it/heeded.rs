//! No option does nothing in silence: in each way of calling a verb, each option changes the output
//! or is refused by its name. Options whose effect cannot be seen are listed here.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const POACH: &str = env!("CARGO_BIN_EXE_poach");

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    code: Option<i32>,
    out: String,
    said: String,
    /// The files that it wrote.
    files: Vec<(PathBuf, String)>,
}

/// The text without the parts that differ from run to run: the durations, and the times.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        for name in ["\"elapsed_s\":", "\"entries_per_s\":", "\"taken\":", "\"timestamp\":"] {
            if let Some(at) = line.find(name) {
                let end = line[at..].find([',', '}']).map_or(line.len(), |end| at + end);
                line.replace_range(at..end, "");
            }
        }
        if line.contains(" entries/s;") {
            // The threads and the engine stay.
            line = line.split_once("entries/s;").map_or(String::new(), |(_, who)| who.to_owned());
        }
        steady.push_str(line.trim_end());
        steady.push('\n');
    }
    steady
}

fn run(words: &[&str], within: &Path) -> Came {
    let made = within.join("made");
    let _ = fs::remove_dir_all(&made);
    fs::create_dir(&made).expect("a directory");
    let mut command = Command::new(POACH);
    command.args(words).current_dir(within).stdin(Stdio::null());
    let out = command.env_remove("POACH_SCAN_OPTIONS").output().expect("it starts");
    let text = |bytes: &[u8]| steady(&String::from_utf8_lossy(bytes));
    let mut files: Vec<_> = fs::read_dir(&made)
        .expect("a directory")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let text = text(&shown(&path));
            (path, text)
        })
        .collect();
    files.sort();
    Came { code: out.status.code(), out: text(&out.stdout), said: text(&out.stderr), files }
}

/// The content of a file; of a compressed document, the result of importing it.
fn shown(path: &Path) -> Vec<u8> {
    let words = ["scan", "--no-config", "--all", "--json", "--import"];
    let import = Command::new(POACH).args(words).arg(path).output().expect("it starts");
    if import.status.success() { import.stdout } else { fs::read(path).expect("a file") }
}

/// A tree in which every option has something to do.
fn grown() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory for the test");
    let path = |name: &str| place.path().join(name);
    for name in ["t/a/deep/er/still/more/and/more", "t/b", "t/zz", "t/cache", "u/target"] {
        fs::create_dir_all(path(name)).expect("directories");
    }
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(40 * 24 * 60 * 60);
    for (name, length, is_old) in [
        ("t/a/large", 300_000, false),
        ("t/a/large.again", 300_000, true),
        ("t/a/deep/er/still/more/and/more/f", 10, true),
        ("t/b/one.log", 50_000, false),
        ("t/b/two", 20_000, true),
        ("t/b/ignored", 5000, false),
        ("t/cache/x", 5000, false),
        ("u/target/y", 300_000, false),
        ("t/zz/large.log", 400_000, false),
    ] {
        fs::write(path(name), vec![b'x'; length]).expect("a file");
        if is_old {
            let file = fs::File::options().append(true).open(path(name)).expect("ours");
            file.set_modified(old).expect("ours");
        }
    }
    fs::write(path("t/cache/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n")
        .expect("a file");
    fs::write(path("t/.gitignore"), "ignored\n").expect("a file");
    // Many, so that what is shown has a limit.
    for number in 0..40 {
        fs::create_dir(path(&format!("t/b/d{number}"))).expect("a directory");
        fs::write(path(&format!("t/b/d{number}/f")), vec![b'y'; 100 * number]).expect("a file");
    }
    symlink("../u/target", path("t/lead")).expect("a link");
    symlink("u", path("link")).expect("a link");
    fs::write(path("list"), "*.log\n*.again\n").expect("a file");
    fs::write(path("paths"), "u\0").expect("a file");
    fs::write(path("conf"), "-X b\n").expect("a file");
    for (name, words) in
        [("one.poach", &["t"][..]), ("two.poach", &["t", "-X", "*.log", "-X", "d1*", "-X", "er"])]
    {
        let words = [&["scan", "--no-config", "--snapshot", name], words].concat();
        assert_eq!(run(&words, place.path()).code, Some(0), "{words:?}");
    }
    place
}

/// Each option, and a value of it if it takes one. Those of `-i` alone are in `browse`.
const OPTIONS: &[(&str, &[&str])] = &[
    ("depth", &["1"]),
    ("top", &["1"]),
    ("by", &["apparent"]),
    ("apparent-size", &[]),
    ("no-sizes", &[]),
    ("memory", &["1K"]),
    ("shared", &[]),
    ("all", &[]),
    ("one-file-system", &[]),
    ("dereference-args", &[]),
    ("dereference", &[]),
    ("threads", &["1"]),
    ("engine", &["sequential"]),
    ("stats", &[]),
    ("sort", &["name"]),
    ("reverse", &[]),
    ("full-paths", &[]),
    ("own-files", &[]),
    ("units", &["bytes"]),
    ("width", &["30"]),
    ("min-size", &["40K"]),
    ("format", &["csv"]),
    ("json", &[]),
    ("output", &["made/out"]),
    ("partial", &[]),
    ("facts", &[]),
    ("html", &["made/page.html"]),
    ("snapshot", &["made/snapshot"]),
    ("import", &["one.poach"]),
    ("diff", &["one.poach", "two.poach"]),
    ("report", &["types"]),
    ("recent", &["90d"]),
    ("print0", &[]),
    ("dedupe", &["delete", "--dry-run"]),
    ("keep", &["oldest"]),
    ("dry-run", &[]),
    ("exclude", &["b"]),
    ("exclude-from", &["list"]),
    ("exclude-regex", &["a/la"]),
    ("include", &["*.log"]),
    ("include-regex", &["a/la"]),
    ("type", &["l"]),
    ("min-length", &["100K"]),
    ("max-length", &["10K"]),
    ("newer", &["1d"]),
    ("older", &["1d"]),
    ("time", &["changed"]),
    ("owner", &["12345"]),
    ("group", &["12345"]),
    ("ignore-files", &[]),
    ("exclude-caches", &[]),
    ("exclude-pseudo", &[]),
    ("files0-from", &["paths"]),
    ("config", &["conf"]),
    ("no-config", &[]),
    ("interactive", &[]),
    ("read-only", &[]),
    ("print-chosen", &[]),
];

/// Ways to call `poach scan`.
const WAYS: &[&[&str]] = &[
    &["t", "link"],
    &["t", "link", "--all", "-n", "all"],
    &["t", "link", "--format", "json"],
    &["t", "link", "--format", "ndjson"],
    &["t", "link", "--format", "csv"],
    &["t", "link", "--format", "ncdu", "-o", "made/out"],
    &["t", "link", "--format", "ncdu-binary", "-o", "made/out"],
    &["t", "link", "--format", "snapshot", "-o", "made/out"],
    &["t", "link", "--format", "html"],
    &["t", "link", "--report", "largest-files,recent"],
    &["t", "link", "--report", "duplicates,oldest"],
    &["t", "link", "--report", "largest-files", "--json"],
    &["t", "link", "--report", "largest-files", "--print0"],
    &["--import", "one.poach"],
    &["--import", "one.poach", "--json"],
    &["--diff", "one.poach", "two.poach"],
    &["--diff", "t", "two.poach"],
    &["--diff", "t", "two.poach", "--json"],
    &["t", "link", "--dedupe", "delete", "--dry-run"],
    &["t", "link", "--dedupe", "delete", "--dry-run", "--json"],
];

/// Whether an option may be without an effect that this tree shows.
fn is_unseen(option: &str, way: &[&str]) -> bool {
    let has = |word: &str| way.contains(&word);
    match option {
        // There is one file system, no pseudo file system, and no configuration. No other file
        // shares these blocks. The output does not say how many threads or which engine ran. A file
        // is replaced by the whole, and the output here is whole.
        "one-file-system" | "exclude-pseudo" | "no-config" | "shared" | "threads" | "engine"
        | "partial" => true,
        // A whole document has the files, and so has an output that lists them already.
        "all" => ["ncdu", "ncdu-binary", "snapshot", "html", "--all"].iter().any(|it| has(it)),
        // An option of a file that contradicts the command line is left out.
        "config" => has("--import") || has("one.poach"),
        // The targets of the links hold nothing that these list.
        "dereference" => has("--report") || has("--dedupe"),
        _ => false,
    }
}

#[test]
fn each_option_of_a_scan_does_something_or_is_refused() {
    let place = grown();
    let mut silent = Vec::new();
    for way in WAYS {
        let words = [&["scan"], *way].concat();
        let plain = run(&words, place.path());
        assert!(plain.code.is_some_and(|code| code < 2), "{words:?}: {plain:?}");
        for (option, value) in OPTIONS {
            let long = format!("--{option}");
            let is_there = way.contains(&&*long)
                || way
                    .iter()
                    .any(|word| matches!((*word, *option), ("-o", "output") | ("-n", "top")));
            if is_there || is_unseen(option, way) {
                continue;
            }
            let words = [&["scan", &long][..], value, way].concat();
            let came = run(&words, place.path());
            if came == plain {
                silent.push(format!("{option} does nothing in {way:?}"));
            } else if came.code == Some(2) && !came.said.contains("--") {
                silent.push(format!("nothing is named for {option} in {way:?}: {}", came.said));
            }
        }
    }
    assert!(silent.is_empty(), "{} of them:\n{}", silent.len(), silent.join("\n"));
}

/// The long options of a verb, from its help.
fn options_of(verb: &[&str]) -> Vec<String> {
    let help = Command::new(POACH).args(verb).arg("--help").output().expect("it starts");
    let help = String::from_utf8(help.stdout).expect("text");
    let named = help.lines().filter_map(|line| {
        let line = line.trim_start();
        let short = || line.strip_prefix('-')?.get(1..)?.strip_prefix(", --");
        let long = line.strip_prefix("--").or_else(short)?;
        let end = long.find(|it: char| it != '-' && !it.is_alphanumeric()).unwrap_or(long.len());
        Some(long[..end].to_owned())
    });
    named.filter(|name| name != "help" && name != "version").collect()
}

#[test]
fn every_option_of_a_scan_is_tried() {
    let mut there = options_of(&["scan"]);
    let mut tried: Vec<String> = OPTIONS.iter().map(|(name, _)| (*name).to_owned()).collect();
    there.sort();
    there.dedup();
    tried.sort();
    assert_eq!(there, tried);
}

#[test]
fn an_option_of_check_that_a_subject_does_not_heed_is_refused() {
    let place = tempfile::tempdir().expect("a directory for the test");
    fs::write(place.path().join("SB.litmus"), SB).expect("a file");
    let values: &[(&str, &[&str])] = &[
        ("memory", &["tso"]),
        ("store-buffer", &["1"]),
        ("egress", &["on"]),
        ("delta", &["1"]),
        ("stores-between", &["1"]),
        ("tasks", &["1"]),
        ("scene", &["brief"]),
        ("thieves", &["1"]),
        ("steals", &["1"]),
        ("policy", &["full"]),
        ("preemptions", &["1"]),
        ("random", &["10"]),
        ("seed", &["1"]),
        ("replay", &["0"]),
        ("seconds", &["10"]),
        ("svg", &["made/out.svg"]),
        ("quick", &[]),
        ("full", &[]),
        ("json", &[]),
    ];
    let mut there = options_of(&["check"]);
    let mut tried: Vec<String> = values.iter().map(|(name, _)| (*name).to_owned()).collect();
    there.sort();
    there.dedup();
    tried.sort();
    assert_eq!(there, tried);
    for (subject, heeded) in [
        ("all", &["quick", "full", "seconds", "json"][..]),
        ("litmus", &["seconds", "json"]),
        ("laws", &["json"]),
        ("SB.litmus", &["store-buffer", "seconds", "json"]),
    ] {
        for (option, value) in values.iter().filter(|(option, _)| !heeded.contains(option)) {
            let long = format!("--{option}");
            let came = run(&[&["check", subject, &long], *value].concat(), place.path());
            assert_eq!(came.code, Some(2), "{subject} {long}: {came:?}");
            assert!(came.said.contains(&long), "{subject} {long}: {}", came.said);
        }
    }
    for words in [
        &["check", "the", "--quick"][..],
        &["check", "the", "--full"],
        &["check", "the", "--memory", "c11", "--policy", "full", "--egress", "off"],
        &["check", "the", "--store-buffer", "0", "--egress", "on"],
        &["check", "SB.litmus", "--egress", "off"],
        &["measure", "classic", "--seed", "2"],
        &["measure", "stores", "made", "--seed", "2"],
    ] {
        let came = run(words, place.path());
        let option = words.iter().rev().find(|word| word.starts_with("--")).expect("one");
        assert!(came.code == Some(2) && came.said.contains(option), "{words:?}: {came:?}");
    }
    let came = run(&["check", "SB.litmus", "--store-buffer", "1", "--egress", "off"], place.path());
    assert_eq!(came.code, Some(0), "{came:?}");
}

const SB: &str = "X86 SB
{ x=0; y=0; }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";
