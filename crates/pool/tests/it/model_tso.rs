//! SALSA on the simulated TSO machine, with every policy and unbounded store buffers.
//!
//! What loom cannot see: the fence-free policy, and the store buffer. What must fail is among the
//! mutants (`crates/models/mutants/src/table/salsa.rs`).
//!
//! Each question says how far it is answered: [`Coverage::Complete`], or a bound.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use poach_check::Coverage::{self, Complete, Executions, Preemptions};
use poach_check::history::{Call, Outcome};
use poach_check::{
    Config, Displacing, Report, Simulated, Spec, Strategy, Threads, Verdict, explore, operation,
};
use poach_memory::{Asymmetric, Full, Memory, StoreLoad};
use poach_models::thefts::{late_task, oversleeps, refused, robbed_and_fed};
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::salsa::{Salsa, SalsaCas};

type Asym = Asymmetric<Simulated>;

fn search(coverage: Coverage) -> Config {
    let exhaustive = |preemptions| Strategy::Exhaustive { preemptions, reduce: true, prune: true };
    let machine = Config { strategy: exhaustive(None), ..Config::default() };
    match coverage {
        Coverage::Complete => machine,
        Coverage::Preemptions(bound) => Config { strategy: exhaustive(Some(bound)), ..machine },
        Coverage::Executions(count) => Config { max_executions: count, ..machine },
    }
}

/// For models that do not end in a test's time.
fn first(executions: u64, preemptions: u32) -> Config {
    Config { max_executions: executions, ..search(Preemptions(preemptions)) }
}

/// The same as `search` without store buffers, for what does not depend on them.
fn sequential(coverage: Coverage) -> Config {
    Config { buffer: Config::sequential().buffer, ..search(coverage) }
}

fn clean(coverage: Coverage, model: impl Fn(&mut Threads)) {
    clean_on(coverage, &search(coverage), model);
}

fn clean_on(coverage: Coverage, machine: &Config, model: impl Fn(&mut Threads)) {
    let report = explore(machine, &model);
    print(&report);
    assert_eq!(report.clean(coverage), Ok(()), "{:?}", report.counterexample);
}

fn must_fail(coverage: Coverage, model: impl Fn(&mut Threads)) {
    let report = explore(&search(coverage), &model);
    print(&report);
    assert!(
        matches!(report.verdict, Verdict::Violation(_)),
        "the mistake was not found in {} executions",
        report.executions
    );
}

fn print(report: &Report) {
    println!("{:?}: {} executions, {:?}", report.verdict, report.executions, report.elapsed);
}

struct Found<C> {
    tasks: RefCell<Vec<u32>>,
    consumers: RefCell<Vec<C>>,
}

impl<C: Consume<u32> + 'static> Found<C> {
    fn new() -> Rc<Self> {
        Rc::new(Found { tasks: RefCell::default(), consumers: RefCell::default() })
    }

    fn keep(&self, consumer: C, taken: impl IntoIterator<Item = u32>) {
        self.tasks.borrow_mut().extend(taken);
        self.consumers.borrow_mut().push(consumer);
    }

    fn check(&self, most: u32) {
        let mut consumers = self.consumers.borrow_mut();
        let mut tasks = self.tasks.borrow_mut();
        let pools = consumers.len();
        for one in consumers.iter_mut() {
            for from in 0..pools {
                let me = one.number();
                while let Some(task) = if from == me { one.consume() } else { one.steal(from) } {
                    tasks.push(task);
                }
            }
        }
        tasks.sort_unstable();
        assert!(tasks.iter().copied().eq(1..=most), "of 1 to {most} were taken {tasks:?}");
    }
}

fn salsa<F: StoreLoad<Simulated> + Default>(chunk: usize) -> Arc<Salsa<u32, Simulated, F>> {
    Arc::new(Salsa::new(chunk).expect("memory"))
}

fn consume_against_steal<P: Mechanism<u32> + 'static>(pools: &Arc<P>, threads: &mut Threads)
where
    P::Consumer: 'static,
{
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    for number in 1..=2 {
        assert!(producer.produce_force(0, number).is_ok());
    }
    let found = Found::new();
    let (first, second) = (Rc::clone(&found), Rc::clone(&found));
    threads.spawn("owner", move || {
        let taken: Vec<_> = (0..2).filter_map(|_| owner.consume()).collect();
        first.keep(owner, taken);
    });
    threads.spawn("thief", move || {
        let taken = thief.steal(0);
        second.keep(thief, taken);
    });
    threads.finally(move || {
        found.check(2);
        drop(producer);
    });
}

