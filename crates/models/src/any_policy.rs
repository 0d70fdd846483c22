//! A fence policy of any kind in one type, so that a queue with a policy is compiled once, and not
//! once for each policy.

use core::num::NonZeroU64;

use poach_check::{Displacing, Simulated};
use poach_memory::{Asymmetric, Bounded, Delta, Full, Resolved, StoreLoad, Unbounded, Unfenced};

use crate::Policy;

/// A fence policy of any kind.
pub(crate) enum AnyPolicy {
    /// By itself: its [`resolve`](StoreLoad::resolve) is a step at its caller's place in the
    /// source.
    Displaced(Displacing),
    /// Any other.
    Other(Box<dyn StoreLoad<Simulated>>),
}

impl AnyPolicy {
    /// The policy of a queue whose owner is the model's thread `owner`.
    ///
    /// # Panics
    ///
    /// If the simulated machine refuses a policy: it never does.
    pub(crate) fn new(policy: Policy, owner: usize) -> Self {
        AnyPolicy::Other(match policy {
            Policy::Full => Box::new(Full),
            Policy::Asymmetric => Box::new(Asymmetric::<Simulated>::new()),
            Policy::Bounded { delta: pops, fill } => Box::new(
                Bounded::<Simulated>::new(delta(pops, fill)).expect("the simulated machine is TSO"),
            ),
            Policy::Resolved { delta: pops, fill } => Box::new(
                Resolved::<Simulated>::new(delta(pops, fill))
                    .expect("it has both that it asks for"),
            ),
            Policy::Unbounded => Box::new(Unbounded),
            Policy::Displaced => return AnyPolicy::Displaced(displacing(owner)),
            Policy::Unfenced => Box::new(unfenced()),
        })
    }

    fn any(&self) -> &dyn StoreLoad<Simulated> {
        match self {
            AnyPolicy::Displaced(policy) => policy,
            AnyPolicy::Other(policy) => &**policy,
        }
    }
}

// SAFETY: each method is the same method of one policy, the same for as long as the value lives,
// which keeps the contract.
unsafe impl StoreLoad<Simulated> for AnyPolicy {
    fn owner(&self) {
        self.any().owner();
    }

    fn is_inline(&self) -> bool {
        self.any().is_inline()
    }

    fn thief(&self) {
        self.any().thief();
    }

    fn delta(&self) -> u64 {
        self.any().delta()
    }

    #[track_caller]
    fn resolve(&self) -> bool {
        match self {
            AnyPolicy::Displaced(policy) => policy.resolve(),
            AnyPolicy::Other(policy) => policy.resolve(),
        }
    }
}

/// The policy of a queue of another crate, whose owner is the model's thread `owner`.
///
/// # Safety
///
/// The tasks of the queue are numbers: the policy may be too weak, for the checker to say so, and a
/// task then comes out twice.
#[doc(hidden)]
pub unsafe fn any_policy(policy: Policy, owner: usize) -> impl StoreLoad<Simulated> + 'static {
    AnyPolicy::new(policy, owner)
}

/// The bound on the simulated machine, which may be too small: then the checker is to say so.
pub(crate) fn delta(pops: NonZeroU64, fill: bool) -> Delta {
    // SAFETY: not kept where the checker is to see what happens. The queues of this crate move
    // numbers between coroutines, one of which runs at a time: a slot that is read twice gives
    // its number twice, and the checker says so. Nobody outside of this crate gets the value, but
    // by `any_policy`, whose caller says the same of its queues.
    let delta = unsafe { Delta::exactly(pops) };
    if fill {
        return delta;
    }
    // SAFETY: as for the bound; the scenarios make the stores between pops.
    unsafe { delta.without_fill() }
}

/// No fence, for the checker to catch.
pub(crate) fn unfenced() -> Unfenced {
    // SAFETY: as in `delta`.
    unsafe { Unfenced::new() }
}

/// The policy for owners that are the model's threads of these numbers.
pub(crate) fn displacing(thread: usize) -> Displacing {
    // SAFETY: as in `delta`: the tasks of this crate's models are numbers.
    unsafe { Displacing::onto(thread) }
}
