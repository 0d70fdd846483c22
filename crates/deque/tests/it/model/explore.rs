//! What all loom models start with.

use loom::model::Builder;

/// Explores `body` with two preemptions, or as many as `LOOM_MAX_PREEMPTIONS` says.
pub(crate) fn explore(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    // A thief of a private deque looks a thousand times before it gives up.
    builder.max_branches = builder.max_branches.max(10_000);
    builder.check(body);
}
