//! JSON documents as Python objects.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The object that `json.loads` makes of a document. It takes numbers of any size.
pub(crate) fn loads<'py>(py: Python<'py>, document: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (PyBytes::new(py, document),))
}

/// The error for an invalid argument.
pub(crate) fn invalid(message: impl ToString) -> PyErr {
    PyValueError::new_err(message.to_string())
}
