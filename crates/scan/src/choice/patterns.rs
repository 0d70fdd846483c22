//! Globs and regular expressions of names and paths.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use globset::GlobBuilder;
use regex::bytes::{RegexSet, RegexSetBuilder};

/// Globs and regular expressions.
///
/// A glob without a slash is matched with the name. A glob with a slash is matched with the path below the given path, where `*`
/// stops at a slash and `**` does not; a leading `./` or `/` and slashes at the end change nothing, `//` and `/./` are one slash,
/// and `..` takes the part before it away. A glob that begins with a slash (on Windows with a drive, too) is also matched with
/// the absolute path. Globs are bytes, UTF-8 or not. A regular expression is searched for in the path below the given path.
///
/// All clones know together which of the patterns have [matched](Self::unmatched) anything.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    given: Arc<[Given]>,
    names: Set,
    paths: Set,
    absolute: Set,
    regexes: Set,
}

/// A pattern as it was given.
#[derive(Debug)]
struct Given {
    text: Vec<u8>,
    /// Whether an entry below a given path can match it.
    can_match: bool,
    has_matched: AtomicBool,
}

/// Some of the patterns, and which of those given they are.
#[derive(Clone, Debug, Default)]
struct Set {
    regexes: RegexSet,
    given: Vec<usize>,
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
    ///
    /// ```
    /// use poach_scan::choice::Patterns;
    ///
    /// let patterns = Patterns::new(&["./target//".to_owned(), "../x".to_owned()], &[])?;
    /// assert_eq!(patterns.impossible().collect::<Vec<_>>(), [b"../x"]);
    /// # Ok::<(), poach_scan::choice::PatternError>(())
    /// ```
    pub fn new(globs: &[String], regexes: &[String]) -> Result<Patterns, PatternError> {
        let globs: Vec<&[u8]> = globs.iter().map(String::as_bytes).collect();
        Patterns::of_bytes(&globs, regexes)
    }

    /// [`new`](Self::new), of globs that need not be UTF-8.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn of_bytes(globs: &[&[u8]], regexes: &[String]) -> Result<Patterns, PatternError> {
        let (mut names, mut paths, mut absolute) = (Vec::new(), Vec::new(), Vec::new());
        let mut given = Vec::with_capacity(globs.len() + regexes.len());
        let new = |text: &[u8], can_match| Given {
            text: text.to_vec(),
            can_match,
            has_matched: AtomicBool::new(false),
        };
        for (number, &text) in globs.iter().enumerate() {
            let glob = Glob::of(text);
            given.push(new(text, glob.is_some()));
            let Some(Glob { text, is_path, may_be_absolute }) = glob else { continue };
            let regex = (number, regex(&text)?);
            if may_be_absolute {
                absolute.push(regex.clone());
            }
            if is_path { &mut paths } else { &mut names }.push(regex);
        }
        given.extend(regexes.iter().map(|text| new(text.as_bytes(), true)));
        Ok(Patterns {
            given: given.into(),
            names: Set::of_globs(names)?,
            paths: Set::of_globs(paths)?,
            absolute: Set::of_globs(absolute)?,
            regexes: Set {
                regexes: RegexSet::new(regexes)?,
                given: (globs.len()..globs.len() + regexes.len()).collect(),
            },
        })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// The globs that no entry can match: each names a given path itself, or something above it.
    pub fn impossible(&self) -> impl Iterator<Item = &[u8]> {
        self.given.iter().filter(|given| !given.can_match).map(|given| &*given.text)
    }

    /// The patterns that could have matched something and have not yet, as they were given, globs first.
    pub fn unmatched(&self) -> impl Iterator<Item = &[u8]> {
        // Relaxed: it publishes nothing, and the threads of a scan have been joined when it is over.
        let unmatched =
            |given: &&Given| given.can_match && !given.has_matched.load(Ordering::Relaxed);
        self.given.iter().filter(unmatched).map(|given| &*given.text)
    }

    pub(crate) fn wants_paths(&self) -> bool {
        [&self.paths, &self.absolute, &self.regexes].iter().any(|set| !set.given.is_empty())
    }

    pub(super) fn wants_absolute(&self) -> bool {
        !self.absolute.given.is_empty()
    }

    /// Whether one matches an entry by its name, its path below a given path, or its absolute path: `above` holds those of the
    /// given path, as [`absolute`] has them.
    pub(crate) fn matches(&self, name: &[u8], path: &[u8], above: &[Vec<u8>]) -> bool {
        let absolute =
            |above: &Vec<u8>| self.absolute.matches(&[above, path].concat(), &self.given);
        // Each is asked, so that what two patterns match counts for both.
        self.names.matches(name, &self.given)
            | self.paths.matches(path, &self.given)
            | self.regexes.matches(path, &self.given)
            | (self.wants_absolute() && above.iter().filter(|above| absolute(above)).count() > 0)
    }
}

