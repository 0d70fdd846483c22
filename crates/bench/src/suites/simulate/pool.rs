//! The suite `pool` in simulated time: SALSA's figures on its paper's machine, and on others.
//!
//! | workload | threads | what |
//! |---|---|---|
//! | `balanced` | half produce, half consume | figure 4a |
//! | `ratio-1-3`, `ratio-3-1` | a quarter produce, a quarter consume | figure 4b |
//! | `one-producer` | one produces | figure 5, with the counter `exchanges_per_task` |
//! | `one-producer-unbalanced` | one produces, for one consumer | figure 6 |
//! | `scattered`, `central` | as `balanced`: threads and access lists in no order; all memory at one node | figure 7 |
//! | `chunks` | as `balanced` | figure 8: systems by chunk size |
//! | `pair` | one | puts a task and takes it, in turn: ns a pair |
//! | `1p1c`, `1p1c-unbalanced` | one produces, one consumes | as in the suite `pool`, to compare with it: until all tasks are taken |
//!
//! The value of the others is million tasks taken a second until the first producer has put all its
//! tasks. The time after that, when the pools run dry, is no part of the paper's figures: there the
//! producers never end. Memory is at the node of the processor that touches it first, and access
//! lists are by distance, but for figure 7's.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use poach_memory::{Asymmetric, CachePadded, Full, Memory, Ordering, Word};
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::baselines::{BAG_CHUNK_LENGTH, ConcBag};
use poach_pool::mechanism::Mechanism;
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::salsa::{Salsa, SalsaCas};
use poach_simulate::{Coherent, CoherentWord, Description, Simulation};

use super::{fits, why};
use crate::suites::pool::protocol::{BATCH, POLLS};
use crate::{Case, Request, Sample, Unit};

const CHUNK: usize = poach_pool::CHUNK_LENGTH;

type Fenceless = Salsa<u64, Coherent, Asymmetric<Coherent>>;

/// The threads that take part, and their places.
#[derive(Clone, Copy)]
struct Shape {
    workload: &'static str,
    producers: usize,
    consumers: usize,
    balancing: bool,
    place: Place,
    /// What its value is taken from.
    span: Span,
}

/// What the value of a row is taken from.
#[derive(Clone, Copy, PartialEq)]
enum Span {
    /// Until the first producer has put all of its own.
    Steady,
    /// Until the last task is taken.
    Whole,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Each producer beside its consumer, served in the order of distance.
    Near,
    /// In no order.
    Scattered,
    /// As `Near`, with all memory at the first node.
    Central,
}

/// The shapes of `threads` threads.
fn shapes(threads: usize) -> Vec<Shape> {
    let shape = |workload, producers, consumers| Shape {
        workload,
        producers,
        consumers,
        balancing: true,
        place: Place::Near,
        span: Span::Steady,
    };
    let mut shapes = Vec::new();
    if threads.is_multiple_of(2) {
        let half = shape("balanced", threads / 2, threads / 2);
        shapes.push(half);
        shapes.push(Shape { workload: "scattered", place: Place::Scattered, ..half });
        shapes.push(Shape { workload: "central", place: Place::Central, ..half });
        shapes.push(Shape { workload: "chunks", ..half });
    }
    if threads.is_multiple_of(4) {
        shapes.push(shape("ratio-1-3", threads / 4, threads / 4 * 3));
        shapes.push(shape("ratio-3-1", threads / 4 * 3, threads / 4));
    }
    if threads == 1 {
        shapes.push(Shape { span: Span::Whole, ..shape("pair", 1, 1) });
    }
    if threads == 2 {
        let whole = Shape { span: Span::Whole, ..shape("1p1c", 1, 1) };
        shapes.push(whole);
        shapes.push(Shape { workload: "1p1c-unbalanced", balancing: false, ..whole });
    }
    if threads >= 2 {
        let one = shape("one-producer", 1, threads - 1);
        shapes.push(one);
        shapes.push(Shape { workload: "one-producer-unbalanced", balancing: false, ..one });
    }
    shapes
}

pub(super) fn cases(machine: &Description, request: &Request, cases: &mut Vec<Case>) {
    for threads in request.workers.iter().copied() {
        for shape in shapes(threads) {
            let mut add = Lister { machine, request, shape, cases };
            match shape.workload {
                "chunks" => add.chunks(),
                "scattered" | "central" => {
                    add.case("salsa".to_owned(), || Fenceless::new(CHUNK));
                }
                "one-producer-unbalanced" | "1p1c-unbalanced" => add.salsas(),
                "pair" => add.pairs(),
                _ => {
                    add.salsas();
                    add.case("conc-bag".to_owned(), || {
                        ConcBag::<u64, Coherent>::new(BAG_CHUNK_LENGTH)
                    });
                    add.case("ws-msq".to_owned(), WsMsq::<u64, Coherent>::new);
                    add.case("ws-lifo".to_owned(), WsLifo::<u64, Coherent>::new);
                }
            }
        }
    }
}

