//! Programs that divide their work, on simulated processors with caches: the runtime's task stack under a loop of workers.
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
//! | `split` | Poach's: one of all others at random, then all, nearer ones first; asks a victim whose split has not moved in each fifth look alone; pauses between two rounds, and exposes private tasks after 16 of them | all down the chain of thieves, then as an idle worker |
//!
//! # What is the shipping source, and what is not
//!
//! The stack, its requests, its exposure, and the barrier are. The loop of the workers is written here once more, as the runtime's
//! (`scheduler/worker/search.rs`) is bound to threads of the system, thread-local variables and clocks. It has the runtime's order of looks, numbers
//! of looks and of pauses. It has no sleep, no back-off from steals that are too small, and no spawned tasks: each worker
//! has a processor for itself and looks on until the end.

mod stack;

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use anyhow::{Result, ensure};
use poach_coherent::{Coherent, CoherentWord, Description, Simulation};
use poach_deque::split::Exposure;
use poach_memory::{CachePadded, Memory, Ordering, Word};

use self::stack::{Joined, Owner, Stacks, Stolen};
use super::{distance, fits, why};
use crate::fib::FibTree;
use crate::fork::Program as _;
use crate::queens::QueensTree;
use crate::replay::strategy::Strategy;
use crate::replay::tree::{End, Form, Tree};
use crate::simulate::lace;
use crate::uts::{BINOMIAL_3L, GEOMETRIC_2L, Shape, Uts, UtsTree};
use crate::{Case, Request, Sample, Size, Unit};

/// Slots of a stack: what the deepest of the trees needs.
const SLOTS: usize = 1 << 17;

/// The runtime's: looks that find nothing before a worker exposes private tasks, looks in all between two exposures, and
/// pauses between two looks.
const EAGER_LOOKS: u32 = 16;
const LOOKS: u32 = 64;
const PAUSES: u32 = 8;
/// The runtime's: looks at a victim whose split has not moved before a worker asks it again.
const LOOKS_UNASKED: u32 = 4;

/// How a worker looks for work.
#[derive(Clone, Copy, PartialEq)]
enum Search {
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

/// A program, by the tree of a size.
type Program = (&'static str, fn(Size) -> Box<dyn Play>);

/// Lace's programs, by other names than where they are replayed without caches, and smaller than in its paper: what one worker does in a simulated second or two, in strands and tasks as long as
/// there.
const PROGRAMS: [Program; 4] = [
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

fn uts<const KIND: usize>(name: &str, size: Size) -> Box<dyn Play> {
    let (_, _, nodes) = Uts::<KIND>::published();
    let unit = picoseconds(name) / nodes as f64;
    // Every look of an idle worker is simulated, so the published trees are too large. These have 62,689 and 3,265,233 nodes,
    // and as wide a root as the published ones.
    let binomial = |probability| (Shape::Binomial { root: 2_000, many: 8, probability }, 42);
    let (shape, seed) = match (KIND, size) {
        (BINOMIAL_3L, Size::Quick) => binomial(0.12),
        (BINOMIAL_3L, Size::Full) => binomial(0.1247),
        _ => {
            let size = size.pick(Size::Tiny, Size::Quick, Size::Full, Size::Full);
            let (shape, seed, _) = Uts::<KIND>::new(size).parameters();
            (shape, seed)
        }
    };
    Box::new(UtsTree { shape, seed, form: Form::Lace, unit })
}

pub(super) fn cases(machine: &Description, request: &Request, cases: &mut Vec<Case>) {
    let size = request.size;
    for (workload, tree) in PROGRAMS {
        let made: Rc<OnceCell<Box<dyn Play>>> = Rc::default();
        for workers in request.workers.iter().copied() {
            for search in Search::all() {
                let (machine, made) = (machine.clone(), Rc::clone(&made));
                let prepare = move || {
                    fits(&machine, workers)?;
                    let mut seed = 0;
                    Ok(move || {
                        seed += 1;
                        made.get_or_init(|| tree(size)).play(&Setting {
                            machine: &machine,
                            workers,
                            search,
                            seed,
                        })
                    })
                };
                cases.push(
                    Case::new(workload, search.name(), workers, Unit::SECONDS, prepare).computed(),
                );
            }
        }
    }
}

struct Setting<'a> {
    machine: &'a Description,
    workers: usize,
    search: Search,
    seed: u64,
}

/// A tree, whatever its tasks are.
trait Play {
    fn play(&self, setting: &Setting<'_>) -> Result<Sample>;
}

impl<T: Tree<Task: 'static> + Clone + 'static> Play for T {
    fn play(&self, setting: &Setting<'_>) -> Result<Sample> {
        let Setting { machine, workers, search, seed } = *setting;
        let pool = Rc::new(Pool {
            tree: self.clone(),
            search,
            stacks: Stacks::new(workers, SLOTS)?,
            ended: CachePadded::new(CoherentWord::new(0)),
            follows: (0..workers).map(|_| CachePadded::new(CoherentWord::new(0))).collect(),
            order: (0..workers).map(|worker| victims(machine, worker, workers)).collect(),
            counts: Counts::default(),
        });
        let mut simulation = Simulation::new(machine);
        simulation.seed(seed);
        for worker in 0..workers {
            let pool = Rc::clone(&pool);
            simulation.thread(worker, "worker", move || pool.work(worker, seed));
        }
        let outcome = simulation.run()?;
        let Counts { strands, forks, steals, leaps, failed, exposures, depth } = &pool.counts;
        ensure!(
            strands.get() == 3 * forks.get() + 1,
            "{} strands were run for {} forks",
            strands.get(),
            forks.get()
        );
        let (grows, shrinks) = pool.stacks.counts();
        let took = outcome.end as f64 / 1e12;
        let sample = Sample::from(took)
            .count("forks", forks.get() as f64)
            .count("steals", steals.get() as f64)
            .count("leaps", leaps.get() as f64)
            .count("failed", failed.get() as f64)
            .count("exposures", exposures.get() as f64)
            .count("grows", grows as f64)
            .count("shrinks", shrinks as f64)
            .count("depth", depth.get() as f64)
            .count("accesses", outcome.accesses as f64);
        Ok(why::account(sample, &outcome, (steals.get() + leaps.get()).max(1) as f64))
    }
}

/// A worker's victims: those of one distance together, nearer ones first.
fn victims(machine: &Description, worker: usize, workers: usize) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); machine.levels.len() + 1];
    for other in (0..workers).filter(|other| *other != worker) {
        groups[distance(machine, worker, other) as usize].push(other);
    }
    groups.retain(|group| !group.is_empty());
    groups
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
    depth: Cell<usize>,
}

