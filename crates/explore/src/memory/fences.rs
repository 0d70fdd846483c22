//! A fence policy of any kind in one type, so that a queue with a policy is compiled once, and not once for each policy.

use poach_memory::{Asymmetric, Bounded, Full, Resolved, StoreLoad, Unbounded};

use super::{Displacing, Simulated, delta, displacing, unfenced};
use crate::queues::Policy;

/// A fence policy of any kind.
pub(crate) enum AnyPolicy {
    /// By itself: its [`resolve`](StoreLoad::resolve) is a step at its caller's place in the source.
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

// SAFETY: each method is the same method of one policy, the same for as long as the value lives, which keeps the contract.
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

    fn margin(&self) -> u64 {
        self.any().margin()
    }

    #[track_caller]
    fn resolve(&self) -> bool {
        match self {
            AnyPolicy::Displaced(policy) => policy.resolve(),
            AnyPolicy::Other(policy) => policy.resolve(),
        }
    }
}
