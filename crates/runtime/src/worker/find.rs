//! The order in which a worker takes work; and a thread's worker as its search sees it.

use poach_deque::Steal;
use poach_deque::split::{Claim, Context, Exposure, Stack, Stolen};
use poach_memory::{Machine, Memory};

use super::{Work, WorkerThread};
use crate::shared::Priority;
use crate::sleep::clock::SystemClock;
use crate::sleep::parking::ThreadParking;
use crate::sleep::wake_policy::{PoolSleep, PoolWakePolicy};
use crate::stats::track::Activity;
use crate::system::processor::Mover;
use crate::task::value::Task;
use crate::worker::give_way::GiveWay;
use crate::worker::idle::{Searcher, Sees, Takes};
use crate::worker::spin_time::SpinTime;
use crate::worker::steal_backoff::StealBackoff;

/// Takes any work, and first what a wait for `thief` needs.
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
    worker.injected(false).or_else(|| worker.future())
}

/// Takes work from outside, work that only this worker may take, or a future.
pub(super) fn find_handed_over<W: Takes>(worker: &W) -> Option<W::Work<'_>> {
    let found = worker.handed_over(true).or_else(|| worker.injected(true));
    let found = found.or_else(|| worker.handed_over(false)).or_else(|| worker.injected(false));
    found.or_else(|| worker.future())
}

/// The workers from which a wait for `thief` takes: the thief, the worker that the thief waits for,
/// and so on.
pub(super) fn chain<W: Searcher>(
    worker: &W,
    thief: Option<usize>,
) -> impl Iterator<Item = usize> + use<'_, W> {
    worker.sleep().chain(thief).take_while(|&link| link != worker.index())
}

pub(super) fn steal_from_chain<W: Takes>(worker: &W, thief: Option<usize>) -> Option<W::Work<'_>> {
    chain(worker, thief).find_map(|link| worker.steal_fork(link, true))
}

/// Steals the oldest fork of this stack, or leaves a request on a stack without shared forks. A
/// failed attempt means that another thief's has succeeded.
pub fn steal<M: Memory, C: Context>(forks: &Stack<M, C>) -> Option<Stolen<'_, M>> {
    loop {
        match forks.steal() {
            Ok(stolen) => return Some(stolen),
            Err(Claim::Lost) => M::pause(),
            Err(_) => return None,
        }
    }
}

impl WorkerThread {
    fn steal_fork(&self, victim: usize, leap: bool) -> Option<Work<'_>> {
        let stolen = steal(&self.shared.workers[victim].forks)?;
        Some(Work::Fork(stolen, victim, Activity::StolenFork { victim, leap }))
    }

    /// Steals half of the spawned tasks of `victim`: one to run, the others into this worker's
    /// queue.
    fn steal_tasks(&self, victim: usize) -> Option<Task> {
        let spawns = &self.shared.workers[victim].spawns;
        loop {
            match spawns.steal_half(&self.spawns) {
                Steal::Success(task) => return Some(task),
                Steal::Retry => Machine::pause(),
                Steal::Empty | Steal::Abort => return None,
            }
        }
    }

    /// This worker's requests were not answered for a while: moves the split of `victim`, if that
    /// has private forks or spawned tasks and does not come back to its deque.
    #[cold]
    fn expose_any(&self, victim: usize) -> bool {
        let spawns = &self.shared.workers[victim].spawns;
        self.expose_forks(victim) || self.has_exposed(victim, spawns.expose())
    }

    /// [`expose_any`](WorkerThread::expose_any), for a worker that takes only forks.
    #[cold]
    pub(super) fn expose_forks(&self, victim: usize) -> bool {
        let forks = &self.shared.workers[victim].forks;
        self.has_exposed(victim, forks.expose())
    }

    /// Whether something of the victim's can be stolen now.
    fn has_exposed(&self, victim: usize, exposure: Exposure) -> bool {
        self.watch.exposes(victim, exposure);
        if exposure != Exposure::Refused {
            self.make_room_for(victim);
        }
        let done = exposure == Exposure::Done;
        if done {
            self.shared.wake_policy.exposed();
        }
        done
    }

    /// The victim has not come to its deque. If it was last seen on this processor, it may wait for
    /// it, behind this thread. If other programs have work for each processor, the system may leave
    /// that so for 100 ms. So this thread moves to another processor.
    fn make_room_for(&self, victim: usize) {
        let foreign = self.resident.get() || self.guest.is_some();
        if !foreign && self.shared.workers[victim].watch.was_here() {
            if let Some(mut me) = Mover::me(None) {
                me.makes_way();
                me.comes_back();
            }
        }
    }
}

