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

use crate::run::{Step, need_program, need_target};
use crate::workspace::{Workspace, target_directory};

/// A platform, and how its programs are made and run here.
pub(crate) struct Platform {
    /// The verb.
    name: &'static str,
    target: &'static str,
    /// The program that links, and the Debian packages that it comes with.
    linker: (&'static str, &'static str),
    /// The command that runs a program, and the Debian packages that it comes with.
    runner: (&'static str, &'static str),
    /// Directories of the crates whose tests run.
    crates: &'static [&'static str],
    /// For some packages only these files of tests; the other files are for Linux only. `bin` are
    /// the unit tests of the package's program.
    only: &'static [(&'static str, &'static [&'static str])],
    /// Files of tests, or tests in one as `file::test`, that are left out; the reason.
    left_out: &'static [(&'static str, &'static str)],
    /// Whether the runner is named to the tests, which start themselves by it.
    starts_itself: bool,
}

/// Of the runtime's own tests, those of its source on the simulated machine.
const MODELS: (&str, &str) = (
    "poach-runtime lib::worker::models::",
    "models of a simulated machine, the same on each platform",
);

const THREADS_OF_ITS_OWN: (&str, &str) = (
    "poach-memory early",
    "the emulator has threads of its own, so the process is not alone before `main`",
);

const NO_FILTERS: &str =
    "the emulator takes no filter of system calls: its own would come under it";

const NO_THREADS_OF_A_CHILD: &str =
    "a forked child that makes threads ends the emulator, by an assertion of its own (QEMU 7.2)";

pub(crate) const AARCH64: Platform = Platform {
    name: "aarch64",
    target: "aarch64-unknown-linux-gnu",
    linker: ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"),
    runner: ("qemu-aarch64 -L /usr/aarch64-linux-gnu", "qemu-user"),
    crates: &[
        "crates/memory",
        "crates/deque",
        "crates/pool",
        "crates/runtime",
        "crates/parallel",
        "crates/topology",
        "crates/scan",
    ],
    only: &[],
    left_out: &[
        THREADS_OF_ITS_OWN,
        ("poach-memory seccomp", NO_FILTERS),
        ("poach-deque seccomp", NO_FILTERS),
        MODELS,
        (
            "poach-runtime lib::system::process::tests::children::a_pools_calls_panic_in_a_child",
            NO_THREADS_OF_A_CHILD,
        ),
        (
            "poach-runtime lib::system::process::tests::children::a_child_does_not_wait_for_the_global_pool_that_its_parent_was_making",
            NO_THREADS_OF_A_CHILD,
        ),
        (
            "poach-runtime address_space",
            "the limit of address space that it sets would hold for the emulator's, too",
        ),
        ("poach-runtime messages", "it runs the compiler, which builds for another platform"),
    ],
    starts_itself: true,
};

pub(crate) const BIG_ENDIAN: Platform = Platform {
    name: "big-endian",
    target: "s390x-unknown-linux-gnu",
    linker: ("s390x-linux-gnu-gcc", "gcc-s390x-linux-gnu libc6-dev-s390x-cross"),
    runner: ("qemu-s390x -L /usr/s390x-linux-gnu", "qemu-user"),
    crates: &["crates/memory", "crates/deque"],
    only: &[],
    left_out: &[
        THREADS_OF_ITS_OWN,
        ("poach-memory seccomp", NO_FILTERS),
        ("poach-deque seccomp", NO_FILTERS),
    ],
    starts_itself: true,
};

pub(crate) const WINE: Platform = Platform {
    name: "wine",
    target: "x86_64-pc-windows-gnu",
    linker: ("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"),
    runner: ("wine", "wine wine64"),
    crates: &[
        "crates/memory",
        "crates/deque",
        "crates/pool",
        "crates/runtime",
        "crates/parallel",
        "crates/topology",
        "crates/scan",
        "crates/poach",
        "crates/cli",
    ],
    only: &[("poach-cli", &["bin", "windows"])],
    left_out: &[
        MODELS,
        (
            "poach-runtime lib::models::",
            "models of loom, of which some are to panic: Wine does not unwind the stacks that loom makes",
        ),
        ("poach-runtime messages", "it runs the compiler, which builds for another platform"),
        (
            "poach-scan deep",
            "a tree of 3,000 levels is made by Linux's calls; Wine's longest path is 4,096 bytes",
        ),
        ("poach-scan floor", "the floor is one of Linux's calls"),
    ],
    starts_itself: false,
};

/// The library of Windows that the standard library takes its random numbers from, and that Wine 8
/// has not. A stand-in.
const RANDOM_NUMBERS: (&str, &str) = (
    "bcryptprimitives",
    r"
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count)
{
    while (count > 0) {
        ULONG part = count > 0x40000000 ? 0x40000000 : (ULONG)count;
        if (!RtlGenRandom(bytes, part))
            return FALSE;
        bytes += part;
        count -= part;
    }
    return TRUE;
}
",
);

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

pub(crate) fn run(platform: &Platform, options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut packages = workspace.libraries(platform.crates);
    if let Some(only) = &options.package {
        packages.retain(|package| package == only);
        ensure!(!packages.is_empty(), "{only} is not a package of {}", platform.crates.join(", "));
    }
    need_target(platform.target)?;
    need_program(platform.linker.0, "--version", platform.linker.1)?;
    let runner = platform.runner.0.split(' ').next().unwrap_or_default();
    need_program(runner, "--version", platform.runner.1)?;
    let mut environment = Vec::new();
    if platform.starts_itself {
        environment.push(("POACH_TEST_EMULATOR", platform.runner.0.to_owned()));
    }
    if platform.name == WINE.name {
        environment.push(("WINEPATH", random_numbers(platform.linker.0)?));
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
        files.retain(|(name, _)| only.map_or(*name != "bin", |(_, only)| only.contains(name)));
        for (program, mut chosen) in files {
            if options.test.as_deref().is_some_and(|only| only != program) {
                continue;
            }
            let label = format!("{package} {program}");
            // The models are of a simulated machine, the same on each platform.
            let model = program.starts_with("model_").then_some("a model of a simulated machine");
            let reason = platform.left_out.iter().find(|(name, _)| *name == label);
            if let Some(reason) = model.or(reason.map(|(_, reason)| *reason)) {
                table.push((label, Row::LeftOut(reason)));
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
                .args([platform.target, "--package", package])
                .args(chosen)
                .args(skipped.flat_map(|test| ["--skip", test]))
                .env(&format!("CARGO_TARGET_{variable}_LINKER"), platform.linker.0)
                .env(&format!("CARGO_TARGET_{variable}_RUNNER"), platform.runner.0);
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
    LeftOut(&'static str),
}
