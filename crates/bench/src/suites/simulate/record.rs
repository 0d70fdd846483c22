//! Writes the task tree of a program down while it runs on one worker.
//!
//! Two passes. The first counts the forks at each depth and finds the depth below which the tree
//! has too many to store: what lies there is part of the strand above. The second notes how each
//! strand ends, and how long it took if a clock can tell: reading it takes as long as many a
//! strand. If the strands are too short for that, each counts the same. Either way their sum is
//! then scaled to the time of the sequential program, which no clock disturbs.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use anyhow::{Result, ensure};
use poach_simulate::forks::{NO_FORK, Stored, StoredStrand};

use crate::fork::{Fork, Program, System, Task};

/// Strands shorter than this number of readings of the clock are not timed.
const READINGS: f64 = 10.0;

/// Records `program`, with at most `limit` forks looked at one by one; `seconds` is what the
/// sequential program takes.
pub(super) fn record(program: &mut impl Program, seconds: f64, limit: usize) -> Result<Stored> {
    program.reset();
    let counting = Counting::default();
    program.run(&counting);
    program.check()?;
    let (below, forks) = counting.cut(limit);

    let reading = reading();
    let strands = 3.0 * forks as f64 + 1.0;
    let clock = (seconds * 1e9 / strands > READINGS * reading).then_some(reading);
    program.reset();
    let recording = Recording::new(below, forks, clock);
    program.run(&recording);
    program.check()?;
    recording.finish(seconds)
}