fn bump(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

/// What the workers of one simulation share.
struct Pool<T: Tree> {
    tree: T,
    search: Search,
    stacks: Stacks<T::Task>,
    ended: CachePadded<CoherentWord>,
    /// For each worker one more than the number of the worker that it waits for, or 0.
    follows: Vec<CachePadded<CoherentWord>>,
    order: Vec<Vec<Vec<usize>>>,
    counts: Counts,
}

/// What a worker goes back to when a task is done.
enum Frame<'s, T> {
    /// The first half was running; the second is on the stack, or stolen.
    First { after: T },
    /// The second half was running, here.
    Second { after: T },
    /// The second half is stolen, and this worker looks for other work.
    Waiting { after: T },
    /// A half of somebody else's was running.
    Stolen(Stolen<'s, T>),
}

/// One worker, on its simulated processor.
struct Worker<'p, T: Tree> {
    pool: &'p Pool<T>,
    number: usize,
    owner: Owner<'p, T::Task>,
    frames: Vec<Frame<'p, T::Task>>,
    random: fastrand::Rng,
    /// Looks in a row that have found nothing.
    looks: u32,
    /// By victim: where its split stood when it was asked, and looks since.
    asked: Vec<(Option<u64>, u32)>,
}

impl<T: Tree> Pool<T> {
    /// Works until the end. Worker 0 begins with the root.
    fn work(&self, number: usize, seed: u64) {
        let mut worker = Worker {
            pool: self,
            number,
            owner: self.stacks.owner(number),
            frames: Vec::new(),
            random: fastrand::Rng::with_seed(seed << 16 | number as u64),
            looks: 0,
            asked: vec![(None, 0); self.follows.len()],
        };
        let mut next = (number == 0).then(|| self.tree.root());
        // Relaxed: whoever sees it late has nothing to lose by it.
        while next.is_some() || self.ended.load(Ordering::Relaxed) == 0 {
            next = match next {
                Some(task) => worker.run(task),
                None => worker.look(),
            };
        }
    }
}

impl<'p, T: Tree> Worker<'p, T> {
    /// Runs a strand; what this worker runs next, if it knows.
    fn run(&mut self, task: T::Task) -> Option<T::Task> {
        let counts = &self.pool.counts;
        let strand = self.pool.tree.strand(task);
        bump(&counts.strands);
        poach_coherent::work(strand.work);
        match strand.end {
            End::Fork { first, second, after } => {
                bump(&counts.forks);
                self.owner.fork(second).expect("a stack holds the forks of the deepest tree");
                counts.depth.set(counts.depth.get().max(self.owner.depth()));
                self.frames.push(Frame::First { after });
                Some(first)
            }
            End::Done => self.finish(),
        }
    }

    /// A task is done.
    fn finish(&mut self) -> Option<T::Task> {
        match self.frames.pop() {
            Some(Frame::First { after }) => match self.owner.join() {
                Joined::Own(second) => {
                    self.frames.push(Frame::Second { after });
                    Some(second)
                }
                Joined::Stolen => {
                    self.frames.push(Frame::Waiting { after });
                    None
                }
            },
            Some(Frame::Second { after }) => Some(after),
            Some(Frame::Stolen(stolen)) => {
                stolen.finish();
                None
            }
            // What runs while a worker waits stands above a frame of its own.
            Some(Frame::Waiting { .. }) => unreachable!("a task that waits has ended"),
            None => {
                // Release: what the program has computed comes before it.
                self.pool.ended.store(1, Ordering::Release);
                None
            }
        }
    }

