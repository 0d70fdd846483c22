//! What loom's interface does, on loom and on the package of its name: one file of tests for both.
//! What loom has not is in `more`, which only the package runs.

#![allow(clippy::arc_with_non_send_sync, reason = "models share cells")]

mod atomics;
mod cells;
mod locks;
mod memory;
mod shown;
mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};

use shown::shown;

/// Whether a model is wrong.
fn is_wrong(act: impl Fn() + Send + Sync + 'static) -> bool {
    catch_unwind(AssertUnwindSafe(move || loom::model(act))).is_err()
}
