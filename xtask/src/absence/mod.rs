//! The invariants of ARCHITECTURE.md, each of which says what the source does not contain.
//!
//! Each rule reads the tokens of a file, without comments and strings, so prose may name what code
//! must not contain. The tests below break every rule in a made-up source tree: a rule that cannot
//! fail proves nothing.

mod architecture;
mod promises;
mod rules;
mod tokens;
mod untried;

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use walkdir::{DirEntry, WalkDir};

pub(crate) use rules::RULES;

/// Every name in a source file: words of its code, none of its comments and strings.
///
/// # Errors
///
/// If it is not Rust.
pub(crate) fn names_in(source: &str) -> Result<Vec<String>> {
    Ok(tokens::flatten(source)?.into_iter().map(|token| token.text).collect())
}

/// Words that mark a comment as a promise. Put together here, so that this file does not hold them.
const PROMISES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// One thing that should be absent and is not.
#[derive(Debug)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    rule: &'static str,
    advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { file, line, rule, advice } = self;
        write!(f, "{file}:{line}: {rule}: {advice}")
    }
}

/// What a look at a tree found.
#[derive(Debug)]
pub(crate) struct Report {
    /// How many Rust files there were.
    pub(crate) files: usize,
    /// What was found in them, by file and line.
    pub(crate) findings: Vec<Finding>,
}

/// Looks at every Rust file under `root`, but for build output and hidden directories.
pub(crate) fn check(root: &Path) -> Result<Report> {
    let mut report = Report { files: 0, findings: Vec::new() };
    for entry in walk(root) {
        let entry = entry.context("could not list the tree")?;
        if entry.path().extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let path = crate::run::from_root(root, entry.path()).to_string().replace('\\', "/");
        let source = fs::read_to_string(entry.path()).with_context(|| format!("reading {path}"))?;
        report.files += 1;
        check_file(&path, &source, &mut report.findings)?;
    }
    untried::check(root, &mut report.findings)?;
    promises::check(root, &mut report.findings)?;
    Ok(report)
}

/// What ARCHITECTURE.md leaves out of the tree under `root`.
pub(crate) fn check_architecture(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    architecture::check(root, &mut findings)?;
    Ok(findings)
}

/// The files that belong to the repository: all but build output and hidden directories.
pub(crate) fn walk(root: &Path) -> impl Iterator<Item = walkdir::Result<DirEntry>> {
    let ours = |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || !(name == "target" || name.starts_with('.'))
    };
    WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(ours)
}

