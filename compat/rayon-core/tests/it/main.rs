//! The behaviour tests of both cores, each file a module; a directory holds what several files use.

#[path = "../../../../crates/memory/tests/it/own_process/mod.rs"]
mod own_process;
mod rig;

mod abort;
mod behaviour;
mod building;
mod global;
mod pools;
mod surface;
