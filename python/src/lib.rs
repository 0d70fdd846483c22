//! Poach for Python: the module `poach._poach`, which `source/poach` re-exports and `_poach.pyi`
//! describes.
//!
//! - Long work runs on another thread, while the calling thread waits without the GIL, checks for
//!   signals and calls back ([`background`]). So other Python threads run, and Ctrl-C raises
//!   `KeyboardInterrupt`.
//! - Documents are the program's JSON, which Python parses ([`json`]).
//! - Tables are Arrow's C stream, in a capsule (`arrow`). There is no unsafe code here.

#![forbid(unsafe_code)]

mod arrow;
mod background;
mod check;
mod entry;
mod json;
mod measure;
mod options;
mod report;
mod scan;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[pymodule]
fn _poach(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add(
        "REPORTS",
        PyTuple::new(py, poach_scan::survey::Report::ALL.map(poach_scan::survey::Report::name))?,
    )?;
    module
        .add("ENGINES", PyTuple::new(py, poach_scan::Engine::ALL.map(poach_scan::Engine::name))?)?;
    let queues = poach_models::matrix::QUEUES.iter().map(|queue| queue.name);
    module.add("QUEUES", PyTuple::new(py, queues.collect::<Vec<_>>())?)?;
    module.add_class::<scan::Scan>()?;
    module.add_class::<scan::Progress>()?;
    module.add_class::<entry::Entry>()?;
    module.add_class::<entry::Entries>()?;
    module.add_class::<report::Report>()?;
    module.add_function(wrap_pyfunction!(scan::scan, module)?)?;
    module.add_function(wrap_pyfunction!(scan::read, module)?)?;
    module.add_function(wrap_pyfunction!(scan::diff, module)?)?;
    module.add_function(wrap_pyfunction!(measure::measure, module)?)?;
    module.add_function(wrap_pyfunction!(check::check, module)?)?;
    Ok(())
}
