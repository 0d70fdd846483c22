//! The one loop of a worker: it looks for work and runs it, looks on for a while when there is none, and then sleeps, until
//! something is done.

use poach_memory::{Machine, Memory};

use super::{Local, Work};
use crate::job::token::Worker;
use crate::scheduler::give_way::GiveWay;

/// How often an idle worker looks at everything before it sleeps: first at once, then giving its
/// processor away after each look, if that does not take long (`GiveWay`).
pub(super) const LOOKS: u32 = 64;
/// How many of these looks come without giving the processor away. After them, and before it sleeps, it exposes
/// what owners keep private that do not come back: see "Private tasks behind a long leaf" in `sleep/README.md`.
pub(super) const EAGER_LOOKS: u32 = 16;
/// Pauses between two eager looks.
const PAUSES: u32 = 8;

/// What a worker takes, and how it looks and sleeps.
pub(super) trait Search {
    /// Whether something is under way on this worker.
    fn waits(&self) -> bool {
        true
    }

    /// Before each look, of which `looks` in a row have found nothing. How many those are now.
    fn prepare(&mut self, local: &Local, looks: u32, done: &dyn Fn() -> bool) -> u32;

    /// Whether it leaves to others what lies in their deques, looks for nothing else, and then sleeps at once.
    fn stands_aside(&self, _: &Local) -> bool {
        false
    }

    fn find<'l>(
        &self,
        local: &'l Local,
        thief: Option<usize>,
        stands_aside: bool,
    ) -> Option<Work<'l>>;

    /// `work` has been found, after so many looks that found nothing, and is run now.
    fn found(&mut self, local: &Local, work: &Work<'_>, looks: u32);

    /// A look has found nothing, after one that did.
    fn begin(&mut self, _: &Local) {}

    /// Makes something visible that others keep private.
    fn expose(&self, local: &Local, thief: Option<usize>) -> bool;

    /// Whether it looks on, though it has looked [`LOOKS`] times.
    fn goes_on(&self, _: &Local) -> bool {
        false
    }

    /// Sleeps, if there is still nothing. How many looks count as made then, or none if it has slept for as long as it was to.
    fn sleep(
        &mut self,
        local: &Local,
        thief: Option<usize>,
        done: &dyn Fn() -> bool,
    ) -> Option<u32>;

    /// At the end, after so many looks that found nothing.
    fn end(&mut self, _: &Local, _looks: u32) {}
}

impl Local {
    /// Works until `done`, or until `search` has slept for as long as it was to. `thief` runs what this worker waits for, once
    /// it has said so, and `token` is this worker's token for what it runs.
    pub(super) fn work_until<'w>(
        &self,
        done: &dyn Fn() -> bool,
        thief: &dyn Fn() -> Option<usize>,
        token: impl Fn() -> Worker<'w>,
        mut search: impl Search,
    ) {
        let waits = search.waits();
        let _waiting = waits.then(|| self.watch.waits());
        let following = waits.then(|| self.registry.sleep.follow(self.index));
        let (mut looks, mut way) = (0, GiveWay::new());
        while !done() {
            let thief = thief();
            if let Some(following) = &following {
                following.set(thief);
            }
            looks = search.prepare(self, looks, done);
            let aside = search.stands_aside(self);
            if let Some(work) = search.find(self, thief, aside) {
                search.found(self, &work, looks);
                way.found();
                looks = 0;
                let _on_top = waits.then(|| self.on_top());
                self.run(work, token());
                continue;
            }
            way.found_nothing();
            if looks == 0 {
                search.begin(self);
            }
            looks += 1;
            if aside {
                looks = LOOKS;
            }
            if (looks == EAGER_LOOKS || looks == LOOKS) && !aside && search.expose(self, thief) {
                // Something to steal now.
            } else if looks < LOOKS || !aside && !way.is_contended() && search.goes_on(self) {
                // The last look comes again, with its exposure.
                looks = if looks < LOOKS { looks } else { LOOKS - 2 };
                if looks < EAGER_LOOKS || !way.yields() {
                    Local::pause();
                }
            } else {
                self.registry.fork_guard.check_or_abort();
                match search.sleep(self, thief, done) {
                    Some(made) => looks = made,
                    None => return,
                }
            }
        }
        way.found();
        search.end(self, looks);
    }

    fn pause() {
        for _ in 0..PAUSES {
            Machine::pause();
        }
    }
}
