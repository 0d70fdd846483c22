//! `cargo xtask docs`: the documentation builds, no link is broken, and the API pages have the
//! READMEs of today.

use anyhow::{Result, bail};
use clap::Args;

use crate::run::Step;
use crate::{links, readme, workspace};

#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Write `src/readme.md` of each library, the README as the API page has it, where it differs.
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let copies = readme::check(&workspace::root(), options.write)?;
    eprintln!("docs: {copies} API pages have their README");

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
