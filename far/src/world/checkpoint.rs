//! Checkpoints: a file with all tasks that wait and all that was found, of one moment.
//!
//! Rank 0 writes it, to another file beside it that then takes its name, so the file is always a
//! whole checkpoint. It holds what the job is about, which must be the same when it is read, and a
//! checksum.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use crate::job::Job;

const MAGIC: &[u8; 16] = b"poach-far 1\n\0\0\0\0";

/// When and where checkpoints are taken.
#[derive(Clone, Copy)]
pub(crate) struct Checkpoint<'c> {
    pub(crate) path: &'c Path,
    pub(crate) every: Duration,
    /// What job it is.
    pub(crate) about: &'c str,
}

/// What a rank hands over at a checkpoint.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Saved<J: Job> {
    pub(crate) tasks: Vec<J::Task>,
    pub(crate) result: J::Result,
}

#[derive(Serialize, Deserialize)]
struct Contents {
    about: String,
    /// One of each rank.
    parts: Vec<Vec<u8>>,
}

/// Writes what all ranks have saved.
pub(crate) fn write(checkpoint: &Checkpoint<'_>, parts: &[Vec<u8>]) -> Result<()> {
    let path = checkpoint.path;
    let bytes = postcard::to_allocvec(&(checkpoint.about, parts))?;
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(MAGIC)?;
        file.write_all(&Sha1::digest(&bytes))?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    });
    written.with_context(|| format!("cannot write the checkpoint {}", path.display()))
}

/// Reads the tasks and the results so far; nothing, if there is no such file.
pub(crate) fn read<J: Job>(path: &Path, about: &str) -> Result<Option<Vec<Saved<J>>>> {
    let named = || format!("the checkpoint {}", path.display());
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        bytes => bytes.with_context(|| format!("cannot read {}", named()))?,
    };
    let behind = bytes.strip_prefix(MAGIC).filter(|behind| behind.len() >= 20);
    let (sum, contents) = behind.with_context(|| format!("{} is none", named()))?.split_at(20);
    ensure!(Sha1::digest(contents)[..] == *sum, "{} is damaged", named());
    let contents: Contents = postcard::from_bytes(contents).with_context(named)?;
    ensure!(
        contents.about == about,
        "{} is of another job: of `{}`, and this is `{about}`",
        named(),
        contents.about
    );
    let parts = contents.parts.iter().map(|part| postcard::from_bytes(part));
    Ok(Some(parts.collect::<Result<_, _>>().with_context(named)?))
}
