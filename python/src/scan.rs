//! `poach.scan`, `poach.read`, `poach.diff` and their results.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use poach_scan::choice::Choice;
use poach_scan::document::{self, ImportError};
use poach_scan::duplicates::Made;
use poach_scan::report::Extent;
use poach_scan::survey::{Section, Told};
use poach_scan::{Control, Engine, Error, Failure, Options};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyList};

use crate::arrow::{self, Rows};
use crate::background::{interval as seconds, watched};
use crate::entry::{Entries, Entry, Walk, os_string};
use crate::json::{invalid, loads};
use crate::options::{self, Names};
use crate::report::Report;

/// The progress of a scan, for a callback.
#[pyclass(frozen, get_all, module = "poach")]
pub(crate) struct Progress {
    /// Entries found so far.
    entries: u64,
    /// Bytes on disk so far, without files that have several names.
    bytes: u64,
    /// A directory that was visited recently.
    path: OsString,
    /// Bytes read so far to compare files.
    compared: Option<u64>,
    /// Bytes that will be read for that at most.
    to_compare: u64,
    /// Seconds since the scan began.
    elapsed: f64,
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        format!("<poach.Progress {} entries, {} bytes>", self.entries, self.bytes)
    }
}

/// The result of a scan.
#[pyclass(frozen, module = "poach")]
pub(crate) struct Scan {
    found: Arc<poach_scan::Scan>,
    reports: Vec<Py<Report>>,
    /// Errors of the comparison of files.
    made: Made,
}

/// An error of the scan as a Python exception.
fn raised(error: Error) -> PyErr {
    match error {
        Error::NoPath | Error::TooManyThreads(_) => PyValueError::new_err(error.to_string()),
        _ => PyOSError::new_err(error.to_string()),
    }
}

/// Calls a callback at intervals, and ends the scan if it returns `False`.
struct Callback<'c> {
    function: Option<Py<PyAny>>,
    control: &'c Control,
    every: std::time::Duration,
    began: Instant,
    last: Option<Instant>,
}

impl Callback<'_> {
    fn tick(&mut self, py: Python<'_>) -> PyResult<()> {
        let due = self.last.unwrap_or(self.began).elapsed() >= self.every;
        if due { self.tell(py) } else { Ok(()) }
    }

    fn tell(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(function) = &self.function else { return Ok(()) };
        self.last = Some(Instant::now());
        let progress = self.control.progress();
        let told = Progress {
            entries: progress.entries,
            bytes: progress.bytes,
            path: os_string(&self.control.path()),
            compared: progress.compared,
            to_compare: progress.to_compare,
            elapsed: self.began.elapsed().as_secs_f64(),
        };
        let answer = function.bind(py).call1((told,))?;
        if answer.cast::<PyBool>().is_ok_and(|answer| !answer.is_true()) {
            self.control.stop();
        }
        Ok(())
    }
}

