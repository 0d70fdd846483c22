//! Queues, pools and fork-join programs on simulated machines of many processors: `poach bench
//! simulate`.
//!
//! The shipping source of each queue, pool and task stack runs on [`poach_simulate::Coherent`], on
//! the processors of a description. This module does with them what the suites `deque` and `pool`
//! do, on virtual threads; [`poach_simulate::forks`] plays fork-join programs. Others' queues have
//! no `Memory` to be simulated on; crossbeam's algorithm is Chase and Lev's, with a full fence.

mod deque;
#[cfg(test)]
mod names;
mod pool;
mod programs;
mod record;
#[cfg(test)]
mod tests;
mod why;

use anyhow::{Context as _, Result, ensure};
use poach_simulate::Description;
use poach_simulate::forks::{self, Setting, Tree};

use crate::{Case, Request, Sample, Suite};
pub use why::why;

/// Queues, pools and programs on one simulated machine.
#[derive(Clone, Debug)]
pub struct Simulate {
    machine: Description,
}

impl Simulate {
    /// On the machine of that name; or with `NAME:N`, on that machine with more of its outermost
    /// groups, N processors at least; else on the one that a file describes.
    ///
    /// # Errors
    ///
    /// If it is neither, or not a machine.
    pub fn new(memory: &str) -> Result<Self> {
        let (name, more) = match memory.rsplit_once(':') {
            Some((name, more)) => (name, Some(more)),
            None => (memory, None),
        };
        let shipped = poach_simulate::SHIPPED.iter().any(|(known, _)| *known == name);
        let machine = if shipped {
            Description::shipped(name)?
        } else {
            let names: Vec<_> = poach_simulate::SHIPPED.iter().map(|(name, _)| *name).collect();
            let text = std::fs::read_to_string(name).with_context(|| {
                format!("`{name}` is no file, nor a machine that is shipped ({})", names.join(", "))
            })?;
            Description::from_json(&text).with_context(|| name.to_owned())?
        };
        let Some(more) = more else { return Ok(Simulate { machine }) };
        let more: usize =
            more.parse().with_context(|| format!("`{more}` is no number of processors"))?;
        Ok(Simulate { machine: machine.extended(more)? })
    }

    /// The machine.
    pub fn machine(&self) -> &Description {
        &self.machine
    }
}

impl Default for Simulate {
    /// The machine of Lace's paper: 48 processors.
    fn default() -> Self {
        Simulate::new("lace").expect("a machine that is shipped")
    }
}

impl Suite for Simulate {
    fn name(&self) -> &'static str {
        "simulate"
    }

    fn about(&self) -> &'static str {
        "queues, pools and programs on simulated machines of many processors"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let mut cases = Vec::new();
        deque::cases(&self.machine, request, &mut cases);
        pool::cases(&self.machine, request, &mut cases);
        programs::cases(&self.machine, request, &mut cases);
        cases
    }

    fn workers(&self) -> Option<Vec<usize>> {
        let all = self.machine.processors;
        let doubled = std::iter::successors(Some(1), |workers| Some(2 * workers));
        let mut workers: Vec<usize> = doubled.take_while(|workers| *workers < all).collect();
        workers.push(all);
        Some(workers)
    }
}

/// Says so if there are more workers than processors.
fn fits(machine: &Description, workers: usize) -> Result<()> {
    let (name, there) = (&machine.name, machine.processors);
    ensure!(
        workers <= there,
        "{workers} workers on `{name}`, which has {there} processors: ask for `--memory {name}:{workers}`"
    );
    Ok(())
}

/// A tree of a program, whatever its tasks are.
pub(crate) trait Play {
    /// Plays it on a machine.
    ///
    /// # Errors
    ///
    /// As [`forks::play`].
    fn play(&self, setting: &Setting<'_>) -> Result<Sample>;
}

impl<T: Tree<Task: 'static> + Clone + 'static> Play for T {
    fn play(&self, setting: &Setting<'_>) -> Result<Sample> {
        let played = forks::play(self, setting)?;
        let sample = Sample::from(played.took as f64 / 1e12)
            .count("forks", played.forks as f64)
            .count("steals", played.steals as f64)
            .count("leaps", played.leaps as f64)
            .count("failed", played.failed as f64)
            .count("exposures", played.exposures as f64)
            .count("sleeps", played.sleeps as f64)
            .count("grows", played.grows as f64)
            .count("shrinks", played.shrinks as f64)
            .count("depth", played.depth as f64)
            .count("accesses", played.outcome.accesses as f64);
        let steals = (played.steals + played.leaps).max(1);
        Ok(why::account(sample, &played.outcome, steals as f64))
    }
}
