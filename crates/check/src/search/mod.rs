//! The search: which event comes next, and which executions need not be run.
//!
//! # What is left out, and why nothing is missed
//!
//! *Unnoticeable steps* are taken at once ([`Machine::noticeable`]): each is a persistent set.
//!
//! *Sleep sets* (Godefroid). Suppose that all executions that begin with event `a` have been
//! explored from a state, and that `b`, which does not conflict with `a`, is taken there next. Then
//! `a` need not be taken right after `b`: that would be `b` after `a`, already seen. So `a` sleeps
//! until something that conflicts with it happens. What conflicts is decided as the execution runs,
//! from the words that the pending steps name: the reduction is dynamic. Two drains conflict if
//! they write one word; a drain or a step and a step, if they touch one word and one of them writes
//! it. A thread's own step and its own drain, where both can happen, never conflict: the load finds
//! the same value in the buffer and in memory, and the store has room either way. Returns conflict
//! with calls, because the specification asks which came first; so does the drain of an operation's
//! last store, after which it outruns nobody any more.
//!
//! *States* are not explored twice. A state is what the future depends on:
//!
//! - memory, the buffers, and each thread's local state. A thread is deterministic, so that is a
//!   function of what it has read so far, of which the fingerprint is kept.
//! - the set of possibilities that the specification's monitor has arrived at
//!   ([`monitor`](crate::monitor)). The order in which calls and returns came is no part of the
//!   state: no future verdict depends on it otherwise.
//! - of a thief that has returned from a steal, the number of its steals, and no longer what it has
//!   read ([`forget`](crate::engine::forget)). It goes back to a loop that keeps nothing, and takes
//!   a fresh handle no larger than a pointer to the queue. What it did to words is in memory. What
//!   it did to cells is not in memory, but in the fingerprints of their contents, which are those
//!   of their writers' states. While clocks are kept for the verdict on races and freed memory, its
//!   clock and the times at which it used each word and cell stay part of the state.
//!
//! Sleep sets and states are combined as Godefroid does: each state is kept with the sleep set that
//! it was explored with. If the state comes again with a sleep set that lacks some of those events,
//! exactly these events are explored. Every step changes its thread's fingerprint, so no state can
//! come again within one execution, and nothing is put off for ever. `tests/it/litmus.rs`, and
//! `crates/models/tests/it/reduction.rs`, compare the verdicts and outcomes with those of searches
//! that leave out less.
//!
//! *Waiting.* Of the rounds of a waiting thread the search explores those that see something new,
//! and that the thread gives up at any of them: see [`machine::waits`](crate::machine) for the
//! argument. Giving up conflicts with every write to a word that the thread has looked at.
//!
//! Fingerprints have 64 bits: among n states the odds that two share one are n^2 / 2^65 (for ten
//! million states, three in a million).
//!
//! # Random search
//!
//! Probabilistic concurrency testing (Burckhardt et al., ASPLOS 2010). Every thread, every buffer's
//! drain and every buffer's coalescing has a random priority. Of those that can move, the highest
//! moves; at d - 1 random steps its priority falls to the lowest.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::machine::{
    ByFingerprint, Event, Events, Footprint, KINDS, Kind, MAX_THREADS, Machine, Op, RETURNED, bit,
    decode, drain, give_up, mix, shift, step,
};
use crate::monitor::Monitor;
use crate::spec::Spec;
use crate::weakening::Weakening;
use crate::{Config, Consistency, Incomplete, Report, Strategy, Verdict, Violation};

mod conclude;
mod node;
mod order;

pub(crate) use node::End;
use node::{Node, Shortest, enabled, possible, unnoticed};

/// Marks an event of a trace that was no choice.
pub(crate) const EAGER: u8 = 0x80;

/// Why there are executions that the search has not covered, though it has ended.
#[derive(Clone, Copy, Debug, Default)]
struct LeftOut {
    /// They have more preemptions than it was allowed.
    preemptions: bool,
    /// In them a waiting thread gives up more often than it was let.
    waits: bool,
    /// They differ from those covered in a part that the model did not want explored.
    unexplored: bool,
}

