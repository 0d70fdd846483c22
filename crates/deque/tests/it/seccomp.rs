//! A thief whose barrier fails once it has announced itself neither unwinds nor ends the program:
//! it takes nothing until the owner fences. That of a split deque exposes nothing.
// Miri and the feature `portable` have no such barrier.
#![cfg(all(target_os = "linux", not(miri)))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use poach_deque::split::{Context, Exposure, Popped, Stack};
use poach_deque::{AsymmetricCl, Biased, Fifo, Owner, Split, The, Thep, Thief};
use poach_memory::{Asymmetric, Machine, membarrier};

use crate::filtered::{Answer, case, filter, run_alone};

const TASKS: u32 = 1000;

/// A thief that has lost its barrier gets nothing, the owner comes to its queue, and the thief gets
/// tasks.
fn steal_without_barrier<O: Owner<u32>>(owner: &O) {
    (0..TASKS).for_each(|task| owner.push(task));
    // Of a queue that is closed, where its owner may close it.
    let popped = (0..TASKS / 2).filter_map(|_| owner.pop()).count();
    filter(Answer::Refused);
    let thief = owner.thief();
    assert!(!thief.steal().is_success(), "the owner has not come to its queue");
    assert!(membarrier::is_refused());
    let mut taken = popped + usize::from(owner.pop().is_some());
    let stolen = (0..TASKS).filter(|_| thief.steal().is_success()).count();
    assert!(stolen > 0, "the owner has come to its queue");
    taken += stolen + std::iter::from_fn(|| owner.pop()).count();
    assert_eq!(taken, TASKS as usize);
}

/// A thief of THEP waits for the owner's next pop.
fn wait_without_barrier(owner: &Thep<u32, Asymmetric>) {
    (0..TASKS).for_each(|task| owner.push(task));
    let thief = owner.thief();
    thread::scope(|scope| {
        let steals = scope.spawn(|| {
            filter(Answer::Refused);
            (0..TASKS).filter(|_| thief.steal().is_success()).count()
        });
        let mut popped = 0;
        while !steals.is_finished() {
            if owner.is_awaited() {
                popped += usize::from(owner.pop().is_some());
            }
            thread::yield_now();
        }
        let stolen = steals.join().unwrap();
        assert_eq!(popped + stolen, TASKS as usize);
        assert!(membarrier::is_refused());
        assert!(stolen > 0);
    });
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

/// An owner that came before the process was refused the barrier fences from its first answer on.
fn expose_after_an_answer() {
    let owner = Split::new();
    let thief = owner.thief();
    filter(Answer::Refused);
    assert!(membarrier::register().is_err());
    (0..8).for_each(|task| owner.push(task));
    assert_eq!((thief.has_private_tasks(), thief.expose()), (false, Exposure::Refused));
    thief.request();
    owner.push(8);
    let answered = (0..5).all(|task| thief.steal().success() == Some(task));
    assert!(answered && thief.steal().is_empty());
    assert!(thief.has_private_tasks());
    assert_eq!(thief.expose(), Exposure::Done);
    assert!([5, 6].into_iter().all(|task| thief.steal().success() == Some(task)));
    assert_eq!((owner.pop(), owner.pop(), owner.pop()), (Some(8), Some(7), None));
}

#[test]
fn a_thief_without_its_barrier_goes_on() {
    let Some(case) = case() else {
        for case in ["stack", "the", "thep", "chase-lev", "biased", "fifo", "before"] {
            let output = run_alone("a_thief_without_its_barrier_goes_on", case);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{case}: {said}");
        }
        return;
    };
    if case == "before" {
        return expose_after_an_answer();
    }
    if membarrier::register().is_err() {
        return;
    }
    match &*case {
        "the" => steal_without_barrier(&The::with_policy(Asymmetric::new())),
        "thep" => wait_without_barrier(&Thep::with_policy(Asymmetric::new())),
        "chase-lev" => steal_without_barrier(&AsymmetricCl::with_policy(Asymmetric::new())),
        "biased" => steal_without_barrier(&Biased::with_policy(Asymmetric::new())),
        "fifo" => steal_without_barrier(&Fifo::new()),
        _ => expose_without_barrier(),
    }
}
