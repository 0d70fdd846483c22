//! How many workers a walk has: one for each processor, and more while they wait for a disk.
//!
//! A worker that reads a directory outside of the kernel's caches sleeps until the disk has
//! answered. A disk answers many requests at once sooner than one after another, and the processors
//! are idle meanwhile. So each worker measures some of its visits: for how long it was blocked, and
//! for how long it computed. `p` processors are kept busy by `p * (blocked + computed) / computed`
//! workers. If that is twice the present number, the walk gets its most workers at once. If a
//! quarter of the present number would do, or one worker for each processor, the walk keeps that
//! many.
//!
//! To change their number the walk is regrouped: each worker puts back the directories that come to
//! it, the engine ends, and begins anew with the other number. From warm caches no worker is
//! blocked: the walk keeps its first workers, and a walk that was cold gives the additional threads
//! back.
//!
//! The number rises sooner than it falls, because a worker too many sleeps, and one too few leaves
//! the disk idle. A few visits show that the disk is asked at all. More visits are needed to show
//! that it is not asked any more: while one part of the tree is in the kernel's caches, the next
//! may not be. Each regrouping waits for the longest visit under way.
//!
//! Being blocked is told from waiting for a processor that another program has: only where the
//! thread gave up its processor of its own accord ([`Spent::waits`]) does the time count as
//! blocked.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::sys::Spent;

/// The most workers for each processor.
const MOST: usize = 16;

/// How many directories each worker is to be able to hold open.
const HANDLES: usize = 4;

/// How many visits are measured before the number of workers is reconsidered: with one worker for
/// each processor, and with more.
const MEASURED: u64 = 16;
const MEASURED_OF_MORE: u64 = 64;

/// Some workers go when one in this number would do.
const FEWER: usize = 4;

/// One visit in this number is measured: while none is blocked, and while some are.
const RARELY: u32 = 64;
const OFTEN: u32 = 4;

/// The number of workers of a walk, and what it is decided by.
#[derive(Debug)]
pub(crate) struct WorkerCount {
    processors: usize,
    most: usize,
    /// How many there are. Written while no worker runs.
    number: AtomicUsize,
    /// How many there are to be.
    wanted: AtomicUsize,
    /// Whether each worker is to put back what comes to it.
    regroup: AtomicBool,
    /// Whether the number is to stay, because the system refuses more threads or the rest is one
    /// worker's.
    settled: AtomicBool,
    measured: AtomicU64,
    /// In nanoseconds.
    blocked: AtomicU64,
    computed: AtomicU64,
}

// Everything is Relaxed here: the numbers are an estimate and publish nothing. A worker that sees
// the flag late visits one directory more, and what it has found and put back is published by the
// joining of the workers and a lock.
impl WorkerCount {
    /// This number of workers, which stays.
    pub(crate) fn fixed(number: usize) -> WorkerCount {
        WorkerCount::varying(number, number)
    }

    /// A worker for each processor, and more while workers wait, as far as there are handles for
    /// them.
    pub(crate) fn of_processors(processors: usize, handles: usize) -> WorkerCount {
        let most = (processors * MOST).min(crate::MAX_THREADS).min(handles / HANDLES);
        WorkerCount::varying(processors, most.max(processors))
    }

    fn varying(processors: usize, most: usize) -> WorkerCount {
        WorkerCount {
            processors,
            most,
            number: AtomicUsize::new(processors),
            wanted: AtomicUsize::new(processors),
            regroup: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            measured: AtomicU64::new(0),
            blocked: AtomicU64::new(0),
            computed: AtomicU64::new(0),
        }
    }

    /// How many workers there are at first.
    pub(crate) fn first(&self) -> usize {
        self.processors
    }

    /// How many there may ever be at a time.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Whether visits are to be measured.
    #[inline]
    pub(super) fn varies(&self) -> bool {
        self.most > self.processors
    }

    /// Whether each worker is to put back what comes to it.
    #[inline]
    pub(super) fn is_regrouping(&self) -> bool {
        self.regroup.load(Ordering::Relaxed)
    }

    /// Begins with the number of workers that is wanted, which it returns. No worker may run.
    pub(super) fn begin(&self) -> usize {
        let number = self.wanted.load(Ordering::Relaxed);
        self.stay(number);
        number
    }

    /// Stays with a number of workers, if only until more is measured. No worker may run.
    pub(super) fn stay(&self, number: usize) {
        self.number.store(number, Ordering::Relaxed);
        self.wanted.store(number, Ordering::Relaxed);
        self.regroup.store(false, Ordering::Relaxed);
        for sum in [&self.measured, &self.blocked, &self.computed] {
            sum.store(0, Ordering::Relaxed);
        }
    }

    /// Keeps the workers that it has from now on.
    pub(super) fn give_up(&self) {
        self.stay(self.processors);
        self.settled.store(true, Ordering::Relaxed);
    }

    /// Takes note of a visit that took some time. Returns after how many visits the worker is to
    /// measure again.
    #[cold]
    pub(super) fn measured(&self, took: Duration, before: Spent, after: Spent) -> u32 {
        let took = took.as_nanos() as u64;
        let (computed, again) = if after.waits == before.waits {
            (took, RARELY)
        } else {
            let computed = after.computed.saturating_sub(before.computed);
            (took.min(computed.as_nanos() as u64), OFTEN)
        };
        self.blocked.fetch_add(took - computed, Ordering::Relaxed);
        self.computed.fetch_add(computed, Ordering::Relaxed);
        let now = self.number.load(Ordering::Relaxed);
        let enough = if now > self.processors { MEASURED_OF_MORE } else { MEASURED };
        if self.measured.fetch_add(1, Ordering::Relaxed) + 1 == enough {
            self.reconsider(now);
        }
        again
    }