/// Whether the model wants to have alternatives explored; see [`explore`](crate::loom::explore).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exploring {
    Yes,
    No,
    /// No more in this execution, whatever the model asks for later.
    Skips,
}

pub(crate) struct Search {
    config: Config,
    pub(crate) spec: Option<Spec>,
    pub(crate) names: [&'static str; MAX_THREADS],
    trace: Vec<u8>,
    position: usize,
    /// Up to here the trace is a replay.
    fixed: usize,
    /// The last choice of the replay ends here: what the choices before it did is known from
    /// earlier executions.
    known_to: usize,
    nodes: Vec<Node>,
    states: HashMap<u64, Events, ByFingerprint>,
    monitor: Option<Monitor>,
    /// The sleep set of the next state, before it is compared with the last event.
    sleep: Events,
    returns: Events,
    last: Event,
    last_footprint: Footprint,
    /// The last event was chosen at the last node.
    last_at_node: bool,
    last_step: usize,
    front_changed: Events,
    preemptions: u32,
    left_out: LeftOut,
    pub(crate) exploring: Exploring,
    pub(crate) end: Option<End>,
    found: Option<Violation>,
    shortest: Option<Shortest>,
    found_at: u64,
    pub(crate) duplicate: Option<Vec<u8>>,
    duplicates: u64,
    pub(crate) stolen: bool,
    started: Instant,
    stop: Arc<AtomicBool>,
    begun: bool,
    random: fastrand::Rng,
    priorities: [u32; KINDS * MAX_THREADS],
    drops: Vec<usize>,
    lowest: u32,
    executions: u64,
    completed: u64,
    restarts: u32,
    known: u64,
    asleep: u64,
    steps: u64,
    depth: usize,
    outcomes: BTreeSet<Vec<u64>>,
    pub(crate) demands: BTreeSet<Weakening>,
}

impl Search {
    pub(crate) fn new() -> Self {
        Search {
            config: Config::default(),
            spec: None,
            names: [""; MAX_THREADS],
            trace: Vec::new(),
            position: 0,
            fixed: 0,
            known_to: 0,
            nodes: Vec::new(),
            states: HashMap::default(),
            monitor: None,
            sleep: 0,
            returns: 0,
            last: 0,
            last_footprint: Footprint::default(),
            last_at_node: false,
            last_step: MAX_THREADS,
            front_changed: 0,
            preemptions: 0,
            left_out: LeftOut::default(),
            exploring: Exploring::Yes,
            end: None,
            found: None,
            shortest: None,
            found_at: 0,
            duplicate: None,
            duplicates: 0,
            stolen: false,
            started: Instant::now(),
            stop: Arc::new(AtomicBool::new(false)),
            begun: false,
            random: fastrand::Rng::with_seed(0),
            priorities: [0; KINDS * MAX_THREADS],
            drops: Vec::new(),
            lowest: 0,
            executions: 0,
            completed: 0,
            restarts: 0,
            known: 0,
            asleep: 0,
            steps: 0,
            depth: 0,
            outcomes: BTreeSet::new(),
            demands: BTreeSet::new(),
        }
    }

    pub(crate) fn begin(&mut self, config: &Config) {
        // Under weak memory what has returned need not be seen: an order of calls and returns says
        // nothing.
        let spec = config.spec.filter(|_| config.consistency == Consistency::Tso);
        *self = Search { spec, stop: config.stop.clone(), ..Search::new() };
        self.monitor = spec.map(Monitor::new);
        self.config = config.clone();
    }

    pub(crate) fn monitor<R>(&mut self, hears: impl FnOnce(&mut Monitor) -> R) -> Option<R> {
        self.monitor.as_mut().map(hears)
    }

