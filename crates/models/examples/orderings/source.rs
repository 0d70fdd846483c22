//! What stands where an ordering is, and which of those that survive are argued.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use poach_check::Weakening;

/// The sources that have been looked at.
pub(crate) struct Sources {
    root: PathBuf,
    files: HashMap<String, Vec<String>>,
}

impl Sources {
    pub(crate) fn new(root: &Path) -> Self {
        Sources { root: root.to_owned(), files: HashMap::new() }
    }

    /// The file, what is weakened, and the text of the line, with its number among lines of this
    /// text: what does not change with what stands elsewhere.
    pub(crate) fn key(&mut self, weakening: &Weakening) -> String {
        let Weakening { file, line, demand, .. } = weakening;
        let root = &self.root;
        let lines = self.files.entry(file.clone()).or_insert_with(|| {
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            text.lines().map(|line| line.trim().to_owned()).collect()
        });
        let place = *line as usize - 1;
        let text = lines.get(place).cloned().unwrap_or_default();
        let before = lines.iter().take(place).filter(|line| **line == text).count();
        let number = if before == 0 { String::new() } else { format!(" #{}", before + 1) };
        format!("{file}: {}: {text}{number}", demand.name())
    }

    /// The keys that have an argument.
    pub(crate) fn argued(&self) -> BTreeSet<String> {
        let path = self.root.join("crates/models/orderings.txt");
        let text = fs::read_to_string(path).unwrap_or_default();
        let keys = text.lines().filter(|line| {
            !line.is_empty() && !line.starts_with('#') && !line.starts_with(char::is_whitespace)
        });
        keys.map(str::to_owned).collect()
    }
}
