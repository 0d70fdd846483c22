//! A barrier in a process that never asked for it is a full fence of the thread that makes it.
//!
//! This is a program of its own, so that no other test asks.

#![forbid(unsafe_code)]

mod buffering;

use poach_memory::{Machine, Memory, membarrier};

#[test]
fn two_threads_do_not_miss_each_other() {
    buffering::two_threads_do_not_miss_each_other(Machine::heavy);
}

#[test]
fn what_is_switched_off_is_refused_and_its_barrier_a_fence() {
    membarrier::switch_off();
    let refused = membarrier::register();
    assert!(refused.is_err() && membarrier::is_refused() && !membarrier::is_registered());
    assert!(!Machine::asymmetric() && Machine::owners_fence());
    assert!(!membarrier::may_succeed() && !Machine::heavy_may_succeed());
    assert!(membarrier::try_barrier() && Machine::try_heavy());
}
