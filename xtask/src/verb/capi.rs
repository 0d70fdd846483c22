//! `cargo xtask capi`: the C library is built and installed into a scratch prefix, and its tests
//! pass there.
//!
//! Each program of `capi/tests/c` is compiled with each compiler that is there, without a warning,
//! against the shared and the static library, and run. With `--sanitizers` again under
//! `AddressSanitizer` with `UndefinedBehaviorSanitizer`, under `ThreadSanitizer`, the library
//! included, and under valgrind.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::run::{Step, has_program, need_nightly, need_program, text};
use crate::workspace;

/// What `cargo xtask capi` is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run the programs under the sanitizers and valgrind, too; install clang and valgrind if they
    /// are missing.
    #[arg(long)]
    sanitizers: bool,
    /// Only build and install, optimised, into this directory.
    #[arg(long)]
    prefix: Option<PathBuf>,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
const WARNINGS: &str = "-Wall -Wextra -Wpedantic -Wconversion -Werror";
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
        need_clang(&target)?;
        need_program("valgrind", "--version", "valgrind")?;
    }
    let prefix = target.join("capi/prefix");
    install(&root, &target, "debug", &prefix)?;
    let names = exported(&capi_header(&root)?, &prefix)?;
    let programs = Programs::of(&root, &target, &prefix)?;
    let compilers: Vec<_> = [("gcc", "g++"), ("clang", "clang++")]
        .into_iter()
        .filter(|(c, _)| has_program(c))
        .collect();
    let mut ran = 0;
    let plain = |flags| How { flags, library: Library::Shared, under: None };
    for &compiler in &compilers {
        ran += programs.all(compiler, &plain("-O2"))?;
    }
    let archive = How { library: Library::Static, ..plain("-O0") };
    ran += programs.all(compilers[0], &archive)?;
    packages(&root, &target, &prefix)?;
    if options.sanitizers {
        let flags = "-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all";
        for &compiler in &compilers {
            ran += programs.all(compiler, &How { flags, ..archive })?;
        }
        let flags = "-g -O1";
        ran += programs.all(compilers[0], &How { flags, under: Some(VALGRIND), ..archive })?;
        let raced = thread_sanitized(&root, &target)?;
        let flags = "-g -O1 -fsanitize=thread";
        let raced_archive = How { flags, library: Library::Thread, under: None };
        for &compiler in &compilers {
            ran += raced.all(compiler, &raced_archive)?;
        }
    }
    eprintln!(
        "capi: {ran} programs passed, {names} names exported, installed in {}",
        prefix.display()
    );
    Ok(())
}

const VALGRIND: &str = "valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --fair-sched=yes";

/// Clang, and its own sanitizers, without which it links with none: Debian has them in a package of
/// the compiler's version.
fn need_clang(target: &Path) -> Result<()> {
    need_program("clang", "--version", "clang")?;
    let (source, program) = (target.join("capi/empty.c"), target.join("capi/empty"));
    fs::create_dir_all(target.join("capi"))?;
    fs::write(&source, "int main(void) { return 0; }\n")?;
    let link = || {
        Step::program("clang")
            .args(["-fsanitize=address", text(&source)?, "-o", text(&program)?])
            .run("clang has no sanitizers")
    };
    if link().is_ok() {
        return Ok(());
    }
    let version = Step::program("clang").args(["-dumpversion"]).output();
    let major = version.trim().split('.').next().unwrap_or_default().to_owned();
    Step::program("apt-get")
        .args([
            "install",
            "--yes",
            "--quiet",
            "--no-install-recommends",
            &format!("libclang-rt-{major}-dev"),
        ])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run("clang's sanitizers could not be installed")?;
    link()
}

const HEADERS: [&str; 9] = [
    "poach.h",
    "poach.hpp",
    "poach/fork.h",
    "poach/lace_tasks.h",
    "poach/lace/lace.h",
    "poach/lace/lace14.h",
    "poach/lace2/lace.h",
    "poach/lace2/lace32.h",
    "poach/lace2/lace128.h",
];

