//! What a model's thread says of its execution: what it has seen, what is wrong, what it forgets.

use std::panic::resume_unwind;

use super::{Engine, GivenUp, Mode, Violation, dynamic, with};
use crate::Unexplained;
use crate::trace::place;

/// Says that what the running thread does from here on depends on nothing that it has read: it has
/// returned from an operation, to a loop and with handles that keep nothing. Executions in which it
/// has read different things are one from here on.
pub fn forget() {
    with(|engine| {
        if engine.mode == Mode::Run && !engine.probes() {
            engine.machine.forget_reads(engine.current);
        }
    });
}

/// Takes note that a thief has got something, where no operation says so.
pub fn stole() {
    with(|engine| engine.search.stolen |= engine.mode == Mode::Run && !engine.probes());
}

/// Adds a value to what this execution has to show: [`Report::outcomes`](crate::Report::outcomes)
/// holds the distinct lists. `place` is the value's place in that list.
pub fn observe(place: usize, value: u64) {
    with(|engine| {
        // A cut execution shows nothing.
        if !matches!(engine.mode, Mode::Run | Mode::After) {
            return;
        }
        if engine.observed.len() <= place {
            engine.observed.resize(place + 1, 0);
        }
        engine.observed[place] = value;
    });
}

/// Says what is wrong with an execution, and ends it: for a model's threads and its final check,
/// which know what no specification of operations says.
///
/// # Panics
///
/// Outside of an execution.
pub fn fail(kind: crate::Kind, text: impl Into<String>) -> ! {
    let found = Unexplained { kind, text: text.into() };
    with(|engine| {
        engine.need_execution();
        // A cut execution shows nothing.
        if matches!(engine.mode, Mode::Run | Mode::After) && !engine.probes() {
            engine.search.violate(Violation::History(found));
        }
    });
    resume_unwind(Box::new(GivenUp))
}

/// Ends the execution, and the thread: what it would read next means nothing.
pub(crate) fn race(message: String) -> ! {
    let keep_whole = with(|engine| {
        engine.search.violate(Violation::Race(message));
        engine.keep_whole
    });
    if keep_whole {
        dynamic::stay();
    }
    resume_unwind(Box::new(GivenUp))
}

impl Engine {
    pub(super) fn look_for_races(&mut self, thread: usize) {
        let used_alone = self.machine.used_alone.take().filter(|_| self.alone.is_none());
        if let Some(other) = used_alone {
            let text = format!(
                "nothing orders the store at {} and the use without synchronization at {}",
                place(self.machine.threads[thread].site),
                place(other),
            );
            self.search.violate(Violation::Race(text));
            return;
        }
        let Some(weak) = &mut self.machine.weak else { return };
        let Some((loc, maker)) = weak.race.take() else { return };
        if self.alone.is_some() {
            return;
        }
        let names = &self.search.names;
        let made = self
            .machine
            .register
            .made_at(loc)
            .map_or_else(String::new, |site| format!(" at {}", place(site)));
        let text = format!(
            "nothing orders the making of a word by {}{made} and its use by {} at {}",
            names[maker],
            names[thread],
            place(self.machine.threads[thread].site),
        );
        self.search.violate(Violation::Race(text));
    }
}
