//! `cargo xtask dist`: what people install who have no Rust, made of the commit in hand.
//!
//! Everything is built in a clone of the commit. Paths, times and names of this machine are mapped
//! away, so that two builds of one commit with one toolchain should be equal to the bit; `--twice`
//! compares two. `--check` installs what was made and tries it. `packaging/` has the templates of
//! the files for package managers, the manifests of `poach-cli` and `poach-capi` the lists for
//! Debian.

mod channels;
mod check;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::capi;
use super::python::Environment;
use crate::run::{Step, need_target, text};
use crate::workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only for these targets; wheels are made for all. What was built before for other targets
    /// stays.
    #[arg(long, value_delimiter = ',')]
    target: Vec<String>,
    /// Only these. What was built before of the others stays.
    #[arg(long, value_delimiter = ',', value_parser = ["program", "c", "wheels"])]
    only: Vec<String>,
    /// Where the releases will lie; by default the workspace's `repository`.
    #[arg(long)]
    repository: Option<String>,
    /// Build a second time, in another directory, and compare all files that are made, but for
    /// `channels/`.
    #[arg(long)]
    twice: bool,
    /// Build nothing: install what was built in roots without anything of ours, try it, remove it.
    #[arg(long)]
    check: bool,
}

/// The checksum of each file.
type Sums = BTreeMap<String, String>;

/// A platform that programs are built for.
struct Platform {
    target: &'static str,
    linker: &'static str,
    /// Debian's name of the architecture.
    debian: Option<&'static str>,
    /// The target of the C library, and the compiler that links it.
    library: Option<(&'static str, &'static str)>,
}

/// The first runs here, and writes the manual and the completions of all.
const PLATFORMS: [Platform; 3] = [
    Platform {
        target: "x86_64-unknown-linux-musl",
        linker: "rust-lld",
        debian: Some("amd64"),
        library: Some(("x86_64-unknown-linux-gnu", "x86_64-linux-gnu-gcc")),
    },
    Platform {
        target: "aarch64-unknown-linux-musl",
        linker: "rust-lld",
        debian: Some("arm64"),
        library: Some(("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc")),
    },
    Platform {
        target: "x86_64-pc-windows-gnu",
        linker: "x86_64-w64-mingw32-gcc",
        debian: None,
        library: None,
    },
];

/// What is run, how it says that it is there, and how it is installed.
const TOOLS: [(&str, &str, &str); 8] = [
    ("cargo-deb", "--version", "cargo install cargo-deb --locked"),
    ("cargo-about", "--version", "cargo install cargo-about --locked --features cli"),
    ("cargo-cyclonedx", "cyclonedx --version", "cargo install cargo-cyclonedx --locked"),
    ("x86_64-linux-gnu-gcc", "--version", "apt-get install gcc"),
    ("aarch64-linux-gnu-gcc", "--version", "apt-get install gcc-aarch64-linux-gnu"),
    ("x86_64-w64-mingw32-gcc", "--version", "apt-get install gcc-mingw-w64-x86-64"),
    ("tar", "--version", "apt-get install tar"),
    ("zip", "--version", "apt-get install zip"),
];

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(
        cfg!(all(target_os = "linux", target_arch = "x86_64")),
        "releases are built on Linux on x86-64, which the first of their targets runs on"
    );
    let known = |target: &String| PLATFORMS.iter().any(|platform| platform.target == target);
    if let Some(target) = options.target.iter().find(|target| !known(target)) {
        let targets: Vec<_> = PLATFORMS.iter().map(|platform| platform.target).collect();
        bail!("nothing is released for {target}; the targets are {}", targets.join(", "));
    }
    let work = workspace::target_directory()?.join("dist");
    let version = env!("CARGO_PKG_VERSION");
    if options.check {
        return check::run(&work, version);
    }
    let commit = free(version)?;
    need_tools(&missing())?;
    let dist = Dist::of(options, &work, version, &commit);
    let sums = dist.make(options)?;
    if options.twice {
        let again = Dist::of(options, &work.join("again"), version, &commit);
        _ = fs::remove_dir_all(&again.out);
        let names = differing(&sums, &again.make(options)?);
        ensure!(names.is_empty(), "two builds of {commit} differ in {}", names.join(", "));
        eprintln!("dist: two builds in two directories are equal to the bit");
    }
    for name in sums.keys() {
        println!("{:>12}  {name}", fs::metadata(dist.out.join(name))?.len());
    }
    eprintln!("dist: {} files of {version} in {}", sums.len(), dist.out.display());
    Ok(())
}