impl Set {
    fn of_globs(regexes: Vec<(usize, String)>) -> Result<Set, regex::Error> {
        let (given, regexes): (Vec<_>, Vec<_>) = regexes.into_iter().unzip();
        let regexes = RegexSetBuilder::new(regexes).dot_matches_new_line(true).build()?;
        Ok(Set { regexes, given })
    }

    fn matches(&self, text: &[u8], given: &[Given]) -> bool {
        if self.given.is_empty() || !self.regexes.is_match(text) {
            return false;
        }
        // Relaxed, both: as in `unmatched`.
        if self.given.iter().any(|&number| !given[number].has_matched.load(Ordering::Relaxed)) {
            for regex in &self.regexes.matches(text) {
                given[self.given[regex]].has_matched.store(true, Ordering::Relaxed);
            }
        }
        true
    }
}

/// A glob as it is compared.
struct Glob {
    /// Without slashes at its ends.
    text: Vec<u8>,
    is_path: bool,
    may_be_absolute: bool,
}

impl Glob {
    /// What is meant by a text; nothing, if no entry below a given path can be.
    fn of(text: &[u8]) -> Option<Glob> {
        let text = slashes(text);
        let drive = cfg!(windows) && text.get(1) == Some(&b':');
        let may_be_absolute = text.first() == Some(&b'/') || drive;
        let trimmed = text.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
        let is_path = text[..trimmed].contains(&b'/');
        // Parts of `{a/b,c}` are parts of alternatives.
        let alternatives = text.iter().any(|byte| b"{[".contains(byte));
        let mut parts: Vec<&[u8]> = Vec::new();
        for part in text[..trimmed].split(|&byte| byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => match parts.pop() {
                    Some(above) if above != b"**" && !alternatives => {}
                    _ => return None,
                },
                part => parts.push(part),
            }
        }
        let text = parts.join(&b'/');
        (!text.is_empty()).then_some(Glob { text, is_path, may_be_absolute })
    }
}

/// A glob as a regular expression of bytes.
fn regex(glob: &[u8]) -> Result<String, globset::Error> {
    /// Stands for the byte 0, and the characters after it for the other bytes: characters that no name has.
    const FIRST: u32 = 0x10_ff00;
    let stand_in = |byte: u8| char::from_u32(FIRST + u32::from(byte)).unwrap_or_default();
    let mut text = String::with_capacity(glob.len());
    for chunk in glob.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|&byte| stand_in(byte)));
    }
    let glob_set = GlobBuilder::new(&text).literal_separator(true).build()?;
    let mut regex = glob_set.regex().to_owned();
    if std::str::from_utf8(glob).is_err() {
        for byte in 0x80..=0xff_u8 {
            let four =
                stand_in(byte).encode_utf8(&mut [0; 4]).bytes().map(escaped).collect::<String>();
            regex = regex.replace(&four, &escaped(byte));
        }
    }
    Ok(regex)
}

/// A byte as `globset` writes it into a regular expression.
fn escaped(byte: u8) -> String {
    format!("\\x{byte:02x}")
}

/// A path or a glob with slashes alone between its parts.
fn slashes(text: &[u8]) -> Cow<'_, [u8]> {
    if cfg!(windows) && text.contains(&b'\\') {
        return text.iter().map(|&byte| if byte == b'\\' { b'/' } else { byte }).collect();
    }
    Cow::Borrowed(text)
}

