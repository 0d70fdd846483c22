//! `cargo xtask filtered HOW PROGRAM ..`: runs a program without a process-wide barrier. A seccomp
//! filter refuses `membarrier(2)`, or the runtime is told to do without. And `cargo xtask refused`:
//! the tests of the crates that use the barrier, run so.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

use crate::run::Step;
use crate::workspace;

/// How a program goes without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum How {
    /// The kernel answers `EPERM`, as a filter does.
    Eperm,
    /// The kernel answers `ENOSYS`, as one does that does not know the call.
    Enosys,
    /// `POACH_BARRIER=off`: pools alone go without.
    Off,
}

impl How {
    /// How it is named to `filtered`.
    fn name(self) -> &'static str {
        match self {
            How::Eperm => "eperm",
            How::Enosys => "enosys",
            How::Off => "off",
        }
    }

    /// What the filter answers, if there is one.
    fn errno(self) -> Option<i32> {
        match self {
            How::Eperm => Some(libc::EPERM),
            How::Enosys => Some(libc::ENOSYS),
            How::Off => None,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Filtered {
    how: How,
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<String>,
}

/// Becomes the program.
pub(crate) fn run_filtered(options: &Filtered) -> Result<()> {
    let (name, arguments) = options.program.split_first().context("no program is named")?;
    let mut program = Command::new(name);
    match options.how.errno() {
        None => _ = program.env("POACH_BARRIER", "off"),
        Some(errno) => {
            let rules = [(libc::SYS_membarrier, Vec::new())].into_iter().collect();
            let answer = SeccompAction::Errno(errno.cast_unsigned());
            let processor = std::env::consts::ARCH.try_into()?;
            let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, processor)?;
            apply_filter(&BpfProgram::try_from(filter)?).context("the system takes no filter")?;
        }
    }
    let error = program.args(arguments).exec();
    bail!("could not start {name}: {error}")
}

/// The crates whose tests are run.
const PACKAGES: [&str; 4] = ["poach-memory", "poach-pool", "poach-runtime", "poach-parallel"];

/// Of `poach-deque` these files of tests: the rest are models, or know no barrier.
const OF_DEQUE: [&str; 8] =
    ["behaviour", "crossbeam", "seccomp", "split", "split_stack", "st3", "stress", "safe_code"];

/// The quick files of tests of the workspace in which the barrier plays a part.
const QUICK: [&str; 14] = [
    "asymmetric",
    "blocking",
    "exactly_once",
    "handles",
    "join",
    "no_barrier",
    "outside",
    "scope",
    "seccomp",
    "spawned_tasks",
    "split",
    "split_stack",
    "unasked",
    "waiting",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How the barrier is refused: in each of these ways.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "eperm,enosys,off")]
    how: Vec<How>,
    /// Only some quick files of tests, whose programs `cargo test --workspace` has built, and the
    /// tests of the drop-in: three minutes.
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(!options.how.is_empty(), "no way is chosen");
    for &how in &options.how {
        let passed = run_tests(how, options.quick)?;
        ensure!(passed > 0, "no test ran");
        eprintln!("refused: {passed} tests pass without a process-wide barrier ({})", how.name());
    }
    Ok(())
}

/// Runs the tests. Returns how many have passed.
fn run_tests(how: How, quick: bool) -> Result<u64> {
    let this = std::env::current_exe().context("this program does not know its path")?;
    let this = this.to_string_lossy().into_owned();
    let filtered = |program: &str| Step::program(&this).args(["filtered", how.name(), program]);
    let cargo = |verb: &str| filtered("cargo").args(verb.split_whitespace());
    let what = &format!("a test fails without a process-wide barrier ({})", how.name());
    let mut passed = 0;
    if quick {
        // The whole workspace, so that its packages have the features with which they were built.
        let all = cargo("test --no-fail-fast --workspace --test it").args(modules(&QUICK));
        passed += all.run_tests(what)?;
    } else {
        let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
        // Models of simulated machines, the same with a barrier and without.
        let skips = ["--", "--skip", "model"];
        passed += cargo("test --no-fail-fast --lib --tests")
            .args(packages)
            .args(skips)
            .run_tests(what)?;
        let of_deque = cargo("test --no-fail-fast --package poach-deque --test it");
        passed += of_deque.args(modules(&OF_DEQUE)).run_tests(what)?;
        let suite = ["rayon-suite", "--times", "1", "--threads", "2", "--profile", "debug"];
        filtered(&this).args(suite).run(what)?;
    }
    let manifest = workspace::root().join("compat/rayon-core/Cargo.toml");
    let target = workspace::target_directory()?.join("compat");
    let drop_in = cargo("test --no-fail-fast --lib --tests --manifest-path")
        .args([manifest.to_string_lossy()])
        .env("CARGO_TARGET_DIR", &target.to_string_lossy());
    Ok(passed + drop_in.run_tests(what)?)
}

/// What makes a test program run these of its files, and no models.
fn modules<'a>(names: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    let wanted = names.iter().map(|name| format!("{name}::"));
    std::iter::once("--".to_owned()).chain(wanted).chain(["--skip", "model_"].map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_are_named_exist() {
        let tests = workspace::Workspace::load().unwrap().tests().unwrap();
        for name in QUICK.iter().chain(&OF_DEQUE) {
            assert!(tests.iter().any(|test| test.name == *name), "{name}");
        }
    }

    #[test]
    fn what_is_named_is_a_way() {
        for &how in <How as clap::ValueEnum>::value_variants() {
            assert_eq!(<How as clap::ValueEnum>::from_str(how.name(), false), Ok(how));
        }
    }
}
