//! `cargo xtask oldest`: the library and the program compile with the oldest compiler that
//! `Cargo.toml` states.
//!
//! What a user builds, that is: libraries and the default program. Tests, benchmarks and their
//! peers may ask for a newer compiler. Warnings are those of the newest compiler, which `lint`
//! asks; the oldest may have others.

use anyhow::{Context as _, Result};

use crate::run::{Step, need_toolchain};
use crate::workspace::Workspace;

pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::load()?;
    let version = workspace
        .rust_version()
        .context("no package of the workspace states a `rust-version`: `Cargo.toml` should")?;
    need_toolchain(&version)?;
    Step::toolchain(&version, "check --quiet --locked")
        .args(["--package", "poach", "--package", "poach-cli", "--package", "poach-simulate"])
        .args(["--features", "poach/async"])
        .run(&format!("Rust {version}, which `Cargo.toml` states as the oldest, is too old"))?;
    eprintln!("oldest: the library and the program compile with Rust {version}");
    Ok(())
}
