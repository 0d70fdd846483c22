//! Programs that divide their work, on simulated processors with caches: the runtime's task stacks and its scheduler.
//!
//! A program is its [task tree](crate::replay::tree): a strand is work of so many picoseconds, each fork, join and theft runs the
//! stack's own source on the simulated memory. So a task that goes from one processor to another, a request, and a thief that finds nothing cost
//! what their cache lines cost.
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
//! Of `split` all decisions of the scheduler are: the loop of a worker and its order of looks (`search` and `unrestricted` in the runtime's `scheduler`),
//! the victim order, the requests, the back-off from small steals, the time that an idle worker looks, the naps, the protocol of sleep and wake, and
//! the policy by which owners wake. They are generic over the worker, the memory and the clock ([`poach_runtime::generic`]). What is
//! written here is the worker ([`Seeker`]), and
//!
//! - the call stack. A worker keeps what it goes back to in a list, so a strand is never nested in another, and no call stack
//!   is ever too deep for a wait that takes any work;
//! - forks and joins of plain values, where the runtime pushes closures ([`stack`]);
//! - what trees do not have: spawned tasks, tasks from outside, guests, and waits for anything but a join. Worker 0 begins with the root, and the others look
//!   from the start;
//! - the thread: parking, which takes what the machine's description says (`threads`), and giving a processor away, which costs and
//!   gives it to nobody.
//!
//! The other three are Lace's loop, for comparison with its paper: no sleep, no pause, no exposure by thieves.

mod seeker;
mod stack;
mod worker;

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use anyhow::{Context as _, Result, ensure};
use poach_coherent::{CoherentWord, Description, Simulation};
use poach_memory::{CachePadded, Word};

use self::seeker::Idlers;
use self::stack::Stacks;
use super::{fits, why};
use crate::fib::FibTree;
use crate::fork::{Input, Program};
use crate::programs;
use crate::queens::QueensTree;
use crate::replay::Replay;
use crate::replay::strategy::Strategy;
use crate::replay::tree::{Form, Tree};
use crate::simulate::{self, lace};
use crate::uts::{BINOMIAL_3L, GEOMETRIC_2L, Shape, Uts, UtsTree};
use crate::{Case, Request, Sample, Size, Unit};

/// Slots of a stack: what the deepest of the trees needs.
const SLOTS: usize = 1 << 17;

/// How a worker looks for work.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Search {
    /// As Lace's, which waits by this strategy.
    Lace(Strategy),
    /// As Poach's.
    Poach,
}

impl Search {
    fn all() -> impl Iterator<Item = Search> {
        Strategy::ALL.into_iter().map(Search::Lace).chain([Search::Poach])
    }

    /// Its name on the command line.
    fn name(self) -> &'static str {
        match self {
            Search::Lace(strategy) => strategy.name(),
            Search::Poach => "split",
        }
    }

    /// Whether a worker that waits steals from more than the thief of what it waits for: down the chain of thieves.
    fn follows_further(self) -> bool {
        matches!(self, Search::Lace(Strategy::Transitive) | Search::Poach)
    }

    /// Whether a worker that waits steals from anybody.
    fn takes_any(self) -> bool {
        matches!(self, Search::Lace(Strategy::Random) | Search::Poach)
    }
}

/// A program of Lace's, by the tree of a size.
type Published = (&'static str, fn(Size) -> Box<dyn Replay>);

/// Lace's programs, by other names than where they are replayed without caches, and smaller than in its paper: what one worker does in a simulated second or two, in strands and tasks as long as
/// there.
const PUBLISHED: [Published; 4] = [
    ("lace-fib-caches", |size| {
        let whole = FibTree { n: 50, grain: 2, unit: 0.0 }.strands();
        let (n, grain) = size.pick((24, 8), (34, 14), (40, 16), (42, 16));
        Box::new(FibTree { n, grain, unit: picoseconds("lace-fib") / whole })
    }),
    ("lace-queens-caches", |size| {
        let n = size.pick(6, 9, 11, 12);
        Box::new(QueensTree {
            n,
            form: Form::Lace,
            unit: picoseconds("lace-queens") / lace::QUEENS_TASKS,
        })
    }),
    ("lace-uts-t2l-caches", |size| uts::<GEOMETRIC_2L>("lace-uts-t2l", size)),
    ("lace-uts-t3l-caches", |size| uts::<BINOMIAL_3L>("lace-uts-t3l", size)),
];

/// What one worker takes for the whole program, by Lace's paper.
fn picoseconds(name: &str) -> f64 {
    let published = lace::TABLE.iter().find(|program| program.name == name);
    published.map_or(0.0, |program| program.leapfrog.0 * 1e12)
}

fn uts<const KIND: usize>(name: &str, size: Size) -> Box<dyn Replay> {
    let (_, _, nodes) = Uts::<KIND>::published();
    let unit = picoseconds(name) / nodes as f64;
    // Every look of an idle worker is simulated, so the published trees take minutes at least: they are those of `--paper`. These have 62,689 and
    // 3,265,233 nodes, and as wide a root as the published ones.
    let binomial = |probability| (Shape::Binomial { root: 2_000, many: 8, probability }, 42);
    let (shape, seed) = match (KIND, size) {
        (BINOMIAL_3L, Size::Quick) => binomial(0.12),
        (BINOMIAL_3L, Size::Full) => binomial(0.1247),
        _ => {
            let (shape, seed, _) = Uts::<KIND>::new(size).parameters();
            (shape, seed)
        }
    };
    Box::new(UtsTree { shape, seed, form: Form::Lace, unit })
}

/// The tree of a program, made when the first case needs it.
type Made = Rc<OnceCell<Box<dyn Replay>>>;

pub(super) fn cases(machine: &Description, request: &Request, cases: &mut Vec<Case>) {
    let size = request.size;
    for (workload, tree) in PUBLISHED {
        let made = Made::default();
        for workers in request.workers.iter().copied() {
            for search in Search::all() {
                let make = move || Ok(tree(size));
                // What the paper's worker takes for a task holds its fork.
                cases.push(case(machine, workload, search, workers, &made, Inner::Free, make));
            }
        }
    }
    programs::each(&mut Lister { machine, request, cases });
}

/// This machine's programs, with the time that they take here.
struct Lister<'a> {
    machine: &'a Description,
    request: &'a Request,
    cases: &'a mut Vec<Case>,
}

