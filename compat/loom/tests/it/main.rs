//! What loom's interface does, on loom and on the package of its name: one file of tests for both.
//! What loom has not is in `more`, which only the package runs.

#![allow(clippy::arc_with_non_send_sync, reason = "models share cells")]

mod atomics;
mod cells;
mod locks;
mod memory;
mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc as StdArc, Mutex as StdMutex};

/// What the executions of a model showed, sorted.
fn shown<T: Ord + Clone + Send + 'static>(act: impl Fn() -> T + Send + Sync + 'static) -> Vec<T> {
    let seen = StdArc::new(StdMutex::new(Vec::new()));
    let place = StdArc::clone(&seen);
    loom::model(move || {
        let value = act();
        place.lock().unwrap().push(value);
    });
    let mut all = seen.lock().unwrap().clone();
    all.sort();
    all.dedup();
    all
}

/// Whether a model is wrong.
fn is_wrong(act: impl Fn() + Send + Sync + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(move || loom::model(act))).is_err()
}
