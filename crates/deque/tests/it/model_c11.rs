//! Queues under the memory model of C11, where loom sees too little: its fences are no points at
//! which threads change.
//!
//! The searches are bounded in preemptions, as each test says; each load may read a value that is
//! not the latest.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.

use std::rc::Rc;

use poach_check::{Config, Simulated, Threads, explore};
use poach_deque::{
    Biased, BwosFifo, BwosLifo, ChaseLev, Fifo, IdempotentDeque, IdempotentFifo, IdempotentLifo,
    Multiplicity, Mutex, Owner, Steal, The, Thep, Thief,
};
use poach_memory::{Asymmetric, Cell as _, Full, Memory, Unbounded, Unfenced};
use poach_models::Scenario;
use poach_models::Step::{self, Pop, Push};
use poach_models::taken::{Taken, Then, singles};

use crate::c11;

/// This number of executions takes about a second.
const MOST: u64 = 20_000;

/// No execution with at most `preemptions` preemptions is wrong; all of them run, or the first
/// [`MOST`].
fn clean(preemptions: u32, model: impl Fn(&mut Threads)) {
    c11::clean(preemptions, MOST, model);
}

/// A thief's look, and whether it finds nothing.
type Look<O> = fn(&<O as Owner<u64>>::Thief) -> bool;

/// There is always a task: a second one is pushed before the first is taken, and who takes that
/// knows it.
fn never_empty<O: Owner<u64, Thief: 'static> + 'static>(
    make: impl Fn() -> O + Copy,
    looks: &[Look<O>],
) {
    for &finds_nothing in looks {
        clean(1, move |threads| {
            let owner = Rc::new(make());
            owner.push(0);
            let [takes, looks] = [owner.thief(), owner.thief()];
            let pushes = Rc::clone(&owner);
            threads.spawn("owner", move || {
                pushes.push(1);
                let _ = takes.steal();
            });
            threads.spawn("looks", move || {
                assert!(!finds_nothing(&looks), "a queue that is never empty");
            });
            threads.finally(move || drop(owner));
        });
    }
}

/// Of a Chase-Lev deque only a steal says so much: its length is an estimate.
#[test]
fn a_thief_does_not_find_a_queue_empty_that_never_is() {
    fn steals<O: Owner<u64, Thief: 'static> + 'static>(make: impl Fn() -> O + Copy) {
        never_empty(make, &[|thief| thief.steal().is_empty()]);
    }
    let fences = Asymmetric::<Simulated>::new;
    steals(|| ChaseLev::<u64, Full, Simulated>::starting_at(Full, 2, 0).unwrap());
    steals(|| ChaseLev::<u64, _, Simulated>::starting_at(fences(), 2, 0).unwrap());
    steals(|| The::<u64, Full, Simulated>::starting_at(Full, 2, 0).unwrap());
    steals(|| The::<u64, _, Simulated>::starting_at(fences(), 2, 0).unwrap());
    steals(|| Thep::<u64, Full, Simulated>::starting_at(Full, 2, 0).unwrap());
    steals(|| Biased::<u64, Full, Simulated>::starting_at(Full, 2, 0, 0).unwrap());
    steals(|| Biased::<u64, _, Simulated>::starting_at(fences(), 2, 0, 0).unwrap());
    steals(|| Fifo::<u64, Simulated>::starting_at(2, 0).unwrap());
    steals(|| Fifo::<u64, Simulated>::with_patience(2, 0, 0, 0).unwrap());
    steals(Mutex::<u64, Simulated>::default);
}

#[test]
fn a_queue_that_is_never_empty_is_never_said_to_be() {
    fn looks<O: Owner<u64, Thief: 'static> + 'static>(make: impl Fn() -> O + Copy) {
        never_empty(make, &[|thief| thief.len() == 0, |thief| thief.is_empty()]);
    }
    let fences = Asymmetric::<Simulated>::new;
    looks(|| The::<u64, Full, Simulated>::starting_at(Full, 2, 0).unwrap());
    looks(|| The::<u64, _, Simulated>::starting_at(fences(), 2, 0).unwrap());
    looks(|| Thep::<u64, Full, Simulated>::starting_at(Full, 2, 0).unwrap());
    looks(|| Biased::<u64, Full, Simulated>::starting_at(Full, 2, 0, 0).unwrap());
    looks(|| Biased::<u64, _, Simulated>::starting_at(fences(), 2, 0, 0).unwrap());
    looks(|| Fifo::<u64, Simulated>::starting_at(2, 0).unwrap());
    looks(|| Fifo::<u64, Simulated>::with_patience(2, 0, 0, 0).unwrap());
    looks(Mutex::<u64, Simulated>::default);
}