impl programs::Visitor for Lister<'_> {
    fn visit<P: Program>(&mut self) {
        let (size, made, input) = (self.request.size, Made::default(), Input::<P>::default());
        for workers in self.request.workers.iter().copied() {
            let input = Rc::clone(&input);
            let make = move || simulate::tree(&input, size);
            let inner = Inner::Charged;
            self.cases.push(case(
                self.machine,
                P::NAME,
                Search::Poach,
                workers,
                &made,
                inner,
                make,
            ));
        }
    }
}

/// Whether forks within a strand take time of their own.
#[derive(Clone, Copy, PartialEq)]
enum Inner {
    Free,
    Charged,
}

fn case(
    machine: &Description,
    workload: &'static str,
    search: Search,
    workers: usize,
    made: &Made,
    inner: Inner,
    make: impl FnOnce() -> Result<Box<dyn Replay>> + 'static,
) -> Case {
    let (machine, made) = (machine.clone(), Rc::clone(made));
    let prepare = move || {
        fits(&machine, workers)?;
        if made.get().is_none() {
            let _ = made.set(make()?);
        }
        let fork = if inner == Inner::Charged { stack::private_fork(&machine)? } else { 0 };
        let mut seed = 0;
        Ok(move || {
            seed += 1;
            let tree = made.get().context("the tree was made")?;
            tree.play(&Setting { machine: &machine, workers, search, seed, fork })
        })
    };
    Case::new(workload, search.name(), workers, Unit::SECONDS, prepare).computed()
}

/// What a tree is played on.
pub(crate) struct Setting<'a> {
    machine: &'a Description,
    workers: usize,
    search: Search,
    seed: u64,
    /// Picoseconds of a fork and its join within a strand.
    fork: u64,
}

/// Plays a tree.
///
/// # Errors
///
/// If there is no address space for the stacks, or a strand was not run once.
pub(crate) fn play<T: Tree<Task: 'static> + Clone + 'static>(
    tree: &T,
    setting: &Setting<'_>,
) -> Result<Sample> {
    let Setting { machine, workers, search, seed, fork } = *setting;
    let idlers = Idlers::new(machine, workers);
    let pool = Rc::new(Pool {
        tree: tree.clone(),
        fork,
        search,
        stacks: Stacks::new(workers, SLOTS, |worker| match search {
            Search::Lace(_) => None,
            Search::Poach => Some(idlers.wakes(worker)),
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
    /// Of Lace's loop: for each worker one more than the number of the worker that it waits for, or 0.
    follows: Vec<CachePadded<CoherentWord>>,
    /// Of Poach's.
    idlers: Idlers,
    counts: Counts,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::Fib;
    use crate::fork::{Split, System as _};
    use crate::replay::tree::{NO_FORK, Stored, StoredStrand};

    /// Strands by their work in microseconds and the fork that ends them.
    fn tree<const N: usize>(strands: [(f32, u32); N]) -> Stored {
        let strand = |(weight, fork)| StoredStrand { weight, inner: 0, fork };
        Stored { strands: Rc::new(strands.map(strand)), unit: 1e6 }
    }

    fn played(tree: &impl Replay, workers: usize) -> Sample {
        let machine = Description::shipped("lace").unwrap();
        let setting =
            Setting { machine: &machine, workers, search: Search::Poach, seed: 1, fork: 0 };
        tree.play(&setting).unwrap()
    }

    #[test]
    fn an_idle_worker_sleeps_through_a_long_strand_and_takes_a_half_at_once() {
        // 20 ms in which there is nothing to steal: naps of 1, 2, 4 and 8 ms, each with a look after it.
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
        // On the worker itself: the calling thread would work as a guest, beside a worker that may ask it for tasks.
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
