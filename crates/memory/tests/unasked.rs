//! A barrier in a process that never asked for it is a full fence of the thread that makes it.
//!
//! This is a program of its own, so that no other test asks.

#![forbid(unsafe_code)]

mod buffering;

use poach_memory::{Machine, Memory};

#[test]
fn two_threads_do_not_miss_each_other() {
    buffering::two_threads_do_not_miss_each_other(Machine::heavy);
}
