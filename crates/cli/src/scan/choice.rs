//! The flags that exclude and select entries.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use poach_scan::Kind;
use poach_scan::choice::{Choice, Patterns, Time};
use poach_scan::report::escape;

use super::reports::age;
use super::users;
use crate::output::{complain, shown};

/// Their long names, but for `--files0-from`.
pub(super) const CHOOSING: &[&str] = &[
    "exclude",
    "exclude-from",
    "exclude-regex",
    "include",
    "include-regex",
    "type",
    "min-length",
    "max-length",
    "newer",
    "older",
    "time",
    "owner",
    "group",
    "ignore-files",
    "exclude-caches",
    "exclude-pseudo",
];

/// The flags of a choice.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Choosing")]
pub(super) struct Choosing {
    /// Exclude entries that match a pattern.
    ///
    /// A pattern without a slash matches names. A pattern with a slash matches paths below PATH, or
    /// absolute paths. An excluded directory is not read.
    #[arg(long, short = 'X', value_name = "GLOB")]
    exclude: Vec<OsString>,
    /// Read patterns to exclude from FILE, one per line; `#` begins a comment; `-` is stdin.
    #[arg(long, value_name = "FILE")]
    exclude_from: Vec<PathBuf>,
    /// Exclude entries whose path below PATH matches.
    #[arg(long, value_name = "REGEX")]
    exclude_regex: Vec<String>,
    /// Count only files, links and others that match a pattern.
    #[arg(long, short = 'I', value_name = "GLOB")]
    include: Vec<OsString>,
    /// Count only files, links and others whose path below PATH matches.
    #[arg(long, value_name = "REGEX")]
    include_regex: Vec<String>,
    /// Count only directories, files, links or others.
    #[arg(long = "type", value_enum, value_name = "KIND,..", value_delimiter = ',')]
    kinds: Vec<KindName>,
    /// Count only entries of at least this length (bytes, or a number with K, M, G or T).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    min_length: Option<u64>,
    /// Count only entries of at most this length.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_length: Option<u64>,
    /// Count only entries changed within an age or since a date.
    ///
    /// An age is in seconds, or a number with s, m, h, d, w or y. A date is 2026-01-31 or
    /// 2026-01-31T12:00, with Z or an offset such as +02:00, or else in local time.
    #[arg(long, value_name = "AGE|DATE", value_parser = when)]
    newer: Option<When>,
    /// Count only entries last changed before an age or a date.
    #[arg(long, value_name = "AGE|DATE", value_parser = when)]
    older: Option<When>,
    /// The time that --newer and --older compare. Not on Windows.
    #[arg(long, value_enum, value_name = "TIME", default_value_t = TimeName::Modified)]
    time: TimeName,
    /// Count only entries of these users (names or numbers). Not on Windows.
    #[arg(long, value_name = "USER,..", value_delimiter = ',', value_parser = users::user)]
    owner: Vec<u32>,
    /// Count only entries of these groups (names or numbers). Not on Windows.
    #[arg(long, value_name = "GROUP,..", value_delimiter = ',', value_parser = users::group)]
    group: Vec<u32>,
    /// Respect .gitignore and .ignore files.
    #[arg(long)]
    ignore_files: bool,
    /// Exclude directories with a CACHEDIR.TAG.
    #[arg(long)]
    exclude_caches: bool,
    /// Exclude pseudo file systems below PATH, such as /proc and /sys.
    #[arg(long)]
    exclude_pseudo: bool,
    /// Read more PATHs from FILE, NUL-terminated; `-` is stdin.
    #[arg(long, value_name = "FILE")]
    pub(super) files0_from: Option<PathBuf>,
    /// The number of patterns from the configuration file or the environment, which come first.
    #[arg(skip)]
    defaults: Defaults,
}

#[derive(Debug, Default)]
struct Defaults {
    exclude: usize,
    exclude_from: usize,
    exclude_regex: usize,
    include: usize,
    include_regex: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimeName {
    /// Last change of the content (mtime).
    Modified,
    /// Last read (atime).
    Accessed,
    /// Last change of the content, owner or mode (ctime).
    Changed,
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

/// A time: an age, or seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Ago(Duration),
    At(i64),
}

/// An age, or a date. A date without a zone is of the system's.
fn when(text: &str) -> Result<When, String> {
    if !text.contains('-') {
        return age(text).map(When::Ago);
    }
    let local = || text.parse::<jiff::civil::DateTime>()?.to_zoned(jiff::tz::TimeZone::system());
    let zoned = || text.parse::<jiff::Zoned>().or_else(|_| local());
    let timestamp = text.parse::<jiff::Timestamp>().or_else(|_| zoned().map(|it| it.timestamp()));
    // A second that has begun is that second.
    let seconds = timestamp.map(|it| it.as_nanosecond().div_euclid(1_000_000_000) as i64);
    seconds
        .map(When::At)
        .map_err(|_| "give an age, such as 3d, or a date, such as 2026-01-31".to_owned())
}

/// A number of bytes, or of the unit that its letter names.
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
    if !is_number(digits) {
        return Err("give a number, such as 4096 or 1.5M".to_owned());
    }
    times(digits, 1 << shift).ok_or_else(|| "that is larger than any file".to_owned())
}

