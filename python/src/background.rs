//! Work on another thread, while the calling thread handles signals and callbacks for Python.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// The calling thread checks for signals at least once in this time.
const SIGNALS: Duration = Duration::from_millis(50);

/// Wakes the waiting thread when the work ends, also by a panic.
struct Done<'a>(&'a AtomicBool, Thread);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        // Release: pairs with the load in `watched`. The join passes the result on.
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

/// Runs `work` on another thread. The calling thread waits without the GIL. Every 50 ms it takes
/// the GIL, checks for signals and calls `tick`. If one of these raises an exception, it calls
/// `stop`, waits for the end of the work, and raises the exception.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    stop: impl Fn(),
    mut tick: impl FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let done = AtomicBool::new(false);
    let caller = thread::current();
    let done = &done;
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("poach-python".to_owned());
        let worker = worker
            .spawn_scoped(scope, move || {
                let _done = Done(done, caller);
                work()
            })
            .map_err(PyOSError::new_err)?;
        let mut raised = None;
        // Acquire: pairs with the store in `Done`.
        while !done.load(Ordering::Acquire) {
            py.detach(|| thread::park_timeout(SIGNALS));
            if raised.is_none() {
                if let Err(error) = py.check_signals().and_then(|()| tick(py)) {
                    stop();
                    raised = Some(error);
                }
            }
        }
        let outcome = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        raised.map_or(Ok(outcome), Err)
    })
}

/// The interval of a user's callback.
pub(crate) fn interval(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("interval: {seconds}: {error}")))
}
