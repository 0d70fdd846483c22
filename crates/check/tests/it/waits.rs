//! All that a thread may do after it has stopped waiting is explored, even if others can move.

#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use poach_check::{Buffer, Config, Simulated, Strategy, Threads, Verdict, explore, observe};
use poach_memory::{Memory, Ordering::Relaxed, Word};
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

#[derive(Clone, Copy, Debug)]
enum Instruction {
    Store(usize, u64),
    Load(usize),
    /// Looks until the word holds the value, at most this number of times, with a pause after each
    /// look; keeps what it has seen last.
    Look(usize, u64, u32),
    /// The same, where two words are looked at in turn and only the second is waited for.
    LookPast(usize, usize, u64, u32),
}
use Instruction::{Load, Look, LookPast, Store};

const WORDS: usize = 2;
const NAMES: [&str; 3] = ["P0", "P1", "P2"];
const REGISTERS: usize = 8;

type Words = [<Simulated as Memory>::Word; WORDS];

fn play(words: &Words, program: &[Instruction], mut keep: impl FnMut(u64)) {
    for instruction in program {
        match *instruction {
            Store(place, value) => words[place].store(value, Relaxed),
            Load(place) => keep(words[place].load(Relaxed)),
            Look(place, wanted, looks) => {
                let mut seen = 0;
                for _ in 0..looks {
                    seen = words[place].load(Relaxed);
                    if seen == wanted {
                        break;
                    }
                    Simulated::pause();
                }
                keep(seen);
            }
            LookPast(other, place, wanted, looks) => {
                let (mut past, mut seen) = (0, 0);
                for _ in 0..looks {
                    past = words[other].load(Relaxed);
                    seen = words[place].load(Relaxed);
                    if seen == wanted {
                        break;
                    }
                    Simulated::pause();
                }
                keep(past);
                keep(seen);
            }
        }
    }
}

fn outcomes(config: &Config, programs: &[Vec<Instruction>]) -> BTreeSet<Vec<u64>> {
    let programs: Arc<[Vec<Instruction>]> = programs.into();
    let report = explore(config, &|threads: &mut Threads| {
        let words: Arc<Words> = Arc::new([(); WORDS].map(|()| <Simulated as Memory>::Word::new(0)));
        for thread in 0..programs.len() {
            let (words, programs) = (Arc::clone(&words), Arc::clone(&programs));
            threads.spawn(NAMES[thread], move || {
                let mut kept = thread * REGISTERS;
                play(&words, &programs[thread], |value| {
                    observe(kept, value);
                    kept += 1;
                });
            });
        }
        threads.finally(move || {
            for (place, word) in words.iter().enumerate() {
                observe(3 * REGISTERS + place, word.load(Relaxed));
            }
        });
    });
    assert_eq!(report.verdict, Verdict::Clean, "{programs:?}");
    assert!(report.complete, "{programs:?}");
    report.outcomes
}

/// All that a program can do, where a pause is nothing.
mod interpreter {
    use super::*;

    #[derive(Clone, PartialEq, Eq, Hash)]
    struct State {
        memory: [u64; WORDS],
        at: Vec<usize>,
        /// Looks by the instruction under way, and whether its first word has been looked at.
        looks: Vec<(u32, Option<u64>)>,
        buffers: Vec<Vec<(usize, u64)>>,
        kept: Vec<Vec<u64>>,
    }

    pub(super) fn outcomes(programs: &[Vec<Instruction>], room: usize) -> BTreeSet<Vec<u64>> {
        let count = programs.len();
        let start = State {
            memory: [0; WORDS],
            at: vec![0; count],
            looks: vec![(0, None); count],
            buffers: vec![Vec::new(); count],
            kept: vec![Vec::new(); count],
        };
        let (mut seen, mut work) = (HashSet::from([start.clone()]), vec![start]);
        let mut found = BTreeSet::new();
        while let Some(state) = work.pop() {
            let mut last = true;
            for thread in 0..count {
                for next in successors(&state, programs, thread, room) {
                    last = false;
                    if seen.insert(next.clone()) {
                        work.push(next);
                    }
                }
            }
            if last {
                let mut outcome = vec![0; 3 * REGISTERS + WORDS];
                for (thread, kept) in state.kept.iter().enumerate() {
                    outcome[thread * REGISTERS..][..kept.len()].copy_from_slice(kept);
                }
                outcome[3 * REGISTERS..].copy_from_slice(&state.memory);
                found.insert(outcome);
            }
        }
        found
    }

