//! A thief whose barrier fails once it has announced itself does not unwind: the task that it wants would be nobody's. That of a split deque exposes nothing.
// Miri and the feature `portable` have no such barrier.
#![cfg(all(target_os = "linux", not(miri)))]

#[path = "../../memory/tests/filtered/mod.rs"]
mod filtered;

use std::panic::{AssertUnwindSafe, catch_unwind};

use filtered::{Answer, assert_aborted, case, filter, run_alone};
use poach_deque::split::{Context, Exposure, Popped, Stack};
use poach_deque::{AsymmetricCl, Owner, Steal, The, Thep, Thief};
use poach_memory::{Asymmetric, Machine, membarrier};

/// Pushes a task, loses the barrier, steals, and shows what there is if the program goes on.
fn steal_without_barrier<O: Owner<u32>>(owner: O) {
    owner.push(1);
    filter(Answer::Refused);
    let thief = owner.thief();
    let stolen = catch_unwind(AssertUnwindSafe(|| thief.steal()));
    let popped = owner.pop();
    println!("the program goes on: stolen {}, popped {popped:?}", stolen.is_ok());
    drop(owner);
    println!("left {:?}", if let Steal::Success(task) = thief.steal() { Some(task) } else { None });
}

fn expose_without_barrier() {
    struct Quiet;
    impl Context for Quiet {
        fn shared(&self) {}
    }
    let task = 7_u64;
    let descriptor = core::ptr::without_provenance_mut(16);
    let stack = Stack::<Machine, _>::new(4, Quiet).unwrap();
    // SAFETY: this thread owns the stack, which lives to the end.
    let bottom = unsafe { stack.bottom() };
    // SAFETY: the descriptor is even, nobody steals, and a number need not be popped.
    let pushed = unsafe { bottom.push(descriptor, &raw const task) };
    assert!(pushed.is_ok());
    filter(Answer::Refused);
    let exposed = catch_unwind(AssertUnwindSafe(|| stack.expose()));
    assert!(matches!(exposed, Ok(Exposure::Vain)), "{exposed:?}");
    assert!(membarrier::is_refused());
    assert_eq!(stack.expose(), Exposure::Refused, "the owner has not come to its stack");
    stack.request();
    // SAFETY: as above, and it is followed by a pop.
    assert_eq!(unsafe { bottom.pop() }, Popped::Own);
    // SAFETY: as at the first push.
    assert!(unsafe { bottom.push(descriptor, &raw const task) }.is_ok());
    // The request was up, or the owner has fenced its pop: either way there is something to take.
    assert!(stack.shared() == 1 || stack.expose() == Exposure::Done);
    assert!(stack.steal().is_ok());
}

#[test]
fn a_thief_without_its_barrier_ends_the_program() {
    let Some(case) = case() else {
        if membarrier::register().is_ok() {
            let output = run_alone("a_thief_without_its_barrier_ends_the_program", "stack");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            for case in ["the", "thep", "chase-lev"] {
                let output = run_alone("a_thief_without_its_barrier_ends_the_program", case);
                println!("{case}: {}", String::from_utf8_lossy(&output.stdout));
                assert_aborted(&output);
            }
        }
        return;
    };
    match &*case {
        "the" => steal_without_barrier(The::with_policy(Asymmetric::new())),
        "thep" => steal_without_barrier(Thep::with_policy(Asymmetric::new())),
        "chase-lev" => steal_without_barrier(AsymmetricCl::with_policy(Asymmetric::new())),
        _ => {
            // The stack asks whether there is a barrier.
            assert!(membarrier::register().is_ok());
            expose_without_barrier();
        }
    }
}
