//! `Machine::full` prevents store buffering on the machine that runs this test.

#![forbid(unsafe_code)]

use poach_memory::{Machine, Memory};

use crate::buffering;

#[test]
fn two_threads_do_not_miss_each_other() {
    buffering::two_threads_do_not_miss_each_other(Machine::full);
}
