//! The load balancing over simulated ranks: each task once, and the end neither missed nor found
//! too early.

#![forbid(unsafe_code)]

use std::collections::HashMap;

use poach_far::balance::{Failure, Policy, Stealing, Waves};
use poach_far::simulate::{Machine, Outcome, Program, Simulation, Wrong};

/// A tree that a seed decides, whose every task is noted.
struct Noted {
    seed: u64,
    /// How deep the tree is at most.
    deep: u32,
    ran: HashMap<u64, u32>,
}

/// How deep the small trees are.
const DEEP: u32 = 9;

/// A task's number decides how many children it has.
fn children(seed: u64, task: u64, left: u32) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed ^ task.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    if left == 0 { 0 } else { random.u64(0..4) }
}

fn child(task: u64, index: u64) -> u64 {
    (task.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(index + 1)
}

impl Program for Noted {
    type Task = (u64, u32);

    fn run(
        &mut self,
        _: usize,
        (task, depth): (u64, u32),
        push: &mut dyn FnMut((u64, u32)),
    ) -> f64 {
        *self.ran.entry(task).or_insert(0) += 1;
        for index in 0..children(self.seed, task, self.deep - depth) {
            push((child(task, index), depth + 1));
        }
        100.0 + (task % 5_000) as f64
    }
}

/// The tree without a scheduler.
fn expected(seed: u64, deep: u32) -> HashMap<u64, u32> {
    let mut all = HashMap::new();
    let mut waiting = vec![(seed, 0)];
    while let Some((task, depth)) = waiting.pop() {
        *all.entry(task).or_insert(0) += 1;
        let below = 0..children(seed, task, deep - depth);
        waiting.extend(below.map(|index| (child(task, index), depth + 1)));
    }
    all
}

fn machine(random: &mut fastrand::Rng) -> Machine {
    Machine {
        quantum: [0.0, 1_000.0, 50_000.0][random.usize(0..3)],
        jitter: [0.0, 3.0, 300.0][random.usize(0..3)],
        ..Machine::default()
    }
}

/// The policies that a seed goes through.
fn policy(random: &mut fastrand::Rng, seed: u64) -> Policy {
    Policy {
        stealing: if random.bool() { Stealing::Messages } else { Stealing::Window },
        lifelines: random.bool(),
        attempts: random.usize(1..4),
        parcel_bytes: random.usize(24..200),
        seed,
        ..Policy::default()
    }
}

fn run(seed: u64, ranks: usize, random: &mut fastrand::Rng) -> Result<(Outcome, Noted), Wrong> {
    let program = Noted { seed, deep: DEEP, ran: HashMap::new() };
    let machine = machine(random);
    let mut simulation = Simulation::new(ranks, machine, policy(random, seed), program)
        .ranks_per_node(random.usize(1..5));
    if random.u8(0..4) == 0 {
        // Longer than a checkpoint takes, or nothing else would ever be done.
        let least = 20.0 * machine.latency + 4.0 * machine.jitter * machine.latency;
        simulation = simulation.checkpoint_every(least * (1.0 + random.f64()));
    }
    simulation.run(vec![(seed, 0)])
}

#[test]
fn ten_thousand_seeded_runs_with_delays_end_and_run_each_task_once() {
    let (mut tasks, mut steals, mut by_lifeline, mut failed, mut checkpoints) = (0, 0, 0, 0, 0);
    for seed in 0..10_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let ranks = random.usize(1..12);
        match run(seed, ranks, &mut random) {
            Ok((outcome, program)) => {
                assert_eq!(program.ran, expected(seed, DEEP), "seed {seed}, {ranks} ranks");
                tasks += outcome.tasks;
                steals += outcome.counters.steals;
                by_lifeline += outcome.counters.lifeline_parcels;
                failed += outcome.counters.failed_steals;
                checkpoints += outcome.checkpoints;
            }
            Err(wrong) => panic!("seed {seed}, {ranks} ranks: {wrong}"),
        }
    }
    println!(
        "{tasks} tasks, {steals} parcels stolen, {by_lifeline} by lifelines, {failed} failed, {checkpoints} checkpoints"
    );
    assert!(steals > 10_000 && by_lifeline > 1_000 && failed > 10_000 && checkpoints > 100);
}

