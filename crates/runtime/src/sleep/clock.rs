//! The clock by which workers decide how long to look, to rest and to hesitate.

use std::ops::Sub;
use std::time::{Duration, Instant};

/// A clock that does not go back.
pub trait Clock {
    /// What it says.
    type Instant: Copy + Sub<Output = Duration>;

    /// What it says now.
    fn now() -> Self::Instant;
}

/// The system's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    type Instant = Instant;

    #[inline]
    fn now() -> Instant {
        Instant::now()
    }
}
