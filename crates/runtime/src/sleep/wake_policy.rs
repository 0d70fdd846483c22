//! When an owner wakes a sleeper for its forks: by ski rental, with a memory.
//!
//! A wake costs the owner a system call of some microseconds, and the woken worker comes ten to
//! sixty later. If the region is over by then, the time of the system call is lost. So the pool
//! keeps an account of its wakes. Each wake adds the time that the woken worker then worked, and
//! subtracts one and a half times the recent cost of a wake to its caller, by the clock. An owner
//! whose pool is in debt *hesitates*: it puts a request off until the region has run for [`RENT`],
//! about the cost of a wake to both sides. The region then takes at most twice the time of the
//! better choice: Karlin, Manasse, Rudolph and Sleator, *Competitive snoopy caching* (Algorithmica
//! 1988), whose problem is known as ski rental.
//!
//! - Useful wakes fill the account to a few wakes' worth. So a program whose regions become short
//!   is soon in debt, and a program whose woken worker is late now and then is not. A debt is
//!   forgotten after [`FIRST_HESITATION`]. If the next wake is useless, too, the new debt is
//!   remembered for twice that time, and so on.
//! - A region that runs for [`RENT`] while its owner hesitates ends the hesitation. The owner wakes
//!   a sleeper then, and the next region's owner does so at its first fork. The late wake costs the
//!   account nothing, since an early one might have brought more.
//! - While some worker searches there is no wake to pay for, and the owner answers at once.
//!
//! The cost of hesitation is bounded by time. In a region of coarse tasks the owner may come back
//! to its deque only when one of them ends. Such a region gets its second worker from the next nap
//! of a sleeper (see the README). The napper ends the hesitation then, and credits the account with
//! the time that was lost: some dozens of wakes are made at once after that, useful or not.
//!
//! An owner reads the clock in its cold path: around a wake, and when it meets a request while it
//! hesitates. In a balanced tree of forks it meets one twice for each level.
//!
//! This file says *when* an owner wakes a sleeper; `call_one` in `mod.rs` says *which*. `SpinTime`
//! measures how long a woken worker has worked. The worker reports that when it goes to sleep again
//! (`Unrestricted` in `worker/idle.rs`).
//!
//! [`Wakes`] and [`DequeEvents`] are the callbacks of a worker's deques: they tell the pool of
//! shared tasks.

use std::sync::Arc;
use std::time::Duration;

use poach_deque::split::Context;
use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use crate::pace::{
    DEAREST_DELAY, DEAREST_DELAY_OF_ALL, FIRST_HESITATION, LONGEST_HESITATION, REGION_GAP, RENT,
    WAKE_COST, WAKES_ON_ACCOUNT,
};
use crate::sleep::clock::{Clock, SystemClock};
use crate::sleep::parking::ThreadParking;
use crate::sleep::{Parking, Sleep};
use crate::stats::watch::Watch;

/// What the owners of a pool have learned. Times are nanoseconds since `epoch`.
// Relaxed, throughout this file: estimates.
pub struct WakePolicy<M: Memory, C: Clock> {
    epoch: C::Instant,
    /// The end of the hesitation; zero if owners do not hesitate.
    hesitate_until: M::Word,
    /// The length of the next hesitation.
    next_hesitation: M::Word,
    /// The cost of a wake to its owner: a moving average, in nanoseconds.
    cost: M::Word,
    /// The time that wakes have brought beyond their cost, in nanoseconds, and a start credit.
    account: M::Word,
    /// When an owner last put a request off, unless a thief has since had to expose its tasks.
    put_off: M::Word,
    /// The most that the next mistaken delay of a wake is credited with, in nanoseconds.
    dearest: M::Word,
    /// One if the last wake came late, after [`RENT`], and zero if not.
    late: M::Word,
}

pub(crate) struct RegionClock<M: Memory> {
    start: M::Word,
    /// When the owner last asked.
    last: M::Word,
}

