//! What the ignore files of a directory and of those above it exclude, by git's rules (the crate `gix-ignore`): bytes are
//! compared, whatever they mean, and a byte order mark at a file's beginning is none of its first line.

use std::sync::Arc;

use gix_ignore::glob::Pattern;
use gix_ignore::glob::pattern::Case;
use gix_ignore::glob::wildmatch::Mode;

use crate::sys::Sys;

/// More than any ignore file has; what goes beyond is not read.
const LONGEST: usize = 1 << 20;

/// The rules of one directory, and of those above.
#[derive(Debug)]
pub(crate) struct Rules {
    above: Option<Arc<Rules>>,
    /// The later has the last word.
    own: Vec<Pattern>,
    /// How much of a path below the root leads to the directory.
    prefix: usize,
}

impl Rules {
    /// The rules that hold in a directory, whose path below the root ends with a slash unless it is empty.
    pub(crate) fn of<S: Sys>(
        sys: &S,
        directory: &S::Directory,
        path: &[u8],
        above: Option<&Arc<Rules>>,
    ) -> Option<Arc<Rules>> {
        let mut own = Vec::new();
        for name in [c".gitignore", c".ignore"] {
            let Ok(text) = sys.read_file(directory, name, LONGEST) else { continue };
            own.extend(gix_ignore::parse(&text, false).map(|(pattern, ..)| pattern));
        }
        let above = above.cloned();
        if own.is_empty() {
            return above;
        }
        Some(Arc::new(Rules { above, own, prefix: path.len() }))
    }

    /// Whether an entry, by its path below the root, is not there: the nearest directory that says anything decides.
    pub(crate) fn exclude(&self, path: &[u8], directory: bool) -> bool {
        let mut rules = Some(self);
        while let Some(here) = rules {
            let path = &path[here.prefix..];
            let name = path.iter().rposition(|&byte| byte == b'/').map(|slash| slash + 1);
            let matches = |pattern: &&Pattern| {
                let (case, mode) = (Case::Sensitive, Mode::NO_MATCH_SLASH_LITERAL);
                pattern.matches_repo_relative_path(path.into(), name, Some(directory), case, mode)
            };
            match here.own.iter().rfind(matches) {
                Some(pattern) => return !pattern.is_negative(),
                None => rules = here.above.as_deref(),
            }
        }
        false
    }
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
