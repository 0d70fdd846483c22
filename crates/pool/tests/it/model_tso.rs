//! SALSA on the simulated TSO machine, with every policy and unbounded store buffers.
//!
//! What loom cannot see is here: the fence-free policy (an asymmetric fence), and what the store
//! buffer does without it. Each question is asked of the algorithm, which must be clean, and of the
//! algorithm without the check that the question is about, which must not.
//!
//! Each question says how far it is answered: [`Coverage::Complete`] for every execution, else a
//! bound, which is never called complete. A mistake is looked for in the same executions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use poach_check::Coverage::{self, Complete, Executions, Preemptions};
use poach_check::history::{Call, Outcome};
use poach_check::{
    Config, Displacing, Report, Simulated, Spec, Strategy, Threads, Verdict, explore, operation,
};
use poach_memory::{Asymmetric, Full, Memory, StoreLoad};
use poach_models::thefts::refused;
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::salsa::{Checks, EveryCheck, Salsa, SalsaCas};

type Asym = Asymmetric<Simulated>;

/// The search that covers so much, on a machine with store buffers without a bound.
fn search(coverage: Coverage) -> Config {
    let exhaustive = |preemptions| Strategy::Exhaustive { preemptions, reduce: true, prune: true };
    let machine = Config { strategy: exhaustive(None), ..Config::default() };
    match coverage {
        Coverage::Complete => machine,
        Coverage::Preemptions(bound) => Config { strategy: exhaustive(Some(bound)), ..machine },
        Coverage::Executions(count) => Config { max_executions: count, ..machine },
    }
}

/// The first so many executions of those with at most so many preemptions: what does not end in a
/// test's time.
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
    must_fail_on(&search(coverage), model);
}

