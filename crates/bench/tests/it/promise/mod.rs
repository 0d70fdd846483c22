//! What a test promises of this machine.

use poach_memory::Profile;
use poach_memory::delta::{Bound, Processor, largest_known};

/// Has the queues with a bound among the systems on a processor without a known one, too; and where
/// there are profiles of this kind of processor, those with a measured bound. Whether there are.
pub(crate) fn with_a_bound() -> bool {
    // SAFETY: nobody knows; a test that fails on such a processor says what was wrong with the
    // promise.
    let _ = unsafe { poach_bench::use_unproven_bounds() };
    let Some(here) = Processor::here() else { return false };
    // As `poach measure` would write it here where this processor's bound is known; elsewhere one
    // no smaller than the ample one, where each pop's store and the queue's own count.
    let (capacity, bound) = match here.documented().map(|entry| (entry.capacity, entry.bound)) {
        Some((capacity, Bound::Seen(bound))) => (capacity, bound),
        _ => (2 * largest_known().get(), 2 * largest_known().get() + 1),
    };
    let profile = Profile::new(here, capacity, bound).expect("a bound above the capacity");
    // SAFETY: as for the bound that is used without it, which is not larger.
    unsafe { poach_bench::use_profile(&profile) }.expect("a profile of this processor");
    true
}
