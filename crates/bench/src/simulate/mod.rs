//! The suite `simulate`: programs on more workers than this machine has processors.
//!
//! A program's task tree is generated or [recorded](record), with the time that the sequential
//! program takes here; [costs] of forks, fences and cache lines are measured here too; and the tree is
//! [replayed](crate::replay) on any number of workers of a described topology, by each strategy of
//! waiting. Beside that stand the sequential program and Poach itself, measured, on as many workers as
//! there are processors. Programs whose name begins with `lace-` are Lace's, on the machine of its paper,
//! beside what the paper published.

mod costs;
pub(crate) mod lace;
mod record;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::rc::Rc;
use std::thread::available_parallelism;
use std::time::Instant;

use anyhow::{Context as _, Result};

pub use self::costs::Costs;
use self::lace::Published;
use crate::fork::{self, Input, Program, Sequential, Split};
use crate::programs;
use crate::replay::Replay;
use crate::replay::engine::Setting;
use crate::replay::strategy::Strategy;
pub use crate::replay::topology::Topology;
use crate::{Case, Request, Sample, Size, Suite, Unit, need_memory};

/// The most forks of a recorded tree that are looked at one by one.
const FORKS: usize = 2_000_000;

/// Bytes of a recorded tree for each of them.
const BYTES: u64 = 36;

/// How often the sequential program is timed before a tree is made; the least counts.
const TIMES: usize = 3;

/// The suite `simulate`.
#[derive(Clone, Debug, Default)]
pub struct Simulate {
    topology: Option<Topology>,
    costs: String,
}

impl Simulate {
    /// The suite on this machine, with `costs` other than those that are measured here, in the form of
    /// [`Costs::change`]. By default all workers are as far from each other as two of the processors
    /// here; for Lace's programs the machine is that of its paper.
    ///
    /// # Errors
    ///
    /// Those of [`Costs::change`].
    pub fn new(topology: Option<Topology>, costs: String) -> Result<Self> {
        if !costs.is_empty() {
            Costs::default().change(&costs)?;
        }
        Ok(Simulate { topology, costs })
    }
}

impl Suite for Simulate {
    fn name(&self) -> &'static str {
        "simulate"
    }

    fn about(&self) -> &'static str {
        "programs on up to a thousand simulated workers, by each way of waiting"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let machine = Machine { suite: self.clone(), costs: Rc::default() };
        let mut cases = Vec::new();
        programs::each(&mut Lister { machine: &machine, request, cases: &mut cases });
        for program in &lace::TABLE {
            machine.published(program, request, &mut cases);
        }
        cases
    }

    fn workers(&self) -> Option<Vec<usize>> {
        Some((0..=10).map(|power| 1 << power).collect())
    }
}

struct Lister<'a> {
    machine: &'a Machine,
    request: &'a Request,
    cases: &'a mut Vec<Case>,
}

impl programs::Visitor for Lister<'_> {
    fn visit<P: Program>(&mut self) {
        self.machine.program::<P>(self.request, self.cases);
    }
}

/// What all cases of a suite have in common.
#[derive(Clone)]
struct Machine {
    suite: Simulate,
    /// Measured when the first case needs them.
    costs: Rc<OnceCell<Costs>>,
}

/// The tree of a program, made when the first case needs it.
type Made = Rc<OnceCell<Box<dyn Replay>>>;

/// What one case simulates.
struct Simulated {
    workers: usize,
    strategy: Strategy,
    topology: Topology,
    costs: Costs,
}

impl Machine {
    fn costs(&self) -> Result<Costs> {
        if let Some(costs) = self.costs.get() {
            return Ok(*costs);
        }
        let mut costs = Costs::here()?;
        if !self.suite.costs.is_empty() {
            costs.change(&self.suite.costs)?;
        }
        Ok(*self.costs.get_or_init(|| costs))
    }

    /// The cases of a program of this crate.
    fn program<P: Program>(&self, request: &Request, cases: &mut Vec<Case>) {
        let cores = available_parallelism().map_or(1, Into::into);
        let (input, size): (Input<P>, Size) = (Rc::default(), request.size);
        let made: Made = Rc::default();
        cases.push(fork::case::<P, Sequential>(&input, size, 1));
        for workers in request.workers.iter().copied() {
            if workers <= cores {
                cases.push(fork::case::<P, Split>(&input, size, workers));
            }
            for strategy in Strategy::ALL {
                let (machine, input, made) = (self.clone(), Rc::clone(&input), Rc::clone(&made));
                let prepare = move || {
                    if made.get().is_none() {
                        let tree = tree::<P>(&input, size)?;
                        made.get_or_init(|| tree);
                    }
                    let costs = machine.costs()?;
                    let topology = machine.suite.topology.clone();
                    let topology = topology.unwrap_or_else(|| Topology::flat(costs.line));
                    let simulated = Simulated { workers, strategy, topology, costs };
                    let mut seed = 0;
                    Ok(move || simulated.sample(&made, &mut seed))
                };
                let name = strategy.name();
                cases.push(Case::new(P::NAME, name, workers, Unit::SECONDS, prepare).computed());
            }
        }
    }

