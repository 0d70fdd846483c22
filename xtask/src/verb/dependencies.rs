//! `cargo xtask dependencies`: what Poach's users get with it may be used by them, is there once,
//! and is needed.
//!
//! Checks all packages that the published packages depend on when a user builds them (not for
//! tests). Each package's licence is one of [`LICENCES`], and no package is there in two versions,
//! but for [`TWICE`]. Of each package of the workspace: a dependency that its manifest names is
//! named in its source. Known holes are another tool's: the workflows ask the advisory database,
//! which is on the network.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};
use spdx::{Expression, ParseMode};
use walkdir::WalkDir;

use crate::absence::names_in;
use crate::workspace::root;

/// Licences under which Poach may be passed on with the package in it, whatever its user's licence
/// is.
const LICENCES: [&str; 9] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages that are there in two versions, and the packages that ask for the older version.
const TWICE: [(&str, &str); 5] = [
    ("generator", "loom, in both"),
    ("loom", "st3, for models of its own"),
    ("signal-hook", "crossterm, by signal-hook-mio"),
    ("syn", "derive macros, which run where Poach is built"),
    ("windows-sys", "crossterm and what it depends on"),
];

/// Packages that compile a file of another package's, and what that uses.
const SOURCE_ELSEWHERE: [(&str, &str); 2] = [("poach-deque", "libc"), ("poach-mutants", "rustix")];

pub(crate) fn run() -> Result<()> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .other_options(["--locked".to_owned(), "--all-features".to_owned()])
        .exec()
        .context("cargo metadata failed")?;
    let shipped = shipped(&metadata)?;
    let mut wrong: Vec<String> = shipped.iter().filter_map(|package| licence(package)).collect();
    wrong.extend(twice(&shipped));
    let ours: Vec<&Package> = metadata.workspace_packages();
    for package in &ours {
        wrong.extend(unused(package)?);
    }
    if !wrong.is_empty() {
        bail!("dependencies: {} are not as they should be:\n{}", wrong.len(), wrong.join("\n"));
    }
    eprintln!(
        "dependencies: {} packages are shipped, each under a licence that anybody can take; none of {} manifests names more than \
         its package uses",
        shipped.len(),
        ours.len()
    );
    Ok(())
}

/// What a user builds who installs or depends on a published package, whatever the target and the
/// features.
fn shipped(metadata: &Metadata) -> Result<Vec<&Package>> {
    let resolve = metadata.resolve.as_ref().context("cargo metadata resolved nothing")?;
    let packages: BTreeMap<&PackageId, &Package> =
        metadata.packages.iter().map(|package| (&package.id, package)).collect();
    let nodes: BTreeMap<&PackageId, _> =
        resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let published = |package: &&&Package| package.publish.as_ref().is_none_or(|to| !to.is_empty());
    let mut waiting: Vec<&PackageId> =
        metadata.workspace_packages().iter().filter(published).map(|package| &package.id).collect();
    let mut seen: BTreeSet<&PackageId> = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        for dependency in &nodes[id].deps {
            let kinds = &dependency.dep_kinds;
            if kinds.iter().any(|kind| kind.kind != DependencyKind::Development) {
                waiting.push(&dependency.pkg);
            }
        }
    }
    Ok(seen.into_iter().map(|id| packages[id]).collect())
}

/// What is wrong with a package's licence.
fn licence(package: &Package) -> Option<String> {
    let name = format!("{} {}", package.name, package.version);
    let Some(stated) = &package.license else {
        return Some(format!("{name} states no licence"));
    };
    match Expression::parse_mode(stated, ParseMode::LAX) {
        Err(error) => Some(format!("{name}: the licence `{stated}` cannot be read: {error}")),
        Ok(expression) => {
            let allowed = |requirement: &spdx::LicenseReq| {
                requirement.license.id().is_some_and(|id| LICENCES.contains(&id.name))
            };
            (!expression.evaluate(allowed)).then(|| {
                format!("{name}: the licence `{stated}` is none of {}", LICENCES.join(", "))
            })
        }
    }
}

