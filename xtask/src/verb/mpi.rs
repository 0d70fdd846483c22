//! `cargo xtask mpi`: the workspace `far/`, built and tested against both of Debian's MPIs, and its
//! own lints.
//!
//! Both are installed side by side: which one a build takes is said by the compiler's wrapper
//! (`MPICC`), and which launcher the tests start by `POACH_FAR_MPIEXEC`. A build does not notice
//! that `MPICC` has changed, so each has a target directory.
//!
//! `--quick` takes one of them, the library's tests and those of `tests/it/quick.rs`, with two
//! ranks.

use anyhow::{Result, ensure};

use crate::published::cargo;
use crate::run::{Step, need_program};
use crate::workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these.
    #[arg(long, value_delimiter = ',', value_parser = ["mpich", "openmpi"], default_value = "mpich,openmpi")]
    with: Vec<String>,
    /// One MPI, the first of those, and a minute's worth of tests with two ranks.
    #[arg(long)]
    quick: bool,
    /// Where there is no MPI and none can be installed, say so, and do not fail.
    #[arg(long)]
    if_possible: bool,
    /// Jobs with delays between their four ranks, by messages and as many by windows; not with
    /// `--quick`.
    #[arg(long, default_value_t = 1_000)]
    runs: u64,
    /// Jobs of which a rank is killed, at moments that a seed decides.
    #[arg(long, default_value_t = 6)]
    kills: u64,
}

/// Open MPI's leave to run as the user of a container, with more ranks than processors, and its
/// windows without `osc/rdma`, which crashes.
const OPEN_MPI: [(&str, &str); 4] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_osc", "^rdma"),
];

pub(crate) fn run(options: &Options) -> Result<()> {
    let taken = if options.quick { 1 } else { options.with.len() };
    let with = &options.with[..taken];
    if let Err(error) = need(with) {
        if options.if_possible {
            eprintln!("mpi: LEFT OUT, nothing of far/ was tested: {error:#}");
            return Ok(());
        }
        return Err(error);
    }
    let far = workspace::root().join("far");
    let target = workspace::target_directory()?;
    let mut passed = Vec::new();
    for name in with {
        let launcher = format!("mpiexec.{name}");
        let directory = target.join(format!("far-{name}"));
        let step = |verb| {
            cargo(verb, &far, &directory)
                .env("MPICC", &format!("mpicc.{name}"))
                .env("POACH_FAR_MPIEXEC", &launcher)
                .env("POACH_FAR_KILLS", &options.kills.to_string())
        };
        let all = ["--", "--test-threads", "2"];
        let few = ["--test", "it", "--", "quick::"];
        if options.quick {
            step("build").args(["--example", "jobs"]).run("an example of far/ does not build")?;
            step("test").args(["--bins", "--lib"]).run("a unit test of far/ fails")?;
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
        step("build --release").run("the program of far/ does not build")?;
        for steal in ["messages", "window"] {
            let program = directory.join("release/poach-far");
            let of = [&program.to_string_lossy(), "soak", "--runs", &options.runs.to_string()];
            let allowed = |step: Step, (name, value)| Step::env(step, name, value);
            OPEN_MPI
                .into_iter()
                .fold(Step::program(&launcher), allowed)
                .args(["-n", "4"])
                .args(of)
                .args(["--threads", "1", "--steal", steal])
                .run(&format!("a job with delays between its ranks went wrong with {name}"))?;
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

/// Makes sure that these MPIs are there, and clang: bindgen loads libclang, and reads the system's
/// headers by clang's own.
fn need(with: &[String]) -> Result<()> {
    need_program("clang", "--version", "clang libclang-dev")?;
    for name in with {
        let (compiler, launcher) = if name == "mpich" {
            ("libmpich-dev", "mpich")
        } else {
            ("libopenmpi-dev", "openmpi-bin")
        };
        need_program(&format!("mpicc.{name}"), "--version", compiler)?;
        need_program(&format!("mpiexec.{name}"), "--version", launcher)?;
    }
    Ok(())
}
