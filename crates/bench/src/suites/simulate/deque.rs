//! The suite `deque` in simulated time.
//!
//! | workload | what the owner does | the other workers | value |
//! |---|---|---|---|
//! | `owner-alternate` | push, pop, push, pop | none | ns a push and a pop |
//! | `owner-batch` | 1000 pushes, then 1000 pops | none | ns a push and a pop |
//! | `thief` | 1000 pushes, then pops until the queue is empty | steal without a pause | ns of the owner a push |
//! | `steals` | the same | the same | million tasks stolen a second |

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use anyhow::{Result, ensure};
use poach_deque::{
    BwosFifo, BwosLifo, ChaseLev, IdempotentDeque, IdempotentFifo, IdempotentLifo, Multiplicity,
    Mutex, Owner, PrivateDeque, Split, Steal, The, Thep, Thief,
};
use poach_memory::{Asymmetric, Bounded, CachePadded, Full, Ordering, Resolved, Word};
use poach_simulate::{Coherent, CoherentWord, Description, Simulation};

use super::{fits, why};
use crate::{Case, Request, Sample, Unit, promise};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Alternate,
    Batch,
    Owner,
    Steals,
}

const WORKLOADS: [(&str, Kind); 4] = [
    ("owner-alternate", Kind::Alternate),
    ("owner-batch", Kind::Batch),
    ("thief", Kind::Owner),
    ("steals", Kind::Steals),
];

/// What the owner does before it turns around.
const BATCH: u64 = 1000;

/// Tasks before the time begins.
const WARM_UP: u64 = 2 * BATCH;

/// Slots of a queue at first.
const CAPACITY: usize = 64;

pub(super) fn cases(machine: &Description, request: &Request, cases: &mut Vec<Case>) {
    for (workload, kind) in WORKLOADS {
        let alone = matches!(kind, Kind::Alternate | Kind::Batch);
        for workers in request.workers.iter().copied().filter(|n| alone == (*n == 1)) {
            let mut add = Lister { machine, request, workload, kind, workers, cases };
            add.each();
        }
    }
}

struct Lister<'a> {
    machine: &'a Description,
    request: &'a Request,
    workload: &'static str,
    kind: Kind,
    workers: usize,
    cases: &'a mut Vec<Case>,
}

impl Lister<'_> {
    /// Every queue that is generic over its memory.
    fn each(&mut self) {
        let delta = promise::simulated(self.machine.processor.store_buffer);
        self.case("mutex", true, || Ok(Mutex::<u64, Coherent>::default()));
        self.case("the", true, || Ok(The::<u64, _, Coherent>::starting_at(Full, CAPACITY, 0)?));
        self.case("ff-the", true, move || {
            Ok(The::<u64, _, Coherent>::starting_at(Bounded::new(delta)?, CAPACITY, 0)?)
        });
        self.case("thep", true, move || {
            Ok(Thep::<u64, _, Coherent>::starting_at(Bounded::new(delta)?, CAPACITY, 0)?)
        });
        self.case("chase-lev", true, || {
            Ok(ChaseLev::<u64, _, Coherent>::starting_at(Full, CAPACITY, 0)?)
        });
        self.case("ff-cl", true, move || {
            Ok(ChaseLev::<u64, _, Coherent>::starting_at(Bounded::new(delta)?, CAPACITY, 0)?)
        });
        self.case("asymmetric-cl", true, || {
            Ok(ChaseLev::<u64, _, Coherent>::starting_at(Asymmetric::new(), CAPACITY, 0)?)
        });
        self.case("resolved", true, move || {
            Ok(ChaseLev::<u64, _, Coherent>::starting_at(Resolved::new(delta)?, CAPACITY, 0)?)
        });
        self.case("split", true, || Ok(Split::<u64, Coherent>::with_capacity(CAPACITY)?));
        self.case("private", true, || Ok(PrivateDeque::<u64, Coherent>::default()));
        self.case("idempotent-lifo", false, || {
            Ok(IdempotentLifo::<u64, Coherent>::with_capacity(CAPACITY)?)
        });
        self.case("idempotent-fifo", false, || {
            Ok(IdempotentFifo::<u64, Coherent>::with_capacity(CAPACITY)?)
        });
        self.case("idempotent-deque", false, || {
            Ok(IdempotentDeque::<u64, Coherent>::with_capacity(CAPACITY)?)
        });
        self.case("multiplicity", false, || {
            Ok(Multiplicity::<u64, Coherent>::with_capacity(CAPACITY)?)
        });
        self.case("bwos-lifo", true, || Ok(BwosLifo::<u64, Coherent>::with_capacity(CAPACITY)?));
        self.case("bwos-fifo", true, || Ok(BwosFifo::<u64, Coherent>::with_capacity(CAPACITY)?));
    }

    fn case<O: Owner<u64> + 'static>(
        &mut self,
        name: &str,
        exact: bool,
        make: impl Fn() -> Result<O> + 'static,
    ) {
        let (machine, kind, workers) = (self.machine.clone(), self.kind, self.workers);
        // Thieves' looks at an empty queue are most accesses: their number is about the same for
        // any number of thieves.
        let tasks = self.request.size.pick(2_000, 20_000, 100_000, 1_000_000);
        let tasks =
            if workers > 1 { (8 * tasks / workers as u64).clamp(2_000, tasks) } else { tasks };
        let unit = if kind == Kind::Steals { Unit::MILLIONS_PER_SECOND } else { Unit::NANOSECONDS };
        let prepare = move || {
            fits(&machine, workers)?;
            let mut seed = 0;
            Ok(move || {
                seed += 1;
                sample(&machine, make()?, kind, workers, tasks, exact, seed)
            })
        };
        self.cases.push(Case::new(self.workload, name, workers, unit, prepare).computed());
    }
}

