//! `include/poach.h` is what cbindgen writes from the source; each function of it, and each macro
//! and function of Lace's faces, is used by a program of `tests/c`.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_current() {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut current = Vec::new();
    cbindgen::generate(root).unwrap().write(&mut current);
    let committed = fs::read(format!("{root}/include/poach.h")).unwrap();
    assert!(
        committed == current,
        "include/poach.h is not what the source says: cargo run -p poach-capi --example header"
    );
}

/// The words of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The functions that a header declares or defines, but for those that are its own affair.
fn functions(header: &str) -> Vec<&str> {
    let mut all: Vec<&str> = header
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_alphabetic()))
        .filter(|line| !line.starts_with("typedef"))
        .filter_map(|line| words(line.split_once('(')?.0).last())
        .filter(|name| name.starts_with("poach_") && !name.ends_with('_'))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn each_function_has_a_program_that_uses_it() {
    /// What the headers' own code calls.
    const INNER: [&str; 4] =
        ["poach_fork_at_floor", "poach_fork_at_limit", "poach_fork_misused", "poach_fork_overflow"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut used = String::new();
    for entry in fs::read_dir(root.join("tests/c")).unwrap() {
        used += &fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    let used: Vec<&str> = words(&used).collect();
    let include = root.join("include");
    let declared = fs::read_to_string(include.join("poach.h")).unwrap();
    let forks = fs::read_to_string(include.join("poach/fork.h")).unwrap();
    let names = [functions(&declared), functions(&forks)].concat();
    // Lace's are called by its macros, of which the next test asks.
    let own = names.iter().filter(|name| !name.starts_with("poach_lace_"));
    let own: Vec<_> = own.filter(|name| !INNER.contains(name)).collect();
    assert!(own.len() >= 50, "{} functions only", own.len());
    let without: Vec<_> = own.iter().filter(|name| !used.contains(**name)).collect();
    assert!(without.is_empty(), "no program of tests/c uses {without:?}");
}

/// What a header has for programs: its macros, and its functions that begin with `lace_`, but for
/// those that its own macros are made of.
fn interface(header: &str) -> Vec<&str> {
    const OWN: [&str; 9] = [
        "_Atomic",
        "POACH_",
        "LACE_APPLY",
        "LACE_ALONE_",
        "LACE_DEFINE_",
        "LACE_EACH_",
        "LACE_NONE_",
        "LACE_TASK_",
        "LACE_VOID_",
    ];
    let macros = header
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("#define "))
        .filter_map(|line| words(line).next());
    let functions = header
        .lines()
        .filter(|line| line.starts_with("static inline") || line.starts_with("POACH_INLINE"))
        .filter_map(|line| words(line).find(|word| word.starts_with("lace_")))
        .filter(|name| !["lace_worker", "lace_task"].contains(name));
    let mut all: Vec<&str> = macros
        .chain(functions)
        .filter(|name| !name.ends_with('_') && !OWN.iter().any(|own| name.starts_with(own)))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn each_macro_of_lace_has_a_program_that_uses_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (face, other, at_least) in [("lace", "lace2", 150), ("lace2", "lace1", 70)] {
        let mut used = String::new();
        for entry in fs::read_dir(root.join("tests/c")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name == "lace_shared.h" || name.starts_with(face) && !name.starts_with(other) {
                used += &fs::read_to_string(&path).unwrap();
            }
        }
        let used: Vec<&str> = words(&used).collect();
        let include = root.join("include/poach");
        let own = fs::read_to_string(include.join(face).join("lace.h")).unwrap();
        let shared = fs::read_to_string(include.join("lace_tasks.h")).unwrap();
        let names = [interface(&own), interface(&shared)].concat();
        assert!(names.len() >= at_least, "{face}: {} names only", names.len());
        let without: Vec<_> = names.iter().filter(|name| !used.contains(name)).collect();
        assert!(without.is_empty(), "{face}: no program of tests/c uses {without:?}");
    }
}