    /// The cases of a program of Lace's paper.
    fn published(&self, program: &'static Published, request: &Request, cases: &mut Vec<Case>) {
        let size = request.size;
        let made: Made = Rc::default();
        let say = |system: &str, workers, seconds: f64| {
            let sampler = move || Ok(Sample::from(seconds));
            let name = format!("published{system}");
            let case = Case::new(program.name, name, workers, Unit::SECONDS, move || Ok(sampler));
            case.computed()
        };
        let full = matches!(size, Size::Full | Size::Paper);
        if full {
            cases.push(say("-sequential", 1, program.sequential));
        }
        for workers in request.workers.iter().copied() {
            let of_table = [
                ("-leapfrog", Some(program.leapfrog)),
                ("-transitive", program.transitive),
                ("-random", program.random),
            ];
            for (system, seconds) in of_table {
                match (workers, seconds) {
                    (1, Some((one, _))) if full => cases.push(say(system, 1, one)),
                    (48, Some((_, all))) if full => cases.push(say(system, 48, all)),
                    _ => {}
                }
            }
            for strategy in Strategy::ALL {
                let (machine, made) = (self.clone(), Rc::clone(&made));
                let prepare = move || {
                    made.get_or_init(|| program.tree(size));
                    let topology = match &machine.suite.topology {
                        Some(topology) => topology.clone(),
                        None => lace::TOPOLOGY.parse()?,
                    };
                    // Its thieves wait for the owner's answer, however long it takes.
                    let mut costs = Costs { patience: f64::INFINITY, ..Costs::default() };
                    if !machine.suite.costs.is_empty() {
                        costs.change(&machine.suite.costs)?;
                    }
                    let simulated = Simulated { workers, strategy, topology, costs };
                    let mut seed = 0;
                    Ok(move || simulated.sample(&made, &mut seed))
                };
                let name = strategy.name();
                cases.push(
                    Case::new(program.name, name, workers, Unit::SECONDS, prepare).computed(),
                );
            }
        }
    }
}

/// The program's tree, generated or recorded, with the time that it takes here.
pub(crate) fn tree<P: Program>(input: &Input<P>, size: Size) -> Result<Box<dyn Replay>> {
    let mut program = fork::make(input, size)?.borrow_mut();
    let mut seconds = f64::INFINITY;
    for _ in 0..TIMES {
        program.reset();
        let start = Instant::now();
        program.run(&Sequential);
        seconds = seconds.min(start.elapsed().as_secs_f64());
        program.check()?;
    }
    if let Some(tree) = program.tree(seconds) {
        return Ok(tree);
    }
    need_memory(BYTES * FORKS as u64)?;
    Ok(Box::new(record::record(&mut *program, seconds, FORKS)?))
}

impl Simulated {
    /// The simulated seconds, and what was counted; each sample has another seed.
    fn sample(&self, tree: &OnceCell<Box<dyn Replay>>, seed: &mut u64) -> Result<Sample> {
        let tree = tree.get().context("the tree was made")?;
        *seed += 1;
        let prices = self.costs.prices();
        let setting = Setting {
            workers: self.workers,
            topology: &self.topology,
            prices,
            strategy: self.strategy,
            seed: *seed,
        };
        let outcome = tree.replay(&setting)?;
        let seconds = |pico: u64| pico as f64 / 1e12;
        let makespan = seconds(outcome.makespan);
        let one = seconds(outcome.busy - outcome.shrinks * prices.fence);
        let sample = Sample::from(makespan)
            .count("t1", one)
            .count("speed-up", one / makespan)
            .count("busy", seconds(outcome.busy) / (makespan * self.workers as f64))
            .count("forks", outcome.forks as f64)
            .count("steals", outcome.steals as f64)
            .count("leaps", outcome.leaps as f64)
            .count("grows", outcome.grows as f64)
            .count("shrinks", outcome.shrinks as f64)
            .count("exposures", outcome.exposures as f64)
            .count("depth", outcome.depth as f64);
        let costs = self.costs.each().filter(|(_, cost)| cost.is_finite());
        Ok(costs.fold(sample, |sample, (name, cost)| sample.count(&format!("{name}-ns"), cost)))
    }
}