/// Scans paths and everything below them.
///
/// `errors` of the result lists everything that could not be read, including missing paths.
/// `progress` is called with a `Progress` every `interval` seconds and at the end. If it returns
/// False, the scan ends with a partial result. The GIL is released, and Ctrl-C raises
/// `KeyboardInterrupt`.
#[pyfunction]
#[pyo3(signature = (
    paths, /, *, threads=None, engine="split", files=true, facts=false, sizes=true, one_file_system=false, follow_paths=false,
    handles=None, memory=None, exclude=None, exclude_regex=None, include=None, include_regex=None, kinds=None, min_length=None,
    max_length=None, since=None, before=None, ignore_files=false, exclude_caches=false, exclude_pseudo=false,
    reports=None, top=Some(20), by="disk", recent=86400, progress=None, interval=0.1
))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "they are Python's, which names each"
)]
pub(crate) fn scan(
    py: Python<'_>,
    paths: &Bound<'_, PyAny>,
    threads: Option<usize>,
    engine: &str,
    files: bool,
    facts: bool,
    sizes: bool,
    one_file_system: bool,
    follow_paths: bool,
    handles: Option<usize>,
    memory: Option<u64>,
    exclude: Option<Names>,
    exclude_regex: Option<Names>,
    include: Option<Names>,
    include_regex: Option<Names>,
    kinds: Option<Names>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    since: Option<f64>,
    before: Option<f64>,
    ignore_files: bool,
    exclude_caches: bool,
    exclude_pseudo: bool,
    reports: Option<Names>,
    top: Option<usize>,
    by: &str,
    recent: i64,
    progress: Option<Py<PyAny>>,
    interval: f64,
) -> PyResult<Scan> {
    let choice = Choice {
        exclude: options::patterns("exclude", exclude, exclude_regex)?,
        include: options::patterns("include", include, include_regex)?,
        kinds: options::kinds(kinds)?,
        at_least: min_length,
        at_most: max_length,
        since: since.map(|since| since.floor() as i64),
        before: before.map(|before| before.ceil() as i64),
        ignore_files,
        exclude_caches,
        exclude_pseudo,
        ..Choice::default()
    };
    let leaves_out = !choice.exclude.is_empty() || ignore_files || exclude_caches || exclude_pseudo;
    let options = Options {
        engine: engine.parse::<Engine>().map_err(|error| invalid(format!("engine: {error}")))?,
        threads: options::threads(threads)?,
        one_file_system,
        follow_paths,
        keep_files: files,
        keep_facts: facts,
        without_sizes: !sizes,
        choice: (leaves_out || choice.selects()).then(|| Arc::new(choice)),
        memory,
        handles,
    };
    let reports = options::reports(reports)?;
    let survey = options::survey(py, &reports, top, options::measure(by)?, recent)?;
    let paths = options::paths(paths)?;
    let control = Control::new();
    let mut told = Callback {
        function: progress.filter(|callback| !callback.is_none(py)),
        control: &control,
        every: seconds(interval)?,
        began: Instant::now(),
        last: None,
    };
    let work = || {
        let (scan, parts) = survey.scan(&paths, &options, &control)?;
        let mut sections = Vec::new();
        let mut keep = |told: Told<'_>| {
            if let Told::Section(section) = told {
                sections.push(section.clone());
            }
        };
        let made = survey.finish_each(&scan, parts, &control, &mut keep)?;
        Ok((scan, sections, made))
    };
    let outcome: Result<(poach_scan::Scan, Vec<Section>, Made), Error> =
        watched(py, || control.stop(), |py| told.tick(py), work)?;
    let (scan, sections, made) = outcome.map_err(raised)?;
    told.tell(py)?;
    let reports = sections.into_iter().map(|section| Py::new(py, Report::new(section)));
    Ok(Scan { found: Arc::new(scan), reports: reports.collect::<PyResult<_>>()?, made })
}

