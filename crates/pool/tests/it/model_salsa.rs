//! SALSA under loom: the C11 memory model, every interleaving up to a number of preemptions.
//!
//! loom knows no process-wide barrier: the policy is the full fence. The mistakes that the paper
//! warns of are among the mutants (`crates/models/mutants/src/table/salsa.rs`).

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;
use poach_memory::{Full, Loom, Memory, StoreLoad};
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::salsa::{Salsa, SalsaConsumer};

/// Plain data: a task taken twice must be found, not freed twice.
type Task = u32;
type Pools<F> = Arc<Salsa<Task, Loom, F>>;

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) -> usize {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    // Three consumers that drain all pools and leave them make some 1,100 accesses.
    builder.max_branches = 2000;
    let executions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&executions);
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        model();
    });
    executions.load(Ordering::Relaxed)
}

fn must_fail(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let outcome = catch_unwind(AssertUnwindSafe(|| explore(preemptions, model)));
    assert!(outcome.is_err(), "{outcome:?} executions, and the mistake was not found");
}

fn all_once(most: u32, taken: impl IntoIterator<Item = Task>) {
    let mut seen = BTreeSet::new();
    for task in taken {
        assert!(seen.insert(task), "task {task} was taken twice");
    }
    assert!(seen.iter().copied().eq(1..=most), "of 1 to {most} only {seen:?} were taken");
}

fn rest<F: StoreLoad<Loom>>(consumers: &mut [SalsaConsumer<Task, Loom, F>]) -> Vec<Task> {
    let mut found = Vec::new();
    for me in 0..consumers.len() {
        for from in 0..consumers.len() {
            let one = &mut consumers[me];
            while let Some(task) = if from == me { one.consume() } else { one.steal(from) } {
                found.push(task);
            }
        }
    }
    found
}

fn pools<F: StoreLoad<Loom> + Default>(chunk: usize) -> Pools<F> {
    Arc::new(Salsa::new(chunk).expect("memory"))
}

fn consume_against_steal<F: StoreLoad<Loom> + Default + 'static>() {
    let pools = pools::<F>(3);
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    for number in 1..=2 {
        assert!(producer.produce_force(0, number).is_ok());
    }
    let owner = thread::spawn(move || {
        let taken: Vec<_> = (0..2).filter_map(|_| owner.consume()).collect();
        (owner, taken)
    });
    let stolen = thief.steal(0);
    let (owner, mut taken) = owner.join().expect("no panic");
    taken.extend(stolen);
    taken.extend(rest(&mut [owner, thief]));
    all_once(2, taken);
}

fn a_task_comes_during_the_theft<F: StoreLoad<Loom> + Default + 'static>() {
    let pools = pools::<F>(4);
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    for number in 1..=2 {
        assert!(producer.produce_force(0, number).is_ok());
    }
    let mut taken: Vec<_> = owner.consume().into_iter().collect();
    let owner = thread::spawn(move || {
        let taken: Vec<_> = (0..2).filter_map(|_| owner.consume()).collect();
        (owner, taken)
    });
    let producer = thread::spawn(move || {
        assert!(producer.produce_force(0, 3).is_ok());
        producer
    });
    taken.extend(thief.steal(0));
    taken.extend(thief.consume());
    drop(producer.join().expect("no panic"));
    let (owner, more) = owner.join().expect("no panic");
    taken.extend(more);
    taken.extend(rest(&mut [owner, thief]));
    all_once(3, taken);
}

/// Two thieves, who may rob each other too, of a chunk whose owner does nothing.
fn steal_against_steal<F: StoreLoad<Loom> + Default + 'static>() {
    let pools = pools::<F>(2);
    let mut producer = pools.producer().expect("memory");
    let owner = pools.consumer().expect("memory");
    let mut first = pools.consumer().expect("memory");
    let mut second = pools.consumer().expect("memory");
    for number in 1..=2 {
        assert!(producer.produce_force(0, number).is_ok());
    }
    let first = thread::spawn(move || {
        let taken: Vec<_> = first.steal(0).into_iter().chain(first.steal(2)).collect();
        (first, taken)
    });
    let mut taken: Vec<_> = second.steal(0).into_iter().chain(second.steal(1)).collect();
    let (first, more) = first.join().expect("no panic");
    taken.extend(more);
    taken.extend(rest(&mut [owner, first, second]));
    all_once(2, taken);
}

/// A chunk of one is taken, retired and filled again while a thief has its eye on it.
fn a_chunk_is_used_again<F: StoreLoad<Loom> + Default + 'static>() {
    let pools = pools::<F>(1);
    let mut producer = pools.producer().expect("memory");
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    assert!(producer.produce_force(0, 1).is_ok());
    let owner = thread::spawn(move || {
        let mut taken: Vec<_> = owner.consume().into_iter().collect();
        assert!(producer.produce_force(0, 2).is_ok());
        taken.extend(owner.consume());
        (owner, taken)
    });
    let stolen = thief.steal(0);
    let (owner, mut taken) = owner.join().expect("no panic");
    taken.extend(stolen);
    taken.extend(rest(&mut [owner, thief]));
    all_once(2, taken);
}

#[test]
fn a_task_goes_to_the_owner_or_to_the_thief() {
    let executions = explore(3, consume_against_steal::<Full>);
    println!("{executions} executions");
}

#[test]
fn a_task_that_comes_during_a_theft_is_taken_once() {
    let executions = explore(2, a_task_comes_during_the_theft::<Full>);
    println!("{executions} executions");
}

#[test]
fn thieves_do_not_take_the_same_task() {
    let executions = explore(2, steal_against_steal::<Full>);
    println!("{executions} executions");
}

#[test]
fn a_chunk_is_not_used_again_under_a_thief() {
    let executions = explore(2, a_chunk_is_used_again::<Full>);
    println!("{executions} executions");
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
fn without_the_fence_a_task_is_taken_twice() {
    must_fail(3, consume_against_steal::<Unfenced>);
}
