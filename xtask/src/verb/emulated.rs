//! `cargo xtask aarch64`, `big-endian` and `wine`: the tests run on platforms that this machine is
//! not.
//!
//! Debian's cross compilers link the test programs, and an emulator runs each. What is emulated is
//! the instruction set or the system, never the memory: a processor of total store order underneath
//! shows no weak ordering. For that there are loom and `poach check --memory c11`. What an emulator
//! cannot run is left out by name, with the reason, which is printed. A file of tests that
//! fails does not end the run: the rest run, too, and the table at the end says which failed.

use std::fs;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::run::{Step, need_program, need_target};
use crate::workspace::{Workspace, table, target_directory};

/// A platform, and how its programs are made and run here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Platform {
    /// The verb.
    name: String,
    target: String,
    /// The program that links, and the Debian packages that it comes with.
    linker: (String, String),
    /// The command that runs a program, and the Debian packages that it comes with.
    runner: (String, String),
    /// Directories of the crates whose tests run.
    crates: Vec<String>,
    /// For some packages only these files of tests; the other files are for Linux only. `bin` are
    /// the unit tests of the package's program.
    only: Vec<(String, Vec<String>)>,
    /// Files of tests, or tests in one as `file::test`, that are left out; the reason.
    left_out: Vec<(String, String)>,
    /// Whether the runner is named to the tests, which start themselves by it.
    starts_itself: bool,
}

/// The library of Windows that the standard library takes its random numbers from, and that Wine 8
/// has not. A stand-in.
const RANDOM_NUMBERS: (&str, &str) =
    ("bcryptprimitives", include_str!("../../tables/bcryptprimitives.c"));

/// Builds the stand-in, and returns the directory in which it is, as Wine spells it.
fn random_numbers(compiler: &str) -> Result<String> {
    let directory = target_directory()?.join("wine");
    let (name, source) = RANDOM_NUMBERS;
    let page = directory.join(format!("{name}.c"));
    fs::create_dir_all(&directory)
        .and_then(|()| fs::write(&page, source))
        .with_context(|| format!("cannot write {}", page.display()))?;
    let library = directory.join(format!("{name}.dll"));
    Step::program(compiler)
        .args(["-O1", "-Wall", "-shared", "-o"])
        .args([library.display().to_string(), page.display().to_string(), "-ladvapi32".into()])
        .run("the stand-in for a library that Wine has not could not be built")?;
    Ok(format!("Z:{}", directory.display()).replace('/', "\\"))
}

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this package.
    #[arg(long, short)]
    package: Option<String>,
    /// Only this file of tests; `lib` and `bin` are the package's own.
    #[arg(long, value_name = "NAME")]
    test: Option<String>,
}

