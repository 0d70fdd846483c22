//! The order in which a worker takes work; and a thread's worker as its search sees it.

use poach_deque::Steal;
use poach_deque::split::{Claim, Context, Exposure, Stack, Stolen};
use poach_memory::{Machine, Memory};

use super::{Work, WorkerThread};
use crate::pace::KEPT_SLOTS;
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
        if self.is_in_the_way_of(victim) {
            if let Some(mut me) = Mover::me(None) {
                me.makes_way();
                me.comes_back();
            }
        }
    }

    /// Whether the victim was last seen here, and this thread is one of the pool's own: a thread
    /// with a life of its own is not moved.
    fn is_in_the_way_of(&self, victim: usize) -> bool {
        let foreign = self.resident.get() || self.guest.is_some();
        !foreign && self.shared.workers[victim].watch.was_here()
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

    fn keeps_memory(&self) -> bool {
        self.spawns_capacity() > KEPT_SLOTS
    }

    fn gives_memory_back(&self) {
        self.shrink_spawns(KEPT_SLOTS);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::iter;
    use std::thread;

    use super::*;
    use crate::pace::LONGEST_OWNERS_NAP;
    use crate::sleep::{Caller, Sleep};
    use crate::{ThreadPool, scope};

    /// A place where a worker looks for work.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Place {
        Call,
        Mail,
        /// The forks of a worker, and whether this worker waits for it.
        Forks(usize, bool),
        Tasks(usize),
        Own,
        Urgent,
        Injected,
        Future,
    }

    /// Worker 0 of four, which finds work at `last` alone, and notes where it has looked.
    struct Looker {
        sleep: PoolSleep,
        wake_policy: PoolWakePolicy,
        backoff: StealBackoff<SystemClock>,
        spin_time: SpinTime<SystemClock>,
        last: Option<Place>,
        looks: RefCell<Vec<Place>>,
    }

    impl Looker {
        fn new(last: Option<Place>) -> Looker {
            let parking = (0..4).map(|_| ThreadParking::new(|| ())).collect();
            Looker {
                sleep: Sleep::new(parking, 0, 4),
                wake_policy: PoolWakePolicy::new(),
                backoff: StealBackoff::new(),
                spin_time: SpinTime::new(),
                last,
                looks: RefCell::default(),
            }
        }

        fn look(&self, place: Place) -> Option<Place> {
            self.looks.borrow_mut().push(place);
            (self.last == Some(place)).then_some(place)
        }
    }

    impl Searcher for Looker {
        type Memory = Machine;
        type Parking = ThreadParking;
        type Clock = SystemClock;
        type GivesWay = GiveWay;

        fn index(&self) -> usize {
            0
        }
        fn sleep(&self) -> &PoolSleep {
            &self.sleep
        }
        fn wake_policy(&self) -> &PoolWakePolicy {
            &self.wake_policy
        }
        fn backoff(&self) -> &StealBackoff<SystemClock> {
            &self.backoff
        }
        fn spin_time(&self) -> &SpinTime<SystemClock> {
            &self.spin_time
        }
        fn victims(&self) -> impl Iterator<Item = usize> {
            [2, 3, 1].into_iter()
        }
        fn sleeps(&self) -> impl Sized {}
    }

    impl Takes for Looker {
        type Work<'w> = Place;

        fn steal_fork(&self, victim: usize, leap: bool) -> Option<Place> {
            self.look(Place::Forks(victim, leap))
        }
        fn steal_tasks(&self, victim: usize) -> Option<Place> {
            self.look(Place::Tasks(victim))
        }
        fn own_task(&self) -> Option<Place> {
            self.look(Place::Own)
        }
        fn handed_over(&self, at_once: bool) -> Option<Place> {
            self.look(if at_once { Place::Call } else { Place::Mail })
        }
        fn injected(&self, urgent: bool) -> Option<Place> {
            self.look(if urgent { Place::Urgent } else { Place::Injected })
        }
        fn future(&self) -> Option<Place> {
            self.look(Place::Future)
        }
        fn is_stolen(_: &Place) -> bool {
            false
        }
    }

    /// Looks with `find` in order at each of these places, and takes what it comes to first.
    fn looks_at(places: &[Place], find: impl Fn(&Looker) -> Option<Place>) {
        for last in places.iter().copied().map(Some).chain([None]) {
            let looker = Looker::new(last);
            assert_eq!(find(&looker), last);
            let end = last.and_then(|last| places.iter().position(|place| *place == last));
            assert_eq!(*looker.looks.borrow(), places[..end.map_or(places.len(), |end| end + 1)]);
        }
    }

    /// Calls; what it waits for; urgent tasks; its own; its mail; others' forks and then tasks, one
    /// worker after the other; tasks from outside; futures.
    #[test]
    fn a_worker_takes_work_in_one_order() {
        use Place::{Call, Forks, Future, Injected, Mail, Own, Tasks, Urgent};
        let mut places = vec![Call, Forks(3, true), Forks(1, true), Urgent, Own, Mail];
        places.extend([2, 3, 1].into_iter().flat_map(|it| [Forks(it, false), Tasks(it)]));
        places.extend([Injected, Future]);
        looks_at(&places, |looker| {
            let following = looker.sleep.follow(3);
            following.set(Some(1));
            find(looker, Some(3))
        });
    }

    #[test]
    fn one_that_stands_aside_takes_no_work_of_a_deque() {
        use Place::{Call, Future, Injected, Mail, Urgent};
        looks_at(&[Call, Urgent, Mail, Injected, Future], find_handed_over);
    }

    /// A worker may come to wait for itself while the chain changes.
    #[test]
    fn a_chain_ends_before_the_worker_itself() {
        let looker = Looker::new(None);
        let (first, second) = (looker.sleep.follow(2), looker.sleep.follow(1));
        first.set(Some(1));
        second.set(Some(0));
        assert!(chain(&looker, Some(2)).eq([2, 1]) && chain(&looker, None).next().is_none());
    }

    fn on_the_one_worker<R: Send>(
        pool: &ThreadPool,
        act: impl FnOnce(&WorkerThread) -> R + Send,
    ) -> R {
        pool.install(|| WorkerThread::with(|local| act(local.unwrap())))
    }

    #[test]
    fn a_worker_that_looks_again_sees_all_that_it_may_take() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        on_the_one_worker(&pool, |local| {
            let (slot, shared) = (local.slot(), &local.shared);
            let sees =
                || (local.has_own_tasks(), local.is_handed_something(), local.visible_work());
            let nothing = || (false, false, false);
            assert_eq!(sees(), nothing());
            for inbox in [&slot.calls, &slot.mail] {
                inbox.put(Task::detached(|| ()));
                assert_eq!(sees(), (false, true, false));
                drop(inbox.take());
            }
            // Futures are its own before they are others'.
            slot.ready.put(Task::detached(|| ()));
            assert_eq!(sees(), (true, true, true));
            drop(slot.ready.take());
            for priority in [Priority::Normal, Priority::High] {
                shared.inject_at(priority, Task::detached(|| ()), Caller::GoesOn);
                assert_eq!(sees(), (false, true, true));
                drop(shared.injected(priority));
            }
            local.spawn(Task::detached(|| ()));
            local.spawns.share();
            assert_eq!(sees(), (true, false, true));
            assert!(local.run_own());
            assert_eq!(sees(), nothing());
        });
    }

    #[test]
    fn a_thief_takes_half_of_the_spawned_tasks_with_it() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        on_the_one_worker(&pool, |local| {
            (0..8).for_each(|_| local.spawn(Task::detached(|| ())));
            local.spawns.share();
            let steal = |guest: Option<&WorkerThread>| {
                let guest = guest.unwrap();
                let first = WorkerThread::steal_tasks(guest, 0).unwrap();
                let others = iter::from_fn(|| guest.spawns.pop()).count();
                _ = first.run();
                others
            };
            let guest = || pool.run(|_| WorkerThread::with(steal));
            let others = thread::scope(|threads| threads.spawn(guest).join().unwrap());
            assert_eq!(others, 3);
        });
    }

    #[test]
    fn a_barrier_before_a_sleep_is_counted_and_made_only_if_another_is_awake() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        on_the_one_worker(&pool, |local| {
            let barriers = || {
                let before = local.watch.counters.membarriers.get();
                assert!(!local.private_work());
                local.watch.counters.membarriers.get() - before
            };
            // The system may not have answered yet whether there is one.
            while !Machine::asymmetric_by_now() && !Machine::owners_fence() {
                thread::yield_now();
            }
            assert_eq!(barriers(), 0);
            let place = local.shared.sleep.enter().unwrap();
            assert_eq!(barriers(), u64::from(Machine::asymmetric_by_now()));
            assert!(local.shared.sleep.leave(place, || ()));
        });
    }

    /// Miri's threads run on no processor.
    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn a_thief_is_moved_out_of_its_victims_way_if_it_is_a_thread_of_the_pool() {
        use crate::ThreadPoolBuilder;

        // No scheduler moves the thread between two looks; it may only be where it is.
        fn in_the_way(seen: bool) -> bool {
            let before = poach_topology::allowed().unwrap();
            poach_topology::bind(before[0]).unwrap();
            WorkerThread::with(|local| {
                let local = local.unwrap();
                let victim = local.shared.workers.len() - 1;
                if seen {
                    local.shared.workers[victim].watch.is_here();
                }
                local.is_in_the_way_of(victim)
            })
        }
        let pool = |builder: ThreadPoolBuilder<'_>| builder.num_threads(1).build().unwrap();
        let own = pool(ThreadPool::builder());
        assert!(!own.install(|| in_the_way(false)), "nobody knows where the victim is");
        assert!(own.install(|| in_the_way(true)));
        // Threads with lives of their own.
        thread::scope(|threads| {
            let guest = threads.spawn(|| own.run(|_| in_the_way(true)));
            assert!(!guest.join().unwrap());
            let resident = threads.spawn(|| {
                let pool = pool(ThreadPool::builder().use_current_thread());
                pool.install(|| in_the_way(true))
            });
            assert!(!resident.join().unwrap());
        });
    }

    /// It keeps a burst's memory as long as it may be called for the next.
    #[test]
    fn a_worker_that_sleeps_gives_back_what_a_burst_has_left() {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        let keeps = || WorkerThread::with(|local| local.unwrap().keeps_memory());
        pool.install(|| {
            scope(|s| (0..=KEPT_SLOTS).for_each(|_| s.spawn(|_| ())));
            assert!(keeps());
        });
        let given = (0..500).any(|_| {
            // To ask is to wake it.
            thread::sleep(2 * LONGEST_OWNERS_NAP);
            !pool.install(keeps)
        });
        assert!(given, "it has slept for a minute");
    }
}
