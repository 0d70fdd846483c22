//! The bound of the simulated machine.

use core::num::NonZeroU64;

use poach_memory::Delta;

/// The bound of [`machine`](crate::machine), for scenarios that make a store between two pops.
pub(crate) fn delta(pops: NonZeroU64) -> Delta {
    // SAFETY: two entries and the egress slot hide two pops that have a store between them; and the queues of this crate
    // move numbers between coroutines, one of which runs at a time.
    let delta = unsafe { Delta::exactly(pops) };
    // SAFETY: the scenarios make that store, or the queue does (THEP's echo).
    unsafe { delta.without_fill() }
}
