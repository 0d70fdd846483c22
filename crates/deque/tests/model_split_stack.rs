//! loom models of the direct task stack: a thief and an owner that comes down to it.
//!
//! Each model asks whether every task is run exactly once, by the owner or by the thief, with the
//! payload handed over without a race (loom watches the slot's cell), under the C11 memory model.

use std::sync::Arc as StdArc;
use std::sync::atomic::AtomicUsize as Count;
use std::sync::atomic::Ordering::Relaxed;

use loom::sync::Arc;
use loom::thread;
use poach_deque::split::{Head, Popped, Stack, Status};
use poach_memory::{Loom, Memory, Ordering, Word};

#[repr(align(8))]
struct Descriptor;
static DESCRIPTOR: Descriptor = Descriptor;

fn descriptor() -> *mut () {
    (&raw const DESCRIPTOR).cast_mut().cast()
}

/// What a thief makes of a task, so that a result differs from a task.
const STOLEN: u64 = 100;

fn push<M: Memory>(head: Head<M>, task: u64) -> Head<M> {
    // SAFETY: the models' owner thread owns the stack, pops in reverse order, and u64 is Copy.
    unsafe { head.push(descriptor(), &raw const task) }.expect("the model's stack has room")
}

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

/// An owner that pushes `tasks` and pops them, against one thief that tries `attempts` times, with at
/// most so many preemptions.
/// Returns how many executions loom ran.
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

/// The must-fail case: the memory is loom's, but for the owner, whose compare-and-swap is a load and
/// a store: the split deque without its locked instruction, which is its fence.
mod unlocked {
    use loom::sync::atomic::{AtomicPtr, AtomicU64};

    use super::*;

    #[derive(Clone, Copy)]
    pub(super) struct Unlocked;

    // SAFETY: loom's, but for its words.
    unsafe impl Memory for Unlocked {
        type Word = OwnerWord;
        type Pointer<T> = AtomicPtr<T>;
        type Cell<T> = loom::cell::UnsafeCell<T>;

        fn full() {
            Loom::full();
        }

        fn light() {
            Loom::light();
        }

        fn heavy() {
            Loom::heavy();
        }

        fn asymmetric() -> bool {
            false
        }

        fn pause() {
            Loom::pause();
        }
    }

    pub(super) struct OwnerWord(AtomicU64);

    // SAFETY: loom's, but for an exchange that is two accesses on purpose: for this model alone, whose tasks are numbers.
    unsafe impl Word for OwnerWord {
        fn new(value: u64) -> Self {
            OwnerWord(AtomicU64::new(value))
        }

        fn load(&self, order: Ordering) -> u64 {
            self.0.load(order)
        }

        fn store(&self, value: u64, order: Ordering) {
            self.0.store(value, order);
        }

        fn swap(&self, value: u64, order: Ordering) -> u64 {
            self.0.swap(value, order)
        }

        fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_add(value, order)
        }

        fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_sub(value, order)
        }

        fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_or(value, order)
        }

        fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_and(value, order)
        }

        fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            if success == Ordering::Acquire {
                // A thief's claim.
                return self.0.compare_exchange(current, new, success, failure);
            }
            let seen = self.0.load(failure);
            if seen != current {
                return Err(seen);
            }
            self.0.store(new, success);
            Ok(seen)
        }
    }
}

#[test]
#[should_panic(expected = "Concurrent read and write accesses")]
fn without_the_owners_locked_instruction_it_fails() {
    one_thief::<unlocked::Unlocked>(2, 2, 2);
}
