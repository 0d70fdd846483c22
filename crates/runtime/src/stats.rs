//! What each worker has done, counted by itself.
//!
//! Each worker has counters of its own, on cache lines of its own, and is the only one that writes
//! them (or the thread that is in its place while it sleeps): a load, an addition and a store, all plain. Whoever asks reads them with plain loads. So
//! counting takes no locked instruction and moves no line while nobody asks.
//!
//! Counting is always on, and there is no feature for it, because it stands on cold paths alone: where
//! a worker takes a task out of a queue, steals, shares, sleeps, calls another. A fork that nobody
//! steals is not counted: it costs a few stores in all, and one more would show. Its number is the
//! program's to know.

use std::fmt;

use poach_memory::{Machine, Memory, Ordering, Word};

use crate::pool::ThreadPool;
use crate::registry::Remote;

/// A number that one thread writes and any thread reads.
pub(crate) struct Count(<Machine as Memory>::Word);

impl Count {
    fn new() -> Count {
        Count(Word::new(0))
    }

    /// One more. Only on the thread of the worker whose counter it is.
    #[inline(always)]
    pub(crate) fn up(&self) {
        // Relaxed, both: one thread writes, so nothing is lost between the two; a reader wants a recent
        // number, and nothing with it.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// What a worker counts.
pub(crate) struct Counters {
    pub(crate) tasks: Count,
    pub(crate) steals: Count,
    pub(crate) leaps: Count,
    pub(crate) grows: Count,
    pub(crate) shrinks: Count,
    pub(crate) exposures: Count,
    pub(crate) sleeps: Count,
    pub(crate) wakes: Count,
    pub(crate) membarriers: Count,
}

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters {
            tasks: Count::new(),
            steals: Count::new(),
            leaps: Count::new(),
            grows: Count::new(),
            shrinks: Count::new(),
            exposures: Count::new(),
            sleeps: Count::new(),
            wakes: Count::new(),
            membarriers: Count::new(),
        }
    }
}

/// What one worker has done since its pool was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Tasks it took from somewhere and ran: spawned tasks, those that came from outside, calls by a
    /// thread [in its place](crate::Builder::callers_work), and second halves of joins that it stole. A
    /// half that nobody stole is part of what runs it, and not counted.
    pub tasks: u64,
    /// How often it stole: the second half of a join, or half of another worker's spawned tasks.
    pub steals: u64,
    /// How often among these it leapfrogged: stole from the worker that ran what it waited for.
    pub leaps: u64,
    /// How often it made tasks of its own visible to thieves, because one had asked.
    pub grows: u64,
    /// How often it took such tasks back, because it had run out of private ones.
    pub shrinks: u64,
    /// How often it made tasks of another worker visible, because that one did not come to it.
    pub exposures: u64,
    /// How often it went to sleep, though the last look before may have called it back.
    pub sleeps: u64,
    /// How often it called a sleeper, of this pool or of another. Calls by threads that are no workers
    /// are counted nowhere.
    pub wakes: u64,
    /// Process-wide barriers it asked the system for.
    pub membarriers: u64,
}

type Field = (&'static str, fn(&mut WorkerStats) -> &mut u64);

/// The columns of the table, in its order.
const FIELDS: [Field; 9] = [
    ("tasks", |stats| &mut stats.tasks),
    ("steals", |stats| &mut stats.steals),
    ("leaps", |stats| &mut stats.leaps),
    ("grows", |stats| &mut stats.grows),
    ("shrinks", |stats| &mut stats.shrinks),
    ("exposures", |stats| &mut stats.exposures),
    ("sleeps", |stats| &mut stats.sleeps),
    ("wakes", |stats| &mut stats.wakes),
    ("membarriers", |stats| &mut stats.membarriers),
];

impl WorkerStats {
    fn of(worker: &Remote) -> WorkerStats {
        let counters = &worker.watch.counters;
        WorkerStats {
            tasks: counters.tasks.get(),
            steals: counters.steals.get(),
            leaps: counters.leaps.get(),
            grows: counters.grows.get(),
            shrinks: counters.shrinks.get(),
            exposures: counters.exposures.get(),
            sleeps: counters.sleeps.get(),
            wakes: counters.wakes.get(),
            membarriers: counters.membarriers.get(),
        }
    }

    /// Each counter's name and value, in the order of the table.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let mut copy = *self;
        FIELDS.into_iter().map(move |(name, field)| (name, *field(&mut copy)))
    }

    fn merge(mut self, mut other: WorkerStats, merge: fn(u64, u64) -> u64) -> WorkerStats {
        for (_, field) in FIELDS {
            let mine = field(&mut self);
            *mine = merge(*mine, *field(&mut other));
        }
        self
    }
}

