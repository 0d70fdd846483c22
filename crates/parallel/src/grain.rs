//! When to stop forking.
//!
//! A fork costs its owner about a nanosecond. A steal costs some microseconds: the task and its
//! data go to another processor's cache, and a sleeping thief has to be woken. So halves may be as
//! short as a hundred nanoseconds without much loss, and a leaf below ten microseconds does not
//! become faster by being halved again.
//!
//! [`Grain`] finds a size between the two by the clock, without a model of the program. If a leaf
//! took less than half of the target, it doubles the units of a leaf. If a leaf took more than
//! twice the target, it halves them. A leaf that another program interrupted looks long; it costs
//! one halving, which the next leaf reverses.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Learns how many units of work a recursive program should do without forking.
///
/// Most programs need no grain. Loops ([`par_for`](crate::par_for()) and the others) split
/// themselves, and a fork through a [`Worker`](poach_runtime::Worker) costs less than a call. A
/// grain helps where the sequential form of a leaf is much faster than the forking form, as for a
/// sort in place or a loop that the compiler vectorises.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
/// use poach::{Grain, join};
///
/// fn sum(numbers: &[u64], grain: &Grain) -> u64 {
///     if numbers.len() <= grain.units() {
///         return grain.leaf(numbers.len(), || numbers.iter().sum());
///     }
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     let (left, right) = join(|| sum(left, grain), || sum(right, grain));
///     left + right
/// }
///
/// static GRAIN: Grain = Grain::new();
/// let numbers: Vec<u64> = (0..100_000).collect();
/// assert_eq!(sum(&numbers, &GRAIN), 4_999_950_000);
/// ```
///
/// Keep one `Grain` for each kind of leaf, in a `static` or beside the data, so that it remembers
/// its estimate between calls. The estimate may change at any time: a program's *result* must not
/// depend on it.
#[derive(Debug)]
pub struct Grain {
    target: Duration,
    units: AtomicUsize,
}

impl Grain {
    /// Aims for leaves of ten microseconds, of which a steal and two readings of the clock take
    /// some per cent.
    pub const fn new() -> Grain {
        Grain::lasting(Duration::from_micros(10))
    }

    /// Aims for leaves that last between half of `target` and twice `target`.
    ///
    /// In leaves shorter than a microsecond most of the time is the clock's.
    pub const fn lasting(target: Duration) -> Grain {
        Grain { target, units: AtomicUsize::new(1) }
    }

    /// The number of units that a leaf should have: 1 or more. Wait-free, a plain load.
    #[inline]
    pub fn units(&self) -> usize {
        // Relaxed, here and below: an estimate that guards nothing.
        self.units.load(Ordering::Relaxed)
    }

    /// Runs a leaf of `units` units, and learns from the time that it takes.
    ///
    /// Learns nothing from a leaf of fewer units than half the grain, nor from a leaf that panics.
    /// Wait-free, except for `leaf`; reads the clock twice.
    ///
    /// # Panics
    ///
    /// If `leaf` does.
    #[inline]
    pub fn leaf<R>(&self, units: usize, leaf: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = leaf();
        self.learn(units, start.elapsed());
        result
    }

    fn learn(&self, units: usize, took: Duration) {
        let grain = self.units();
        if took < self.target / 2 && units.saturating_mul(2) > grain {
            // Twice what was run, not twice the grain: other leaves may have raised it meanwhile.
            self.units.store(units.saturating_mul(2).max(1), Ordering::Relaxed);
        } else if took > self.target.saturating_mul(2) && units <= grain {
            self.units.store((units / 2).max(1), Ordering::Relaxed);
        }
    }
}

impl Default for Grain {
    fn default() -> Grain {
        Grain::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The grain after many leaves, if a unit takes this long.
    fn settles(unit: Duration) -> usize {
        let grain = Grain::new();
        for _ in 0..200 {
            let units = grain.units();
            grain.learn(units, unit.saturating_mul(units.min(1 << 30) as u32));
        }
        grain.units()
    }

    #[test]
    fn leaves_come_to_last_about_the_target() {
        for nanoseconds in [1, 7, 100, 3_000] {
            let leaf = nanoseconds * settles(Duration::from_nanos(nanoseconds as u64));
            assert!((5_000..=20_000).contains(&leaf), "{nanoseconds}: {leaf}");
        }
        assert_eq!(settles(Duration::from_millis(1)), 1);
    }

    #[test]
    fn work_that_takes_no_time_is_one_leaf_of_any_size() {
        assert!(settles(Duration::ZERO) > usize::MAX / 4);
    }

    #[test]
    fn an_interrupted_leaf_costs_one_halving_and_small_remainders_nothing() {
        let grain = Grain::new();
        grain.units.store(1_000, Ordering::Relaxed);
        grain.learn(10, Duration::from_nanos(100));
        assert_eq!(grain.units(), 1_000);
        grain.learn(1_000, Duration::from_millis(4));
        assert_eq!(grain.units(), 500);
        grain.learn(500, Duration::from_micros(4));
        assert_eq!(grain.units(), 1_000);
    }

    #[test]
    fn a_leaf_that_panics_teaches_nothing() {
        let grain = Grain::new();
        let leaf = || grain.leaf(1, || panic!("in a leaf"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(leaf)).is_err());
        assert_eq!(grain.units(), 1);
    }
}
