//! `cargo xtask python`: the wheel of `python/` is built and installed into scratch environments,
//! where its tests and its types pass.
//!
//! The tools (maturin, pytest, mypy; pyarrow and pandas for tests that leave themselves out without
//! them) are installed by pip into `target/python/tools`, the wheel alone into
//! `target/python/fresh`. Nothing is needed but Python 3.9 and a package index.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::published::cargo;
use crate::run::{Step, text};
use crate::workspace;

/// What `cargo xtask python` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where there is no Python 3.9, or pip finds no package index, say so, and do not fail.
    #[arg(long)]
    if_possible: bool,
    /// Leave clippy out, which compiles all dependencies once more.
    #[arg(long)]
    no_clippy: bool,
    /// Only build the wheel, optimised, into this directory.
    #[arg(long, value_name = "DIR")]
    wheel: Option<PathBuf>,
}

/// Not later than what was tried: a new mypy has new opinions.
const TOOLS: [&str; 3] = ["maturin>=1.9.4,<2", "pytest>=7,<10", "mypy>=1.8,<=2.4.1"];
const READERS: [&str; 2] = ["pyarrow>=14,<27", "pandas>=2,<4"];
/// What pip is told each time: not to try for minutes, nor to speak of itself.
const PIP: &str =
    "-m pip --disable-pip-version-check --no-input --retries 2 --timeout 30 install --quiet";
/// The README's first scan, which is run as it stands there.
const FIRST: &str = r#"python -c "import poach; print(poach.scan('.').totals)""#;

pub(crate) fn run(options: &Options) -> Result<()> {
    let place = Place::new()?;
    if let Err(error) = place.prepare() {
        if options.if_possible {
            eprintln!("python: LEFT OUT, nothing of python/ was tested: {error:#}");
            return Ok(());
        }
        return Err(error);
    }
    if let Some(directory) = &options.wheel {
        let wheel = place.build(&std::path::absolute(directory)?, "release")?;
        eprintln!("python: {}", wheel.display());
        return Ok(());
    }
    let wheel = place.build(&place.scratch.join("wheel"), "dev")?;
    place.fresh(&wheel)?;
    let tools = &place.tools;
    tools
        .pip(&["--force-reinstall", "--no-deps", "--no-index", text(&wheel)?])
        .run("the wheel cannot be installed")?;
    let pyproject = place.source.join("pyproject.toml");
    tools
        .python()
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .args(["-c", text(&pyproject)?, "--rootdir", text(&place.source)?])
        .args([text(&place.source.join("tests"))?])
        .run("a test of python/ fails")?;
    let cache = place.scratch.join("mypy");
    tools
        .python()
        .args(["-m", "mypy", "--config-file", text(&pyproject)?, "--cache-dir", text(&cache)?])
        .args([text(&place.source.join("tests"))?])
        .run("mypy does not agree with the types")?;
    tools
        .python()
        .args(["-m", "mypy.stubtest", "poach"])
        .env("MYPY_CACHE_DIR", text(&cache)?)
        .run("the stubs say something else than the module")?;
    if !options.no_clippy {
        cargo("clippy --quiet", &place.source, &place.target)
            .args(["--", "-D", "warnings"])
            .run("clippy has something to say of python/")?;
    }
    eprintln!("python: {} holds", wheel.display());
    Ok(())
}

/// Where all of it happens.
struct Place {
    source: PathBuf,
    target: PathBuf,
    scratch: PathBuf,
    tools: Environment,
}

impl Place {
    fn new() -> Result<Place> {
        let target = workspace::target_directory()?;
        let scratch = target.join("python");
        let tools = Environment(scratch.join("tools"));
        Ok(Place { source: workspace::root().join("python"), target, scratch, tools })
    }

