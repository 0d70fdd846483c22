//! `cargo xtask tsan`: the tests of `tests/stress*.rs` under `ThreadSanitizer`.
//!
//! The standard library is built with it too, so nothing has to be suppressed, and nothing is.

use anyhow::{Result, ensure};

use crate::run::{Step, need_nightly};
use crate::workspace::Workspace;

/// The sanitizer needs a target of its own, so that build scripts are built without it.
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run() -> Result<()> {
    let tests = Workspace::load()?.tests("stress");
    ensure!(!tests.is_empty(), "no crate has a tests/stress*.rs: there is nothing to watch");
    need_nightly(&["rust-src"])?;
    for test in &tests {
        Step::nightly("test -Zbuild-std --target")
            .args([TARGET, "--package", &test.package, "--test", &test.name])
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            .env("TSAN_OPTIONS", "halt_on_error=1")
            .run("ThreadSanitizer found something")?;
    }
    eprintln!("tsan: nothing found in {} stress tests", tests.len());
    Ok(())
}
