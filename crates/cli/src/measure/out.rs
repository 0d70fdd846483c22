//! The files of a report: all of them whole, or none.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use poach_measure::report::Document;

use super::usage::Usage;
use crate::output::complain;

/// A directory that can be written to. What was made of it goes away again if nothing is written.
pub(super) struct Out {
    directory: PathBuf,
    /// The directories that were not there before, the innermost first.
    made: Vec<PathBuf>,
}

const DOCUMENT: &str = "measure.json";
const PROFILE: &str = "profile.txt";

impl Out {
    /// Makes the directory if it is not there, and tries whether a file can be made in it.
    pub(super) fn prepare(directory: &Path) -> Result<Out> {
        let there = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let made = directory.ancestors().take_while(there).map(Path::to_owned).collect();
        let out = Out { directory: directory.to_owned(), made };
        let unusable = |why: String| Usage(format!("--out: {}: {why}", directory.display()));
        fs::create_dir_all(directory).map_err(|error| unusable(error.to_string()))?;
        for name in [DOCUMENT, PROFILE] {
            if out.directory.join(name).is_dir() {
                return Err(unusable(format!("{name} in it is a directory")).into());
            }
        }
        let trial = out.half(DOCUMENT);
        fs::File::create(&trial)
            .and_then(|_| fs::remove_file(&trial))
            .map_err(|error| unusable(format!("cannot create a file in it: {error}")))?;
        Ok(out)
    }

    fn half(&self, name: &str) -> PathBuf {
        self.directory.join(format!(".{name}.{}", std::process::id()))
    }

    /// Writes the document and, if there is one, the profile.
    pub(super) fn write(mut self, document: &Document) -> Result<()> {
        let mut files = vec![(DOCUMENT, document.to_json()?)];
        match document.profile() {
            Some(profile) => files.push((PROFILE, profile.to_string())),
            None => {
                complain("measure", "no profile was written: it needs a capacity and violations");
            }
        }
        let written = self.all(&files);
        if written.is_err() {
            for (name, _) in &files {
                // What there is of it is of no use to anyone; if it cannot be removed it keeps its
                // own name.
                let _ = fs::remove_file(self.half(name));
            }
        } else {
            self.made.clear();
        }
        written.with_context(|| format!("--out: could not write to {}", self.directory.display()))
    }

    /// All of them under other names first: a full disk shows before any of the old ones is gone.
    fn all(&self, files: &[(&str, String)]) -> io::Result<()> {
        for (name, text) in files {
            let mut file = fs::File::create(self.half(name))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
        }
        files
            .iter()
            .try_for_each(|(name, _)| fs::rename(self.half(name), self.directory.join(name)))
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        for directory in &self.made {
            // Only an empty one goes; another's files in it keep it.
            let _ = fs::remove_dir(directory);
        }
    }
}