fn must_fail_on(machine: &Config, model: impl Fn(&mut Threads)) {
    let report = explore(machine, &model);
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

/// What the threads of a model took, and the handles they leave to the final check.
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

    /// Each of 1 to `most` was taken once, or is left and is taken now.
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

fn salsa<F: StoreLoad<Simulated> + Default, C: Checks>(
    chunk: usize,
) -> Arc<Salsa<u32, Simulated, F, C>> {
    Arc::new(Salsa::new(chunk).expect("memory"))
}

/// The owner takes two while a thief steals the chunk they are in.
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

/// A task comes while the thief is in its window; the owner may see it and the thief may not.
fn a_task_comes_during_the_theft<F, C>(threads: &mut Threads)
where
    F: StoreLoad<Simulated> + Default + 'static,
    C: Checks + 'static,
{
    let pools = salsa::<F, C>(4);
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    for number in 1..=2 {
        assert!(producer.produce_force(0, number).is_ok());
    }
    let found = Found::new();
    found.tasks.borrow_mut().extend(owner.consume());
    let (first, second) = (Rc::clone(&found), Rc::clone(&found));
    threads.spawn("owner", move || {
        let taken: Vec<_> = (0..2).filter_map(|_| owner.consume()).collect();
        first.keep(owner, taken);
    });
    threads.spawn("thief", move || {
        let taken: Vec<_> = thief.steal(0).into_iter().chain(thief.consume()).collect();
        second.keep(thief, taken);
    });
    let kept = Rc::new(RefCell::new(None));
    let keep = Rc::clone(&kept);
    threads.spawn("producer", move || {
        assert!(producer.produce_force(0, 3).is_ok());
        *keep.borrow_mut() = Some(producer);
    });
    threads.finally(move || {
        found.check(3);
        drop(kept);
    });
}

/// A second thief robs the first in its window, while the owner takes and a task comes.
fn steal_against_steal<F, C>(threads: &mut Threads)
where
    F: StoreLoad<Simulated> + Default + 'static,
    C: Checks + 'static,
{
    let pools = salsa::<F, C>(4);
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut first = pools.consumer().expect("memory");
    let mut second = pools.consumer().expect("memory");
    assert!(producer.produce_force(0, 1).is_ok());
    let found = Found::new();
    let keep = [(); 3].map(|()| Rc::clone(&found));
    let [a, b, c] = keep;
    threads.spawn("owner", move || {
        let taken = owner.consume();
        a.keep(owner, taken);
    });
    threads.spawn("first thief", move || {
        let taken = first.steal(0);
        b.keep(first, taken);
    });
    threads.spawn("second thief", move || {
        let taken = second.steal(1);
        c.keep(second, taken);
    });
    let kept = Rc::new(RefCell::new(None));
    let keep = Rc::clone(&kept);
    threads.spawn("producer", move || {
        assert!(producer.produce_force(0, 2).is_ok());
        *keep.borrow_mut() = Some(producer);
    });
    threads.finally(move || {
        found.check(2);
        drop(kept);
    });
}

/// What the tag is there for: a thief that has read a chunk in one life of it and steals it in
/// another.
///
/// The thief reads that one task of two is taken. The owner takes the second, and with it ends the
/// chunk; the producer begins it again, for the same owner, which is about to publish its first
/// task. The thief steals. A robber steals from the thief, has that task and another that comes,
/// and is done. Now the owner publishes: as much is taken as the thief read in the other life, so
/// that it need not look again where it should (line 125), and has the robber's second task.
fn a_thief_oversleeps<C: Checks + 'static>(threads: &mut Threads) {
    let pools = salsa::<Asym, C>(2);
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    let mut robber = pools.consumer().expect("memory");
    assert!((1..=2).all(|task| producer.produce_force(0, task).is_ok()));
    let found = Found::new();
    found.tasks.borrow_mut().extend(owner.consume());
    let [a, b, c] = [(); 3].map(|()| Rc::clone(&found));
    // One hands the producer to the other.
    let hand = Rc::new(RefCell::new(None));
    let [from, to] = [(); 2].map(|()| Rc::clone(&hand));
    threads.spawn("owner", move || {
        let first = owner.consume();
        assert!(producer.produce_force(0, 3).is_ok());
        *from.borrow_mut() = Some(producer);
        let taken: Vec<_> = first.into_iter().chain(owner.consume()).collect();
        a.keep(owner, taken);
    });
    threads.spawn("thief", move || {
        let taken = thief.steal(0);
        b.keep(thief, taken);
    });
    let most = Rc::new(Cell::new(3));
    let one_more = Rc::clone(&most);
    threads.spawn("robber", move || {
        let first = robber.steal(1);
        // Without both this is none of the executions that are asked about.
        if let (Some(_), Some(producer)) = (first, to.borrow_mut().as_mut()) {
            assert!(producer.produce_force(0, 4).is_ok());
            one_more.set(4);
        }
        let taken: Vec<_> = first.into_iter().chain(robber.consume()).collect();
        c.keep(robber, taken);
    });
    threads.finally(move || {
        found.check(most.get());
        drop(hand);
    });
}

/// The paper's figure 3: a task comes to the pool that was looked at, and then the last one leaves
/// the pool that was not. The pool is never empty.
fn never_empty<P: Mechanism<u32> + 'static>(
    pools: &Arc<P>,
    traversals: fn(usize) -> usize,
    threads: &mut Threads,
) where
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
        assert!(!looker.check_empty_by(traversals), "it is said to be empty, and never was");
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

/// Two consumers get, a producer puts: every history is a pool's.
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

struct WithoutFirstLook;
// SAFETY: none, on purpose: a mistake that must show. Its tasks are numbers, which may be taken
// twice.
unsafe impl Checks for WithoutFirstLook {
    const FIRST_LOOK: bool = false;
}

struct WithoutSecondLook;
// SAFETY: none, on purpose: a mistake that must show. Its tasks are numbers, which may be taken
// twice.
unsafe impl Checks for WithoutSecondLook {
    const SECOND_LOOK: bool = false;
}

