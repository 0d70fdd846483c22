//! A finished report: a sequence of dictionaries, and a table.

use poach_scan::survey::{Cell, Section};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList};

use crate::arrow;
use crate::entry::os_string;

/// A report on a scan: a sequence of dictionaries, one per row, and a table by
/// `__arrow_c_stream__`.
#[pyclass(frozen, sequence, module = "poach")]
pub(crate) struct Report {
    section: Section,
}

impl Report {
    pub(crate) fn new(section: Section) -> Report {
        Report { section }
    }

    pub(crate) fn title(&self) -> &'static str {
        self.section.report.name()
    }

    fn row<'py>(&self, py: Python<'py>, cells: &[Cell]) -> PyResult<Bound<'py, PyDict>> {
        let row = PyDict::new(py);
        for (column, cell) in self.section.columns.iter().zip(cells) {
            row.set_item(column.name, value(py, cell)?)?;
        }
        Ok(row)
    }
}

/// A cell as a Python object.
fn value<'py>(py: Python<'py>, cell: &Cell) -> PyResult<Bound<'py, PyAny>> {
    Ok(match cell {
        Cell::Count(number) | Cell::Bytes(number) => number.into_pyobject(py)?.into_any(),
        Cell::Number(number) => number.into_pyobject(py)?.into_any(),
        Cell::Time(seconds) => seconds.into_pyobject(py)?.into_any(),
        Cell::Text(text) => text.as_ref().into_pyobject(py)?.into_any(),
        Cell::Path(path) => os_string(path).into_pyobject(py)?.into_any(),
        _ => py.None().into_bound(py),
    })
}

#[pymethods]
impl Report {
    /// The report's name.
    #[getter]
    fn name(&self) -> &'static str {
        self.title()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&'static str> {
        self.section.columns.iter().map(|column| column.name).collect()
    }

    /// The number of further rows that a limit left out.
    #[getter]
    fn left_out(&self) -> u64 {
        self.section.left_out
    }

    /// Bytes on disk and lengths of all rows, including those left out; None if the report does not
    /// add them up.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some([disk, apparent]) = &self.section.totals else { return Ok(None) };
        let totals = PyDict::new(py);
        totals.set_item("disk_bytes", value(py, disk)?)?;
        totals.set_item("apparent_bytes", value(py, apparent)?)?;
        Ok(Some(totals))
    }

    /// The rows, as a list.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.section.rows.iter().map(|cells| self.row(py, cells));
        PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)
    }

    /// The whole report: `{"rows": [..], "left_out": 0, "totals": None}`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let whole = PyDict::new(py);
        whole.set_item("rows", self.rows(py)?)?;
        whole.set_item("left_out", self.left_out())?;
        whole.set_item("totals", self.totals(py)?)?;
        Ok(whole)
    }

    fn __len__(&self) -> usize {
        self.section.rows.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyDict>> {
        let rows = &self.section.rows;
        let at = if index < 0 { index + rows.len() as isize } else { index };
        let cells = usize::try_from(at).ok().and_then(|at| rows.get(at));
        let cells = cells.ok_or_else(|| {
            PyIndexError::new_err(format!("row {index} of {}, which the report has", rows.len()))
        })?;
        self.row(py, cells)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.rows(py)?.try_iter()
    }

    /// Arrow's C stream, for `pyarrow.table(report)`, `polars.DataFrame(report)`,
    /// `pandas.DataFrame.from_arrow(report)`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        arrow::capsule(py, arrow::report(&self.section)?)
    }

    fn __repr__(&self) -> String {
        format!("<poach.Report {}: {} rows>", self.title(), self.section.rows.len())
    }
}
