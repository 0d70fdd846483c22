//! What the measured queues are promised about this machine, in one place: bounds, processors, and no fence at all.

use std::num::NonZeroU64;
use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use poach_deque::{CapacityError, ChaseLev};
use poach_memory::displace::CannotDisplace;
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

/// The bound of this processor's profile.
static MEASURED: OnceLock<Delta> = OnceLock::new();

/// Has the systems whose names end in `-measured` take the bound of `profile`; without one there are
/// none of them. For the whole process, and the first call counts.
///
/// # Errors
///
/// If it is another processor's.
///
/// # Safety
///
/// The profile was measured on this machine: under a bound that is too small two threads run one task. Anybody can write a profile.
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
    // SAFETY: the caller says that it was measured here. The queue makes the store between two pops.
    let delta = unsafe { Delta::measured(profile, 0) };
    let delta = delta.context("the profile cannot be used here")?;
    MEASURED.get_or_init(|| delta);
    Ok(())
}

/// The bound of the profile that was given.
///
/// # Errors
///
/// If there is none.
pub(crate) fn measured() -> Result<Delta> {
    MEASURED.get().copied().context("no profile of this processor is given")
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

#[cfg(test)]
mod tests {
    use poach_memory::delta::{Bound, Processor};

    use super::*;
    use crate::{ForkJoin, Plan, Session, Size};

    #[test]
    fn every_program_is_right_by_the_bound_of_a_profile() {
        let Some(here) = Processor::here() else { return };
        // As `poach measure` would write it here where this processor's bound is known; elsewhere one no smaller than the
        // bound that `delta` takes, where each pop's store and the queue's own count.
        let (capacity, bound) = match here.documented().map(|entry| (entry.capacity, entry.bound)) {
            Some((capacity, Bound::Seen(bound))) => (capacity, bound),
            _ => (2 * delta(0).pops(), 2 * delta(0).pops() + 1),
        };
        let profile = Profile::new(here, capacity, bound).unwrap();
        // SAFETY: as for the bound that `delta` takes, which is not larger.
        unsafe { use_profile(&profile) }.unwrap();
        assert!(measured().unwrap().pops() >= delta(0).pops());
        let plan = Plan {
            size: Size::Tiny,
            workers: vec![1, 2, 3, 8],
            systems: vec!["ff-the-measured".into()],
            rounds: 3,
            budget: None,
            thread_stack: 1 << 30,
            ..Plan::full()
        };
        let cases = plan.cases(&ForkJoin).unwrap().len();
        assert_eq!(cases % 4, 0);
        let session = Session::new(plan);
        session.run(&ForkJoin, &|_| {}).unwrap();
        let document = session.document();
        assert_eq!((document.failures.len(), document.rows.len()), (0, cases));
        assert!(cases > 0 && document.rows.iter().all(|row| row.samples.len() == 3));
    }
}
