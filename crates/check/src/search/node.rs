//! What the search keeps of a state at which there was a choice, and what can come next in one.

use super::{
    EAGER, Event, Events, Kind, Machine, Violation, bit, decode, drain, give_up, shift, step,
};
use crate::machine::{barrier, coalesce};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Every thread has finished and every buffer is empty.
    Complete,
    /// It came to a state that is explored already.
    Known,
    /// All that could happen next sleeps.
    Asleep,
    /// It can no longer beat the shortest counterexample.
    TooLong,
    Violation,
    /// What the reduction relied on does not hold: from the beginning again.
    Restart,
    /// It was spent to learn when a waiting thread gives up: once more up to there.
    Probed,
}

pub(super) struct Node {
    pub(super) at: usize,
    pub(super) todo: Events,
    pub(super) done: Events,
    pub(super) sleep: Events,
    /// The events of `done` and `sleep` that return, or make a push visible.
    pub(super) returns: Events,
}

pub(super) struct Shortest {
    pub(super) length: usize,
    pub(super) switches: usize,
    pub(super) trace: Vec<u8>,
    pub(super) violation: Violation,
}
pub(super) fn enabled(machine: &Machine) -> Events {
    let mut events = 0;
    if let Some(thread) = machine.choosing() {
        let may = |can, event| if can { bit(event) } else { 0 };
        return may(machine.enabled(thread), step(thread))
            | may(machine.can_shift(thread), shift(thread));
    }
    for thread in 0..machine.count {
        if machine.enabled(thread) {
            events |= bit(step(thread));
        }
        if !machine.buffer(thread).is_empty() {
            events |= bit(drain(thread));
        }
        if machine.coalesces_at(thread).is_some() {
            events |= bit(coalesce(thread));
        }
        if machine.can_give_up(thread, false) {
            events |= bit(give_up(thread));
        }
        if machine.can_shift(thread) {
            events |= bit(shift(thread));
        }
        if machine.barrier_comes(thread) {
            events |= bit(barrier(thread));
        }
    }
    if events == 0 {
        let alone = (0..machine.count).filter(|&thread| machine.can_give_up(thread, true));
        return alone.fold(0, |events, thread| events | bit(give_up(thread)));
    }
    events
}

/// An event that no thread can notice, if there is one.
pub(super) fn unnoticed(machine: &Machine) -> Option<Event> {
    if machine.choosing().is_some() {
        return None;
    }
    (0..machine.count).find_map(|thread| {
        if machine.enabled(thread) && !machine.noticeable(thread) {
            Some(step(thread))
        } else if machine.drains_unnoticed(thread) {
            Some(drain(thread))
        } else if machine.can_give_up(thread, false) && !machine.gives_up_noticeably(thread) {
            Some(give_up(thread))
        } else {
            None
        }
    })
}

pub(super) fn possible(machine: &Machine, event: Event) -> bool {
    let (kind, thread) = decode(event & !EAGER);
    thread < machine.count
        && machine.choosing().is_none_or(|choosing| choosing == thread)
        && match kind {
            Kind::Step => machine.enabled(thread),
            Kind::Drain => !machine.buffer(thread).is_empty(),
            Kind::Coalesce => machine.coalesces_at(thread).is_some(),
            Kind::GiveUp => machine.can_give_up(thread, true),
            Kind::Shift => machine.can_shift(thread),
            Kind::Barrier => machine.barrier_comes(thread),
        }
}
