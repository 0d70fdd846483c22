//! The behaviour tests, each file a module.

#[path = "../../../memory/tests/it/own_process/mod.rs"]
mod own_process;

mod cannot_unwind;
mod cut;
mod foreign_code;
mod freed;
mod herd;
mod litmus;
mod loom_names;
mod loom_unsafe;
mod orderings;
mod safe_code;
mod waits;
mod weak;
mod worked_examples;
