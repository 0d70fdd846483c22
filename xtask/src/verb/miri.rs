//! `cargo xtask miri`: the tests of the rooms that hold `unsafe`, interpreted by Miri.
//!
//! The loom models are left out (loom brings its own scheduler, and has no undefined behaviour to
//! show), and so are the stress tests, which `tsan` runs at their full size.

use anyhow::{Result, ensure};

use crate::run::{Step, need_nightly};
use crate::workspace::Workspace;

/// The rooms where `unsafe` may stand and that Miri can interpret.
const ROOMS: [&str; 4] = ["crates/memory", "crates/deque", "crates/pool", "crates/runtime"];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this package.
    #[arg(long, short)]
    package: Option<String>,
    /// Run each test under this many seeds of Miri's scheduler.
    #[arg(long, default_value_t = 1)]
    seeds: u32,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut packages = workspace.libraries(&ROOMS);
    if let Some(only) = &options.package {
        packages.retain(|package| package == only);
        ensure!(!packages.is_empty(), "{only} is not a package of {}", ROOMS.join(", "));
    }
    need_nightly(&["miri", "rust-src"])?;

    for package in &packages {
        let tests = workspace.tests("");
        let chosen = tests
            .iter()
            .filter(|test| test.package == *package)
            .filter(|test| !test.name.starts_with("model_") && !test.name.starts_with("stress"))
            .flat_map(|test| ["--test", test.name.as_str()]);
        Step::nightly("miri test --lib --package")
            .args([package])
            .args(chosen)
            .env("MIRIFLAGS", &format!("-Zmiri-many-seeds=0..{}", options.seeds))
            .run("Miri found something")?;
    }
    eprintln!("miri: nothing found in {}", packages.join(", "));
    Ok(())
}
