//! loom models of the direct task stack: a thief and an owner that comes down to it.
//!
//! Each model asks whether every task is run exactly once, by the owner or by the thief, with the
//! payload handed over without a race (loom watches the slot's cell), under the C11 memory model.

use std::sync::Arc as StdArc;
use std::sync::atomic::AtomicUsize as Count;
use std::sync::atomic::Ordering::Relaxed;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use poach_deque::split::{Head, Popped, Stack, Status};
use poach_memory::{Loom, Memory, Ordering, Word};

use crate::stack::{Fault, Faulty, descriptor, push};

/// What a thief makes of a task, so that a result differs from a task.
const STOLEN: u64 = 100;

/// Pops the task at `head`; if it was stolen, waits for its result. Returns the payload.
fn pop<M: Memory>(head: Head<M>) -> u64 {
    // SAFETY: as in `push`.
    let popped = unsafe { head.pop() };
    // SAFETY: the owner calls, for a slot it has pushed to.
    let slot = unsafe { head.slot() };
    if popped == Popped::Stolen {
        while slot.status().load(Ordering::Acquire) & Status::DONE == 0 {
            M::pause();
        }
    }
    // SAFETY: the payload is the owner's again, and a u64.
    let payload = unsafe { slot.take::<u64>() };
    if popped == Popped::Stolen {
        // SAFETY: stolen, done, taken, and nothing is above it.
        unsafe { head.retire() };
    }
    payload
}

/// Tries to steal once. Returns how many tasks that gave.
fn steal<M: Memory>(stack: &Stack<M>) -> u64 {
    let Ok(stolen) = stack.steal() else { return 0 };
    assert_eq!(stolen.slot().descriptor(), descriptor());
    // SAFETY: claimed, and a u64.
    let task = unsafe { stolen.slot().take::<u64>() };
    // SAFETY: this thief's until DONE.
    unsafe { stolen.slot().put(task + STOLEN) };
    stolen.slot().status().fetch_or(Status::DONE, Ordering::SeqCst);
    1
}

/// An owner that pushes `tasks` and pops them, against one thief that tries `attempts` times, with
/// at most `preemptions` preemptions. Returns how many executions loom ran.
fn one_thief<M: Memory>(tasks: u64, attempts: usize, preemptions: usize) -> usize {
    let executions = StdArc::new(Count::new(0));
    let counter = StdArc::clone(&executions);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        counter.fetch_add(1, Relaxed);
        let stack = Arc::new(Stack::<M>::new(tasks as usize, ()).expect("a small stack"));
        stack.request();
        let thief = {
            let stack = Arc::clone(&stack);
            thread::spawn(move || (0..attempts).map(|_| steal(&stack)).sum::<u64>())
        };
        // SAFETY: this thread is the one owner, and the stack outlives its heads.
        let mut heads = vec![unsafe { stack.bottom() }];
        for task in 0..tasks {
            heads.push(push(heads[heads.len() - 1], task));
        }
        heads.pop();
        let mut stolen = 0;
        for task in (0..tasks).rev() {
            let payload = pop(heads.pop().expect("a head a task"));
            assert_eq!(payload % STOLEN, task, "the owner got another task's payload");
            stolen += payload / STOLEN;
        }
        assert_eq!(stolen, thief.join().unwrap(), "a task was run twice or lost");
    });
    executions.load(Relaxed)
}

#[test]
fn one_task_one_thief() {
    let executions = one_thief::<Loom>(1, 2, 3);
    assert!(executions > 10, "the model covered {executions} executions only");
}

#[test]
fn two_tasks_one_thief() {
    let executions = one_thief::<Loom>(2, 2, 2);
    assert!(executions > 50, "the model covered {executions} executions only");
}

/// The must-fail case: the owner's compare-and-swap is a load and a store: the split deque without
/// its locked instruction, which is its fence.
#[derive(Clone, Copy)]
struct Unlocked;

impl Fault for Unlocked {
    fn compare_exchange(
        word: &AtomicU64,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        if success == Ordering::Acquire {
            // A thief's claim.
            return word.compare_exchange(current, new, success, failure);
        }
        let seen = word.load(failure);
        if seen != current {
            return Err(seen);
        }
        word.store(new, success);
        Ok(seen)
    }
}

#[test]
#[should_panic(expected = "Concurrent read and write accesses")]
fn without_the_owners_locked_instruction_it_fails() {
    one_thief::<Faulty<Unlocked>>(2, 2, 2);
}
