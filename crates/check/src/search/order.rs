//! In which order events are tried, and which of them a bound leaves.

use super::{
    Event, Events, KINDS, MAX_THREADS, Machine, Search, bit, enabled, give_up, shift, step,
};

impl Search {
    /// The order in which events are tried: the running thread first, so that counterexamples
    /// switch threads seldom; then other threads; drains last, so that buffers fill.
    pub(super) fn first(&self, machine: &Machine, todo: Events) -> Event {
        let last = self.last_step;
        if last < machine.count && todo & bit(step(last)) != 0 {
            return step(last);
        }
        todo.trailing_zeros() as Event
    }

    pub(super) fn within(&self, machine: &Machine, enabled: Events, bound: u32) -> Events {
        let last = self.last_step;
        if self.preemptions < bound || last >= MAX_THREADS || !machine.enabled(last) {
            return enabled;
        }
        let others = (0..MAX_THREADS).filter(|&i| i != last);
        let begins = |i| bit(step(i)) | bit(give_up(i)) | bit(shift(i));
        let others: Events = others.map(begins).sum();
        enabled & !others
    }

    pub(super) fn choose_randomly(&mut self, machine: &Machine) -> Option<Event> {
        let enabled = enabled(machine);
        if enabled == 0 {
            self.over(machine);
            return None;
        }
        let highest = |priorities: &[u32]| {
            (0..(KINDS * MAX_THREADS) as u8)
                .filter(|event| enabled & bit(*event) != 0)
                .max_by_key(|event| priorities[*event as usize])
                .unwrap_or_default()
        };
        let mut event = highest(&self.priorities);
        if self.drops.contains(&self.trace.len()) {
            self.lowest -= 1;
            self.priorities[event as usize] = self.lowest;
            event = highest(&self.priorities);
        }
        Some(event)
    }
}
