//! Python's arguments, as options of a scan.

use std::collections::HashMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use poach_scan::choice::Patterns;
use poach_scan::document::Format;
use poach_scan::report::Measure;
use poach_scan::survey::{Report, Settings, Survey};
use poach_scan::{Kind, MAX_THREADS};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::json::invalid;

/// One string or several.
#[derive(FromPyObject)]
pub(crate) enum Names {
    /// One string.
    #[pyo3(transparent, annotation = "str")]
    One(String),
    /// Several strings.
    #[pyo3(transparent, annotation = "Sequence[str]")]
    Several(Vec<String>),
}

impl Names {
    pub(crate) fn all(names: Option<Names>) -> Vec<String> {
        match names {
            None => Vec::new(),
            Some(Names::One(name)) => vec![name],
            Some(Names::Several(names)) => names,
        }
    }
}

/// One path or several: each a `str`, `bytes` or `os.PathLike`.
pub(crate) fn paths(given: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    let is_one = given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.hasattr("__fspath__")?;
    if is_one {
        return Ok(vec![path(given)?]);
    }
    given.try_iter()?.map(|each| path(&each?)).collect()
}

/// A path.
pub(crate) fn path(given: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let decoded = given.py().import("os")?.call_method1("fsdecode", (given,))?;
    let path: OsString = decoded.extract()?;
    if path.as_encoded_bytes().contains(&0) {
        return Err(invalid("a path holds a NUL character, which no system's paths do"));
    }
    Ok(path.into())
}

/// The number of threads; by default the system's number of processors.
pub(crate) fn threads(given: Option<usize>) -> PyResult<Option<NonZeroUsize>> {
    let out_of_range = || invalid(format!("threads: from 1 to {MAX_THREADS}"));
    given
        .map(|threads| {
            NonZeroUsize::new(threads)
                .filter(|threads| threads.get() <= MAX_THREADS)
                .ok_or_else(out_of_range)
        })
        .transpose()
}

/// The measure of size.
pub(crate) fn measure(name: &str) -> PyResult<Measure> {
    match name {
        "disk" => Ok(Measure::Disk),
        "apparent" => Ok(Measure::Apparent),
        "entries" => Ok(Measure::Entries),
        _ => Err(invalid(format!("by: {name:?} is none of disk, apparent, entries"))),
    }
}

/// The name of a kind.
pub(crate) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Directory => "directory",
        Kind::File => "file",
        Kind::Symlink => "symlink",
        Kind::Other => "other",
    }
}

/// Kinds by their names.
pub(crate) fn kinds(names: Option<Names>) -> PyResult<Vec<Kind>> {
    const ALL: [Kind; 4] = [Kind::Directory, Kind::File, Kind::Symlink, Kind::Other];
    let kind = |name: &String| {
        ALL.into_iter().find(|kind| kind_name(*kind) == name).ok_or_else(|| {
            invalid(format!("kinds: {name:?} is none of directory, file, symlink, other"))
        })
    };
    Names::all(names).iter().map(kind).collect()
}

/// Patterns; `what` is the argument's name.
pub(crate) fn patterns(
    what: &str,
    globs: Option<Names>,
    regexes: Option<Names>,
) -> PyResult<Patterns> {
    Patterns::new(&Names::all(globs), &Names::all(regexes))
        .map_err(|error| invalid(format!("{what}: {error}")))
}

/// Reports by their names.
pub(crate) fn reports(names: Option<Names>) -> PyResult<Vec<Report>> {
    let mut reports = Vec::new();
    for name in Names::all(names) {
        let report = name.parse().map_err(|error| invalid(format!("reports: {error}")))?;
        if !reports.contains(&report) {
            reports.push(report);
        }
    }
    Ok(reports)
}

/// The reports, as a visitor of the walk.
pub(crate) fn survey(
    py: Python<'_>,
    reports: &[Report],
    top: Option<usize>,
    measure: Measure,
    recent: i64,
) -> PyResult<Survey> {
    let owners = if reports.contains(&Report::Owners) { users(py)? } else { HashMap::default() };
    let settings = Settings { top, measure, recent, owners, ..Settings::default() };
    Ok(Survey::new(reports, settings))
}

/// The names of users from Python's module `pwd`; none if there is no such module.
fn users(py: Python<'_>) -> PyResult<HashMap<u32, String>> {
    let module = match py.import("pwd") {
        Err(error) if error.is_instance_of::<PyImportError>(py) => return Ok(HashMap::default()),
        module => module?,
    };
    let mut names = HashMap::new();
    for user in module.call_method0("getpwall")?.try_iter()? {
        let user = user?;
        let number = user.getattr("pw_uid")?.extract::<u32>();
        // If two names have one number, the first counts. A number that is too large for an owner
        // is skipped.
        if let Ok(number) = number {
            names.entry(number).or_insert(user.getattr("pw_name")?.extract::<String>()?);
        }
    }
    Ok(names)
}

/// A format of documents.
pub(crate) fn format(name: &str) -> PyResult<Format> {
    const ALL: [(&str, Format); 6] = [
        ("json", Format::Json),
        ("ndjson", Format::Ndjson),
        ("csv", Format::Csv),
        ("ncdu", Format::Ncdu),
        ("snapshot", Format::Snapshot),
        ("html", Format::Html),
    ];
    ALL.into_iter().find(|(each, _)| *each == name).map(|(_, format)| format).ok_or_else(|| {
        let known = ALL.map(|(name, _)| name).join(", ");
        invalid(format!("format: {name:?} is none of {known}"))
    })
}
