//! What each worker has done since its pool was made, as a table.

pub(crate) mod counters;
pub(crate) mod track;
pub(crate) mod watch;

use std::fmt;

use crate::stats::counters::{Count, Counters};

/// What one worker has done since its pool was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Tasks that it ran: spawned tasks, tasks from outside, regions of a
    /// thread from outside (see
    /// [`ThreadPoolBuilder::callers`](crate::ThreadPoolBuilder::callers)), and second halves of
    /// joins that it stole. A half that nobody stole is part of the task that forks, and is
    /// not counted.
    pub tasks: u64,
    /// How often it stole: the second half of a join, or half of another worker's spawned tasks.
    pub steals: u64,
    /// How often of these it leapfrogged: it stole from the worker that ran what it waited for.
    pub leaps: u64,
    /// How often it shared tasks of its own because a thief had asked.
    pub grows: u64,
    /// How often it took such tasks back because it had run out of private ones.
    pub shrinks: u64,
    /// How often it exposed tasks of another worker, which did not answer its request.
    pub exposures: u64,
    /// How often it went to sleep, also if a last look for work called it back at once.
    pub sleeps: u64,
    /// How often it woke a sleeping worker, of this pool or of another. Wakes by threads that are
    /// no workers are not counted.
    pub wakes: u64,
    /// Process-wide barriers that it issued.
    pub membarriers: u64,
}

/// A column of the table: its name, its number, and the counter that it shows.
type Field = (&'static str, fn(&mut WorkerStats) -> &mut u64, fn(&Counters) -> &Count);

/// The columns of the table, in its order.
const FIELDS: &[Field] = &[
    ("tasks", |stats| &mut stats.tasks, |counters| &counters.tasks),
    ("steals", |stats| &mut stats.steals, |counters| &counters.steals),
    ("leaps", |stats| &mut stats.leaps, |counters| &counters.leaps),
    ("grows", |stats| &mut stats.grows, |counters| &counters.grows),
    ("shrinks", |stats| &mut stats.shrinks, |counters| &counters.shrinks),
    ("exposures", |stats| &mut stats.exposures, |counters| &counters.exposures),
    ("sleeps", |stats| &mut stats.sleeps, |counters| &counters.sleeps),
    ("wakes", |stats| &mut stats.wakes, |counters| &counters.wakes),
    ("membarriers", |stats| &mut stats.membarriers, |counters| &counters.membarriers),
];

impl WorkerStats {
    fn of(counters: &Counters) -> WorkerStats {
        let mut stats = WorkerStats::default();
        for (_, field, count) in FIELDS {
            *field(&mut stats) = count(counters).get();
        }
        stats
    }

    /// Each counter's name and value, in the order of the table.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let mut copy = *self;
        FIELDS.iter().map(move |(name, field, _)| (*name, *field(&mut copy)))
    }

    fn merge(mut self, mut other: WorkerStats, merge: fn(u64, u64) -> u64) -> WorkerStats {
        for (_, field, _) in FIELDS {
            let mine = field(&mut self);
            *mine = merge(*mine, *field(&mut other));
        }
        self
    }
}

/// What the workers of a pool have done: [`ThreadPool::stats`](crate::ThreadPool::stats).
///
/// Printed, it is a table with a row for each worker and one for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    workers: Vec<WorkerStats>,
    guests: WorkerStats,
}

impl Stats {
    pub(crate) fn of<'c>(
        workers: impl Iterator<Item = &'c Counters>,
        guests: impl Iterator<Item = &'c Counters>,
    ) -> Stats {
        let sum = |sum: WorkerStats, guest| sum.merge(WorkerStats::of(guest), u64::wrapping_add);
        Stats {
            workers: workers.map(WorkerStats::of).collect(),
            guests: guests.fold(WorkerStats::default(), sum),
        }
    }

    /// Each worker's, by its index; spare workers come last.
    pub fn workers(&self) -> &[WorkerStats] {
        &self.workers
    }

    /// What threads from outside have done while they worked for the pool
    /// ([`ThreadPoolBuilder::callers`](crate::ThreadPoolBuilder::callers)), all together.
    pub fn guests(&self) -> WorkerStats {
        self.guests
    }

    /// The sum over all workers, threads from outside included.
    pub fn total(&self) -> WorkerStats {
        let sum = |sum: WorkerStats, &each| sum.merge(each, u64::wrapping_add);
        self.workers.iter().fold(self.guests, sum)
    }

    /// What has been done since `earlier`, a snapshot of the same pool.
    ///
    /// # Panics
    ///
    /// If the two have different numbers of workers, so that they are not of the same pool.
    #[must_use]
    pub fn since(&self, earlier: &Stats) -> Stats {
        assert_eq!(
            self.workers.len(),
            earlier.workers.len(),
            "two snapshots with different numbers of workers are not of the same pool"
        );
        let pairs = self.workers.iter().zip(&earlier.workers);
        let workers = pairs.map(|(now, then)| now.merge(*then, u64::wrapping_sub)).collect();
        let guests = self.guests.merge(earlier.guests, u64::wrapping_sub);
        Stats { workers, guests }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |name: String, stats: &WorkerStats| {
            let cells = stats.fields().map(|(_, value)| value.to_string());
            [name].into_iter().chain(cells).collect::<Vec<_>>()
        };
        let names = FIELDS.iter().map(|(name, ..)| (*name).to_owned());
        let mut rows = vec![["worker".to_owned()].into_iter().chain(names).collect()];
        rows.extend(self.workers.iter().enumerate().map(|(i, stats)| named(i.to_string(), stats)));
        if self.guests != WorkerStats::default() {
            rows.push(named("guests".to_owned(), &self.guests));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(tasks: &[u64]) -> Stats {
        let of = |&tasks| WorkerStats { tasks, wakes: 1, ..WorkerStats::default() };
        Stats { workers: tasks.iter().map(of).collect(), guests: WorkerStats::default() }
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
        assert_eq!(size_of::<Counters>(), FIELDS.len() * size_of::<Count>());
        let counters = Counters::default();
        for (column, (_, _, count)) in FIELDS.iter().enumerate() {
            (0..=column).for_each(|_| count(&counters).up());
        }
        let stats = WorkerStats::of(&counters);
        let numbers = stats.fields().map(|(_, number)| number);
        assert!(numbers.eq(1..=FIELDS.len() as u64), "each column shows a counter of its own");
    }
}
