//! Waits and idleness that take any work.

use std::cell::Cell;
use std::time::Duration;

use poach_memory::{Machine, Memory};

use super::search::{EAGER_LOOKS, LOOKS, Search};
use super::{Local, Work};
use crate::observe::track::Activity;
use crate::scheduler::registry::{Priority, Remote};
use crate::scheduler::sleep::{LONGEST, LONGEST_OWNERS_NAP, Slept};

/// The first nap of a worker that sleeps while another runs something. The next ones double, up to [`LONGEST`], unless owners
/// hesitate to wake anybody: then they are as long as this, or [`LONGEST_OWNERS_NAP`] at most while nobody runs anything. See `sleep/README.md`.
const NAP: Duration = Duration::from_millis(1);

/// Takes anything.
pub(super) struct Unrestricted {
    /// Nothing is under way on this worker: to look for work is what it is there for.
    idle: bool,
    nap: Duration,
}

impl Unrestricted {
    pub(super) fn idle() -> Unrestricted {
        Unrestricted { idle: true, nap: NAP }
    }

    /// A wait for something that may depend on any work.
    pub(super) fn wait() -> Unrestricted {
        Unrestricted { idle: false, nap: NAP }
    }
}

impl Search for Unrestricted {
    fn waits(&self) -> bool {
        !self.idle
    }

    /// Rests between two steals of small tasks, as [`StealBackoff`](crate::scheduler::steal_backoff::StealBackoff) says.
    fn prepare(&mut self, local: &Local, looks: u32, done: &dyn Fn() -> bool) -> u32 {
        if self.idle
            && local.spawns.is_empty()
            && let Some(stolen) = local.backoff.end()
        {
            local.lookout.worked(stolen.worked);
            if let Some(rest) = stolen.rest {
                // It may have looked in vain before its last spawned task was stolen.
                if looks == 0 {
                    local.registry.sleep.search();
                }
                let _sleeping = local.watch.sleeps();
                local.registry.sleep.rest(local.index, rest, || {
                    done() || local.registry.has_injected() || local.remote().has_mail()
                });
                return 1;
            }
        }
        looks
    }

    fn stands_aside(&self, local: &Local) -> bool {
        self.idle && local.registry.sleep.is_crowded() && local.spawns.is_empty()
    }

    fn find<'l>(
        &self,
        local: &'l Local,
        thief: Option<usize>,
        stands_aside: bool,
    ) -> Option<Work<'l>> {
        if stands_aside { local.find_handed_over() } else { local.find(thief) }
    }

    fn found(&mut self, local: &Local, work: &Work<'_>, looks: u32) {
        if looks != 0 {
            local.found();
        }
        self.nap = NAP;
        if self.idle {
            let stolen = work.is_stolen();
            local.lookout.found(stolen);
            if stolen {
                local.backoff.begin();
            }
        }
    }

    fn begin(&mut self, local: &Local) {
        local.registry.sleep.search();
        if self.idle {
            local.lookout.begin();
        }
    }

    fn expose(&self, local: &Local, _: Option<usize>) -> bool {
        local.expose(local.others())
    }

    fn goes_on(&self, local: &Local) -> bool {
        self.idle && local.lookout.goes_on()
    }

    fn sleep(&mut self, local: &Local, _: Option<usize>, done: &dyn Fn() -> bool) -> Option<u32> {
        let sleeping = local.watch.sleeps();
        let registry = &*local.registry;
        if self.idle
            && let Some(worked) = local.lookout.sleeps()
        {
            registry.wake_policy.woken(worked);
        }
        let (mut fences, mut private) = (0, false);
        let stands_aside = Cell::new(false);
        let look_again = || {
            registry.request_everywhere(Some(local.index));
            if done() || registry.has_injected() || local.remote().has_mail() {
                return true;
            }
            // One that stands aside leaves what owners have to those that are at work.
            if self.idle && registry.sleep.leaves_it_to_guests() {
                stands_aside.set(true);
                return false;
            }
            let alone = registry.leaves_alone();
            if registry.visible_work(alone) {
                return true;
            }
            private = registry.private_work(local.index, alone, || Local::fence(&mut fences));
            private
        };
        // Nobody has looked behind a barrier for one that stands aside.
        let longest = || if stands_aside.get() { NAP } else { LONGEST };
        let nap = || local.nap(self.nap.min(longest()));
        let slept = registry.sleep.sleep(local.index, look_again, nap);
        drop(sleeping);
        local.watch.fenced(fences);
        let (looks, nap) = match slept {
            Slept::ToTheEnd => (LOOKS - 1, (self.nap * 2).min(LONGEST)),
            Slept::Called => {
                if self.idle {
                    local.lookout.is_woken();
                }
                (1, NAP)
            }
            // What it has seen it exposes at its next look.
            Slept::NotAtAll if private => (EAGER_LOOKS - 1, self.nap),
            Slept::NotAtAll => (1, NAP),
        };
        self.nap = nap;
        Some(looks)
    }

    fn end(&mut self, local: &Local, looks: u32) {
        if looks != 0 {
            local.found();
        }
    }
}

