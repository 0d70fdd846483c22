//! The behaviour tests and the models, a file each; a directory holds what several files use.

mod scenes;
#[allow(dead_code, reason = "the unit tests use the rest")]
mod stopping;
mod watchdog;

mod access;
mod chunks;
mod closing;
mod counted;
mod displaced;
mod exactly_once;
mod face;
mod future;
mod future_entry;
mod model_c11;
mod model_c11_lives;
mod model_c11_seen;
mod model_empty;
mod model_salsa;
mod model_tso;
mod panics;
mod returned;
mod safe_code;
mod searches;
mod stalled;
mod stress;
mod stress_stalls;
mod thefts;
