//! When a thief backs off: where its steals bring less than they cost.
//!
//! A program that is called again and again for a microsecond of work each time keeps its thieves awake
//! and feeds them tasks that are not worth stealing: each costs the owner a look at its request, the
//! changes of the split and a wait for the thief, several times the task itself. So a worker with
//! nothing under way measures how long the work of each steal lasts: from the steal to the moment at which there is
//! nothing left of it. It keeps a credit, to which each steal adds that time and from which it subtracts [`STEAL_COST`].
//! When the credit runs out, the worker rests: it sleeps without leaving a request, for a bounded time,
//! longer each time that nothing worth its cost has come in between, and then tries again, less often each time.
//!
//! The credit remembers the last large steal for a few hundred small ones, since some programs hide large tasks
//! among many small ones: in a binomial tree (UTS T3L) nineteen of twenty steals bring less than they cost.
//!
//! While it rests it can be called by what comes from outside and for what only it may do; only owners
//! are left alone. See `sleep/README.md`.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// What a steal must bring. Subtrees of some hundred nodes, half a microsecond of work, take up to four
/// while their owner steals back from them: with 2 microseconds here the thief of a tree of 1,000 nodes
/// hardly ever came to rest.
const STEAL_COST: Duration = Duration::from_micros(5);
/// The credit that a thief begins with. It begins with half of that after the first rest, and so on.
const INITIAL: Duration = Duration::from_micros(20);
/// The largest credit.
const MOST: Duration = Duration::from_millis(1);
/// The first rest; the next ones double.
const REST: Duration = Duration::from_micros(50);
/// Doublings.
const DOUBLINGS: u32 = 3;

/// What a worker's last steals have brought.
pub(crate) struct StealBackoff {
    /// When the work of the last steal began, if it is under way.
    begun: Cell<Option<Instant>>,
    credit: Cell<Duration>,
    /// Rests in a row without a steal between them that was worth its cost.
    rests: Cell<u32>,
}

/// The work of a steal is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stolen {
    /// How long it lasted.
    pub(crate) worked: Duration,
    /// How long to rest, if the credit has run out.
    pub(crate) rest: Option<Duration>,
}

impl StealBackoff {
    pub(crate) fn new() -> StealBackoff {
        StealBackoff { begun: Cell::new(None), credit: Cell::new(INITIAL), rests: Cell::new(0) }
    }

    /// A steal has brought something, now.
    pub(crate) fn begin(&self) {
        self.begun.set(Some(Instant::now()));
    }

    /// There is nothing left of it. `None` if there was no steal.
    pub(crate) fn end(&self) -> Option<Stolen> {
        let worked = self.begun.take()?.elapsed();
        Some(Stolen { worked, rest: self.ended(worked) })
    }

    fn ended(&self, worked: Duration) -> Option<Duration> {
        if worked >= STEAL_COST {
            self.rests.set(0);
        }
        let credit = (self.credit.get() + worked.min(MOST)).saturating_sub(STEAL_COST).min(MOST);
        self.credit.set(credit);
        if !credit.is_zero() {
            return None;
        }
        let rests = self.rests.get();
        self.rests.set(rests + 1);
        self.credit.set(INITIAL / (2 << rests.min(DOUBLINGS)));
        Some(REST * (1 << rests.min(DOUBLINGS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Duration = Duration::from_micros(1);

    /// Small steals until the next rest, and how long that is.
    fn steals_until_a_rest(backoff: &StealBackoff) -> (u32, Duration) {
        let mut steals = 0;
        loop {
            steals += 1;
            if let Some(rest) = backoff.ended(SMALL) {
                return (steals, rest);
            }
        }
    }

    #[test]
    fn rests_come_after_a_few_small_steals_and_grow_to_a_bound() {
        let backoff = StealBackoff::new();
        let rests = [(5, REST), (3, REST * 2), (2, REST * 4), (1, REST * 8), (1, REST * 8)];
        for rest in rests {
            assert_eq!(steals_until_a_rest(&backoff), rest);
        }
    }

    #[test]
    fn a_large_steal_is_remembered_for_a_while() {
        let backoff = StealBackoff::new();
        assert_eq!(backoff.ended(Duration::from_secs(1)), None);
        let (steals, rest) = steals_until_a_rest(&backoff);
        assert_eq!(rest, REST, "the rests begin anew");
        assert_eq!(
            u128::from(steals),
            MOST.as_nanos() / (STEAL_COST.as_nanos() - SMALL.as_nanos())
        );
    }

    #[test]
    fn steals_that_are_worth_it_never_end_in_a_rest() {
        let backoff = StealBackoff::new();
        assert_eq!((0..1000).find_map(|_| backoff.ended(STEAL_COST + SMALL)), None);
    }

    #[test]
    fn what_was_not_stolen_is_no_steal() {
        let backoff = StealBackoff::new();
        assert_eq!((0..99).find_map(|_| backoff.end()), None);
    }
}
