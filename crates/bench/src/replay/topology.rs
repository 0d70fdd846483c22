//! The machine that is simulated: how far its workers are from each other.
//!
//! Written `SIZE:COST[,SIZE:COST..]`, from the inside out: so many workers share the nearest cache and
//! hand a cache line to each other in so many nanoseconds; so many of these groups make a larger one,
//! within which it takes so many; and so on. The last group repeats as often as there are workers.
//! `6:60,2:90,4:130` is four packages of two dies of six cores.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Result, ensure};

/// A machine of groups of groups of workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    levels: Vec<Level>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    /// The workers in a group of this level.
    workers: usize,
    /// How many of the groups below are in one.
    size: usize,
    /// How long a cache line takes between two of them, in nanoseconds.
    line: f64,
}

impl Topology {
    /// All workers equally far from each other: a line takes `line` nanoseconds between any two.
    pub fn flat(line: f64) -> Self {
        Topology { levels: vec![Level { workers: usize::MAX, size: usize::MAX, line }] }
    }

    /// How long a cache line takes from one worker to another, in nanoseconds.
    pub(crate) fn line(&self, a: usize, b: usize) -> f64 {
        let near = self.levels.iter().find(|level| a / level.workers == b / level.workers);
        near.or(self.levels.last()).map_or(0.0, |level| level.line)
    }

    /// How long a line takes from a worker to another one, on average, if there are so many.
    pub(crate) fn mean_line(&self, worker: usize, workers: usize) -> f64 {
        if workers < 2 {
            return 0.0;
        }
        let others = (0..workers).filter(|other| *other != worker);
        others.map(|other| self.line(worker, other)).sum::<f64>() / (workers - 1) as f64
    }
}

impl FromStr for Topology {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut levels: Vec<Level> = Vec::new();
        let mut below = 1usize;
        for part in text.split(',') {
            let said = || format!("a level of a topology is SIZE:NANOSECONDS, not `{part}`");
            let (size, line) = part.split_once(':').with_context(said)?;
            let size: usize = size.trim().parse().with_context(said)?;
            let line: f64 = line.trim().parse().with_context(said)?;
            ensure!(size > 0, "a group of 0 workers is no level of a topology");
            ensure!(line.is_finite() && line >= 0.0, "a line cannot take {line} ns");
            let workers = below.checked_mul(size).context("a topology of too many workers")?;
            levels.push(Level { workers, size, line });
            below = workers;
        }
        Ok(Topology { levels })
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Level { size: usize::MAX, line, .. }] = self.levels[..] {
            return write!(f, "flat:{line:.0}");
        }
        for (at, level) in self.levels.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{}:{}", level.size, level.line)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn distances_by_hand() {
        let topology: Topology = "2:10,3:20,2:40".parse().unwrap();
        for (a, b, line) in [(0, 1, 10.0), (1, 2, 20.0), (0, 5, 20.0), (5, 6, 40.0), (6, 7, 10.0)] {
            assert!(close(topology.line(a, b), line), "{a} to {b}");
            assert!(close(topology.line(b, a), line), "{b} to {a}");
        }
        // Beyond the last level there is more of the same.
        assert!(close(topology.line(0, 100), 40.0));
        assert!(close(topology.mean_line(0, 4), (10.0 + 20.0 + 20.0) / 3.0));
        assert!(close(topology.mean_line(0, 1), 0.0));
        assert_eq!(topology.to_string(), "2:10,3:20,2:40");
        assert!(close(Topology::flat(7.0).line(0, 1_000), 7.0));
    }

    #[test]
    fn what_is_no_topology_is_said() {
        for (text, why) in [
            ("", "SIZE:NANOSECONDS"),
            ("6", "SIZE:NANOSECONDS, not `6`"),
            ("6:x", "not `6:x`"),
            ("0:5", "a group of 0 workers"),
            ("2:-1", "cannot take -1 ns"),
            ("2:NaN", "cannot take NaN ns"),
            ("9999999999:1,9999999999:1", "too many workers"),
        ] {
            let error = format!("{:#}", text.parse::<Topology>().unwrap_err());
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
