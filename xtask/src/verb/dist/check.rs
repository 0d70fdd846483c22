//! `cargo xtask dist --check`: what was made is installed where nothing of ours is, tried, and
//! removed.
//!
//! The roots are a directory with nothing in it but the archive, and Debian 12 and 13 as mmdebstrap
//! makes them from the mirror that this machine's apt uses. Nothing is mounted in them, so there is
//! no `/proc`; the program runs as nobody, whose home cannot be written, without a locale and a
//! terminal. What cannot be tried here is named by a line that says LEFT OUT.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use walkdir::WalkDir;

use super::copy_tree;
use crate::run::{Step, has_program, text};
use crate::workspace;

/// Debian's releases, and what a user of them has installed who tries all of it.
const SUITES: [&str; 2] = ["bookworm", "trixie"];
const PACKAGES: &str = "cmake,fish,g++,make,man-db,pkg-config,python3-venv,zsh";

/// What is run in a root where the packages are installed, and a part of what it prints. An error
/// is printed there as well, and names files and commands: the part is in none of these names.
const PROGRAM: [(&str, &str); 7] = [
    ("poach scan /usr/share", "entries"),
    ("poach doctor --json", "findings"),
    ("man -w poach", "man1/poach.1"),
    ("man poach-scan | cat", "SYNOPSIS"),
    (". /usr/share/bash-completion/completions/poach && complete -p poach", "-F _poach"),
    ("zsh -fc 'autoload -U compinit; compinit -D -u; print -r -- $_comps[poach]'", "_poach"),
    ("fish -c 'complete -C \"poach sc\"'", "scan"),
];

/// The same of the C library. `/tmp/capi` is `capi/tests`.
const LIBRARY: [(&str, &str); 3] = [
    (
        "cc -D_GNU_SOURCE /tmp/capi/c/calls.c $(pkg-config --cflags --libs poach) -o /tmp/calls && /tmp/calls && echo passed",
        "passed",
    ),
    ("cmake -S /tmp/capi/cmake -B /tmp/built && cmake --build /tmp/built && echo passed", "passed"),
    ("/tmp/built/lace && /tmp/built/lambdas && /tmp/built/fork_static && echo passed", "passed"),
];

pub(super) fn run(work: &Path, version: &str) -> Result<()> {
    let out = work.join("out");
    ensure!(
        out.join("SHA256SUMS").is_file(),
        "nothing to check in {}: `cargo xtask dist` makes it",
        out.display()
    );
    Step::program("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .within(&out)
        .run("a file is not what its checksum says")?;
    let checked = Checked { out, roots: work.join("roots"), version };
    checked.empty()?;
    for suite in SUITES {
        if has_program("mmdebstrap") {
            checked.debian(suite)?;
        } else {
            left_out(&format!("Debian's {suite}"), "apt-get install mmdebstrap");
        }
    }
    checked.elsewhere("aarch64-unknown-linux-musl", "qemu-aarch64", "apt-get install qemu-user")?;
    checked.elsewhere("x86_64-pc-windows-gnu", "wine", "apt-get install wine wine64")
}

fn left_out(what: &str, how: &str) {
    eprintln!("dist: LEFT OUT: {what}: {how}");
}

struct Checked<'a> {
    out: PathBuf,
    roots: PathBuf,
    version: &'a str,
}

