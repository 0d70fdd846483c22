//! Which entries count: the flags that exclude and select.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use poach_scan::Kind;
use poach_scan::choice::{Choice, Patterns};

use super::reports::age;

/// The flags of a choice.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Choosing")]
pub(super) struct Choosing {
    /// Leave out what matches: a name, or with a slash in it a path below PATH. A directory is not read then.
    #[arg(long, short = 'X', value_name = "GLOB")]
    exclude: Vec<String>,
    /// Leave out what has a path below PATH in which this is found.
    #[arg(long, value_name = "REGEX")]
    exclude_regex: Vec<String>,
    /// Count only files, links and others that match.
    #[arg(long, short = 'I', value_name = "GLOB")]
    include: Vec<String>,
    /// Count only files, links and others in whose path below PATH this is found.
    #[arg(long, value_name = "REGEX")]
    include_regex: Vec<String>,
    /// Count only these kinds.
    #[arg(long = "type", value_enum, value_name = "KIND,..", value_delimiter = ',')]
    kinds: Vec<KindName>,
    /// Count only what is at least so long: bytes, or a number with K, M, G or T (powers of 1024).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    min_length: Option<u64>,
    /// Count only what is at most so long.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_length: Option<u64>,
    /// Count only what was changed within this time: seconds, or a number with s, m, h, d, w or y.
    #[arg(long, value_name = "AGE", value_parser = age)]
    newer: Option<Duration>,
    /// Count only what was not changed within this time.
    #[arg(long, value_name = "AGE", value_parser = age)]
    older: Option<Duration>,
    /// Leave out what .gitignore and .ignore files in PATH and below exclude.
    #[arg(long)]
    ignore_files: bool,
    /// Leave out directories with a CACHEDIR.TAG.
    #[arg(long)]
    exclude_caches: bool,
    /// Leave out pseudo file systems below PATH: /proc, /sys and the like.
    #[arg(long)]
    exclude_pseudo: bool,
    /// Scan the paths in FILE, too, each ended by a NUL; `-` is stdin.
    #[arg(long, value_name = "FILE")]
    pub(super) files0_from: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindName {
    #[value(name = "d", alias = "directory")]
    Directory,
    #[value(name = "f", alias = "file")]
    File,
    #[value(name = "l", alias = "symlink")]
    Symlink,
    #[value(name = "o", alias = "other")]
    Other,
}

/// A number of bytes, or of what the letter after it says.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let text = text.strip_suffix("iB").or_else(|| text.strip_suffix('B')).unwrap_or(text);
    let (digits, shift) = match text.char_indices().last() {
        Some((at, letter)) if !letter.is_ascii_digit() => match letter.to_ascii_uppercase() {
            'K' => (&text[..at], 10),
            'M' => (&text[..at], 20),
            'G' => (&text[..at], 30),
            'T' => (&text[..at], 40),
            _ => return Err("give bytes, or a number with K, M, G or T".to_owned()),
        },
        _ => (text, 0),
    };
    let number =
        digits.parse::<u64>().map_err(|_| "give a number, such as 4096 or 10M".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "that is more than a file can have".to_owned())
}

impl Choosing {
    /// One of these flags that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            (!self.exclude.is_empty(), "--exclude"),
            (!self.exclude_regex.is_empty(), "--exclude-regex"),
            (!self.include.is_empty(), "--include"),
            (!self.include_regex.is_empty(), "--include-regex"),
            (!self.kinds.is_empty(), "--type"),
            (self.min_length.is_some(), "--min-length"),
            (self.max_length.is_some(), "--max-length"),
            (self.newer.is_some(), "--newer"),
            (self.older.is_some(), "--older"),
            (self.ignore_files, "--ignore-files"),
            (self.exclude_caches, "--exclude-caches"),
            (self.exclude_pseudo, "--exclude-pseudo"),
        ];
        given.into_iter().find_map(|(given, name)| given.then_some(name))
    }

    /// What was chosen; nothing, if everything counts.
    ///
    /// # Errors
    ///
    /// If a pattern cannot be read.
    pub(super) fn choice(&self) -> Result<Option<Arc<Choice>>> {
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        let ago = |age: Duration| now.saturating_sub(age.as_secs() as i64);
        let kind = |kind: &KindName| match kind {
            KindName::Directory => Kind::Directory,
            KindName::File => Kind::File,
            KindName::Symlink => Kind::Symlink,
            KindName::Other => Kind::Other,
        };
        let choice = Choice {
            exclude: Patterns::new(&self.exclude, &self.exclude_regex).context("--exclude")?,
            include: Patterns::new(&self.include, &self.include_regex).context("--include")?,
            kinds: self.kinds.iter().map(kind).collect(),
            at_least: self.min_length,
            at_most: self.max_length,
            since: self.newer.map(ago),
            before: self.older.map(ago),
            ignore_files: self.ignore_files,
            exclude_caches: self.exclude_caches,
            exclude_pseudo: self.exclude_pseudo,
        };
        let leaves_out = !choice.exclude.is_empty()
            || self.ignore_files
            || self.exclude_caches
            || self.exclude_pseudo;
        Ok((leaves_out || choice.selects()).then(|| Arc::new(choice)))
    }

    /// The paths to scan: those given and those in the file; this directory, if there is neither.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub(super) fn paths(&self, given: &[PathBuf]) -> Result<Vec<PathBuf>> {
        let Some(file) = &self.files0_from else {
            let here = given.is_empty().then(|| PathBuf::from("."));
            return Ok(given.iter().cloned().chain(here).collect());
        };
        let mut list = Vec::new();
        let read = if file == Path::new("-") {
            std::io::stdin().lock().read_to_end(&mut list)
        } else {
            std::fs::File::open(file).and_then(|mut file| file.read_to_end(&mut list))
        };
        read.with_context(|| format!("--files0-from: could not read {}", file.display()))?;
        let listed = list.split(|&byte| byte == 0).filter(|path| !path.is_empty());
        let listed = listed.map(|path| PathBuf::from(os_string(path)));
        Ok(given.iter().cloned().chain(listed).collect())
    }
}

#[cfg(unix)]
fn os_string(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStringExt as _;
    OsString::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
fn os_string(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_have_a_unit() {
        for (text, bytes) in
            [("0", 0), ("4096", 4096), ("10k", 10_240), ("3MiB", 3 << 20), ("1GB", 1 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "-1", "1.5M", "99999999T", "3 M", "é"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