impl Searcher for WorkerThread {
    type Memory = Machine;
    type Parking = ThreadParking;
    type Clock = SystemClock;
    type GivesWay = GiveWay;

    fn index(&self) -> usize {
        self.index
    }

    fn sleep(&self) -> &PoolSleep {
        &self.shared.sleep
    }

    fn wake_policy(&self) -> &PoolWakePolicy {
        &self.shared.wake_policy
    }

    fn backoff(&self) -> &StealBackoff<SystemClock> {
        &self.backoff
    }

    fn spin_time(&self) -> &SpinTime<SystemClock> {
        &self.spin_time
    }

    fn victims(&self) -> impl Iterator<Item = usize> {
        let order = || self.shared.plan.victim_order(self.index);
        self.slot().victim_order.get_or_init(order).begun_at(self.random.next())
    }

    fn sleeps(&self) -> impl Sized {
        self.shared.process_guard.check_or_abort();
        self.watch.sleeps()
    }

    fn awaits_barrier(&self) -> bool {
        !Machine::asymmetric_by_now() && !Machine::owners_fence()
    }
}

impl Takes for WorkerThread {
    type Work<'w> = Work<'w>;

    fn steal_fork(&self, victim: usize, leap: bool) -> Option<Work<'_>> {
        WorkerThread::steal_fork(self, victim, leap)
    }

    fn steal_tasks(&self, victim: usize) -> Option<Work<'_>> {
        let task = WorkerThread::steal_tasks(self, victim)?;
        Some(Work::Task(task, Activity::StolenTask { victim }))
    }

    fn own_task(&self) -> Option<Work<'_>> {
        Some(Work::Task(self.pop_own()?, Activity::OwnTask))
    }

    fn future(&self) -> Option<Work<'_>> {
        let own = || Some(Work::Task(self.slot().ready.take()?, Activity::OwnTask));
        let stolen = |victim: usize| {
            let task = self.shared.workers[victim].ready.take()?;
            Some(Work::Task(task, Activity::StolenTask { victim }))
        };
        own().or_else(|| self.victims().find_map(stolen))
    }

    fn handed_over(&self, at_once: bool) -> Option<Work<'_>> {
        let inbox = if at_once { &self.slot().calls } else { &self.slot().mail };
        Some(Work::Task(inbox.take()?, Activity::InjectedTask))
    }

    fn injected(&self, urgent: bool) -> Option<Work<'_>> {
        let priority = if urgent { Priority::High } else { Priority::Normal };
        Some(Work::Task(self.shared.injected(priority)?, Activity::InjectedTask))
    }

    fn is_stolen(work: &Work<'_>) -> bool {
        work.is_stolen()
    }
}

impl Sees for WorkerThread {
    fn has_own_tasks(&self) -> bool {
        !self.spawns.is_empty() || !self.slot().ready.is_empty()
    }

    fn is_handed_something(&self) -> bool {
        self.shared.has_injected() || self.shared.has_ready() || self.slot().has_mail()
    }

    fn expose(&self, victim: usize) -> bool {
        self.expose_any(victim)
    }

    fn request_everywhere(&self, except: Option<usize>) {
        self.shared.request_everywhere(except);
    }

    fn visible_work(&self) -> bool {
        self.shared.visible_work()
    }

    /// The process-wide barrier pairs with the light fence of a push: see `poach_deque::split`, "A
    /// thief that is about to sleep". Without the barrier, a push of this moment may be missed,
    /// until this worker's nap is over.
    fn private_work(&self) -> bool {
        let mut fences = 0;
        let private = self.shared.private_work(self.index, || {
            if Machine::asymmetric_by_now() && Machine::try_heavy() {
                fences += 1;
            } else {
                Machine::full();
            }
        });
        if Machine::owners_fence() {
            // After that answer, so that each owner fences from its next push or pop on.
            self.shared.request_everywhere(None);
        }
        self.watch.fenced(fences);
        private
    }

    fn call_for_visible_work(&self) -> bool {
        self.shared.call_for_visible_work()
    }

    fn does_anybody_run(&self) -> bool {
        self.shared.does_anybody_run()
    }
}