    pub(crate) fn prepare(&mut self) -> bool {
        if !self.begun {
            self.begun = true;
            self.rewind();
            return true;
        }
        if self.limit().is_some() {
            return false;
        }
        let again = matches!(self.end, Some(End::Restart | End::Probed));
        match self.config.strategy {
            Strategy::Exhaustive { .. } if self.end == Some(End::Probed) => {
                self.follow_trace();
                true
            }
            // Only a run shows which words two threads share.
            Strategy::Replay(_) if again => {
                self.restarts += u32::from(self.end == Some(End::Restart));
                self.rewind();
                true
            }
            Strategy::Replay(_) => false,
            Strategy::Random { executions, .. } => {
                self.trace.clear();
                self.fixed = 0;
                self.shortest.is_none() && self.executions < executions
            }
            Strategy::Exhaustive { .. } => {
                if self.end == Some(End::Restart) {
                    self.restarts += 1;
                    self.trace.clear();
                    self.follow_trace();
                    self.nodes.clear();
                    self.states.clear();
                    self.outcomes.clear();
                    self.duplicate = None;
                    self.duplicates = 0;
                    return true;
                }
                self.backtrack()
            }
        }
    }

    /// Goes to the beginning of the execution that the strategy asks for, if it does.
    fn rewind(&mut self) {
        if let Strategy::Replay(choices) = &self.config.strategy {
            self.trace.clone_from(choices);
            self.fixed = choices.len();
        }
    }

    fn backtrack(&mut self) -> bool {
        while let Some(node) = self.nodes.last_mut() {
            if node.todo == 0 {
                self.nodes.pop();
                continue;
            }
            let event = node.todo.trailing_zeros() as Event;
            node.todo &= !bit(event);
            self.sleep = node.sleep | node.done;
            self.returns = node.returns;
            node.done |= bit(event);
            self.trace.truncate(node.at);
            self.trace.push(event);
            self.follow_trace();
            return true;
        }
        false
    }

    /// The next execution begins with the whole trace. What its choices did is worked out again for
    /// the last one alone: an earlier execution has gone on after each of the others.
    fn follow_trace(&mut self) {
        self.fixed = self.trace.len();
        let last = self.trace.iter().rposition(|event| event & EAGER == 0);
        self.known_to = last.map_or(0, |last| last + 1);
    }

    fn limit(&self) -> Option<Incomplete> {
        if self.stop.load(Ordering::Relaxed) {
            // Relaxed: the flag is all there is to see.
            return Some(Incomplete::Stopped);
        }
        // An execution without an end costs as much as thousands of others, and is like its neighbours.
        let endless = |best: &Shortest| matches!(best.violation, Violation::Livelock(_));
        let shorten =
            if self.shortest.as_ref().is_some_and(endless) { 0 } else { self.config.shorten };
        if self.shortest.is_some() && self.executions >= self.found_at + shorten {
            return Some(Incomplete::Found);
        }
        if self.executions >= self.config.max_executions {
            return Some(Incomplete::Executions(self.config.max_executions));
        }
        if self.states.len() as u64 >= self.config.max_states {
            return Some(Incomplete::States(self.config.max_states));
        }
        match self.config.max_time {
            Some(time) if self.started.elapsed() >= time => Some(Incomplete::Time(time)),
            _ => None,
        }
    }

    pub(crate) fn replay(&mut self, choices: Vec<u8>) {
        self.fixed = choices.len();
        self.known_to = 0;
        self.trace = choices;
        self.config.strategy = Strategy::Replay(Vec::new());
    }

    pub(crate) fn start(&mut self, _machine: &mut Machine) {
        self.position = 0;
        self.end = None;
        self.found = None;
        self.last_step = MAX_THREADS;
        self.last_at_node = false;
        self.preemptions = 0;
        self.front_changed = 0;
        if self.fixed == 0 {
            self.sleep = 0;
            self.returns = 0;
        }
        if let Strategy::Random { seed, depth, .. } = self.config.strategy {
            self.random.seed(seed.wrapping_add(self.executions));
            for priority in &mut self.priorities {
                *priority = self.random.u32(1 << 16..);
            }
            self.lowest = 1 << 16;
            self.drops.clear();
            let length = self.depth.max(32);
            for _ in 1..depth {
                self.drops.push(self.random.usize(..length));
            }
        }
    }

