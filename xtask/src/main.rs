//! Every check that `.ci/run` makes, one verb each: `cargo xtask <verb>`.
//!
//! A verb prints each command before it runs it, and ends either with a line that says what held or
//! with an error that names the command, the file or the rule that did not. What a verb needs beside
//! cargo (a component, a target, a toolchain) it asks rustup for.

mod absence;
mod links;
mod mutate;
mod published;
mod run;
mod verb;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The checks of this repository, one verb each.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", after_help = "Example: cargo xtask lint")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Every file is formatted.
    Fmt,
    /// Clippy has nothing to say, and each absence that ARCHITECTURE.md states holds.
    Lint,
    /// The documentation builds without a warning, and every link of every page leads somewhere.
    Docs,
    /// What is shipped has licences that anybody can take, is there once, and no manifest names what nothing uses.
    Dependencies,
    /// `poach scan`'s documents are read by the programs that they are for, which are installed.
    Documents,
    /// The workspace compiles for the other platforms, and for all of them with `portable`.
    Cross,
    /// The library and the program compile with the oldest compiler that `Cargo.toml` states.
    Oldest,
    /// The library and the program compile with the oldest version of each dependency that `Cargo.toml` allows.
    Minimal,
    /// The tests run on an emulated 64-bit Arm.
    Aarch64(verb::emulated::Options),
    /// The tests of words and queues run on an emulated machine that keeps the high byte first (s390x).
    BigEndian(verb::emulated::Options),
    /// The tests run as Windows programs under Wine.
    Wine(verb::emulated::Options),
    /// The unit and behaviour tests of the crates that hold `unsafe` run under Miri.
    Miri(verb::miri::Options),
    /// The loom models explore further than `cargo test` lets them.
    Loom(verb::loom::Options),
    /// Small changes by rule of the queues, pools, words and sleep: whether a test notices each.
    Mutate(verb::mutate::Options),
    /// The stress tests run under `ThreadSanitizer`, with nothing suppressed.
    Tsan,
    /// A thousand million forks over changing pools, every result checked, and ten thousand pools.
    Soak(verb::soak::Options),
    /// The owners of the fence-free queues execute no fence: their release build is disassembled.
    Asm,
    /// Spin agrees with `poach check` about the reordering bound, where it is installed.
    Spin(verb::spin::Options),
    /// rayon's own tests on `compat/rayon-core`, as many as pass on the original core.
    RayonSuite(verb::rayon_suite::Options),
    /// rayon's iterators on the original core and on `compat/rayon-core`, timed in turn.
    RayonBench(verb::rayon_bench::Options),
    /// Published programs that use rayon, on the original core and on `compat/rayon-core`, timed in turn.
    RayonPrograms(verb::rayon_programs::Options),
    /// `poach scan`, the least that a walk can do, and other programs in PATH, on one tree and in turn.
    ScanBench(verb::scan_bench::Options),
    /// `far/` is built and tested against Debian's MPICH and Open MPI, which are installed, at 1 to 4 ranks.
    Mpi(verb::mpi::Options),
    /// The C library builds, installs into a scratch prefix, and its tests in C and C++ pass there.
    Capi(verb::capi::Options),
    /// Every command of the guide's pages ends as its page says, and no page is left out.
    Guide(verb::guide::Options),
    /// The packages are packed, and from them alone the program is installed and run, and the library used.
    Publish(verb::publish::Options),
    /// The commit and the tag of a release, once what a release promises holds.
    Release(verb::release::Options),
    /// The wheel for Python builds, installs into scratch environments, and its tests and types pass there.
    Python(verb::python::Options),
    /// The quick verbs, one after the other: fmt, lint, dependencies, docs, cross, oldest, minimal.
    Ci,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Fmt => verb::fmt::run(),
        Verb::Lint => verb::lint::run(),
        Verb::Docs => verb::docs::run(),
        Verb::Dependencies => verb::dependencies::run(),
        Verb::Documents => verb::documents::run(),
        Verb::Cross => verb::cross::run(),
        Verb::Oldest => verb::oldest::run(),
        Verb::Minimal => verb::minimal::run(),
        Verb::Aarch64(options) => verb::emulated::run(&verb::emulated::AARCH64, &options),
        Verb::BigEndian(options) => verb::emulated::run(&verb::emulated::BIG_ENDIAN, &options),
        Verb::Wine(options) => verb::emulated::run(&verb::emulated::WINE, &options),
        Verb::Miri(options) => verb::miri::run(&options),
        Verb::Loom(options) => verb::loom::run(&options),
        Verb::Mutate(options) => verb::mutate::run(&options),
        Verb::Tsan => verb::tsan::run(),
        Verb::Soak(options) => verb::soak::run(&options),
        Verb::Asm => verb::asm::run(),
        Verb::Spin(options) => verb::spin::run(&options),
        Verb::RayonSuite(options) => verb::rayon_suite::run(&options),
        Verb::RayonBench(options) => verb::rayon_bench::run(&options),
        Verb::RayonPrograms(options) => verb::rayon_programs::run(&options),
        Verb::ScanBench(options) => verb::scan_bench::run(&options),
        Verb::Mpi(options) => verb::mpi::run(&options),
        Verb::Capi(options) => verb::capi::run(&options),
        Verb::Guide(options) => verb::guide::run(&options),
        Verb::Publish(options) => verb::publish::run(&options),
        Verb::Release(options) => verb::release::run(&options),
        Verb::Python(options) => verb::python::run(&options),
        Verb::Ci => verb::ci::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