/// Reads a scan from a snapshot or an export of ncdu.
#[pyfunction]
#[pyo3(signature = (path, /))]
pub(crate) fn read(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<Scan> {
    let path = options::path(path)?;
    let read = py.detach(|| File::open(&path).map_err(ImportError::from).and_then(document::read));
    let scan = read.map_err(|error| match error {
        ImportError::Io(error) => named(error, &path),
        error => invalid(format!("{}: {error}", path.display())),
    })?;
    Ok(Scan { found: Arc::new(scan), reports: Vec::new(), made: Made::default() })
}

/// The system's error about a file, with the file's name.
fn named(error: std::io::Error, path: &std::path::Path) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            PyOSError::new_err((number, error.to_string(), path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// The differences between two scans: the document of `poach scan --diff OLD NEW --json`.
#[pyfunction]
#[pyo3(signature = (old, new, /, *, by="disk"))]
pub(crate) fn diff<'py>(
    py: Python<'py>,
    old: &Scan,
    new: &Scan,
    by: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let measure = options::measure(by)?;
    let (old, new) = (&old.found, &new.found);
    let document = py.detach(|| {
        let mut document = Vec::new();
        let differences = poach_scan::diff::diff(old, new, measure);
        poach_scan::diff::json(&differences, &mut document).map(|()| document)
    });
    loads(py, &document?)
}

#[pymethods]
impl Scan {
    /// Counts and bytes of the whole.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let of = &self.found.totals;
        let totals = PyDict::new(py);
        for (name, value) in [
            ("entries", of.entries()),
            ("directories", of.directories),
            ("files", of.files),
            ("symlinks", of.symlinks),
            ("other", of.other),
            ("errors", of.errors),
            ("apparent_bytes", of.apparent_bytes),
            ("disk_bytes", of.disk_bytes),
        ] {
            totals.set_item(name, value)?;
        }
        Ok(totals)
    }

    /// Entries that could not be read or compared: `{"path": .., "message": ..}`.
    #[getter]
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let each = |failure: &Failure| {
            let error = PyDict::new(py);
            error.set_item("path", os_string(&failure.path))?;
            error.set_item("message", &failure.message)?;
            Ok(error)
        };
        let errors = self.found.errors.iter().chain(&self.made.errors).map(each);
        PyList::new(py, errors.collect::<PyResult<Vec<_>>>()?)
    }

    /// True if the scan ended early, so that the result is partial.
    #[getter]
    fn interrupted(&self) -> bool {
        self.found.interrupted || self.made.interrupted
    }

    /// The time that the scan took, in seconds.
    #[getter]
    fn elapsed(&self) -> f64 {
        self.found.elapsed.as_secs_f64()
    }

    /// The start of the scan, in seconds since 1970.
    #[getter]
    fn taken(&self) -> u64 {
        self.found.taken
    }

    /// The engine that shared the work between the threads.
    #[getter]
    fn engine(&self) -> &'static str {
        self.found.engine.name()
    }

    /// The number of threads.
    #[getter]
    fn threads(&self) -> usize {
        self.found.threads
    }

    /// The scanned paths, without paths that lie within another.
    #[getter]
    fn roots(&self) -> Vec<Entry> {
        self.found.tree.roots().map(|root| Entry::new(&self.found, &root, 0)).collect()
    }

    /// Given paths that were not scanned by themselves, because they equal or lie within another.
    #[getter]
    fn repeated(&self) -> Vec<OsString> {
        self.found.repeated.iter().map(|path| path.as_os_str().to_owned()).collect()
    }

    /// The requested reports, by name.
    #[getter]
    fn reports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let reports = PyDict::new(py);
        for report in &self.reports {
            reports.set_item(report.get().title(), report)?;
        }
        Ok(reports)
    }

    /// Iterates over all entries, each directory before its entries. With `files=False` there are
    /// directories only.
    fn __iter__(&self) -> Entries {
        Entries { walk: Walk::of(&self.found, true) }
    }

    /// All directories, each before its subdirectories.
    fn directories(&self) -> Entries {
        Entries { walk: Walk::of(&self.found, false) }
    }

    /// The document of `poach scan --json`, with the tree within the limits.
    #[pyo3(signature = (*, depth=None, top=None, min_size=0, directories_only=false, by="disk"))]
    fn to_dict<'py>(
        &self,
        py: Python<'py>,
        depth: Option<usize>,
        top: Option<usize>,
        min_size: u64,
        directories_only: bool,
        by: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let measure = options::measure(by)?;
        let extent = Extent {
            measure,
            depth,
            top,
            directories_only,
            at_least: min_size,
            ..Extent::default()
        };
        let scan = &self.found;
        let document = py.detach(|| {
            let mut document = Vec::new();
            document::json(scan, &extent, &mut document).map(|()| document)
        });
        loads(py, &document?)
    }

    /// Writes the whole scan to a file, as json, ndjson, csv, ncdu, snapshot or html. Replaces the
    /// file.
    #[pyo3(signature = (path, /, format="json", *, by="disk"))]
    fn write(
        &self,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        format: &str,
        by: &str,
    ) -> PyResult<()> {
        let path: PathBuf = options::path(path)?;
        let format = options::format(format)?;
        let extent = Extent { measure: options::measure(by)?, ..Extent::default() };
        if format.is_whole() && !self.found.options.keep_files {
            return Err(invalid("format: it holds files, and the scan was made with files=False"));
        }
        let scan = &self.found;
        let written = py.detach(|| {
            let mut out = BufWriter::new(File::create(&path)?);
            format.write(scan, &extent, &mut out)?;
            out.flush()
        });
        written.map_err(|error| named(error, &path))
    }

    /// Arrow's C stream of all entries, for `pyarrow.table(scan)`, `polars.DataFrame(scan)`,
    /// `pandas.DataFrame.from_arrow(scan)`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        arrow::capsule(py, Box::new(Rows::new(&self.found)))
    }

    fn __repr__(&self) -> String {
        let totals = &self.found.totals;
        format!("<poach.Scan {} entries, {} bytes on disk>", totals.entries(), totals.disk_bytes)
    }
}