/// The files of a build that differ from those of the first. Beside its own files the first may
/// have those of earlier builds, of which `again` made none.
fn differing(first: &Sums, again: &Sums) -> Vec<String> {
    let differs = again.iter().filter(|(name, sum)| first.get(*name) != Some(sum));
    differs.map(|(name, _)| name.clone()).collect()
}

/// The commit in hand, if all is committed and no other one has this version.
fn free(version: &str) -> Result<String> {
    let git = |words: &str| Step::program("git").args(words.split(' ')).output().trim().to_owned();
    let changed = git("status --porcelain");
    ensure!(
        changed.is_empty(),
        "not committed, and so not in what is released:\n{changed}\nCommit it, or build in a clean clone"
    );
    let commit = git("rev-parse HEAD");
    let tagged = git(&format!("rev-parse --quiet --verify refs/tags/v{version}^{{commit}}"));
    ensure!(
        tagged.is_empty() || tagged == commit,
        "version {version} exists: the tag v{version} is {tagged}, and this is {commit}. \
         `cargo release` makes the next version"
    );
    Ok(commit)
}

/// The tools that are not there.
fn missing() -> Vec<(&'static str, &'static str)> {
    let there = |(program, words, _): &&(&str, &str, &str)| {
        !Step::program(program).args(words.split(' ')).succeeds()
    };
    TOOLS.iter().filter(there).map(|&(program, _, install)| (program, install)).collect()
}

fn need_tools(missing: &[(&str, &str)]) -> Result<()> {
    let lines: Vec<_> = missing.iter().map(|(tool, get)| format!("  {tool}: {get}")).collect();
    ensure!(lines.is_empty(), "tools that a release needs are missing:\n{}", lines.join("\n"));
    Ok(())
}

/// A release in the making.
struct Dist<'a> {
    version: &'a str,
    commit: &'a str,
    repository: Option<&'a str>,
    work: PathBuf,
    /// The clone.
    source: PathBuf,
    build: PathBuf,
    /// The directories that archives are made of.
    stage: PathBuf,
    out: PathBuf,
}

