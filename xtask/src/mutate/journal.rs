//! What became of each mutant, one JSON document a line, so that a run can be cut short and taken
//! up again.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A test failed.
    Caught,
    /// The tests did not end in time, which counts as caught.
    TimedOut,
    /// Every test passed.
    Survived,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Outcome::Caught => "caught",
            Outcome::TimedOut => "timed out",
            Outcome::Survived => "survived",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A number for a file's code, without comments and tests: a mutant of other code is another
/// mutant.
pub(crate) fn fingerprint(source: &str) -> String {
    let mut hasher = DefaultHasher::new();
    super::code(source).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// What a line of the journal says.
#[derive(Clone, Copy)]
struct Entry {
    outcome: Outcome,
    passed: Passed,
}

/// The tests that a survivor has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Passed {
    /// None took longer, in seconds.
    pub(crate) longest: f64,
    /// They were there at this time, in seconds since 1970.
    pub(crate) at: f64,
}

pub(crate) struct Journal {
    file: File,
    known: HashMap<(String, String), Entry>,
}

impl Journal {
    /// Opens a journal, or begins it. A last line that was cut off is left out.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let text = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
        let mut known = HashMap::new();
        for line in text.lines() {
            let Ok(row) = serde_json::from_str::<Value>(line) else { continue };
            let word = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let outcomes = [Outcome::Caught, Outcome::TimedOut, Outcome::Survived];
            let outcome = outcomes.into_iter().find(|outcome| outcome.word() == word("outcome"));
            let seconds = |name: &str| row[name].as_f64().unwrap_or_default();
            let passed = Passed { longest: seconds("longest"), at: seconds("at") };
            if let Some(outcome) = outcome {
                known.insert((word("key"), word("source")), Entry { outcome, passed });
            }
        }
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            writeln!(file)?;
        }
        Ok(Journal { file, known })
    }

    pub(crate) fn known(&self, key: &str, source: &str) -> Option<Outcome> {
        self.entry(key, source).map(|entry| entry.outcome)
    }

    /// What it has passed, if it is a survivor.
    pub(crate) fn passed(&self, key: &str, source: &str) -> Option<Passed> {
        let entry = self.entry(key, source)?;
        (entry.outcome == Outcome::Survived).then_some(entry.passed)
    }

    fn entry(&self, key: &str, source: &str) -> Option<Entry> {
        self.known.get(&(key.to_owned(), source.to_owned())).copied()
    }

    pub(crate) fn note(
        &mut self,
        key: &str,
        source: &str,
        outcome: Outcome,
        passed: Passed,
    ) -> Result<()> {
        let mut row = json!({ "key": key, "source": source, "outcome": outcome.word() });
        if outcome == Outcome::Survived {
            row["longest"] = passed.longest.into();
            row["at"] = passed.at.into();
        }
        writeln!(self.file, "{row}").context("could not write to the journal")?;
        self.known.insert((key.to_owned(), source.to_owned()), Entry { outcome, passed });
        Ok(())
    }
}

/// The mutants that are the same program, each with its argument: a line with the key, and the
/// argument in the indented lines below it. Lines that begin with `#` are comments.
pub(crate) fn equivalents(text: &str) -> Result<HashMap<String, String>> {
    let mut all = HashMap::new();
    let mut last: Option<String> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        if line.starts_with(char::is_whitespace) {
            let Some(key) = &last else { bail!("an argument without a mutant: {}", line.trim()) };
            let argument: &mut String = all.entry(key.clone()).or_default();
            if !argument.is_empty() {
                argument.push(' ');
            }
            argument.push_str(line.trim());
        } else {
            last = Some(line.to_owned());
            if all.insert(line.to_owned(), String::new()).is_some() {
                bail!("two arguments for one mutant: {line}");
            }
        }
    }
    if let Some((key, _)) = all.iter().find(|(_, argument)| argument.is_empty()) {
        bail!("a mutant without an argument why it is the same program: {key}");
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_taken_up_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/journal.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        let (none, passed) = (Passed::default(), Passed { longest: 0.5, at: 7.0 });
        journal.note("a", "1", Outcome::Caught, none).unwrap();
        journal.note("b", "1", Outcome::Survived, passed).unwrap();
        drop(journal);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"key\":\"c\",\"sour");
        std::fs::write(&path, text).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        assert_eq!(journal.known("a", "1"), Some(Outcome::Caught));
        assert_eq!(journal.known("b", "1"), Some(Outcome::Survived));
        assert_eq!(journal.known("a", "2"), None);
        assert_eq!((journal.passed("a", "1"), journal.passed("b", "1")), (None, Some(passed)));
        journal.note("c", "1", Outcome::TimedOut, none).unwrap();
        drop(journal);
        assert_eq!(Journal::open(&path).unwrap().known("c", "1"), Some(Outcome::TimedOut));
    }

    #[test]
    fn comments_and_tests_are_no_code() {
        let one = fingerprint("fn f() { a.b(); }");
        let two = "//! what\n/// why\nfn f() {\n    a.b(); // how\n}\n#[cfg(test)]\nmod tests { fn g() {} }\n";
        assert_eq!(one, fingerprint(two));
        assert_ne!(one, fingerprint("fn f() { a.c(); }"));
        assert_ne!(fingerprint("#[cold] fn f() {}"), fingerprint("fn f() {}"));
    }

    #[test]
    fn a_mutant_that_is_the_same_program_has_an_argument() {
        let all = equivalents("# why\nf.rs: left out: x();\n  It does\n  nothing.\n\n").unwrap();
        assert_eq!(all["f.rs: left out: x();"], "It does nothing.");
        assert!(equivalents("f.rs: left out: x();\n").is_err());
        assert!(equivalents("f.rs: a\n  b\nf.rs: a\n  c\n").is_err());
        assert!(equivalents("  alone\n").is_err());
    }
}
