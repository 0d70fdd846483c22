//! What is in the workspace, as cargo tells it: so a new crate, model or stress test is checked
//! from the day it is there, and no list has to be kept.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use cargo_metadata::semver::Version;
use cargo_metadata::{Metadata, MetadataCommand, Package};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let mut path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    path.pop();
    path
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> Result<PathBuf> {
    Ok(Workspace::load()?.0.target_directory.into_std_path_buf())
}

/// Copies the files of the workspace that git knows of.
pub(crate) fn copy(root: &Path, copy: &Path) -> Result<()> {
    copy_if(root, copy, |_| true)
}

/// Copies those files of the workspace that git knows of and whose path is `wanted`.
pub(crate) fn copy_if(root: &Path, copy: &Path, wanted: impl Fn(&str) -> bool) -> Result<()> {
    let output = Command::new("git").arg("ls-files").current_dir(root).output()?;
    for path in String::from_utf8_lossy(&output.stdout).lines().filter(|path| wanted(path)) {
        let (from, to) = (root.join(path), copy.join(path));
        let Ok(new) = std::fs::read(&from) else { continue };
        // What is the same is left alone: cargo goes by the time of the last change.
        if std::fs::read(&to).is_ok_and(|old| old == new) {
            continue;
        }
        if let Some(directory) = to.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(&to, new)?;
    }
    Ok(())
}

/// The rows of a table of `xtask/tables`.
pub(crate) fn table<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
    serde_json::from_str(text).expect("a table is in the repository, and a test reads each")
}

/// The packages of the workspace.
pub(crate) struct Workspace(Metadata);

/// A library that may be published.
#[derive(Debug)]
pub(crate) struct Library {
    /// The package that it belongs to.
    pub(crate) name: String,
    /// The package's directory.
    pub(crate) directory: PathBuf,
}

/// A file of integration tests: a module of the package's test program `it`, or a program of its
/// own.
#[derive(Debug)]
pub(crate) struct Test {
    /// The package that it belongs to.
    pub(crate) package: String,
    /// The test program that it is compiled into.
    pub(crate) program: String,
    /// The name of the file, without `.rs`.
    pub(crate) name: String,
    /// The modules beside it whose names end with its own.
    longer: Vec<String>,
}

impl Test {
    /// What makes `cargo test` run the tests of this file, and no others.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--test".to_owned(), self.program.clone()];
        if self.name != self.program {
            arguments.extend(["--".to_owned(), format!("{}::", self.name)]);
            let skips = self.longer.iter().map(|name| format!("{name}::"));
            arguments.extend(skips.flat_map(|name| ["--skip".to_owned(), name]));
        }
        arguments
    }

    /// Whether it holds models, which bring threads and memories of their own.
    pub(crate) fn is_model(&self) -> bool {
        self.name.starts_with("model_")
    }
}

/// The files of the test program whose root is `source`: those beside a `main.rs`, or itself.
fn files_of(source: &Path) -> Result<Vec<String>> {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if !source.ends_with("main.rs") {
        return Ok(vec![stem(source)]);
    }
    let mut names = Vec::new();
    for entry in source.parent().unwrap_or(source).read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") && path != source {
            names.push(stem(&path));
        }
    }
    names.sort();
    Ok(names)
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(root().join("Cargo.toml"))
            .no_deps()
            .exec()
            .context("cargo metadata failed")?;
        Ok(Workspace(metadata))
    }

    fn packages(&self) -> impl Iterator<Item = &Package> {
        self.0.packages.iter()
    }

    /// The oldest compiler that a package states as the oldest that it builds with.
    pub(crate) fn rust_version(&self) -> Option<String> {
        self.packages().filter_map(|package| package.rust_version.as_ref()).min().map(plain)
    }

    /// The packages, by name, that state this compiler as the oldest.
    pub(crate) fn with_rust_version(&self, version: &str) -> Vec<String> {
        let states = |package: &&Package| {
            package.rust_version.as_ref().is_some_and(|stated| plain(stated) == version)
        };
        self.packages().filter(states).map(|package| package.name.to_string()).collect()
    }

    /// The libraries that may be published.
    pub(crate) fn published_libraries(&self) -> Vec<Library> {
        self.packages()
            .filter(|package| may_be_published(package))
            .filter(|package| package.targets.iter().any(cargo_metadata::Target::is_lib))
            .map(|package| Library {
                name: package.name.to_string(),
                directory: package.manifest_path.with_file_name("").into(),
            })
            .collect()
    }

    /// The packages, by name, that have a library and whose directory ends with one of
    /// `directories`.
    pub(crate) fn libraries<D: std::fmt::Display>(&self, directories: &[D]) -> Vec<String> {
        let listed = |package: &&Package| {
            directories.iter().any(|at| package.manifest_path.ends_with(format!("{at}/Cargo.toml")))
                && package.targets.iter().any(cargo_metadata::Target::is_lib)
        };
        self.packages().filter(listed).map(|package| package.name.to_string()).collect()
    }

    /// `package/feature` for each package that has this feature.
    pub(crate) fn features(&self, feature: &str) -> Vec<String> {
        self.packages()
            .filter(|package| package.features.contains_key(feature))
            .map(|package| format!("{}/{feature}", package.name))
            .collect()
    }

    /// The files of integration tests.
    pub(crate) fn tests(&self) -> Result<Vec<Test>> {
        let mut tests = Vec::new();
        for package in self.packages() {
            for target in package.targets.iter().filter(|target| target.is_test()) {
                let names = files_of(target.src_path.as_std_path())?;
                tests.extend(names.iter().map(|name| {
                    let longer = names.iter().filter(|it| *it != name && it.ends_with(name));
                    Test {
                        package: package.name.to_string(),
                        program: target.name.clone(),
                        name: name.clone(),
                        longer: longer.cloned().collect(),
                    }
                }));
            }
        }
        Ok(tests)
    }
}

/// A version without what may come after its three numbers.
fn plain(version: &Version) -> String {
    let Version { major, minor, patch, .. } = version;
    format!("{major}.{minor}.{patch}")
}

/// Whether no `publish = false` stands in its manifest.
fn may_be_published(package: &Package) -> bool {
    package.publish.as_ref().is_none_or(|registries| !registries.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_library_and_its_feature() {
        let workspace = Workspace::load().unwrap();
        assert_eq!(workspace.libraries(&["crates/memory"]), ["poach-memory"]);
        assert!(workspace.features("portable").contains(&"poach-memory/portable".to_owned()));
        assert!(workspace.libraries(&["crates/nowhere"]).is_empty());
    }

    #[test]
    fn a_file_of_tests_is_chosen_by_its_module() {
        let tests = Workspace::load().unwrap().tests().unwrap();
        let of = |package: &str, name: &str| {
            let found = tests.iter().find(|test| test.package == package && test.name == name);
            found.expect("there is one").arguments().join(" ")
        };
        assert_eq!(of("poach-memory", "full"), "--test it -- full::");
        assert_eq!(
            of("poach-deque", "split_stack"),
            "--test it -- split_stack:: --skip model_split_stack::"
        );
        assert!(tests.iter().any(Test::is_model));
        assert!(!tests.iter().any(|test| test.name == "main"));
    }

    #[test]
    fn the_library_is_published_and_the_checks_are_not() {
        let workspace = Workspace::load().unwrap();
        let published = workspace.published_libraries();
        let has = |name: &str| published.iter().any(|library| library.name == name);
        assert!(has("poach") && has("poach-memory"), "{published:?}");
        assert!(!has("xtask") && !has("poach-mutants"), "{published:?}");
    }
}
