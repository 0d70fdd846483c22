//! Restricted waits: they take forks of a few workers, and work that only this worker may take. See
//! [`Waiting`](crate::waiting).

use std::cell::Cell;
use std::ptr;
use std::time::Duration;

use super::{Work, WorkerThread, execute};
use crate::pace::BURST_TASKS_AT_ONCE;
use crate::shared::PoolShared;
use crate::shared::waiting::{CallStack, Waiting};
use crate::stats::track::Activity;
use crate::task::value::Task;
use crate::worker::find::{chain, find, steal_from_chain};
use crate::worker::idle::{SearchRules, Searcher, Takes};

/// Whether a restricted wait takes this worker's own spawned tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    Taken,
    NotTaken,
}

/// A wait that takes forks of the thief and of the workers that the thief waits for, and its own
/// tasks as `own` says. It is never a searcher. It ends also when it has slept for `time`.
pub(super) struct Restricted {
    own: Own,
    time: Option<Duration>,
}

impl Restricted {
    pub(super) fn wait(own: Own) -> Restricted {
        Restricted { own, time: None }
    }

    /// A wait that ends when it has slept for `time`.
    pub(super) fn wait_for(time: Duration) -> Restricted {
        Restricted { own: Own::NotTaken, time: Some(time) }
    }
}

impl SearchRules<WorkerThread> for Restricted {
    fn prepare(&mut self, local: &WorkerThread, looks: u32, _: &dyn Fn() -> bool) -> u32 {
        if looks == 0 {
            local.spawns.share();
        }
        looks
    }

    fn find<'l>(&self, local: &'l WorkerThread, thief: Option<usize>, _: bool) -> Option<Work<'l>> {
        local.find_needed(thief, self.own)
    }

    /// It looked for a fork of `victim`, which shares more: another follower may take that.
    fn end(&mut self, local: &WorkerThread, work: Option<&Work<'_>>, looks: u32) {
        if let Some(Work::Fork(_, victim, _)) = work {
            if looks != 0 && local.shared.workers[*victim].forks.shared() != 0 {
                local.shared.sleep.call_follower(*victim);
            }
        }
    }

    fn expose(&self, local: &WorkerThread, thief: Option<usize>) -> bool {
        chain(local, thief).any(|victim| local.expose_forks(victim))
    }

    fn sleep(
        &mut self,
        local: &WorkerThread,
        thief: Option<usize>,
        done: &dyn Fn() -> bool,
    ) -> Option<u32> {
        let _sleeping = local.sleeps();
        let _dozing = local.dozes();
        let over = local.shared.sleep.sleep_following(local.index, self.time, || {
            let shared = &local.shared;
            let shares = |link: usize| shared.workers[link].forks.shared() != 0;
            done() || local.slot().has_mail() || chain(local, thief).any(shares)
        });
        (!over).then_some(1)
    }
}

impl WorkerThread {
    /// Whether waits for handles and calls take nothing.
    pub(crate) fn is_still(&self) -> bool {
        self.blocks.get() || self.shared.wait_policy.waiting == Waiting::Sleep
    }

    /// Waits for a handle, or for a call of this worker's own into a pool, until `done`. `begin`
    /// runs the awaited task, if it may and that has not begun.
    pub(crate) fn wait_for_call(&self, done: &dyn Fn() -> bool, begin: &dyn Fn() -> bool) {
        if !self.is_still() {
            return self.wait_for_any(done, begin);
        }
        self.wait_still(done);
    }

    /// Waits until `done`, and takes only calls and mail.
    pub(crate) fn wait_still(&self, done: &dyn Fn() -> bool) {
        if self.guest.is_some() {
            self.hand_over();
        }
        self.work_until(done, &|| None, || self.token(), Restricted::wait(Own::NotTaken));
    }

    #[cold]
    pub(super) fn wait_deep(&self, done: &dyn Fn() -> bool) {
        let (mut patience, _deep) = self.slot().deep_waits.begin();
        let mut takes = false;
        while !done() {
            if !takes {
                let begun = self.shared.tasks_begun();
                let search = Restricted { own: Own::NotTaken, time: Some(patience.time()) };
                self.work_until(done, &|| None, || self.token(), search);
                let nobody_else = self.shared.is_alone_at_work(self.index);
                takes = patience.ends(nobody_else, self.shared.tasks_begun() == begun);
                continue;
            }
            let oldest = self.oldest_own().map(|task| Work::Task(task, Activity::OwnTask));
            let found = oldest.or_else(|| match self.guest {
                Some(_) => self.find_needed(None, Own::NotTaken),
                None => find(self, None),
            });
            takes = found.is_some();
            match found {
                Some(work) => {
                    let _on_top = self.on_top();
                    self.run(work, self.token());
                }
                None => patience.doubles(),
            }
        }
    }

