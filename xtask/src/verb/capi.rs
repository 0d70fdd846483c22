//! `cargo xtask capi`: the C library is built and installed into a scratch prefix, and its tests pass there.
//!
//! Each program of `capi/tests/c` is compiled with each compiler that is there, without a warning, against the shared and the static library, and run.
//! With `--sanitizers` again under `AddressSanitizer` with `UndefinedBehaviorSanitizer`, and under valgrind.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::run::{Step, has_program, need_program};
use crate::workspace;

/// What `cargo xtask capi` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run the programs under the sanitizers and valgrind, too; install clang and valgrind if they are missing.
    #[arg(long)]
    sanitizers: bool,
    /// Only build and install, optimised, into this directory.
    #[arg(long)]
    prefix: Option<PathBuf>,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
const WARNINGS: &str = "-Wall -Wextra -Werror";
const SYSTEM: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(cfg!(target_os = "linux"), "the C library is built on Linux only");
    need_program("cc", "--version", "gcc")?;
    need_program("g++", "--version", "g++")?;
    let root = workspace::root();
    let target = workspace::target_directory()?;
    if let Some(prefix) = &options.prefix {
        let prefix = std::path::absolute(prefix)?;
        return install(&root, &target, "release", &prefix);
    }
    if options.sanitizers {
        need_program("clang", "--version", "clang")?;
        need_program("valgrind", "--version", "valgrind")?;
    }
    let prefix = target.join("capi/prefix");
    install(&root, &target, "debug", &prefix)?;
    let programs = Programs::of(&root, &target, &prefix)?;
    let compilers: Vec<_> = [("gcc", "g++"), ("clang", "clang++")]
        .into_iter()
        .filter(|(c, _)| has_program(c))
        .collect();
    let mut ran = 0;
    for &compiler in &compilers {
        ran += programs.all(compiler, "-O2", Library::Shared, None)?;
    }
    ran += programs.all(compilers[0], "-O0", Library::Static, None)?;
    packages(&root, &target, &prefix)?;
    if options.sanitizers {
        let sanitizers = "-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all";
        for &compiler in &compilers {
            ran += programs.all(compiler, sanitizers, Library::Static, None)?;
        }
        ran += programs.all(compilers[0], "-g -O1", Library::Static, Some(VALGRIND))?;
    }
    eprintln!("capi: {ran} programs passed, installed in {}", prefix.display());
    Ok(())
}

const VALGRIND: &str = "valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --fair-sched=yes";

