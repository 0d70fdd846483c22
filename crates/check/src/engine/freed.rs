//! What is made, freed and dropped in an execution; see `machine::kept`.

use std::panic::Location;

use poach_memory::Freed;

use super::{ENGINE, Engine, Kept, MAX_THREADS, Mode, Violation, dispose, with};
use crate::machine::Touch;
use crate::trace::place;

pub(crate) fn new_word(value: u64, site: &'static Location<'static>) -> (u32, u64) {
    with(|engine| {
        let loc = engine.new_word(value);
        let register = &mut engine.machine.register;
        register.word_made(loc, site);
        (loc, register.execution)
    })
}

pub(crate) fn new_cell(site: &'static Location<'static>) -> (u32, u64) {
    with(|engine| {
        engine.need_execution();
        let register = &mut engine.machine.register;
        (register.cell_made(site), register.execution)
    })
}

/// Acts on the execution that a word or a cell belongs to, if that is still on. A word may be
/// dropped when its thread has ended, or while the engine is at work.
fn of(execution: u64, act: impl FnOnce(&mut Engine)) {
    let _ = ENGINE.try_with(|engine| {
        if let Ok(mut engine) = engine.try_borrow_mut() {
            if engine.machine.register.execution == execution {
                act(&mut engine);
            }
        }
    });
}

pub(crate) fn word_dropped(loc: u32, execution: u64) {
    of(execution, |engine| {
        let touches = engine.machine.register.word_dropped(loc);
        let found = engine.freeing.and_then(|freeing| freeing.unordered(touches));
        if let Some(found) = found {
            engine.used_after_freed(found);
        }
    });
}

pub(crate) fn cell_dropped(
    number: u32,
    execution: u64,
    touches: impl FnOnce() -> [Option<Touch>; MAX_THREADS],
) {
    of(execution, |engine| {
        engine.machine.register.cell_dropped(number);
        let found = engine.freeing.and_then(|freeing| freeing.unordered(&touches()));
        if let Some(found) = found {
            engine.used_after_freed(found);
        }
    });
}

pub(crate) fn free(object: Freed, site: &'static Location<'static>) {
    let unused = with(|engine| match engine.mode {
        // Nobody runs: nobody uses it.
        Mode::Idle | Mode::SetUp | Mode::After => Some(object),
        Mode::Run | Mode::Teardown | Mode::Unwind => {
            engine.keep(object, site);
            None
        }
    });
    drop(unused);
}

/// Drops what the execution has freed, and `look`s whether it was used afterwards.
pub(super) fn drop_kept(look: bool) {
    for Kept { object, freeing } in with(|engine| std::mem::take(&mut engine.kept)) {
        with(|engine| engine.freeing = freeing.filter(|_| look));
        if let Some(text) = dispose(object) {
            if look {
                let text = format!("what a thread has freed panicked when it was dropped: {text}");
                with(|engine| engine.search.violate(Violation::Panic(text)));
            }
        }
    }
    with(|engine| engine.freeing = None);
}

impl Engine {
    fn keep(&mut self, object: Freed, site: &'static Location<'static>) {
        let twice = self.kept.iter().any(|kept| kept.object.address() == object.address());
        if twice {
            // The first of the two frees it.
            std::mem::forget(object);
            if self.mode == Mode::Run && !self.probes() {
                let name = self.search.names[self.current];
                let text = format!("{name} frees at {} what is freed already", place(site));
                self.search.violate(Violation::Freed(text));
            }
            return;
        }
        let mut freeing = None;
        if self.mode == Mode::Run && !self.probes() {
            if self.machine.clocks {
                freeing = Some(self.machine.freeing(self.current, site));
            } else {
                // From the next execution on; this one has no clocks to go by.
                self.machine.clocks_wanted = true;
                self.machine.knowledge_grew = true;
            }
        }
        self.kept.push(Kept { object, freeing });
    }

    fn used_after_freed(&mut self, (user, (_, used)): (usize, Touch)) {
        let Some(freeing) = self.freeing else { return };
        let names = &self.search.names;
        let text = format!(
            "{} frees at {} what {} uses at {}, and nothing orders the use before that",
            names[freeing.thread],
            place(freeing.site),
            names[user],
            place(used),
        );
        self.search.violate(Violation::Freed(text));
    }

    pub(super) fn look_for_leaks(&mut self) {
        let left = self.machine.register.alive;
        if left > 0 {
            if let Some(site) = self.machine.left() {
                let text = format!(
                    "{left} words and cells are left that nobody frees, one of them made at {}",
                    place(site)
                );
                self.search.violate(Violation::Leak(text));
            }
        }
    }
}
