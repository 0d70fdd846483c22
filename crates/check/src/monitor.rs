//! A specification that follows an execution: what the object may hold after each call and return.
//!
//! [`spec::check`](crate::spec::check) explains a whole history. This does the same one event at a
//! time, by *just-in-time linearization* (Lowe, *Testing for linearizability*, 2017). It keeps
//! every possibility: what the object holds, and which of the open operations have taken effect,
//! with what result. When an operation returns, each possibility in which it has not taken effect
//! lets some of the other open operations take effect, and then this one. A possibility in which
//! the operation has another result than it returned is struck out. If none is left, no order
//! explains the history. An operation need not take effect earlier than at a return: until then no
//! thread knows its result, and what it may overlook (`late`, below) stays as it was at its call.
//!
//! So the verdict on the future depends on the past by the set of possibilities alone. Two
//! executions that have the same set, and do not differ otherwise, are one state of the search: the
//! order of calls that have long returned is forgotten.
//!
//! Sets are numbered as they are met; each step between two is worked out once.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::Spec;
use crate::history::{Call, Outcome};
use crate::machine::MAX_THREADS;
use crate::spec::Item;

/// What the object holds, and the results of the open operations that have taken effect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Possibility {
    items: VecDeque<Item>,
    results: [Option<Outcome>; MAX_THREADS],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Open {
    call: Call,
    outrun: bool,
    /// The pushes that have become visible since the call: a thief may overlook them.
    late: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    open: [Option<Open>; MAX_THREADS],
    possible: BTreeSet<Possibility>,
    /// The tasks taken, and whether one was taken twice: where that is allowed it is counted.
    taken: BTreeSet<u64>,
    twice: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Call { thread: usize, call: Call, outrun: bool },
    Return { thread: usize, outcome: Outcome },
    Visible { task: u64 },
}

impl Event {
    /// Two numbers that no other event has: quicker to compare.
    fn key(self) -> Key {
        let outcome = |outcome| match outcome {
            Outcome::Done => (0, 0),
            Outcome::Empty => (1, 0),
            Outcome::Abort => (2, 0),
            Outcome::Retry => (3, 0),
            Outcome::Task(task) => (4, task),
        };
        let call = |call| match call {
            Call::Pop => (0, 0),
            Call::Steal => (1, 0),
            Call::Push(task) => (2, task),
        };
        let (kind, thread, (what, task)) = match self {
            Event::Call { thread, call: called, outrun: false } => (0, thread, call(called)),
            Event::Call { thread, call: called, outrun: true } => (1, thread, call(called)),
            Event::Return { thread, outcome: returned } => (2, thread, outcome(returned)),
            Event::Visible { task } => (3, 0, (0, task)),
        };
        ((what * 4 + kind) * MAX_THREADS + thread, task)
    }
}

type Key = (usize, u64);

#[derive(Debug)]
pub(crate) struct Monitor {
    spec: Spec,
    states: Vec<State>,
    numbers: HashMap<State, u32>,
    /// For each state, those after the events seen there: so few that a linear search beats a hash.
    steps: Vec<Vec<(Key, u32)>>,
    now: u32,
}

impl Monitor {
    pub(crate) fn new(spec: Spec) -> Self {
        let nothing = Possibility { items: VecDeque::new(), results: [None; MAX_THREADS] };
        let start = State {
            open: [const { None }; MAX_THREADS],
            possible: BTreeSet::from([nothing]),
            taken: BTreeSet::new(),
            twice: false,
        };
        let numbers = HashMap::from([(start.clone(), 0)]);
        Monitor { spec, states: vec![start], numbers, steps: vec![Vec::new()], now: 0 }
    }

    pub(crate) fn reset(&mut self) {
        self.now = 0;
    }

    /// The number of the set: the same for two histories that no future tells apart.
    pub(crate) fn state(&self) -> u64 {
        u64::from(self.now)
    }

    /// `outrun` if another thread is in an operation, or has stores of one on their way.
    pub(crate) fn call(&mut self, thread: usize, call: Call, outrun: bool) {
        self.happens(Event::Call { thread, call, outrun });
    }