fn check_file(path: &str, source: &str, findings: &mut Vec<Finding>) -> Result<()> {
    let mut found = |line, rule, advice: &str| {
        findings.push(Finding { file: path.to_owned(), line, rule, advice: advice.to_owned() });
    };
    let tokens = tokens::flatten(source).with_context(|| path.to_owned())?;
    for rule in RULES.iter().filter(|rule| (rule.concerns)(path)) {
        for at in 0..tokens.len() {
            let exempt = !rule.tests_too && (tokens[at].test || rules::is_test_file(path));
            if !exempt && (rule.found)(&tokens[at..]) {
                found(tokens[at].line, rule.name, rule.advice);
            }
        }
    }
    for (at, line) in source.lines().enumerate() {
        let comment = line.split_once("//").map_or("", |(_, comment)| comment);
        if comment.split(|c: char| !c.is_alphanumeric()).any(|word| PROMISES.contains(&word)) {
            found(at + 1, "nothing-unfinished", "what is not done does not stand in a comment");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the rules find in a tree of one file.
    fn found(path: &str, source: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, source).unwrap();
        let report = check(root.path()).unwrap();
        assert_eq!(report.files, 1);
        report.findings.iter().map(|f| format!("{}:{} {}", f.file, f.line, f.rule)).collect()
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn unsafe_outside_its_modules() {
        let source = "fn f(p: *const u8) -> u8 {\n    unsafe { *p }\n}";
        assert_eq!(
            found("crates/bench/src/fib.rs", source),
            ["crates/bench/src/fib.rs:2 unsafe-in-listed-modules"]
        );
        assert_eq!(
            found("crates/runtime/src/tasks.rs", source),
            ["crates/runtime/src/tasks.rs:2 unsafe-in-listed-modules"]
        );
        assert_eq!(found("crates/runtime/src/task.rs", source), NOTHING);
        assert_eq!(found("crates/runtime/src/task/slot.rs", source), NOTHING);
        assert_eq!(found("crates/memory/src/a.rs", source), NOTHING);
        assert_eq!(found("crates/check/src/memory.rs", source), NOTHING);
        assert_eq!(found("far/src/mpi/raw.rs", source), NOTHING);
        assert_eq!(
            found("far/src/mpi/mod.rs", source),
            ["far/src/mpi/mod.rs:2 unsafe-in-listed-modules"]
        );
        assert_eq!(
            found("crates/check/src/engine.rs", source),
            ["crates/check/src/engine.rs:2 unsafe-in-listed-modules"]
        );
        let in_test = format!("#[cfg(test)] mod tests {{ {source} }}");
        assert_eq!(
            found("crates/poach/src/lib.rs", &in_test),
            ["crates/poach/src/lib.rs:2 unsafe-in-listed-modules"]
        );
    }

    #[test]
    fn atomics_in_a_queue() {
        let rule = "words-come-from-memory";
        for source in
            ["use core::sync::atomic::AtomicU64;", "use std::sync::{Mutex, atomic::AtomicBool};"]
        {
            let found = found("crates/deque/src/papers/the.rs", source);
            assert!(!found.is_empty() && found.iter().all(|f| f.ends_with(rule)), "{found:?}");
        }
        assert!(!found("crates/pool/src/bag.rs", "use std::sync::atomic::AtomicPtr;").is_empty());
        let test = "#[cfg(test)] mod tests { use std::sync::atomic::AtomicU64; }";
        assert_eq!(found("crates/deque/src/papers/the.rs", test), NOTHING);
        let prose = "//! An `AtomicU64` is not named here.\nuse poach_memory::Ordering;";
        assert_eq!(found("crates/deque/src/papers/the.rs", prose), NOTHING);
    }

    #[test]
    fn fences_outside_memory() {
        let rule = "fences-come-from-memory";
        for source in [
            "fn f() { core::sync::atomic::fence(Ordering::SeqCst) }",
            "use core::sync::{atomic::{Ordering, compiler_fence}};",
            "use core::sync::atomic::*;",
            "fn f() { _mm_mfence() }",
            "use rustix::thread::MembarrierCommand;",
        ] {
            let found = found("crates/runtime/src/worker.rs", source);
            assert!(found.iter().any(|f| f.ends_with(rule)), "{source}: {found:?}");
        }
        let own = "fn fence() {} fn f(m: &Machine) { m.fence(); fence() }";
        assert_eq!(found("crates/check/src/machine.rs", own), NOTHING);
    }

    #[test]
    fn noise_below_the_program() {
        for (source, rule) in [
            ("fn f() { println!(\"hello\") }", "quiet-libraries"),
            ("fn f() { std::io::stderr(); }", "quiet-libraries"),
            ("use std::io::{self, stdout};", "quiet-libraries"),
            ("fn f() { std::env::var(\"HOME\"); }", "no-environment-in-libraries"),
            ("use std::env::{self, args};", "no-environment-in-libraries"),
            ("fn f() { std::process::exit(1) }", "no-exit-in-libraries"),
        ] {
            let there = found("crates/scan/src/walk.rs", source);
            assert_eq!(there, [format!("crates/scan/src/walk.rs:1 {rule}")], "{source}");
            assert_eq!(found("crates/cli/src/main.rs", source), NOTHING, "{source}");
            assert_eq!(found("far/src/program/mod.rs", source), NOTHING, "{source}");
            assert_eq!(found("crates/scan/tests/walk.rs", source), NOTHING, "{source}");
        }
        let piped = "fn f(c: &mut Command) { c.stdout(Stdio::piped()); env!(\"A\"); }";
        assert_eq!(found("crates/bench/src/peer.rs", piped), NOTHING);
    }

    #[test]
    fn a_deque_that_waits() {
        for source in [
            "fn f() { std::thread::park() }",
            "use std::thread::{self, sleep};",
            "use std::time::Instant;",
        ] {
            let there = found("crates/deque/src/papers/split.rs", source);
            assert_eq!(there, ["crates/deque/src/papers/split.rs:1 deques-never-wait"], "{source}");
        }
        assert_eq!(found("crates/runtime/src/sleep.rs", "fn f() { std::thread::park() }"), NOTHING);
    }

    #[test]
    fn an_algorithm_that_knows_its_memory() {
        for source in [
            "#[cfg(loom)] const CAPACITY: usize = 2;",
            "use poach_memory::Loom;",
            "const CAPACITY: usize = if cfg!(test) { 2 } else { 64 };",
            "#[cfg(not(test))] const CAPACITY: usize = 64;",
        ] {
            let there = found("crates/pool/src/salsa.rs", source);
            assert_eq!(
                there,
                ["crates/pool/src/salsa.rs:1 no-algorithm-knows-its-memory"],
                "{source}"
            );
        }
    }

    #[test]
    fn words_that_were_given_up() {
        for source in ["struct Furniture;", "fn eats_crumbs() {}", "#[test] fn a_meal() {}"] {
            let there = found("crates/deque/src/a.rs", source);
            assert_eq!(there, ["crates/deque/src/a.rs:1 one-term-for-one-thing"], "{source}");
        }
        assert_eq!(found("crates/deque/src/a.rs", "fn compile() { stockpile() }"), NOTHING);
        let page =
            fs::read_to_string(crate::workspace::root().join("docs/guide/pages/words.md")).unwrap();
        for word in rules::GIVEN_UP {
            assert!(page.contains(&format!("| {word} ")), "words.md says nothing of {word}");
        }
    }

    #[test]
    fn unfinished_work() {
        let promise = format!("fn f() {{}} // {} later", PROMISES[0]);
        for source in ["fn f() { todo!() }", "#[ignore] fn f() {}", &promise] {
            assert_eq!(
                found("crates/poach/tests/a.rs", source),
                ["crates/poach/tests/a.rs:1 nothing-unfinished"],
                "{source}"
            );
        }
    }

    #[test]
    fn a_file_that_is_not_rust_is_named() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a.rs"), "fn f( {").unwrap();
        let error = format!("{:#}", check(root.path()).unwrap_err());
        assert!(error.starts_with("a.rs: "), "{error}");
    }

    #[test]
    fn build_output_is_not_ours() {
        let root = tempfile::tempdir().unwrap();
        for directory in ["target", ".hidden"] {
            fs::create_dir(root.path().join(directory)).unwrap();
            fs::write(root.path().join(directory).join("a.rs"), "not Rust (").unwrap();
        }
        assert_eq!(check(root.path()).unwrap().files, 0);
    }
}
