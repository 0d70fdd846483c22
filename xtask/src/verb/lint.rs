//! `cargo xtask lint`: clippy, and the absences that clippy cannot see.

use anyhow::{Result, bail};

use crate::run::{Step, need_component};
use crate::{absence, workspace};

pub(crate) fn run() -> Result<()> {
    let root = workspace::root();
    let report = absence::check(&root)?;
    for finding in &report.findings {
        eprintln!("{finding}");
    }
    need_component("clippy", "clippy")?;
    Step::cargo("clippy --workspace --all-targets --features bench --quiet -- -D warnings")
        .run("clippy has something to say")?;
    eprintln!("lint: clippy has nothing to say");

    if !report.findings.is_empty() {
        bail!("{} findings against the absences of ARCHITECTURE.md", report.findings.len());
    }
    eprintln!("lint: {} absences hold in {} files", absence::RULES.len(), report.files);
    Ok(())
}
