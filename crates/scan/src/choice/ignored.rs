//! What the ignore files of a directory and of those above it exclude, by git's rules (the crate `ignore`).

use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::as_path;
use crate::sys::Sys;

/// More than any ignore file has; what goes beyond is not read.
const LONGEST: usize = 1 << 20;

/// The rules of one directory, and of those above.
#[derive(Debug)]
pub(crate) struct Rules {
    above: Option<Arc<Rules>>,
    own: Gitignore,
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
        let mut builder = GitignoreBuilder::new("");
        let mut any = false;
        // The later file has the last word.
        for name in [c".gitignore", c".ignore"] {
            let Ok(text) = sys.read_file(directory, name, LONGEST) else { continue };
            for line in String::from_utf8_lossy(&text).lines() {
                // A line that is no pattern excludes nothing, as in git.
                any |= builder.add_line(None, line).is_ok();
            }
        }
        let above = above.cloned();
        if !any {
            return above;
        }
        match builder.build() {
            Ok(own) => Some(Arc::new(Rules { above, own, prefix: path.len() })),
            Err(_) => above,
        }
    }

    /// Whether an entry, by its path below the root, is not there: the nearest directory that says anything decides.
    pub(crate) fn exclude(&self, path: &[u8], directory: bool) -> bool {
        let mut rules = Some(self);
        while let Some(here) = rules {
            match here.own.matched(as_path(&path[here.prefix..]), directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => rules = here.above.as_deref(),
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