/// The same with a thief that takes the first when it has seen both, and has no fence between its
/// looks and what it says it has taken.
#[test]
fn a_thief_tells_others_what_it_has_seen() {
    fn told<O: Owner<u64, Thief: 'static> + 'static>(make: impl Fn() -> O + Copy) {
        told_by(make, &[|thief| thief.len() == 0, |thief| thief.steal().is_empty()]);
    }
    fn told_by<O: Owner<u64, Thief: 'static> + 'static>(
        make: impl Fn() -> O + Copy,
        looks: &[Look<O>],
    ) {
        for &finds_nothing in looks {
            clean(1, move |threads| {
                let owner = Rc::new(make());
                owner.push(0);
                let [takes, looks] = [owner.thief(), owner.thief()];
                let pushes = Rc::clone(&owner);
                threads.spawn("owner", move || pushes.push(1));
                threads.spawn("takes", move || {
                    if takes.len() == 2 {
                        let _ = takes.steal();
                    }
                });
                threads.spawn("looks", move || {
                    assert!(!finds_nothing(&looks), "a queue that is never empty");
                });
                threads.finally(move || drop(owner));
            });
        }
    }
    // SAFETY: the owner pops nothing, so that no fence is needed.
    let unfenced = || unsafe { Unfenced::new() };
    told(|| The::<u64, _, Simulated>::starting_at(unfenced(), 2, 0).unwrap());
    told(|| Thep::<u64, _, Simulated>::starting_at(unfenced(), 2, 0).unwrap());
    // Their lengths are estimates.
    let deque = || IdempotentDeque::<u64, Simulated>::starting_at(2, 0).unwrap();
    told_by(deque, &[|thief| thief.steal().is_empty()]);
    let fifo = || IdempotentFifo::<u64, Simulated>::starting_at(2, 0).unwrap();
    told_by(fifo, &[|thief| thief.steal().is_empty()]);
    let multiple = || Multiplicity::<u64, Simulated>::starting_at(2, 0).unwrap();
    told_by(multiple, &[|thief| thief.steal().is_empty()]);
}

/// The owner takes the older of two.
#[test]
fn the_owner_of_an_idempotent_fifo_tells_what_it_has_pushed() {
    clean(1, |threads| {
        let owner = Rc::new(IdempotentFifo::<u64, Simulated>::starting_at(2, 0).unwrap());
        owner.push(0);
        let looks = owner.thief();
        let works = Rc::clone(&owner);
        threads.spawn("owner", move || {
            works.push(1);
            assert!(works.pop().is_some());
        });
        threads.spawn("looks", move || {
            assert!(!looks.steal().is_empty(), "a queue that is never empty");
        });
        threads.finally(move || drop(owner));
    });
}

/// The owner takes the task and pushes another to its slot. A thief that gets that one sees what
/// the owner did before it pushed.
#[test]
fn an_idempotent_queue_hands_over_what_its_tasks_name() {
    fn handed<O: Owner<u64, Thief: 'static> + 'static>(make: impl Fn() -> O + Copy) {
        clean(1, move |threads| {
            let owner = Rc::new(make());
            let cells = Rc::new([(); 2].map(|()| <Simulated as Memory>::Cell::new(())));
            owner.push(0);
            let thief = owner.thief();
            let (works, names) = (Rc::clone(&owner), Rc::clone(&cells));
            threads.spawn("owner", move || {
                let _ = works.pop();
                names[1].with_mut(|_| ());
                works.push(1);
            });
            let named = Rc::clone(&cells);
            threads.spawn("thief", move || {
                if let Steal::Success(task) = thief.steal() {
                    named[task as usize].with(|_| ());
                }
            });
            threads.finally(move || drop((owner, cells)));
        });
    }
    handed(|| IdempotentDeque::<u64, Simulated>::with_capacity(1).unwrap());
    handed(|| IdempotentLifo::<u64, Simulated>::with_capacity(1).unwrap());
    handed(|| IdempotentFifo::<u64, Simulated>::with_capacity(1).unwrap());
    handed(|| Multiplicity::<u64, Simulated>::with_capacity(1).unwrap());
}

