//! Lines of text, as many as a deletion has entries, in one string.

/// Lines of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    text: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Lines {
    /// Adds a line, of several parts.
    pub(super) fn push(&mut self, parts: &[&str]) {
        self.text.extend(parts.iter().copied());
        self.ends.push(self.text.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Those from a number on.
    pub(super) fn from(&self, first: usize) -> impl Iterator<Item = &str> {
        let begin = |at: usize| at.checked_sub(1).map_or(0, |before| self.ends[before]);
        (first..self.len()).map(move |at| &self.text[begin(at)..self.ends[at]])
    }
}

impl<L: AsRef<str>> FromIterator<L> for Lines {
    fn from_iter<I: IntoIterator<Item = L>>(all: I) -> Lines {
        let mut lines = Lines::default();
        all.into_iter().for_each(|line| lines.push(&[line.as_ref()]));
        lines
    }
}
