//! A thread from outside in the place of a worker that has nothing under way: "Taking a sleeper's place" in
//! `sleep/README.md`.

use poach_memory::{Machine, Memory};

use super::Local;
use crate::registry::Registry;
use crate::track::Activity;
use crate::waiting::CallStack;

/// Pauses for which a caller from outside waits for an offered place: several times those between two looks.
const MEETING: u32 = 64;

impl Local {
    /// Calls `f` in the place of a worker that has nothing under way, and sleeps or [offers](crate::sleep::Sleep::offer)
    /// its place, if there is one; else gives `f` back. For a thread that is no worker.
    pub(crate) fn in_place_of_an_idle_one<R, F: FnOnce() -> R>(
        registry: &Registry,
        f: F,
    ) -> Result<R, F> {
        /// Gives the place back, also when `f` unwinds.
        struct Place<'r> {
            registry: &'r Registry,
            index: usize,
            local: &'r Local,
            /// How many requests had been answered when the place was taken.
            answers: u64,
            /// Of the worker's own thread.
            stack: CallStack,
        }
        impl Drop for Place<'_> {
            fn drop(&mut self) {
                let Place { registry, index, local, answers, stack } = *self;
                local.pile.stack.set(stack);
                let left_behind = !local.spawns.is_empty();
                // From here on the Local is the worker's.
                registry.sleep.give_back(index, || {
                    registry.request_everywhere(Some(index));
                    left_behind
                        || registry.is_closing()
                        || registry.visible_work()
                        || registry.workers[index].has_mail()
                        || (registry.sleep.answers() != answers && registry.does_anybody_run())
                });
            }
        }
        registry.birth.check();
        let Some(index) = registry.sleep.take_place().or_else(|| Local::meet(registry)) else {
            return Err(f);
        };
        let local = Local::of_idle(registry, index);
        let stack = local.pile.stack.replace(CallStack::here(None));
        let answers = registry.sleep.answers();
        let place = Place { registry, index, local, answers, stack };
        Ok(place.local.enter(|local| {
            let _running = local.watch.runs(Activity::InPlace);
            local.watch.is_here();
            f()
        }))
    }

    /// Waits a moment for a place to be offered, if somebody looks for work, and takes it; or that of one
    /// that goes to sleep meanwhile.
    #[cold]
    fn meet(registry: &Registry) -> Option<usize> {
        let sleep = &registry.sleep;
        for _ in 0..MEETING {
            if let Some(index) = sleep.take_offer() {
                // O4.
                Local::of_idle(registry, index).found();
                return Some(index);
            }
            if !sleep.is_anybody_searching() {
                return None;
            }
            Machine::pause();
            if let Some(index) = sleep.take_place() {
                return Some(index);
            }
        }
        None
    }
}
