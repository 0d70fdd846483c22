//! The bound of the simulated machine.

use core::num::NonZeroU64;

use poach_check::{Displacing, Simulated};
use poach_memory::{Delta, StoreLoad};

/// The bound of the machine of every run, for queues whose policy makes a store between two pops.
pub(crate) fn filled(pops: NonZeroU64) -> Delta {
    // SAFETY: two entries and the egress slot hide two pops that have a store between them; and the
    // queues of this crate move numbers between coroutines, one of which runs at a time. A
    // mutant that reckons a bound may break this, for the checker to say so.
    unsafe { Delta::exactly(pops) }
}

/// The same for scenarios that make the store themselves.
pub(crate) fn delta(pops: NonZeroU64) -> Delta {
    // SAFETY: the scenarios make that store, or the queue does (THEP's echo).
    unsafe { filled(pops).without_fill() }
}

/// The policy of a queue whose owner is the model's first thread.
pub(crate) fn any(policy: poach_models::Policy) -> impl StoreLoad<Simulated> {
    // SAFETY: the tasks of this crate's queues are numbers.
    unsafe { poach_models::any_policy(policy, 0) }
}

/// A series of pops of a split deque or of a copy of it, which ends with the first task: whether it
/// took one.
macro_rules! series {
    ($owner:expr) => {{
        let mut taken = false;
        let mut take = |task: *mut u64| {
            // SAFETY: a task stands there, a number, and is taken once.
            taken = unsafe { task.read() } == 0;
            false
        };
        // SAFETY: the task is moved out, and the queue is not used before.
        unsafe { $owner.pop_each_in_place(|task, _| take(task)) };
        taken
    }};
}
pub(crate) use series;

/// What a copy of the policies' source offers: the methods of its own [`StoreLoad`].
pub(crate) trait Copied: Send + Sync {
    fn owner(&self);
    fn thief(&self);
    fn delta(&self) -> u64;
    fn resolve(&self) -> bool;
}

/// A copy's policy, for the queues as they are.
pub(crate) struct Policy<P>(pub(crate) P);

// SAFETY: the copy's but for its bug, which the checker is to find; the tasks are numbers.
unsafe impl<P: Copied> StoreLoad<Simulated> for Policy<P> {
    fn owner(&self) {
        self.0.owner();
    }

    fn thief(&self) {
        self.0.thief();
    }

    fn delta(&self) -> u64 {
        self.0.delta()
    }

    fn resolve(&self) -> bool {
        self.0.resolve()
    }
}

/// The policy of consumers that are the model's threads of their numbers.
pub(crate) fn displacing(thread: usize) -> Displacing {
    // SAFETY: the scenes spawn a pool's consumers first, in the order of their numbers; and as in
    // `delta`, their tasks are numbers.
    unsafe { Displacing::onto(thread) }
}