/// Whether a text is a number, which may have a fraction.
pub(super) fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    digits(whole) && digits(fraction)
}

/// A [number](is_number) of units, rounded down; nothing, if it is too large.
pub(super) fn times(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // Further digits say nothing: a unit is at most 2^40.
    let fraction = &fraction[..fraction.len().min(18)];
    let parts = u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit);
    let part = (parts / 10_u128.pow(fraction.len() as u32)) as u64;
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(part)
}

impl Choosing {
    /// Whether it matters when an entry was changed.
    pub(super) fn asks_when(&self) -> bool {
        self.newer.is_some() || self.older.is_some()
    }

    /// What was chosen; nothing, if everything counts.
    ///
    /// # Errors
    ///
    /// If a pattern, or a file of them, cannot be read.
    pub(super) fn choice(&self) -> Result<Option<Arc<Choice>>> {
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        let seconds = |when: When| match when {
            When::Ago(age) => now.saturating_sub(age.as_secs() as i64),
            When::At(seconds) => seconds,
        };
        let kind = |kind: &KindName| match kind {
            KindName::Directory => Kind::Directory,
            KindName::File => Kind::File,
            KindName::Symlink => Kind::Symlink,
            KindName::Other => Kind::Other,
        };
        let mut listed = Vec::new();
        for file in &self.exclude_from {
            listed.push(read(file).context("--exclude-from")?);
        }
        let listed = listed.iter().flat_map(|list| lines(list));
        let exclude: Vec<_> = bytes(&self.exclude).chain(listed).map(without_links).collect();
        let include: Vec<_> = bytes(&self.include).map(without_links).collect();
        let patterns = |globs: &[Cow<'_, [u8]>], regexes, name| {
            let globs: Vec<&[u8]> = globs.iter().map(|glob| &**glob).collect();
            let patterns = Patterns::of_bytes(&globs, regexes).context(name)?;
            if let Some(vain) = few(patterns.impossible()) {
                complain("scan", &format!("{name}: no path below PATH can match {vain}"));
            }
            anyhow::Ok(patterns)
        };
        let choice = Choice {
            exclude: patterns(&exclude, &self.exclude_regex, "--exclude")?,
            include: patterns(&include, &self.include_regex, "--include")?,
            kinds: self.kinds.iter().map(kind).collect(),
            at_least: self.min_length,
            at_most: self.max_length,
            time: match self.time {
                TimeName::Modified => Time::Modified,
                _ if cfg!(windows) => bail!("--time: Windows has only `modified`"),
                TimeName::Accessed => Time::Accessed,
                TimeName::Changed => Time::Changed,
            },
            owners: self.owner.clone(),
            groups: self.group.clone(),
            since: self.newer.map(seconds),
            before: self.older.map(seconds),
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

    /// Distinguishes typed options from defaults.
    pub(super) fn tell_defaults(&mut self, typed: &Choosing) {
        self.defaults = Defaults {
            exclude: self.exclude.len() - typed.exclude.len(),
            exclude_from: self.exclude_from.len() - typed.exclude_from.len(),
            exclude_regex: self.exclude_regex.len() - typed.exclude_regex.len(),
            include: self.include.len() - typed.include.len(),
            include_regex: self.include_regex.len() - typed.include_regex.len(),
        };
    }

    /// Reports the patterns that have matched nothing in a scan that is over. Default patterns are
    /// not reported.
    pub(super) fn complain_of_unmatched(&self, choice: &Choice) {
        let of = &self.defaults;
        let lists = self.exclude_from[..of.exclude_from].iter();
        let lists: Vec<Vec<u8>> = lists.filter_map(|file| read(file).ok()).collect();
        let listed = lists.iter().flat_map(|list| lines(list));
        let regexes = |regexes: &[String]| {
            regexes.iter().map(|regex| regex.clone().into_bytes()).collect::<Vec<_>>()
        };
        let exclude = bytes(&self.exclude[..of.exclude]).chain(listed);
        let exclude = exclude.map(without_links).map(Cow::into_owned);
        let exclude = exclude.chain(regexes(&self.exclude_regex[..of.exclude_regex])).collect();
        let include = bytes(&self.include[..of.include]).map(without_links).map(Cow::into_owned);
        let include = include.chain(regexes(&self.include_regex[..of.include_regex])).collect();
        let both: [(_, _, HashSet<Vec<u8>>); 2] =
            [("--exclude", &choice.exclude, exclude), ("--include", &choice.include, include)];
        let is_regex = |text: &[u8]| {
            let mut regexes = self.exclude_regex.iter().chain(&self.include_regex);
            regexes.any(|regex| regex.as_bytes() == text)
        };
        for (name, patterns, defaults) in both {
            let typed = patterns.unmatched().filter(|text| !defaults.contains(*text));
            let (regexes, globs): (Vec<_>, Vec<_>) = typed.partition(|text| is_regex(text));
            for (vain, kind) in [(globs, ""), (regexes, "-regex")] {
                if let Some(vain) = few(vain.into_iter()) {
                    complain("scan", &format!("{name}{kind}: nothing below PATH matches {vain}"));
                }
            }
        }
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
        let list = read(file).context("--files0-from")?;
        let listed = list.split(|&byte| byte == 0).filter(|path| !path.is_empty());
        let listed = listed.map(|path| PathBuf::from(os_string(path)));
        Ok(given.iter().cloned().chain(listed).collect())
    }
}

/// The first few patterns, and how many more there are; nothing, if there is none.
fn few<'a>(mut patterns: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    const FEW: usize = 5;
    let quoted = |pattern: &[u8]| format!("'{}'", escape(pattern));
    let few: Vec<_> = patterns.by_ref().take(FEW).map(quoted).collect();
    let few = (!few.is_empty()).then(|| few.join(", "))?;
    Some(match patterns.count() {
        0 => few,
        more => format!("{few}, and {more} more"),
    })
}

/// A glob of an absolute path, with the directories on its way as they are called without links:
/// a shell's `$PWD` may lead through some. Another glob, or where nothing is there, as it is.
fn without_links(glob: &[u8]) -> Cow<'_, [u8]> {
    let is_plain = |text: &[u8]| !text.iter().any(|byte| b"*?[]{}\\".contains(byte));
    let end = glob.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let parts = || glob[..end].split(|&byte| byte == b'/');
    let plain = parts().take_while(|part| is_plain(part)).count();
    // The last may be a link itself, and is excluded as such.
    let above = plain.min(parts().count().saturating_sub(1));
    let length = parts().take(above).map(|part| part.len() + 1).sum::<usize>();
    if cfg!(windows) || !glob.starts_with(b"/") || length < 2 {
        return glob.into();
    }
    let resolved = Path::new(&os_string(&glob[..length])).canonicalize();
    match resolved.map(|path| path.into_os_string().into_encoded_bytes()) {
        Ok(path) if is_plain(&path) => [&path, &b"/"[..], &glob[length..]].concat().into(),
        _ => glob.into(),
    }
}

