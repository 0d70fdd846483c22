//! Tells the harness what it is built from: the compiler, the commit, and the versions of the
//! peers.
//!
//! A figure without these cannot be redone. What cannot be found out is left empty, never guessed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[path = "src/suites/simulate/names.rs"]
mod names;

/// The crates whose versions a document states.
const PEERS: [&str; 11] = [
    "chili",
    "concurrent-queue",
    "crossbeam-channel",
    "crossbeam-deque",
    "crossbeam-queue",
    "flume",
    "kanal",
    "rayon",
    "rayon-core",
    "rtrb",
    "st3",
];

/// What the program that measures is built from: whether it is as its commit says.
const SOURCES: [&str; 11] = [
    "Cargo.lock",
    "Cargo.toml",
    "crates/bench/papers",
    "crates/bench/src",
    "crates/simulate/src",
    "crates/deque/src",
    "crates/measure/src",
    "crates/memory/src",
    "crates/pool/src",
    "crates/runtime/src",
    "crates/scan/src",
];

fn main() {
    let root =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    tell("POACH_RUSTC", &printed(&compiler, &["--version"], &root));
    tell("POACH_COMMIT", &printed("git", &["rev-parse", "--short=12", "HEAD"], &root));
    tell("POACH_DIRTY", &difference(&root));
    tell("POACH_PROFILE", &env::var("PROFILE").unwrap_or_default());
    tell("POACH_PEERS", &peers(&root.join("Cargo.lock")));

    name_words(&root);
    println!("cargo::rerun-if-changed=build.rs");
    // Where git keeps them: in a worktree that is elsewhere, and a build that missed them would go
    // on to state an earlier commit.
    let kept = |file: &str| printed("git", &["rev-parse", "--git-path", file], &root);
    for file in ["Cargo.lock".to_owned(), kept("HEAD"), kept("logs/HEAD")] {
        if !file.is_empty() && root.join(&file).exists() {
            println!("cargo::rerun-if-changed={}", root.join(&file).display());
        }
    }
}

/// What the queues' and pools' sources call the words that they access, for the account of what
/// costs most.
fn name_words(root: &Path) {
    let mut all = Vec::new();
    for directory in [
        "crates/deque/src",
        "crates/pool/src",
        "crates/runtime/src/sleep",
        "crates/runtime/src/worker",
        "crates/simulate/src/forks",
        "crates/bench/src/suites/simulate",
    ] {
        println!("cargo::rerun-if-changed={}", root.join(directory).display());
        let mut waiting = vec![root.join(directory)];
        while let Some(path) = waiting.pop() {
            if let Ok(entries) = fs::read_dir(&path) {
                waiting.extend(entries.flatten().map(|entry| entry.path()));
            } else if let Ok(source) = fs::read_to_string(&path) {
                let path = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                let named = names::names(&source).into_iter();
                all.extend(named.map(|(line, column, name)| (path.clone(), line, column, name)));
            }
        }
    }
    all.sort();
    let directory = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(directory.join("names.rs"), format!("&{all:?}")).expect("a file in OUT_DIR");
}

fn tell(name: &str, value: &str) {
    println!("cargo::rustc-env={name}={value}");
}

/// A hash of what the sources have that the commit has not; nothing if they are as committed.
fn difference(root: &Path) -> String {
    for source in SOURCES {
        if root.join(source).exists() {
            println!("cargo::rerun-if-changed={}", root.join(source).display());
        }
    }
    let output =
        Command::new("git").args(["diff", "HEAD", "--"]).args(SOURCES).current_dir(root).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let text = text.unwrap_or_default();
    if text.is_empty() {
        return String::new();
    }
    // FNV-1a: it tells two states of a working directory apart, and proves nothing.
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// What a command prints on its first line, or nothing.
fn printed(program: &str, arguments: &[&str], directory: &Path) -> String {
    let output = Command::new(program).args(arguments).current_dir(directory).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// `name version` of each peer that the lock file has, separated by commas.
fn peers(lock: &Path) -> String {
    let text = fs::read_to_string(lock).unwrap_or_default();
    let mut found = Vec::new();
    let mut name = "";
    for line in text.lines() {
        if let Some(value) = line.strip_prefix("name = ") {
            name = value.trim_matches('"');
        } else if let Some(version) = line.strip_prefix("version = ")
            && PEERS.contains(&name)
        {
            found.push(format!("{name} {}", version.trim_matches('"')));
        }
    }
    found.join(",")
}
