//! The scheduler of `examples/scheduler.rs` runs to its end.

#![forbid(unsafe_code)]

#[path = "../../examples/scheduler.rs"]
mod example;

#[test]
#[cfg(not(miri))] // Thirty thousand nodes.
fn it_counts_all_nodes() {
    example::main();
}