    #[inline]
    pub(crate) fn next(&mut self, machine: &mut Machine) -> Option<Event> {
        let chosen = if self.position < self.trace.len() {
            let event = self.trace[self.position];
            if !possible(machine, event) {
                self.violate(Violation::Replay(self.position));
                return None;
            }
            event
        } else {
            let event = self.choose(machine)?;
            self.trace.push(event);
            event
        };
        self.position += 1;
        let (kind, thread) = decode(chosen & !EAGER);
        if chosen & EAGER == 0 {
            if self.position >= self.known_to {
                self.take_effect(machine, chosen);
            }
            if matches!(kind, Kind::Step | Kind::GiveUp) {
                self.note_switch(machine, thread);
            }
        } else if kind == Kind::Step && matches!(machine.threads[thread].pending, Op::Pause) {
            // What it could have given up is over.
            self.front_changed |= bit(give_up(thread));
        }
        Some(chosen)
    }

    fn take_effect(&mut self, machine: &mut Machine, chosen: Event) {
        self.commit(machine);
        self.last = chosen;
        self.last_footprint = machine.footprint(chosen);
        if decode(chosen).0 == Kind::Shift {
            // To look for another message changes nothing; that there are more may change what can
            // be found.
            self.last_footprint = Footprint::default();
        }
        machine.marks = 0;
        self.front_changed = 0;
        self.last_at_node = self.nodes.last().is_some_and(|node| node.at + 1 == self.position);
    }

    fn note_switch(&mut self, machine: &Machine, thread: usize) {
        let last = self.last_step;
        let counts =
            matches!(self.config.strategy, Strategy::Exhaustive { preemptions: Some(_), .. });
        if counts && last != thread && last < MAX_THREADS && machine.enabled(last) {
            self.preemptions += 1;
        }
        self.last_step = thread;
    }

    /// What the last chosen event has done to the history, with its unnoticeable consequences.
    #[inline]
    fn commit(&mut self, machine: &Machine) {
        self.last_footprint.marks |= machine.marks;
        if self.last_at_node && machine.marks & RETURNED != 0 {
            if let Some(node) = self.nodes.last_mut() {
                node.returns |= bit(self.last);
            }
        }
    }

    /// The execution has gone on for longer than any that ends.
    pub(crate) fn endless(&mut self) {
        self.violate(Violation::Livelock(self.trace.len()));
    }

    fn choose(&mut self, machine: &mut Machine) -> Option<Event> {
        if self.trace.len() >= self.config.max_steps {
            self.endless();
            return None;
        }
        if machine.fruitless() {
            self.end = Some(End::Asleep);
            self.asleep += 1;
            return None;
        }
        match self.config.strategy {
            Strategy::Random { .. } => self.choose_randomly(machine),
            Strategy::Replay(_) => {
                let enabled = enabled(machine);
                if enabled == 0 {
                    self.over(machine);
                    return None;
                }
                Some(enabled.trailing_zeros() as Event)
            }
            Strategy::Exhaustive { preemptions, reduce, prune } => {
                self.choose_exhaustively(machine, preemptions, reduce, prune)
            }
        }
    }