/// The bytes of arguments.
fn bytes(arguments: &[OsString]) -> impl Iterator<Item = &[u8]> {
    arguments.iter().map(|argument| argument.as_encoded_bytes())
}

/// The lines of a list that are neither empty nor a comment.
fn lines(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = list.split(|&byte| byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"))
}

/// Reads a file, or stdin for `-`, without the byte order mark that it may begin with.
///
/// # Errors
///
/// If it cannot be read; the error names it.
pub(super) fn read(file: &Path) -> Result<Vec<u8>> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let mut text = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut text)
    } else {
        std::fs::File::open(file).and_then(|mut file| file.read_to_end(&mut text))
    };
    read.with_context(|| format!("could not read {}", shown(file)))?;
    Ok(text.strip_prefix(MARK).map(<[u8]>::to_vec).unwrap_or(text))
}

#[cfg(unix)]
pub(super) fn os_string(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStringExt as _;
    OsString::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
pub(super) fn os_string(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_age_or_a_date() {
        assert_eq!(when("1.5h"), Ok(When::Ago(Duration::from_secs(5400))));
        for (text, seconds) in [
            ("2026-01-01T00:00:00Z", 1_767_225_600),
            ("2026-01-01T02:00:00+02:00", 1_767_225_600),
            ("1969-12-31T23:59:59.5Z", -1),
            ("2026-07-01T00:00[Europe/Berlin]", 1_782_856_800),
        ] {
            assert_eq!(when(text), Ok(When::At(seconds)), "{text}");
        }
        for text in ["2026-01-01", "2026-01-01 12:30", "2026-01-01T12:30:15"] {
            let midnight = 1_767_225_600_i64;
            let day = 24 * 60 * 60;
            assert!(
                matches!(when(text), Ok(When::At(at)) if (at - midnight).abs() < 2 * day),
                "{text}"
            );
        }
        for text in ["2026-13-01", "-1", "2026-01-32", "yesterday", "1-2"] {
            assert!(when(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_bytes_or_have_a_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("10k", 10_240),
            ("3MiB", 3 << 20),
            ("1GB", 1 << 30),
            ("1.5M", 3 << 19),
            ("0.1K", 102),
            ("1.9999999999999999999999k", 2047),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "-1", "1.M", ".5M", "1.5.5M", "1e3", "99999999T", "3 M", "é"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
