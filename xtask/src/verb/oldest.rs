//! `cargo xtask oldest`: what ships compiles with the oldest compiler that `Cargo.toml` states, and
//! its tests pass when that compiler builds them.
//!
//! The suites, their peers and this program may ask for a newer compiler. Warnings are those of the
//! newest compiler, which `lint` asks; the oldest may have others.

use anyhow::{Context as _, Result};

use crate::run::{Step, need_toolchain};
use crate::workspace::{Workspace, root, target_directory};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run the tests of `poach-memory` and `poach-parallel` alone, and only compile the others.
    #[arg(long)]
    pub(super) quick: bool,
}

/// Tests that take seconds.
const SMALL: [&str; 2] = ["poach-memory", "poach-parallel"];

/// Packages of their own that need nothing beside a compiler.
const APART: [&str; 2] = ["compat/rayon-core", "compat/loom"];

pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let version = workspace
        .rust_version()
        .context("no package of the workspace states a `rust-version`: `Cargo.toml` should")?;
    need_toolchain(&version)?;
    let target = target_directory()?.join("oldest");
    let target = target.to_string_lossy();
    let cargo = |verb: &str| Step::toolchain(&version, verb).env("CARGO_TARGET_DIR", &target);
    let ships = workspace.with_rust_version(&version);
    let all = ships.iter().flat_map(|package| ["--package", package]);
    cargo("check --quiet --locked --all-targets --features poach/async")
        .args(all.clone())
        .run(&format!("Rust {version}, which `Cargo.toml` states as the oldest, is too old"))?;
    for package in APART {
        cargo("check --quiet --locked --manifest-path")
            .args([format!("{}/{package}/Cargo.toml", root().display())])
            .run(&format!("Rust {version} is too old for {package}"))?;
    }
    let tests = cargo("test --locked --no-fail-fast");
    let small = SMALL.iter().flat_map(|package| ["--package", package]);
    let tests = if options.quick { tests.args(small) } else { tests.args(all) };
    let passed = tests.run_tests(&format!("a test fails where Rust {version} has built it"))?;
    eprintln!(
        "oldest: {} packages and {} compile with Rust {version}, and {passed} tests pass",
        ships.len(),
        APART.join(", ")
    );
    Ok(())
}
