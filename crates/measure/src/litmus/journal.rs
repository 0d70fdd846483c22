//! A file of the finished points of a grid, so that a measurement of hours can be interrupted and
//! resumed.
//!
//! The file has lines of JSON: first the [`Plan`], then an [`Entry`] for each point, written as
//! soon as the point is finished. A process that is killed while it writes leaves an incomplete
//! line, which the next process removes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::{fmt, str};

use serde::{Deserialize, Serialize};

use super::grid::Observation;
use super::program::{Outcome, Point};
use crate::place::Placement;

/// What the points of a journal have in common. Those of another plan are not added to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of the file.
    pub journal: u32,
    /// The processor: maker, family and model.
    pub processor: String,
    /// Rounds of a point.
    pub rounds: u64,
    /// The seed of everything random.
    pub seed: u64,
}

/// The version of the file that this code writes.
pub const VERSION: u32 = 1;

/// A point that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where the worker and the thief ran.
    pub placement: Placement,
    /// The point and what became of it.
    #[serde(flatten)]
    pub seen: Observation,
}

/// Why a journal cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum CannotResume {
    /// The file cannot be opened, read or written.
    File(io::Error),
    /// It is another kind of file, and is not changed.
    NotAJournal,
    /// A line of it is damaged.
    Damaged {
        /// Its number, from 1.
        line: usize,
    },
    /// It was made on another processor, or with another number of rounds or seed.
    Other(Plan),
}

impl fmt::Display for CannotResume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotResume::File(error) => error.fmt(f),
            CannotResume::NotAJournal => f.write_str("this is no journal of poach measure"),
            CannotResume::Damaged { line } => write!(f, "line {line} is damaged: take it away"),
            CannotResume::Other(plan) => write!(
                f,
                "its points are of {}, {} rounds each, seed {}: give another file",
                plan.processor, plan.rounds, plan.seed
            ),
        }
    }
}

impl std::error::Error for CannotResume {}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    done: Vec<Entry>,
}

impl Journal {
    /// Opens the journal at `path`, or begins one there.
    ///
    /// # Errors
    ///
    /// [`CannotResume`]; the file is as it was then.
    pub fn open(path: &Path, plan: &Plan) -> Result<Journal, CannotResume> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(CannotResume::File)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(CannotResume::File)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let head = line(plan).map_err(CannotResume::File)?;
        if whole == 0 {
            // Nothing, or what there is of a first line.
            if !head.as_bytes().starts_with(&bytes) {
                return Err(CannotResume::NotAJournal);
            }
            file.rewind().and_then(|()| file.set_len(0)).map_err(CannotResume::File)?;
            file.write_all(head.as_bytes()).map_err(CannotResume::File)?;
            return Ok(Journal { file, done: Vec::new() });
        }
        let done = read(&bytes[..whole], plan)?;
        // What is left of a line that was not finished.
        file.set_len(whole as u64).map_err(CannotResume::File)?;
        file.seek(SeekFrom::End(0)).map_err(CannotResume::File)?;
        Ok(Journal { file, done })
    }

    /// What became of a point, if it is done.
    pub fn find(&self, placement: Placement, point: Point) -> Option<Outcome> {
        let same = |entry: &&Entry| entry.placement == placement && entry.seen.point == point;
        self.done.iter().find(same).map(|entry| entry.seen.outcome)
    }

    /// Adds a point, in one write.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn add(&mut self, entry: Entry) -> io::Result<()> {
        self.file.write_all(line(&entry)?.as_bytes())?;
        self.done.push(entry);
        Ok(())
    }
}

fn line(value: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(value)? + "\n")
}

fn read(bytes: &[u8], plan: &Plan) -> Result<Vec<Entry>, CannotResume> {
    let text = str::from_utf8(bytes).map_err(|_| CannotResume::NotAJournal)?;
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let of: Plan = serde_json::from_str(first).map_err(|_| CannotResume::NotAJournal)?;
    if of != *plan {
        return Err(CannotResume::Other(of));
    }
    let entry =
        |(at, line)| serde_json::from_str(line).map_err(|_| CannotResume::Damaged { line: at + 2 });
    lines.enumerate().map(entry).collect()
}
