//! A worker's observable record: its counters, and its track in a recording.
//!
//! The runtime reports each event here once for both.

use poach_deque::split::Exposure;
use poach_memory::{Machine, Memory, Ordering, Word};

use crate::stats::counters::Counters;
use crate::stats::track::{Activity, Mark, Open, Track};
use crate::system::processor;

/// One worker's. Written by its own thread, or by the guest in its place.
pub(crate) struct Watch {
    pub(crate) counters: Counters,
    pub(crate) track: Track,
    /// The number of the processor on which the worker was last seen, plus one; or zero.
    processor: <Machine as Memory>::Word,
}

impl Watch {
    pub(crate) fn new() -> Watch {
        Watch { counters: Counters::default(), track: Track::new(), processor: Word::new(0) }
    }

    /// Records the processor on which the worker runs.
    pub(crate) fn is_here(&self) {
        let number = processor::here().map_or(0, |processor| processor as u64 + 1);
        // Relaxed: a hint.
        self.processor.store(number, Ordering::Relaxed);
    }

    /// Whether the worker was last seen on the processor that the calling thread is on.
    pub(crate) fn was_here(&self) -> bool {
        // Relaxed: as above.
        let seen = (self.processor.load(Ordering::Relaxed) as usize).checked_sub(1);
        seen.is_some() && seen == processor::here()
    }

    /// The worker has a task in hand, and runs it until the value is dropped.
    #[inline(always)]
    pub(crate) fn runs(&self, task: Activity) -> Open<'_> {
        self.counters.tasks.up();
        match task {
            Activity::StolenFork { leap, .. } => {
                self.counters.steals.up();
                if leap {
                    self.counters.leaps.up();
                }
            }
            Activity::StolenTask { .. } => self.counters.steals.up(),
            _ => {}
        }
        self.track.open(task)
    }

    /// The worker waits for something, and works meanwhile, until the value is dropped.
    pub(crate) fn waits(&self) -> Open<'_> {
        self.track.open(Activity::Waiting)
    }

    /// The worker sleeps until the value is dropped.
    pub(crate) fn sleeps(&self) -> Open<'_> {
        self.counters.sleeps.up();
        self.track.open(Activity::Sleeping)
    }

    /// The worker has made tasks of its own visible to thieves.
    pub(crate) fn shared(&self) {
        self.counters.grows.up();
        self.is_here();
        self.track.mark(Mark::Shared);
    }

    /// The worker has taken some of them back.
    pub(crate) fn took_back(&self) {
        self.counters.shrinks.up();
    }

    /// The worker has made `barriers` process-wide barriers before it slept, or left others asleep.
    pub(crate) fn fenced(&self, barriers: u64) {
        (0..barriers).for_each(|_| self.counters.membarriers.up());
    }

    /// The worker has tried to make tasks of another visible.
    pub(crate) fn exposes(&self, victim: usize, exposure: Exposure) {
        if exposure != Exposure::Refused && !Machine::owners_fence() {
            self.counters.membarriers.up();
        }
        if exposure == Exposure::Done {
            self.counters.exposures.up();
            self.track.mark(Mark::Exposed { victim });
        }
    }

    /// The worker has called a sleeper.
    pub(crate) fn called(&self) {
        self.counters.wakes.up();
        self.track.mark(Mark::Called);
    }
}

// Miri's threads run on no processor.
#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use crate::ThreadPool;
    use crate::worker::current::WorkerThread;

    #[test]
    fn a_worker_that_shares_or_visits_is_seen_on_its_processor() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        let bound = || {
            // No scheduler moves the thread.
            let processors = poach_topology::allowed().unwrap();
            poach_topology::bind(processors[0]).unwrap();
            let watch = Watch::new();
            assert!(!watch.was_here());
            watch.shared();
            assert!(watch.was_here());
            let was_here = |local: Option<&WorkerThread>| local.unwrap().watch.was_here();
            assert!(pool.run(|_| WorkerThread::with(was_here)));
        };
        std::thread::scope(|threads| threads.spawn(bound).join().unwrap());
    }
}