impl<M: Memory> RegionClock<M> {
    pub(crate) fn new() -> Self {
        RegionClock { start: M::Word::new(0), last: M::Word::new(0) }
    }
}

impl<M: Memory, C: Clock> Default for WakePolicy<M, C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Memory, C: Clock> WakePolicy<M, C> {
    /// A policy that has learned nothing yet.
    pub fn new() -> Self {
        WakePolicy {
            epoch: C::now(),
            hesitate_until: M::Word::new(0),
            next_hesitation: M::Word::new(FIRST_HESITATION),
            cost: M::Word::new(WAKE_COST),
            account: M::Word::new(WAKE_COST * WAKES_ON_ACCOUNT),
            put_off: M::Word::new(0),
            dearest: M::Word::new(DEAREST_DELAY),
            late: M::Word::new(0),
        }
    }

    /// Whether an owner that would have to wake a sleeper does so now. It has `private` tasks above
    /// the split.
    pub(crate) fn is_due(&self, region: &RegionClock<M>, private: u32) -> bool {
        if self.hesitate_until.load(Ordering::Relaxed) == 0 {
            return true;
        }
        self.is_due_at(self.now(), region, private)
    }

    /// Whether an owner may put a request off now. A worker that sleeps meanwhile naps.
    pub(crate) fn hesitates(&self) -> bool {
        let until = self.hesitate_until.load(Ordering::Relaxed);
        until != 0 && self.now() < until
    }

    /// An owner that has put a request off comes down to its split: its region still runs.
    pub(crate) fn reached_split(&self, region: &RegionClock<M>) {
        region.last.store(self.now(), Ordering::Relaxed);
    }

    fn is_due_at(&self, now: u64, region: &RegionClock<M>, private: u32) -> bool {
        // The only private task was pushed just now, on a deque that had none.
        let paused = now.saturating_sub(region.last.load(Ordering::Relaxed)) > REGION_GAP;
        if private == 1 && paused {
            region.start.store(now, Ordering::Relaxed);
            // The delay in the last region was right.
            if self.put_off.load(Ordering::Relaxed) != 0 {
                let dearest = self.dearest.load(Ordering::Relaxed);
                self.dearest.store((dearest / 2).max(DEAREST_DELAY), Ordering::Relaxed);
            }
        }
        region.last.store(now, Ordering::Relaxed);
        let hesitates = now < self.hesitate_until.load(Ordering::Relaxed);
        if hesitates && now.saturating_sub(region.start.load(Ordering::Relaxed)) < RENT {
            self.put_off.store(now, Ordering::Relaxed);
            return false;
        }
        self.late.store(u64::from(hesitates), Ordering::Relaxed);
        self.hesitate_until.store(0, Ordering::Relaxed);
        true
    }

    /// An owner has woken a sleeper, which took `took`.
    pub(crate) fn wake_took(&self, took: Duration) {
        let took = (took.as_nanos() as u64).min(WAKE_COST);
        let before = self.cost.load(Ordering::Relaxed);
        self.cost.store(before - before / 4 + took / 4, Ordering::Relaxed);
    }

    /// A worker that an owner had woken has worked for `worked`, and has nothing left.
    pub(crate) fn wake_brought(&self, worked: Duration) {
        let cost = self.cost.load(Ordering::Relaxed) * 3 / 2;
        let before = self.account.load(Ordering::Relaxed);
        let late = self.late.load(Ordering::Relaxed) != 0;
        if late {
            self.late.store(0, Ordering::Relaxed);
        }
        // An earlier wake might have brought more, which the next region tries.
        if late && worked.as_nanos() < u128::from(cost) {
            return;
        }
        let left = (before + worked.as_nanos() as u64).checked_sub(cost);
        self.account
            .store(left.unwrap_or(0).min(before.max(cost * WAKES_ON_ACCOUNT)), Ordering::Relaxed);
        let length = self.next_hesitation.load(Ordering::Relaxed);
        if left.is_some() {
            self.next_hesitation.store(FIRST_HESITATION, Ordering::Relaxed);
        } else {
            self.hesitate_until.store(self.now() + length, Ordering::Relaxed);
            self.next_hesitation.store((length * 2).min(LONGEST_HESITATION), Ordering::Relaxed);
        }
    }

