//! Mutants by rule: what a source file would be with one small change that ought to be noticed.
//!
//! The rules are our own, over token spans, because cargo-mutants knows nothing of what matters
//! here: orderings, fences and the order of stores. And a queue's models judge its mutants, not its
//! tests alone. As in cargo-mutants a timeout counts as caught, a mutant that does not compile is
//! no mutant, and only changed files are tried again.

pub(crate) mod journal;
mod rules;
pub(crate) mod together;

use std::ops::Range;

pub(crate) use rules::{code, mutants};

/// One change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// What finds it again in a file that has changed elsewhere: the file, the rule, the text of
    /// the line, and how many such there are before it.
    pub(crate) key: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// What is replaced, in bytes.
    pub(crate) range: Range<usize>,
    /// What replaces it.
    pub(crate) text: String,
    /// The same as a choice that the running program makes.
    pub(crate) wraps: Vec<Wrap>,
}

/// What stands in a [`Wrap`] for the question whether the running program is to be this mutant.
pub(crate) const IS: &str = "\u{1}";

/// Text to put around a part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrap {
    pub(crate) range: Range<usize>,
    /// Before it, with [`IS`].
    pub(crate) open: String,
    /// Behind it.
    pub(crate) close: &'static str,
}

impl Wrap {
    fn new(range: Range<usize>, open: String, close: &'static str) -> Self {
        Wrap { range, open, close }
    }
}

impl Mutant {
    /// Whether an access becomes weaker that is no more than an acquire and a release. On x86-64
    /// the instruction is the same: a model may notice it, and no other test.
    pub(crate) fn is_for_models(&self, source: &str) -> bool {
        let weaker = matches!(&source[self.range.clone()], "Acquire" | "Release" | "AcqRel");
        cfg!(target_arch = "x86_64") && weaker && self.key.contains(": ordering: ")
    }

    /// The source with the change.
    #[cfg(test)]
    pub(crate) fn applied(&self, source: &str) -> String {
        let (before, after) = (&source[..self.range.start], &source[self.range.end..]);
        format!("{before}{}{after}", self.text)
    }

    /// What is changed into what, in one line.
    pub(crate) fn change(&self, source: &str) -> String {
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let after = if self.text.is_empty() { "nothing".to_owned() } else { line(&self.text) };
        format!("{} -> {after}", line(&source[self.range.clone()]))
    }
}
