//! The bound of the simulated machine.

use core::num::NonZeroU64;

use poach_explore::Displacing;
use poach_memory::Delta;

/// The bound of the machine of every run, for scenarios that make a store between two pops.
pub(crate) fn delta(pops: NonZeroU64) -> Delta {
    // SAFETY: two entries and the egress slot hide two pops that have a store between them; and the queues of this crate
    // move numbers between coroutines, one of which runs at a time.
    let delta = unsafe { Delta::exactly(pops) };
    // SAFETY: the scenarios make that store, or the queue does (THEP's echo).
    unsafe { delta.without_fill() }
}

/// The policy of consumers that are the model's threads of their numbers.
pub(crate) fn displacing(thread: usize) -> Displacing {
    // SAFETY: the scenes spawn a pool's consumers first, in the order of their numbers; and as in `delta`, their tasks are numbers.
    unsafe { Displacing::onto(thread) }
}
