//! `cargo xtask publish --dry`: whoever has the packages, and nothing else of this repository, can
//! use Poach.
//!
//! All that may be published is packed. The packages are laid beside
//! what they depend on, as cargo vendors it, and in an empty home, with this directory as the only
//! source of packages and without a network, `poach` is installed and run, and two programs that
//! name `poach` as a dependency are built and run: with the program's feature, as `cargo add poach`
//! writes it, and without. So what is missing in a package (a file outside of it, a dependency that
//! is not published) is found before anybody publishes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::published::write;
use crate::run::Step;
use crate::workspace::{Workspace, root, target_directory};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Publish nothing: pack, install from the packages, run.
    #[arg(long)]
    pub(super) dry: bool,
    /// Ask the package index, too, whether each name is free: before the first release.
    #[arg(long)]
    pub(super) names: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if !options.dry {
        bail!(
            "this verb publishes nothing. Run it with --dry; then, with a token of the registry's, \
             `cargo publish --workspace`, which takes the same packages in the same order"
        );
    }
    let workspace = Workspace::load()?;
    let packages = workspace.published();
    if options.names {
        ask_for_names(&packages)?;
    }
    let work = target_directory()?.join("publish");
    let sources = work.join("sources");
    let version = pack(&packages, &work)?;
    lay_out(&packages, &version, &sources, &work)?;
    let home = empty_home(&work, &sources)?;
    install(&home, &work, &version)?;
    build_a_user(&home, &work, &version)?;
    eprintln!("publish: {} packages of version {version}: {}", packages.len(), packages.join(", "));
    Ok(())
}

/// Packs all, and returns their version.
fn pack(packages: &[String], work: &Path) -> Result<String> {
    let chosen = packages.iter().flat_map(|package| ["--package", package]);
    Step::cargo("package --quiet --no-verify --allow-dirty --locked")
        .args(chosen)
        .env("CARGO_TARGET_DIR", &work.to_string_lossy())
        .run("a package could not be packed")?;
    let version = Workspace::load()?.version().context("the packages have no common version")?;
    for package in packages {
        let file = work.join(format!("package/{package}-{version}.crate"));
        ensure!(file.is_file(), "cargo packed no {}", file.display());
    }
    Ok(version)
}

/// The packages, unpacked, in one directory with all that they depend on: a source for cargo.
fn lay_out(packages: &[String], version: &str, sources: &Path, work: &Path) -> Result<()> {
    if sources.exists() {
        fs::remove_dir_all(sources)
            .with_context(|| format!("could not empty {}", sources.display()))?;
    }
    Step::cargo("vendor --quiet --locked --versioned-dirs")
        .args([sources.to_string_lossy()])
        .run("what the packages depend on could not be fetched")?;
    for package in packages {
        let file = work.join(format!("package/{package}-{version}.crate"));
        Step::program("tar")
            .args(["-xzf", &file.to_string_lossy(), "-C", &sources.to_string_lossy()])
            .run("a package could not be unpacked")?;
        let directory = sources.join(format!("{package}-{version}"));
        // Cargo wants to be told the sum of each file; of those that are not listed it asks none.
        write(&directory.join(".cargo-checksum.json"), "{\"files\":{}}")?;
    }
    Ok(())
}

/// A home for cargo in which there is nothing but a word on where packages come from.
fn empty_home(work: &Path, sources: &Path) -> Result<PathBuf> {
    let home = work.join("home");
    for directory in [&home, &work.join("installed")] {
        if directory.exists() {
            fs::remove_dir_all(directory)
                .with_context(|| format!("could not empty {}", directory.display()))?;
        }
    }
    // In single quotes TOML knows no escapes.
    let config = format!(
        "[source.crates-io]\nreplace-with = 'packed'\n\n[source.packed]\ndirectory = '{}'\n\n[net]\noffline = true\n",
        sources.display()
    );
    write(&home.join("config.toml"), config)?;
    Ok(home)
}

/// A cargo that knows this home and no other, started outside of the workspace.
fn outside(verb: &str, home: &Path, work: &Path) -> Step {
    Step::cargo(verb)
        .env("CARGO_HOME", &home.to_string_lossy())
        .env("CARGO_TARGET_DIR", &work.join("built").to_string_lossy())
}

/// `cargo install poach-cli` gives the program, and the program runs.
fn install(home: &Path, work: &Path, version: &str) -> Result<()> {
    let to = work.join("installed");
    outside("install --quiet poach-cli", home, work)
        .args(["--root", &to.to_string_lossy()])
        .run("`cargo install poach-cli` does not work from the packages")?;
    let program = to.join("bin").join(format!("poach{}", std::env::consts::EXE_SUFFIX));
    let program = program.to_string_lossy();
    let says = Step::program(&program).args(["--version"]).output();
    ensure!(says.trim() == format!("poach {version}"), "the installed program says {says:?}");
    let tree = root().join("docs");
    Step::program(&program)
        .args(["scan", &tree.to_string_lossy(), "--depth", "1"])
        .run("the installed program does not scan")?;
    Step::program(&program)
        .args(["check", "ff-cl", "--tasks", "2"])
        .run("the installed program does not check a queue")
}

/// A package that depends on `poach` is built and run.
fn build_a_user(home: &Path, work: &Path, version: &str) -> Result<()> {
    let package = work.join("user");
    let manifest = format!(
        "[package]\nname = \"user\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\npoach = \"{version}\"\n"
    );
    write(&package.join("Cargo.toml"), manifest)?;
    let program = "fn main() {\n    let (a, b) = poach::join(|| 6 * 7, || 0);\n    assert_eq!(a + b, 42);\n}\n";
    write(&package.join("src/main.rs"), program)?;
    let lock = package.join("Cargo.lock");
    if lock.exists() {
        fs::remove_file(&lock).with_context(|| format!("could not remove {}", lock.display()))?;
    }
    outside("run --quiet", home, work)
        .args(["--manifest-path", &package.join("Cargo.toml").to_string_lossy()])
        .run("a program that depends on poach does not build or run")
}

/// Whether the index has no package of these names; with `cargo info`, which asks it.
fn ask_for_names(packages: &[String]) -> Result<()> {
    // Asked for with a registry named, cargo does not look into the workspace.
    let answer = |package: &str| Step::cargo("info --registry crates-io").args([package]).output();
    // No answer means that there is no such package only where the index can be asked.
    ensure!(!answer("serde").is_empty(), "the package index cannot be asked for names");
    let (mut taken, mut free) = (Vec::new(), Vec::new());
    for package in packages {
        let names = if answer(package).is_empty() { &mut free } else { &mut taken };
        names.push(package.as_str());
    }
    eprintln!("publish: free are {}", free.join(", "));
    ensure!(taken.is_empty(), "these are on the index already: {}", taken.join(", "));
    Ok(())
}
