//! `cargo xtask miri`: the tests of the crates that hold `unsafe`, interpreted by Miri.
//!
//! The loom models are left out: loom brings its own scheduler, and has no undefined behaviour to
//! show. The stress tests do less here than elsewhere; what Miri adds to them is that it also sees
//! what did not go wrong. What `tests/it/lasting*.rs` make lives as long as the program, as it is
//! documented to; there Miri looks for everything but leaks. A file of tests after the other runs,
//! and a table at the end says what each did; one in which something is found does not end the run.
//! The whole takes more than an hour on one core: `--shard` divides it.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::run::{Step, need_nightly};
use crate::workspace::Workspace;

/// The crates where `unsafe` may stand and that Miri can interpret, and the loops over them.
pub(crate) const CRATES: [&str; 5] =
    ["crates/memory", "crates/deque", "crates/pool", "crates/runtime", "crates/parallel"];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this package.
    #[arg(long, short)]
    package: Option<String>,
    /// Every COUNT-th file of tests, from the one at NUMBER on: all shards together run each once.
    #[arg(long, value_name = "NUMBER/COUNT", value_parser = shard, default_value = "1/1")]
    shard: Shard,
    /// Run each test under this many seeds of Miri's scheduler.
    #[arg(long, default_value_t = 1)]
    seeds: u32,
}

/// The files of tests that are run: the files whose number is `number` modulo `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    number: usize,
    count: usize,
}

fn shard(text: &str) -> Result<Shard> {
    let (number, count) = text.split_once('/').context("use NUMBER/COUNT, as in 2/4")?;
    let (number, count): (usize, usize) = (number.parse()?, count.parse()?);
    ensure!((1..=count).contains(&number), "use a NUMBER of 1 to {count}");
    Ok(Shard { number: number - 1, count })
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut packages = workspace.libraries(&CRATES);
    if let Some(only) = &options.package {
        packages.retain(|package| package == only);
        ensure!(!packages.is_empty(), "{only} is not a package of {}", CRATES.join(", "));
    }
    need_nightly(&["miri", "rust-src"])?;

    let (tests, asynchronous) = (workspace.tests()?, workspace.features("async"));
    let mut all = Vec::new();
    for package in &packages {
        let files = tests.iter().filter(|test| test.package == *package);
        all.push((package, "lib", vec!["--lib".to_owned()]));
        let chosen = files.filter(|test| !test.is_model());
        all.extend(chosen.map(|test| (package, test.name.as_str(), test.arguments())));
    }
    let Shard { number, count } = options.shard;
    let mut table = Vec::new();
    let mut failed = Vec::new();
    for (package, name, arguments) in all.into_iter().skip(number).step_by(count) {
        let began = Instant::now();
        let features = asynchronous.iter().filter(|f| f.starts_with(&format!("{package}/")));
        let leaks = if name.starts_with("lasting") { " -Zmiri-ignore-leaks" } else { "" };
        let passed = Step::nightly("miri test --package")
            .args([package])
            .args(features.flat_map(|feature| ["--features", feature]))
            .args(&arguments)
            .env("MIRIFLAGS", &format!("-Zmiri-many-seeds=0..{}{leaks}", options.seeds))
            .run_tests("Miri found something");
        match passed {
            Ok(passed) => {
                table.push((package, name.to_owned(), passed, began.elapsed().as_secs()));
            }
            Err(error) => {
                eprintln!("{error:#}");
                failed.push(format!("{package} {name}"));
            }
        }
    }
    eprintln!("\n{:16} {:18} {:>7} {:>7}", "", "", "passed", "seconds");
    for (package, name, passed, seconds) in &table {
        eprintln!("{package:16} {name:18} {passed:7} {seconds:7}");
    }
    for package in &packages {
        let of = || table.iter().filter(|row| row.0 == package);
        let (passed, seconds): (u64, u64) =
            (of().map(|row| row.2).sum(), of().map(|row| row.3).sum());
        eprintln!("{package:16} {:18} {passed:7} {seconds:7}", "all");
    }
    ensure!(failed.is_empty(), "Miri found something in {}", failed.join(", "));
    eprintln!("miri: nothing found in shard {} of {count}: {}", number + 1, packages.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_some() {
        assert_eq!(shard("2/4").unwrap(), Shard { number: 1, count: 4 });
        for wrong in ["", "2", "0/4", "5/4", "1/0", "a/b"] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }
}
