//! Waits and idleness that take any work.

use std::cell::Cell;
use std::time::Duration;

use crate::pace::{EAGER_LOOKS, FIRST_NAP, LONGEST_NAP, LONGEST_OWNERS_NAP, SPIN_LOOKS};
use crate::sleep::Slept;
use crate::worker::idle::{SearchRules, Searcher, Sees, Takes, steal_from_chain};

/// Takes anything.
pub struct Unrestricted {
    /// Nothing is under way on this worker: to look for work is what it is there for.
    idle: bool,
    nap: Duration,
}

impl Unrestricted {
    /// Of a worker with nothing under way.
    pub fn idle() -> Unrestricted {
        Unrestricted { idle: true, nap: FIRST_NAP }
    }

    /// A wait for something that may depend on any work.
    pub fn wait() -> Unrestricted {
        Unrestricted { idle: false, nap: FIRST_NAP }
    }
}

/// A worker that has been asleep from the beginning of its pool sleeps until it is called. Returns how many looks count as made.
pub fn begin_asleep<W: Searcher>(worker: &W) -> u32 {
    let spin_time = worker.spin_time();
    spin_time.begin();
    spin_time.sleeps();
    let sleeping = worker.sleeps();
    worker.sleep().sleep_on(worker.index());
    drop(sleeping);
    spin_time.is_woken();
    1
}

impl<W: Takes + Sees> SearchRules<W> for Unrestricted {
    /// Rests between two steals of small tasks, as [`StealBackoff`](crate::worker::steal_backoff::StealBackoff) says.
    fn prepare(&mut self, worker: &W, looks: u32, done: &dyn Fn() -> bool) -> u32 {
        if self.idle
            && !worker.has_own_tasks()
            && let Some(stolen) = worker.backoff().end()
        {
            worker.spin_time().worked(stolen.worked);
            if let Some(rest) = stolen.rest {
                // It may have looked in vain before its last spawned task was stolen.
                if looks == 0 {
                    worker.sleep().search();
                }
                let _sleeping = worker.sleeps();
                let look_again = || done() || worker.is_handed_something();
                worker.sleep().rest(worker.index(), rest, look_again);
                return 1;
            }
        }
        looks
    }

    fn stands_aside(&self, worker: &W) -> bool {
        self.idle && worker.sleep().is_crowded() && !worker.has_own_tasks()
    }

    fn find<'w>(
        &self,
        worker: &'w W,
        thief: Option<usize>,
        stands_aside: bool,
    ) -> Option<W::Work<'w>> {
        if stands_aside { find_handed_over(worker) } else { find(worker, thief) }
    }

    fn begin(&mut self, worker: &W) {
        worker.sleep().search();
        if self.idle {
            worker.spin_time().begin();
        }
    }

    fn expose(&self, worker: &W, _: Option<usize>) -> bool {
        worker.victims().any(|victim| worker.expose(victim))
    }

    fn spins(&self, worker: &W) -> Option<bool> {
        self.idle.then(|| worker.spin_time().goes_on())
    }

    fn sleep(&mut self, worker: &W, _: Option<usize>, done: &dyn Fn() -> bool) -> Option<u32> {
        let sleeping = worker.sleeps();
        let sleep = worker.sleep();
        // Before S1: an answer that comes later may come after the look at private tasks.
        let unanswered = worker.awaits_barrier();
        if self.idle
            && let Some(worked) = worker.spin_time().sleeps()
        {
            worker.wake_policy().woken(worked);
        }
        let mut private = false;
        let stands_aside = Cell::new(false);
        let look_again = || {
            worker.request_everywhere(Some(worker.index()));
            if done() || worker.is_handed_something() {
                return true;
            }
            // One that stands aside leaves what owners have to those that are at work.
            if self.idle && sleep.stands_aside_for_guests() {
                stands_aside.set(true);
                return false;
            }
            if worker.visible_work() {
                return true;
            }
            private = worker.private_work();
            private
        };
        // Nobody has looked behind a barrier for one that stands aside.
        let longest = || if stands_aside.get() { FIRST_NAP } else { LONGEST_NAP };
        let nap = || nap(worker, self.nap.min(longest()), unanswered);
        let slept = sleep.sleep(worker.index(), look_again, nap);
        drop(sleeping);
        let (looks, nap) = match slept {
            Slept::ToTheEnd => (SPIN_LOOKS - 1, (self.nap * 2).min(LONGEST_NAP)),
            Slept::Called => {
                if self.idle {
                    worker.spin_time().is_woken();
                }
                (1, FIRST_NAP)
            }
            // What it has seen it exposes at its next look.
            Slept::NotAtAll if private => (EAGER_LOOKS - 1, self.nap),
            Slept::NotAtAll => (1, FIRST_NAP),
        };
        self.nap = nap;
        Some(looks)
    }

    fn end(&mut self, worker: &W, work: Option<&W::Work<'_>>, looks: u32) {
        if looks != 0 {
            // The pool of an idle worker that is done ends, so everybody is called.
            if self.idle && work.is_none() {
                worker.sleep().stop_search();
            } else {
                stop_search(worker);
            }
        }
        let Some(work) = work else { return };
        self.nap = FIRST_NAP;
        if self.idle {
            let stolen = W::is_stolen(work);
            worker.spin_time().stop(stolen);
            if stolen {
                worker.backoff().begin();
            }
        }
    }
}

/// What anybody may take, and first what a wait for `thief` needs.
pub(super) fn find<W: Takes>(worker: &W, thief: Option<usize>) -> Option<W::Work<'_>> {
    let found = worker
        .handed_over(true)
        .or_else(|| steal_from_chain(worker, thief))
        .or_else(|| worker.injected(true))
        .or_else(|| worker.own_task())
        .or_else(|| worker.handed_over(false));
    if found.is_some() {
        return found;
    }
    for victim in worker.victims() {
        let stolen = worker.steal_fork(victim, false).or_else(|| worker.steal_tasks(victim));
        if stolen.is_some() {
            return stolen;
        }
    }
    worker.injected(false)
}

/// What comes from outside, or only this worker may take.
fn find_handed_over<W: Takes>(worker: &W) -> Option<W::Work<'_>> {
    let found = worker.handed_over(true).or_else(|| worker.injected(true));
    found.or_else(|| worker.handed_over(false)).or_else(|| worker.injected(false))
}

/// A searcher has found something: lines L1 to L3. If it was the last one, and others sleep, nobody is left to
/// expose what an owner that does not come back keeps private, before this worker comes back itself.
fn stop_search<W: Sees>(worker: &W) {
    if !worker.sleep().stop_search() {
        return;
    }
    worker.request_everywhere(None);
    if worker.call_for_visible_work() {
        return;
    }
    if worker.private_work() {
        for victim in worker.victims() {
            if worker.expose(victim) {
                worker.sleep().wake_for(victim);
            }
        }
    }
}

/// How long to sleep before another look, if there may be something to see by then: a worker runs
/// something, or owners hesitate, so that one that runs something soon may put requests off; or the
/// barrier is `unanswered`, so that nobody can expose what a worker keeps private that runs
/// something soon.
fn nap<W: Sees>(worker: &W, nap: Duration, unanswered: bool) -> Option<Duration> {
    // In this order: see "Requests that are put off" in `sleep/README.md`.
    let hesitate = worker.wake_policy().hesitates();
    match (worker.does_anybody_run(), hesitate) {
        (true, false) => Some(nap),
        (true, true) => Some(nap.min(FIRST_NAP)),
        (false, true) => Some(nap.min(LONGEST_OWNERS_NAP)),
        (false, false) => unanswered.then_some(nap),
    }
}
