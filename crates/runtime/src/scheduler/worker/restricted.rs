//! Waits that take little: forks of a few workers, and what only this worker may take. See [`Waiting`](crate::waiting).

use super::{EAGER_LOOKS, LOOKS, Local, Work};
use crate::job::fork::Worker;
use crate::observe::track::Activity;

impl Local {
    /// [`wait`](Local::wait) with restriction. Never a searcher.
    pub(super) fn follow_until<'w>(
        &self,
        done: &dyn Fn() -> bool,
        thief: &dyn Fn() -> Option<usize>,
        token: impl Fn() -> Worker<'w>,
    ) {
        let sleep = &self.registry.sleep;
        let _waiting = self.watch.waits();
        let following = sleep.follow(self.index);
        let mut looks = 0;
        while !done() {
            let thief = thief();
            following.set(thief);
            if looks == 0 {
                self.spawns.share();
            }
            if let Some(work) = self.find_needed(thief) {
                if let Work::Fork(_, victim, _) = work
                    && looks != 0
                    && self.registry.workers[victim].forks.shared() != 0
                {
                    sleep.call_follower(victim);
                }
                looks = 0;
                let _on_top = self.nesting_depth.task();
                self.run(work, token());
                continue;
            }
            looks += 1;
            if (looks == EAGER_LOOKS || looks == LOOKS) && self.expose_forks(self.chain(thief)) {
                // Something to steal now.
            } else if looks < LOOKS {
                Local::pause_between_looks(looks);
            } else {
                self.registry.fork_guard.check_or_abort();
                let _sleeping = self.watch.sleeps();
                let _dozing = self.dozes();
                sleep.sleep_following(self.index, || {
                    let shares = |link: usize| self.registry.workers[link].forks.shared() != 0;
                    done() || self.remote().has_mail() || self.chain(thief).any(shares)
                });
                looks = 1;
            }
        }
    }

    /// What a restricted wait takes.
    pub(super) fn find_needed(&self, thief: Option<usize>) -> Option<Work<'_>> {
        if let Some(task) = self.remote().calls.take().or_else(|| self.remote().mail.take()) {
            return Some(Work::Task(task, Activity::InjectedTask));
        }
        if self.guest.is_some()
            && let Some(task) = self.pop_own()
        {
            return Some(Work::Task(task, Activity::OwnTask));
        }
        self.steal_from_chain(thief)
    }

    /// A fork of `thief`, or of a worker that it waits for, and so on.
    pub(super) fn steal_from_chain(&self, thief: Option<usize>) -> Option<Work<'_>> {
        self.chain(thief).find_map(|link| self.steal_fork(link, true))
    }

    /// Whom a wait for `thief` takes from.
    fn chain(&self, thief: Option<usize>) -> impl Iterator<Item = usize> {
        self.registry.sleep.chain(thief).take_while(|&link| link != self.index)
    }
}
