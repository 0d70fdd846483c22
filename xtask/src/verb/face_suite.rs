//! `cargo xtask face-suite`: the published tests and examples of crossbeam-deque and st3, on the
//! originals and on the faces of `poach_deque` that have their names; and the tests of two crates
//! that stand on crossbeam-deque.
//!
//! A crate of the original's name and version that consists of `pub use poach_deque::crossbeam::*;`
//! is put in its place by a `[patch.crates-io]` block, so that no line of what is tested changes.
//! The number of tests that must pass is that of the original.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use walkdir::WalkDir;

use crate::published::{cargo, copy, documentation, read, unpacked, write};
use crate::workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The packages whose tests are run. st3's take a minute of two processors.
    #[arg(long, value_delimiter = ',', default_value = "crossbeam-deque,st3,ignore,rayon-core")]
    package: Vec<String>,
    /// How often the tests are run on the faces.
    #[arg(long, default_value_t = 1)]
    times: u32,
}

/// A published queue, and what of `poach_deque` has its names.
struct Face {
    name: &'static str,
    module: &'static str,
    /// The files of tests, without those for loom.
    tests: &'static [&'static str],
    /// What these need, as lines of a manifest.
    needs: &'static str,
    features: &'static str,
}

const CROSSBEAM: Face = Face {
    name: "crossbeam-deque",
    module: "crossbeam",
    tests: &["fifo.rs", "injector.rs", "lifo.rs", "steal.rs"],
    needs: "crossbeam-utils = \"0.8\"\nrand = \"0.8\"\n",
    features: "default = [\"std\"]\nstd = []\n",
};

const ST3: Face = Face {
    name: "st3",
    module: "st3",
    tests: &["general.rs"],
    needs: "oorandom = \"11\"\n",
    features: "",
};

/// What stands on crossbeam-deque, and the package of this repository that depends on it.
const ABOVE: [(&str, &str); 2] = [("ignore", "."), ("rayon-core", "compat/original")];

pub(crate) fn run(options: &Options) -> Result<()> {
    let target = workspace::target_directory()?.join("faces");
    let wanted = |name: &str| options.package.iter().any(|package| package == name);
    for face in [CROSSBEAM, ST3] {
        let published = unpacked(&workspace::root(), face.name)?;
        let stand_in = face.stand_in(&published, &target)?;
        if !wanted(face.name) {
            continue;
        }
        let tests = |directory: &PathBuf, original: bool, kind: &[&str]| {
            let what = format!("a test of {} fails", face.name);
            checked(directory, face.name, original)?;
            cargo("test --release", directory, &target).args(kind.iter().copied()).run_tests(&what)
        };
        let original = target.join(format!("{}-on-original", face.name));
        let ours = target.join(format!("{}-on-poach", face.name));
        face.make(&published, &original, "")?;
        face.make(&published, &ours, &patch(face.name, &stand_in))?;
        for kind in [["--tests"], ["--doc"]] {
            let expected = tests(&original, true, &kind)?;
            ensure!(expected > 0, "no test of {} ran", face.name);
            for _ in 0..options.times {
                let passed = tests(&ours, false, &kind)?;
                ensure!(
                    passed == expected,
                    "{passed} tests passed, and {expected} on the original"
                );
            }
            eprintln!("face-suite: {} {}: {expected} passed on both", face.name, kind[0]);
        }
    }
    let stand_in = target.join("crossbeam-deque");
    for (name, of) in ABOVE.into_iter().filter(|(name, _)| wanted(name)) {
        let published = unpacked(&workspace::root().join(of), name)?;
        let mut expected = 0;
        for original in [true, false] {
            let copied =
                target.join(format!("{name}-on-{}", if original { "original" } else { "poach" }));
            copy(&published, &copied, false)?;
            // Its lock file may name another version than the stand-in has.
            let lock = copied.join("Cargo.lock");
            if lock.exists() {
                std::fs::remove_file(&lock)
                    .with_context(|| format!("could not remove {}", lock.display()))?;
            }
            if !original {
                let manifest = copied.join("Cargo.toml");
                let patched = read(&manifest)? + &patch(CROSSBEAM.name, &stand_in);
                write(&manifest, patched)?;
            }
            checked(&copied, CROSSBEAM.name, original)?;
            let what = format!("a test of {name} fails");
            let times = if original { 1 } else { options.times };
            for _ in 0..times {
                let passed =
                    cargo("test --release --lib --tests", &copied, &target).run_tests(&what)?;
                if original {
                    expected = passed;
                }
                ensure!(
                    passed == expected,
                    "{passed} tests of {name} passed, and {expected} on the original"
                );
            }
        }
        eprintln!("face-suite: {name}: {expected} tests passed on both");
    }
    Ok(())
}

impl Face {
    /// The crate of the original's name that is the face.
    fn stand_in(&self, published: &Path, target: &Path) -> Result<PathBuf> {
        let to = target.join(self.name);
        let Face { name, module, features, .. } = self;
        let version = version(published)?;
        let deque = workspace::root().join("crates/deque");
        // In single quotes TOML knows no escapes.
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2024\"\n\n[workspace]\n\n[features]\n{features}\n\
             [dependencies]\npoach-deque = {{ path = '{}' }}\n",
            deque.display()
        );
        write(&to.join("Cargo.toml"), manifest)?;
        write(&to.join("src/lib.rs"), format!("pub use poach_deque::{module}::*;\n"))?;
        Ok(to)
    }

    /// A package of the original's tests, and of its documentation with its examples.
    fn make(&self, published: &Path, to: &Path, patch: &str) -> Result<()> {
        let Face { name, needs, .. } = self;
        let version = version(published)?;
        let manifest = format!(
            "[package]\nname = \"{name}-tests\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[workspace]\n\n\
             [dependencies]\n{name} = \"={version}\"\n\n[dev-dependencies]\n{needs}{patch}"
        );
        write(&to.join("Cargo.toml"), manifest)?;
        let mut root = String::new();
        for entry in WalkDir::new(published.join("src")).sort_by_file_name() {
            let entry = entry?;
            if entry.path().extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let module = entry.path().with_extension("");
            let module = module.file_name().context("a file has a name")?.to_string_lossy();
            // Writing to a string does not fail.
            let _ = writeln!(
                root,
                "#[doc = include_str!(\"{module}.md\")]\npub mod {module}_documentation {{}}"
            );
            write(&to.join(format!("src/{module}.md")), documentation(&read(entry.path())?))?;
        }
        write(&to.join("src/lib.rs"), root)?;
        for test in self.tests {
            write(&to.join("tests").join(test), read(&published.join("tests").join(test))?)?;
        }
        Ok(())
    }
}

fn patch(name: &str, stand_in: &Path) -> String {
    format!("\n[patch.crates-io]\n{name} = {{ path = '{}' }}\n", stand_in.display())
}

/// The version of a package that cargo has unpacked: the end of its directory's name.
fn version(published: &Path) -> Result<String> {
    let name = published.file_name().context("a package lies in a directory")?.to_string_lossy();
    let (_, version) =
        name.rsplit_once('-').context("a package's directory ends in its version")?;
    Ok(version.to_owned())
}

/// That the package in `directory` is built on the original, or on the face.
fn checked(directory: &Path, name: &str, original: bool) -> Result<()> {
    let from = unpacked(directory, name)?;
    let ours = from.ends_with(Path::new("faces").join(name));
    ensure!(ours != original, "{} takes {name} from {}", directory.display(), from.display());
    Ok(())
}
