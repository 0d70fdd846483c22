//! `cargo xtask fmt`: every file is formatted.

use anyhow::Result;

use crate::run::{Step, need_component};

/// The packages that are no members of the workspace.
const COMPAT: [&str; 3] = ["rayon-core", "original", "patched"];

pub(crate) fn run() -> Result<()> {
    need_component("fmt", "rustfmt")?;
    Step::cargo("fmt --all --check").run("some file is not formatted (cargo fmt mends it)")?;
    for package in COMPAT {
        Step::cargo(&format!("fmt --manifest-path compat/{package}/Cargo.toml --check"))
            .run("some file of a package of its own is not formatted")?;
    }
    eprintln!("fmt: every file is formatted");
    Ok(())
}
