//! `cargo xtask filtered ERRNO PROGRAM ..`: runs a program to which the kernel refuses `membarrier(2)`, by a seccomp filter. And
//! `cargo xtask refused`: the tests of the crates that make use of the barrier, run so.
//!
//! The test programs are those of `cargo test`: only their runner is another, so nothing is built again.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use crate::published::cargo;
use crate::run::Step;
use crate::workspace;

/// What the kernel answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Errno {
    /// As a filter does.
    Eperm,
    /// As a kernel does that does not know the call.
    Enosys,
}

impl Errno {
    /// How it is named to `filtered`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Errno::Eperm => "eperm",
            Errno::Enosys => "enosys",
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Filtered {
    errno: Errno,
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<String>,
}

/// Becomes the program, under the filter.
pub(crate) fn run_filtered(options: &Filtered) -> Result<()> {
    let rules = [(libc::SYS_membarrier, Vec::new())].into_iter().collect();
    let errno = match options.errno {
        Errno::Eperm => libc::EPERM,
        Errno::Enosys => libc::ENOSYS,
    };
    let answer = SeccompAction::Errno(errno.cast_unsigned());
    let processor = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, processor)?;
    apply_filter(&BpfProgram::try_from(filter)?).context("the system takes no filter")?;
    let (program, arguments) = options.program.split_first().context("no program is named")?;
    let error = Command::new(program).args(arguments).exec();
    bail!("could not start {program}: {error}")
}

/// This program as the runner of another, under a filter.
fn runner(errno: Errno) -> Result<String> {
    let this = std::env::current_exe().context("this program does not know its path")?;
    Ok(format!("{} filtered {}", this.display(), errno.name()))
}

/// The variable that names cargo's runner on this machine.
fn runner_variable() -> Result<String> {
    let version = Step::program("rustc").args(["-vV"]).output();
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not say which machine this is")?;
    Ok(format!("CARGO_TARGET_{}_RUNNER", host.to_uppercase().replace('-', "_")))
}

/// The crates whose tests are run.
const PACKAGES: [&str; 3] = ["poach-memory", "poach-pool", "poach-runtime"];

/// Of `poach-deque` these programs of tests: the rest are models, or know no barrier.
const OF_DEQUE: [&str; 8] =
    ["behaviour", "crossbeam", "seccomp", "split", "split_stack", "st3", "stress", "safe_code"];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// What the kernel answers.
    #[arg(long, value_enum, default_value_t = Errno::Eperm)]
    errno: Errno,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let (variable, runner) = (runner_variable()?, runner(options.errno)?);
    let what = "a test fails where membarrier(2) is refused";
    let workspace = Step::cargo("test --lib --tests")
        .args(PACKAGES.iter().flat_map(|package| ["--package", package]))
        // Models of simulated machines, the same with a barrier and without.
        .args(["--", "--skip", "model", "--skip", "job::whole"])
        .env(&variable, &runner);
    let mut passed = workspace.run_tests(what)?;
    let deque = Step::cargo("test --package poach-deque")
        .args(OF_DEQUE.iter().flat_map(|test| ["--test", test]))
        .env(&variable, &runner);
    passed += deque.run_tests(what)?;
    let target = workspace::target_directory()?.join("compat");
    let drop_in = workspace::root().join("compat/rayon-core");
    let drop_in = cargo("test --lib --tests", &drop_in, &target).env(&variable, &runner);
    passed += drop_in.run_tests(what)?;
    ensure!(passed > 0, "no test ran");
    eprintln!("refused: {passed} tests pass where membarrier(2) answers {:?}", options.errno);
    Ok(())
}
