//! The behaviour tests, each file a module; a directory holds what several files use.

mod alone;
#[cfg(all(target_os = "linux", not(miri)))]
#[allow(dead_code, reason = "other crates use the rest")]
#[path = "../../../memory/tests/it/filtered/mod.rs"]
mod filtered;
#[path = "../../../memory/tests/it/own_process/mod.rs"]
mod own_process;
mod rig;

mod allocations;
mod beside;
mod blocking;
mod broadcast;
mod deep;
mod fifo;
mod foreign_code;
mod forks;
mod futures;
mod generic_search;
mod handles;
mod in_place;
mod interrupt;
mod join;
mod join_all;
mod lasting_global;
mod lasting_recording;
mod lasting_resident;
mod long_leaf;
mod messages;
mod no_barrier;
mod outside;
mod overflow;
mod place;
mod pool;
mod pools;
mod safe_code;
mod safe_settings;
mod scope;
mod scoped_handles;
mod seeing;
mod shutdown;
mod smuggled;
mod spawned_tasks;
mod stress;
mod threads;
mod waiting;