/// The absolute paths of a given path, as it was given and without links, each with a slash at its end and none before it.
pub(crate) fn absolute(path: &Path) -> Vec<Vec<u8>> {
    let of = |path: PathBuf| {
        let path = slashes(path.as_os_str().as_encoded_bytes()).into_owned();
        let first = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
        let mut path = path[first..].to_vec();
        if path.last().is_some_and(|&last| last != b'/') {
            path.push(b'/');
        }
        path
    };
    let both = [std::path::absolute(path), path.canonicalize()];
    let mut both: Vec<_> = both.into_iter().filter_map(Result::ok).map(of).collect();
    both.dedup();
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(globs: &[&str], regexes: &[&str]) -> Patterns {
        let all = |those: &[&str]| those.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        Patterns::new(&all(globs), &all(regexes)).expect("patterns")
    }

    fn matches(patterns: &Patterns, path: &[u8], above: &[Vec<u8>]) -> bool {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        patterns.matches(name, path, above)
    }

    #[test]
    fn a_glob_with_a_slash_is_of_the_path_and_one_without_of_the_name() {
        for (glob, path, expected) in [
            ("*.rs", "a/b.rs", true),
            ("*.rs", "a.rs/b", false),
            ("target/", "a/target", true),
            ("target//", "a/target", true),
            ("./target", "target", true),
            ("./target/", "target", true),
            ("./target", "a/target", false),
            ("//target", "target", true),
            ("a/./b//c/", "a/b/c", true),
            ("a/../b/c", "b/c", true),
            ("a/*", "a/b", true),
            ("a/*", "a/b/c", false),
            ("a/**", "a/b/c", true),
            ("/a", "a", true),
            ("/a", "b/a", false),
            ("**/b/c", "a/b/c", true),
            ("{x,y}*", "z/yes", true),
            ("a?c", "a\nc", true),
            ("**/c", "a\nb/c", true),
        ] {
            let found = matches(&patterns(&[glob], &[]), path.as_bytes(), &[]);
            assert_eq!(found, expected, "{glob} of {path}");
        }
        assert!(matches(&patterns(&[], &["^a/.*[0-9]$"]), b"a/b7", &[]));
        assert!(!matches(&patterns(&[], &["^b"]), b"a/b7", &[]));
        assert!(matches(&patterns(&["*"], &[]), b"\xff", &[]));
        assert!(patterns(&[], &[]).is_empty() && !patterns(&[], &["x"]).is_empty());
    }

    #[test]
    fn a_glob_that_begins_with_a_slash_may_be_an_absolute_path() {
        let above = [b"srv/a/".to_vec(), b"mnt/disk/".to_vec()];
        for (glob, path, expected) in [
            ("/srv/a/trash", "trash", true),
            ("/mnt/disk/trash/", "trash", true),
            ("/srv/*/trash", "trash", true),
            ("/**/trash", "x/trash", true),
            ("/srv/a/trash", "x/trash", false),
            ("/srv/trash", "trash", false),
            ("srv/a/trash", "trash", false),
        ] {
            let found = matches(&patterns(&[glob], &[]), path.as_bytes(), &above);
            assert_eq!(found, expected, "{glob} of {path}");
        }
        if cfg!(unix) {
            assert_eq!(absolute(Path::new("/")), [b""]);
            assert_eq!(absolute(Path::new("/usr/./share/")), [b"usr/share/"]);
        }
    }

    #[test]
    fn a_glob_is_bytes() {
        let of = |glob: &[u8]| Patterns::of_bytes(&[glob], &[]).expect("a pattern");
        for (glob, path, expected) in [
            (&b"caf\xe9"[..], &b"caf\xe9"[..], true),
            (b"caf\xe9", b"caf\xc3\xa9", false),
            (b"caf\xe9", b"caf\xe8", false),
            (b"a/*\xe9?", b"a/caf\xe9\xff", true),
            (b"caf[\xe8-\xea]", b"caf\xe9", true),
            ("caf\u{e9}".as_bytes(), b"caf\xe9", false),
        ] {
            assert_eq!(matches(&of(glob), path, &[]), expected, "{}", glob.escape_ascii());
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_read_or_can_match_nothing_is_named() {
        for glob in ["", "/", ".", "./", "..", "../x", "a/../..", "**/../x", "{a,b}/../c"] {
            let patterns = patterns(&["x", glob], &[]);
            assert_eq!(patterns.impossible().collect::<Vec<_>>(), [glob.as_bytes()]);
            assert_eq!(patterns.unmatched().collect::<Vec<_>>(), [b"x"]);
        }
        let glob = Patterns::new(&["a[".to_owned()], &[]).expect_err("no glob").to_string();
        assert!(glob.contains("a["), "{glob}");
        let regex = Patterns::new(&[], &["a(".to_owned()]).expect_err("no regex").to_string();
        assert!(regex.contains("a("), "{regex}");
    }

    #[test]
    fn what_has_matched_nothing_is_known() {
        let all = patterns(&["a", "./b", "/srv/c", "d*"], &["e"]);
        let unmatched = || all.clone().unmatched().map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(unmatched(), [&b"a"[..], b"./b", b"/srv/c", b"d*", b"e"]);
        assert!(matches(&all, b"b", &[b"srv/".to_vec()]));
        assert!(matches(&all, b"c", &[b"srv/".to_vec()]));
        assert!(!matches(&all, b"x", &[b"srv/".to_vec()]));
        assert_eq!(unmatched(), [&b"a"[..], b"d*", b"e"]);
        assert!(matches(&all, b"d/e/a", &[]));
        assert_eq!(unmatched(), [b"d*"]);
    }
}
