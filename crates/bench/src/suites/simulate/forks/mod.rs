//! Programs that divide their work, on simulated processors with caches: the runtime's task stacks
//! and its scheduler.
//!
//! A program is its [task tree](super::tree). A strand takes the time that the tree says. A fork, a
//! join and a theft run the stack's own source on the simulated memory, so a task that moves to
//! another processor, a request, and a steal that fails cost what their cache lines cost.
//!
//! | system | idle workers | a worker whose second half was stolen |
//! |---|---|---|
//! | `leapfrog` | Lace's: a victim at random, at once again if it has nothing | steals from the thief |
//! | `transitive` | the same | from the thief, then from whom that waits for, and so on |
//! | `random` | the same | from the thief, then from a victim at random |
//! | `split` | Poach's, of a pool whose workers are bound to processors | Poach's |
//!
//! # What is the shipping source, and what is not
//!
//! Of `split` all decisions of the scheduler are: the loop of a worker and its order of looks
//! (`search` and `unrestricted` in the runtime's `scheduler`), the victim order, the requests, the
//! back-off from small steals, the time that an idle worker looks, the naps, the protocol of sleep
//! and wake, and the policy by which owners wake. They are generic over the worker, the memory and
//! the clock ([`poach_runtime::generic`]). What is written here is the worker ([`Seeker`]), and
//!
//! - the call stack. A worker keeps what it goes back to in a list, so a strand is never nested in
//!   another, and no call stack is ever too deep for a wait that takes any work;
//! - forks and joins of plain values, where the runtime pushes closures ([`stack`]);
//! - what trees do not have: spawned tasks, tasks from outside, guests, and waits for anything but
//!   a join. Worker 0 begins with the root, and the others look from the start;
//! - the thread: parking, which takes what the machine's description says (`threads`), and giving a
//!   processor away, which costs and gives it to nobody.
//!
//! The other three are Lace's loop, for comparison with its paper: no sleep, no pause, no exposure
//! by thieves.

mod seeker;
mod stack;
pub(crate) mod tree;
mod worker;

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{Result, ensure};
use poach_memory::{CachePadded, Word};
use poach_simulate::{CoherentWord, Description, Simulation};

use self::seeker::Idlers;
use self::stack::Stacks;
pub(super) use self::stack::private_fork;
use self::tree::Tree;
use super::why;
use crate::Sample;

/// Slots of a stack: what the deepest of the trees needs.
const SLOTS: usize = 1 << 17;

/// How a worker looks for work: by one of the loops of Lace's paper (sections 1.2 and 4.3), or by
/// Poach's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// A worker that waits for a stolen half steals from the thief of that half alone: what it
    /// steals there is part of what it waits for.
    Leapfrog,
    /// From the thief, then from the thief of what the thief waits for, and so on.
    Transitive,
    /// From the thief, then from anybody.
    Random,
    /// As Poach's workers.
    Poach,
}

impl Search {
    pub(crate) const ALL: [Search; 4] =
        [Search::Leapfrog, Search::Transitive, Search::Random, Search::Poach];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Search::Leapfrog => "leapfrog",
            Search::Transitive => "transitive",
            Search::Random => "random",
            Search::Poach => "split",
        }
    }

    /// Whether a worker that waits steals from more than the thief of what it waits for: down the
    /// chain of thieves.
    fn follows_further(self) -> bool {
        matches!(self, Search::Transitive | Search::Poach)
    }

    /// Whether a worker that waits steals from anybody.
    fn takes_any(self) -> bool {
        matches!(self, Search::Random | Search::Poach)
    }
}

/// A tree, whatever its tasks are.
pub(crate) trait Play {
    /// Plays it on a machine.
    ///
    /// # Errors
    ///
    /// If there is no address space for the stacks, or a strand was not run once.
    fn play(&self, setting: &Setting<'_>) -> Result<Sample>;
}

/// What a tree is played on.
pub(crate) struct Setting<'a> {
    pub(crate) machine: &'a Description,
    pub(crate) workers: usize,
    pub(crate) search: Search,
    pub(crate) seed: u64,
    /// Picoseconds of a fork and its join within a strand.
    pub(crate) fork: u64,
}