struct Lister<'a> {
    machine: &'a Description,
    request: &'a Request,
    shape: Shape,
    cases: &'a mut Vec<Case>,
}

impl Lister<'_> {
    fn salsas(&mut self) {
        self.case("salsa".to_owned(), || Fenceless::new(CHUNK));
        self.case("salsa-cas".to_owned(), || SalsaCas::<u64, Coherent>::new(CHUNK));
    }

    fn pairs(&mut self) {
        self.pair("salsa", || Fenceless::new(CHUNK));
        self.pair("salsa-full-fence", || Salsa::<u64, Coherent, Full>::new(CHUNK));
        self.pair("salsa-cas", || SalsaCas::<u64, Coherent>::new(CHUNK));
        self.pair("conc-bag", || ConcBag::<u64, Coherent>::new(BAG_CHUNK_LENGTH));
        self.pair("ws-msq", WsMsq::<u64, Coherent>::new);
        self.pair("ws-lifo", WsLifo::<u64, Coherent>::new);
    }

    fn pair<P: Mechanism<u64> + 'static>(
        &mut self,
        name: &str,
        make: impl Fn() -> Option<P> + 'static,
    ) {
        let machine = self.machine.clone();
        let tasks = self.request.size.pick(1_000, 20_000, 100_000, 1_000_000);
        let prepare = move || {
            let mut seed = 0;
            Ok(move || {
                seed += 1;
                let pools = make().context("there is no memory for a pool")?;
                pair(&machine, pools, tasks, seed)
            })
        };
        self.cases.push(Case::new("pair", name, 1, Unit::NANOSECONDS, prepare).computed());
    }

    fn chunks(&mut self) {
        for chunk in [16, 64, 128, 256, 1000, 4000] {
            self.case(format!("salsa-{chunk}"), move || Fenceless::new(chunk));
            self.case(format!("salsa-cas-{chunk}"), move || SalsaCas::<u64, Coherent>::new(chunk));
            self.case(format!("conc-bag-{chunk}"), move || ConcBag::<u64, Coherent>::new(chunk));
        }
    }

    fn case<P: Mechanism<u64> + 'static>(
        &mut self,
        name: String,
        make: impl Fn() -> Option<P> + 'static,
    ) {
        let (machine, shape) = (self.machine.clone(), self.shape);
        let threads = shape.producers + shape.consumers;
        // For each thread, so that all have several chunks.
        let tasks = self.request.size.pick(300, 2_000, 6_000, 30_000) * threads as u64;
        let prepare = move || {
            fits(&machine, threads)?;
            let mut seed = 0;
            Ok(move || {
                seed += 1;
                let pools = make().context("there is no memory for a pool")?;
                sample(&machine, shape, pools, tasks, seed)
            })
        };
        let unit = Unit::MILLIONS_PER_SECOND;
        self.cases.push(Case::new(shape.workload, name, threads, unit, prepare).computed());
    }
}

/// The processor of each thread: producers first, then consumers.
fn places(machine: &Description, shape: Shape, seed: u64) -> Vec<usize> {
    let Shape { producers, consumers, .. } = shape;
    // Producers and consumers are spread evenly over as many processors as there are threads.
    let threads = producers + consumers;
    let mut processors: Vec<usize> = (0..threads).collect();
    if shape.place == Place::Scattered {
        processors = (0..machine.processors).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut processors);
        processors.truncate(threads);
    }
    let (mut of_producers, mut of_consumers) = (Vec::new(), Vec::new());
    for (at, processor) in processors.into_iter().enumerate() {
        let due = (at + 1) * producers / threads;
        if due > of_producers.len() || of_consumers.len() == consumers {
            of_producers.push(processor);
        } else {
            of_consumers.push(processor);
        }
    }
    of_producers.extend(of_consumers);
    of_producers
}

/// How many tasks a consumer takes before it tells the others; in the suite `pool` [`BATCH`].
const TOLD: u64 = 256;

