//! Waits that take little: forks of a few workers, and what only this worker may take. See [`Waiting`](crate::waiting).

use std::cell::Cell;
use std::ptr;
use std::time::Duration;

use super::{EAGER_LOOKS, LOOKS, Local, Work, execute};
use crate::job::fork::Worker;
use crate::observe::track::Activity;
use crate::scheduler::registry::Registry;
use crate::scheduler::sleep::LONGEST;
use crate::scheduler::waiting::Waiting;

/// Whether a restricted wait takes what this worker itself has spawned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    Taken,
    Left,
}

impl Local {
    /// Whether waits for handles and calls are to take nothing.
    pub(crate) fn is_still(&self) -> bool {
        self.blocks.get() || self.registry.wait_policy.waiting == Waiting::Sleep
    }

    /// Waits for a handle, or for a call of this worker's own into a pool, until `done`.
    pub(crate) fn wait_for_call(&self, done: &dyn Fn() -> bool) {
        if !self.is_still() {
            return self.wait_for_any(done);
        }
        if self.guest.is_some() {
            self.hand_over();
        }
        self.follow_until(done, &|| None, || self.token(), Own::Left, None);
    }

    /// [`wait_for_any`](Local::wait_for_any), with half of the call stack in use.
    #[cold]
    pub(super) fn wait_deep(&self, done: &dyn Fn() -> bool) {
        let (mut time, _deep) = self.nesting_depth.deep_wait();
        let mut patience = Some(time);
        while !done() {
            if let Some(time) = patience.take() {
                self.follow_until(done, &|| None, || self.token(), Own::Left, Some(time));
                continue;
            }
            let oldest = self.oldest_own().map(|task| Work::Task(task, Activity::OwnTask));
            let found = oldest.or_else(|| match self.guest {
                Some(_) => self.find_needed(None, Own::Left),
                None => self.find(None),
            });
            if let Some(work) = found {
                let _on_top = self.on_top();
                self.run(work, self.token());
            } else {
                time = (time * 2).min(LONGEST);
                patience = Some(time);
            }
        }
    }

    /// Whether this worker begins a task of `pool` that it waits for: on the pool's own thread, when it is to take nothing else, and
    /// with some of the call stack left; one `in_order` not before its turn, if that comes.
    pub(crate) fn begins(&self, pool: &Registry, in_order: bool) -> bool {
        ptr::eq(&raw const *self.registry, pool)
            && self.guest.is_none()
            && (self.is_still() || !in_order && self.nesting_depth.is_deep())
            && !self.nesting_depth.is_at_its_end()
    }

    /// Runs a task of its own pool that this worker waits for.
    pub(crate) fn run_awaited(&self, run: impl FnOnce()) {
        let _on_top = self.on_top();
        self.hint.set(self.token().head());
        execute(self.watch.runs(Activity::OwnTask), run);
    }

    /// Runs what this worker has pushed since its queue had this top.
    #[cold]
    pub(crate) fn run_above(&self, top: u64) {
        while self.spawns.top() > top
            && let Some(task) = self.spawns.pop()
        {
            self.count_down(execute(self.watch.runs(Activity::OwnTask), || task.run()));
        }
    }

    /// Another task stands on top of what this worker does, until the value is dropped.
    pub(super) fn on_top(&self) -> impl Sized {
        (self.nesting_depth.task(), self.set_blocks(false))
    }

    /// Whether the task in hand [blocks](crate::blocking()), until the value is dropped.
    pub(crate) fn set_blocks(&self, blocks: bool) -> impl Drop {
        struct Restore<'l>(&'l Cell<bool>, bool);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        Restore(&self.blocks, self.blocks.replace(blocks))
    }

    /// [`wait`](Local::wait) with restriction: takes forks of `thief` and those whom it waits for, and `own` tasks, if it may.
    /// Never a searcher. At its end when `done`, or when it has slept for so long as `time` says.
    pub(super) fn follow_until<'w>(
        &self,
        done: &dyn Fn() -> bool,
        thief: &dyn Fn() -> Option<usize>,
        token: impl Fn() -> Worker<'w>,
        own: Own,
        time: Option<Duration>,
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
            if let Some(work) = self.find_needed(thief, own) {
                if let Work::Fork(_, victim, _) = work
                    && looks != 0
                    && self.registry.workers[victim].forks.shared() != 0
                {
                    sleep.call_follower(victim);
                }
                looks = 0;
                let _on_top = self.on_top();
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
                let over = sleep.sleep_following(self.index, time, || {
                    let shares = |link: usize| self.registry.workers[link].forks.shared() != 0;
                    done() || self.remote().has_mail() || self.chain(thief).any(shares)
                });
                if over {
                    return;
                }
                looks = 1;
            }
        }
    }

    /// What a restricted wait takes.
    pub(super) fn find_needed(&self, thief: Option<usize>, own: Own) -> Option<Work<'_>> {
        if let Some(task) = self.remote().calls.take().or_else(|| self.remote().mail.take()) {
            return Some(Work::Task(task, Activity::InjectedTask));
        }
        if own == Own::Taken
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
