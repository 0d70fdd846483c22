//! `cargo xtask rayon-suite`: rayon's own tests, from its published package, on `compat/rayon-core`.
//!
//! They are run on the original core too, from which the number of tests that must pass is taken. The behaviour tests of
//! `compat/rayon-core/tests` are run on both cores first.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use cargo_metadata::MetadataCommand;
use walkdir::WalkDir;

use crate::run::Step;
use crate::workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only the behaviour tests, on both cores: two minutes.
    #[arg(long)]
    quick: bool,
    /// How often rayon's unit and integration tests are run with each number of threads, in a debug and in a release build.
    #[arg(long, default_value_t = 20)]
    times: u32,
    /// The numbers of threads of the global pool.
    #[arg(long, value_delimiter = ',', default_value = "1,2,8")]
    threads: Vec<usize>,
}

/// The two cores: the name, and the package that depends on it.
const CORES: [(&str, &str); 2] = [("original", "original"), ("poach", "rayon-core")];

pub(crate) fn run(options: &Options) -> Result<()> {
    let target = workspace::target_directory()?.join("compat");
    let mut passed = Vec::new();
    for (core, package) in CORES {
        let tests = cargo("test", &workspace::root().join("compat").join(package), &target)
            .run_tests(&format!("a behaviour test fails on the {core} core"))?;
        eprintln!("rayon-suite: {core}: {tests} behaviour and unit tests passed");
        passed.push(tests);
    }
    ensure!(passed.iter().all(|&tests| tests > 0), "no behaviour test ran");
    if options.quick {
        return Ok(());
    }

    let rayon = published_rayon()?;
    let mut expected = Vec::new();
    for (core, _) in CORES {
        let copy = copy(&rayon, &target.join(format!("rayon-on-{core}")), core == "poach")?;
        let mut counts = Vec::new();
        for profile in [None, Some("--release")] {
            for &threads in &options.threads {
                let what = format!("a test of rayon fails on the {core} core");
                let step = |kind: &[&str]| {
                    cargo("test", &copy, &target)
                        .args(profile)
                        .args(kind.iter().copied())
                        .env("RAYON_NUM_THREADS", &threads.to_string())
                };
                let times = if core == "poach" { options.times } else { 1 };
                for _ in 0..times {
                    counts.push(step(&["--lib", "--tests"]).run_tests(&what)?);
                }
                if profile.is_none() {
                    counts.push(step(&["--doc"]).run_tests(&what)?);
                }
            }
        }
        counts.sort_unstable();
        counts.dedup();
        eprintln!("rayon-suite: {core}: every run passed all of its tests: {counts:?}");
        expected.push(counts);
    }
    if expected[0] != expected[1] {
        bail!("the cores do not pass the same numbers of tests: {expected:?}");
    }
    Ok(())
}

/// `cargo <verb>` of the package in `directory`, which is none of this workspace.
pub(crate) fn cargo(verb: &str, directory: &Path, target: &Path) -> Step {
    let manifest = directory.join("Cargo.toml");
    Step::cargo(verb)
        .args(["--manifest-path", &manifest.to_string_lossy()])
        .env("CARGO_TARGET_DIR", &target.to_string_lossy())
}

/// Where cargo has unpacked the rayon that `compat/original` depends on.
fn published_rayon() -> Result<PathBuf> {
    let metadata = MetadataCommand::new()
        .manifest_path(workspace::root().join("compat/original/Cargo.toml"))
        .exec()
        .context("cargo metadata failed")?;
    let rayon = metadata.packages.iter().find(|package| package.name.as_str() == "rayon");
    let manifest = &rayon.context("compat/original does not depend on rayon")?.manifest_path;
    Ok(manifest.parent().context("a manifest lies in a directory")?.as_std_path().to_owned())
}

/// Copies the package to `to`, as a workspace of its own, and puts the drop-in below it if it is to be `patched`.
fn copy(package: &Path, to: &Path, patched: bool) -> Result<PathBuf> {
    for entry in WalkDir::new(package) {
        let entry = entry?;
        let copy = to.join(entry.path().strip_prefix(package)?);
        let copied = if entry.file_type().is_dir() {
            fs::create_dir_all(&copy)
        } else {
            fs::copy(entry.path(), &copy).map(drop)
        };
        copied.with_context(|| format!("could not write {}", copy.display()))?;
    }
    let manifest = to.join("Cargo.toml");
    let own = fs::read_to_string(&manifest)?;
    let core = workspace::root().join("compat/rayon-core");
    // In single quotes TOML knows no escapes.
    let patch = format!("\n[patch.crates-io]\nrayon-core = {{ path = '{}' }}\n", core.display());
    let patch = if patched { &patch } else { "" };
    fs::write(&manifest, format!("{own}\n[workspace]\n{patch}"))
        .with_context(|| format!("could not write {}", manifest.display()))?;
    Ok(to.to_owned())
}