    /// Waits until `done`, or until no task under way may be awaited by others, and takes tasks
    /// that the task in hand has pushed, and futures: see "Tasks beside each other" in `waiting`.
    #[cold]
    pub(super) fn wait_beside(&self, done: &dyn Fn() -> bool, begin: &dyn Fn() -> bool) {
        let over = || done() || !self.shared.has_awaitable();
        if over() {
            return;
        }
        let (mut patience, _deep) = self.slot().deep_waits.begin();
        let mut needed = 0_u32;
        while !over() && !begin() {
            let pushed = self.youngest_of_task().map(|task| Work::Task(task, Activity::OwnTask));
            if let Some(work) = pushed.or_else(|| self.future()) {
                let _on_top = self.on_top();
                self.run(work, self.token());
                needed = needed.wrapping_add(1);
                if needed % BURST_TASKS_AT_ONCE != 0 {
                    continue;
                }
                // Futures that wake themselves may wait for a closure that nobody else begins.
                let oldest = self.oldest_own().map(|task| Work::Task(task, Activity::OwnTask));
                if let Some(work) = oldest.or_else(|| find(self, None)) {
                    self.run(work, self.token());
                }
                continue;
            }
            let begun = self.shared.tasks_begun();
            let search = Restricted { own: Own::NotTaken, time: Some(patience.time()) };
            self.work_until(&over, &|| None, || self.token(), search);
            let nobody_else = self.shared.is_alone_at_work(self.index);
            if over() || !nobody_else || self.shared.tasks_begun() != begun {
                continue;
            }
            let oldest = self.oldest_own().map(|task| Work::Task(task, Activity::OwnTask));
            match oldest.or_else(|| find(self, None)) {
                Some(work) => {
                    let _on_top = self.on_top();
                    self.run(work, self.token());
                }
                None => patience.doubles(),
            }
        }
    }

    fn youngest_of_task(&self) -> Option<Task> {
        if self.spawns.top() > self.own_from.get() { self.spawns.pop() } else { None }
    }

    /// Until the value is dropped, the present tasks in this worker's queue are no part of the task
    /// in hand.
    pub(crate) fn own_from_here(&self) -> impl Drop {
        struct Restore<'l>(&'l Cell<u64>, u64);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        Restore(&self.own_from, self.own_from.replace(self.spawns.top()))
    }

    /// May run the awaited task here, on a thread of its pool with some call stack left, if the
    /// wait takes nothing else, or only what it needs. An `in_order` task runs here only if
    /// this wait itself would not come to its turn.
    pub(crate) fn begins(&self, pool: &PoolShared, in_order: bool) -> bool {
        ptr::eq(&raw const *self.shared, pool)
            && self.guest.is_none()
            && (self.is_still()
                || self.shared.has_awaitable()
                || !in_order && self.nesting_depth.is_deep())
            && !self.nesting_depth.is_at_its_end()
    }

    pub(crate) fn run_awaited(&self, run: impl FnOnce()) {
        let _on_top = (self.on_top(), self.own_from_here());
        self.hint.set(self.token().head());
        execute(self.watch.runs(Activity::OwnTask), run);
    }

    /// Runs the tasks that this worker has pushed since its queue had this top.
    #[cold]
    pub(crate) fn run_above(&self, top: u64) {
        while self.spawns.top() > top {
            let Some(task) = self.spawns.pop() else { break };
            self.count_down(execute(self.watch.runs(Activity::OwnTask), || task.run()));
        }
    }

    /// Marks another task on top of the present one, until the value is dropped.
    pub(super) fn on_top(&self) -> impl Sized {
        (self.nesting_depth.task(), self.set_blocks(false))
    }

    /// Sets whether the task in hand [blocks](crate::blocking()), until the value is dropped.
    pub(crate) fn set_blocks(&self, blocks: bool) -> impl Drop {
        struct Restore<'l>(&'l Cell<bool>, bool);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        Restore(&self.blocks, self.blocks.replace(blocks))
    }

    /// Takes work for a restricted wait.
    pub(super) fn find_needed(&self, thief: Option<usize>, own: Own) -> Option<Work<'_>> {
        if let Some(task) = self.slot().calls.take().or_else(|| self.slot().mail.take()) {
            return Some(Work::Task(task, Activity::InjectedTask));
        }
        if own == Own::Taken {
            if let Some(task) = self.pop_own() {
                return Some(Work::Task(task, Activity::OwnTask));
            }
        }
        steal_from_chain(self, thief)
    }
}

/// Guests: a worker without a thread of its own; see "Guests" in `sleep/README.md`.
impl WorkerThread {
    /// Whether this is a thread from outside.
    pub(crate) fn is_guest(&self) -> bool {
        self.guest.is_some()
    }

    /// Whether a restricted wait for a half takes own tasks: true of a guest, unless the wait is
    /// deep.
    pub(super) fn own_of_a_guest(&self) -> Own {
        if self.is_guest() && !self.nesting_depth.is_deep() { Own::Taken } else { Own::NotTaken }
    }

