//! Every check that `.ci/run` makes, one verb each: `cargo xtask <verb>`.
//!
//! A verb prints each command before it runs it. It ends with a line that says what held, or with
//! an error that names the command, the file or the rule that failed. It asks rustup for whatever
//! it needs beside cargo: a component, a target, a toolchain.

mod absence;
mod links;
mod mutate;
mod published;
mod readme;
mod run;
mod samples;
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
    /// Pages and comments follow the rules of prose in docs/style/Poach, as vale reads them.
    Prose(verb::prose::Options),
    /// Clippy reports nothing, and the invariants of ARCHITECTURE.md hold.
    Lint(verb::lint::Options),
    /// The documentation builds without warnings, no page has a broken link, and API pages have
    /// their READMEs.
    Docs(verb::docs::Options),
    /// Licences of all dependencies that ship, packages in two versions, dependencies that nothing
    /// uses.
    Dependencies,
    /// ncdu and Chromium, which are installed, read the documents of `poach scan`.
    Documents,
    /// The workspace compiles for the other platforms, with and without the feature `portable`.
    Cross,
    /// What ships compiles with the oldest supported compiler, `rust-version`, and its tests pass.
    Oldest(verb::oldest::Options),
    /// The library and the program compile with the oldest version of each dependency that
    /// `Cargo.toml` allows.
    Minimal,
    /// The tests run on an emulated 64-bit Arm.
    Aarch64(verb::emulated::Options),
    /// The tests of words and queues run on an emulated big-endian machine (s390x).
    BigEndian(verb::emulated::Options),
    /// The tests run as Windows programs under Wine.
    Wine(verb::emulated::Options),
    /// The unit and behaviour tests of the crates with `unsafe` code run under Miri.
    Miri(verb::miri::Options),
    /// The loom models explore further than `cargo test` lets them.
    Loom(verb::loom::Options),
    /// Published tests for loom end on the model checker as they do on loom.
    LoomSuite(verb::loom_suite::Options),
    /// What each adaptive mechanism of the scheduler brings, by a program without it.
    Ablate(verb::ablate::Options),
    /// `poach check all --full`: each row of the model checker's matrix, searched furthest.
    Check,
    /// Whether a test notices each small change of the queues, pools, words and the sleep protocol.
    Mutate(verb::mutate::Options),
    /// The unit, behaviour and stress tests of these crates run under `ThreadSanitizer`, with
    /// nothing suppressed.
    Tsan(verb::tsan::Options),
    /// What `poach-scan` reads (exports, snapshots, patterns) is tried with bytes that a fuzzer
    /// makes up.
    Fuzz(verb::fuzz::Options),
    /// What the tests cost: from an empty target folder to the last test, and after a change in the
    /// runtime.
    TestCost,
    /// 10^9 forks over changing pools, with every result checked, and 10,000 pools.
    Soak(verb::soak::Options),
    /// The release build of the fence-free owners contains no fence, by disassembly.
    Asm,
    /// Spin, if it is installed, agrees with `poach check` about the reordering bound.
    Spin(verb::spin::Options),
    /// The published tests and examples of crossbeam-deque and st3, and tests of what stands on the
    /// first, on the faces of `poach_deque`.
    FaceSuite(verb::face_suite::Options),
    /// The tests of words, pools, the runtime and the drop-in pass without a process-wide barrier.
    #[cfg(target_os = "linux")]
    Refused(verb::filtered::Options),
    /// Runs a program without a process-wide barrier.
    #[cfg(target_os = "linux")]
    Filtered(verb::filtered::Filtered),
    /// Pools where the barrier is refused, on one processor, with little address space and few
    /// threads; rayon's core beside them.
    #[cfg(target_os = "linux")]
    Hostile(verb::hostile::Options),
    /// rayon's own tests on `compat/rayon-core` and on the original core.
    RayonSuite(verb::rayon_suite::Options),
    /// rayon's iterators on the original core and on `compat/rayon-core`, timed in turn.
    RayonBench(verb::rayon_bench::Options),
    /// Published programs that use rayon, on the original core and on `compat/rayon-core`, timed in
    /// turn.
    RayonPrograms(verb::rayon_programs::Options),
    /// `poach scan`, the least work that a walk can do, and other scanners in PATH, timed in turn
    /// on one tree.
    ScanBench(verb::scan_bench::Options),
    /// `far/` builds and passes its tests with MPICH and Open MPI, which are installed, at 1 to 4
    /// ranks.
    Mpi(verb::mpi::Options),
    /// The C library builds, installs into a scratch prefix, and passes its tests in C and C++.
    Capi(verb::capi::Options),
    /// Every command in the guide's pages ends as its page says.
    Guide(verb::guide::Options),
    /// What people install who have no Rust: archives, packages, checksums, files for package
    /// managers.
    Dist(verb::dist::Options),
    /// The Python package builds, installs into scratch environments, and passes its tests and type
    /// checks.
    Python(verb::python::Options),
    /// The quick verbs, one after the other: fmt, lint, dependencies, docs, cross, oldest, minimal.
    Ci,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Fmt => verb::fmt::run(),
        Verb::Prose(options) => verb::prose::run(&options),
        Verb::Lint(options) => verb::lint::run(&options),
        Verb::Docs(options) => verb::docs::run(&options),
        Verb::Dependencies => verb::dependencies::run(),
        Verb::Documents => verb::documents::run(),
        Verb::Cross => verb::cross::run(),
        Verb::Oldest(options) => verb::oldest::run(&options),
        Verb::Minimal => verb::minimal::run(),
        Verb::Aarch64(options) => verb::emulated::run("aarch64", &options),
        Verb::BigEndian(options) => verb::emulated::run("big-endian", &options),
        Verb::Wine(options) => verb::emulated::run("wine", &options),
        Verb::Miri(options) => verb::miri::run(&options),
        Verb::Loom(options) => verb::loom::run(&options),
        Verb::LoomSuite(options) => verb::loom_suite::run(&options),
        Verb::Mutate(options) => verb::mutate::run(&options),
        Verb::Tsan(options) => verb::tsan::run(&options),
        Verb::Ablate(options) => verb::ablate::run(&options),
        Verb::Check => verb::check::run(),
        Verb::Fuzz(options) => verb::fuzz::run(&options),
        Verb::TestCost => verb::test_cost::run(),
        Verb::Soak(options) => verb::soak::run(&options),
        Verb::Asm => verb::asm::run(),
        Verb::Spin(options) => verb::spin::run(&options),
        Verb::FaceSuite(options) => verb::face_suite::run(&options),
        #[cfg(target_os = "linux")]
        Verb::Refused(options) => verb::filtered::run(&options),
        #[cfg(target_os = "linux")]
        Verb::Filtered(options) => verb::filtered::run_filtered(&options),
        #[cfg(target_os = "linux")]
        Verb::Hostile(options) => verb::hostile::run(&options),
        Verb::RayonSuite(options) => verb::rayon_suite::run(&options),
        Verb::RayonBench(options) => verb::rayon_bench::run(&options),
        Verb::RayonPrograms(options) => verb::rayon_programs::run(&options),
        Verb::ScanBench(options) => verb::scan_bench::run(&options),
        Verb::Mpi(options) => verb::mpi::run(&options),
        Verb::Capi(options) => verb::capi::run(&options),
        Verb::Guide(options) => verb::guide::run(&options),
        Verb::Dist(options) => verb::dist::run(&options),
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
