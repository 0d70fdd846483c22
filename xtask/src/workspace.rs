//! What is in the workspace, as cargo tells it: so a new crate, model or stress test is checked
//! from the day it is there, and no list has to be kept.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::semver::Version;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

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

/// The packages of the workspace.
pub(crate) struct Workspace(Metadata);

/// One integration test, a file of a package's `tests` directory.
#[derive(Debug)]
pub(crate) struct Test {
    /// The package that it belongs to.
    pub(crate) package: String,
    /// The name of the file, without `.rs`.
    pub(crate) name: String,
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

    /// The newest of the compilers that the packages state as the oldest that they build with.
    pub(crate) fn rust_version(&self) -> Option<String> {
        self.packages().filter_map(|package| package.rust_version.as_ref()).max().map(|version| {
            let &Version { major, minor, patch, .. } = version;
            format!("{major}.{minor}.{patch}")
        })
    }

    /// The version that all packages have that may be published; none if they differ.
    pub(crate) fn version(&self) -> Option<String> {
        let mut versions = self
            .packages()
            .filter(|package| may_be_published(package))
            .map(|package| &package.version);
        let first = versions.next()?;
        versions.all(|version| version == first).then(|| first.to_string())
    }

    /// The packages that may be published, by name, each after those that it depends on.
    ///
    /// # Errors
    ///
    /// If one depends on a package of the workspace that may not, or without saying on which version.
    pub(crate) fn published(&self) -> Result<Vec<String>> {
        let mut waiting: Vec<&Package> =
            self.packages().filter(|package| may_be_published(package)).collect();
        let ours: Vec<&str> = self.packages().map(|package| package.name.as_str()).collect();
        let mut ordered: Vec<String> = Vec::new();
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut still = Vec::new();
            for package in waiting {
                let needs = package.dependencies.iter().filter(|dependency| {
                    // A package leaves out what only its tests depend on, if that is named by its path alone.
                    let versioned = dependency.req != cargo_metadata::semver::VersionReq::STAR;
                    ours.contains(&dependency.name.as_str())
                        && (versioned || dependency.kind != DependencyKind::Development)
                });
                let mut ready = true;
                for need in needs {
                    let published = self
                        .packages()
                        .any(|p| p.name.as_str() == need.name && may_be_published(p));
                    ensure!(
                        published,
                        "{} depends on {}, which may not be published",
                        package.name,
                        need.name
                    );
                    ready &= ordered.contains(&need.name) || need.name == package.name.as_str();
                }
                if ready {
                    ordered.push(package.name.to_string());
                } else {
                    still.push(package);
                }
            }
            let stuck: Vec<&str> = still.iter().map(|package| package.name.as_str()).collect();
            ensure!(still.len() < before, "these depend on each other: {}", stuck.join(", "));
            waiting = still;
        }
        Ok(ordered)
    }

    /// The packages, by name, that have a library and whose directory ends with one of `directories`.
    pub(crate) fn libraries(&self, directories: &[&str]) -> Vec<String> {
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

    /// The integration tests whose name begins with `prefix`.
    pub(crate) fn tests(&self, prefix: &str) -> Vec<Test> {
        self.packages()
            .flat_map(|package| package.targets.iter().map(move |target| (package, target)))
            .filter(|(_, target)| target.is_test() && target.name.starts_with(prefix))
            .map(|(package, target)| Test {
                package: package.name.to_string(),
                name: target.name.clone(),
            })
            .collect()
    }
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
        assert!(workspace.tests("no test is called this").is_empty());
    }

    #[test]
    fn what_is_published_comes_after_what_it_depends_on() {
        let workspace = Workspace::load().unwrap();
        let published = workspace.published().unwrap();
        let at = |name: &str| published.iter().position(|package| package == name);
        assert!(
            at("poach-memory") < at("poach-deque") && at("poach-runtime") < at("poach"),
            "{published:?}"
        );
        assert_eq!(at("poach"), Some(published.len() - 1));
        assert!(at("xtask").is_none() && at("poach-mutants").is_none());
        assert!(workspace.version().is_some());
    }
}