impl<'a> Dist<'a> {
    fn of(options: &'a Options, work: &Path, version: &'a str, commit: &'a str) -> Dist<'a> {
        Dist {
            version,
            commit,
            repository: options.repository.as_deref(),
            work: work.to_owned(),
            source: work.join("source"),
            build: work.join("build"),
            stage: work.join("stage"),
            out: work.join("out"),
        }
    }

    /// Makes all, and returns the checksums.
    fn make(&self, options: &Options) -> Result<Sums> {
        let is_whole = options.target.is_empty() && options.only.is_empty();
        for directory in
            [&self.source, &self.stage].into_iter().chain(is_whole.then_some(&self.out))
        {
            _ = fs::remove_dir_all(directory);
        }
        fs::create_dir_all(&self.out)?;
        let from = workspace::root();
        Step::program("git")
            .args(["clone", "--quiet", "--shared", text(&from)?, text(&self.source)?])
            .run("the repository could not be cloned")?;
        Step::program("git")
            .args(["checkout", "--quiet", "--detach", self.commit])
            .within(&self.source)
            .run("the commit is not in the clone")?;
        let wants =
            |part: &str| options.only.is_empty() || options.only.iter().any(|it| it == part);
        let is_chosen = |platform: &&Platform| {
            options.target.is_empty() || options.target.iter().any(|it| it == platform.target)
        };
        if wants("program") {
            let pages = self.pages()?;
            for platform in PLATFORMS.iter().filter(is_chosen) {
                self.program(platform, &pages)?;
            }
        }
        for platform in PLATFORMS.iter().filter(is_chosen) {
            if let (Some(library), true) = (platform.library, wants("c")) {
                self.library(library)?;
            }
        }
        if wants("wheels") {
            self.wheels()?;
        }
        let sums = self.sums()?;
        if wants("program") {
            channels::write(
                &self.source,
                &self.out.join("channels"),
                self.version,
                self.repository,
                &sums,
            )?;
        }
        Ok(sums)
    }

    /// `cargo <verb>` in the clone, as a release is built.
    fn cargo(&self, verb: &str, linker: &str) -> Result<Step> {
        self.released(Step::cargo(verb), &[format!("-Clinker={linker}")])
    }

    /// What runs in the clone, and builds there as for a release.
    fn released(&self, step: Step, more: &[String]) -> Result<Step> {
        let home = std::env::var("CARGO_HOME")
            .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
        let home = home.context("neither CARGO_HOME nor HOME is set")?;
        let sysroot = Step::program("rustc").args(["--print", "sysroot"]).output();
        let flags = [
            // The later ones go before the earlier ones.
            format!("--remap-path-prefix={}=/rust", sysroot.trim()),
            format!("--remap-path-prefix={home}=/cargo"),
            format!("--remap-path-prefix={}=/poach", self.work.display()),
        ];
        let flags = [&flags, more].concat();
        Ok(step
            .within(&self.source)
            .env("CARGO_TARGET_DIR", text(&self.build)?)
            .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
            .env("CARGO_ENCODED_RUSTFLAGS", &flags.join("\x1f"))
            .env("SOURCE_DATE_EPOCH", &self.epoch()?))
    }

    /// When the commit was made, in seconds since 1970.
    fn epoch(&self) -> Result<String> {
        let epoch =
            Step::program("git").args(["show", "--no-patch", "--format=%ct", self.commit]).output();
        ensure!(!epoch.is_empty(), "git has no commit {}", self.commit);
        Ok(epoch.trim().to_owned())
    }

    /// The program for a platform.
    fn binary(&self, platform: &Platform) -> Result<PathBuf> {
        need_target(platform.target)?;
        self.cargo(
            "build --quiet --release --locked --package poach-cli --target",
            platform.linker,
        )?
        .args([platform.target])
        .run(&format!("the program does not build for {}", platform.target))?;
        let name = if platform.target.contains("windows") { "poach.exe" } else { "poach" };
        Ok(self.build.join(platform.target).join("release").join(name))
    }

    /// The manual and the completions, by the program itself, and the licences of what it is made
    /// of on any platform.
    fn pages(&self) -> Result<PathBuf> {
        let program = self.binary(&PLATFORMS[0])?;
        let pages = self.stage.join("pages");
        let (man, completions) = (pages.join("man"), pages.join("completions"));
        fs::create_dir_all(&completions)?;
        Step::program(text(&program)?)
            .args(["man", "--into", text(&man)?])
            .run("the program writes no manual")?;
        for (shell, name) in [
            ("bash", "poach.bash"),
            ("zsh", "_poach"),
            ("fish", "poach.fish"),
            ("powershell", "_poach.ps1"),
        ] {
            let script = Step::program(text(&program)?).args(["completions", shell]).output();
            ensure!(!script.is_empty(), "the program has no completions for {shell}");
            fs::write(completions.join(name), script)?;
        }
        Step::cargo("fetch --quiet --locked").within(&self.source).run("cargo fetches nothing")?;
        Step::cargo("about generate --offline --manifest-path")
            .args([text(&self.source.join("crates/cli/Cargo.toml"))?])
            .args(PLATFORMS.iter().flat_map(|platform| ["--target", platform.target]))
            .args(["--config", text(&self.source.join("packaging/about.toml"))?])
            .args(["--output-file", text(&pages.join("THIRD-PARTY.txt"))?])
            .args([text(&self.source.join("packaging/about.hbs"))?])
            .within(&self.source)
            .run("the licences of the dependencies cannot be gathered")?;
        Ok(pages)
    }

    /// The archive of a platform, its `.deb`, and the list of what the program is made of.
    fn program(&self, platform: &Platform, pages: &Path) -> Result<()> {
        let target = platform.target;
        let binary = self.binary(platform)?;
        let name = format!("poach-{}-{target}", self.version);
        let stage = self.stage.join(&name);
        copy_tree(pages, &stage)?;
        copy(&binary, &stage.join(binary.file_name().context("a name")?))?;
        for file in ["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md"] {
            copy(&self.source.join(file), &stage.join(file))?;
        }
        copy(&self.source.join("crates/cli/README.md"), &stage.join("README.md"))?;
        let manifest = self.source.join("crates/cli/Cargo.toml");
        Step::cargo("cyclonedx --format json --override-filename sbom --manifest-path")
            .args([text(&manifest)?, "--target", target])
            .within(&self.source)
            .env("SOURCE_DATE_EPOCH", &self.epoch()?)
            .run("the list of what the program is made of cannot be written")?;
        // Names of our packages are their directories.
        let sbom = fs::read_to_string(manifest.with_file_name("sbom.json"))?;
        let sbom = sbom.replace(text(&self.work)?, "/poach");
        fs::write(self.out.join(format!("{name}.cdx.json")), sbom)?;
        self.archive(&name, target.contains("windows"))?;
        if platform.debian.is_some() {
            copy_tree(&stage, &manifest.with_file_name("dist"))?;
            self.deb("poach-cli", None, target)?;
        }
        Ok(())
    }

    /// A Debian package, of what was built.
    fn deb(&self, package: &str, variant: Option<&str>, target: &str) -> Result<()> {
        let variant = variant.map_or(vec![], |variant| vec!["--variant", variant]);
        Step::cargo("deb --quiet --no-build --no-strip --package")
            .args([package, "--target", target, "--output", text(&self.out)?])
            .args(variant)
            .within(&self.source)
            .env("CARGO_TARGET_DIR", text(&self.build)?)
            .env("SOURCE_DATE_EPOCH", &self.epoch()?)
            .run(&format!("{package} cannot be packed for Debian"))
    }

    /// The C library: an archive, and the packages `libpoach0` and `libpoach-dev`.
    fn library(&self, (target, linker): (&str, &str)) -> Result<()> {
        need_target(target)?;
        self.cargo("build --quiet --release --locked --package poach-capi --lib --target", linker)?
            .args([target])
            .run(&format!("the C library does not build for {target}"))?;
        let name = format!("libpoach-{}-{target}", self.version);
        let stage = self.stage.join(&name);
        let archive = self.build.join(target).join("release/libpoach_capi.a");
        capi::lay_out(&self.source, &archive, linker, &stage)?;
        let shared = stage.join(format!("lib/libpoach.so.{}", self.version));
        Step::program(&linker.replace("gcc", "strip"))
            .args(["--strip-unneeded", text(&shared)?])
            .run("the shared library cannot be stripped")?;
        for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
            copy(&self.source.join(file), &stage.join(file))?;
        }
        self.archive(&name, false)?;
        let dist = self.source.join("capi/dist");
        _ = fs::remove_dir_all(&dist);
        copy_tree(&stage, &dist)?;
        self.deb("poach-capi", None, target)?;
        self.deb("poach-capi", Some("dev"), target)
    }