impl<T: Tree<Task: 'static> + Clone + 'static> Play for T {
    fn play(&self, setting: &Setting<'_>) -> Result<Sample> {
        let Setting { machine, workers, search, seed, fork } = *setting;
        let idlers = Idlers::new(machine, workers);
        let pool = Rc::new(Pool {
            tree: self.clone(),
            fork,
            search,
            stacks: Stacks::new(workers, SLOTS, |worker| {
                (search == Search::Poach).then(|| idlers.wakes(worker))
            })?,
            ended: CachePadded::new(CoherentWord::new(0)),
            follows: (0..workers).map(|_| CachePadded::new(CoherentWord::new(0))).collect(),
            idlers,
            counts: Counts::default(),
        });
        let mut simulation = Simulation::new(machine);
        simulation.seed(seed);
        for worker in 0..workers {
            let pool = Rc::clone(&pool);
            simulation.thread(worker, "worker", move || pool.work(worker, seed));
        }
        let outcome = simulation.run()?;
        let Counts { strands, forks, steals, leaps, failed, exposures, sleeps, depth, took } =
            &pool.counts;
        ensure!(
            strands.get() == 3 * forks.get() + 1,
            "{} strands were run for {} forks",
            strands.get(),
            forks.get()
        );
        let (grows, shrinks) = pool.stacks.counts();
        let sample = Sample::from(took.get() as f64 / 1e12)
            .count("forks", forks.get() as f64)
            .count("steals", steals.get() as f64)
            .count("leaps", leaps.get() as f64)
            .count("failed", failed.get() as f64)
            .count("exposures", exposures.get() as f64)
            .count("sleeps", sleeps.get() as f64)
            .count("grows", grows as f64)
            .count("shrinks", shrinks as f64)
            .count("depth", depth.get() as f64)
            .count("accesses", outcome.accesses as f64);
        Ok(why::account(sample, &outcome, (steals.get() + leaps.get()).max(1) as f64))
    }
}

#[derive(Default)]
struct Counts {
    strands: Cell<u64>,
    forks: Cell<u64>,
    /// Steals by idle workers, and by those that wait.
    steals: Cell<u64>,
    leaps: Cell<u64>,
    /// Looks at a victim that had nothing.
    failed: Cell<u64>,
    exposures: Cell<u64>,
    /// Sleeps and rests.
    sleeps: Cell<u64>,
    depth: Cell<usize>,
    /// When the last strand had ended, in picoseconds.
    took: Cell<u64>,
}

fn bump(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

/// What the workers of one simulation share.
struct Pool<T: Tree> {
    tree: T,
    /// Picoseconds of a fork and its join within a strand.
    fork: u64,
    search: Search,
    stacks: Stacks<T::Task>,
    ended: CachePadded<CoherentWord>,
    /// Of Lace's loop: for each worker one more than the number of the worker that it waits for,
    /// or 0.
    follows: Vec<CachePadded<CoherentWord>>,
    /// Of Poach's.
    idlers: Idlers,
    counts: Counts,
}

#[cfg(test)]
mod tests {
    use super::tree::{NO_FORK, Stored, StoredStrand};
    use super::*;
    use crate::fork::{Program as _, Split, System as _};
    use crate::programs::fib::{Fib, FibTree};

    /// Strands by their work in microseconds and the fork that ends them.
    fn tree<const N: usize>(strands: [(f32, u32); N]) -> Stored {
        let strand = |(weight, fork)| StoredStrand { weight, inner: 0, fork };
        Stored { strands: Rc::new(strands.map(strand)), unit: 1e6 }
    }

    fn played(tree: &impl Play, workers: usize) -> Sample {
        let machine = Description::shipped("lace").unwrap();
        let setting =
            Setting { machine: &machine, workers, search: Search::Poach, seed: 1, fork: 0 };
        tree.play(&setting).unwrap()
    }

    #[test]
    fn an_idle_worker_sleeps_through_a_long_strand_and_takes_a_half_at_once() {
        // 20 ms in which there is nothing to steal: naps of 1, 2, 4 and 8 ms, each with a look
        // after it.
        let alone = played(&tree([(20_000.0, NO_FORK)]), 2);
        let (sleeps, accesses) = (alone.counters["sleeps"], alone.counters["accesses"]);
        assert!((3.0..20.0).contains(&sleeps), "{sleeps} sleeps");
        assert!(accesses < 100_000.0, "{accesses} accesses");
        let halves = tree([(1.0, 0), (20_000.0, NO_FORK), (20_000.0, NO_FORK), (1.0, NO_FORK)]);
        let both = played(&halves, 2);
        assert_eq!((both.counters["steals"], both.counters["leaps"]), (1.0, 0.0));
        assert!((0.02..0.025).contains(&both.value), "{} s", both.value);
    }

    #[test]
    fn one_worker_counts_the_same_on_the_runtime_and_in_simulated_time() {
        let (split, mut program) = (Split::new(1).unwrap(), Fib::of(20));
        // On the worker itself: the calling thread would work as a guest, beside a worker that may
        // ask it for tasks.
        split.pool().install(|| program.run(&split));
        let real = split.counters();
        let simulated = played(&FibTree { n: 20, grain: 2, unit: 1e4 }, 1);
        for name in ["steals", "leaps", "grows", "shrinks"] {
            let (_, counted) = real.iter().find(|(it, _)| *it == name).unwrap();
            assert_eq!(simulated.counters[name] as u64, *counted, "{name}");
        }
        assert_eq!(simulated.counters["forks"] as u64, FibTree::forks(20));
    }
}
