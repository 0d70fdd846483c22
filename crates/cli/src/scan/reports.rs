//! The flags of `--report`.

use std::io::{self, Write};
use std::time::Duration;

use poach_scan::report::Measure;
use poach_scan::survey::{Cell, Report, Settings, Survey, Told};

use super::choice::{is_number, times};
use super::limit::Limit;
use super::users::name_of;

/// The flags of reports.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reports")]
#[expect(clippy::struct_field_names, reason = "the flag is `--report`")]
pub(super) struct Reports {
    /// Print reports instead of the tree.
    ///
    /// One walk makes all of them: summary, largest-files, largest-directories, recent, oldest,
    /// by-age, extensions, types, empty-directories, empty-files, symlinks, errors, stats, owners,
    /// duplicates.
    #[arg(long = "report", value_name = "NAME,..", value_delimiter = ',')]
    pub(super) reports: Vec<Report>,
    /// Age limit of the report `recent` (seconds, or a number with s, m, h, d or w).
    #[arg(long, value_name = "AGE", default_value = "1d", value_parser = age)]
    pub(super) recent: Duration,
    /// Print NUL-terminated paths only, for `xargs -0`.
    ///
    /// The paths are those of --report, of --dedupe with --dry-run, or of --print-chosen. An empty
    /// path ends each group of equal files.
    #[arg(long)]
    pub(super) print0: bool,
}

/// Whether the rows of a report are paths.
fn has_paths(report: Report) -> bool {
    use Report::{
        Duplicates, EmptyDirectories, EmptyFiles, Errors, LargestDirectories, LargestFiles, Oldest,
        Recent, Symlinks,
    };
    matches!(
        report,
        LargestFiles
            | LargestDirectories
            | Recent
            | Oldest
            | EmptyDirectories
            | EmptyFiles
            | Symlinks
            | Errors
            | Duplicates
    )
}

/// Writes the paths of the reports, each ended by a NUL.
pub(super) fn print0(told: Told<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut write = |path: &[u8]| out.write_all(path).and_then(|()| out.write_all(b"\0"));
    match told {
        Told::Group(group) => {
            group.copies.iter().try_for_each(|copy| write(&copy.path))?;
            write(b"")
        }
        // Its groups were told.
        Told::Section(section) if section.report == Report::Duplicates => Ok(()),
        Told::Section(section) => {
            let at = section.columns.iter().position(|column| column.name == "path");
            let paths = section.rows.iter().filter_map(|row| row.get(at?));
            paths.into_iter().try_for_each(|cell| match cell {
                Cell::Path(path) => write(path),
                _ => Ok(()),
            })
        }
    }
}

/// An age: a number of seconds, or of the unit that its letter names.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, letter)) if !letter.is_ascii_digit() => (&text[..at], letter),
        _ => (text, 's'),
    };
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        'y' => 365 * 24 * 60 * 60,
        _ => return Err("give seconds, or a number with s, m, h, d, w or y".to_owned()),
    };
    if !is_number(digits) {
        return Err("give a number, such as 90 or 1.5h".to_owned());
    }
    let seconds = times(digits, seconds).filter(|&seconds| i64::try_from(seconds).is_ok());
    seconds.map(Duration::from_secs).ok_or_else(|| "that age is too large".to_owned())
}

impl Reports {
    /// A report that is asked for and has no paths to print.
    pub(super) fn without_paths(&self) -> Option<Report> {
        self.reports.iter().copied().find(|&report| !has_paths(report))
    }

    /// The reports, as a listener of the walk. Without a limit of its own, each shows 20 rows.
    pub(super) fn survey(&self, measure: Measure, top: Option<Limit>) -> Survey {
        Survey::new(&self.reports, self.settings(measure, top.unwrap_or(Some(20))))
    }

    /// What all reports heed.
    pub(super) fn settings(&self, measure: Measure, top: Limit) -> Settings {
        let recent = self.recent.as_secs() as i64;
        Settings { top, measure, recent, name_of: Some(name_of), ..Settings::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_seconds_or_have_a_unit() {
        for (text, seconds) in [
            ("1.5h", 5400),
            ("0.5m", 30),
            ("90", 90),
            ("90s", 90),
            ("2m", 120),
            ("1h", 3600),
            ("3d", 259_200),
            ("1w", 604_800),
        ] {
            assert_eq!(age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "-1", "1.h", ".5h", "3é", "99999999999999999d", "3 d"] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
