//! Tests in which a thread waits for another: a wake-up that is lost fails the test by its name,
//! where it would hang the program.

use std::any::type_name;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Far longer than any of them takes. It is waited for only where a test fails.
const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 3000 } else { 120 });

/// Runs `test` in a thread of its own, and panics if it does not end.
pub(crate) fn watched<F: FnOnce() + Send + 'static>(test: F) {
    let (ended, ends) = channel::<()>();
    let runs = thread::spawn(move || {
        let _ended = ended;
        test();
    });
    let in_time = ends.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout);
    assert!(in_time, "{} waits for ever: a wake-up was lost", type_name::<F>());
    if let Err(payload) = runs.join() {
        resume_unwind(payload);
    }
}
