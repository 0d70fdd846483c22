//! What a worker without a thread of its own does differently: "Guests" in `sleep/README.md`.

use super::{Own, WorkerThread};
use crate::shared::waiting::CallStack;
use crate::stats::track::Activity;

impl WorkerThread {
    /// Whether this is a thread from outside.
    pub(crate) fn is_guest(&self) -> bool {
        self.guest.is_some()
    }

    /// Whether a restricted wait for a half takes own tasks: that of a guest, unless it is deep.
    pub(super) fn own_of_a_guest(&self) -> Own {
        if self.is_guest() && !self.nesting_depth.is_deep() { Own::Taken } else { Own::NotTaken }
    }

    /// Works as a guest for as long as `f` runs; the place is this thread's.
    pub(crate) fn visit<R>(&self, f: impl FnOnce() -> R) -> R {
        self.nesting_depth.stack.set(CallStack::here(None));
        self.enter(|local| {
            let _running = local.watch.runs(Activity::InPlace);
            local.watch.is_here();
            f()
        })
    }

    /// A guest sleeps in a wait, or blocks, until the value is dropped. A wait of one that blocks leaves it as it is.
    pub(crate) fn dozes(&self) -> impl Drop {
        struct Rouse<'l>(&'l WorkerThread, Option<usize>);
        impl Drop for Rouse<'_> {
            fn drop(&mut self) {
                if let Some(place) = self.1 {
                    self.0.shared.sleep.rouse(place);
                }
            }
        }
        // With a request on its own deque: one that blocks may push.
        let look = || self.shared.relieve(None);
        let place = self.guest.filter(|&place| self.shared.sleep.doze(place, look));
        Rouse(self, place)
    }

    /// Gives what this worker has spawned and not started to the pool's other workers.
    pub(crate) fn hand_over(&self) {
        while let Some(task) = self.pop_own() {
            self.shared.inject(task);
        }
    }
}
