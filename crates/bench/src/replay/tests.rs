//! Replays whose course can be followed by hand.

use proptest::prelude::*;

use super::engine::{Outcome, Prices, Setting, replay};
use super::strategy::Strategy;
use super::topology::Topology;
use super::tree::tests::by_hand;
use super::tree::{Stored, totals};
use crate::fib::FibTree;

fn run(tree: &Stored, workers: usize, strategy: Strategy, prices: Prices, line: f64) -> Outcome {
    let topology = Topology::flat(line);
    replay(tree, &Setting { workers, topology: &topology, prices, strategy, seed: 7 }).unwrap()
}

fn free(tree: &Stored, workers: usize, strategy: Strategy) -> Outcome {
    run(tree, workers, strategy, Prices::default(), 0.0)
}

/// A fork with these halves, of trees by hand, and `after` behind it.
enum Part {
    Leaf(u32),
    Fork(Box<Part>, Box<Part>),
}

fn fork(first: Part, second: Part) -> Part {
    Part::Fork(Box::new(first), Box::new(second))
}

/// So many leaves of this work, divided by halves.
fn leaves(count: u32, work: u32) -> Part {
    if count == 1 {
        Part::Leaf(work)
    } else {
        fork(leaves(count / 2, work), leaves(count - count / 2, work))
    }
}

fn tree(part: &Part) -> Stored {
    fn put(strands: &mut Vec<(u32, Option<u32>)>, at: usize, part: &Part) {
        match part {
            Part::Leaf(work) => strands[at].0 = *work,
            Part::Fork(first, second) => {
                let base = strands.len();
                strands[at].1 = Some((base as u32 - 1) / 3);
                strands.extend([(0, None); 3]);
                put(strands, base, first);
                put(strands, base + 1, second);
            }
        }
    }
    let mut strands = vec![(0, None)];
    put(&mut strands, 0, part);
    by_hand(&strands)
}

#[test]
fn one_worker_takes_the_work_and_a_push_and_a_pop_a_fork() {
    let tree = tree(&leaves(8, 100));
    let prices = Prices { push: 3, pop: 4, fence: 1000, expose: None };
    for strategy in Strategy::ALL {
        let outcome = run(&tree, 1, strategy, prices, 50.0);
        assert_eq!(outcome.makespan, 800 + 7 * 7);
        assert_eq!((outcome.forks, outcome.strands, outcome.busy), (7, 22, 849));
        assert_eq!((outcome.steals, outcome.leaps, outcome.shrinks), (0, 0, 0));
    }
}

#[test]
fn two_workers_take_a_half_each() {
    let tree = by_hand(&[(10, Some(0)), (100, None), (60, None), (5, None)]);
    for strategy in Strategy::ALL {
        let outcome = free(&tree, 2, strategy);
        assert_eq!(outcome.makespan, 10 + 100 + 5);
        assert_eq!((outcome.steals, outcome.grows), (1, 1));
    }
}

#[test]
fn lines_are_paid_to_hear_of_a_task_to_take_it_and_to_hear_that_it_is_done() {
    let tree = by_hand(&[(100_000, Some(0)), (100_000, None), (1_000_000, None), (5, None)]);
    let outcome = run(&tree, 2, Strategy::Leapfrog, Prices::default(), 1.0);
    let least = 100_000 + 3 * 1000 + 1_000_000 + 5;
    // When the thief comes by is random, but for the least.
    assert!((least..least + 20_000).contains(&outcome.makespan), "{}", outcome.makespan);
}

#[test]
fn inner_forks_cost_and_are_not_stolen() {
    let fib = FibTree { n: 20, grain: 30, unit: 1.0 };
    let topology = Topology::flat(0.0);
    let prices = Prices { push: 1, pop: 1, ..Prices::default() };
    let strategy = Strategy::Random;
    let setting = Setting { workers: 4, topology: &topology, prices, strategy, seed: 1 };
    let outcome = replay(&fib, &setting).unwrap();
    assert_eq!(outcome.makespan, 5 * FibTree::forks(20) + 1);
    assert_eq!(outcome.steals, 0);
}

/// One thief takes eight leaves of 100; the other takes a task of 550, and worker 0 waits for it.
fn starving() -> Stored {
    tree(&fork(fork(Part::Leaf(1), Part::Leaf(550)), leaves(8, 100)))
}

