//! `cargo xtask fmt`: every file is formatted.

use anyhow::Result;

use crate::run::{Step, need_component};

pub(crate) fn run() -> Result<()> {
    need_component("fmt", "rustfmt")?;
    Step::cargo("fmt --all --check").run("some file is not formatted (cargo fmt mends it)")?;
    eprintln!("fmt: every file is formatted");
    Ok(())
}
