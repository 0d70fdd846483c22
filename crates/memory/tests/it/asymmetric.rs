//! The fences of both sides of [`Asymmetric`], with a process-wide barrier and without.
//!
//! No model can check this: beside a process-wide barrier a model cannot tell the owner's light
//! fence from a full fence, and a model without the barrier has no weaker light fence.

use std::cell::Cell;

use poach_memory::order::InForce;
use poach_memory::{Asymmetric, Machine, Memory, StoreLoad};

thread_local! {
    static LAST: Cell<&'static str> = const { Cell::new("") };
}

/// The machine's memory, which records its fences, and may deny that it has the barrier.
struct Noting<const BARRIER: bool>;

// SAFETY: the machine's words and fences; denying the barrier makes it no weaker.
unsafe impl<const BARRIER: bool> Memory for Noting<BARRIER> {
    type Word = <Machine as Memory>::Word;
    type Pointer<T> = <Machine as Memory>::Pointer<T>;
    type Cell<T> = <Machine as Memory>::Cell<T>;

    fn full() {
        LAST.set("full");
        Machine::full();
    }

    fn light() {
        LAST.set("light");
        Machine::light();
    }

    fn heavy() {
        LAST.set("heavy");
        Machine::heavy();
    }

    fn asymmetric() -> bool {
        BARRIER
    }

    fn pause() {
        Machine::pause();
    }
}

fn fences<const BARRIER: bool>() -> (InForce, &'static str, &'static str) {
    let policy = Asymmetric::<Noting<BARRIER>>::new();
    let last = |fence: &dyn Fn()| {
        LAST.set("none");
        fence();
        LAST.get()
    };
    (policy.in_force(), last(&|| policy.owner()), last(&|| policy.thief()))
}

#[test]
fn with_a_barrier_the_owners_fence_is_light_and_the_thiefs_process_wide() {
    assert_eq!(fences::<true>(), (InForce::ProcessWide, "light", "heavy"));
}

#[test]
fn without_one_both_are_full() {
    assert_eq!(fences::<false>(), (InForce::Full, "full", "full"));
}
