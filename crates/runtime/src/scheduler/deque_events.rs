//! What a worker's queues know of their pool, so that they can tell it what they share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use poach_deque::split::Context;
use poach_memory::{CachePadded, Machine, Memory};

use crate::job::current::Local;
use crate::observe::watch::Watch;
use crate::scheduler::sleep::Sleep;
use crate::scheduler::sleep::parking::ThreadParking;
use crate::scheduler::sleep::wake_policy::{RegionClock, WakePolicy};

pub(crate) type PoolSleep = Sleep<Machine, ThreadParking>;

/// What a worker's task stack knows of its pool.
pub(crate) struct DequeEvents {
    pub(crate) index: usize,
    sleep: Arc<PoolSleep>,
    watch: Arc<CachePadded<Watch>>,
    wake_policy: Arc<WakePolicy>,
    region: RegionClock,
}

impl DequeEvents {
    pub(crate) fn new(
        index: usize,
        sleep: &Arc<PoolSleep>,
        watch: &Arc<CachePadded<Watch>>,
        wake_policy: &Arc<WakePolicy>,
    ) -> DequeEvents {
        DequeEvents {
            index,
            sleep: Arc::clone(sleep),
            watch: Arc::clone(watch),
            wake_policy: Arc::clone(wake_policy),
            region: RegionClock::new(),
        }
    }
}

/// Calls `f` with this thread's worker, the owner of the queue, if what it runs blocks and no thief can expose what it pushes meanwhile.
fn blocked_unexposed<R>(f: impl FnOnce(&Local) -> R) -> Option<R> {
    if Machine::asymmetric_by_now() {
        return None;
    }
    Local::with(|local| local.filter(|local| local.blocks_unexposed()).map(f))
}

/// How long `wake` took, if it has woken somebody.
fn timed(wake: impl FnOnce() -> bool) -> Option<Duration> {
    let start = Instant::now();
    wake().then(|| start.elapsed())
}

impl Context for DequeEvents {
    fn shared(&self) {
        self.watch.shared();
        if self.sleep.is_anybody_searching() {
            self.sleep.wake_for(self.index);
        } else if let Some(cost) = timed(|| self.sleep.wake_for(self.index)) {
            self.wake_policy.woke(cost);
        }
        // Line B2.
        blocked_unexposed(Local::ask_itself);
    }

    fn took_back(&self) {
        self.watch.took_back();
    }

    fn came_down(&self) {
        self.wake_policy.came_down(&self.region);
    }

    fn answers(&self, private: u32) -> bool {
        // The worker that napped when hesitation began may be the owner itself by now, and the others sleep until they are called.
        !self.sleep.may_put_off()
            || self.wake_policy.is_due(&self.region, private)
            || blocked_unexposed(|_| ()).is_some()
    }
}
