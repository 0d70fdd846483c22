//! `cargo xtask loom-suite`: tests for loom, on loom and on `compat/loom`, which has its name.
//!
//! First the tests of `compat/loom/tests` (`--quick`: these alone). Then those of `tables/loom-suite.json`,
//! published packages: each is copied, and a `[patch.crates-io]` block is all that is added. A test
//! must end as it does on loom, but for [`DIFFERENT`].

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Deserialize;
use walkdir::WalkDir;

use crate::published::{cargo, read, unpack, write};
use crate::workspace::{self, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only the behaviour tests, on both.
    #[arg(long)]
    quick: bool,
    /// The packages whose tests are run; all if none is named.
    #[arg(long, value_delimiter = ',')]
    package: Vec<String>,
    /// Seconds that a model may take on either.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// A published package with tests for loom.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    name: String,
    version: String,
    /// The version of loom that it asks for.
    loom: String,
    /// What cargo is told: which tests, with which features.
    tests: String,
    /// For the compiler, of every crate.
    flags: String,
    /// The most preemptions of an execution; none if there is no bound.
    preemptions: Option<u32>,
}

/// The published packages.
fn suites() -> Vec<Suite> {
    table(include_str!("../../tables/loom-suite.json"))
}

/// The tests that end otherwise than on loom, and why.
const DIFFERENT: [(&str, &str); 0] = [];

/// How a package's tests ended.
struct Ended {
    verdicts: BTreeMap<String, String>,
    /// What all their models ran.
    executions: u64,
    seconds: f64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let target = workspace::target_directory()?.join("loom-suite");
    let compat = workspace::root().join("compat/loom");
    for (name, directory) in [("loom", compat.join("original")), ("compat/loom", compat.clone())] {
        let tests = cargo("test", &directory, &target)
            .run_tests(&format!("a behaviour test fails on {name}"))?;
        eprintln!("loom-suite: {name}: {tests} behaviour tests passed");
    }
    if options.quick {
        return Ok(());
    }
    let chosen =
        |suite: &&Suite| options.package.is_empty() || options.package.contains(&suite.name);
    let mut unexplained = Vec::new();
    for suite in suites().iter().filter(chosen) {
        suite.compare(&target, options.seconds, &mut unexplained)?;
    }
    ensure!(unexplained.is_empty(), "these do not end as on loom: {}", unexplained.join(", "));
    Ok(())
}

impl Suite {
    fn compare(&self, target: &Path, seconds: u32, unexplained: &mut Vec<String>) -> Result<()> {
        let Suite { name, version, .. } = self;
        let published = unpack(name, version, &target.join("ask"))?;
        let mut ended = Vec::new();
        for on in ["loom", "poach"] {
            let directory = target.join(format!("{name}-on-{on}"));
            self.copy(&published, &directory, target, on == "poach")?;
            ended.push(self.tests(&directory, target, seconds)?);
        }
        let [theirs, ours] = &ended[..] else { return Ok(()) };
        let all = theirs.verdicts.keys().chain(ours.verdicts.keys());
        let mut differ: Vec<_> =
            all.filter(|test| theirs.verdicts.get(*test) != ours.verdicts.get(*test)).collect();
        differ.dedup();
        for test in &differ {
            let full = format!("{name}: {test}");
            let why = DIFFERENT.iter().find(|(known, _)| *known == full).map(|(_, why)| *why);
            let end = |ended: &Ended| ended.verdicts.get(*test).cloned().unwrap_or_default();
            eprintln!(
                "loom-suite: {full}: {:?} on loom, {:?} here: {}",
                end(theirs),
                end(ours),
                why.unwrap_or("not explained")
            );
            if why.is_none() {
                unexplained.push(full);
            }
        }
        let count = |ended: &Ended, end: &str| {
            ended.verdicts.values().filter(|verdict| *verdict == end).count()
        };
        println!(
            "| {name} {version} | {} | {} pass, {} fail; {} executions, {:.1} s | {} pass, {} fail; {} executions, {:.1} s |",
            theirs.verdicts.len(),
            count(theirs, "ok"),
            count(theirs, "FAILED"),
            theirs.executions,
            theirs.seconds,
            count(ours, "ok"),
            count(ours, "FAILED"),
            ours.executions,
            ours.seconds,
        );
        Ok(())
    }