    /// Works as a guest while `f` runs; the place is this thread's.
    pub(crate) fn visit<R>(&self, f: impl FnOnce() -> R) -> R {
        self.nesting_depth.stack.set(CallStack::here(None));
        self.enter(|local| {
            let _running = local.watch.runs(Activity::InPlace);
            local.watch.is_here();
            f()
        })
    }

    /// Marks a guest as asleep in a wait, or blocked, until the value is dropped. A wait within a
    /// blocked section changes nothing.
    pub(crate) fn dozes(&self) -> impl Drop {
        struct Rouse<'l>(&'l WorkerThread, Option<usize>);
        impl Drop for Rouse<'_> {
            fn drop(&mut self) {
                if let Some(place) = self.1 {
                    self.0.shared.sleep.rouse(place);
                }
            }
        }
        // With a request on its own deque: a blocked guest may push.
        let look = || self.shared.relieve(None);
        let place = self.guest.filter(|&place| self.shared.sleep.doze(place, look));
        Rouse(self, place)
    }

    /// Hands this worker's spawned tasks that have not started to the pool's other workers.
    pub(crate) fn hand_over(&self) {
        while let Some(task) = self.pop_own() {
            self.shared.inject(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::ThreadPool;

    /// Whether a restricted wait for `thief` that is about to sleep sees something.
    fn sees(local: &WorkerThread, thief: Option<usize>, done: bool) -> bool {
        let mut wait = Restricted::wait_for(Duration::from_millis(1));
        wait.sleep(local, thief, &|| done).is_some()
    }

    fn on_the_one_worker<R: Send>(pool: &ThreadPool, act: impl Fn(&WorkerThread) -> R + Sync) -> R {
        pool.install(|| WorkerThread::with(|local| act(local.unwrap())))
    }

    #[test]
    fn before_it_sleeps_a_restricted_wait_sees_its_end_and_its_mail_and_forks_of_its_chain() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        on_the_one_worker(&pool, |local| {
            assert!(!sees(local, None, false) && sees(local, None, true));
            for inbox in [&local.slot().mail, &local.slot().calls] {
                inbox.put(Task::detached(|| ()));
                assert!(sees(local, None, false));
                assert!(inbox.take().is_some());
            }
            let guest = || pool.run(|_| WorkerThread::with(|it| sees(it.unwrap(), Some(0), false)));
            let another = || thread::scope(|threads| threads.spawn(guest).join().unwrap());
            assert!(!another());
            local.slot().forks.request();
            assert!(crate::join(another, || ()).0);
        });
    }

    /// A guest never, a worker of another pool never, and a task in order only if nothing else
    /// comes to its turn.
    #[test]
    fn which_wait_begins_the_task_that_it_waits_for() {
        let [pool, other] = [(); 2].map(|()| ThreadPool::builder().num_threads(1).build().unwrap());
        on_the_one_worker(&pool, |local| {
            let begins = |in_order| local.begins(pool.shared(), in_order);
            assert!(!begins(false), "the wait takes any task, and so this one");
            let blocks = local.set_blocks(true);
            assert!(begins(false) && begins(true));
            assert!(!local.begins(other.shared(), false), "it is not its pool's");
            drop(blocks);
            let awaitable = local.shared.may_be_awaited();
            assert!(begins(false) && begins(true));
            drop(awaitable);
            assert!(!begins(false));
        });
        pool.run(|_| {
            WorkerThread::with(|guest| {
                let guest = guest.unwrap();
                let _blocks = guest.set_blocks(true);
                assert!(!guest.begins(pool.shared(), false), "it is a guest");
            });
        });
    }

    #[test]
    fn a_task_on_top_of_a_wait_that_takes_nothing_takes_work_in_its_waits() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        on_the_one_worker(&pool, |local| {
            let _blocks = local.set_blocks(true);
            assert!(local.is_still());
            let on_top = local.on_top();
            assert!(!local.is_still());
            drop(on_top);
            assert!(local.is_still());
        });
    }

    #[test]
    #[cfg(not(miri))] // whose addresses are not those of a stack
    fn only_a_guest_takes_its_own_tasks_in_a_restricted_wait_for_a_half_and_not_deep() {
        fn own(local: Option<&WorkerThread>) -> bool {
            local.unwrap().own_of_a_guest() == Own::Taken
        }
        #[inline(never)]
        fn deeper(local: Option<&WorkerThread>) -> bool {
            let frame = std::hint::black_box([1_u8; 4096]);
            own(local) && std::hint::black_box(frame)[0] == 1
        }
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        assert!(!pool.install(|| WorkerThread::with(own)));
        assert!(pool.run(|_| WorkerThread::with(deeper)));
        let deep = |local: Option<&WorkerThread>| {
            local.unwrap().nesting_depth.stack.set(CallStack::here(Some(0)));
            deeper(local)
        };
        assert!(!pool.run(|_| WorkerThread::with(deep)));
    }
}