    pub(crate) fn returns(&mut self, thread: usize, outcome: Outcome) -> bool {
        self.happens(Event::Return { thread, outcome });
        !self.states[self.now as usize].possible.is_empty()
    }

    pub(crate) fn visible(&mut self, task: u64) {
        self.happens(Event::Visible { task });
    }

    fn happens(&mut self, event: Event) {
        let known = &self.steps[self.now as usize];
        let key = event.key();
        if let Some(&(_, next)) = known.iter().find(|(seen, _)| *seen == key) {
            self.now = next;
            return;
        }
        let next = self.states[self.now as usize].after(self.spec, event);
        let number = self.numbers.get(&next).copied().unwrap_or_else(|| {
            let number = u32::try_from(self.states.len()).expect("there are few sets");
            self.states.push(next.clone());
            self.steps.push(Vec::new());
            self.numbers.insert(next, number);
            number
        });
        self.steps[self.now as usize].push((key, number));
        self.now = number;
    }
}

impl State {
    fn after(&self, spec: Spec, event: Event) -> State {
        let mut next = self.clone();
        match event {
            Event::Call { thread, call, outrun } => {
                for other in next.open.iter_mut().flatten() {
                    other.outrun = true;
                }
                let outrun = outrun || call != Call::Steal || spec.retries_freely();
                next.open[thread] = Some(Open { call, outrun, late: Vec::new() });
            }
            Event::Return { thread, outcome } => {
                next.possible = self.returned(spec, thread, outcome);
                next.open[thread] = None;
                if let (Spec::AtLeastOnce, Outcome::Task(task)) = (spec, outcome) {
                    next.twice |= !next.taken.insert(task);
                }
            }
            Event::Visible { .. } if spec.private() => {}
            Event::Visible { task } => {
                for open in next.open.iter_mut().flatten() {
                    if open.call == Call::Steal {
                        open.late.push(task);
                        open.late.sort_unstable();
                    }
                }
                let shown = |mut possibility: Possibility| {
                    for item in &mut possibility.items {
                        item.visible |= item.task == task;
                    }
                    possibility
                };
                next.possible = next.possible.into_iter().map(shown).collect();
            }
        }
        next
    }

    fn returned(&self, spec: Spec, thread: usize, outcome: Outcome) -> BTreeSet<Possibility> {
        let (mut agree, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut work: Vec<Possibility> = self.possible.iter().cloned().collect();
        while let Some(possibility) = work.pop() {
            if !seen.insert(possibility.clone()) {
                continue;
            }
            if let Some(result) = possibility.results[thread] {
                if result == outcome {
                    let mut possibility = possibility;
                    possibility.results[thread] = None;
                    agree.insert(possibility);
                }
                continue;
            }
            for (other, open) in self.open.iter().enumerate() {
                let Some(open) = open else { continue };
                if other == thread {
                    for items in open.effects(spec, &possibility.items, outcome) {
                        agree.insert(Possibility { items, ..possibility.clone() });
                    }
                } else if possibility.results[other].is_none() {
                    for result in open.results(spec, &possibility.items) {
                        for items in open.effects(spec, &possibility.items, result) {
                            let mut next = Possibility { items, ..possibility.clone() };
                            next.results[other] = Some(result);
                            work.push(next);
                        }
                    }
                }
            }
        }
        agree
    }
}

impl Open {
    /// What the object may hold once this has taken effect with this outcome: nothing if it cannot.
    fn effects(&self, spec: Spec, items: &VecDeque<Item>, outcome: Outcome) -> Vec<VecDeque<Item>> {
        let known = |item: &Item| item.visible && !self.late.contains(&item.task);
        spec.apply(items, self.call, Some(outcome), self.outrun, &known)
    }

