//! JSON documents as what Python makes of them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// What `json.loads` says of a document: numbers of any size, and no second mapping of types.
pub(crate) fn loads<'py>(py: Python<'py>, document: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (PyBytes::new(py, document),))
}

/// An argument makes no sense.
pub(crate) fn invalid(message: impl ToString) -> PyErr {
    PyValueError::new_err(message.to_string())
}
