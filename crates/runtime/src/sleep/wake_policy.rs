//! When an owner wakes a sleeper for its forks: by ski rental, with a memory.
//!
//! A wake costs the owner a system call of about ten microseconds, and the woken worker comes thirty to sixty
//! later. A region that is over by then has lost those ten. So an owner whose recent wakes brought nothing *hesitates*: it puts
//! a request off until the region has run for [`RENT`], about what a wake costs both sides. The region then takes at most
//! twice the time that it would have taken with the better choice: Karlin, Manasse, Rudolph and Sleator,
//! *Competitive snoopy caching* (Algorithmica 1988), whose problem is known as ski rental.
//!
//! The pool learns from each wake, and from each region that ran longer than it was expected to:
//!
//! - A woken worker that goes back to sleep and has worked for less than [`WORTH`] makes the owners hesitate, for
//!   [`MEMORY`].
//! - A region that runs for [`RENT`] while its owner hesitates ends the hesitation. The owner wakes a sleeper then, and the next
//!   region's owner does so at its first fork.
//! - While some worker searches there is no wake to pay for, and the owner answers at once.
//!
//! What hesitation can cost is bounded by time: a region of coarse tasks, whose owner does not come back to its deque
//! before one of them ends, gets its second worker from the next nap of a sleeper (see the README), and the next
//! region at once.
//!
//! The clock is read in the owner's cold path, when an alarm has been met, and only while it hesitates: twice for each
//! level of a balanced tree of forks.

use std::time::{Duration, Instant};

use poach_memory::{Machine, Memory, Ordering, Word};

/// How long a region runs before a hesitating owner wakes a sleeper for it.
const RENT: u64 = 64_000;
/// A wake was worth its cost if the worker has then worked for so long.
pub(crate) const WORTH: Duration = Duration::from_micros(12);
/// How long one useless wake is remembered. One in so long costs ten microseconds of each hundred milliseconds.
const MEMORY: u64 = 100_000_000;
/// Forks further apart than this belong to different regions, if nothing private was left between them.
const PAUSE: u64 = 10_000;

type MachineWord = <Machine as Memory>::Word;

/// What the owners of a pool have learned. Times are nanoseconds since `epoch`.
// Relaxed, throughout this file: estimates.
pub(crate) struct WakePolicy {
    epoch: Instant,
    /// Until then owners hesitate; zero if they do not.
    hesitate_until: MachineWord,
}

/// The region that an owner runs. Written by the owner alone.
pub(crate) struct RegionClock {
    start: MachineWord,
    /// When the owner last asked.
    last: MachineWord,
}

impl RegionClock {
    pub(crate) fn new() -> RegionClock {
        RegionClock { start: Word::new(0), last: Word::new(0) }
    }
}

impl WakePolicy {
    pub(crate) fn new() -> WakePolicy {
        WakePolicy { epoch: Instant::now(), hesitate_until: Word::new(0) }
    }

    /// Whether an owner that would have to wake a sleeper does so now. `private` tasks of its own stand above the
    /// split.
    pub(crate) fn is_due(&self, region: &RegionClock, private: u32) -> bool {
        if self.hesitate_until.load(Ordering::Relaxed) == 0 {
            return true;
        }
        self.is_due_at(self.now(), region, private)
    }

    fn is_due_at(&self, now: u64, region: &RegionClock, private: u32) -> bool {
        // The one private task has been pushed just now, on a deque that had none.
        let paused = now - region.last.load(Ordering::Relaxed) > PAUSE;
        if private == 1 && paused {
            region.start.store(now, Ordering::Relaxed);
        }
        region.last.store(now, Ordering::Relaxed);
        let hesitates = now < self.hesitate_until.load(Ordering::Relaxed);
        if hesitates && now - region.start.load(Ordering::Relaxed) < RENT {
            return false;
        }
        self.hesitate_until.store(0, Ordering::Relaxed);
        true
    }

    /// A worker that an owner had woken has worked for so long, and has nothing left.
    pub(crate) fn woken(&self, worked: Duration) {
        if worked < WORTH {
            self.hesitate_until.store(self.now() + MEMORY, Ordering::Relaxed);
        }
    }

    fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy whose owners hesitate, and a time within its memory.
    fn hesitating() -> (WakePolicy, u64) {
        let policy = WakePolicy::new();
        policy.woken(Duration::ZERO);
        (policy, MEMORY / 2)
    }

    #[test]
    fn an_owner_wakes_at_once_until_a_wake_was_useless() {
        let (policy, region) = (WakePolicy::new(), RegionClock::new());
        assert!(policy.is_due(&region, 1));
        policy.woken(WORTH);
        assert!(policy.is_due(&region, 1));
        policy.woken(WORTH / 2);
        assert!(!policy.is_due_at(MEMORY / 2, &region, 1));
    }

    #[test]
    fn short_regions_wake_nobody_however_many_there_are() {
        let ((policy, mut now), region) = (hesitating(), RegionClock::new());
        for _ in 0..100 {
            now += PAUSE + 1;
            assert!(!policy.is_due_at(now, &region, 1));
            now += RENT - 1;
            assert!(!policy.is_due_at(now, &region, 0));
        }
    }

    #[test]
    fn a_region_that_outlasts_the_rent_is_woken_for_and_so_is_the_next_at_once() {
        let ((policy, now), region) = (hesitating(), RegionClock::new());
        assert!(!policy.is_due_at(now, &region, 1));
        assert!(policy.is_due_at(now + RENT, &region, 0));
        assert!(policy.is_due_at(now + 2 * RENT, &region, 1));
    }

    #[test]
    fn regions_without_a_pause_between_them_are_one() {
        let ((policy, mut now), region) = (hesitating(), RegionClock::new());
        let start = now;
        while !policy.is_due_at(now, &region, 1) {
            now += PAUSE;
        }
        assert_eq!((now - start).div_ceil(PAUSE), RENT.div_ceil(PAUSE));
    }

    #[test]
    fn hesitation_is_forgotten() {
        let (policy, region) = (WakePolicy::new(), RegionClock::new());
        policy.woken(Duration::ZERO);
        let later = policy.now() + MEMORY;
        assert!(!policy.is_due_at(later - MEMORY / 2, &region, 1));
        assert!(policy.is_due_at(later, &region, 1));
    }
}