struct WithoutLookForOwner;
// SAFETY: none, on purpose: a mistake that must show. Its tasks are numbers, which may be taken
// twice.
unsafe impl Checks for WithoutLookForOwner {
    const LOOK_FOR_OWNER: bool = false;
}

struct WithoutRecheck;
// SAFETY: none, on purpose: a mistake that must show. Its tasks are numbers, which may be taken
// twice.
unsafe impl Checks for WithoutRecheck {
    const RECHECK: bool = false;
}

struct WithoutTag;
// SAFETY: none, on purpose: a mistake that must show. Its tasks are numbers, which may be taken
// twice.
unsafe impl Checks for WithoutTag {
    const TAG: bool = false;
}

/// A hazard pointer that comes after the reading.
struct Late;
// SAFETY: none, on purpose: a mistake that must show. Its tasks are numbers, which may be taken
// twice.
unsafe impl Checks for Late {
    const PROTECT_FIRST: bool = false;
}

/// No fence, for the models that must fail; [`poach_memory::Unfenced`] is no default.
#[derive(Default)]
struct Unfenced;

// SAFETY: not kept, on purpose: the tasks of these models are numbers.
unsafe impl<M: Memory> StoreLoad<M> for Unfenced {
    fn owner(&self) {}
    fn thief(&self) {}
}

struct LateWithoutTag;
// SAFETY: none, on purpose: a mistake that must show. Its tasks are numbers, which may be taken
// twice.
unsafe impl Checks for LateWithoutTag {
    const PROTECT_FIRST: bool = false;
    const TAG: bool = false;
}

#[test]
fn a_task_goes_to_the_owner_or_to_the_thief() {
    clean(Complete, |threads| consume_against_steal(&salsa::<Asym, EveryCheck>(3), threads));
    clean(Complete, |threads| consume_against_steal(&salsa::<Full, EveryCheck>(3), threads));
    must_fail(Complete, |threads| {
        consume_against_steal(&salsa::<Unfenced, EveryCheck>(3), threads);
    });
    must_fail(Complete, |threads| {
        consume_against_steal(&salsa::<Asym, WithoutSecondLook>(3), threads);
    });
    must_fail(Complete, |threads| {
        consume_against_steal(&salsa::<Asym, WithoutLookForOwner>(3), threads);
    });
}

#[test]
fn a_task_that_comes_during_a_theft_is_taken_once() {
    clean(Preemptions(3), a_task_comes_during_the_theft::<Asym, EveryCheck>);
    must_fail(Preemptions(3), a_task_comes_during_the_theft::<Asym, WithoutFirstLook>);
}

#[test]
fn a_thief_that_is_robbed_leaves_what_the_other_cannot_see() {
    clean_on(Executions(120_000), &first(120_000, 3), steal_against_steal::<Asym, EveryCheck>);
    must_fail(Preemptions(3), steal_against_steal::<Asym, WithoutRecheck>);
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
    let enough: fn(usize) -> usize = |moving| 2 * moving + 2;
    clean(Complete, |threads| never_empty(&salsa::<Asym, EveryCheck>(2), enough, threads));
}

#[test]
fn the_argument_does_not_rest_on_the_tag() {
    clean(Complete, |threads| consume_against_steal(&salsa::<Asym, WithoutTag>(3), threads));
    clean_on(Executions(120_000), &first(120_000, 3), steal_against_steal::<Asym, WithoutTag>);
}

#[test]
fn a_thief_that_oversleeps_is_stopped_by_the_tag() {
    must_fail_on(&sequential(Preemptions(3)), a_thief_oversleeps::<LateWithoutTag>);
    clean_on(Preemptions(3), &sequential(Preemptions(3)), a_thief_oversleeps::<Late>);
}

#[test]
fn a_thief_that_oversleeps_is_stopped_by_its_hazard_pointer() {
    clean_on(Preemptions(3), &sequential(Preemptions(3)), a_thief_oversleeps::<WithoutTag>);
    clean_on(Preemptions(3), &sequential(Preemptions(3)), a_thief_oversleeps::<EveryCheck>);
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
