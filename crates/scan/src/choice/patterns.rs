//! Globs and regular expressions of names and paths.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::bytes::{RegexSet, RegexSetBuilder};

use super::glob::{Glob, MOST, alternatives, characters, only_text, parsed, regex, slashes};

/// Globs and regular expressions.
///
/// A glob without a slash is matched with the name. A glob with a slash is matched with the path
/// below the given path, where `*` stops at a slash and `**` does not. In such a glob a leading
/// `./` or `/` and slashes at the end change nothing, `//` and `/./` are one slash, and `..` takes
/// the part before it away. A glob that begins with a slash (on Windows with a drive, too) is also
/// matched with the absolute path. `{a,b/c}` stands for the two globs `a` and `b/c`, as in a shell.
/// `?` and `[..]` match a character; where a name or a glob is not UTF-8, a byte. A regular
/// expression is searched for in the path below the given path.
///
/// However many globs there are, a glob that is a plain name or path costs a look-up.
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
    /// Globs that match one text.
    texts: Arc<HashMap<Vec<u8>, Vec<usize>>>,
    regexes: RegexSet,
    /// Of each regular expression.
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
    /// A glob that stands for too many others.
    #[error("the globs that '{0}' stands for have more than {MOST} bytes")]
    Alternatives(String),
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
            // An error is of the whole.
            parsed(text)?;
            let alternatives = alternatives(&slashes(text))
                .ok_or_else(|| PatternError::Alternatives(crate::report::escape(text).into()))?;
            given.push(new(text, false));
            for glob in alternatives.iter().filter_map(|text| Glob::of(text)) {
                given[number].can_match = true;
                if glob.may_be_absolute {
                    absolute.push((number, glob.text.clone()));
                }
                if glob.is_path { &mut paths } else { &mut names }.push((number, glob.text));
            }
        }
        given.extend(regexes.iter().map(|text| new(text.as_bytes(), true)));
        Ok(Patterns {
            given: given.into(),
            names: Set::of_globs(names)?,
            paths: Set::of_globs(paths)?,
            absolute: Set::of_globs(absolute)?,
            regexes: Set {
                texts: Arc::default(),
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

    /// The patterns that could have matched something and have not yet, as they were given, globs
    /// first.
    pub fn unmatched(&self) -> impl Iterator<Item = &[u8]> {
        // Relaxed: it publishes nothing, and the threads of a scan have been joined when it is
        // over.
        let unmatched =
            |given: &&Given| given.can_match && !given.has_matched.load(Ordering::Relaxed);
        self.given.iter().filter(unmatched).map(|given| &*given.text)
    }

    pub(crate) fn wants_paths(&self) -> bool {
        [&self.paths, &self.absolute, &self.regexes].iter().any(|set| !set.is_empty())
    }

    pub(super) fn wants_absolute(&self) -> bool {
        !self.absolute.is_empty()
    }

    /// Whether a pattern matches an entry by its name, its path below a given path, or its absolute
    /// path: `above` holds those of the given path, as [`absolute`] has them.
    pub(crate) fn matches(&self, name: &[u8], path: &[u8], above: &[Vec<u8>]) -> bool {
        let glob = |set: &Set, text: &[u8]| {
            !set.is_empty() && set.matches(text, &characters(text), &self.given)
        };
        let absolute = |above: &Vec<u8>| glob(&self.absolute, &[above, path].concat());
        // Each is asked, so that what two patterns match counts for both.
        glob(&self.names, name)
            | glob(&self.paths, path)
            | self.regexes.matches(path, path, &self.given)
            | (self.wants_absolute() && above.iter().filter(|above| absolute(above)).count() > 0)
    }
}

impl Set {
    fn of_globs(globs: Vec<(usize, Vec<u8>)>) -> Result<Set, PatternError> {
        let mut texts: HashMap<_, Vec<_>> = HashMap::new();
        let (mut given, mut regexes) = (Vec::new(), Vec::new());
        for (number, glob) in globs {
            if let Some(text) = only_text(&glob) {
                texts.entry(text).or_default().push(number);
            } else {
                given.push(number);
                regexes.push(regex(&glob)?);
            }
        }
        // Its size is in proportion to the globs, which repeat nothing.
        let regexes = RegexSetBuilder::new(regexes)
            .dot_matches_new_line(true)
            .size_limit(usize::MAX)
            .build()?;
        Ok(Set { texts: Arc::new(texts), regexes, given })
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.given.is_empty()
    }

    /// Whether one matches a text, which regular expressions get in a form of their own.
    fn matches(&self, text: &[u8], for_regexes: &[u8], given: &[Given]) -> bool {
        // Relaxed, all: as in `unmatched`.
        let has_matched = |number: usize| given[number].has_matched.load(Ordering::Relaxed);
        let note = |number: usize| given[number].has_matched.store(true, Ordering::Relaxed);
        let numbers = self.texts.get(text);
        numbers.into_iter().flatten().filter(|&&it| !has_matched(it)).for_each(|&it| note(it));
        if self.given.is_empty() || !self.regexes.is_match(for_regexes) {
            return numbers.is_some();
        }
        if self.given.iter().any(|&number| !has_matched(number)) {
            self.regexes.matches(for_regexes).iter().for_each(|regex| note(self.given[regex]));
        }
        true
    }
}

/// The absolute paths of a given path, as it was given and without links, each with a slash at its
/// end and none before it.
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
    fn what_matches_one_of_several_matches_a_character() {
        for (glob, path, expected) in [
            ("caf[\u{e9}]", "caf\u{e9}", true),
            ("caf[\u{e8}-\u{ea}]", "caf\u{e9}", true),
            ("caf[!\u{e8}]", "caf\u{e9}", true),
            ("caf[!\u{e9}]", "caf\u{e9}", false),
            ("caf[^a-z]", "caf\u{e9}", true),
            ("[]\\^a-]", "\\", true),
            ("[]\\^a-]", "b", false),
            ("caf?", "caf\u{e9}", true),
            ("caf??", "caf\u{e9}", false),
            ("?", "\u{65e5}", true),
            ("*\u{e9}[\u{65e5}]*x", "\u{e9}\u{65e5}\u{672c}x", true),
            ("[\u{e9}]\\*", "\u{e9}*", true),
        ] {
            let found = matches(&patterns(&[glob], &[]), path.as_bytes(), &[]);
            assert_eq!(found, expected, "{glob} of {path}");
        }
        let mixed = Patterns::of_bytes(&[b"\xff[\xc3\xa9\xff]?"], &[]).expect("a pattern");
        assert!(matches(&mixed, b"\xff\xc3\xa9\xfe", &[]));
        assert!(matches(&mixed, b"\xff\xff\xc3\xa9", &[]));
        assert!(!matches(&mixed, b"\xff\xc3\xc3", &[]));
    }

    #[test]
    fn braces_stand_for_several_globs() {
        let above = [b"srv/".to_vec()];
        for (glob, path, expected) in [
            ("{./a,b//}", "a", true),
            ("{./a,b//}", "x/a", false),
            ("{./a,b//}", "x/b", true),
            ("{/srv/a,/srv/b/}", "b", true),
            ("/srv/{a,b}/", "b", true),
            ("{/,/srv}/{a,b}", "a", true),
            ("x{,.bak}", "x", true),
            ("x{,.bak}", "x.bak", true),
            ("{a,{b,c/}d}", "cd", false),
            ("{a,{b,c/}d}", "c/d", true),
            ("{a,{b,c/}d}", "bd", true),
            ("{a,b}/../c", "c", true),
            ("[{]a,b[}]", "{a,b}", true),
            ("[{]a,b[}]", "a", false),
            ("[]{]{a,b}", "{b", true),
            ("\\{a,b\\}", "{a,b}", true),
            ("{a\\,b,\\}}", "a,b", true),
            ("{a\\,b,\\}}", "}", true),
            ("{caf\u{e9},?}", "\u{e9}", true),
        ] {
            let found = matches(&patterns(&[glob], &[]), path.as_bytes(), &above);
            assert_eq!(found, expected, "{glob} of {path}");
        }
        let all = patterns(&["{a,../b}", "{../b,..}"], &[]);
        assert_eq!(all.impossible().collect::<Vec<_>>(), [b"{../b,..}"]);
        assert!(matches(&all, b"a", &[]) && all.unmatched().count() == 0);
        for wrong in ["{a,b", "a}", "{a,b}}", "{a\\}"] {
            assert!(Patterns::new(&[wrong.to_owned()], &[]).is_err(), "{wrong}");
        }
        let long = Patterns::new(&["{a,b}".repeat(30)], &[]).expect_err("too many").to_string();
        assert!(long.contains("{a,b}{a,b}"), "{long}");
    }

    #[test]
    fn there_may_be_very_many() {
        let names: Vec<String> = (0..30_000).map(|it| format!("a-name-of-a-file-{it}")).collect();
        let all = Patterns::new(&names, &[]).expect("names");
        assert!(matches(&all, b"x/a-name-of-a-file-29999", &[]));
        assert!(!matches(&all, b"a-name-of-a-file-30000", &[]));
        assert_eq!(all.unmatched().count(), 29_999);
        let paths: Vec<String> = names.iter().map(|name| format!("/srv/{name}/")).collect();
        let all = Patterns::new(&paths, &[]).expect("paths");
        assert!(matches(&all, b"a-name-of-a-file-7", &[b"srv/".to_vec()]));
        let globs: Vec<String> = names.iter().map(|name| format!("?{name}")).take(9000).collect();
        let all = Patterns::new(&globs, &[]).expect("globs");
        assert!(matches(&all, b"xa-name-of-a-file-7", &[]));
    }

    #[test]
    fn a_pattern_that_cannot_be_read_or_can_match_nothing_is_named() {
        for glob in ["", "/", ".", "./", "..", "../x", "a/../..", "**/../x", "[a/b]/../c"] {
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
