//! When a thief rests: where all that it gets is crumbs.
//!
//! A program that is called again and again for a microsecond of work each time keeps its thieves awake
//! and feeds them tasks that are not worth the way: each costs the owner a look at its request, the
//! changes of the split and a wait for the thief, several times the task itself. So a worker with
//! nothing under way measures what its steals bring: from a steal to the moment at which there is
//! nothing left of it is a *meal*. After [`FEW`] meals in a row that took less than [`CRUMB`] it rests: it
//! sleeps without leaving a request, for a bounded time, longer each time that it finds crumbs again
//! afterwards. One real meal, and it is as hungry as ever.
//!
//! While it rests it can be called by what comes from outside and for what only it may do; only owners
//! are left alone. See `sleep/README.md`.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A meal that takes less is not worth a steal. Subtrees of some hundred nodes, half a microsecond of
/// work, take up to four while their owner steals back from them: with 2 microseconds here the thief of
/// a tree of 1,000 nodes hardly ever came to rest.
const CRUMB: Duration = Duration::from_micros(5);
/// So many crumbs in a row, and the thief rests.
const FEW: u32 = 4;
/// The first rest; the next ones double.
const REST: Duration = Duration::from_micros(50);
/// Doublings.
const PATIENCE: u32 = 3;

/// What a worker's last steals have brought.
pub(crate) struct Crumbs {
    /// When the meal began, if one is under way.
    begun: Cell<Option<Instant>>,
    row: Cell<u32>,
}

impl Crumbs {
    pub(crate) fn new() -> Crumbs {
        Crumbs { begun: Cell::new(None), row: Cell::new(0) }
    }

    /// A steal has brought something, now.
    pub(crate) fn begin(&self) {
        self.begun.set(Some(Instant::now()));
    }

    /// There is nothing left. How long to rest, if it was a crumb too many.
    pub(crate) fn end(&self) -> Option<Duration> {
        let meal = self.begun.take()?.elapsed();
        self.ended(meal)
    }

    fn ended(&self, meal: Duration) -> Option<Duration> {
        self.row.set(if meal < CRUMB { self.row.get().saturating_add(1) } else { 0 });
        let rests = self.row.get().checked_sub(FEW)?;
        Some(REST * (1 << rests.min(PATIENCE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_come_after_a_few_crumbs_and_grow_to_a_bound() {
        let crumbs = Crumbs::new();
        let rests: Vec<_> = (0..12).filter_map(|_| crumbs.ended(CRUMB / 2)).collect();
        assert_eq!(rests.len(), 12 - FEW as usize + 1);
        assert_eq!(rests[..4], [REST, REST * 2, REST * 4, REST * 8]);
        assert!(rests[3..].iter().all(|&rest| rest == rests[3]));
    }

    #[test]
    fn a_real_meal_ends_it() {
        let crumbs = Crumbs::new();
        for _ in 0..9 {
            crumbs.ended(Duration::ZERO);
        }
        assert_eq!(crumbs.ended(CRUMB), None);
        assert_eq!(crumbs.ended(Duration::ZERO), None);
    }

    #[test]
    fn what_was_not_stolen_is_no_meal() {
        let crumbs = Crumbs::new();
        assert_eq!((0..99).find_map(|_| crumbs.end()), None);
    }
}
