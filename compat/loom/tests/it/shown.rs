//! What the executions of a model show.

use std::sync::{Arc, Mutex};

/// The results of a model in its executions, sorted, each once.
pub(crate) fn shown<T: Ord + Clone + Send + 'static>(
    act: impl Fn() -> T + Send + Sync + 'static,
) -> Vec<T> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let place = Arc::clone(&seen);
    loom::model(move || {
        let value = act();
        place.lock().unwrap().push(value);
    });
    let mut all = seen.lock().unwrap().clone();
    all.sort();
    all.dedup();
    all
}