    /// What it may return if it takes effect now. That it was outrun need not be guessed: it
    /// changes nothing, and depends on nothing that the object holds.
    fn results(&self, spec: Spec, items: &VecDeque<Item>) -> Vec<Outcome> {
        if let Call::Push(_) = self.call {
            return vec![Outcome::Done];
        }
        let tasks = spec.takable(items, self.call == Call::Steal);
        let mut results: Vec<Outcome> =
            tasks.map(|place| Outcome::Task(items[place].task)).collect();
        results.extend([Outcome::Empty, Outcome::Abort]);
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;
    use crate::spec::check;

    const SPECS: [Spec; 9] = [
        Spec::Deque,
        Spec::DequeWithAbort { margin: 1 },
        Spec::DequeWithAbort { margin: 2 },
        Spec::PartlyPrivate,
        Spec::PartlyPrivateLifo,
        Spec::PartlyPrivateFifo,
        Spec::AtLeastOnce,
        Spec::Fifo,
        Spec::Pool,
    ];

    /// A random history of three threads: the length of the longest beginning that both allow.
    fn follow(spec: Spec, random: &mut fastrand::Rng) -> Result<usize, String> {
        let (mut history, mut monitor) = (History::default(), Monitor::new(spec));
        let (mut open, mut hidden) = ([None; 3], [const { VecDeque::new() }; 3]);
        let mut next = 1;
        for event in 0..24 {
            let thread = random.usize(..3);
            match open[thread] {
                _ if !hidden[thread].is_empty() && random.bool() => {
                    hidden[thread].pop_front();
                    if let Some(Call::Push(task)) = history.show(thread) {
                        monitor.visible(task);
                    }
                }
                None => {
                    let call = match (thread, random.u8(..3)) {
                        (0, 0 | 1) => {
                            next += 1;
                            Call::Push(next - 1)
                        }
                        (0, _) => Call::Pop,
                        _ => Call::Steal,
                    };
                    let mut others = (0..3).filter(|&other| other != thread);
                    let busy = |other: usize| open[other].is_some() || !hidden[other].is_empty();
                    monitor.call(thread, call, others.any(busy));
                    history.call(thread, call);
                    open[thread] = Some(call);
                }
                Some(call) => {
                    let outcome = match (call, random.u8(..10)) {
                        (Call::Push(_), _) => Outcome::Done,
                        (_, 0..7) => Outcome::Task(random.u64(1..=next)),
                        (_, 7) => Outcome::Empty,
                        (_, 8) => Outcome::Abort,
                        (_, _) => Outcome::Retry,
                    };
                    let delayed = random.bool();
                    history.ret(thread, outcome, delayed);
                    let allowed = monitor.returns(thread, outcome);
                    match (call, delayed) {
                        (_, true) => hidden[thread].push_back(()),
                        (Call::Push(task), false) => monitor.visible(task),
                        _ => {}
                    }
                    open[thread] = None;
                    if allowed != check(spec, &history).is_ok() {
                        return Err(format!("{spec:?}: {allowed}: {:?}", history.operations()));
                    }
                    if !allowed {
                        return Ok(event);
                    }
                }
            }
        }
        Ok(24)
    }

    #[test]
    fn it_allows_what_the_whole_history_allows() {
        let mut longest = 0;
        for seed in 0..60_000 {
            let spec = SPECS[seed as usize % SPECS.len()];
            match follow(spec, &mut fastrand::Rng::with_seed(seed)) {
                Ok(length) => longest += usize::from(length >= 12),
                Err(difference) => panic!("seed {seed}: {difference}"),
            }
        }
        assert!(longest > 1_000, "{longest} of them are long");
    }

    #[test]
    fn what_order_calls_came_in_is_forgotten() {
        let mut monitor = Monitor::new(Spec::Deque);
        let mut ends = Vec::new();
        for first in [0, 1] {
            monitor.reset();
            for thread in [first, 1 - first] {
                let call = if thread == 0 { Call::Pop } else { Call::Steal };
                monitor.call(thread, call, false);
                assert!(monitor.returns(thread, Outcome::Empty));
            }
            ends.push(monitor.state());
        }
        assert_eq!(ends[0], ends[1]);
    }
}
