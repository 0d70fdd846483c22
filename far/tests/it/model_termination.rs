//! All interleavings of a few ranks, parcels and messages: is the end found, and never before it
//! has come?
//!
//! The model runs the detector's own source. A rank with tasks may finish one, make one, or send
//! one to any other rank; any message may arrive whenever it is the first of its pair; an idle rank
//! may ask the detector. The search visits every state once.

#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet, VecDeque};

use poach_far::balance::termination::{Detector, Step};
use poach_far::balance::{Message, Parcel, Waves};

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    ranks: Vec<Rank>,
    /// What is on its way, by sender and receiver.
    ways: Vec<Vec<VecDeque<Message>>>,
    /// Parcels that may still be sent.
    moves: u8,
    /// Tasks that may still be made.
    made: u8,
    quiet: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Rank {
    tasks: u8,
    sent: u64,
    received: u64,
    detector: Detector,
}

fn parcel() -> Message {
    Message::Tasks(Parcel { tasks: 1, bytes: Vec::new() }, false)
}

impl State {
    fn new(ranks: usize, tasks: u8, [moves, made]: [u8; 2], waves: Waves) -> State {
        let rank = |rank| Rank {
            tasks: if rank == 0 { tasks } else { 0 },
            sent: 0,
            received: 0,
            detector: Detector::new(rank, ranks, waves),
        };
        State {
            ranks: (0..ranks).map(rank).collect(),
            ways: vec![vec![VecDeque::new(); ranks]; ranks],
            moves,
            made,
            quiet: false,
        }
    }

    /// Whether no task is left.
    fn is_over(&self) -> bool {
        let moving = self.ways.iter().flatten().flatten().any(|m| matches!(m, Message::Tasks(..)));
        !moving && self.ranks.iter().all(|rank| rank.tasks == 0)
    }

    fn successors(&self) -> Vec<State> {
        let mut next = Vec::new();
        if self.quiet {
            return next;
        }
        let all = 0..self.ranks.len();
        for at in all.clone() {
            if self.ranks[at].tasks > 0 {
                let mut state = self.clone();
                state.ranks[at].tasks -= 1;
                next.push(state);
                if self.made > 0 {
                    let mut state = self.clone();
                    state.made -= 1;
                    state.ranks[at].tasks += 1;
                    next.push(state);
                }
                for to in all.clone().filter(|&to| to != at && self.moves > 0) {
                    let mut state = self.clone();
                    state.moves -= 1;
                    state.ranks[at].tasks -= 1;
                    state.ranks[at].sent += 1;
                    state.ways[at][to].push_back(parcel());
                    next.push(state);
                }
            } else {
                let mut state = self.clone();
                let Rank { sent, received, .. } = state.ranks[at];
                match state.ranks[at].detector.idle(sent, received) {
                    Step::Wait => continue,
                    Step::Quiet => state.quiet = true,
                    Step::Send(messages) => state.send(at, messages),
                }
                next.push(state);
            }
        }
        for from in all.clone() {
            for to in all.clone() {
                let mut state = self.clone();
                let Some(message) = state.ways[from][to].pop_front() else { continue };
                let rank = &mut state.ranks[to];
                match message {
                    Message::Tasks(..) => {
                        rank.tasks += 1;
                        rank.received += 1;
                    }
                    Message::Ask { wave } => {
                        let messages = rank.detector.asked(wave);
                        state.send(to, messages);
                    }
                    Message::Report { wave, sent, received } => {
                        rank.detector.reported(wave, sent, received);
                    }
                    other => panic!("the detector does not send {other:?}"),
                }
                next.push(state);
            }
        }
        next
    }

    fn send(&mut self, from: usize, messages: Vec<(usize, Message)>) {
        for (to, message) in messages {
            self.ways[from][to].push_back(message);
        }
    }
}

/// What a search found.
#[derive(Debug, Default)]
struct Found {
    states: usize,
    /// States in which the end was found.
    quiet: usize,
    /// Of these, the executions in which tasks were left.
    too_early: usize,
    /// States from which no path leads to the end being found.
    stuck: usize,
}

fn search(ranks: usize, tasks: u8, limits: [u8; 2], waves: Waves) -> Found {
    let first = State::new(ranks, tasks, limits, waves);
    let mut numbers = HashMap::from([(first.clone(), 0)]);
    let mut before: Vec<Vec<usize>> = vec![Vec::new()];
    let mut waiting = vec![(first, 0)];
    let (mut quiet, mut found) = (Vec::new(), Found::default());
    while let Some((state, number)) = waiting.pop() {
        if state.quiet {
            quiet.push(number);
            found.too_early += usize::from(!state.is_over());
        }
        for next in state.successors() {
            let fresh = numbers.len();
            let to = *numbers.entry(next.clone()).or_insert(fresh);
            if to == fresh {
                before.push(Vec::new());
                waiting.push((next, to));
            }
            before[to].push(number);
        }
    }
    (found.states, found.quiet) = (numbers.len(), quiet.len());
    let mut leads: HashSet<usize> = quiet.iter().copied().collect();
    while let Some(number) = quiet.pop() {
        quiet.extend(before[number].iter().copied().filter(|&earlier| leads.insert(earlier)));
    }
    found.stuck = found.states - leads.len();
    found
}

#[test]
fn two_waves_find_the_end_when_it_has_come_and_always() {
    let sizes = [
        (1, 2, [0, 2]),
        (2, 2, [4, 2]),
        (3, 1, [4, 1]),
        (3, 2, [3, 1]),
        (4, 1, [2, 2]),
        (5, 1, [2, 1]),
    ];
    for (ranks, tasks, limits) in sizes {
        let found = search(ranks, tasks, limits, Waves::Two);
        println!("{ranks} ranks, {tasks} tasks, {limits:?} parcels and more tasks: {found:?}");
        assert!(found.quiet > 0);
        assert_eq!((found.too_early, found.stuck), (0, 0), "{ranks} ranks: {found:?}");
    }
}

#[test]
fn one_wave_is_caught() {
    let found = search(3, 1, [3, 1], Waves::One);
    println!("{found:?}");
    assert!(found.too_early > 0, "{found:?}");
}
