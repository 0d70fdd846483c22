//! `cargo xtask release VERSION`: makes the commit and the tag of a release, once all that a
//! release promises holds.
//!
//! In this order: the version comes after the last one, and no tag has it; nothing is uncommitted;
//! the changelog says something under "Unreleased"; the public items that the last tag had are
//! still there, unless the version is one that may break them (cargo-semver-checks, which must be
//! installed); each package builds from what is packed. Then the versions in
//! `Cargo.toml`, the lock file and the changelog's heading change, in one commit with an annotated
//! tag. With `--dry` that commit is made in a copy and shown. Nothing is sent anywhere.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use cargo_metadata::semver::Version;

use crate::run::Step;
use crate::workspace::{self, Workspace};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The version to release, such as 0.2.0.
    version: Version,
    /// Change a copy, and show what would be committed.
    #[arg(long)]
    dry: bool,
    /// Do not pack and build the packages: `cargo publish --workspace --dry-run` was run by itself.
    #[arg(long)]
    packed: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let root = workspace::root();
    let now = Workspace::load()?.version().context("the packages have no common version")?;
    let now: Version = now.parse()?;
    let tags = git(&root, &["tag", "--list", "v*"]);
    let last = last_tag(&tags);
    check_version(&options.version, &now, last.as_ref())?;
    ensure!(
        options.dry || git(&root, &["status", "--porcelain"]).is_empty(),
        "something is not committed: a release is made of what is"
    );
    let changelog = fs::read_to_string(root.join("CHANGELOG.md")).context("no CHANGELOG.md")?;
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string();
    let changed = release_notes(&changelog, &options.version, &today)?;
    match &last {
        Some(last) => check_interface(last, &options.version)?,
        None => eprintln!(
            "release: no version was tagged before this one, so there is no interface to keep"
        ),
    }
    if !options.packed {
        Step::cargo("publish --workspace --dry-run --locked")
            .run("a package does not build from what is packed")?;
    }
    let place = if options.dry {
        let copy = workspace::target_directory()?.join("release");
        if copy.exists() {
            fs::remove_dir_all(&copy)
                .with_context(|| format!("could not empty {}", copy.display()))?;
        }
        Step::program("git")
            .args([
                "clone",
                "--quiet",
                "--shared",
                &root.to_string_lossy(),
                &copy.to_string_lossy(),
            ])
            .run("the repository could not be copied")?;
        copy
    } else {
        root
    };
    let manifest = place.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    fs::write(&manifest, with_version(&text, &now, &options.version)?)?;
    fs::write(place.join("CHANGELOG.md"), changed)?;
    Step::cargo("update --quiet --workspace --offline")
        .within(&place)
        .run("the lock file could not take the new version")?;
    commit(&place, &options.version)?;
    if options.dry {
        println!("{}", git(&place, &["show", "--stat", "--format=%s%n%n%b", "HEAD"]));
        println!(
            "{}",
            git(&place, &["show", "--no-patch", "--format=", &format!("v{}", options.version)])
        );
        eprintln!(
            "release: dry: nothing here has changed; the commit and its tag stand in {}",
            place.display()
        );
    } else {
        eprintln!(
            "release: v{} is committed and tagged. Now `git push --follow-tags`, and when CI has passed on it, `cargo publish --workspace`",
            options.version
        );
    }
    Ok(())
}

/// `cargo xtask interface`: the public items of the last release are still there, if the version in
/// `Cargo.toml` promises that.
pub(crate) fn interface() -> Result<()> {
    let root = workspace::root();
    let now = Workspace::load()?.version().context("the packages have no common version")?;
    let Some(last) = last_tag(&git(&root, &["tag", "--list", "v*"])) else {
        eprintln!("interface: no version was tagged yet, so there is no interface to keep");
        return Ok(());
    };
    check_interface(&last, &now.parse()?)?;
    eprintln!("interface: what {last} promised is still there, as far as {now} promises it");
    Ok(())
}

/// What git prints, in a directory.
fn git(at: &Path, arguments: &[&str]) -> String {
    Step::program("git").args(arguments).within(at).output().trim().to_owned()
}

/// The newest version that a tag names.
fn last_tag(tags: &str) -> Option<Version> {
    tags.lines().filter_map(|tag| tag.strip_prefix('v')?.parse().ok()).max()
}

fn check_version(new: &Version, now: &Version, last: Option<&Version>) -> Result<()> {
    if let Some(last) = last {
        ensure!(new > last, "{new} does not come after {last}, which is tagged");
    }
    ensure!(new >= now, "{new} comes before {now}, which `Cargo.toml` states");
    Ok(())
}

