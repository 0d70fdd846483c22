//! `cargo xtask fuzz`: what `poach-scan` reads from others, tried with bytes that libFuzzer makes
//! up.
//!
//! Each target of `crates/scan/fuzz` runs for its share of the minutes, with little memory and a
//! limit of time for each input, from the seeds beside it. What it finds on the way stays in
//! `target/fuzz/corpus`, and an input that fails in `target/fuzz/artifacts`.

use std::fs;

use anyhow::{Context as _, Result};

use crate::run::{Step, need_nightly};
use crate::workspace::{root, target_directory};

const TARGETS: [&str; 4] = ["ncdu", "binary", "snapshot", "patterns"];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How long all targets run together, once they are built.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Only these targets.
    #[arg(value_parser = TARGETS)]
    targets: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    need_nightly(&[])?;
    if Step::cargo("fuzz --version").output().is_empty() {
        Step::cargo("install cargo-fuzz --locked").run("cargo-fuzz could not be installed")?;
    }
    let chosen =
        |it: &&str| options.targets.is_empty() || options.targets.iter().any(|only| only == it);
    let targets: Vec<&str> = TARGETS.into_iter().filter(chosen).collect();
    let seconds = options.minutes * 60 / targets.len() as u64;
    let target_directory = target_directory()?.join("fuzz");
    for target in &targets {
        let corpus = target_directory.join("corpus").join(target);
        let artifacts = target_directory.join("artifacts").join(target);
        for directory in [&corpus, &artifacts] {
            fs::create_dir_all(directory)
                .with_context(|| format!("{} cannot be made", directory.display()))?;
        }
        Step::nightly("fuzz run --fuzz-dir fuzz")
            .within(&root().join("crates/scan"))
            .env("CARGO_TARGET_DIR", &target_directory.to_string_lossy())
            .args([*target, &corpus.to_string_lossy(), &format!("fuzz/seeds/{target}"), "--"])
            .args([
                format!("-max_total_time={seconds}"),
                format!("-artifact_prefix={}/", artifacts.display()),
            ])
            .args(["-rss_limit_mb=1024", "-timeout=20", "-print_final_stats=1"])
            .run(&format!("{target}: an input fails"))?;
    }
    eprintln!("fuzz: {} targets, {seconds} s each, and no input failed", targets.len());
    Ok(())
}
