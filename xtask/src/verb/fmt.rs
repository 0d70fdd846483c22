//! `cargo xtask fmt`: every file is formatted.

use anyhow::Result;

use crate::run::{Step, need_component};

/// The packages that are no members of the workspace.
const APART: [&str; 6] =
    ["compat/loom", "compat/rayon-core", "compat/original", "compat/patched", "far", "python"];

pub(crate) fn run() -> Result<()> {
    need_component("fmt", "rustfmt")?;
    Step::cargo("fmt --all --check").run("some file is not formatted (cargo fmt mends it)")?;
    for package in APART {
        Step::cargo(&format!("fmt --manifest-path {package}/Cargo.toml --check"))
            .run("some file of a package of its own is not formatted")?;
    }
    eprintln!("fmt: every file is formatted");
    Ok(())
}