    /// A thief has exposed private tasks. If the owner put a request off, and has been away for so
    /// long that it would have woken a sleeper by now, it should have done so at once.
    pub fn exposed(&self) {
        if self.hesitate_until.load(Ordering::Relaxed) != 0 {
            self.exposed_at(self.now());
        }
    }

    fn exposed_at(&self, now: u64) {
        let put_off = self.put_off.load(Ordering::Relaxed);
        if put_off == 0 {
            return;
        }
        // It cannot be known whether that delay was right.
        self.put_off.store(0, Ordering::Relaxed);
        let lost = now.saturating_sub(put_off);
        if lost >= RENT {
            let dearest = self.dearest.load(Ordering::Relaxed);
            self.dearest.store((dearest * 2).min(DEAREST_DELAY_OF_ALL), Ordering::Relaxed);
            // The first mistake credits the time lost, up to `DEAREST_DELAY`; a later one credits
            // all of `dearest`, since the time to come counts as well.
            let counts = if dearest == DEAREST_DELAY { lost.min(DEAREST_DELAY) } else { dearest };
            self.account.store(counts, Ordering::Relaxed);
            self.next_hesitation.store(FIRST_HESITATION, Ordering::Relaxed);
            self.hesitate_until.store(0, Ordering::Relaxed);
        }
    }

    fn now(&self) -> u64 {
        (C::now() - self.epoch).as_nanos() as u64
    }
}

pub(crate) type PoolSleep = Sleep<Machine, ThreadParking>;
pub(crate) type PoolWakePolicy = WakePolicy<Machine, SystemClock>;

/// Wakes a sleeper for what a worker's deque shares, or lets the owner put a request off, over any
/// memory.
pub struct Wakes<M: Memory, S, C: Clock> {
    index: usize,
    sleep: Arc<Sleep<M, S>>,
    policy: Arc<WakePolicy<M, C>>,
    region: RegionClock<M>,
}

impl<M: Memory, S: Parking, C: Clock> Wakes<M, S, C> {
    /// For a deque of worker `index`.
    pub fn new(index: usize, sleep: &Arc<Sleep<M, S>>, policy: &Arc<WakePolicy<M, C>>) -> Self {
        let (sleep, policy) = (Arc::clone(sleep), Arc::clone(policy));
        Wakes { index, sleep, policy, region: RegionClock::new() }
    }
}

impl<M: Memory, S: Parking, C: Clock> Context for Wakes<M, S, C> {
    fn shared(&self) {
        if self.sleep.is_anybody_searching() {
            self.sleep.wake_for(self.index);
            return;
        }
        let start = C::now();
        if self.sleep.wake_for(self.index) {
            self.policy.wake_took(C::now() - start);
        }
    }

    fn reached_split(&self) {
        self.policy.reached_split(&self.region);
    }

    fn should_share(&self, private: u32) -> bool {
        // The worker that napped when hesitation began may be the owner itself by now, and the
        // others sleep until they are called.
        !self.sleep.may_put_off() || self.policy.is_due(&self.region, private)
    }
}

/// The callbacks of a worker's task stack into its pool.
pub(crate) struct DequeEvents {
    pub(crate) index: usize,
    watch: Arc<CachePadded<Watch>>,
    wakes: Wakes<Machine, ThreadParking, SystemClock>,
}

impl DequeEvents {
    pub(crate) fn new(
        index: usize,
        sleep: &Arc<PoolSleep>,
        watch: &Arc<CachePadded<Watch>>,
        wake_policy: &Arc<PoolWakePolicy>,
    ) -> DequeEvents {
        let wakes = Wakes::new(index, sleep, wake_policy);
        DequeEvents { index, watch: Arc::clone(watch), wakes }
    }
}