/// Puts the headers below `prefix`.
fn headers(root: &Path, prefix: &Path) -> Result<()> {
    let (from, to) = (root.join("capi/include"), prefix.join("include"));
    for directory in [to.join("poach/lace"), to.join("poach/lace2")] {
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    }
    for header in HEADERS {
        copy(&from.join(header), &to.join(header))?;
    }
    Ok(())
}

/// Builds the libraries and puts them, with the headers, below `prefix`.
fn install(root: &Path, target: &Path, profile: &str, prefix: &Path) -> Result<()> {
    let build = Step::cargo("build --package poach-capi --lib");
    let build = if profile == "release" { build.args(["--release"]) } else { build };
    build.run("the C library does not build")?;
    lay_out(root, &target.join(profile).join("libpoach_capi.a"), "cc", prefix)
}

/// Puts the headers, the static library `archive`, the shared library that `linker` makes of it,
/// and the files by which builds find them, below `prefix`. All of it may be moved.
pub(super) fn lay_out(root: &Path, archive: &Path, linker: &str, prefix: &Path) -> Result<()> {
    let capi = root.join("capi");
    let lib = prefix.join("lib");
    for directory in [lib.join("pkgconfig"), lib.join("cmake/poach")] {
        fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    }
    headers(root, prefix)?;
    copy(archive, &lib.join("libpoach.a"))?;
    let shared = lib.join(format!("libpoach.so.{VERSION}"));
    Step::program(linker)
        .args(["-shared", "-o", text(&shared)?, "-Wl,--whole-archive", text(archive)?])
        .args(["-Wl,--no-whole-archive", "-Wl,--gc-sections", "-Wl,-soname,libpoach.so.0"])
        // Threads of its pools may run its code as long as the process lasts: so `dlclose` leaves
        // it where it is.
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
    for package in ["poach.pc", "poach-lace.pc", "poach-lace2.pc"] {
        fill(&capi, package, &lib.join("pkgconfig"))?;
    }
    let cmake = lib.join("cmake/poach");
    fill(&capi, "poach-config-version.cmake", &cmake)?;
    copy(&capi.join("poach-config.cmake"), &cmake.join("poach-config.cmake"))
}

/// A file from its template.
fn fill(capi: &Path, name: &str, to: &Path) -> Result<()> {
    let template = fs::read_to_string(capi.join(format!("{name}.in")))?;
    fs::write(to.join(name), template.replace("@VERSION@", VERSION))
        .with_context(|| name.to_owned())
}

/// The library, and all that it is made of, built for `ThreadSanitizer`: it must see each access of
/// both sides, and the standard library's.
fn thread_sanitized(root: &Path, target: &Path) -> Result<Programs> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    need_nightly(&["rust-src"])?;
    let own = target.join("capi/thread");
    Step::nightly("build --package poach-capi --lib -Zbuild-std --target")
        .args([TARGET, "--target-dir", text(&own)?])
        .env("RUSTFLAGS", "-Zsanitizer=thread")
        .run("the C library does not build for ThreadSanitizer")?;
    let prefix = own.join("prefix");
    headers(root, &prefix)?;
    fs::create_dir_all(prefix.join("lib"))?;
    copy(&own.join(TARGET).join("debug/libpoach_capi.a"), &prefix.join("lib/libpoach.a"))?;
    // The compilers' own run-time library may be older than what Rust's code calls.
    let sysroot = Step::program("rustc").args(["+nightly", "--print", "sysroot"]).output();
    let runtime = format!("lib/rustlib/{TARGET}/lib/librustc-nightly_rt.tsan.a");
    copy(&Path::new(sysroot.trim()).join(runtime), &prefix.join("lib/libtsan.a"))?;
    let mut programs = Programs::of(root, target, &prefix)?;
    // It loads the shared library, which is not built so.
    programs.sources.retain(|source| !source.ends_with("dlclose.c"));
    Ok(programs)
}

