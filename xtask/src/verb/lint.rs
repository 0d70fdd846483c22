//! `cargo xtask lint`: clippy, and the invariants of ARCHITECTURE.md that clippy cannot check.

use anyhow::{Result, bail};
use clap::Args;

use crate::run::{Step, need_component};
use crate::{absence, workspace};

#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Check the invariants alone, without clippy: nothing is compiled.
    #[arg(long)]
    invariants: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let root = workspace::root();
    let mut report = absence::check(&root)?;
    report.findings.extend(absence::check_architecture(&root)?);
    for finding in &report.findings {
        eprintln!("{finding}");
    }
    if report.findings.is_empty() {
        eprintln!("lint: {} rules hold in {} files", absence::RULES.len(), report.files);
    }
    if !options.invariants {
        need_component("clippy", "clippy")?;
        Step::cargo("clippy --workspace --all-targets --features bench --quiet -- -D warnings")
            .run("clippy has something to say")?;
        eprintln!("lint: clippy has nothing to say");
    }
    if !report.findings.is_empty() {
        bail!("{} findings against the invariants of ARCHITECTURE.md", report.findings.len());
    }
    Ok(())
}