    /// The environment with the tools.
    fn prepare(&self) -> Result<()> {
        Step::program(PYTHON)
            .args(["-c", "import sys; sys.exit(sys.version_info < (3, 9))"])
            .run("there is no Python 3.9 or later, as `python3`")?;
        fs::create_dir_all(&self.scratch)?;
        self.tools.make(false)?;
        self.tools
            .pip(&TOOLS)
            .run("pip cannot install the tools: there is no package index that it reaches")?;
        if let Err(error) = self
            .tools
            .pip(&READERS)
            .args(["--only-binary", ":all:"])
            .run("pip cannot install pyarrow and pandas")
        {
            eprintln!("python: the tests with pyarrow and pandas leave themselves out: {error:#}");
        }
        Ok(())
    }

    /// The one wheel, in `directory`. What it shares with the workspace beside is built once.
    fn build(&self, directory: &Path, profile: &str) -> Result<PathBuf> {
        let wheels = |directory: &Path| -> Result<Vec<PathBuf>> {
            let mut wheels = Vec::new();
            for entry in fs::read_dir(directory).into_iter().flatten() {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "whl") {
                    wheels.push(path);
                }
            }
            Ok(wheels)
        };
        for old in wheels(directory)? {
            fs::remove_file(&old).with_context(|| old.display().to_string())?;
        }
        self.tools
            .python()
            .args(["-m", "maturin", "build", "--locked", "--quiet", "--profile", profile])
            .args(["--manifest-path", text(&self.source.join("Cargo.toml"))?])
            .args(["--target-dir", text(&self.target)?, "--out", text(directory)?])
            .run("the wheel cannot be built")?;
        match &wheels(directory)?[..] {
            [wheel] => Ok(wheel.clone()),
            others => bail!("maturin has built {} wheels", others.len()),
        }
    }

    /// What a user does: a new environment, the wheel, a scan.
    fn fresh(&self, wheel: &Path) -> Result<()> {
        let readme = self.source.join("README.md");
        let page = fs::read_to_string(&readme).with_context(|| readme.display().to_string())?;
        ensure!(page.contains(FIRST), "python/README.md does not begin with `{FIRST}` any more");
        let fresh = Environment(self.scratch.join("fresh"));
        fresh.make(true)?;
        fresh
            .pip(&["--no-index", text(wheel)?])
            .run("the wheel cannot be installed into a new environment")?;
        let program = FIRST.split('"').nth(1).context("a program")?;
        fresh.python().args(["-c", program]).run("the README's scan fails")
    }
}

const PYTHON: &str = if cfg!(windows) { "python" } else { "python3" };

/// A virtual environment of Python's.
pub(super) struct Environment(pub(super) PathBuf);

impl Environment {
    /// Makes it, anew or if it does not work.
    pub(super) fn make(&self, anew: bool) -> Result<()> {
        let works = || {
            self.python()
                .args(["-m", "pip", "--version"])
                .run("the environment does not work any more")
        };
        if !anew && self.0.is_dir() && works().is_ok() {
            return Ok(());
        }
        let make = || {
            Step::program(PYTHON)
                .args(["-m", "venv", "--clear", text(&self.0)?])
                .run("Python cannot make an environment (Debian: python3-venv)")
        };
        if make().is_ok() {
            return Ok(());
        }
        // Debian's Python has no pip of its own.
        Step::program("apt-get")
            .args(["install", "--yes", "--quiet", "--no-install-recommends", "python3-venv"])
            .env("DEBIAN_FRONTEND", "noninteractive")
            .run("Python cannot make an environment, and python3-venv cannot be installed")?;
        make()
    }

    pub(super) fn python(&self) -> Step {
        let directory = if cfg!(windows) { "Scripts" } else { "bin" };
        let program = self.0.join(directory).join("python");
        // What the user has installed, or set, is not what is tested.
        Step::program(&program.to_string_lossy()).env("PYTHONNOUSERSITE", "1").env("PYTHONPATH", "")
    }

    pub(super) fn pip(&self, what: &[&str]) -> Step {
        self.python().args(PIP.split(' ')).args(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_without_a_python_is_an_error_that_names_it() {
        let nowhere = Environment(PathBuf::from("/no/such/environment"));
        let error = nowhere.pip(&["nothing"]).run("of course").unwrap_err();
        assert!(format!("{error:#}").contains("/no/such/environment"), "{error:#}");
    }
}
