//! Each example's bug is found on the machines that have it, and the form without it is right.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use poach_check::loom::{Machine, model_on};

#[path = "../../examples/dekker.rs"]
mod dekker;
#[path = "../../examples/ring.rs"]
mod ring;
#[path = "../../examples/seqlock.rs"]
mod seqlock;

fn wrong(machine: Machine, model: impl Fn() + Send + Sync + 'static) -> String {
    let found = catch_unwind(AssertUnwindSafe(move || model_on(machine, model)));
    *found.expect_err("the bug is found").downcast().expect("a text")
}

#[test]
fn dekkers_entry_needs_as_many_stores_as_the_buffer_has_entries() {
    for (name, machine, stores, words, right) in dekker::TRIED {
        if *right {
            model_on(*machine, dekker::entry(*stores, *words));
        } else {
            let text = wrong(*machine, dekker::entry(*stores, *words));
            assert!(text.contains("both have entered"), "{name}: {text}");
        }
    }
    // The stores that count are those behind the flag: that they are to one word changes nothing.
    model_on(Machine::tso(2), dekker::entry(2, 1));
    model_on(Machine::tso(2).with_egress(), dekker::entry(3, 1));
}

#[test]
fn a_sequence_lock_that_is_late_is_torn_and_one_that_is_not_never_is() {
    for machine in [Machine::sequential(), Machine::tso(2), Machine::unbounded()] {
        model_on(machine, seqlock::readers(false));
        assert!(wrong(machine, seqlock::readers(true)).contains("half of one value"));
    }
}

#[test]
fn a_ring_that_sleeps_without_a_fence_is_stuck_only_where_there_are_buffers() {
    model_on(Machine::sequential(), ring::passes(3, false));
    for machine in [Machine::sequential(), Machine::tso(1), Machine::unbounded()] {
        model_on(machine, ring::passes(2, true));
    }
    let text = wrong(Machine::unbounded(), ring::passes(1, false));
    assert!(text.contains("deadlock"), "{text}");
    assert!(text.contains("from TSO[1] on; right under sequential consistency"), "{text}");
}
