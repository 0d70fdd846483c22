//! How long an idle worker looks for work before it sleeps, and whether its last wake was worth it.
//!
//! It looks for [`SPIN_BASE`], about as long as a wake takes. If work comes at unpredictable
//! moments, a longer look would cost more than to sleep and be woken. Work that comes at intervals
//! is another matter. A worker that was idle for a time before it last found something expects to
//! be idle as long again. If that is more than [`LONGEST_SPIN_INTERVAL`], it looks for
//! [`RARE_SPIN`] alone: looking would not find work that comes that rarely. If it is less, it looks
//! on until a quarter more than the expected time is over.
//!
//! That takes processor time which others may want. So time beyond [`SPIN_BASE`] is paid out of a
//! budget. Work that was stolen, or that came from outside, adds a [`SPIN_SHARE`]th of its own
//! time, up to [`LARGEST_SPIN_BUDGET`]. In the long run a worker looks for work, beyond the base,
//! for at most a tenth of the time for which it works, and not at all in a pool that does nothing.
//! A larger part makes small regions that come at intervals faster: with four times the work
//! instead of a tenth a loop of .25 ms every millisecond took .57 of rayon's time, and 2.5 times
//! its processor time.

use std::cell::Cell;
use std::time::Duration;

use crate::pace::{LARGEST_SPIN_BUDGET, LONGEST_SPIN_INTERVAL, RARE_SPIN, SPIN_BASE, SPIN_SHARE};
use crate::sleep::clock::Clock;

/// A worker's record of its last pieces of work.
pub struct SpinTime<C: Clock> {
    /// The begin of its idle time.
    idle: Cell<Option<C::Instant>>,
    /// Whether it has slept since.
    slept: Cell<bool>,
    /// The idle time before it last found something.
    interval: Cell<Duration>,
    budget: Cell<Duration>,
    /// The begin of its work from outside, if it has not been idle since.
    given: Cell<Option<C::Instant>>,
    /// The time that it has worked since an owner woke it, if it has been idle only for a moment
    /// since.
    woken: Cell<Option<Duration>>,
}

impl<C: Clock> Default for SpinTime<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Clock> SpinTime<C> {
    /// For a worker that has found nothing yet.
    pub fn new() -> SpinTime<C> {
        SpinTime {
            idle: Cell::new(None),
            slept: Cell::new(false),
            interval: Cell::new(LONGEST_SPIN_INTERVAL),
            budget: Cell::new(Duration::ZERO),
            given: Cell::new(None),
            woken: Cell::new(None),
        }
    }

    /// A steal's work has lasted for `time`.
    pub(crate) fn worked(&self, time: Duration) {
        self.earn(time);
        self.woken.set(self.woken.get().map(|worked| worked + time));
    }

    /// The worker has found nothing.
    pub(crate) fn begin(&self) {
        if self.idle.get().is_none() {
            let now = C::now();
            if let Some(since) = self.given.take() {
                self.earn(now - since);
            }
            self.idle.set(Some(now));
            self.slept.set(false);
        }
    }

    /// Whether it looks on.
    pub(crate) fn goes_on(&self) -> bool {
        let idle = self.idle.get().map_or(Duration::MAX, |since| C::now() - since);
        !self.slept.get() && self.goes_on_after(idle)
    }

    fn goes_on_after(&self, idle: Duration) -> bool {
        idle < self.until()
    }

    /// The time for which it looks, from the begin of its idle time.
    fn until(&self) -> Duration {
        let interval = self.interval.get();
        if interval > LONGEST_SPIN_INTERVAL {
            return RARE_SPIN;
        }
        let expected = interval + interval / 4;
        if expected <= SPIN_BASE + self.budget.get() { expected.max(SPIN_BASE) } else { SPIN_BASE }
    }

    /// It goes to sleep. Returns how long it has worked since an owner woke it, if one did.
    pub(crate) fn sleeps(&self) -> Option<Duration> {
        if !self.slept.replace(true) {
            self.pay(self.until());
        }
        self.woken.take()
    }

    /// Another thread has called it. `stop` forgets the call if the work came from no deque.
    pub(crate) fn was_woken(&self) {
        self.woken.set(Some(Duration::ZERO));
    }

    /// It has found something, `stolen` from another worker's deque or not.
    pub(crate) fn stop(&self, stolen: bool) {
        if let Some(since) = self.idle.take() {
            let now = C::now();
            self.idle_was(now - since);
            self.given.set((!stolen).then_some(now));
        }
        if !stolen {
            self.woken.set(None);
        }
    }

    fn idle_was(&self, idle: Duration) {
        if !self.slept.get() {
            self.pay(idle);
        }
        self.interval.set(idle);
    }