/// What `poach.h` declares, in one string.
fn capi_header(root: &Path) -> Result<String> {
    let header = root.join("capi/include/poach.h");
    fs::read_to_string(&header).with_context(|| header.display().to_string())
}

/// The shared library has each function that the header declares, with its version, and nothing
/// else. How many there are.
fn exported(header: &str, prefix: &Path) -> Result<usize> {
    let library = prefix.join("lib/libpoach.so");
    let listed = Step::program("nm").args(["-D", "--defined-only", text(&library)?]).output();
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next_back()).collect();
    let version = names.iter().filter(|name| **name == VERSION_NODE).count();
    ensure!(version == 1, "{}: the version {VERSION_NODE} is not defined", library.display());
    let mut own = Vec::new();
    for name in names.into_iter().filter(|name| *name != VERSION_NODE) {
        match name.split_once("@@") {
            Some((name, VERSION_NODE)) if name.starts_with("poach_") => own.push(name),
            _ => bail!(
                "{}: {name} is exported, and is none of poach_..@@{VERSION_NODE}",
                library.display()
            ),
        }
    }
    for name in declared(header) {
        ensure!(own.contains(&name), "{}: {name} is declared, and not exported", library.display());
    }
    Ok(own.len())
}

const VERSION_NODE: &str = "POACH_0.1";

/// The names of the functions that a header declares.
fn declared(header: &str) -> Vec<&str> {
    header
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_alphabetic()))
        .filter(|line| !line.starts_with("typedef"))
        .filter_map(|line| {
            let before = &line[..line.find('(')?];
            let at = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')? + 1;
            Some(&before[at..]).filter(|name| name.starts_with("poach_"))
        })
        .collect()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}

/// How a program is compiled, and run.
#[derive(Clone, Copy)]
struct How<'a> {
    flags: &'a str,
    library: Library,
    under: Option<&'a str>,
}

#[derive(Clone, Copy)]
enum Library {
    Shared,
    Static,
    /// The static library, built for `ThreadSanitizer`, with Rust's run-time library for it.
    Thread,
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
    fn all(&self, compiler: (&str, &str), how: &How<'_>) -> Result<usize> {
        for source in &self.sources {
            self.one(source, compiler, how)?;
        }
        Ok(self.sources.len())
    }