/// Builds the libraries and puts them, with the headers, below `prefix`.
fn install(root: &Path, target: &Path, profile: &str, prefix: &Path) -> Result<()> {
    let build = Step::cargo("build --package poach-capi --lib");
    let build = if profile == "release" { build.args(["--release"]) } else { build };
    build.run("the C library does not build")?;
    let capi = root.join("capi");
    let (include, lib) = (prefix.join("include"), prefix.join("lib"));
    for directory in [include.join("poach/lace"), lib.join("pkgconfig"), lib.join("cmake/poach")] {
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    }
    for header in
        ["poach.h", "poach.hpp", "poach/fork.h", "poach/lace/lace.h", "poach/lace/lace14.h"]
    {
        copy(&capi.join("include").join(header), &include.join(header))?;
    }
    let archive = target.join(profile).join("libpoach_capi.a");
    copy(&archive, &lib.join("libpoach.a"))?;
    let shared = lib.join(format!("libpoach.so.{VERSION}"));
    Step::program("cc")
        .args(["-shared", "-o", text(&shared)?, "-Wl,--whole-archive", text(&archive)?])
        .args(["-Wl,--no-whole-archive", "-Wl,--gc-sections", "-Wl,-soname,libpoach.so.0"])
        // Threads of its pools may run its code as long as the process lasts: so `dlclose` leaves it where it is.
        .args(["-Wl,-z,nodelete", "-Wl,-z,defs"])
        .args([format!("-Wl,--version-script={}", capi.join("poach.map").display())])
        .args(SYSTEM)
        .args(["-lgcc_s"])
        .run("the shared library could not be linked")?;
    for name in ["libpoach.so.0", "libpoach.so"] {
        let link = lib.join(name);
        _ = fs::remove_file(&link);
        #[cfg(unix)]
        std::os::unix::fs::symlink(format!("libpoach.so.{VERSION}"), &link)?;
    }
    for package in ["poach.pc", "poach-lace.pc"] {
        let template = fs::read_to_string(capi.join(format!("{package}.in")))?;
        let filled = template.replace("@PREFIX@", text(prefix)?).replace("@VERSION@", VERSION);
        fs::write(lib.join("pkgconfig").join(package), filled)?;
    }
    copy(&capi.join("poach-config.cmake"), &lib.join("cmake/poach/poach-config.cmake"))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

#[derive(Clone, Copy)]
enum Library {
    Shared,
    Static,
}

/// The programs of `capi/tests/c`.
struct Programs {
    sources: Vec<PathBuf>,
    into: PathBuf,
    prefix: PathBuf,
}

impl Programs {
    fn of(root: &Path, target: &Path, prefix: &Path) -> Result<Programs> {
        let into = target.join("capi/tests");
        fs::create_dir_all(&into)?;
        let mut sources = Vec::new();
        for entry in fs::read_dir(root.join("capi/tests/c"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "c" || extension == "cpp") {
                sources.push(path);
            }
        }
        sources.sort();
        ensure!(!sources.is_empty(), "capi/tests/c has no programs");
        Ok(Programs { sources, into, prefix: prefix.to_owned() })
    }

    /// Compiles and runs each; how many there are.
    fn all(
        &self,
        compiler: (&str, &str),
        flags: &str,
        library: Library,
        under: Option<&str>,
    ) -> Result<usize> {
        for source in &self.sources {
            self.one(source, compiler, flags, library, under)?;
        }
        Ok(self.sources.len())
    }

    fn one(
        &self,
        source: &Path,
        (c, cpp): (&str, &str),
        flags: &str,
        library: Library,
        under: Option<&str>,
    ) -> Result<()> {
        let name = source.file_stem().and_then(|name| name.to_str()).context("a name")?;
        let program = self.into.join(name);
        let is_c = source.extension().is_some_and(|extension| extension == "c");
        // Lace's interface needs GNU's variadic macros, as Lace's own header does.
        let (compiler, standard) = match (is_c, name.starts_with("lace")) {
            (true, true) => (c, "-std=gnu11"),
            (true, false) => (c, "-std=c11 -Wpedantic"),
            (false, _) => (cpp, "-std=c++17 -Wpedantic"),
        };
        let include = self.prefix.join("include");
        let lib = self.prefix.join("lib");
        let step = Step::program(compiler)
            .args(standard.split(' '))
            .args(WARNINGS.split(' '))
            .args(flags.split(' '))
            .args([
                "-D_GNU_SOURCE",
                "-I",
                text(&include)?,
                "-I",
                text(&include.join("poach/lace"))?,
            ])
            .args([text(source)?, "-o", text(&program)?]);
        let step = match library {
            Library::Shared => step.args([&format!("-L{}", lib.display()), "-lpoach", "-lpthread"]),
            Library::Static => step.args([text(&lib.join("libpoach.a"))?]).args(SYSTEM),
        };
        step.run("a program does not compile")?;
        let run = match under {
            None => Step::program(text(&program)?),
            Some(under) => {
                let mut words = under.split(' ');
                Step::program(words.next().context("a program")?)
                    .args(words)
                    .args([text(&program)?])
            }
        };
        run.env("LD_LIBRARY_PATH", text(&lib)?).run("a program does not pass")
    }
}

/// The library is found by pkg-config and by cmake, where they are.
fn packages(root: &Path, target: &Path, prefix: &Path) -> Result<()> {
    if has_program("pkg-config") {
        Step::program("pkg-config")
            .args(["--exact-version", VERSION, "--cflags", "--libs", "poach-lace"])
            .env("PKG_CONFIG_PATH", text(&prefix.join("lib/pkgconfig"))?)
            .run("pkg-config does not find the library")?;
    }
    if has_program("cmake") {
        let build = target.join("capi/cmake");
        Step::program("cmake")
            .args(["-S", text(&root.join("capi/tests/cmake"))?, "-B", text(&build)?])
            .args([format!("-DCMAKE_PREFIX_PATH={}", prefix.display())])
            .run("cmake does not find the library")?;
        Step::program("cmake")
            .args(["--build", text(&build)?])
            .run("a program does not build by cmake")?;
        Step::program(text(&build.join("lace"))?)
            .run("a program that cmake built does not pass")?;
    }
    Ok(())
}