impl Checked<'_> {
    /// The archive of a target, unpacked; none if it was not made.
    fn unpacked(&self, target: &str) -> Result<Option<PathBuf>> {
        let name = format!("poach-{}-{target}", self.version);
        let root = self.roots.join(target);
        _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root)?;
        let (tar, zip) =
            (self.out.join(format!("{name}.tar.gz")), self.out.join(format!("{name}.zip")));
        if tar.is_file() {
            Step::program("tar").args(["-xzf", text(&tar)?, "-C", text(&root)?]).run("tar")?;
        } else if zip.is_file() {
            Step::program("unzip").args(["-q", text(&zip)?, "-d", text(&root)?]).run("unzip")?;
        } else {
            left_out(target, "it was not built");
            return Ok(None);
        }
        Ok(Some(root.join(name)))
    }

    /// The static program where there is nothing else.
    fn empty(&self) -> Result<()> {
        let Some(unpacked) = self.unpacked("x86_64-unknown-linux-musl")? else { return Ok(()) };
        let program =
            format!("/{}/poach", unpacked.file_name().context("a name")?.to_string_lossy());
        let root = unpacked.parent().context("a root")?;
        let began = Instant::now();
        expect(in_root(root, &[&program, "scan", "/"]), "entries")?;
        expect(in_root(root, &[&program, "--version"]), self.version)?;
        eprintln!(
            "dist: the archive runs in an empty root, a scan and `--version` in {:.2?}",
            began.elapsed()
        );
        self.image(&unpacked)
    }

    /// The image of `packaging/Containerfile`, built without a registry, and run.
    fn image(&self, unpacked: &Path) -> Result<()> {
        if !has_program("buildah") {
            left_out("the image", "apt-get install buildah");
            return Ok(());
        }
        let store = self.roots.join("image");
        let buildah = || -> Result<Step> {
            Ok(Step::program("buildah")
                .args(["--storage-driver", "vfs", "--root", text(&store)?])
                .args(["--runroot", text(&store.join("run"))?]))
        };
        let file = workspace::root().join("packaging/Containerfile");
        buildah()?
            .args(["build", "--quiet", "--isolation", "chroot", "--file", text(&file)?])
            .args(["--tag", "poach", text(unpacked)?])
            .run("the image cannot be built")?;
        let container = buildah()?.args(["from", "--pull-never", "localhost/poach"]).output();
        let run = ["run", "--isolation", "chroot", container.trim(), "/poach", "scan", "/licenses"];
        expect(buildah()?.args(run), "entries")?;
        _ = fs::remove_dir_all(&store);
        eprintln!("dist: the image scans");
        Ok(())
    }

    fn debian(&self, suite: &str) -> Result<()> {
        let root = self.roots.join(suite);
        if !root.join("etc/debian_version").is_file() {
            _ = fs::remove_dir_all(&root);
            let sites = Step::program("apt-get")
                .args(["indextargets", "--format", "$(SITE)", "Created-By: Packages"])
                .output();
            let mirror = sites.lines().next().context("apt on this machine has no mirror")?;
            Step::program("mmdebstrap")
                .args(["--quiet", "--variant=minbase", &format!("--include={PACKAGES}")])
                .args([suite, text(&root)?, mirror])
                .run("Debian's root could not be made")?;
        }
        let tests = root.join("tmp/capi");
        copy_tree(&workspace::root().join("capi/tests"), &tests)?;
        let before = files(&root);
        let mut debs = Vec::new();
        for entry in fs::read_dir(&self.out)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with("_amd64.deb") {
                fs::copy(self.out.join(&name), root.join("tmp").join(&name))?;
                debs.push(name);
            }
        }
        debs.sort();
        let packages: Vec<_> = debs.iter().filter_map(|name| name.split('_').next()).collect();
        let paths: Vec<_> = debs.iter().map(|name| format!("/tmp/{name}")).collect();
        shell(&root, false, &format!("apt-get install --yes {}", paths.join(" ")))
            .run("apt does not install the packages")?;
        let began = Instant::now();
        expect(shell(&root, true, PROGRAM[0].0), PROGRAM[0].1)?;
        let first = began.elapsed();
        for (command, part) in PROGRAM {
            expect(shell(&root, true, command), part)?;
        }
        if packages.iter().any(|name| name.starts_with("libpoach")) {
            for (command, part) in LIBRARY {
                expect(shell(&root, false, command), part)?;
            }
        } else {
            left_out("the C library", "it was not built");
        }
        self.wheel(&root)?;
        shell(&root, false, &format!("apt-get purge --yes {}", packages.join(" ")))
            .run("apt does not remove the packages")?;
        let left: Vec<_> = files(&root).difference(&before).cloned().collect();
        ensure!(left.is_empty(), "{suite}: after a purge there are left {}", left.join(", "));
        eprintln!("dist: {} hold in {suite}, the first scan in {first:.2?}", packages.join(", "));
        Ok(())
    }

    /// The wheel for glibc, by the root's own pip.
    fn wheel(&self, root: &Path) -> Result<()> {
        let is_it = |name: &String| name.contains("manylinux") && name.contains("x86_64");
        let names = fs::read_dir(&self.out)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<Result<Vec<_>>>()?;
        let Some(name) = names.into_iter().find(is_it) else {
            left_out("the wheel", "it was not built");
            return Ok(());
        };
        fs::copy(self.out.join(&name), root.join("tmp").join(&name))?;
        let install = format!(
            "python3 -m venv /tmp/venv && /tmp/venv/bin/pip install --no-index /tmp/{name} && \
             /tmp/venv/bin/python -c 'import poach; print(poach.scan(\"/usr/share\"))'"
        );
        expect(shell(root, false, &install), "Scan")
    }

    /// The program of another platform, under an emulator.
    fn elsewhere(&self, target: &str, emulator: &str, how: &str) -> Result<()> {
        if !has_program(emulator) {
            left_out(target, how);
            return Ok(());
        }
        let Some(directory) = self.unpacked(target)? else { return Ok(()) };
        let name = if target.contains("windows") { "poach.exe" } else { "poach" };
        let program = directory.join(name);
        let run = |words: &[&str]| -> Result<Step> {
            Ok(Step::program(emulator).args([text(&program)?]).args(words))
        };
        expect(run(&["--version"])?, self.version)?;
        expect(run(&["scan", text(&directory)?])?, "entries")?;
        eprintln!("dist: the program for {target} scans under {emulator}");
        Ok(())
    }
}

/// A command in a root, as nobody, with an environment of nothing but a home that cannot be written.
fn in_root(root: &Path, command: &[&str]) -> Step {
    within(root, true).args(command)
}

/// A line of bash in a root.
fn shell(root: &Path, as_nobody: bool, line: &str) -> Step {
    within(root, as_nobody).args(["/bin/bash", "-c", &format!("exec 2>&1; {line}")])
}

fn within(root: &Path, as_nobody: bool) -> Step {
    let user = if as_nobody { "65534:65534" } else { "0:0" };
    Step::program("env")
        .args([
            "-i",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/",
            "DEBIAN_FRONTEND=noninteractive",
        ])
        .args(["chroot", &format!("--userspec={user}"), &root.to_string_lossy()])
}

/// What a command prints has this part.
fn expect(step: Step, part: &str) -> Result<()> {
    let shown = step.shown().to_owned();
    let printed = step.output();
    if !printed.contains(part) {
        bail!("`{shown}` does not print {part:?}, but: {printed}");
    }
    Ok(())
}

/// The files of a root, but for what a package manager writes of its own.
fn files(root: &Path) -> BTreeSet<String> {
    const ITS_OWN: [&str; 4] = ["tmp", "var/cache", "var/lib", "var/log"];
    WalkDir::new(root)
        .into_iter()
        .filter_map(|entry| Some(entry.ok()?.path().strip_prefix(root).ok()?.to_owned()))
        .filter(|path| !ITS_OWN.iter().any(|own| path.starts_with(own)))
        .map(|path| path.display().to_string())
        .collect()
}
