//! When a thief rests: where all that it gets is crumbs.
//!
//! A program that is called again and again for a microsecond of work each time keeps its thieves awake
//! and feeds them tasks that are not worth the way: each costs the owner a look at its request, the
//! changes of the split and a wait for the thief, several times the task itself. So a worker with
//! nothing under way measures what its steals bring: from a steal to the moment at which there is
//! nothing left of it is a *meal*. It has a store that each meal fills by its time and empties by
//! [`CRUMB`]. When that is empty, it rests: it sleeps without leaving a request, for a bounded time,
//! longer each time that it has found nothing but crumbs again, and then tries again, less often each time.
//!
//! The store remembers the last large meal for a few hundred crumbs, since some programs hide large tasks
//! among many small ones: in a binomial tree (UTS T3L) nineteen of twenty steals bring crumbs.
//!
//! While it rests it can be called by what comes from outside and for what only it may do; only owners
//! are left alone. See `sleep/README.md`.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// What a steal must bring. Subtrees of some hundred nodes, half a microsecond of work, take up to four
/// while their owner steals back from them: with 2 microseconds here the thief of a tree of 1,000 nodes
/// hardly ever came to rest.
const CRUMB: Duration = Duration::from_micros(5);
/// The store that a thief begins with. It begins with half of that after the first rest, and so on.
const STORE: Duration = Duration::from_micros(20);
/// The largest store.
const FULL: Duration = Duration::from_millis(1);
/// The first rest; the next ones double.
const REST: Duration = Duration::from_micros(50);
/// Doublings.
const PATIENCE: u32 = 3;

/// What a worker's last steals have brought.
pub(crate) struct Crumbs {
    /// When the meal began, if one is under way.
    begun: Cell<Option<Instant>>,
    store: Cell<Duration>,
    /// Rests in a row without a real meal between them.
    rests: Cell<u32>,
}

impl Crumbs {
    pub(crate) fn new() -> Crumbs {
        Crumbs { begun: Cell::new(None), store: Cell::new(STORE), rests: Cell::new(0) }
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
        if meal >= CRUMB {
            self.rests.set(0);
        }
        let store = (self.store.get() + meal.min(FULL)).saturating_sub(CRUMB).min(FULL);
        self.store.set(store);
        if !store.is_zero() {
            return None;
        }
        let rests = self.rests.get();
        self.rests.set(rests + 1);
        self.store.set(STORE / (2 << rests.min(PATIENCE)));
        Some(REST * (1 << rests.min(PATIENCE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Duration = Duration::from_micros(1);

    /// Crumbs until the next rest, and how long that is.
    fn crumbs_until_a_rest(crumbs: &Crumbs) -> (u32, Duration) {
        let mut eaten = 0;
        loop {
            eaten += 1;
            if let Some(rest) = crumbs.ended(SMALL) {
                return (eaten, rest);
            }
        }
    }

    #[test]
    fn rests_come_after_a_few_crumbs_and_grow_to_a_bound() {
        let crumbs = Crumbs::new();
        let rests = [(5, REST), (3, REST * 2), (2, REST * 4), (1, REST * 8), (1, REST * 8)];
        for rest in rests {
            assert_eq!(crumbs_until_a_rest(&crumbs), rest);
        }
    }

    #[test]
    fn a_real_meal_is_remembered_for_a_while() {
        let crumbs = Crumbs::new();
        assert_eq!(crumbs.ended(Duration::from_secs(1)), None);
        let (eaten, rest) = crumbs_until_a_rest(&crumbs);
        assert_eq!(rest, REST, "the rests begin anew");
        assert_eq!(u128::from(eaten), FULL.as_nanos() / (CRUMB.as_nanos() - SMALL.as_nanos()));
    }

    #[test]
    fn meals_that_are_worth_it_never_end_in_a_rest() {
        let crumbs = Crumbs::new();
        assert_eq!((0..1000).find_map(|_| crumbs.ended(CRUMB + SMALL)), None);
    }

    #[test]
    fn what_was_not_stolen_is_no_meal() {
        let crumbs = Crumbs::new();
        assert_eq!((0..99).find_map(|_| crumbs.end()), None);
    }
}
