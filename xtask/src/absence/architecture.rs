//! The rule `architecture-is-whole`: ARCHITECTURE.md names every rule of the linter, every crate,
//! and every directory at the root.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::{Finding, RULES, promises, untried};

const NAME: &str = "architecture-is-whole";
const PAGE: &str = "ARCHITECTURE.md";

/// Rules that are no entry of [`RULES`].
const OTHERS: [&str; 3] = [untried::NAME, promises::NAME, NAME];

/// Adds a finding for each rule and each directory that the page leaves out.
pub(super) fn check(root: &Path, findings: &mut Vec<Finding>) -> Result<()> {
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("reading {PAGE}"))?;
    let mut missing = |advice: String| {
        findings.push(Finding { file: PAGE.to_owned(), line: 1, rule: NAME, advice });
    };
    for rule in RULES.iter().map(|rule| rule.name).chain(OTHERS) {
        if !page.contains(rule) {
            missing(format!("it does not name the rule {rule}"));
        }
    }
    for at in ["", "crates", "docs", "compat"] {
        for directory in directories(&root.join(at))? {
            // A directory of directories is named by what is in it.
            let name = Path::new(at).join(&directory).to_string_lossy().replace('\\', "/");
            if !page.contains(&format!("`{name}`")) && !page.contains(&format!("`{name}/")) {
                missing(format!("it does not name the directory {name}"));
            }
        }
    }
    Ok(())
}

/// The directories of a directory that belong to the repository.
fn directories(at: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(at).with_context(|| format!("could not list {}", at.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = name != "target" && (!name.starts_with('.') || name == ".github");
        if ours && entry.file_type()?.is_dir() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_page_leaves_out_is_found() {
        let root = tempfile::tempdir().unwrap();
        for directory in ["crates/deque", "docs/guide", "compat/rayon-core", "target", ".git"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        let found = |page: &str| {
            fs::write(root.path().join(PAGE), page).unwrap();
            let mut findings = Vec::new();
            check(root.path(), &mut findings).unwrap();
            findings.into_iter().map(|finding| finding.advice).collect::<Vec<_>>()
        };
        let rules: Vec<&str> = RULES.iter().map(|rule| rule.name).chain(OTHERS).collect();
        let whole = format!("`crates/deque` `docs/guide` `compat/rayon-core` {}", rules.join(" "));
        assert_eq!(found(&whole), [""; 0]);
        assert_eq!(found(&whole.replace("`docs/guide`", "")).len(), 2);
        let without = whole.replace("deques-never-wait", "");
        assert_eq!(found(&without), ["it does not name the rule deques-never-wait"]);
        let without = whole.replace("crates/deque", "crates/deques");
        assert_eq!(found(&without), ["it does not name the directory crates/deque"]);
    }

    #[test]
    fn a_tree_without_the_page_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let error = check(root.path(), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains(PAGE), "{error}");
    }
}
