//! What the compiler says to a newcomer.

#![forbid(unsafe_code)]
// The compiler is a process; Miri starts none.
#![cfg(not(miri))]

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// What the compiler says to this program, which uses this library that the test was built with.
fn said(library: &str, program: &str) -> String {
    let exe = env::current_exe().unwrap();
    let libraries = exe.parent().unwrap();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(&format!("lib{library}-")) && name.ends_with(".rlib")
    };
    let built = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    let all = fs::read_dir(libraries).unwrap().map(|entry| entry.unwrap().path());
    let file = all.filter(is_ours).max_by_key(built).expect("the library was built");
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.rs");
    fs::write(&source, program).unwrap();
    let output = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--color=never"])
        .arg(format!("--extern={library}={}", file.display()))
        .arg(format!("-Ldependency={}", libraries.display()))
        .arg(format!("--out-dir={}", folder.path().display()))
        .arg(&source)
        .output()
        .unwrap();
    assert!(!output.status.success(), "it compiles");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn who_gives_an_iterator_to_a_loop_is_told_what_it_takes() {
    let text = said(
        "poach_parallel",
        "pub fn f(lines: &str) {
             poach_parallel::par_for(lines.lines(), |_| ());
         }",
    );
    assert!(text.contains("a parallel loop cannot go over `") && text.contains("Lines<"), "{text}");
    assert!(text.contains("for an iterator use `par_bridge`"), "{text}");
    assert!(text.lines().count() < 40, "{text}");
}

#[test]
fn who_captures_the_outer_worker_is_told_what_to_do() {
    let text = said(
        "poach_runtime",
        "pub fn f(mut w: poach_runtime::Worker<'_>, n: u64) -> u64 {
             if n < 2 {
                 return n;
             }
             let (a, b) = w.join(|_| f(w, n - 1), |w| f(w, n - 2));
             a + b
         }",
    );
    assert!(text.contains("name it, as in `w.join(|w| f(w, 1), |w| f(w, 2))`"), "{text}");
    assert!(!text.contains("NonNull"), "{text}");
    assert!(text.lines().count() < 40, "{text}");
}