    /// The source of the Python package, and its wheels: for each libc and processor one, which all
    /// Pythons from 3.9 take.
    fn wheels(&self) -> Result<()> {
        let tools = Environment(self.work.join("tools"));
        tools.make(false)?;
        tools.pip(&["maturin>=1.9.4,<2", "ziglang"]).run("pip cannot install maturin and zig")?;
        let manifest = self.source.join("python/Cargo.toml");
        let maturin = |verb: &str| -> Result<Step> {
            let step = tools
                .python()
                .args(["-m", "maturin", verb, "--quiet", "--manifest-path", text(&manifest)?])
                .args(["--out", text(&self.out)?]);
            self.released(step, &[])
        };
        maturin("sdist")?.run("the source of the Python package cannot be packed")?;
        for (target, tag) in [
            ("x86_64-unknown-linux-gnu", "manylinux_2_17"),
            ("x86_64-unknown-linux-musl", "musllinux_1_2"),
            ("aarch64-unknown-linux-gnu", "manylinux_2_17"),
            ("aarch64-unknown-linux-musl", "musllinux_1_2"),
        ] {
            need_target(target)?;
            maturin("build")?
                .args([
                    "--release",
                    "--locked",
                    "--zig",
                    "--target",
                    target,
                    "--compatibility",
                    tag,
                ])
                .run(&format!("the wheel for {tag} on {target} does not build"))?;
        }
        Ok(())
    }

