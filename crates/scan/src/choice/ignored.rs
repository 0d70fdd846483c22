//! What the ignore files of a directory and of those above it exclude, by git's rules. Bytes are
//! compared, whatever they mean, and a byte order mark at a file's beginning does not count for its
//! first line. A test compares with git. Two crates have these rules, and answer otherwise:
//! `ignore` takes braces for alternatives and knows no `[[:alpha:]]`; `gix-ignore` differs where a
//! file ends with a carriage return, for `a**/b`, and for more than 64 stars.

use std::ffi::CStr;
use std::io;
use std::sync::Arc;

use super::wildmatch::Pattern;
use crate::sys::Sys;

/// Each rule takes some 80 bytes, so a longer file could take more memory than there is. (git's
/// limit is 100 MiB.)
const LONGEST: usize = 16 << 20;

/// A line of an ignore file.
#[derive(Debug)]
struct Rule {
    pattern: Pattern,
    /// Whether it says that what matches is not excluded.
    is_negative: bool,
    of_directories: bool,
    /// Whether it is of names, wherever they are.
    of_names: bool,
}

/// The rules of one directory, and of those above.
#[derive(Debug)]
pub(crate) struct Rules {
    above: Option<Arc<Rules>>,
    /// The later has the last word.
    own: Vec<Rule>,
    /// How much of a path below the root leads to the directory.
    prefix: usize,
}

impl Rules {
    /// The rules that hold in a directory, whose path below the root ends with a slash unless it is
    /// empty. What cannot be read is told: it holds no rules then. A directory or pipe of the name
    /// of an ignore file is none.
    pub(crate) fn of<S: Sys>(
        sys: &S,
        directory: &S::Directory,
        path: &[u8],
        above: Option<&Arc<Rules>>,
        mut failed: impl FnMut(&CStr, io::Error),
    ) -> Option<Arc<Rules>> {
        let mut own = Vec::new();
        for name in [c".gitignore", c".ignore"] {
            match sys.read_file(directory, name, LONGEST + 1) {
                Ok(text) if text.len() > LONGEST => {
                    failed(name, io::Error::other("it is longer than 16 MiB"));
                }
                Ok(text) => {
                    own.extend(rules(&text));
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => {}
                    _ => failed(name, error),
                },
            }
        }
        let above = above.cloned();
        if own.is_empty() {
            return above;
        }
        Some(Arc::new(Rules { above, own, prefix: path.len() }))
    }

    /// Whether an entry, by its path below the root, is excluded: the nearest directory with a rule
    /// for it decides.
    pub(crate) fn exclude(&self, path: &[u8], directory: bool) -> bool {
        let mut rules = Some(self);
        while let Some(here) = rules {
            let path = &path[here.prefix..];
            let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
            let matches = |rule: &&Rule| {
                let text = if rule.of_names { name } else { path };
                (directory || !rule.of_directories) && rule.pattern.matches(text)
            };
            match here.own.iter().rfind(matches) {
                Some(rule) => return !rule.is_negative,
                None => rules = here.above.as_deref(),
            }
        }
        false
    }
}

/// The rules of a file.
fn rules(text: &[u8]) -> impl Iterator<Item = Rule> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let text = text.strip_prefix(MARK).unwrap_or(text);
    text.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"#")).filter_map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // A NUL byte ends a line for git.
        let line = line.split(|&byte| byte == 0).next().unwrap_or(line);
        let line = without_spaces(line);
        let (is_negative, line) = match line.strip_prefix(b"!") {
            Some(line) => (true, line),
            None => (false, line),
        };
        let (of_directories, line) = match line.strip_suffix(b"/") {
            Some(line) => (true, line),
            None => (false, line),
        };
        let of_names = !line.contains(&b'/');
        let line = line.strip_prefix(b"/").unwrap_or(line);
        let pattern = Pattern::of(line);
        (!line.is_empty()).then_some(Rule { pattern, is_negative, of_directories, of_names })
    })
}

/// A line without the spaces at its end of which none is escaped.
fn without_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        at += 1 + usize::from(byte == b'\\');
        if byte != b' ' {
            end = at;
        }
    }
    &line[..end.min(line.len())]
}

impl Drop for Rules {
    fn drop(&mut self) {
        // One after the other: the chain may be as long as the tree is deep.
        let mut above = self.above.take();
        while let Some(mut rules) = above.and_then(Arc::into_inner) {
            above = rules.above.take();
        }
    }
}
