//! A thread's worker as its search for work sees it.

use poach_memory::{Machine, Memory};

use super::{Work, WorkerThread};
use crate::shared::Priority;
use crate::sleep::clock::SystemClock;
use crate::sleep::events::{PoolSleep, PoolWakePolicy};
use crate::sleep::parking::ThreadParking;
use crate::stats::track::Activity;
use crate::worker::give_way::GiveWay;
use crate::worker::idle::{Searcher, Sees, Takes};
use crate::worker::spin_time::SpinTime;
use crate::worker::steal_backoff::StealBackoff;

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
        !self.spawns.is_empty()
    }

    fn is_handed_something(&self) -> bool {
        self.shared.has_injected() || self.slot().has_mail()
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

    /// The process-wide barrier pairs with the light fence of a push: see `poach_deque::split`, "A thief that is about to sleep". Where it cannot be had, a push of
    /// this moment may be missed, until this worker's nap is over.
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
            // Behind that answer, so that each owner fences from its next push or pop on.
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