/// The number of tasks that a thread got, and their sum.
type Taken = Rc<Cell<(u64, u64)>>;

fn add(taken: &Taken, task: u64) {
    let (count, sum) = taken.get();
    taken.set((count + 1, sum + task));
}

fn sample<O: Owner<u64> + 'static>(
    machine: &Description,
    queue: O,
    kind: Kind,
    workers: usize,
    tasks: u64,
    exact: bool,
    seed: u64,
) -> Result<Sample> {
    let (own, stolen) = (Taken::default(), Taken::default());
    let done = Rc::new(CachePadded::new(CoherentWord::new(0)));
    let took = Rc::new(Cell::new((0, 0)));
    let mut simulation = Simulation::new(machine);
    simulation.seed(seed);
    for processor in 1..workers {
        let (thief, done, stolen) = (queue.thief(), Rc::clone(&done), Rc::clone(&stolen));
        simulation.thread(processor, "thief", move || {
            // Relaxed: what a thief misses by seeing it late is nothing.
            while done.load(Ordering::Relaxed) == 0 {
                if let Steal::Success(task) = thief.steal() {
                    add(&stolen, task);
                }
            }
        });
    }
    let (mine, time, so_far) = (Rc::clone(&own), Rc::clone(&took), Rc::clone(&stolen));
    simulation.thread(0, "owner", move || {
        // The queue grows, and its lines come from memory.
        run(&queue, kind, 0..WARM_UP, &mine);
        let (start, (stolen, _)) = (poach_simulate::now(), so_far.get());
        run(&queue, kind, WARM_UP..WARM_UP + tasks, &mine);
        time.set((poach_simulate::now() - start, so_far.get().0 - stolen));
        done.store(1, Ordering::Release);
    });
    let outcome = simulation.run()?;
    let (mut count, mut sum) = own.get();
    let (by_thieves, of_thieves) = stolen.get();
    (count, sum) = (count + by_thieves, sum + of_thieves);
    let all = WARM_UP + tasks;
    ensure!(
        !exact || (count, sum) == (all, all * (all - 1) / 2),
        "{all} tasks went in and {count} came out, with the sum {sum}"
    );
    let operations = if workers > 1 { by_thieves.max(1) } else { all };
    let (took, by_thieves) = took.get();
    let nanoseconds = took as f64 / 1000.0;
    let rate = by_thieves as f64 / nanoseconds * 1000.0;
    let value = if kind == Kind::Steals { rate } else { nanoseconds / tasks as f64 };
    let sample = Sample::from(value)
        .count("stolen", by_thieves as f64 / tasks as f64)
        .count("steals_M_per_s", rate)
        .count("accesses", outcome.accesses as f64);
    Ok(why::account(sample, &outcome, operations as f64))
}

fn run<O: Owner<u64>>(queue: &O, kind: Kind, tasks: Range<u64>, taken: &Taken) {
    let pop = || match queue.pop() {
        Some(task) => {
            add(taken, task);
            true
        }
        None => false,
    };
    if kind == Kind::Alternate {
        for task in tasks {
            queue.push(task);
            pop();
        }
        return;
    }
    for first in tasks.clone().step_by(BATCH as usize) {
        for task in first..tasks.end.min(first + BATCH) {
            queue.push(task);
        }
        while pop() {}
    }
}
