//! The behaviour tests, each file a module.

mod coherence;
mod journal;
mod knee;
mod report;
mod safe_code;
mod stores;
