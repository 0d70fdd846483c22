//! `cargo xtask rayon-suite`: rayon's own tests, from its published package, on `compat/rayon-core`.
//!
//! They are run on the original core too, from which the number of tests that must pass is taken. The behaviour tests of
//! `compat/rayon-core/tests` are run on both cores first.

use anyhow::{Result, bail, ensure};

use crate::published::{cargo, copy, unpacked};
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
    // rayon's feature of this name asks its core for it.
    cargo("build --features web_spin_lock", &workspace::root().join("compat/rayon-core"), &target)
        .run("the drop-in does not build with the feature web_spin_lock")?;
    if options.quick {
        return Ok(());
    }

    let rayon = unpacked(&workspace::root().join("compat/original"), "rayon")?;
    let mut expected = Vec::new();
    for (core, _) in CORES {
        let tested = target.join(format!("rayon-on-{core}"));
        copy(&rayon, &tested, core == "poach")?;
        let mut counts = Vec::new();
        for profile in [None, Some("--release")] {
            for &threads in &options.threads {
                let what = format!("a test of rayon fails on the {core} core");
                let step = |kind: &[&str]| {
                    cargo("test", &tested, &target)
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