/// The paper's figure 3: a task comes to the pool that was looked at, and then the last one leaves
/// the pool that was not. The pool is never empty.
fn never_empty<P: Mechanism<u32> + 'static>(pools: &Arc<P>, threads: &mut Threads)
where
    P::Consumer: 'static,
    P::Producer: 'static,
{
    let mut here = pools.producer().expect("memory");
    let mut there = pools.producer().expect("memory");
    let mut looker = Taker::at(pools, Policy::default(), 0).expect("memory");
    let mut taker = pools.consumer().expect("memory");
    assert!(there.produce_force(1, 1).is_ok());
    let found = Found::new();
    let first = Rc::clone(&found);
    threads.spawn("looker", move || {
        assert!(!looker.check_empty(), "it is said to be empty, and never was");
        drop(looker);
    });
    threads.spawn("taker", move || {
        assert!(here.produce_force(0, 2).is_ok());
        let taken = taker.consume();
        first.keep(taker, taken);
        drop(here);
    });
    threads.finally(move || drop((found, there)));
}

fn histories<P: Mechanism<u32> + 'static>(pools: &Arc<P>, threads: &mut Threads)
where
    P::Consumer: 'static,
    P::Producer: 'static,
{
    let mut feeder = Feeder::at(pools, Policy::default(), 0).expect("memory");
    let takers = ["a", "b"].map(|name| (name, Taker::at(pools, Policy::default(), 0)));
    for (name, taker) in takers {
        let mut taker = taker.expect("memory");
        let get = move || taker.get().map_or(Outcome::Empty, |task| Outcome::Task(task.into()));
        threads.spawn(name, move || {
            operation(Call::Steal, get);
        });
    }
    threads.spawn("producer", move || {
        for task in 1..=2 {
            operation(Call::Push(task.into()), || {
                assert!(feeder.put(task).is_ok());
                Outcome::Done
            });
        }
    });
    let pools = Arc::clone(pools);
    threads.finally(move || drop(pools));
}

/// No fence, for the models that must fail; [`poach_memory::Unfenced`] is no default.
#[derive(Default)]
struct Unfenced;

// SAFETY: not kept, on purpose: the tasks of these models are numbers.
unsafe impl<M: Memory> StoreLoad<M> for Unfenced {
    fn owner(&self) {}
    fn thief(&self) {}
}

#[test]
fn a_task_goes_to_the_owner_or_to_the_thief() {
    clean(Complete, |threads| consume_against_steal(&salsa::<Asym>(3), threads));
    clean(Complete, |threads| consume_against_steal(&salsa::<Full>(3), threads));
    must_fail(Complete, |threads| consume_against_steal(&salsa::<Unfenced>(3), threads));
}

#[test]
fn a_task_that_comes_during_a_theft_is_taken_once() {
    clean(Preemptions(3), late_task(|| Salsa::<u32, Simulated, Asym>::new(4)));
}

#[test]
fn a_thief_that_is_robbed_leaves_what_the_other_cannot_see() {
    let scene = robbed_and_fed(|| Salsa::<u32, Simulated, Asym>::new(4));
    clean_on(Executions(120_000), &first(120_000, 3), scene);
}

#[test]
fn a_thief_whose_visit_is_refused_waits_until_it_is_not() {
    // Those with one preemption take eight seconds.
    clean_on(
        Executions(20_000),
        &first(20_000, 1),
        refused(|allowed| {
            Salsa::<u32, Simulated, Displacing>::with_fences(3, move |consumer| {
                // SAFETY: a consumer is the model's thread of its number. The tasks are numbers.
                unsafe { Displacing::onto(consumer) }.until(Arc::clone(&allowed))
            })
        }),
    );
}

#[test]
fn empty_means_empty() {
    // What must fail here, and more scenes, are in `model_empty.rs` and `thefts.rs`.
    clean(Complete, |threads| never_empty(&salsa::<Asym>(2), threads));
}

#[test]
fn a_thief_that_oversleeps_is_stopped() {
    let scene = oversleeps(|| Salsa::<u32, Simulated, Asym>::new(2));
    clean_on(Preemptions(3), &sequential(Preemptions(3)), scene);
}

#[test]
fn every_history_is_a_pools() {
    fn linearizable<P: Mechanism<u32> + 'static>(make: impl Fn() -> Option<P>)
    where
        P::Consumer: 'static,
        P::Producer: 'static,
    {
        let config = first(6_000, 2).against(Spec::Pool);
        clean_on(Executions(6_000), &config, |threads| {
            histories(&Arc::new(make().expect("memory")), threads);
        });
    }
    linearizable(|| Salsa::<u32, Simulated, Asym>::new(1));
    linearizable(|| Salsa::<u32, Simulated, Full>::new(3));
    linearizable(|| SalsaCas::<u32, Simulated>::new(1));
    linearizable(|| ConcBag::<u32, Simulated>::new(2));
    linearizable(WsMsq::<u32, Simulated>::new);
    linearizable(WsLifo::<u32, Simulated>::new);
}

#[test]
fn the_rivals_take_each_task_once() {
    clean(Complete, |threads| {
        consume_against_steal(&Arc::new(SalsaCas::<u32, Simulated>::new(2).unwrap()), threads);
    });
    clean(Complete, |threads| {
        consume_against_steal(&Arc::new(WsMsq::<u32, Simulated>::new().unwrap()), threads);
    });
    clean(Complete, |threads| {
        consume_against_steal(&Arc::new(WsLifo::<u32, Simulated>::new().unwrap()), threads);
    });
}
