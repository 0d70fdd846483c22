//! What the measured queues are promised about this machine, in one place: bounds, processors, and
//! no fence at all.

use std::num::NonZeroU64;
use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use poach_deque::{CapacityError, ChaseLev};
use poach_memory::delta::{Bound, DeltaError, Processor, largest_known};
use poach_memory::displace::CannotDisplace;
use poach_memory::{Delta, Displaced, Machine, Memory as _, Profile, Unfenced};

/// Whether this system's queue takes the bound of this processor ([`Delta`]). Without a bound that
/// the caller vouches for, the system is left out.
///
/// The simulated machines of `simulate` have a bound that is known, and the litmus test of
/// `processor` looks for one.
pub fn is_bounded(suite: &str, system: &str) -> bool {
    ["fork-join", "graphs", "deque"].contains(&suite)
        && ["ff-the", "ff-the-4", "thep", "ff-cl", "resolved"].contains(&system)
}

/// The profile that was given, if it is of this processor.
static MEASURED: OnceLock<Profile> = OnceLock::new();

/// Whether the caller vouches for what `cpuid` shows to a virtual machine, and for the ample bound.
static VOUCHED: OnceLock<()> = OnceLock::new();

/// The bound for a client that makes `stores` stores between two pops (0: the queue makes one). It
/// is the bound that is known of this processor, or the bound of the given profile, or an ample
/// bound if the caller vouched for it.
///
/// # Errors
///
/// If there is none of the three.
pub(crate) fn delta(stores: u64) -> Result<Delta> {
    match (known(stores), MEASURED.get()) {
        (Ok(known), _) => Ok(known),
        (Err(_), Some(profile)) => {
            // SAFETY: the caller of `use_profile` says that it was measured here; the suites'
            // owners make the stores that they name.
            let measured = unsafe { Delta::measured(profile, stores) };
            Ok(measured?)
        }
        (Err(unknown), None) if VOUCHED.get().is_none() => {
            Err(unknown).context("`use_profile` and `use_unproven_bounds` promise one")
        }
        // SAFETY: the caller of `use_unproven_bounds` vouches for it; the suites' owners make the
        // stores that they name.
        (Err(_), None) => Ok(unsafe { Delta::ample(stores) }),
    }
}

/// The bound of the table; in a virtual machine only if the caller vouches for what `cpuid` shows
/// there.
fn known(stores: u64) -> Result<Delta, DeltaError> {
    if VOUCHED.get().is_none() {
        Delta::for_this_processor()?;
    }
    // SAFETY: `for_this_processor` has just vouched for what `cpuid` shows, or the caller of
    // `use_unproven_bounds` has; the suites' owners make the stores that they name.
    unsafe { Delta::documented(stores) }
}

/// How many stores this processor may have on their way at once, from the same three sources as
/// [`delta`].
///
/// # Errors
///
/// As [`delta`].
pub(crate) fn held() -> Result<NonZeroU64> {
    let shown = Processor::here().and_then(Processor::documented).map(|entry| entry.bound);
    let bound = match (known(0), shown, MEASURED.get()) {
        (Ok(_), Some(Bound::Seen(bound)), _) => bound,
        (_, _, Some(profile)) => profile.bound(),
        _ => delta(0).map(|_| largest_known().get())?,
    };
    NonZeroU64::new(bound).context("a processor without a store buffer has no bound")
}

/// Lets the queues with a bound use the bound of `profile` where none is known of this processor.
/// The systems whose names end in `-measured` use it in any case; without a profile there are no
/// such systems. For the whole process, and the first call counts.
///
/// # Errors
///
/// If it is another processor's.
///
/// # Safety
///
/// The profile was measured on this machine: under a bound that is too small two threads run one
/// task. Anybody can write a profile.
///
/// ```compile_fail,E0133
/// use poach_memory::Profile;
/// use poach_memory::delta::Processor;
///
/// let here = Processor::here().unwrap();
/// // A bound that nobody has measured.
/// poach_bench::use_profile(&Profile::new(here, 1, 2).unwrap()).unwrap();
/// ```
pub unsafe fn use_profile(profile: &Profile) -> Result<()> {
    profile.check_here().context("the profile cannot be used here")?;
    MEASURED.get_or_init(|| *profile);
    Ok(())
}

