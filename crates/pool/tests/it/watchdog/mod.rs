//! A wake-up that is lost fails its test by name, where it would hang the program.

use std::any::type_name;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 3000 } else { 120 });

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