/// What it takes to read the clock, in nanoseconds: the least of some goes.
fn reading() -> f64 {
    const READINGS: u32 = 1_000;
    let go = || {
        let start = Instant::now();
        for _ in 0..READINGS {
            std::hint::black_box(Instant::now());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(READINGS)
    };
    (0..10).map(|_| go()).fold(f64::INFINITY, f64::min)
}

/// The first pass.
#[derive(Default)]
struct Counting {
    depth: Cell<usize>,
    /// The forks at each depth.
    forks: RefCell<Vec<usize>>,
}

impl Counting {
    /// The depth below which forks are not looked at, and how many are above it.
    fn cut(&self, limit: usize) -> (usize, usize) {
        let mut total = 0;
        let forks = self.forks.borrow();
        for (depth, count) in forks.iter().enumerate() {
            if total + count > limit {
                return (depth, total);
            }
            total += count;
        }
        (forks.len(), total)
    }
}

impl System for Counting {
    const NAME: &'static str = "counting";

    fn new(_workers: usize) -> Result<Self> {
        Ok(Counting::default())
    }

    fn run<T: Task>(&self, task: T) -> T::Output {
        task.run(self)
    }
}

impl Fork for &Counting {
    fn join<A: Task, B: Task>(&mut self, a: A, b: B) -> (A::Output, B::Output) {
        let depth = self.depth.get();
        {
            let mut forks = self.forks.borrow_mut();
            if forks.len() <= depth {
                forks.resize(depth + 1, 0);
            }
            forks[depth] += 1;
        }
        self.depth.set(depth + 1);
        let both = (a.run(*self), b.run(*self));
        self.depth.set(depth);
        both
    }
}

/// The second pass.
struct Recording {
    strands: RefCell<Vec<StoredStrand>>,
    /// The strand that is running.
    current: Cell<u32>,
    depth: Cell<usize>,
    /// Forks at this depth and below are not looked at.
    below: usize,
    inner: Cell<u64>,
    since: Cell<Instant>,
    /// What a reading of the clock takes, in nanoseconds, if strands are timed.
    clock: Option<f64>,
}

impl Recording {
    fn new(below: usize, forks: usize, clock: Option<f64>) -> Self {
        let mut strands = Vec::with_capacity(3 * forks + 1);
        strands.push(StoredStrand { weight: 0.0, inner: 0, fork: NO_FORK });
        Recording {
            strands: RefCell::new(strands),
            current: Cell::new(0),
            depth: Cell::new(0),
            below,
            inner: Cell::new(0),
            since: Cell::new(Instant::now()),
            clock,
        }
    }

    /// The strand that is running ends, with this fork or none.
    fn end(&self, fork: u32) {
        let inner = self.inner.replace(0);
        let weight = match self.clock {
            Some(reading) => (self.since.get().elapsed().as_secs_f64() * 1e9 - reading).max(0.0),
            None => 3.0 * inner as f64 + 1.0,
        };
        self.strands.borrow_mut()[self.current.get() as usize] =
            StoredStrand { weight: weight as f32, inner: inner as u32, fork };
    }

    fn begin(&self, strand: u32) {
        self.current.set(strand);
        if self.clock.is_some() {
            self.since.set(Instant::now());
        }
    }

    fn finish(self, seconds: f64) -> Result<Stored> {
        self.end(NO_FORK);
        let strands = self.strands.into_inner();
        let sum: f64 = strands.iter().map(|strand| f64::from(strand.weight)).sum();
        ensure!(sum > 0.0, "no strand of the program takes any time");
        Ok(Stored { strands: strands.into(), unit: seconds * 1e12 / sum })
    }
}

impl System for Recording {
    const NAME: &'static str = "recording";

    fn new(_workers: usize) -> Result<Self> {
        Ok(Recording::new(usize::MAX, 0, None))
    }

    fn run<T: Task>(&self, task: T) -> T::Output {
        // What comes before the program's first task, or between two of them, is no part of a
        // strand; and so the strands go on where the last run left off.
        self.begin(self.current.get());
        task.run(self)
    }
}

impl Fork for &Recording {
    fn join<A: Task, B: Task>(&mut self, a: A, b: B) -> (A::Output, B::Output) {
        let depth = self.depth.get();
        if depth >= self.below {
            self.inner.set(self.inner.get() + 1);
            return (a.run(*self), b.run(*self));
        }
        let base = {
            let mut strands = self.strands.borrow_mut();
            let base = strands.len() as u32;
            let empty = StoredStrand { weight: 0.0, inner: 0, fork: NO_FORK };
            strands.extend([empty; 3]);
            base
        };
        self.end((base - 1) / 3);
        self.depth.set(depth + 1);
        self.begin(base);
        let a = a.run(*self);
        self.end(NO_FORK);
        self.begin(base + 1);
        let b = b.run(*self);
        self.end(NO_FORK);
        self.depth.set(depth);
        self.begin(base + 2);
        (a, b)
    }
}

#[cfg(test)]
mod tests {
    use poach_simulate::forks::totals;

    use super::*;
    use crate::Size;
    use crate::programs::fib::Fib;
    use crate::programs::mergesort::Mergesort;

    #[test]
    fn every_fork_of_fib_and_the_time_it_took() {
        let mut fib = Fib::new(Size::Tiny);
        let whole = record(&mut fib, 0.5, usize::MAX).unwrap();
        let totals = totals(&whole);
        // fib(16) makes fib(17) - 1 forks.
        assert_eq!((totals.forks, totals.outer), (1596, 1596));
        let seconds = totals.work as f64 / 1e12;
        assert!((seconds - 0.5).abs() < 1e-6, "{seconds}");
    }

    #[test]
    fn what_is_not_stored_is_still_counted() {
        let mut fib = Fib::new(Size::Tiny);
        let whole = totals(&record(&mut fib, 0.5, usize::MAX).unwrap());
        let cut = totals(&record(&mut fib, 0.5, 100).unwrap());
        assert!(cut.outer <= 100 && cut.outer > 30, "{}", cut.outer);
        assert_eq!(cut.forks, whole.forks);
        assert!(cut.work.abs_diff(whole.work) < whole.work / 1_000_000);
        let none = totals(&record(&mut fib, 0.5, 0).unwrap());
        assert_eq!((none.outer, none.forks), (0, whole.forks));
        assert_eq!(none.span, none.work);
    }

    #[test]
    fn a_program_of_several_runs_and_long_strands_is_one_tree() {
        let mut sort = Mergesort::new(Size::Tiny);
        let tree = record(&mut sort, 100.0, usize::MAX).unwrap();
        let totals = totals(&tree);
        assert!(totals.forks > 0 && totals.span < totals.work);
    }
}
