//! loom: a request that its owner has put off is not lost. The owner answers it at the first push
//! after it has come down to its split, if its context is willing then, whenever the thief asked,
//! and however often it was put off.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use poach_deque::split::{Context, Head, Popped, Stack};
use poach_memory::{Loom, Memory, Ordering};

use crate::stack::{Fault, Faulty, push};

/// Shares if it is willing, which only the owner's thread sets and asks.
struct Hesitant(Arc<AtomicU64>);

impl Context for Hesitant {
    fn shared(&self) {}

    fn should_share(&self, _private: u32) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

type Top<M> = Head<M, Hesitant>;

/// Pops the task at `head`, which nobody can have stolen.
fn pop<M: Memory>(head: Top<M>) {
    // SAFETY: as in `push`.
    let popped = unsafe { head.pop() };
    assert_ne!(popped, Popped::Stolen, "an owner that was not willing has shared");
    // SAFETY: the owner calls, for a slot it has pushed to.
    let slot = unsafe { head.slot() };
    // SAFETY: the payload is the owner's again, and a u64.
    let _ = unsafe { slot.take::<u64>() };
}

/// A thief asks at any moment, while the owner pushes `tasks` tasks and pops them, `rounds` times.
/// Then the owner is willing. `before` says that another thief has asked before all this.
fn asked<M: Memory>(tasks: u64, rounds: u64, before: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let willing = Arc::new(AtomicU64::new(0));
        let stack = Arc::new(Stack::<M, _>::new(4, Hesitant(Arc::clone(&willing))).unwrap());
        if before {
            stack.request();
        }
        let thief = {
            let stack = Arc::clone(&stack);
            thread::spawn(move || stack.request())
        };
        // SAFETY: this thread is the one owner, and the stack outlives its heads.
        let bottom = unsafe { stack.bottom() };
        for _ in 0..rounds {
            let mut heads = vec![bottom];
            for task in 0..tasks {
                heads.push(push(heads[heads.len() - 1], task));
            }
            heads.pop();
            heads.into_iter().rev().for_each(pop);
        }
        thief.join().unwrap();
        willing.store(1, Ordering::Relaxed);
        push(bottom, 0);
        assert_eq!(stack.shared(), 1, "a request was lost");
    });
}

#[test]
fn a_request_is_put_off_while_its_owner_goes_up_and_down() {
    asked::<Loom>(1, 2, false);
    asked::<Loom>(2, 1, false);
}

#[test]
fn a_request_that_meets_one_that_was_put_off() {
    asked::<Loom>(2, 1, true);
    asked::<Loom>(1, 2, true);
}

/// An owner cannot remember that it has put a request off.
#[derive(Clone, Copy)]
struct Forgetful;

impl Fault for Forgetful {
    fn store(word: &AtomicU64, value: u64, order: Ordering) {
        // What was put off: the one word to which the owner of this model stores 1, relaxed.
        if (value, order) != (1, Ordering::Relaxed) {
            word.store(value, order);
        }
    }
}

#[test]
#[should_panic(expected = "a request was lost")]
fn an_owner_that_forgets_what_it_has_put_off_loses_a_request() {
    asked::<Faulty<Forgetful>>(1, 1, true);
}