/// An owner with `tasks` tasks runs this script and goes; a thief steals once.
fn once<O: Owner<u64, Thief: 'static> + 'static>(
    make: impl Fn() -> O,
    tasks: u32,
    script: &[Step],
) {
    let scenario =
        Scenario { script: script.to_vec(), capacity: 2, ..Scenario::drain(tasks, 0, 1, 1) };
    clean(2, singles(&scenario, make, Taken::Once, Then::Goes));
}

/// The tail by which a thief takes a task may come from a pop of the task above.
#[test]
fn thep_takes_the_task_below_one_that_was_popped() {
    once(|| Thep::<u64, Full, Simulated>::starting_at(Full, 2, 0).unwrap(), 0, &[Push, Push, Pop]);
}

/// A thief is sure by an echo that comes after the only task was taken and its index was used
/// again.
#[test]
fn thep_by_its_echo_takes_the_task_that_is_there() {
    let queue = || Thep::<u64, _, Simulated>::starting_at(Unbounded, 2, 0).unwrap();
    once(queue, 1, &[Pop, Push, Push, Pop]);
    once(queue, 0, &[Push, Push, Pop]);
}

/// The number of executions of each of many scenes.
const FEW: u64 = 4_000;

/// Scenes in which blocks and slots are used again: the owner's script, the capacity, the number of
/// thieves, and how often each steals.
const ANEW: &[(&[Step], usize, u32, u32)] = &[
    (&[Push, Push, Push], 1, 1, 2),
    (&[Push, Push, Push, Push], 1, 1, 3),
    (&[Push, Push, Pop, Pop, Push, Push], 1, 1, 2),
    (&[Push, Push, Push, Pop, Pop, Push], 2, 1, 2),
    (&[Push, Push, Push, Pop], 1, 2, 1),
    (&[Push, Push, Push, Push, Push], 2, 2, 2),
];

fn anew((script, capacity, thieves, steals): (&[Step], usize, u32, u32)) -> Scenario {
    let script = script.to_vec();
    Scenario { script, capacity, ..Scenario::drain(0, 0, thieves, steals) }
}

/// Under C11, and on a machine with total store order and a store buffer of two.
fn all_scenes<O: Owner<u64, Thief: 'static> + 'static>(
    make: impl Fn(usize) -> O + Copy,
    taken: Taken,
) {
    for &scene in ANEW {
        let scenario = anew(scene);
        let queue = || make(scenario.capacity);
        for then in [Then::Goes, Then::Stays] {
            c11::clean(1, FEW, singles(&scenario, queue, taken, then));
            let machine = Config::bounded(2, true).within(1, FEW);
            let report = explore(&machine, &singles(&scenario, queue, taken, then));
            assert!(report.coverage().is_some(), "{:?}", report.counterexample);
        }
    }
}

fn lifo(capacity: usize) -> BwosLifo<u64, Simulated> {
    BwosLifo::with_capacity(capacity).unwrap()
}

fn fifo(capacity: usize) -> BwosFifo<u64, Simulated> {
    BwosFifo::with_capacity(capacity).unwrap()
}

fn multiple(capacity: usize) -> Multiplicity<u64, Simulated> {
    Multiplicity::with_capacity(capacity).unwrap()
}

#[test]
fn blocks_are_entered_anew_and_each_task_is_taken_once() {
    all_scenes(lifo, Taken::Once);
    all_scenes(fifo, Taken::Once);
}

#[test]
fn a_queue_with_multiplicity_loses_no_task() {
    all_scenes(multiple, Taken::AtLeastOnce);
}
