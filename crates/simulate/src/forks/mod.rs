//! Programs that divide their work, on simulated processors with caches: the runtime's task stacks
//! and its scheduler.
//!
//! A program is its task tree, a [`Tree`]. A strand takes the time that the tree says. A fork, a
//! join and a theft run the stack's own source on the simulated memory. So the move of a task to
//! another processor, a request and a failed steal cost what their cache lines cost.
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
//! Of `split` all decisions of the scheduler are shipping source:
//!
//! - the loop of a worker and its order of looks (`search` and `unrestricted` in the runtime's
//!   `scheduler`), and the time that an idle worker looks;
//! - the victim order, the requests, and the back-off from small steals;
//! - the naps, the protocol of sleep and wake, and the policy by which owners wake.
//!
//! They are generic over the worker, the memory and the clock ([`poach_runtime::generic`]). What is
//! written here is the worker, and
//!
//! - the call stack. A worker keeps what it goes back to in a list, so a strand is never nested in
//!   another, and no call stack is ever too deep for a wait that takes any work;
//! - forks and joins of plain values, where the runtime pushes closures;
//! - what trees do not have: spawned tasks, tasks from outside, guests, and waits for anything but
//!   a join. Worker 0 begins with the root, and the others look from the start;
//! - the thread: parking, which takes what the machine's description says (`threads`), and giving a
//!   processor away, which costs and gives it to nobody.
//!
//! The other three are Lace's loop, for comparison with its paper: no sleep, no pause, no exposure
//! by thieves.

mod seeker;
mod stack;
mod tree;
mod worker;

use std::cell::Cell;
use std::rc::Rc;

use poach_memory::{CachePadded, Word};

use self::seeker::Idlers;
use self::stack::Stacks;
pub use self::stack::private_fork;
pub use self::tree::{End, NO_FORK, Stored, StoredStrand, Strand, Totals, Tree, totals};
use crate::{CoherentWord, Description, Failure, Outcome, Simulation};

/// Slots of a stack: what the deepest of the trees needs.
const SLOTS: usize = 1 << 17;

/// Why a tree was not played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no address space for a task stack of each worker.
    #[error("no task stack for each simulated worker: {0}")]
    Stacks(#[source] poach_deque::split::StackError),
    /// The simulation failed.
    #[error(transparent)]
    Simulation(#[from] Failure),
    /// Not every strand was run exactly once.
    #[error("{strands} strands were run for {forks} forks")]
    Strands {
        /// Strands that were run.
        strands: u64,
        /// Forks that were made; each has three strands, and the first strand has none.
        forks: u64,
    },
}

/// How a worker looks for work: by one of the loops of Lace's paper (sections 1.2 and 4.3), or by
/// Poach's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// A worker that waits for a stolen half steals from the thief of that half alone: what it
    /// steals there is part of what it waits for.
    Leapfrog,
    /// From the thief, then from the thief of what the thief waits for, and so on.
    Transitive,
    /// From the thief, then from any worker.
    Random,
    /// As Poach's workers.
    Poach,
}

impl Search {
    /// All of them.
    pub const ALL: [Search; 4] =
        [Search::Leapfrog, Search::Transitive, Search::Random, Search::Poach];

    /// Its name on the command line and in documents.
    pub fn name(self) -> &'static str {
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

    /// Whether a waiting worker steals from any worker.
    fn takes_any(self) -> bool {
        matches!(self, Search::Random | Search::Poach)
    }
}

/// What a tree is played on.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The machine; worker n is bound to its processor n.
    pub machine: &'a Description,
    /// How many workers there are.
    pub workers: usize,
    /// How they look for work.
    pub search: Search,
    /// Decides which victims the workers begin with.
    pub seed: u64,
    /// Picoseconds of a fork and its join within a strand: 0, or [`private_fork`].
    pub fork: u64,
}

/// What happened while a tree was played.
#[derive(Clone, Debug)]
pub struct Played {
    /// When the last strand had ended, in picoseconds.
    pub took: u64,
    /// Forks that could be stolen from.
    pub forks: u64,
    /// Steals by idle workers.
    pub steals: u64,
    /// Steals by workers that wait for a stolen half.
    pub leaps: u64,
    /// Looks at a victim that had nothing.
    pub failed: u64,
    /// Tasks that thieves made visible.
    pub exposures: u64,
    /// Sleeps and rests.
    pub sleeps: u64,
    /// How often owners shared tasks.
    pub grows: u64,
    /// How often owners took shared tasks back.
    pub shrinks: u64,
    /// The most forks that one worker had under way at once.
    pub depth: usize,
    /// What the simulation says.
    pub outcome: Outcome,
}

/// Plays a tree on a machine.
///
/// # Errors
///
/// If there is no address space for the stacks, the simulation fails (more workers than
/// processors), or a strand was not run once.
pub fn play<T: Tree<Task: 'static> + Clone + 'static>(
    tree: &T,
    setting: &Setting<'_>,
) -> Result<Played, Error> {
    let Setting { machine, workers, search, seed, fork } = *setting;
    let idlers = Idlers::new(machine, workers);
    let stacks = Stacks::new(workers, SLOTS, |worker| {
        (search == Search::Poach).then(|| idlers.wakes(worker))
    });
    let pool = Rc::new(Pool {
        tree: tree.clone(),
        fork,
        search,
        stacks: stacks.map_err(Error::Stacks)?,
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
    let counts = &pool.counts;
    let (strands, forks) = (counts.strands.get(), counts.forks.get());
    if strands != 3 * forks + 1 {
        return Err(Error::Strands { strands, forks });
    }
    let (grows, shrinks) = pool.stacks.counts();
    Ok(Played {
        took: counts.took.get(),
        forks,
        steals: counts.steals.get(),
        leaps: counts.leaps.get(),
        failed: counts.failed.get(),
        exposures: counts.exposures.get(),
        sleeps: counts.sleeps.get(),
        grows,
        shrinks,
        depth: counts.depth.get(),
        outcome,
    })
}

#[derive(Default)]
struct Counts {
    strands: Cell<u64>,
    forks: Cell<u64>,
    /// Steals by idle workers, and by waiting workers.
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
    /// For Lace's loop: for each worker one more than the number of the worker that it waits for,
    /// or 0.
    follows: Vec<CachePadded<CoherentWord>>,
    /// For Poach's loop.
    idlers: Idlers,
    counts: Counts,
}