    fn choose_exhaustively(
        &mut self,
        machine: &mut Machine,
        bound: Option<u32>,
        reduce: bool,
        prune: bool,
    ) -> Option<Event> {
        if reduce {
            if let Some(event) = unnoticed(machine) {
                return Some(event | EAGER);
            }
        }
        let enabled = enabled(machine);
        if enabled == 0 {
            self.over(machine);
            return None;
        }
        self.left_out.waits |= machine.holds_one() || machine.left_old;
        if self.shortest.as_ref().is_some_and(|best| self.trace.len() >= best.length) {
            self.end = Some(End::TooLong);
            return None;
        }
        self.commit(machine);
        let mut sleep = 0;
        if reduce && bound.is_none() {
            // While a thread chooses a message, what the others could do sleeps on.
            let mut rest = self.sleep & if machine.choosing().is_some() { !0 } else { enabled };
            while rest != 0 {
                let event = rest.trailing_zeros() as Event;
                rest &= rest - 1;
                if !self.wakes(machine, event) {
                    sleep |= bit(event);
                }
            }
        }
        if self.exploring != Exploring::Yes {
            self.left_out.unexplored |= enabled.count_ones() > 1;
            let event = self.first(machine, enabled);
            self.sleep = sleep & !bit(event);
            self.returns &= self.sleep;
            return Some(event);
        }
        let mut todo = enabled & !sleep;
        if let Some(bound) = bound {
            let within = self.within(machine, enabled, bound);
            self.left_out.preemptions |= within != todo;
            todo = within;
        }
        if todo == 0 {
            self.end = Some(End::Asleep);
            self.asleep += 1;
            return None;
        }
        if prune && enabled.count_ones() > 1 {
            let mut key = machine.fingerprint();
            if let Some(monitor) = &self.monitor {
                key = mix(key, monitor.state());
            }
            if bound.is_some() {
                key = mix(key, u64::from(self.preemptions) << 8 | self.last_step as u64);
            }
            match self.states.entry(key) {
                std::collections::hash_map::Entry::Vacant(vacant) => {
                    vacant.insert(sleep);
                }
                std::collections::hash_map::Entry::Occupied(mut known) => {
                    // What was asleep at every visit so far, and is not now.
                    todo &= *known.get();
                    *known.get_mut() &= sleep;
                    if todo == 0 {
                        self.end = Some(End::Known);
                        self.known += 1;
                        return None;
                    }
                    // The others were explored at an earlier visit. Whether they return is not
                    // kept; that they do is the safe guess.
                    self.returns |= enabled & !todo & !sleep;
                    sleep = enabled & !todo;
                }
            }
        }
        let event = self.first(machine, todo);
        self.sleep = sleep;
        self.returns &= sleep;
        let rest = todo & !bit(event);
        if rest != 0 {
            self.nodes.push(Node {
                at: self.trace.len(),
                todo: rest,
                done: bit(event),
                sleep,
                returns: self.returns,
            });
        }
        Some(event)
    }

    /// Whether a sleeping event must be explored again after the last event.
    fn wakes(&self, machine: &Machine, event: Event) -> bool {
        if self.front_changed & bit(event) != 0 {
            return true;
        }
        let (kind, thread) = decode(event);
        let (last_kind, last_thread) = decode(self.last);
        if thread == last_thread {
            // All but a step and a drain: two steps, a drain and a merging of the same two entries,
            // a step and the choice of its message.
            let steps = |kind| matches!(kind, Kind::Step | Kind::GiveUp);
            let drains = |kind| kind == Kind::Drain;
            return !(steps(kind) && drains(last_kind) || drains(kind) && steps(last_kind));
        }
        let mut footprint = machine.footprint(event);
        if self.returns & bit(event) != 0 {
            footprint.marks |= RETURNED;
        }
        footprint.conflicts(&self.last_footprint)
    }

    fn over(&mut self, machine: &Machine) {
        let finished = machine.threads[..machine.count]
            .iter()
            .all(|thread| matches!(thread.pending, Op::Finished));
        if finished {
            self.end = Some(End::Complete);
        }
    }

    /// A return has changed what draining the front of a buffer means.
    pub(crate) fn front_changed(&mut self, thread: usize) {
        self.front_changed |= bit(drain(thread));
    }

    #[cold]
    pub(crate) fn all_changed(&mut self) {
        self.front_changed = !0;
    }

    pub(crate) fn violate(&mut self, violation: Violation) {
        if self.found.is_none() {
            self.found = Some(violation);
        }
        self.end = Some(End::Violation);
    }

    /// The destructor of what the panic held that has just been found has panicked as well.
    #[cold]
    pub(crate) fn destructor_panicked(&mut self, text: &str) {
        if let Some(Violation::Panic(found)) = &mut self.found {
            found.push_str(", whose destructor panicked: ");
            found.push_str(text);
        }
    }

    pub(crate) fn close(&mut self, machine: &Machine) {
        self.commit(machine);
        if self.end.is_none() {
            self.end = Some(End::Complete);
        }
    }

    pub(crate) fn wants_duplicates(&self) -> bool {
        self.spec == Some(Spec::AtLeastOnce)
    }

    pub(crate) fn note_duplicate(&mut self) {
        self.duplicates += 1;
        if self.duplicate.as_ref().is_none_or(|known| known.len() > self.trace.len()) {
            self.duplicate = Some(self.trace.clone());
        }
    }

    pub(crate) fn found(&self) -> Option<Violation> {
        self.found.clone()
    }
}