    /// An archive of a staged directory, the same whenever it is made.
    fn archive(&self, name: &str, zip: bool) -> Result<()> {
        let epoch = self.epoch()?;
        if !zip {
            return Step::program("tar")
                .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"])
                .args([
                    "--mode=go=rX,u+w",
                    &format!("--mtime=@{epoch}"),
                    "--use-compress-program=gzip -9n",
                ])
                .args(["-cf", text(&self.out.join(format!("{name}.tar.gz")))?])
                .args(["-C", text(&self.stage)?, name])
                .run("an archive could not be made");
        }
        let zip = self.out.join(format!("{name}.zip"));
        let line = format!(
            "find {name} -exec touch --date=@{epoch} {{}} + && \
             find {name} -type f | LC_ALL=C sort | zip -X9q@ \"$0\""
        );
        Step::program("bash")
            .args(["-o", "pipefail", "-c", &line, text(&zip)?])
            .env("TZ", "UTC")
            .within(&self.stage)
            .run("an archive could not be made")
    }

    /// The checksums of all files, which `SHA256SUMS` has, too.
    fn sums(&self) -> Result<Sums> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.out)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_file() && name != "SHA256SUMS" {
                names.push(name);
            }
        }
        names.sort();
        let sums = Step::program("sha256sum").args(&names).within(&self.out).output();
        fs::write(self.out.join("SHA256SUMS"), &sums)?;
        let lines = sums.lines().filter_map(|line| line.split_once("  "));
        Ok(lines.map(|(sum, name)| (name.to_owned(), sum.to_owned())).collect())
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let within = to.parent().context("a file lies in a directory")?;
    fs::create_dir_all(within).with_context(|| within.display().to_string())?;
    fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Copies what is below a directory.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    Step::program("cp")
        .args(["--recursive", "--no-dereference", text(&from.join("."))?, text(to)?])
        .run("a directory cannot be copied")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_is_missing_is_named_with_how_to_get_it() {
        assert!(need_tools(&[]).is_ok());
        let error = need_tools(&[("cargo-deb", "cargo install cargo-deb --locked")]).unwrap_err();
        assert!(error.to_string().contains("cargo-deb: cargo install"), "{error}");
    }

    #[test]
    fn two_builds_of_a_part_are_compared_without_files_of_earlier_builds() {
        let sums = |all: &[(&str, &str)]| -> Sums {
            all.iter().map(|&(name, sum)| (name.to_owned(), sum.to_owned())).collect()
        };
        let first = sums(&[("earlier", "1"), ("equal", "2"), ("other", "3")]);
        assert!(differing(&first, &sums(&[("equal", "2")])).is_empty());
        let again = sums(&[("equal", "2"), ("new", "5"), ("other", "4")]);
        assert_eq!(differing(&first, &again), ["new", "other"]);
    }

    #[test]
    fn a_target_that_nothing_is_released_for_is_refused() {
        let target = vec!["sparc64-unknown-linux-gnu".to_owned()];
        let options =
            Options { target, only: vec![], repository: None, twice: false, check: false };
        let error = run(&options).unwrap_err().to_string();
        assert!(error.contains("sparc64") || error.contains("Linux on x86-64"), "{error}");
    }
}