/// What the workers of a pool have done: [`ThreadPool::stats`].
///
/// Printed, it is a table with a row for each worker and one for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    workers: Vec<WorkerStats>,
}

impl Stats {
    /// Each worker's, by its index; spare workers come last.
    pub fn workers(&self) -> &[WorkerStats] {
        &self.workers
    }

    /// The sum over all workers.
    pub fn total(&self) -> WorkerStats {
        let sum = |sum: WorkerStats, &each| sum.merge(each, u64::wrapping_add);
        self.workers.iter().fold(WorkerStats::default(), sum)
    }

    /// What has been done since `earlier`, a snapshot of the same pool.
    ///
    /// # Panics
    ///
    /// If the two have not the same number of workers: then they are not of the same pool.
    #[must_use]
    pub fn since(&self, earlier: &Stats) -> Stats {
        assert_eq!(
            self.workers.len(),
            earlier.workers.len(),
            "two snapshots with different numbers of workers are not of the same pool"
        );
        let pairs = self.workers.iter().zip(&earlier.workers);
        let workers = pairs.map(|(now, then)| now.merge(*then, u64::wrapping_sub)).collect();
        Stats { workers }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |name: String, stats: &WorkerStats| {
            let cells = stats.fields().map(|(_, value)| value.to_string());
            [name].into_iter().chain(cells).collect::<Vec<_>>()
        };
        let names = FIELDS.iter().map(|(name, _)| (*name).to_owned());
        let mut rows = vec![["worker".to_owned()].into_iter().chain(names).collect()];
        rows.extend(self.workers.iter().enumerate().map(|(i, stats)| named(i.to_string(), stats)));
        rows.push(named("all".to_owned(), &self.total()));
        let width = |column: usize| {
            rows.iter().map(|row: &Vec<String>| row[column].len()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..=FIELDS.len()).map(width).collect();
        for (line, row) in rows.iter().enumerate() {
            if line != 0 {
                writeln!(f)?;
            }
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                write!(f, "{gap}{cell:>width$}")?;
            }
        }
        Ok(())
    }
}

impl ThreadPool {
    /// What the workers have done until now. Any thread; wait-free; linear in the number of workers.
    ///
    /// The workers go on meanwhile, so numbers of different workers, and of different columns, need not
    /// belong to one moment. What a task did before its result came to this thread is in.
    ///
    /// ```
    /// let pool = poach_runtime::ThreadPool::builder().threads(2).build()?;
    /// let before = pool.stats();
    /// pool.install(|| poach_runtime::scope(|s| (0..10).for_each(|_| s.spawn(|_| ()))));
    /// let stats = pool.stats().since(&before);
    /// // The ten, and what was installed.
    /// assert_eq!(stats.total().tasks, 11);
    /// println!("{stats}");
    /// # Ok::<(), poach_runtime::BuildError>(())
    /// ```
    pub fn stats(&self) -> Stats {
        Stats { workers: self.registry.workers.iter().map(WorkerStats::of).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(tasks: &[u64]) -> Stats {
        let of = |&tasks| WorkerStats { tasks, wakes: 1, ..WorkerStats::default() };
        Stats { workers: tasks.iter().map(of).collect() }
    }

    #[test]
    fn the_table_has_a_row_a_worker_and_one_for_all_in_columns_that_line_up() {
        let table = stats(&[1_000_000, 2]).to_string();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{table}");
        assert!(lines[3].trim_start().starts_with("all  1000002"), "{table}");
    }

    #[test]
    fn sums_and_differences_are_column_by_column() {
        let (before, after) = (stats(&[1, 2]), stats(&[5, 9]));
        assert_eq!((after.total().tasks, after.total().wakes), (14, 2));
        let done = after.since(&before);
        assert_eq!((done.workers()[0].tasks, done.workers()[1].tasks), (4, 7));
        assert_eq!(done.total().wakes, 0);
    }

    #[test]
    #[should_panic(expected = "not of the same pool")]
    fn snapshots_of_different_pools_are_not_compared() {
        let _ = stats(&[1]).since(&stats(&[1, 2]));
    }

    #[test]
    fn every_counter_has_a_column() {
        assert_eq!(size_of::<WorkerStats>(), FIELDS.len() * size_of::<u64>());
    }
}
