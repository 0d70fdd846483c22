//! What a worker's queues know of their pool, so that they can tell it what they share.

use std::sync::Arc;

use poach_deque::split::Context;
use poach_memory::{CachePadded, Machine};

use crate::seat::ThreadSeat;
use crate::sleep::Sleep;
use crate::watch::Watch;

pub(crate) type PoolSleep = Sleep<Machine, ThreadSeat>;

/// What a worker's task stack knows of its pool.
pub(crate) struct Home {
    pub(crate) index: usize,
    sleep: Arc<PoolSleep>,
    watch: Arc<CachePadded<Watch>>,
}

impl Home {
    pub(crate) fn new(
        index: usize,
        sleep: &Arc<PoolSleep>,
        watch: &Arc<CachePadded<Watch>>,
    ) -> Home {
        Home { index, sleep: Arc::clone(sleep), watch: Arc::clone(watch) }
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
}