/// Lets the queues with a bound use the bound that is known of the processor that `cpuid` shows, in
/// a virtual machine too. Where none is known and no profile is given they use an ample bound
/// ([`Delta::ample`]); without this call they are left out there. Returns the ample bound in pops,
/// if it will be used, so that the figures can say so. For the whole process.
///
/// # Safety
///
/// This machine runs on the processor that `cpuid` shows. If no bound is known of it, no thief
/// fails to see more than [`largest_known`] of its owner's pops, each with a store to another cache
/// line before it; nobody has measured that. Under a bound that is too small two threads run one
/// task.
///
/// ```compile_fail,E0133
/// poach_bench::use_unproven_bounds();
/// ```
pub unsafe fn use_unproven_bounds() -> Option<NonZeroU64> {
    VOUCHED.get_or_init(|| ());
    let unknown = known(0).is_err() && MEASURED.get().is_none();
    (Machine::total_store_order() && unknown).then(largest_known)
}

/// The bound of the profile that was given.
///
/// # Errors
///
/// If there is none.
pub(crate) fn measured() -> Result<Delta> {
    let profile = MEASURED.get().context("no profile of this processor is given")?;
    // SAFETY: the caller of `use_profile` says that it was measured here. The queue makes the store
    // between two pops.
    let delta = unsafe { Delta::measured(profile, 0) };
    Ok(delta?)
}

/// The bound `pops`, for owners that make the number of stores between two pops that it needs here.
pub(crate) fn spaced(pops: NonZeroU64) -> Delta {
    // SAFETY: `Spaced`, the only owner, makes the stores that this processor asks for, as `spacing`
    // works out.
    let delta = unsafe { Delta::exactly(pops) };
    // SAFETY: as for the bound.
    unsafe { delta.without_fill() }
}

/// The bound of a simulated machine with `store_buffer` entries in its store buffer, if the queue
/// makes the store between two pops.
pub(crate) fn simulated(store_buffer: usize) -> Delta {
    // Of the entries and the store that is on its way to the cache, one in two is a pop's.
    let pops = NonZeroU64::MIN.saturating_add(store_buffer as u64 / 2);
    // SAFETY: the simulated machine has `store_buffer` entries, and does not merge stores.
    unsafe { Delta::exactly(pops) }
}

/// A queue without a fence, as a limit to measure by: it has room for the largest batch twice, and
/// is not grown.
///
/// # Errors
///
/// [`CapacityError`] if there is no memory.
pub(crate) fn unfenced() -> Result<ChaseLev<u64, Unfenced>, CapacityError> {
    // SAFETY: kept where the owner is alone. Where there are thieves it is not, on purpose: the
    // tasks are numbers, and the suite does not ask that each comes out once.
    let policy = unsafe { Unfenced::new() };
    ChaseLev::with_capacity(policy, 2048)
}

/// No fence, for the pools of `fork-join` that have one worker: its cases are made for one alone.
pub(crate) fn alone() -> Unfenced {
    // SAFETY: the pool has one worker, so no thief looks, and no fence is needed.
    unsafe { Unfenced::new() }
}

/// The policy of an owner that the suite binds to `processor`.
///
/// # Errors
///
/// [`CannotDisplace`] if this thread cannot get there.
pub(crate) fn displaced(processor: usize) -> Result<Displaced, CannotDisplace> {
    // SAFETY: the protocol of the pinned shapes binds each consumer to the processor of its seat
    // before it consumes, and no other shape uses the policy.
    unsafe { Displaced::onto(processor) }
}

/// Has this crate's own tests cover the queues with a bound on a processor without a known one too.
#[cfg(test)]
pub(crate) fn in_tests() {
    // SAFETY: nobody knows; a test that fails on such a processor says what was wrong with the
    // promise.
    let _ = unsafe { use_unproven_bounds() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_gives_no_less_than_the_bound_that_is_used_without_it() {
        let Some(here) = Processor::here() else { return };
        in_tests();
        // As `poach measure` would write it here where this processor's bound is known; elsewhere
        // one no smaller than the ample one, where each pop's store and the queue's own
        // count.
        let (capacity, bound) = match here.documented().map(|entry| (entry.capacity, entry.bound)) {
            Some((capacity, Bound::Seen(bound))) => (capacity, bound),
            _ => (2 * largest_known().get(), 2 * largest_known().get() + 1),
        };
        let unmeasured = delta(0).unwrap();
        let profile = Profile::new(here, capacity, bound).unwrap();
        // SAFETY: as for the bound that `delta` takes without it, which is not larger.
        unsafe { use_profile(&profile) }.unwrap();
        assert!(measured().unwrap().pops() >= unmeasured.pops());
        assert!(delta(0).unwrap().pops() >= unmeasured.pops());
    }
}