/// Packages that are there in more than one version, and exceptions that are none any more.
fn twice(shipped: &[&Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for package in shipped {
        versions.entry(package.name.as_str()).or_default().insert(package.version.to_string());
    }
    versions.retain(|_, versions| versions.len() > 1);
    // What Microsoft's bindings bring along differs by target, and follows `windows-sys`.
    versions.retain(|name, _| !name.starts_with("windows_") && *name != "windows-targets");
    let known: BTreeSet<&str> = TWICE.iter().map(|(name, _)| *name).collect();
    let new = versions.iter().filter(|(name, _)| !known.contains(*name)).map(|(name, versions)| {
        let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
        format!("{name} is there in the versions {}", versions.join(" and "))
    });
    let gone = known.iter().filter(|name| !versions.contains_key(*name)).map(|name| {
        format!("{name} is there once: take it from the list of exceptions in xtask/src/verb/dependencies.rs")
    });
    new.chain(gone).collect()
}

/// Dependencies that the manifest names and the source does not.
fn unused(package: &Package) -> Result<Vec<String>> {
    let directory = package.manifest_path.parent().context("a manifest lies in a directory")?;
    let mut names = BTreeSet::new();
    for directory in ["src", "tests", "examples", "benches", "pages", "build.rs"] {
        collect(&package.manifest_path.with_file_name(directory).into_std_path_buf(), &mut names)?;
    }
    let unnamed = package.dependencies.iter().filter(|dependency| {
        let name = dependency.rename.as_ref().unwrap_or(&dependency.name);
        if SOURCE_ELSEWHERE.contains(&(package.name.as_str(), name)) {
            return false;
        }
        !names.contains(&name.replace('-', "_"))
    });
    Ok(unnamed
        .map(|dependency| {
            format!("{directory}/Cargo.toml names {}, and nothing there uses it", dependency.name)
        })
        .collect())
}

/// All names in the source files below a directory, and all words of its pages.
fn collect(directory: &Path, names: &mut BTreeSet<String>) -> Result<()> {
    for entry in WalkDir::new(directory).into_iter().filter_map(Result::ok) {
        let end = entry.path().extension().and_then(|end| end.to_str());
        if !matches!(end, Some("rs" | "md")) {
            continue;
        }
        let text = fs::read_to_string(entry.path())
            .with_context(|| format!("could not read {}", entry.path().display()))?;
        if end == Some("rs") {
            names.extend(names_in(&text)?);
        } else {
            names.extend(text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, licence: Option<&str>) -> Package {
        let document = serde_json::json!({
            "name": name, "version": version, "id": format!("{name} {version}"), "license": licence,
            "dependencies": [], "targets": [], "features": {}, "manifest_path": "Cargo.toml",
        });
        serde_json::from_value(document).expect("a package")
    }

    #[test]
    fn a_licence_that_not_everybody_can_take() {
        for stated in
            ["MIT", "MIT/Apache-2.0", "GPL-3.0-only OR Zlib", "(MIT OR Apache-2.0) AND Unicode-3.0"]
        {
            assert_eq!(licence(&package("a", "1.0.0", Some(stated))), None, "{stated}");
        }
        for stated in [Some("GPL-3.0-only"), Some("MIT AND GPL-3.0-only"), Some("what"), None] {
            assert!(licence(&package("a", "1.0.0", stated)).is_some(), "{stated:?}");
        }
    }

    #[test]
    fn a_package_in_two_versions_and_an_exception_that_is_none() {
        let (one, two) = (package("a", "1.0.0", None), package("a", "2.0.0", None));
        let said = twice(&[&one, &two]);
        assert!(
            said.contains(&"a is there in the versions 1.0.0 and 2.0.0".to_owned()),
            "{said:?}"
        );
        assert!(said.iter().any(|line| line.starts_with("windows-sys is there once")), "{said:?}");
    }

    #[test]
    fn a_dependency_that_nothing_uses() {
        let directory = tempfile::tempdir().unwrap();
        crate::published::write(&directory.path().join("src/lib.rs"), "use one::Thing; // two\n")
            .unwrap();
        let dependency = |name: &str| {
            serde_json::json!({ "name": name, "req": "*", "kind": null, "optional": false,
                "uses_default_features": true, "features": [], "target": null })
        };
        let document = serde_json::json!({
            "name": "a", "version": "1.0.0", "id": "a", "dependencies": [dependency("one"), dependency("two")],
            "targets": [], "features": {}, "manifest_path": directory.path().join("Cargo.toml"),
        });
        let said = unused(&serde_json::from_value(document).unwrap()).unwrap();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].ends_with("names two, and nothing there uses it"), "{said:?}");
    }
}
