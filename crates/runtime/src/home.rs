//! What a worker's queues know of their pool, so that they can tell it what they share.

use std::sync::Arc;

use poach_deque::split::Context;
use poach_memory::{CachePadded, Machine};

use crate::seat::ThreadSeat;
use crate::sleep::Sleep;
use crate::sleep::wake_policy::{RegionClock, WakePolicy};
use crate::watch::Watch;

pub(crate) type PoolSleep = Sleep<Machine, ThreadSeat>;

/// What a worker's task stack knows of its pool.
pub(crate) struct Home {
    pub(crate) index: usize,
    sleep: Arc<PoolSleep>,
    watch: Arc<CachePadded<Watch>>,
    wake_policy: Arc<WakePolicy>,
    region: RegionClock,
}

impl Home {
    pub(crate) fn new(
        index: usize,
        sleep: &Arc<PoolSleep>,
        watch: &Arc<CachePadded<Watch>>,
        wake_policy: &Arc<WakePolicy>,
    ) -> Home {
        Home {
            index,
            sleep: Arc::clone(sleep),
            watch: Arc::clone(watch),
            wake_policy: Arc::clone(wake_policy),
            region: RegionClock::new(),
        }
    }
}

impl Context for Home {
    fn shared(&self) {
        self.watch.shared();
        self.sleep.wake_for(self.index);
    }

    fn took_back(&self) {
        self.watch.took_back();
    }

    fn answers(&self, private: u32) -> bool {
        self.sleep.is_anybody_searching() || self.wake_policy.is_due(&self.region, private)
    }
}