impl Context for DequeEvents {
    fn shared(&self) {
        self.watch.shared();
        self.wakes.shared();
    }

    fn took_back(&self) {
        self.watch.took_back();
    }

    fn reached_split(&self) {
        self.wakes.reached_split();
    }

    fn should_share(&self, private: u32) -> bool {
        self.wakes.should_share(private)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use poach_memory::Machine;

    use super::*;
    use crate::sleep::clock::SystemClock;

    type WakePolicy = super::WakePolicy<Machine, SystemClock>;
    type RegionClock = super::RegionClock<Machine>;

    /// A policy whose owners hesitate, and a time at which they do.
    fn hesitating() -> (WakePolicy, u64) {
        let policy = WakePolicy::new();
        policy.hesitate_until.store(1_000 * FIRST_HESITATION, Ordering::Relaxed);
        (policy, FIRST_HESITATION)
    }

    /// Useless wakes, until the owners hesitate. How many.
    fn in_debt(policy: &WakePolicy) -> u64 {
        let mut wakes = 0;
        while policy.hesitate_until.load(Ordering::Relaxed) == 0 {
            policy.wake_brought(Duration::ZERO);
            wakes += 1;
        }
        wakes
    }

    #[test]
    fn an_owner_wakes_at_once_until_a_few_wakes_were_useless() {
        let (policy, region) = (WakePolicy::new(), RegionClock::new());
        assert!(policy.is_due(&region, 1));
        assert!((2..=WAKES_ON_ACCOUNT).contains(&in_debt(&policy)));
        assert!(!policy.is_due_at(FIRST_HESITATION / 2, &region, 1));
        // From then on each is one too many.
        assert!(policy.hesitates());
        policy.hesitate_until.store(0, Ordering::Relaxed);
        assert!(!policy.hesitates());
        assert_eq!(in_debt(&policy), 1);
    }

    #[test]
    fn a_worker_that_is_late_now_and_then_is_woken_for_what_it_brings_otherwise() {
        let (policy, region) = (WakePolicy::new(), RegionClock::new());
        for _ in 0..100 {
            (0..3).for_each(|_| policy.wake_brought(Duration::from_nanos(WAKE_COST * 3)));
            policy.wake_brought(Duration::ZERO);
            assert!(policy.is_due(&region, 1));
        }
        // What it has brought pays for a few wakes, however much that was.
        policy.wake_brought(Duration::from_secs(1));
        assert_eq!(in_debt(&policy), WAKES_ON_ACCOUNT + 1);
    }

    #[test]
    fn a_wake_is_worth_what_wakes_lately_cost() {
        let (policy, region) = (WakePolicy::new(), RegionClock::new());
        policy.account.store(0, Ordering::Relaxed);
        (0..100).for_each(|_| policy.wake_took(Duration::from_micros(2)));
        policy.wake_brought(Duration::from_nanos(3_100));
        assert!(policy.is_due(&region, 1));
        // If the caller lost its processor meanwhile, the wake counts for no more than the first
        // guess.
        policy.wake_took(Duration::from_secs(1));
        policy.wake_brought(Duration::from_nanos(2_000 + WAKE_COST));
        assert!(policy.is_due(&region, 1));
        policy.account.store(0, Ordering::Relaxed);
        policy.wake_brought(Duration::from_nanos(3_100));
        assert!(!policy.is_due_at(FIRST_HESITATION / 2, &region, 1));
    }

    #[test]
    fn short_regions_wake_nobody_however_many_there_are() {
        let ((policy, mut now), region) = (hesitating(), RegionClock::new());
        for _ in 0..100 {
            now += REGION_GAP + 1;
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
        // Whatever the late one has brought.
        policy.account.store(0, Ordering::Relaxed);
        policy.wake_brought(Duration::ZERO);
        assert!(policy.is_due_at(now + 2 * RENT, &region, 1));
        assert_eq!(in_debt(&policy), 1);
    }

    #[test]
    fn regions_without_a_pause_between_them_are_one() {
        let ((policy, mut now), region) = (hesitating(), RegionClock::new());
        let start = now;
        while !policy.is_due_at(now, &region, 1) {
            now += REGION_GAP;
        }
        assert_eq!((now - start).div_ceil(REGION_GAP), RENT.div_ceil(REGION_GAP));
    }

    #[test]
    fn owners_hesitate_for_longer_each_time_until_a_wake_is_worth_it() {
        let policy = WakePolicy::new();
        in_debt(&policy);
        let hesitates = || {
            policy.wake_brought(Duration::ZERO);
            let until = policy.hesitate_until.load(Ordering::Relaxed);
            (until - policy.now()).div_ceil(FIRST_HESITATION)
        };
        assert_eq!([(); 5].map(|()| hesitates()), [2, 4, 8, 16, 16]);
        policy.wake_brought(Duration::from_micros(100));
        policy.account.store(0, Ordering::Relaxed);
        assert_eq!(hesitates(), 1);
    }

    #[test]
    fn an_owner_that_put_a_request_off_and_stayed_away_wakes_at_once_the_next_times() {
        let ((policy, now), region) = (hesitating(), RegionClock::new());
        assert!(!policy.is_due_at(now, &region, 1));
        // An owner that was at its deque just now runs a short region.
        policy.exposed_at(now + RENT - 1);
        assert!(!policy.is_due_at(now + RENT - 1, &region, 1));
        // The time lost pays for the wakes after that, and useful ones in between take nothing
        // away.
        policy.exposed_at(now + RENT + 20 * WAKE_COST);
        assert!(policy.is_due(&region, 1));
        policy.wake_brought(Duration::from_micros(20));
        assert!(in_debt(&policy) > 10);
    }

    #[test]
    fn who_puts_off_wrongly_again_and_again_wakes_at_once_for_longer_each_time() {
        let (policy, region) = (WakePolicy::new(), RegionClock::new());
        let mut now = policy.now() + REGION_GAP + 1;
        let mut wrong = || {
            policy.hesitate_until.store(now + 1_000 * FIRST_HESITATION, Ordering::Relaxed);
            assert!(!policy.is_due_at(now, &region, 1));
            now += DEAREST_DELAY;
            policy.exposed_at(now);
            now += 2 * REGION_GAP;
            policy.account.load(Ordering::Relaxed)
        };
        let credits: Vec<_> = (0..9).map(|_| wrong() / DEAREST_DELAY).collect();
        assert_eq!(credits, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        // Each region that is short takes half of it back.
        policy.hesitate_until.store(now + 1_000 * FIRST_HESITATION, Ordering::Relaxed);
        for _ in 0..8 {
            assert!(!policy.is_due_at(now, &region, 1));
            now += 2 * REGION_GAP;
        }
        policy.exposed_at(now + RENT);
        assert_eq!(
            policy.account.load(Ordering::Relaxed),
            DEAREST_DELAY.min(RENT + 2 * REGION_GAP)
        );
    }

    #[test]
    fn hesitation_is_forgotten() {
        let (policy, region) = (WakePolicy::new(), RegionClock::new());
        in_debt(&policy);
        let later = policy.now() + FIRST_HESITATION;
        assert!(!policy.is_due_at(later - FIRST_HESITATION / 2, &region, 1));
        assert!(policy.is_due_at(later, &region, 1));
    }

    thread_local! {
        /// What the clock of these tests says.
        static TIME: Cell<u64> = const { Cell::new(0) };
    }

    /// A clock that is set.
    struct SetClock;

    impl Clock for SetClock {
        type Instant = Duration;

        fn now() -> Duration {
            Duration::from_nanos(TIME.get())
        }
    }

    type ByTheClock = super::WakePolicy<Machine, SetClock>;

    /// Of owners that hesitate until `UNTIL`, with the clock at zero.
    fn by_the_clock() -> (ByTheClock, RegionClock) {
        TIME.set(0);
        let policy = ByTheClock::new();
        policy.hesitate_until.store(UNTIL, Ordering::Relaxed);
        (policy, RegionClock::new())
    }

    const UNTIL: u64 = FIRST_HESITATION * 10;

    #[test]
    fn owners_hesitate_until_the_time_has_come() {
        let (policy, region) = by_the_clock();
        TIME.set(UNTIL - 1);
        assert!(policy.hesitates() && !policy.is_due(&region, 1));
        TIME.set(UNTIL);
        assert!(!policy.hesitates() && policy.is_due(&region, 1));
        assert_eq!(policy.hesitate_until.load(Ordering::Relaxed), 0);
        // An owner that does not hesitate records nothing.
        let region = RegionClock::new();
        assert!(policy.is_due(&region, 1));
        assert_eq!(region.start.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_region_goes_on_when_its_owner_comes_down_to_its_split() {
        let (policy, region) = by_the_clock();
        let start = FIRST_HESITATION;
        TIME.set(start);
        assert!(!policy.is_due(&region, 1));
        TIME.set(start + REGION_GAP);
        policy.reached_split(&region);
        TIME.set(start + 2 * REGION_GAP);
        assert!(!policy.is_due(&region, 1));
        TIME.set(start + RENT);
        assert!(policy.is_due(&region, 0));
    }

    #[test]
    fn a_late_wake_costs_nothing_once_and_credits_what_it_has_brought() {
        let (policy, region) = by_the_clock();
        let late = || {
            let region = RegionClock::new();
            policy.hesitate_until.store(UNTIL, Ordering::Relaxed);
            assert!(!policy.is_due_at(FIRST_HESITATION, &region, 1));
            assert!(policy.is_due_at(FIRST_HESITATION + RENT, &region, 0));
        };
        let hesitates = || policy.hesitate_until.load(Ordering::Relaxed) != 0;
        policy.account.store(0, Ordering::Relaxed);
        late();
        policy.wake_brought(Duration::ZERO);
        assert!(!hesitates(), "it came late");
        policy.wake_brought(Duration::ZERO);
        assert!(hesitates(), "the one after it did not");
        // Nor if the worker was woken at the end of the time, before the region was long enough.
        late();
        policy.hesitate_until.store(UNTIL, Ordering::Relaxed);
        assert!(policy.is_due_at(UNTIL, &region, 1));
        policy.wake_brought(Duration::ZERO);
        assert!(hesitates());
        // A wake that brought just its cost was worth it.
        policy.next_hesitation.store(LONGEST_HESITATION, Ordering::Relaxed);
        late();
        policy.wake_brought(Duration::from_nanos(WAKE_COST * 3 / 2));
        assert_eq!(policy.next_hesitation.load(Ordering::Relaxed), FIRST_HESITATION);
    }

    #[test]
    fn what_was_put_off_for_as_long_as_the_rent_was_put_off_wrongly() {
        let (policy, region) = by_the_clock();
        policy.next_hesitation.store(LONGEST_HESITATION, Ordering::Relaxed);
        TIME.set(FIRST_HESITATION);
        assert!(!policy.is_due(&region, 1));
        TIME.set(FIRST_HESITATION + RENT - 1);
        policy.exposed();
        assert!(
            policy.hesitates()
                && policy.next_hesitation.load(Ordering::Relaxed) == LONGEST_HESITATION
        );
        assert!(!policy.is_due(&region, 0));
        TIME.set(FIRST_HESITATION + 2 * RENT - 1);
        policy.exposed();
        assert!(!policy.hesitates());
        assert_eq!(policy.next_hesitation.load(Ordering::Relaxed), FIRST_HESITATION);
    }
}