    fn one(&self, source: &Path, (c, cpp): (&str, &str), how: &How<'_>) -> Result<()> {
        let name = source.file_stem().and_then(|name| name.to_str()).context("a name")?;
        let program = self.into.join(name);
        let is_c = source.extension().is_some_and(|extension| extension == "c");
        // Lace's interface needs GNU's variadic macros, as Lace's own header does.
        let (compiler, standard) = match (is_c, name.starts_with("lace")) {
            (true, true) => (c, "-std=gnu11"),
            (true, false) => (c, "-std=c11"),
            (false, _) => (cpp, "-std=c++17"),
        };
        // g++ lets nothing turn this warning off but its own flag.
        let calls_without_arguments = !is_c && name.starts_with("lace");
        let fewer = ["-Wno-pedantic"].into_iter().filter(|_| calls_without_arguments);
        let include = self.prefix.join("include");
        let lace = if name.starts_with("lace2") { "poach/lace2" } else { "poach/lace" };
        let lib = self.prefix.join("lib");
        let object = program.with_extension("o");
        Step::program(compiler)
            .args(standard.split(' '))
            .args(WARNINGS.split(' '))
            .args(fewer)
            .args(how.flags.split(' '))
            .args(["-D_GNU_SOURCE", "-I", text(&include)?, "-I", text(&include.join(lace))?])
            .args(["-c", text(source)?, "-o", text(&object)?])
            .run("a program does not compile")?;
        let step = Step::program(compiler).args([text(&object)?, "-o", text(&program)?]);
        let archive = lib.join("libpoach.a");
        let step = match how.library {
            Library::Shared => step.args(how.flags.split(' ')).args([
                &format!("-L{}", lib.display()),
                "-lpoach",
                "-lpthread",
                "-ldl",
            ]),
            Library::Static => step.args(how.flags.split(' ')).args([text(&archive)?]).args(SYSTEM),
            Library::Thread => step
                .args([text(&archive)?, "-Wl,--whole-archive", text(&lib.join("libtsan.a"))?])
                .args(["-Wl,--no-whole-archive", "-Wl,--export-dynamic", "-lrt"])
                .args(SYSTEM),
        };
        step.run("a program cannot be linked")?;
        let run = match how.under {
            None => Step::program(text(&program)?),
            Some(under) => {
                let mut words = under.split(' ');
                Step::program(words.next().context("a program")?)
                    .args(words)
                    .args([text(&program)?])
            }
        };
        // A child of `fork` makes pools of its own in one of the tests.
        run.env("TSAN_OPTIONS", "halt_on_error=1 die_after_fork=0")
            .env("LD_LIBRARY_PATH", text(&lib)?)
            // What is to end with a message does not read this much debug information first, which
            // takes minutes under `ThreadSanitizer`.
            .env("RUST_BACKTRACE", "0")
            .run("a program does not pass")
    }
}

/// Another project finds the library by pkg-config and by cmake, where they are, and its programs
/// pass.
fn packages(root: &Path, target: &Path, prefix: &Path) -> Result<()> {
    let tests = root.join("capi/tests");
    let lib = prefix.join("lib");
    if has_program("pkg-config") {
        for (package, program) in
            [("poach", "calls"), ("poach-lace", "lace"), ("poach-lace2", "lace2")]
        {
            let found = Step::program("pkg-config")
                .args(["--cflags", "--libs", &format!("{package} = {VERSION}")])
                .env("PKG_CONFIG_PATH", text(&lib.join("pkgconfig"))?)
                .output();
            ensure!(!found.is_empty(), "pkg-config does not find {package} {VERSION}");
            let built = target.join("capi/tests").join(format!("{program}_by_pkg_config"));
            Step::program("cc")
                .args([text(&tests.join(format!("c/{program}.c")))?, "-o", text(&built)?])
                .args(found.split_whitespace())
                .args(["-lpthread"])
                .run("a program does not build by pkg-config")?;
            Step::program(text(&built)?)
                .env("LD_LIBRARY_PATH", text(&lib)?)
                .run("a program that pkg-config helped to build does not pass")?;
        }
    }
    if has_program("cmake") {
        let installed = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
        let beside = format!("-DPOACH_TARGET_DIRECTORY={}", target.display());
        let programs = ["lace", "lace2", "fork_static", "lambdas"];
        for (project, finds) in [("cmake", installed), ("cmake_source", beside)] {
            let build = target.join("capi").join(project);
            _ = fs::remove_dir_all(&build);
            Step::program("cmake")
                .args(["-S", text(&tests.join(project))?, "-B", text(&build)?, &finds])
                .run("cmake does not find the library")?;
            Step::program("cmake")
                .args(["--build", text(&build)?])
                .run("a program does not build by cmake")?;
            for program in programs {
                Step::program(text(&build.join(program))?)
                    .run("a program that cmake built does not pass")?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_of_a_header_are_found() {
        let header = "/* poach_no(void) */\ntypedef void (*poach_body)(int);\nstruct poach_x {\n    int (*poach_y)(int);\n};\n\
                      poach_status poach_run(const poach_pool *pool,\n                  int body(int));\n\
                      void *poach_task(void);\nextern int poach_word;\n";
        assert_eq!(declared(header), ["poach_run", "poach_task"]);
    }
}
