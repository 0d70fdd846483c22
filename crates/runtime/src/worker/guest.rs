//! What a worker without a thread of its own does differently: "Guests" in `sleep/README.md`.

use super::Local;
use crate::track::Activity;
use crate::waiting::CallStack;

impl Local {
    /// Whether this is a thread from outside.
    pub(crate) fn is_guest(&self) -> bool {
        self.guest.is_some()
    }

    /// Works as a guest for as long as `f` runs; the place is this thread's. So much had been left to guests before G1.
    pub(crate) fn visit<R>(&self, left_before: u64, f: impl FnOnce() -> R) -> R {
        self.left_before.set(left_before);
        self.pile.stack.set(CallStack::here(None));
        self.enter(|local| {
            let _running = local.watch.runs(Activity::InPlace);
            local.watch.is_here();
            f()
        })
    }

    /// A guest sleeps in a wait, or blocks, until the value is dropped.
    pub(crate) fn dozes(&self) -> impl Drop {
        struct Rouse<'l>(&'l Local);
        impl Drop for Rouse<'_> {
            fn drop(&mut self) {
                let Local { registry, guest, left_before, .. } = self.0;
                if let Some(place) = *guest {
                    left_before.set(registry.sleep.left_to_guests());
                    registry.sleep.rouse(place);
                }
            }
        }
        if let Some(place) = self.guest {
            let left_before = self.left_before.get();
            self.registry.sleep.doze(place, || self.registry.relieve(self.index, left_before));
        }
        Rouse(self)
    }

    /// How often something had been left to guests when this one came.
    pub(crate) fn left_before(&self) -> u64 {
        self.left_before.get()
    }

    /// Gives what this worker has spawned and not started to whoever comes for it.
    pub(crate) fn hand_over(&self) {
        while let Some(task) = self.pop_own() {
            self.registry.inject(task);
        }
    }
}
