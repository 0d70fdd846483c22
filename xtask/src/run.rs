//! Running cargo and rustup: each command is shown first, and a failure names it.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::workspace;

/// A command to be shown and run at the root of the workspace.
pub(crate) struct Step {
    command: Command,
    shown: String,
}

impl Step {
    /// `cargo <arguments>`, separated by blanks.
    pub(crate) fn cargo(arguments: &str) -> Self {
        Self::new("cargo").args(arguments.split_whitespace())
    }

    /// `cargo +nightly <arguments>`, separated by blanks.
    ///
    /// Through `rustup run`: inside `cargo xtask`, `cargo` is the toolchain's own and knows no `+`.
    pub(crate) fn nightly(arguments: &str) -> Self {
        Self::toolchain("nightly", arguments)
    }

    /// `cargo +<toolchain> <arguments>`, separated by blanks.
    pub(crate) fn toolchain(toolchain: &str, arguments: &str) -> Self {
        let run = ["run", toolchain, "cargo"];
        Self::new("rustup").args(run).args(arguments.split_whitespace())
    }

    /// A program of the system's, or a program that was built.
    pub(crate) fn program(name: &str) -> Self {
        Self::new(name)
    }

    fn new(program: &str) -> Self {
        let mut command = Command::new(program);
        command.current_dir(workspace::root()).stdin(Stdio::null());
        // The variables by which the outer cargo says which toolchain it is would bind the inner
        // one.
        command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        Step { command, shown: program.to_owned() }
    }

    /// More arguments.
    pub(crate) fn args<A: AsRef<str>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        for argument in arguments {
            self.command.arg(argument.as_ref());
            let _ = write!(self.shown, " {}", argument.as_ref());
        }
        self
    }

    /// In this directory, where that is not the root of the workspace.
    pub(crate) fn within(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// A variable of its environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self.shown = format!("{name}='{value}' {}", self.shown);
        self
    }

    /// The command as it is shown.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Shows the command, runs it, and says that `what` did not hold if it fails.
    pub(crate) fn run(mut self, what: &str) -> Result<()> {
        eprintln!("$ {}", self.shown);
        let status =
            self.command.status().with_context(|| format!("could not start `{}`", self.shown))?;
        if !status.success() {
            bail!("{what}: `{}` ended with {status}", self.shown);
        }
        Ok(())
    }

    /// As [`run`](Step::run), of a command that runs tests; says how many passed.
    pub(crate) fn run_tests(mut self, what: &str) -> Result<u64> {
        eprintln!("$ {}", self.shown);
        let could_not = || format!("could not run `{}`", self.shown);
        let mut child = self.command.stdout(Stdio::piped()).spawn().with_context(could_not)?;
        let mut passed = 0;
        for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
            let line = line.with_context(could_not)?;
            println!("{line}");
            passed += tests_passed(&line).unwrap_or(0);
        }
        let status = child.wait().with_context(could_not)?;
        if !status.success() {
            bail!("{what}: `{}` ended with {status}", self.shown);
        }
        Ok(passed)
    }

    /// Whether the command succeeds; prints nothing.
    pub(crate) fn succeeds(mut self) -> bool {
        self.command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// What the command prints of errors, if it fails.
    pub(crate) fn errors(mut self) -> String {
        eprintln!("$ {}", self.shown);
        let output = self.command.stdout(Stdio::null()).output().ok();
        let failed = output.filter(|output| !output.status.success());
        failed.map(|o| String::from_utf8_lossy(&o.stderr).into_owned()).unwrap_or_default()
    }

    /// What the command prints, or nothing if it fails.
    pub(crate) fn output(mut self) -> String {
        let output = self.command.stderr(Stdio::null()).output();
        output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default()
    }
}

/// How many tests passed, if this is the line in which a test program says so.
fn tests_passed(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("test result: ok. ")?;
    rest.split_once(" passed;")?.0.parse().ok()
}

fn rustup(arguments: &str) -> Step {
    Step::new("rustup").args(arguments.split_whitespace())
}

/// Whether a program is there.
pub(crate) fn has_program(program: &str) -> bool {
    Step::new(program).args(["--version"]).succeeds()
}

/// Makes sure that a program is there, from the Debian packages `package`, separated by blanks.
pub(crate) fn need_program(program: &str, version: &str, package: &str) -> Result<()> {
    if Step::new(program).args([version]).succeeds() {
        return Ok(());
    }
    let install = || {
        Step::new("apt-get")
            .args(["install", "--yes", "--quiet", "--no-install-recommends"])
            .args(package.split(' '))
            .env("DEBIAN_FRONTEND", "noninteractive")
    };
    let what = format!("{program} is missing, and its package {package} could not be installed");
    // Where no list of packages was ever fetched, nothing can be installed before it is.
    install().run(&what).or_else(|_| {
        Step::new("apt-get").args(["update", "--quiet"]).run(&what)?;
        install().run(&what)
    })
}

/// Makes sure that the cargo subcommand `name` runs, from the rustup component `component`.
pub(crate) fn need_component(name: &str, component: &str) -> Result<()> {
    if Step::cargo(&format!("{name} --version")).succeeds() {
        return Ok(());
    }
    rustup(&format!("component add {component}"))
        .run(&format!("`cargo {name}` is missing and its component could not be installed"))
}

/// Makes sure that the standard library for `target` is installed.
pub(crate) fn need_target(target: &str) -> Result<()> {
    if rustup("target list --installed").output().lines().any(|line| line == target) {
        return Ok(());
    }
    rustup(&format!("target add {target}"))
        .run(&format!("the target {target} could not be installed"))
}

/// Makes sure that a nightly toolchain with these components is installed.
pub(crate) fn need_nightly(components: &[&str]) -> Result<()> {
    let installed = rustup("component list --toolchain nightly --installed").output();
    let has = |component: &&str| installed.lines().any(|line| line.starts_with(*component));
    if !installed.is_empty() && components.iter().all(has) {
        return Ok(());
    }
    rustup("toolchain install nightly --profile minimal")
        .args(components.iter().flat_map(|component| ["--component", component]))
        .run("the nightly toolchain could not be installed")
}

/// Makes sure that this toolchain is installed.
pub(crate) fn need_toolchain(version: &str) -> Result<()> {
    let is_it = |line: &str| line.split(['-', ' ']).next() == Some(version);
    if rustup("toolchain list").output().lines().any(is_it) {
        return Ok(());
    }
    rustup("toolchain install --profile minimal")
        .args([version])
        .run(&format!("the toolchain {version} could not be installed"))
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

/// `path` as it reads from the root of the workspace.
pub(crate) fn from_root<'p>(root: &Path, path: &'p Path) -> std::path::Display<'p> {
    path.strip_prefix(root).unwrap_or(path).display()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_that_passed_are_counted() {
        let line = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(tests_passed(line), Some(12));
        for other in [&line.replace("ok", "FAILED"), "test a ... ok", "12 passed;", ""] {
            assert_eq!(tests_passed(other), None, "{other}");
        }
    }

    #[test]
    fn a_step_that_fails_has_passed_no_tests() {
        assert!(Step::cargo("no-such-command-of-cargo").run_tests("of course").is_err());
    }
}
