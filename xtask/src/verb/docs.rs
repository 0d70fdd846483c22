//! `cargo xtask docs`: the documentation builds, and no link is broken.

use anyhow::{Result, bail};

use crate::run::Step;
use crate::{links, workspace};

pub(crate) fn run() -> Result<()> {
    let report = links::check(&workspace::root())?;
    for broken in &report.broken {
        eprintln!("{broken}");
    }
    if !report.broken.is_empty() {
        bail!("{} links of the pages lead nowhere", report.broken.len());
    }
    eprintln!("docs: {} links in {} pages lead somewhere", report.links, report.pages);

    // The libraries only: the program has the name of one of them and would take its place.
    Step::cargo("doc --workspace --no-deps --lib --quiet")
        .env("RUSTDOCFLAGS", "-D warnings")
        .run("rustdoc has something to say")?;
    eprintln!("docs: rustdoc has nothing to say");
    Ok(())
}