    /// Stolen work, or work from outside, has lasted for `time`.
    fn earn(&self, time: Duration) {
        self.budget.set(
            (self.budget.get() + time.min(LARGEST_SPIN_BUDGET) / SPIN_SHARE)
                .min(LARGEST_SPIN_BUDGET),
        );
    }

    /// It has looked for `looked`.
    fn pay(&self, looked: Duration) {
        self.budget.set(self.budget.get().saturating_sub(looked.saturating_sub(SPIN_BASE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sleep::clock::SystemClock;

    type SpinTime = super::SpinTime<SystemClock>;

    const fn us(time: u64) -> Duration {
        Duration::from_micros(time)
    }

    /// A worker to which work of `work` comes at this interval: through how many of a hundred it
    /// looks.
    fn looks_through(work: Duration, interval: Duration) -> usize {
        let spin_time = SpinTime::new();
        let round = |_: &usize| {
            let through = spin_time.goes_on_after(interval);
            spin_time.slept.set(!through);
            if !through {
                spin_time.pay(spin_time.until());
            }
            spin_time.idle_was(interval);
            spin_time.worked(work);
            through
        };
        (0..100).filter(round).count()
    }

    #[test]
    fn a_worker_that_has_found_nothing_looks_for_the_base_alone() {
        let spin_time = SpinTime::new();
        assert!(spin_time.goes_on_after(SPIN_BASE / 2));
        assert!(!spin_time.goes_on_after(SPIN_BASE));
    }

    #[test]
    fn work_that_comes_rarely_is_not_waited_for() {
        let spin_time = SpinTime::new();
        spin_time.worked(LARGEST_SPIN_BUDGET);
        spin_time.idle_was(LONGEST_SPIN_INTERVAL * 2);
        assert!(spin_time.goes_on_after(RARE_SPIN / 2) && !spin_time.goes_on_after(RARE_SPIN));
        // Once it has come twice within a moment, more may come.
        spin_time.idle_was(us(1));
        assert!(spin_time.goes_on_after(SPIN_BASE / 2));
    }

    #[test]
    fn one_looks_through_intervals_that_its_work_pays_for() {
        // The first comes at an interval that nobody expects.
        assert_eq!(looks_through(us(1_000), us(100)), 99);
        assert_eq!(looks_through(us(1_000), us(2_000)), 0, "the interval is too long");
        // 50 us beyond the base are paid out of 20 each time.
        let sometimes = looks_through(us(200), us(100));
        assert!((38..=44).contains(&sometimes), "{sometimes}");
    }

    #[test]
    fn what_it_looks_beyond_the_base_is_at_most_a_tenth_of_the_work() {
        let spin_time = SpinTime::new();
        let (mut looked, mut worked) = (Duration::ZERO, Duration::ZERO);
        for round in 0..1_000_u64 {
            let work = us(round * 7 % 90);
            spin_time.worked(work);
            worked += work;
            // What comes late is not found by looking.
            let interval = us(round * 31 % 700);
            let looks = spin_time.until().min(interval);
            spin_time.slept.set(spin_time.until() < interval);
            if spin_time.slept.get() {
                spin_time.pay(looks);
            }
            spin_time.idle_was(interval);
            looked += looks.saturating_sub(SPIN_BASE);
        }
        assert!(
            looked > Duration::ZERO && looked * SPIN_SHARE <= worked,
            "{looked:?} of {worked:?}"
        );
    }

    #[test]
    fn work_from_outside_pays_as_stolen_work_does_and_is_counted_once() {
        let spin_time = SpinTime::new();
        spin_time.begin();
        spin_time.stop(false);
        let begun = spin_time.given.get().expect("it works now");
        spin_time.given.set(begun.checked_sub(us(100)));
        spin_time.begin();
        let budget = spin_time.budget.get();
        assert!(budget >= us(100) / SPIN_SHARE, "{budget:?}");
        // The work of a steal is told by `worked`.
        spin_time.stop(true);
        assert!(spin_time.given.get().is_none());
        spin_time.begin();
        assert!(spin_time.budget.get() <= budget);
    }

    #[test]
    fn what_a_woken_worker_has_worked_is_told_once() {
        let spin_time = SpinTime::new();
        spin_time.worked(us(5));
        assert_eq!(spin_time.sleeps(), None);
        spin_time.was_woken();
        spin_time.stop(true);
        spin_time.worked(us(5));
        spin_time.worked(us(6));
        assert_eq!(spin_time.sleeps(), Some(us(11)));
        assert_eq!(spin_time.sleeps(), None);
        spin_time.was_woken();
        spin_time.stop(false);
        assert_eq!(spin_time.sleeps(), None, "what came from outside says nothing of owners");
    }
}