    /// The package, with the drop-in below it if it is to be `patched`.
    fn copy(&self, published: &Path, to: &Path, target: &Path, patched: bool) -> Result<()> {
        let stand_in = self.stand_in(target)?;
        for entry in WalkDir::new(published) {
            let entry = entry?;
            if entry.file_type().is_dir() {
                continue;
            }
            let name = entry.path().strip_prefix(published)?;
            // A lock file would name loom's own dependencies.
            if name == Path::new("Cargo.lock") {
                continue;
            }
            let mut content = std::fs::read(entry.path())?;
            if name == Path::new("Cargo.toml") {
                content.extend_from_slice(b"\n[workspace]\n");
                if patched && self.name == "loom" {
                    // Its tests, and nothing else of it.
                    content = format!(
                        "[package]\nname = \"loom-tests\"\nversion = \"0.0.0\"\nedition = \"2018\"\n\n[workspace]\n\n[features]\nfutures = []\n\n[dependencies]\nloom = {{ path = '{}', features = [\"futures\"] }}\nfutures-util = \"0.3\"\n",
                        stand_in.display()
                    )
                    .into_bytes();
                } else if patched {
                    // In single quotes TOML knows no escapes.
                    let patch = format!(
                        "\n[patch.crates-io]\nloom = {{ path = '{}' }}\n",
                        stand_in.display()
                    );
                    content.extend_from_slice(patch.as_bytes());
                }
            } else if patched && self.name == "loom" && name.starts_with("src") {
                content.clear();
                if name != Path::new("src/lib.rs") {
                    continue;
                }
            }
            write(&to.join(name), content)?;
        }
        Ok(())
    }

    /// `compat/loom`, of the version that the package asks for.
    fn stand_in(&self, target: &Path) -> Result<std::path::PathBuf> {
        let compat = workspace::root().join("compat/loom");
        if self.loom == "0.7.2" {
            return Ok(compat);
        }
        let to = target.join(format!("loom-{}", self.loom));
        let manifest = read(&compat.join("Cargo.toml"))?
            .replace("version = \"0.7.2\"", &format!("version = \"{}\"", self.loom))
            .replace("../../", &format!("{}/", workspace::root().display()));
        write(&to.join("Cargo.toml"), manifest)?;
        for file in ["README.md", "src/lib.rs", "src/model.rs"] {
            write(&to.join(file), read(&compat.join(file))?)?;
        }
        Ok(to)
    }

    fn tests(&self, directory: &Path, target: &Path, seconds: u32) -> Result<Ended> {
        let flags = format!("--cap-lints=allow {}", self.flags);
        let step = |verb: &str| {
            let step = cargo(verb, directory, target)
                .args(["--release"])
                .args(self.tests.split_whitespace())
                .env("RUSTFLAGS", &flags)
                .env("LOOM_LOG", "loom=info")
                .env("LOOM_CHECKPOINT_INTERVAL", "1000")
                .env("LOOM_MAX_DURATION", &seconds.to_string());
            match self.preemptions {
                Some(most) => step.env("LOOM_MAX_PREEMPTIONS", &most.to_string()),
                None => step,
            }
        };
        step("test --no-run --quiet").run(&format!("{} does not compile", directory.display()))?;
        let began = Instant::now();
        let text =
            step("test --no-fail-fast").args(["--", "--test-threads=1", "--show-output"]).output();
        let seconds = began.elapsed().as_secs_f64();
        let verdicts: BTreeMap<_, _> = text.lines().filter_map(verdict).collect();
        ensure!(!verdicts.is_empty(), "no test of {} ended: {text}", self.name);
        let executions = text.lines().filter_map(executions).sum();
        Ok(Ended { verdicts, executions, seconds })
    }
}

/// The test and its end, of a line in which a test program says how one has ended.
fn verdict(line: &str) -> Option<(String, String)> {
    let (test, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let test = test.strip_suffix(" - should panic").unwrap_or(test);
    Some((test.to_owned(), end.to_owned()))
}

/// How many executions a model ran, of the line in which loom says so, or this does.
fn executions(line: &str) -> Option<u64> {
    let theirs = || line.split_once("Completed in ")?.1.split_once(" iterations").map(|(n, _)| n);
    let ours = || line.strip_prefix("loom: ")?.split_once(" executions")?.0.rsplit(' ').next();
    theirs().or_else(ours)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_test_is_read() {
        let owned = |test: &str, end: &str| Some((test.to_owned(), end.to_owned()));
        assert_eq!(verdict("test a ... ok"), owned("a", "ok"));
        assert_eq!(verdict("test b - should panic ... FAILED"), owned("b", "FAILED"));
        for other in ["test result: ok. 12 passed", "a ... ok", ""] {
            assert_eq!(verdict(other), None, "{other}");
        }
        assert_eq!(executions(" INFO loom::model: Completed in 12 iterations"), Some(12));
        assert_eq!(executions("loom: C11: clean; 7 executions, 3 states, 0.001 s"), Some(7));
        assert_eq!(executions("loom: nothing"), None);
    }

    #[test]
    fn each_suite_is_read() {
        let suites = suites();
        assert_eq!(suites.len(), 13);
        assert!(suites.iter().all(|suite| suite.tests.starts_with("--")));
    }
}