    /// Changes the number of workers, which is `now`, if what was measured is reason enough.
    fn reconsider(&self, now: usize) {
        let [_, blocked, computed] = [&self.measured, &self.blocked, &self.computed]
            .map(|sum| sum.swap(0, Ordering::Relaxed));
        let repaid = self.repaid(blocked, computed);
        let wanted = if repaid >= 2 * now {
            self.most
        } else if repaid < now && (repaid * FEWER <= now || repaid == self.processors) {
            repaid
        } else {
            return;
        };
        if !self.settled.load(Ordering::Relaxed) {
            self.wanted.store(wanted, Ordering::Relaxed);
            self.regroup.store(true, Ordering::Relaxed);
        }
    }

    /// How many workers keep the processors busy.
    fn repaid(&self, blocked: u64, computed: u64) -> usize {
        let computed = u128::from(computed.max(1));
        let workers = (u128::from(blocked) + computed) * self.processors as u128 / computed;
        usize::try_from(workers).unwrap_or(usize::MAX).clamp(self.processors, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(waits: u64, micros: u64) -> Spent {
        Spent { waits, computed: Duration::from_micros(micros) }
    }

    /// Measures visits of `took` microseconds, of which `computed` were computing.
    fn visits(count: &WorkerCount, number: u64, waits: u64, took: u64, computed: u64) -> u32 {
        let mut again = 0;
        for _ in 0..number {
            let took = Duration::from_micros(took);
            again = count.measured(took, spent(5, 100), spent(5 + waits, 100 + computed));
        }
        again
    }

    #[test]
    fn a_walk_has_more_workers_while_they_are_blocked_and_fewer_when_they_are_not() {
        let count = WorkerCount::of_processors(2, 1000);
        assert_eq!((count.first(), count.most(), count.varies()), (2, 32, true));
        // Blocked for a little more than half of the time: four workers would keep two processors
        // busy, so the walk gets the most that it may have.
        assert_eq!(visits(&count, MEASURED - 1, 1, 100, 49), OFTEN);
        assert!(!count.is_regrouping());
        visits(&count, 1, 1, 100, 49);
        assert!(count.is_regrouping());
        assert_eq!(count.begin(), 32);
        assert!(!count.is_regrouping());
        // Nine workers, and any number from there on, are no reason to regroup.
        for computed in [22, 10, 1] {
            visits(&count, MEASURED_OF_MORE, 1, 100, computed);
            assert!(!count.is_regrouping(), "{computed}");
        }
        // Nor is a part of the tree from the kernel's caches, if it is short.
        for _ in 0..9 {
            visits(&count, MEASURED_OF_MORE / 2, 0, 10, 10);
            visits(&count, MEASURED_OF_MORE / 2, 1, 100, 10);
            assert!(!count.is_regrouping());
        }
        // Eight are a quarter.
        visits(&count, MEASURED_OF_MORE, 1, 100, 25);
        assert!(count.is_regrouping());
        assert_eq!(count.begin(), 8);
        assert_eq!(visits(&count, MEASURED_OF_MORE, 0, 10, 10), RARELY);
        assert!(count.is_regrouping());
        assert_eq!(count.begin(), 2);
        // From warm caches it stays.
        visits(&count, 10 * MEASURED, 0, 10, 10);
        assert!(!count.is_regrouping());
    }

    #[test]
    fn waiting_for_a_processor_is_no_reason_for_more_workers() {
        let count = WorkerCount::of_processors(4, 1000);
        visits(&count, 100 * MEASURED, 0, 4000, 10);
        assert!(!count.is_regrouping());
    }

    #[test]
    fn workers_that_are_not_blocked_go_where_there_were_few_more() {
        let count = WorkerCount::of_processors(2, 20);
        visits(&count, MEASURED, 1, 100, 10);
        assert_eq!(count.begin(), 5);
        visits(&count, MEASURED_OF_MORE, 1, 100, 66);
        assert!(!count.is_regrouping());
        visits(&count, MEASURED_OF_MORE, 0, 100, 100);
        assert!(count.is_regrouping());
        assert_eq!(count.begin(), 2);
    }

    #[test]
    fn there_is_a_least_and_a_most() {
        let count = WorkerCount::of_processors(4, 1000);
        assert_eq!((count.repaid(0, 0), count.repaid(0, 9), count.repaid(u64::MAX, 0)), (4, 4, 64));
        assert_eq!(WorkerCount::of_processors(500, usize::MAX).most(), crate::MAX_THREADS);
        let with = |handles| WorkerCount::of_processors(4, handles).most();
        assert_eq!((with(0), with(40), with(10_000)), (4, 10, 64));
        let fixed = WorkerCount::fixed(3);
        assert!(!fixed.varies());
        assert_eq!(fixed.repaid(u64::MAX, 1), 3);
        // More than it may have is asked for in vain.
        visits(&fixed, MEASURED, 1, 1000, 0);
        assert!(!fixed.is_regrouping());
    }
}
