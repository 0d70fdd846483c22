//! Queues with a bound on trial: it may be too small, which is what is to be found out.

use core::num::NonZeroU64;

use poach_deque::FfThe;
use poach_memory::{Bounded, Delta};

use crate::litmus::CannotTest;

/// A bound on trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    /// How many pops a thief may fail to see.
    pub(crate) pops: NonZeroU64,
    /// Whether the queue makes the store between two pops, or its client.
    pub(crate) fill: bool,
}

impl Trial {
    /// A queue of numbers with this bound. Its callers never have more than `capacity` tasks in it.
    ///
    /// # Errors
    ///
    /// [`CannotTest`] where there is no total store order, or no such capacity.
    pub(crate) fn queue(self, capacity: usize) -> Result<FfThe<u32>, CannotTest> {
        // SAFETY: the processor keeps the promise or not, which is what is measured. The tasks are
        // numbers, and the queue does not grow: where the bound is too small, numbers come
        // out twice or not at all, and are counted.
        let filling = unsafe { Delta::exactly(self.pops) };
        // SAFETY: as for the bound.
        let bare = unsafe { filling.without_fill() };
        let policy = Bounded::new(if self.fill { filling } else { bare });
        FfThe::with_capacity(policy.map_err(CannotTest::Refused)?, capacity)
            .map_err(CannotTest::Queue)
    }
}