    fn successors(
        state: &State,
        programs: &[Vec<Instruction>],
        thread: usize,
        room: usize,
    ) -> Vec<State> {
        let mut all = Vec::new();
        if let Some(&(place, value)) = state.buffers[thread].first() {
            let mut next = state.clone();
            next.memory[place] = value;
            next.buffers[thread].remove(0);
            all.push(next);
        }
        let Some(instruction) = programs[thread].get(state.at[thread]) else { return all };
        let read = |place: usize| {
            let own = state.buffers[thread].iter().rev().find(|entry| entry.0 == place);
            own.map_or(state.memory[place], |entry| entry.1)
        };
        let mut next = state.clone();
        let look = |next: &mut State, past: Option<u64>, seen: u64, wanted: u64, most: u32| {
            next.looks[thread] = (state.looks[thread].0 + 1, None);
            if seen == wanted || next.looks[thread].0 == most {
                next.looks[thread] = (0, None);
                next.at[thread] += 1;
                next.kept[thread].extend(past);
                next.kept[thread].push(seen);
            }
        };
        match *instruction {
            Store(..) if room > 0 && state.buffers[thread].len() == room => return all,
            Store(place, value) => {
                next.at[thread] += 1;
                if room == 0 {
                    next.memory[place] = value;
                } else {
                    next.buffers[thread].push((place, value));
                }
            }
            Load(place) => {
                next.at[thread] += 1;
                next.kept[thread].push(read(place));
            }
            Look(place, wanted, most) => look(&mut next, None, read(place), wanted, most),
            LookPast(other, place, wanted, most) => match state.looks[thread].1 {
                None => next.looks[thread].1 = Some(read(other)),
                past => look(&mut next, past, read(place), wanted, most),
            },
        }
        all.push(next);
        all
    }
}

fn instruction() -> impl Generator<Value = Instruction> {
    let (place, value) = (0..WORDS, 1..3u64);
    prop_oneof![
        4 => (place.clone(), value.clone()).prop_map(|(place, value)| Store(place, value)),
        2 => place.clone().prop_map(Load),
        2 => (place.clone(), value.clone(), 1..4u32)
            .prop_map(|(place, value, looks)| Look(place, value, looks)),
        2 => (place, value, 1..3u32)
            .prop_map(|(place, value, looks)| LookPast(1 - place, place, value, looks)),
    ]
}

fn program(most: usize) -> impl Generator<Value = Vec<Instruction>> {
    proptest::collection::vec(instruction(), 1..=most)
}

fn agree(programs: &[Vec<Instruction>], capacity: u32) {
    let want = interpreter::outcomes(programs, capacity as usize);
    for (reduce, prune) in [(true, true), (true, false), (false, true)] {
        let strategy = Strategy::Exhaustive { preemptions: None, reduce, prune };
        let buffer = Buffer::Bounded(capacity);
        let found = outcomes(&Config { buffer, strategy, ..Config::default() }, programs);
        assert_eq!(found, want, "reduce {reduce}, prune {prune}, S {capacity}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn two_threads_that_give_up_have_the_outcomes_of_the_interpreter(
        programs in proptest::collection::vec(program(4), 2),
        capacity in 0..3u32,
    ) {
        agree(&programs, capacity);
    }

    #[test]
    fn three_threads_that_give_up_have_the_outcomes_of_the_interpreter(
        programs in proptest::collection::vec(program(2), 3),
        capacity in 0..2u32,
    ) {
        agree(&programs, capacity);
    }
}

#[test]
fn who_gives_up_after_two_looks_may_do_so_before_the_other_has_begun() {
    let programs = [vec![Look(0, 1, 2), Store(1, 1)], vec![Load(1), Store(0, 1)]];
    let found = outcomes(&Config::sequential(), &programs);
    let read: BTreeSet<u64> = found.iter().map(|outcome| outcome[REGISTERS]).collect();
    assert_eq!(read, BTreeSet::from([0, 1]));
}

#[test]
fn a_thousand_looks_are_given_up_as_two_are() {
    for looks in [2, 1_000] {
        let programs = [vec![Look(0, 1, looks), Store(1, 1)], vec![Load(1), Store(0, 1)]];
        assert_eq!(outcomes(&Config::bounded(1, false), &programs).len(), 3, "{looks} looks");
    }
}