#[test]
fn one_wave_ends_some_job_too_early() {
    let too_early = |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let program = Noted { seed, deep: DEEP, ran: HashMap::new() };
        let policy = Policy { waves: Waves::One, ..policy(&mut random, seed) };
        let machine = Machine { jitter: 300.0, ..Machine::default() };
        let ended = Simulation::new(7, machine, policy, program).run(vec![(seed, 0)]);
        matches!(ended, Err(Wrong::TooEarly { .. }))
    };
    assert!((0..1_000).any(too_early));
}

/// A run with a checkpoint as soon as one may be, again and again.
fn always_saving(seed: u64, hasty: bool) -> Result<(Outcome, Noted), Wrong> {
    let mut random = fastrand::Rng::with_seed(seed);
    let ranks = random.usize(1..9);
    let program = Noted { seed, deep: DEEP, ran: HashMap::new() };
    let policy = Policy { hasty, ..policy(&mut random, seed) };
    let simulation = Simulation::new(ranks, machine(&mut random), policy, program);
    simulation.checkpoint_every(1.0).turns_at_most(1_000_000).run(vec![(seed, 0)])
}

#[test]
fn checkpoints_that_are_always_due_keep_no_job_from_its_end() {
    let mut checkpoints = 0;
    for seed in 0..300 {
        let (outcome, program) =
            always_saving(seed, false).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        assert_eq!(program.ran, expected(seed, DEEP), "seed {seed}");
        checkpoints += outcome.checkpoints;
    }
    println!("{checkpoints} checkpoints in 300 runs");
    assert!(checkpoints > 300);
}

#[test]
fn checkpoints_that_wait_for_nothing_keep_some_job_from_its_end() {
    let endless = |seed| matches!(always_saving(seed, true), Err(Wrong::Endless { .. }));
    assert!((0..100).any(endless));
}

#[test]
fn thousands_of_ranks() {
    for (stealing, ranks) in
        [(Stealing::Messages, 1_000), (Stealing::Messages, 4_096), (Stealing::Window, 4_096)]
    {
        const DEEPER: u32 = 18;
        let seed = (0..1_000).find(|&seed| expected(seed, DEEPER).len() > 5_000).unwrap();
        let policy = Policy { stealing, ..Policy::default() };
        let program = Noted { seed, deep: DEEPER, ran: HashMap::new() };
        let (outcome, program) = Simulation::new(ranks, Machine::default(), policy, program)
            .ranks_per_node(64)
            .run(vec![(seed, 0)])
            .unwrap();
        assert_eq!(program.ran, expected(seed, DEEPER));
        assert!(outcome.elapsed >= outcome.worked);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let once = || {
        let mut random = fastrand::Rng::with_seed(4);
        let (outcome, _) = run(77, 9, &mut random).unwrap();
        (outcome.elapsed.to_bits(), outcome.counters)
    };
    assert_eq!(once(), once());
}

/// A task that does not fit into a parcel.
#[derive(Debug)]
struct Large;

impl Program for Large {
    type Task = Vec<u8>;

    fn run(&mut self, _: usize, _: Vec<u8>, _: &mut dyn FnMut(Vec<u8>)) -> f64 {
        1e6
    }
}

#[test]
fn a_task_that_is_too_large_ends_the_job_with_its_size() {
    let policy = Policy { parcel_bytes: 1_000, ..Policy::default() };
    let simulation = Simulation::new(2, Machine::default(), policy, Large);
    let wrong = simulation.run(vec![vec![0; 2_000]; 8]).unwrap_err();
    assert_eq!(wrong, Wrong::Failed(Failure::TooLarge { rank: 0, bytes: 2_002, limit: 1_000 }));
}