impl Local {
    /// What anybody may take, and first what a wait for `thief` needs.
    pub(super) fn find(&self, thief: Option<usize>) -> Option<Work<'_>> {
        if let Some(task) = self.remote().calls.take() {
            return Some(Work::Task(task, Activity::InjectedTask));
        }
        if let Some(stolen) = self.steal_from_chain(thief) {
            return Some(stolen);
        }
        if let Some(task) = self.registry.injected(Priority::High) {
            return Some(Work::Task(task, Activity::InjectedTask));
        }
        if let Some(task) = self.pop_own() {
            return Some(Work::Task(task, Activity::OwnTask));
        }
        if let Some(task) = self.remote().mail.take() {
            return Some(Work::Task(task, Activity::InjectedTask));
        }
        for victim in self.remote().victim_order.begun_at(self.next_random()) {
            if let Some(work) = self.steal_fork(victim, false) {
                return Some(work);
            }
            if let Some(task) = self.steal_tasks(victim) {
                return Some(Work::Task(task, Activity::StolenTask { victim }));
            }
        }
        self.registry
            .injected(Priority::Normal)
            .map(|task| Work::Task(task, Activity::InjectedTask))
    }

    /// What comes from outside, or only this worker may take.
    fn find_handed_over(&self) -> Option<Work<'_>> {
        let Remote { calls, mail, .. } = self.remote();
        let injected = |priority| self.registry.injected(priority);
        let task = calls.take().or_else(|| injected(Priority::High)).or_else(|| mail.take());
        let task = task.or_else(|| injected(Priority::Normal));
        task.map(|task| Work::Task(task, Activity::InjectedTask))
    }

    /// A searcher has found something: lines L1 to L3. If it was the last one, and others sleep, nobody is left to
    /// expose what an owner that does not come back keeps private, before this worker comes back itself.
    fn found(&self) {
        if !self.registry.found() {
            return;
        }
        let mut fences = 0;
        let alone = self.registry.leaves_alone();
        let private = self.registry.private_work(self.index, alone, || Local::fence(&mut fences));
        self.watch.fenced(fences);
        if private {
            for victim in self.others() {
                if self.expose([victim]) {
                    self.registry.sleep.wake_for(victim);
                }
            }
        }
    }

    /// How long to sleep before another look, if there may be something to see by then: a worker runs something, or
    /// owners hesitate, so that one that runs something soon may put requests off.
    fn nap(&self, nap: Duration) -> Option<Duration> {
        // In this order: see "Requests that are put off" in `sleep/README.md`.
        let hesitate = self.registry.wake_policy.hesitates();
        match (self.registry.does_anybody_run(), hesitate) {
            (true, false) => Some(nap),
            (true, true) => Some(nap.min(NAP)),
            (false, true) => Some(nap.min(LONGEST_OWNERS_NAP)),
            (false, false) => None,
        }
    }

    /// A process-wide barrier, and one more of them. It pairs with the light fence of a push: see
    /// `poach_deque::split`, "A thief that is about to sleep".
    fn fence(fences: &mut u64) {
        Machine::heavy();
        *fences += 1;
    }
}
