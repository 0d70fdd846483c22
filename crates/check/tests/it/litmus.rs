//! The machine against the x86-TSO paper's verdicts, the search against a complete interpreter.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use poach_check::litmus::{Instruction, TESTS, outcomes};
use poach_check::{Buffer, Config, Strategy, Verdict};
use proptest::prelude::*;

#[test]
fn the_verdicts_are_those_of_x86_tso() {
    for buffer in [Buffer::Unbounded, Buffer::Bounded(2), Buffer::Bounded(1)] {
        for egress in [false, true] {
            for test in TESTS {
                let found = test.run(&Config { buffer, egress, ..Config::default() });
                assert_eq!(found.report.verdict, Verdict::Clean, "{}", test.name);
                assert_eq!(found.occurred, test.allowed, "{} with {buffer:?} {egress}", test.name);
            }
        }
    }
}

#[test]
fn without_buffers_nothing_but_interleaving_is_seen() {
    for test in TESTS {
        let found = test.run(&Config::sequential());
        assert_eq!(found.occurred, test.sequential, "{}", test.name);
    }
}

/// What any search must find: every outcome, by trying every event in every state.
mod interpreter {
    use super::{BTreeSet, Instruction};
    use std::collections::HashSet;

    const REGISTERS: usize = 8;
    const PLACES: usize = 8 * REGISTERS + 3;

    #[derive(Clone, PartialEq, Eq, Hash)]
    struct State {
        memory: [u64; 3],
        at: Vec<usize>,
        buffers: Vec<Vec<(usize, u64)>>,
        registers: Vec<Vec<u64>>,
        /// For a thread in a process-wide barrier: the threads that have not passed a point with
        /// an empty buffer.
        barrier: Vec<Option<u32>>,
    }

    pub(super) fn outcomes(
        programs: &[Vec<Instruction>],
        capacity: usize,
        egress: bool,
    ) -> BTreeSet<Vec<u64>> {
        let count = programs.len();
        let start = State {
            memory: [0; 3],
            at: vec![0; count],
            buffers: vec![Vec::new(); count],
            registers: vec![Vec::new(); count],
            barrier: vec![None; count],
        };
        let mut seen = HashSet::from([start.clone()]);
        let mut work = vec![start];
        let mut found = BTreeSet::new();
        while let Some(state) = work.pop() {
            let next = successors(&state, programs, capacity, egress);
            if next.is_empty() {
                found.insert(outcome(&state));
            }
            for state in next {
                if seen.insert(state.clone()) {
                    work.push(state);
                }
            }
        }
        found
    }

    fn outcome(state: &State) -> Vec<u64> {
        let mut outcome = vec![0; PLACES];
        for (thread, registers) in state.registers.iter().enumerate() {
            for (number, value) in registers.iter().enumerate() {
                outcome[thread * REGISTERS + number] = *value;
            }
        }
        outcome[PLACES - 3..].copy_from_slice(&state.memory);
        outcome
    }

    fn read(state: &State, thread: usize, place: usize) -> u64 {
        let own = state.buffers[thread].iter().rev().find(|entry| entry.0 == place);
        own.map_or(state.memory[place], |entry| entry.1)
    }

    fn successors(
        state: &State,
        programs: &[Vec<Instruction>],
        capacity: usize,
        egress: bool,
    ) -> Vec<State> {
        let room = if capacity == 0 { 0 } else { capacity + usize::from(egress) };
        let mut all = Vec::new();
        for thread in 0..programs.len() {
            let buffer = &state.buffers[thread];
            if let Some(&(place, value)) = buffer.first() {
                let mut next = state.clone();
                next.memory[place] = value;
                next.buffers[thread].remove(0);
                all.push(next);
            }
            // Coalescing whenever the two oldest stores agree, not only when room is needed.
            if egress && buffer.len() >= 2 && buffer[0].0 == buffer[1].0 {
                let mut next = state.clone();
                next.buffers[thread].remove(0);
                all.push(next);
            }
            if let Some(waiting) = state.barrier[thread] {
                if waiting == 0 {
                    let mut next = state.clone();
                    next.barrier[thread] = None;
                    next.at[thread] += 1;
                    all.push(next);
                }
                for other in 0..programs.len() {
                    if waiting >> other & 1 == 1 && state.buffers[other].is_empty() {
                        let mut next = state.clone();
                        next.barrier[thread] = Some(waiting & !(1 << other));
                        all.push(next);
                    }
                }
                continue;
            }
            let Some(instruction) = programs[thread].get(state.at[thread]) else { continue };
            let mut next = state.clone();
            next.at[thread] += 1;
            match *instruction {
                Instruction::Store(place, value) if room == 0 => next.memory[place] = value,
                Instruction::Store(place, value) => {
                    if buffer.len() >= room {
                        continue;
                    }
                    next.buffers[thread].push((place, value));
                }
                Instruction::Load(place) => {
                    next.registers[thread].push(read(state, thread, place));
                }
                Instruction::Exchange(place, value) => {
                    if !buffer.is_empty() {
                        continue;
                    }
                    next.registers[thread].push(state.memory[place]);
                    next.memory[place] = value;
                }
                Instruction::Fence if !buffer.is_empty() => continue,
                Instruction::Heavy => {
                    if !buffer.is_empty() {
                        continue;
                    }
                    let others = ((1 << programs.len()) - 1) & !(1 << thread);
                    next.barrier[thread] = Some(others);
                    next.at[thread] -= 1;
                }
                Instruction::Fence | Instruction::Light => {}
            }
            all.push(next);
        }
        all
    }
}