/// The changelog with what was unreleased under the new version, and nothing unreleased.
fn release_notes(changelog: &str, version: &Version, today: &str) -> Result<String> {
    const HEADING: &str = "## Unreleased\n";
    let (before, rest) =
        changelog.split_once(HEADING).context("CHANGELOG.md has no heading `## Unreleased`")?;
    let of_it = rest.split("\n## ").next().unwrap_or_default();
    let says_something = of_it.lines().any(|line| line.starts_with("- "));
    ensure!(says_something, "CHANGELOG.md says nothing under `## Unreleased`");
    Ok(format!("{before}{HEADING}\n## {version} ({today})\n{rest}"))
}

/// `Cargo.toml` with the new version in place of the old: the workspace's, and that of each of its
/// packages.
fn with_version(manifest: &str, old: &Version, new: &Version) -> Result<String> {
    let (from, to) = (format!("version = \"{old}\""), format!("version = \"{new}\""));
    let ours =
        |line: &str| line.starts_with(&from) || line.contains("path = ") && line.contains(&from);
    let lines = manifest
        .lines()
        .map(|line| if ours(line) { line.replace(&from, &to) } else { line.to_owned() });
    let changed = lines.collect::<Vec<_>>().join("\n") + "\n";
    ensure!(old == new || changed != manifest, "`Cargo.toml` does not state {old}");
    Ok(changed)
}

/// What users of the last version named is still there, if the new one promises it.
fn check_interface(last: &Version, new: &Version) -> Result<()> {
    let breaks = if last.major == 0 {
        new.minor > last.minor || new.major > 0
    } else {
        new.major > last.major
    };
    if breaks {
        eprintln!(
            "release: {new} may break what {last} promised, so the interface is not compared"
        );
        return Ok(());
    }
    if !crate::run::has_program("cargo-semver-checks") {
        bail!(
            "{new} must keep the interface of {last}: `cargo install cargo-semver-checks` compares them"
        );
    }
    let mut step = Step::cargo("semver-checks --baseline-rev").args([format!("v{last}")]);
    for package in Workspace::load()?.published() {
        step = step.args(["--package", &package]);
    }
    step.run(&format!("{new} is not compatible with {last}"))
}

/// One commit with all that changed, and its tag.
fn commit(place: &Path, version: &Version) -> Result<()> {
    let message = format!("release: {version}");
    let tag = format!("v{version}");
    Step::program("git")
        .args(["commit", "--quiet", "--all", "-m", &message])
        .within(place)
        .run("git made no commit")?;
    Step::program("git")
        .args(["tag", "--annotate", &tag, "-m", &format!("Poach {version}")])
        .within(place)
        .run("git made no tag")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn a_version_comes_after_the_last() {
        let (one, two) = (version("0.1.0"), version("0.2.0"));
        assert!(check_version(&one, &one, None).is_ok(), "the first release");
        assert!(check_version(&two, &one, Some(&one)).is_ok());
        assert!(check_version(&one, &one, Some(&one)).is_err(), "tagged");
        assert!(check_version(&one, &two, None).is_err(), "older than the manifest");
        assert_eq!(last_tag("v0.9.0\nv0.10.0\nvery\nv0.2.0"), Some(version("0.10.0")));
        assert_eq!(last_tag(""), None);
    }

    #[test]
    fn the_changelog_gets_a_heading_and_keeps_every_line() {
        let old = "# Changelog\n\n## Unreleased\n\n### Added\n\n- a thing\n\n## 0.1.0 (2026-01-01)\n\n- before\n";
        let new = release_notes(old, &version("0.2.0"), "2026-11-23").unwrap();
        assert_eq!(
            new,
            "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-11-23)\n\n### Added\n\n- a thing\n\n## 0.1.0 (2026-01-01)\n\n- before\n"
        );
        assert!(release_notes(&new, &version("0.3.0"), "2026-11-23").is_err(), "nothing is new");
        assert!(release_notes("# Changelog\n", &version("0.3.0"), "2026-11-23").is_err());
    }

    #[test]
    fn the_manifest_states_the_new_version_of_ours_alone() {
        let old = "[workspace.package]\nversion = \"0.1.0\"\n\na = { path = \"a\", version = \"0.1.0\" }\nkanal = { version = \"0.1.0\" }\n";
        let new = with_version(old, &version("0.1.0"), &version("0.2.0")).unwrap();
        assert_eq!(
            new,
            "[workspace.package]\nversion = \"0.2.0\"\n\na = { path = \"a\", version = \"0.2.0\" }\nkanal = { version = \"0.1.0\" }\n"
        );
        assert!(with_version(old, &version("0.7.0"), &version("0.8.0")).is_err());
    }
}
