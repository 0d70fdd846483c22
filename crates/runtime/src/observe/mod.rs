//! What can be seen of a pool: what each worker notes of what it does, counters, and a timeline.

pub(crate) mod counters;
pub(crate) mod stats;
pub mod trace;
pub(crate) mod track;
pub(crate) mod watch;