/// One thread that puts and takes in turn, after as many tasks again.
fn pair<P: Mechanism<u64> + 'static>(
    machine: &Description,
    pools: P,
    tasks: u64,
    seed: u64,
) -> Result<Sample> {
    let pools = Arc::new(pools);
    let mut taker = Taker::at(&pools, Policy::default(), 0)?;
    let mut feeder = Feeder::at(&pools, Policy::default(), 0)?;
    let done = Rc::new(Cell::new((0, 0)));
    let mut simulation = Simulation::new(machine);
    simulation.seed(seed);
    let mine = Rc::clone(&done);
    simulation.thread(0, "worker", move || {
        let mut start = 0;
        let mut taken = 0;
        for task in 0..2 * tasks {
            if task == tasks {
                start = poach_simulate::now();
            }
            assert!(feeder.put(task).is_ok(), "there is no memory for a task");
            taken += u64::from(taker.get() == Some(task));
        }
        mine.set((poach_simulate::now() - start, taken));
    });
    let outcome = simulation.run()?;
    let (took, taken) = done.get();
    ensure!(taken == 2 * tasks, "{taken} of {} tasks came out in turn", 2 * tasks);
    let sample = Sample::from(took as f64 / 1000.0 / tasks as f64)
        .count("accesses", outcome.accesses as f64);
    Ok(why::account(sample, &outcome, (2 * tasks) as f64))
}

fn sample<P: Mechanism<u64> + 'static>(
    machine: &Description,
    shape: Shape,
    pools: P,
    tasks: u64,
    seed: u64,
) -> Result<Sample> {
    let Shape { producers, consumers, .. } = shape;
    let pools = Arc::new(pools);
    let places = places(machine, shape, seed);
    let mut policy = Policy::default();
    policy.balancing = shape.balancing;
    if shape.place != Place::Scattered {
        let (machine, seats) = (machine.clone(), places[producers..].to_vec());
        policy.distance = Arc::new(move |home, pool| {
            seats.get(pool).map_or(u64::MAX, |seat| machine.distance(home, *seat))
        });
    }
    let done = Rc::new(CachePadded::new(CoherentWord::new(0)));
    let sums = Rc::new(Cell::new((0_u64, 0_u64)));
    let exchanges = Rc::new(Cell::new(0));
    // When the first producer ended, and how many tasks had been taken by then.
    let until = Rc::new(Cell::new(None));
    let whole = shape.span == Span::Whole;
    let told = if whole { BATCH } else { TOLD };
    let last = Rc::new(Cell::new(0));
    let mut simulation = Simulation::new(machine);
    simulation.seed(seed);
    if shape.place == Place::Central {
        simulation.central(0);
    }
    for place in &places[producers..] {
        let mut taker = Taker::at(&pools, policy.clone(), *place)?;
        let (done, sums) = (Rc::clone(&done), Rc::clone(&sums));
        let (exchanges, last) = (Rc::clone(&exchanges), Rc::clone(&last));
        simulation.thread(*place, "consumer", move || {
            let (mut untold, mut polls) = (0, 0);
            loop {
                if let Some(task) = taker.get() {
                    let (count, sum) = sums.get();
                    sums.set((count + 1, sum + task));
                    (untold, polls) = (untold + 1, 0);
                    if untold == told {
                        done.fetch_add(std::mem::take(&mut untold), Ordering::Relaxed);
                    }
                    continue;
                }
                if untold > 0 {
                    done.fetch_add(std::mem::take(&mut untold), Ordering::Relaxed);
                }
                if done.load(Ordering::Relaxed) >= tasks {
                    break;
                }
                polls += 1;
                if whole && polls > POLLS {
                    Coherent::give_way();
                } else {
                    Coherent::pause();
                }
            }
            last.set(last.get().max(poach_simulate::now()));
            exchanges.set(exchanges.get() + taker.exchanges());
        });
    }
    for (number, place) in places[..producers].iter().enumerate() {
        let mut feeder = Feeder::at(&pools, policy.clone(), *place)?;
        let (sums, until) = (Rc::clone(&sums), Rc::clone(&until));
        simulation.thread(*place, "producer", move || {
            for task in (number as u64..tasks).step_by(producers) {
                assert!(feeder.put(task).is_ok(), "there is no memory for a task");
            }
            let (taken, _) = sums.get();
            until.set(until.get().or(Some((poach_simulate::now(), taken))));
        });
    }
    let outcome = simulation.run()?;
    let (count, sum) = sums.get();
    ensure!(
        (count, sum) == (tasks, tasks * (tasks - 1) / 2),
        "{tasks} tasks went in and {count} came out of {consumers} consumers, with the sum {sum}"
    );
    let steady = until.get().context("no producer has ended")?;
    let (time, taken) = if whole { (last.get(), tasks) } else { steady };
    let sample = Sample::from(taken as f64 / time.max(1) as f64 * 1e6)
        .count("exchanges_per_task", exchanges.get() as f64 / tasks as f64)
        .count("accesses", outcome.accesses as f64);
    Ok(why::account(sample, &outcome, tasks as f64))
}