    /// Looks once: whether what this worker waits for is done, else for work.
    fn look(&mut self) -> Option<T::Task> {
        let (mut waits, mut thief) = (false, None);
        if let Some(Frame::Waiting { after }) = self.frames.last() {
            let after = *after;
            if self.owner.retire() {
                self.frames.pop();
                self.follow(None);
                self.looks = 0;
                return Some(after);
            }
            (waits, thief) = (true, self.owner.thief());
            self.follow(thief);
        }
        if let Some(stolen) = self.find(waits, thief) {
            let counts = &self.pool.counts;
            bump(if waits { &counts.leaps } else { &counts.steals });
            self.looks = 0;
            let task = stolen.task;
            self.frames.push(Frame::Stolen(stolen));
            Some(task)
        } else {
            self.found_nothing();
            None
        }
    }

    /// Says whom this worker waits for, for those who follow it further.
    fn follow(&self, thief: Option<usize>) {
        if self.pool.search.follows_further() {
            let word = &self.pool.follows[self.number];
            let new = thief.map_or(0, |thief| thief as u64 + 1);
            // Relaxed, both: this worker's own word, and a hint to the others.
            if word.load(Ordering::Relaxed) != new {
                word.store(new, Ordering::Relaxed);
            }
        }
    }

    /// `waits` if this worker is not idle; `thief` has what it waits for, if that is known.
    fn find(&mut self, waits: bool, mut thief: Option<usize>) -> Option<Stolen<'p, T::Task>> {
        let search = self.pool.search;
        if waits {
            let reach = if search.follows_further() { self.pool.follows.len() } else { 1 };
            for _ in 0..reach {
                let Some(victim) = thief.filter(|&victim| victim != self.number) else { break };
                if let Some(stolen) = self.steal(victim) {
                    return Some(stolen);
                }
                if reach > 1 {
                    // Relaxed: a hint.
                    let further = self.pool.follows[victim].load(Ordering::Relaxed);
                    thief = (further as usize).checked_sub(1);
                }
            }
            if !search.takes_any() {
                return None;
            }
        }
        if search == Search::Poach {
            return self.each_victim(Self::steal);
        }
        let victim = self.any_victim()?;
        self.steal(victim)
    }

    /// One of all others, if there are any.
    fn any_victim(&mut self) -> Option<usize> {
        let others = self.pool.follows.len() - 1;
        let victim = (others > 0).then(|| self.random.usize(..others))?;
        Some(victim + usize::from(victim >= self.number))
    }

    /// Asks one victim of all, if they are not all equally near, then in this worker's order, each group from anywhere on, until one has what is asked for.
    fn each_victim<R>(&mut self, mut ask: impl FnMut(&mut Self, usize) -> Option<R>) -> Option<R> {
        let pool = self.pool;
        let mut first = None;
        if pool.order[self.number].len() > 1 {
            let victim = self.any_victim()?;
            if let Some(found) = ask(self, victim) {
                return Some(found);
            }
            first = Some(victim);
        }
        pool.order[self.number].iter().find_map(|group| {
            let start = self.random.usize(..group.len());
            let (before, after) = group.split_at(start);
            let mut others = after.iter().chain(before).filter(|&&victim| Some(victim) != first);
            others.find_map(|&victim| ask(self, victim))
        })
    }

    fn steal(&mut self, victim: usize) -> Option<Stolen<'p, T::Task>> {
        let stacks = &self.pool.stacks;
        let remembers = self.pool.search == Search::Poach;
        let split = if remembers { stacks.empty_at(victim) } else { None };
        let (asked, looks) = &mut self.asked[victim];
        let is_up = split.is_some() && *asked == split && *looks < LOOKS_UNASKED;
        let stolen = if is_up { None } else { stacks.steal(victim, self.number) };
        if stolen.is_none() {
            (*asked, *looks) = (split, if is_up { *looks + 1 } else { 0 });
            bump(&self.pool.counts.failed);
        }
        stolen
    }

    fn found_nothing(&mut self) {
        if self.pool.search != Search::Poach {
            return;
        }
        self.looks += 1;
        if self.looks == EAGER_LOOKS || self.looks == LOOKS {
            let exposed =
                self.each_victim(|worker, victim| match worker.pool.stacks.expose(victim) {
                    Exposure::Refused => None,
                    exposure => Some(exposure),
                });
            if exposed.is_some() {
                bump(&self.pool.counts.exposures);
            }
            // The last look comes again, with its exposure.
            self.looks = self.looks.min(LOOKS - 2);
        }
        for _ in 0..PAUSES {
            Coherent::pause();
        }
    }
}
