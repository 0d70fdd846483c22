//! In a process that never asked for the barrier, `barrier` is a full fence of the calling thread.
//!
//! Each test is in a process of its own, so that no other asks.

#![forbid(unsafe_code)]

use poach_memory::{Machine, Memory, membarrier};

use crate::buffering;
use crate::own_process::alone;

#[test]
fn two_threads_do_not_miss_each_other() {
    alone("two_threads_do_not_miss_each_other", || {
        buffering::two_threads_do_not_miss_each_other(Machine::heavy);
    });
}

#[test]
fn what_is_switched_off_is_refused_and_its_barrier_a_fence() {
    alone("what_is_switched_off_is_refused_and_its_barrier_a_fence", switched_off);
}

fn switched_off() {
    membarrier::switch_off();
    let refused = membarrier::register();
    assert!(refused.is_err() && membarrier::is_refused() && !membarrier::is_registered());
    assert!(!Machine::asymmetric() && Machine::owners_fence());
    assert!(!membarrier::may_succeed() && !Machine::heavy_may_succeed());
    assert!(membarrier::try_barrier() && Machine::try_heavy());
}