fn instruction() -> impl Strategy2<Value = Instruction> {
    let place = 0..3usize;
    let value = 1..3u64;
    prop_oneof![
        4 => (place.clone(), value.clone()).prop_map(|(place, value)| Instruction::Store(place, value)),
        4 => place.clone().prop_map(Instruction::Load),
        1 => (place, value).prop_map(|(place, value)| Instruction::Exchange(place, value)),
        1 => Just(Instruction::Fence),
        1 => Just(Instruction::Heavy),
    ]
}

use proptest::strategy::Strategy as Strategy2;

fn program(length: usize) -> impl Strategy2<Value = Vec<Instruction>> {
    proptest::collection::vec(instruction(), 1..=length)
}

fn check(programs: &[Vec<Instruction>], capacity: u32, egress: bool) {
    let want = interpreter::outcomes(programs, capacity as usize, egress);
    for (reduce, prune) in [(true, true), (true, false), (false, true)] {
        let config = Config {
            strategy: Strategy::Exhaustive { preemptions: None, reduce, prune },
            max_executions: 300_000,
            ..Config::bounded(capacity, egress)
        };
        let (found, report) = outcomes(&config, programs);
        if report.complete {
            assert_eq!(found, want, "reduce {reduce}, prune {prune}, S {capacity}, {egress}");
        } else {
            assert!(found.is_subset(&want), "reduce {reduce}, prune {prune}");
            assert!(!prune, "{report:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn two_threads_have_the_outcomes_of_the_interpreter(
        programs in proptest::collection::vec(program(4), 2),
        capacity in 0..4u32,
        egress: bool,
    ) {
        check(&programs, capacity, egress);
    }

    #[test]
    fn merging_and_barriers_have_the_outcomes_of_the_interpreter(
        stores in proptest::collection::vec(
            prop_oneof![
                3 => (1..4u64).prop_map(|value| Instruction::Store(0, value)),
                1 => Just(Instruction::Load(1)),
            ],
            3..=6,
        ),
        thief in proptest::collection::vec(
            prop_oneof![
                Just(Instruction::Heavy),
                Just(Instruction::Load(0)),
                Just(Instruction::Store(1, 1)),
            ],
            2..=4,
        ),
        capacity in 1..3u32,
    ) {
        check(&[stores, thief], capacity, true);
    }

    #[test]
    fn three_threads_have_the_outcomes_of_the_interpreter(
        programs in proptest::collection::vec(program(3), 3),
        capacity in 0..3u32,
        egress: bool,
    ) {
        check(&programs, capacity, egress);
    }
}

#[test]
fn a_barrier_waits_for_the_store_that_a_merged_one_stands_for() {
    use Instruction::{Heavy, Load, Store};
    // The first store to X is known to have been issued once Y is read; X := 2 and X := 3 may
    // swallow it in the egress slot, but the barrier must not return while they are hidden.
    let owner = vec![Store(0, 1), Load(1), Store(0, 2), Store(0, 1), Store(0, 2), Load(1)];
    let thief = vec![Store(1, 1), Heavy, Load(0)];
    for capacity in 1..4 {
        check(&[owner.clone(), thief.clone()], capacity, true);
    }
}

#[test]
fn random_search_finds_outcomes_and_proves_nothing() {
    let test = TESTS.iter().find(|test| test.name == "SB").expect("SB is there");
    let strategy = Strategy::Random { seed: 1, executions: 2_000, depth: 2 };
    let found = test.run(&Config { strategy, ..Config::default() });
    assert!(found.occurred);
    assert_eq!(found.report.verdict.word(), "incomplete");
}

#[test]
fn every_load_of_a_thread_has_a_place_of_its_own() {
    use Instruction::{Load, Store};
    for loads in 1..=8 {
        check(&[vec![Load(1); loads], vec![Load(0), Store(1, 1)]], 1, true);
    }
}
