//! `cargo xtask rayon-suite`: the tests of rayon and of rayon-core, from their published packages,
//! on `compat/rayon-core`.
//!
//! They are run on the original core too, from which the number of tests that must pass is taken.
//! The behaviour tests of `compat/rayon-core/tests` are run on both cores first.

mod core_tests;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use crate::published::{cargo, check_core, copy, unpacked};
use crate::workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only the behaviour tests, on both cores: two minutes.
    #[arg(long)]
    quick: bool,
    /// How often the unit and integration tests are run on Poach with each number of threads and
    /// in each profile; the original runs them once, and documentation tests are run once on
    /// both.
    #[arg(long, default_value_t = 20)]
    times: u32,
    /// The numbers of threads of the global pool.
    #[arg(long, value_delimiter = ',', default_value = "1,2,8")]
    threads: Vec<usize>,
    /// How the tests are built.
    #[arg(long, value_delimiter = ',', default_value = "debug,release")]
    profile: Vec<Profile>,
    /// The packages whose tests are run.
    #[arg(long, value_delimiter = ',', default_value = "rayon-core,rayon")]
    package: Vec<Package>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Profile {
    Debug,
    Release,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Package {
    RayonCore,
    Rayon,
}

impl Package {
    fn name(self) -> &'static str {
        match self {
            Package::RayonCore => "rayon-core",
            Package::Rayon => "rayon",
        }
    }

    /// Makes a package of its tests in `to`.
    fn make(self, to: &Path, patched: bool) -> Result<()> {
        let published = unpacked(&workspace::root().join("compat/original"), self.name())?;
        match self {
            Package::RayonCore => core_tests::make(&published, to, patched)?,
            Package::Rayon => copy(&published, to, patched)?,
        }
        check_core(to, patched)
    }

    /// What its test programs are told.
    fn arguments(self) -> Vec<&'static str> {
        match self {
            Package::RayonCore => {
                let skips = core_tests::LEFT_OUT.iter().flat_map(|name| ["--skip", *name]);
                ["--"].into_iter().chain(skips).collect()
            }
            Package::Rayon => Vec::new(),
        }
    }
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
    for &package in &options.package {
        let mut expected = Vec::new();
        for (core, _) in CORES {
            let tested = target.join(format!("{}-on-{core}", package.name()));
            package.make(&tested, core == "poach")?;
            let times = if core == "poach" { options.times } else { 1 };
            let counts = rounds(package, core, &(tested, &target), times, options)?;
            eprintln!(
                "rayon-suite: {} on {core}: every run passed all of its tests: {counts:?}",
                package.name()
            );
            expected.push(counts);
        }
        if expected[0] != expected[1] {
            bail!("the cores do not pass the same numbers of tests: {expected:?}");
        }
    }
    Ok(())
}

/// Runs the tests of the package in a directory with each number of threads, in each profile.
/// Returns the numbers of tests that passed in a run.
fn rounds(
    package: Package,
    core: &str,
    (tested, target): &(PathBuf, &PathBuf),
    times: u32,
    options: &Options,
) -> Result<Vec<u64>> {
    let what = format!("a test of {} fails on the {core} core", package.name());
    let mut counts = Vec::new();
    for profile in &options.profile {
        for threads in &options.threads {
            let step = |kind: &[&str]| {
                cargo("test", tested, target)
                    .args(matches!(profile, Profile::Release).then_some("--release"))
                    .args(kind.iter().copied())
                    .env("RAYON_NUM_THREADS", &threads.to_string())
            };
            for _ in 0..times {
                let tests = step(&["--lib", "--tests"]).args(package.arguments());
                counts.push(tests.run_tests(&what)?);
            }
            counts.push(step(&["--doc"]).run_tests(&what)?);
        }
    }
    counts.sort_unstable();
    counts.dedup();
    Ok(counts)
}
