//! Globs and regular expressions of names and paths.

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use regex::bytes::RegexSet;

/// Globs and regular expressions. A glob without a slash is matched with the name, one with a slash with the path below the given
/// path, where `*` stops at a slash and `**` does not; a regular expression is searched for in that path.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    names: GlobSet,
    paths: GlobSet,
    regexes: RegexSet,
}

/// A pattern that cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// A glob.
    #[error(transparent)]
    Glob(#[from] globset::Error),
    /// A regular expression.
    #[error(transparent)]
    Regex(#[from] regex::Error),
}

impl Patterns {
    /// These.
    ///
    /// # Errors
    ///
    /// If one of them cannot be read; the error names it.
    pub fn new(globs: &[String], regexes: &[String]) -> Result<Patterns, PatternError> {
        let (mut names, mut paths) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for text in globs {
            // A slash at the end, as people write directories, says nothing: only names are compared.
            let trimmed = text.strip_suffix('/').unwrap_or(text);
            let glob = |text| GlobBuilder::new(text).literal_separator(true).build();
            match trimmed.strip_prefix('/').or_else(|| trimmed.contains('/').then_some(trimmed)) {
                Some(path) => paths.add(glob(path)?),
                None => names.add(glob(trimmed)?),
            };
        }
        Ok(Patterns {
            names: names.build()?,
            paths: paths.build()?,
            regexes: RegexSet::new(regexes)?,
        })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.paths.is_empty() && self.regexes.is_empty()
    }

    pub(super) fn wants_paths(&self) -> bool {
        !self.paths.is_empty() || !self.regexes.is_empty()
    }

    pub(super) fn matches(&self, name: &[u8], path: &[u8]) -> bool {
        let glob = |set: &GlobSet, text| {
            !set.is_empty() && set.is_match_candidate(&Candidate::new(&super::as_path(text)))
        };
        glob(&self.names, name) || glob(&self.paths, path) || self.regexes.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_with_a_slash_is_of_the_path_and_one_without_of_the_name() {
        let patterns = |globs: &[&str], regexes: &[&str]| {
            let all = |those: &[&str]| those.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
            Patterns::new(&all(globs), &all(regexes)).expect("patterns")
        };
        for (glob, path, expected) in [
            ("*.rs", "a/b.rs", true),
            ("*.rs", "a.rs/b", false),
            ("target/", "a/target", true),
            ("a/*", "a/b", true),
            ("a/*", "a/b/c", false),
            ("a/**", "a/b/c", true),
            ("/a", "a", true),
            ("/a", "b/a", false),
            ("**/b/c", "a/b/c", true),
            ("{x,y}*", "z/yes", true),
        ] {
            let name = path.rsplit('/').next().unwrap_or(path);
            assert_eq!(
                patterns(&[glob], &[]).matches(name.as_bytes(), path.as_bytes()),
                expected,
                "{glob} of {path}"
            );
        }
        assert!(patterns(&[], &["^a/.*[0-9]$"]).matches(b"b7", b"a/b7"));
        assert!(!patterns(&[], &["^b"]).matches(b"b7", b"a/b7"));
        assert!(patterns(&["*"], &[]).matches(b"\xff", b"\xff"));
        assert!(patterns(&[], &[]).is_empty() && !patterns(&[], &["x"]).is_empty());
    }

    #[test]
    fn a_pattern_that_cannot_be_read_is_named() {
        let glob = Patterns::new(&["a[".to_owned()], &[]).expect_err("no glob").to_string();
        let regex = Patterns::new(&[], &["a(".to_owned()]).expect_err("no regex").to_string();
        assert!(glob.contains("a[") && regex.contains("a("), "{glob}; {regex}");
    }
}
