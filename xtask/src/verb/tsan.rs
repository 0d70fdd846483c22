//! `cargo xtask tsan`: the unit tests and `tests` of the crates that hold `unsafe`, under
//! `ThreadSanitizer`.
//!
//! The models are left out, in `tests` and in the libraries: they bring threads of their own, which
//! the sanitizer does not know, and each of their executions is one real thread. The standard
//! library is built with it too, so nothing has to be suppressed, and nothing is.

use anyhow::{Result, ensure};

use super::miri::CRATES;
use crate::run::{Step, need_nightly};
use crate::workspace::{Test, Workspace};

/// The sanitizer needs a target of its own, so that build scripts are built without it.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The first report ends a program. An allocation that is too large fails, and a child of `fork()`
/// may start threads, as without the sanitizer.
const OPTIONS: &str = "halt_on_error=1 allocator_may_return_null=1 die_after_fork=0";

/// Files of tests that the sanitizer cannot run, and why.
const LEFT_OUT: [(&str, &str); 3] = [
    ("address_space", "it limits the address space, of which the sanitizer reserves terabytes"),
    ("messages", "it compiles programs, which would have to be built with the sanitizer"),
    ("overflow", "the sanitizer handles the signal of a stack overflow itself"),
];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this package.
    #[arg(long, short)]
    package: Option<String>,
    /// The stress tests alone.
    #[arg(long)]
    stress: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut packages = workspace.libraries(&CRATES);
    if let Some(only) = &options.package {
        packages.retain(|package| package == only);
        ensure!(!packages.is_empty(), "{only} is not a package of {}", CRATES.join(", "));
    }
    need_nightly(&["rust-src"])?;
    let (tests, asynchronous) = (workspace.tests()?, workspace.features("async"));
    let wanted = |test: &&Test| {
        let left_out = test.is_model() || LEFT_OUT.iter().any(|(name, _)| test.name == *name);
        if options.stress { test.name.starts_with("stress") } else { !left_out }
    };
    for (name, why) in LEFT_OUT {
        ensure!(tests.iter().any(|test| test.name == name), "there is no file {name} of tests");
        eprintln!("tsan: {name} is left out: {why}");
    }
    let (mut passed, mut failed) = (0, Vec::new());
    for package in &packages {
        let files = tests.iter().filter(|test| test.package == *package).filter(wanted);
        let step = |what: &[String]| {
            let features = asynchronous.iter().filter(|f| f.starts_with(&format!("{package}/")));
            Step::nightly("test -Zbuild-std --no-fail-fast --target")
                .args([TARGET, "--package", package])
                .args(features.flat_map(|feature| ["--features", feature]))
                .args(what)
                .env("RUSTFLAGS", "-Zsanitizer=thread")
                .env("TSAN_OPTIONS", OPTIONS)
        };
        let mut runs: Vec<Step> = files.map(|test| step(&test.arguments())).collect();
        if !options.stress {
            runs.push(step(&["--lib", "--", "--skip", "::model"].map(str::to_owned)));
        }
        for run in runs {
            match run.run_tests("ThreadSanitizer found something, or a test fails") {
                Ok(tests) => passed += tests,
                Err(error) => failed.push(format!("{error:#}")),
            }
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    ensure!(passed > 0, "no test ran");
    eprintln!("tsan: nothing found in {passed} tests: {}", packages.join(", "));
    Ok(())
}
