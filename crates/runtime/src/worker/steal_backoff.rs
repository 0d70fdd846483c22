//! A thief's back-off while its steals bring less than they cost.
//!
//! A program that is called again and again for a microsecond of work each time keeps its thieves
//! awake and feeds them tasks that are not worth stealing. Each steal costs the owner a look at its
//! request, the changes of the split and a wait for the thief: several times the task itself. So a
//! worker with nothing under way measures how long the work of each steal lasts. It keeps a credit:
//! each steal adds that time and subtracts [`STEAL_COST`]. It subtracts [`STEAL_COST`] once more
//! for each wait for a part that another worker had stolen from it: such work lasts longer because
//! it goes to and fro. When the credit runs out, the worker rests: it sleeps without leaving a
//! request, for a bounded time. The time grows with each rest, and starts anew after a steal that
//! was worth its cost. The credit for the next try shrinks likewise.
//!
//! The credit remembers the last large steal for a few hundred small ones, because some programs
//! hide large tasks among many small ones. In a binomial tree (UTS T3L) nineteen of twenty steals
//! bring less than they cost.
//!
//! While it rests it can be called for work from outside and for work that only it may do; only
//! owners do not call it. See `sleep/README.md`.

use std::cell::Cell;
use std::time::Duration;

use crate::pace::{
    FIRST_REST, FIRST_STEAL_CREDIT, LARGEST_STEAL_CREDIT, REST_DOUBLINGS, STEAL_COST,
};
use crate::sleep::clock::Clock;

/// A worker's record of its last steals.
pub struct StealBackoff<C: Clock> {
    /// The begin of the last steal's work, if it is under way.
    begun: Cell<Option<C::Instant>>,
    /// The number of waits since for a part of it.
    waits: Cell<u32>,
    credit: Cell<Duration>,
    /// Rests in a row without a steal between them that was worth its cost.
    rests: Cell<u32>,
}

/// The work of a steal is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gain {
    /// How long it lasted.
    pub(crate) worked: Duration,
    /// How long to rest, if the credit has run out.
    pub(crate) rest: Option<Duration>,
}

impl<C: Clock> Default for StealBackoff<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Clock> StealBackoff<C> {
    /// No steal so far.
    pub fn new() -> StealBackoff<C> {
        let (begun, waits) = (Cell::new(None), Cell::new(0));
        StealBackoff { begun, waits, credit: Cell::new(FIRST_STEAL_CREDIT), rests: Cell::new(0) }
    }

    /// A steal has brought something, now.
    pub(crate) fn begin(&self) {
        self.waits.set(0);
        self.begun.set(Some(C::now()));
    }

    /// The worker waits for something that another has stolen from it.
    pub fn waits(&self) {
        self.waits.set(self.waits.get().saturating_add(1));
    }

    /// There is nothing left of it. `None` if there was no steal.
    pub(crate) fn end(&self) -> Option<Gain> {
        let worked = C::now() - self.begun.take()?;
        Some(Gain { worked, rest: self.ended(worked, self.waits.get()) })
    }

    fn ended(&self, worked: Duration, waits: u32) -> Option<Duration> {
        let cost = STEAL_COST * waits.saturating_add(1);
        if worked >= cost {
            self.rests.set(0);
        }
        let credit = (self.credit.get() + worked.min(LARGEST_STEAL_CREDIT))
            .saturating_sub(cost)
            .min(LARGEST_STEAL_CREDIT);
        self.credit.set(credit);
        if !credit.is_zero() {
            return None;
        }
        let rests = self.rests.get();
        self.rests.set(rests + 1);
        self.credit.set(FIRST_STEAL_CREDIT / (2 << rests.min(REST_DOUBLINGS)));
        Some(FIRST_REST * (1 << rests.min(REST_DOUBLINGS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sleep::clock::SystemClock;

    type StealBackoff = super::StealBackoff<SystemClock>;

    const SMALL: Duration = Duration::from_micros(1);

    /// Small steals until the next rest, and how long that is.
    fn steals_until_a_rest(backoff: &StealBackoff) -> (u32, Duration) {
        let mut steals = 0;
        loop {
            steals += 1;
            if let Some(rest) = backoff.ended(SMALL, 0) {
                return (steals, rest);
            }
        }
    }

    #[test]
    fn rests_come_after_a_few_small_steals_and_grow_to_a_bound() {
        let backoff = StealBackoff::new();
        let rests = [
            (6, FIRST_REST),
            (3, FIRST_REST * 2),
            (2, FIRST_REST * 4),
            (1, FIRST_REST * 8),
            (1, FIRST_REST * 8),
        ];
        for rest in rests {
            assert_eq!(steals_until_a_rest(&backoff), rest);
        }
    }

    #[test]
    fn a_large_steal_is_remembered_for_a_while() {
        let backoff = StealBackoff::new();
        assert_eq!(backoff.ended(Duration::from_secs(1), 0), None);
        let (steals, rest) = steals_until_a_rest(&backoff);
        assert_eq!(rest, FIRST_REST, "the rests begin anew");
        assert_eq!(
            u128::from(steals),
            LARGEST_STEAL_CREDIT.as_nanos() / (STEAL_COST.as_nanos() - SMALL.as_nanos())
        );
    }

    #[test]
    fn steals_that_are_worth_it_never_end_in_a_rest() {
        let backoff = StealBackoff::new();
        assert_eq!((0..1000).find_map(|_| backoff.ended(STEAL_COST + SMALL, 0)), None);
    }

    #[test]
    fn work_that_goes_to_and_fro_is_worth_less() {
        let backoff = StealBackoff::new();
        assert_eq!((0..1000).find_map(|_| backoff.ended(STEAL_COST * 3, 2)), None);
        assert!((0..20).any(|_| backoff.ended(STEAL_COST * 3, 3).is_some()));
    }

    #[test]
    fn what_was_not_stolen_is_no_steal() {
        let backoff = StealBackoff::new();
        assert_eq!((0..99).find_map(|_| backoff.end()), None);
    }
}
