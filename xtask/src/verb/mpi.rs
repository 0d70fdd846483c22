//! `cargo xtask mpi`: the workspace `far/`, built and tested against both of Debian's MPIs, and its own lints.
//!
//! Both are installed side by side: which one a build takes is said by the compiler's wrapper (`MPICC`), and which launcher the
//! tests start by `POACH_FAR_MPIEXEC`. A build does not notice that `MPICC` has changed, so each has a target directory.
//!
//! `--quick` takes one of them, the library's tests and those of `tests/quick.rs`, with two ranks.

use anyhow::{Result, ensure};

use crate::published::cargo;
use crate::run::need_program;
use crate::workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these.
    #[arg(long, value_delimiter = ',', value_parser = ["mpich", "openmpi"], default_value = "mpich,openmpi")]
    with: Vec<String>,
    /// One MPI, the first of those, and a minute's worth of tests with two ranks.
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    // bindgen loads libclang, and reads the system's headers by clang's own.
    need_program("clang", "--version", "clang libclang-dev")?;
    let far = workspace::root().join("far");
    let target = workspace::target_directory()?;
    let mut passed = Vec::new();
    let taken = if options.quick { 1 } else { options.with.len() };
    for name in &options.with[..taken] {
        let (compiler, launcher) = (format!("mpicc.{name}"), format!("mpiexec.{name}"));
        need_program(
            &compiler,
            "--version",
            if name == "mpich" { "libmpich-dev" } else { "libopenmpi-dev" },
        )?;
        need_program(
            &launcher,
            "--version",
            if name == "mpich" { "mpich" } else { "openmpi-bin" },
        )?;
        let step = |verb| {
            cargo(verb, &far, &target.join(format!("far-{name}")))
                .env("MPICC", &compiler)
                .env("POACH_FAR_MPIEXEC", &launcher)
        };
        let all = ["--", "--test-threads", "2"];
        let few = ["--lib", "--test", "quick"];
        if options.quick {
            step("build").args(["--example", "jobs"]).run("an example of far/ does not build")?;
        }
        let tests = step("test")
            .args(if options.quick { &few[..] } else { &all })
            .run_tests(&format!("a test of far/ fails with {name}"))?;
        ensure!(tests > 0, "no test of far/ ran with {name}");
        eprintln!("mpi: {name}: {tests} tests passed");
        passed.push(tests);
        if options.quick {
            continue;
        }
        step("clippy")
            .args(["--all-targets", "--quiet", "--", "-D", "warnings"])
            .run("clippy has something to say of far/")?;
        step("doc")
            .args(["--no-deps", "--lib", "--quiet"])
            .env("RUSTDOCFLAGS", "-D warnings")
            .run("rustdoc has something to say of far/")?;
    }
    ensure!(
        passed.windows(2).all(|two| two[0] == two[1]),
        "not the same tests with each: {passed:?}"
    );
    Ok(())
}
