//! What the measured queues are promised about this machine, in one place: bounds, processors, and no fence at all.

use std::num::NonZeroU64;

use poach_deque::{CapacityError, ChaseLev};
use poach_memory::displace::CannotDisplace;
use poach_memory::profile::ProfileError;
use poach_memory::{Delta, Displaced, Profile, Unfenced};

/// The bound that is known of this processor, or an ample one, for a client that makes `stores` stores between two
/// pops (0: the queue makes one).
pub(crate) fn delta(stores: u64) -> Delta {
    // SAFETY: `cpuid` is trusted, in a virtual machine too, where a user who knows better gives a profile; the suites'
    // owners make the stores that they name.
    let documented = unsafe { Delta::documented(stores) };
    // SAFETY: nobody knows. It is twice what the processor with the largest known bound needs, and a suite that loses a
    // task says so.
    documented.unwrap_or_else(|_| unsafe { Delta::ample(stores) })
}

/// The bound of a profile, with the queue making the store between two pops.
///
/// # Errors
///
/// If it is another processor's.
pub(crate) fn measured(profile: &Profile) -> Result<Delta, ProfileError> {
    // SAFETY: the user has measured it on this machine, and asks for it.
    unsafe { Delta::measured(profile, 0) }
}

/// The bound `pops` for owners that make as many stores between two pops as it needs here.
pub(crate) fn spaced(pops: NonZeroU64) -> Delta {
    // SAFETY: `Spaced`, the only owner, makes the stores that this processor asks for, as `spacing` works out.
    let delta = unsafe { Delta::exactly(pops) };
    // SAFETY: as for the bound.
    unsafe { delta.without_fill() }
}

/// The bound of a simulated machine with so many entries in its store buffer, the queue making the store between two pops.
pub(crate) fn simulated(store_buffer: usize) -> Delta {
    // Of the entries and the store that is on its way to the cache, one in two is a pop's.
    let pops = NonZeroU64::MIN.saturating_add(store_buffer as u64 / 2);
    // SAFETY: the simulated machine has so many entries, and does not merge stores.
    unsafe { Delta::exactly(pops) }
}

/// A queue without a fence, as a limit to measure by: it has room for the largest batch twice, and is not grown.
///
/// # Errors
///
/// [`CapacityError`] if there is no memory.
pub(crate) fn unfenced() -> Result<ChaseLev<u64, Unfenced>, CapacityError> {
    // SAFETY: kept where the owner is alone. Where there are thieves it is not, on purpose: the tasks are numbers, and
    // the suite does not ask that each comes out once.
    let policy = unsafe { Unfenced::new() };
    ChaseLev::with_capacity(policy, 2048)
}

/// No fence, for the pools of `fork-join` that have one worker: its cases are made for one alone.
pub(crate) fn alone() -> Unfenced {
    // SAFETY: the pool has one worker, so there is no thief whose look a fence would be for.
    unsafe { Unfenced::new() }
}

/// The policy of an owner that the suite binds to `processor`.
///
/// # Errors
///
/// [`CannotDisplace`] if this thread cannot get there.
pub(crate) fn displaced(processor: usize) -> Result<Displaced, CannotDisplace> {
    // SAFETY: the protocol of the pinned shapes binds each consumer to the processor of its seat before it consumes, and
    // no other shape uses the policy.
    unsafe { Displaced::onto(processor) }
}