/// The tests on the platform of this name in `tables/platforms.json`.
pub(crate) fn run(name: &str, options: &Options) -> Result<()> {
    let platforms: Vec<Platform> = table(include_str!("../../tables/platforms.json"));
    let platform = platforms.iter().find(|platform| platform.name == name);
    let platform = platform.with_context(|| format!("there is no platform {name}"))?;
    let workspace = Workspace::load()?;
    let mut packages = workspace.libraries(&platform.crates);
    if let Some(only) = &options.package {
        packages.retain(|package| package == only);
        ensure!(!packages.is_empty(), "{only} is not a package of {}", platform.crates.join(", "));
    }
    need_target(&platform.target)?;
    need_program(&platform.linker.0, "--version", &platform.linker.1)?;
    let runner = platform.runner.0.split(' ').next().unwrap_or_default();
    need_program(runner, "--version", &platform.runner.1)?;
    let mut environment = Vec::new();
    if platform.starts_itself {
        environment.push(("POACH_TEST_EMULATOR", platform.runner.0.clone()));
    }
    if platform.name == "wine" {
        environment.push(("WINEPATH", random_numbers(&platform.linker.0)?));
        environment.push(("WINEDEBUG", "-all".to_owned()));
    }
    let variable = platform.target.to_uppercase().replace('-', "_");
    let tests = workspace.tests()?;
    let mut table = Vec::new();
    for package in &packages {
        let own = |name, choice: &[&str]| (name, choice.iter().map(|&it| it.to_owned()).collect());
        let mut files = vec![own("lib", &["--lib"]), own("bin", &["--bins"])];
        let of_package = tests.iter().filter(|test| test.package == *package);
        files.extend(of_package.map(|test| (test.name.as_str(), test.arguments())));
        let only = platform.only.iter().find(|(name, _)| name == package);
        files.retain(|(name, _)| {
            only.map_or(*name != "bin", |(_, only)| only.iter().any(|it| it == name))
        });
        for (program, mut chosen) in files {
            if options.test.as_deref().is_some_and(|only| only != program) {
                continue;
            }
            let label = format!("{package} {program}");
            // The models are of a simulated machine, the same on each platform.
            let model = program.starts_with("model_").then_some("a model of a simulated machine");
            let reason = platform.left_out.iter().find(|(name, _)| *name == label);
            if let Some(reason) = model.or(reason.map(|(_, reason)| &**reason)) {
                table.push((label, Row::LeftOut(reason.to_owned())));
                continue;
            }
            if !chosen.iter().any(|argument| argument == "--") {
                chosen.push("--".to_owned());
            }
            let single = format!("{label}::");
            let skipped =
                platform.left_out.iter().filter_map(|(name, _)| name.strip_prefix(&single));
            let began = Instant::now();
            let step = Step::cargo("test --target")
                .args([&*platform.target, "--package", package])
                .args(chosen)
                .args(skipped.flat_map(|test| ["--skip", test]))
                .env(&format!("CARGO_TARGET_{variable}_LINKER"), &platform.linker.0)
                .env(&format!("CARGO_TARGET_{variable}_RUNNER"), &platform.runner.0);
            let step = environment.iter().fold(step, |step, (name, value)| step.env(name, value));
            let row = match step.run_tests(&format!("a test fails on {}", platform.target)) {
                Ok(passed) => Row::Passed(passed, began.elapsed().as_secs()),
                Err(error) => {
                    eprintln!("{error:#}");
                    Row::Failed
                }
            };
            table.push((label, row));
        }
    }
    eprintln!("\n{:36} {:>7} {:>7}", "", "passed", "seconds");
    for (label, row) in &table {
        match row {
            Row::Passed(passed, seconds) => eprintln!("{label:36} {passed:7} {seconds:7}"),
            Row::Failed => eprintln!("{label:36} failed"),
            Row::LeftOut(reason) => eprintln!("{label:36} left out: {reason}"),
        }
    }
    for (test, reason) in platform.left_out.iter().filter(|(name, _)| name.contains("::")) {
        eprintln!("{test} left out: {reason}");
    }
    let failed: Vec<_> =
        table.iter().filter(|(_, row)| matches!(row, Row::Failed)).map(|(l, _)| &**l).collect();
    ensure!(failed.is_empty(), "failed on {}: {}", platform.target, failed.join(", "));
    let all: u64 = table
        .iter()
        .map(|(_, row)| if let Row::Passed(passed, _) = row { *passed } else { 0 })
        .sum();
    eprintln!("{}: {all} tests passed as programs of {}", platform.name, platform.target);
    Ok(())
}

/// What became of a file of tests.
enum Row {
    /// How many tests passed, and in how many seconds, with the build.
    Passed(u64, u64),
    Failed,
    LeftOut(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verb_has_its_platform() {
        let platforms: Vec<Platform> = table(include_str!("../../tables/platforms.json"));
        let names: Vec<_> = platforms.iter().map(|platform| &*platform.name).collect();
        assert_eq!(names, ["aarch64", "big-endian", "wine"]);
        assert!(platforms.iter().all(|platform| !platform.crates.is_empty()));
    }
}
