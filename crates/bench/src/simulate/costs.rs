//! What a fork, a fence and a cache line take, measured on this machine or given.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use poach_memory::{Machine, Memory};

use crate::fib::{Fib, FibTree};
use crate::fork::{Program, Sequential, Split, System};
use crate::replay::engine::Prices;

/// What the scheduler's operations take, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// To push the second half of a fork.
    pub push: f64,
    /// To take it back.
    pub pop: f64,
    /// To take shared tasks back.
    pub fence: f64,
    /// For a cache line to go from one worker to another, where no topology is given. A try to steal
    /// takes one, a steal two, and word that a stolen task is done takes one.
    pub line: f64,
    /// How long a thief looks for work before it makes private tasks visible itself; never, if it is
    /// not a number of nanoseconds.
    pub patience: f64,
    /// What that takes.
    pub expose: f64,
}

/// How often each thing is measured; the least counts, for whatever disturbs it makes it longer.
const GOES: usize = 7;

/// Fruitless looks, with so many pauses in each, before Poach's thieves expose an owner's tasks.
const LOOKS: u32 = 16;
const PAUSES: u32 = 8;

fn least(mut go: impl FnMut() -> Result<f64>) -> Result<f64> {
    (0..GOES).try_fold(f64::INFINITY, |least, _| Ok(least.min(go()?)))
}

fn each(times: u32, mut body: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..times {
        body();
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(times)
}

impl Costs {
    /// Measures them here, with Poach's pool: a fork by Fibonacci numbers, beyond what the sequential
    /// program takes; a line by two threads that hand one back and forth.
    ///
    /// # Errors
    ///
    /// If the pool or a thread cannot be made.
    pub fn here() -> Result<Self> {
        let fork = fork()?;
        let word = <Machine as Memory>::Word::new(0);
        let fence = least(|| {
            Ok(each(100_000, || {
                // Relaxed: one thread; the fence has a store to wait for.
                word.store(1, Ordering::Relaxed);
                Machine::full();
            }))
        })?;
        let pauses = least(|| Ok(each(1_000, || (0..PAUSES).for_each(|_| Machine::pause()))))?;
        let expose = least(|| Ok(each(100, Machine::heavy)))?;
        Ok(Costs {
            push: fork / 2.0,
            pop: fork / 2.0,
            fence,
            line: line()?,
            patience: pauses * f64::from(LOOKS),
            expose,
        })
    }

    /// Changes those that `text` names: `push=1.5,fence=8`.
    ///
    /// # Errors
    ///
    /// If there is no such cost, or it is given no number of nanoseconds.
    pub fn change(&mut self, text: &str) -> Result<()> {
        for part in text.split(',') {
            let said = || format!("a cost is NAME=NANOSECONDS, not `{part}`");
            let (name, value) = part.split_once('=').with_context(said)?;
            let value: f64 = value.trim().parse().with_context(said)?;
            let named = self.fields().into_iter().find(|(known, _)| *known == name.trim());
            let Some((_, cost)) = named else {
                let names: Vec<_> = self.fields().iter().map(|(name, _)| *name).collect();
                bail!("there is no cost `{}`: there is {}", name.trim(), names.join(", "));
            };
            ensure!(value >= 0.0, "`{name}` cannot cost {value} ns");
            *cost = value;
        }
        Ok(())
    }

    fn fields(&mut self) -> [(&'static str, &mut f64); 6] {
        [
            ("push", &mut self.push),
            ("pop", &mut self.pop),
            ("fence", &mut self.fence),
            ("line", &mut self.line),
            ("patience", &mut self.patience),
            ("expose", &mut self.expose),
        ]
    }

    /// Each cost's name and value.
    pub(crate) fn each(mut self) -> impl Iterator<Item = (&'static str, f64)> {
        self.fields().map(|(name, value)| (name, *value)).into_iter()
    }

    pub(crate) fn prices(&self) -> Prices {
        let pico = |nanoseconds: f64| (nanoseconds * 1000.0) as u64;
        let expose = self.patience.is_finite().then(|| (pico(self.patience), pico(self.expose)));
        let Costs { push, pop, fence, .. } = *self;
        Prices { push: pico(push), pop: pico(pop), fence: pico(fence), expose }
    }
}

/// A fork and its join in nanoseconds, by one worker, beyond the sequential program.
fn fork() -> Result<f64> {
    // About half a millisecond: long for a clock, and short enough to be left alone for once.
    let mut fib = Fib::of(27);
    let forks = FibTree::forks(fib.n) as f64;
    let mut time = |system: &dyn Fn(&mut Fib)| {
        least(|| {
            fib.reset();
            let start = Instant::now();
            system(&mut fib);
            let seconds = start.elapsed().as_secs_f64();
            fib.check()?;
            Ok(seconds * 1e9 / forks)
        })
    };
    let alone = time(&|fib| fib.run(&Sequential))?;
    let split = Split::new(1)?;
    let forked = time(&|fib| fib.run(&split))?;
    Ok((forked - alone).max(0.0))
}

/// How long a line takes from one thread to another, in nanoseconds.
fn line() -> Result<f64> {
    const TRIPS: u32 = 10_000;
    const SPINS: u32 = 10_000;
    let word = AtomicU32::new(0);
    // Waits for a number of this parity; where both threads have one processor, someone must let go.
    let wait = |parity: u32| {
        let mut spins = 0;
        // Relaxed: the number itself is all that is said.
        while word.load(Ordering::Relaxed) % 2 != parity {
            spins += 1;
            if spins % SPINS == 0 {
                thread::yield_now();
            }
            std::hint::spin_loop();
        }
    };
    let answer = || {
        for _ in 0..TRIPS {
            wait(1);
            // Relaxed: as above.
            word.fetch_add(1, Ordering::Relaxed);
        }
    };
    least(|| {
        thread::scope(|scope| {
            thread::Builder::new()
                .spawn_scoped(scope, answer)
                .context("the thread that hands lines back could not be started")?;
            let start = Instant::now();
            for _ in 0..TRIPS {
                // Relaxed: as above.
                word.fetch_add(1, Ordering::Relaxed);
                wait(0);
            }
            Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(2 * TRIPS))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_by_name() {
        let mut costs = Costs::default();
        costs.change("push=1.5, line=80,patience=inf").unwrap();
        assert!((costs.push, costs.line) == (1.5, 80.0));
        let prices = costs.prices();
        assert_eq!((prices.push, prices.pop, prices.expose), (1500, 0, None));
        costs.change("patience=2,expose=3").unwrap();
        assert_eq!(costs.prices().expose, Some((2000, 3000)));
        for (text, why) in [
            ("push", "NAME=NANOSECONDS"),
            ("push=x", "not `push=x`"),
            ("fork=1", "there is no cost `fork`: there is push, pop, fence, line"),
            ("pop=-1", "cannot cost -1 ns"),
            ("pop=NaN", "cannot cost NaN ns"),
        ] {
            let error = format!("{:#}", costs.change(text).unwrap_err());
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn every_cost_of_this_machine_is_a_time() {
        for (name, nanoseconds) in Costs::here().unwrap().each() {
            assert!(nanoseconds.is_finite() && nanoseconds >= 0.0, "{name}: {nanoseconds}");
        }
    }
}
