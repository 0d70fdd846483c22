//! What a worker's queues know of their pool, so that they can tell it what they share.

use std::sync::Arc;

use poach_deque::split::Context;
use poach_memory::{CachePadded, Machine, Memory};

use crate::sleep::clock::{Clock, SystemClock};
use crate::sleep::parking::ThreadParking;
use crate::sleep::wake_policy::{RegionClock, WakePolicy};
use crate::sleep::{Parking, Sleep};
use crate::stats::watch::Watch;

pub(crate) type PoolSleep = Sleep<Machine, ThreadParking>;
pub(crate) type PoolWakePolicy = WakePolicy<Machine, SystemClock>;

/// Wakes a sleeper for what a worker's deque shares, or lets the owner put a request off: in any memory.
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
            self.policy.woke(C::now() - start);
        }
    }

    fn reached_split(&self) {
        self.policy.reached_split(&self.region);
    }

    fn should_share(&self, private: u32) -> bool {
        // The worker that napped when hesitation began may be the owner itself by now, and the others sleep until they are called.
        !self.sleep.may_put_off() || self.policy.is_due(&self.region, private)
    }
}

/// What a worker's task stack knows of its pool.
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