#[test]
fn who_leapfrogs_waits_though_there_is_work_elsewhere() {
    // Until 550 the eight are one worker's, who then is at its sixth; the last two are done together.
    assert_eq!(free(&starving(), 3, Strategy::Leapfrog).makespan, 700);
}

#[test]
fn who_steals_at_random_takes_it() {
    // At 100 worker 0 takes the last four, and both are done when the task of 550 is.
    let outcome = free(&starving(), 3, Strategy::Random);
    assert_eq!((outcome.makespan, outcome.leaps), (550, 1));
}

/// Worker 0 waits for a thief that waits for another: that one has eight leaves of 100, and a task of
/// 300 for the first thief.
fn chain() -> Stored {
    let deep = fork(leaves(8, 100), Part::Leaf(300));
    tree(&fork(Part::Leaf(1), fork(Part::Leaf(1), deep)))
}

#[test]
fn who_leapfrogs_transitively_goes_to_the_thief_of_the_thief() {
    let leapfrog = free(&chain(), 3, Strategy::Leapfrog);
    let transitive = free(&chain(), 3, Strategy::Transitive);
    // By leapfrogging worker 0 gets nothing until its thief, free at 300, has taken four leaves and done
    // the first of them; transitively it takes the four itself at 100.
    assert_eq!((leapfrog.makespan, transitive.makespan), (600, 500));
}

#[test]
fn a_private_task_waits_for_its_owner_unless_thieves_expose_it() {
    // The owner pushes before anybody asks, and is then long at a leaf.
    let tree = by_hand(&[(0, Some(0)), (10_000, None), (9_000, None), (1, None)]);
    let topology = Topology::flat(100.0);
    let mut setting = Setting {
        workers: 2,
        topology: &topology,
        prices: Prices::default(),
        strategy: Strategy::Random,
        seed: 1,
    };
    let patient = replay(&tree, &setting).unwrap();
    assert_eq!((patient.makespan, patient.exposures), (19_001, 0));
    setting.prices.expose = Some((500, 200));
    let flat = Topology::flat(0.1);
    setting.topology = &flat;
    let exposed = replay(&tree, &setting).unwrap();
    assert_eq!(exposed.steals, 1);
    assert!(exposed.makespan < 11_000, "{}", exposed.makespan);
}

#[test]
fn no_workers_are_refused() {
    let topology = Topology::flat(1.0);
    let prices = Prices::default();
    let strategy = Strategy::Random;
    let setting = Setting { workers: 0, topology: &topology, prices, strategy, seed: 1 };
    let error = replay(&tree(&leaves(2, 1)), &setting).unwrap_err().to_string();
    assert!(error.contains("at least one worker"), "{error}");
}

fn parts() -> impl proptest::strategy::Strategy<Value = u32> {
    0..50u32
}

proptest! {
    // In one tree of some thousands, with a certain course, waiting workers once chased each other in a circle for ever.
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Nothing is faster than the longest way or than all workers together; where nothing costs
    /// anything, nothing is slower than one worker. Every strand is run once.
    #[test]
    fn bounds_hold(
        works in proptest::collection::vec(parts(), 1..120),
        shape in proptest::collection::vec(any::<bool>(), 120),
        workers in 1usize..9,
        line in 0u32..3,
    ) {
        // Each strand in turn forks if it is told to and there are works left.
        let mut strands: Vec<(u32, Option<u32>)> = vec![(works[0], None)];
        let mut at = 0;
        while at < strands.len() {
            if shape[at % shape.len()] && strands.len() + 3 <= works.len() {
                strands[at].1 = Some((strands.len() as u32 - 1) / 3);
                let base = strands.len();
                strands.extend((0..3).map(|more| (works[base + more], None)));
            }
            at += 1;
        }
        let tree = by_hand(&strands);
        let totals = totals(&tree);
        for strategy in Strategy::ALL {
            let outcome = run(&tree, workers, strategy, Prices::default(), f64::from(line) / 100.0);
            prop_assert_eq!(outcome.strands as usize, strands.len());
            prop_assert_eq!(outcome.busy, totals.work);
            prop_assert!(outcome.makespan >= totals.span);
            prop_assert!(outcome.makespan * workers as u64 >= totals.work);
            if line == 0 {
                prop_assert!(outcome.makespan <= totals.work);
            }
        }
    }
}
