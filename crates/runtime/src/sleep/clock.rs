//! The clock by which workers decide how long to look, rest and hesitate.

use std::ops::Sub;
use std::time::{Duration, Instant};

/// A monotonic clock.
pub trait Clock {
    /// A moment of this clock.
    type Instant: Copy + Sub<Output = Duration>;

    /// The time now.
    fn now() -> Self::Instant;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    type Instant = Instant;

    #[inline]
    fn now() -> Instant {
        Instant::now()
    }
}
