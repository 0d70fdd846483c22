//! Packages as their registry has them, copied so that a drop-in can be put below them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::MetadataCommand;
use walkdir::WalkDir;

use crate::run::Step;
use crate::workspace;

/// `cargo <verb>` of the package in `directory`, which is none of this workspace.
pub(crate) fn cargo(verb: &str, directory: &Path, target: &Path) -> Step {
    let manifest = directory.join("Cargo.toml");
    Step::cargo(verb)
        .args(["--manifest-path", &manifest.to_string_lossy()])
        .env("CARGO_TARGET_DIR", &target.to_string_lossy())
}

/// Builds the programs on the original core and on the drop-in. Returns where they are: a directory
/// each, because they have the same names.
pub(crate) fn on_both_cores(build: &str) -> Result<[PathBuf; 2]> {
    let target = workspace::target_directory()?.join("compat");
    let directories = ["original", "patched"]
        .map(|package| (workspace::root().join("compat").join(package), target.join(package)));
    for (package, target) in &directories {
        cargo(build, package, target).run("the programs do not build")?;
    }
    Ok(directories.map(|(_, target)| target.join("release")))
}

/// Where cargo has unpacked the dependency `name` of the package in `directory`.
pub(crate) fn unpacked(directory: &Path, name: &str) -> Result<PathBuf> {
    let metadata = MetadataCommand::new()
        .manifest_path(directory.join("Cargo.toml"))
        .exec()
        .with_context(|| format!("cargo metadata failed in {}", directory.display()))?;
    let package = metadata.packages.iter().find(|package| package.name.as_str() == name);
    let package =
        package.with_context(|| format!("{} does not depend on {name}", directory.display()))?;
    let manifest = &package.manifest_path;
    Ok(manifest.parent().context("a manifest lies in a directory")?.as_std_path().to_owned())
}

/// Where cargo unpacks version `version` of the package `name`; `scratch` is a directory to ask it
/// from.
pub(crate) fn unpack(name: &str, version: &str, scratch: &Path) -> Result<PathBuf> {
    let asking = scratch.join(name);
    write(&asking.join("src/lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"asks-for-{name}\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\n{name} = \"={version}\"\nrayon-core = \"1.13.0\"\n"
    );
    write(&asking.join("Cargo.toml"), &manifest)?;
    // Cargo does not name a package without a library, but the package lies beside the others of
    // its registry.
    cargo("fetch --quiet", &asking, scratch).run(&format!("{name} {version} is not to be had"))?;
    let beside = unpacked(&asking, "rayon-core")?;
    let package = beside.with_file_name(format!("{name}-{version}"));
    ensure!(package.is_dir(), "cargo did not unpack {}", package.display());
    Ok(package)
}

/// Copies the package to `to`, as a workspace of its own, and puts the drop-in below it if it is to
/// be `patched`.
pub(crate) fn copy(package: &Path, to: &Path, patched: bool) -> Result<()> {
    for entry in WalkDir::new(package) {
        let entry = entry?;
        if entry.file_type().is_dir() {
            continue;
        }
        let name = entry.path().strip_prefix(package)?;
        let mut content = bytes(entry.path())?;
        if name == Path::new("Cargo.toml") {
            let core = workspace::root().join("compat/rayon-core");
            content.extend_from_slice(b"\n[workspace]\n");
            if patched {
                // In single quotes TOML knows no escapes.
                let patch = format!(
                    "\n[patch.crates-io]\nrayon-core = {{ path = '{}' }}\n",
                    core.display()
                );
                content.extend_from_slice(patch.as_bytes());
            }
        }
        let copy = to.join(name);
        // Cargo builds anew what was written anew.
        if !copy.exists() || bytes(&copy)? != content {
            write(&copy, content)?;
        }
    }
    Ok(())
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("could not read {}", path.display()))
}

/// A file of text.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
}

/// The documentation comments of a file, one after the other, as a page.
pub(crate) fn documentation(source: &str) -> String {
    let mut page = String::new();
    for line in source.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        match comment.filter(|comment| !comment.starts_with('/')) {
            Some(comment) => page.push_str(comment.strip_prefix(' ').unwrap_or(comment)),
            None if page.ends_with("\n\n") => continue,
            None => {}
        }
        page.push('\n');
    }
    page
}

/// That the package in `directory` is built on the drop-in if it is to be `patched`, and else on
/// the original.
pub(crate) fn check_core(directory: &Path, patched: bool) -> Result<()> {
    let core = unpacked(directory, "rayon-core")?;
    let ours = core.starts_with(workspace::root());
    ensure!(ours == patched, "{} takes rayon-core from {}", directory.display(), core.display());
    Ok(())
}

/// Writes a file, and the directories above it. A file that has these bytes is left alone, for
/// cargo goes by the time of the last change.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    if fs::read(path).is_ok_and(|before| before == bytes.as_ref()) {
        return Ok(());
    }
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, bytes))
        .with_context(|| format!("could not write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_of_a_file() {
        let source = "//! A file.\n\nuse std::fmt;\n\n    /// A function:\n    ///\n    /// ```\n    /// f();\n    /// ```\n    fn f() {}\n//////\n";
        assert_eq!(documentation(source), "A file.\n\nA function:\n\n```\nf();\n```\n\n");
    }
}
