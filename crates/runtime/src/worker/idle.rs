//! A worker's one loop: it looks for work and runs it, looks on for a while when there is none, and
//! then sleeps.
//!
//! The loop and [the rules of taking any work](Unrestricted) are generic over the worker, a
//! [`Searcher`]: a thread's ([`WorkerThread`](crate::worker::WorkerThread)), or one on a processor
//! in simulated time (`poach bench simulate --memory`). So the order of the looks, their number,
//! the pauses, the requests, the back-off, the naps and the protocol of sleep are the same source
//! in both.

use std::cell::Cell;
use std::time::Duration;

use poach_memory::Memory;

use crate::pace::{
    EAGER_LOOKS, FIRST_NAP, LONGEST_NAP, LONGEST_OWNERS_NAP, LOOKS_BETWEEN_CLOCKS,
    PAUSES_BETWEEN_LOOKS, SPIN_LOOKS,
};
use crate::sleep::clock::Clock;
use crate::sleep::wake_policy::WakePolicy;
use crate::sleep::{Following, Parking, Sleep, Slept};
use crate::worker::find::{find, find_handed_over};
use crate::worker::spin_time::SpinTime;
use crate::worker::steal_backoff::StealBackoff;

/// How a worker gives its processor away between two looks.
pub trait GivesWay: Default {
    /// Yields; or returns false without yielding, while that would take long.
    fn yields(&mut self) -> bool;
    /// Whether the last call of `yields` did not yield.
    fn is_contended(&self) -> bool;
    /// The look after the last yield has found something, or not.
    fn looked(&mut self, found: bool);
}

/// A worker, as its search for work sees it.
pub trait Searcher {
    /// The memory of its pool's words.
    type Memory: Memory;
    /// Where it sleeps.
    type Parking: Parking;
    /// Its clock.
    type Clock: Clock;
    /// How it gives its processor away.
    type GivesWay: GivesWay;

    /// Its number.
    fn index(&self) -> usize;
    /// The sleepers and searchers of its pool.
    fn sleep(&self) -> &Sleep<Self::Memory, Self::Parking>;
    /// The rule by which owners of its pool wake sleepers.
    fn wake_policy(&self) -> &WakePolicy<Self::Memory, Self::Clock>;
    /// The credit of its steals.
    fn backoff(&self) -> &StealBackoff<Self::Clock>;
    /// The time for which it looks.
    fn spin_time(&self) -> &SpinTime<Self::Clock>;
    /// All other workers, in its victim order, begun anew.
    fn victims(&self) -> impl Iterator<Item = usize>;
    /// Marks it as sleeping or resting until the value is dropped.
    fn sleeps(&self) -> impl Sized;
    /// Whether the system has not yet said whether it has a process-wide barrier. Meanwhile no
    /// worker exposes private tasks, and a worker naps instead of sleeping.
    fn awaits_barrier(&self) -> bool {
        false
    }
}

/// The places from which a worker takes work. Methods with a body are for sources that not every
/// worker has.
pub trait Takes: Searcher {
    /// Work to run.
    type Work<'w>
    where
        Self: 'w;

    /// The oldest fork on the stack of `victim`; with `leap`, a part of what this worker waits for.
    fn steal_fork(&self, victim: usize, leap: bool) -> Option<Self::Work<'_>>;
    /// Spawned tasks of `victim`.
    fn steal_tasks(&self, _victim: usize) -> Option<Self::Work<'_>> {
        None
    }
    /// Its next spawned task.
    fn own_task(&self) -> Option<Self::Work<'_>> {
        None
    }
    /// A task for it alone: at once, or when it has none of its own.
    fn handed_over(&self, _at_once: bool) -> Option<Self::Work<'_>> {
        None
    }
    /// A task from outside of the pool.
    fn injected(&self, _urgent: bool) -> Option<Self::Work<'_>> {
        None
    }
    /// A future that was woken, its own first.
    fn future(&self) -> Option<Self::Work<'_>> {
        None
    }
    /// Whether this is another worker's work.
    fn is_stolen(work: &Self::Work<'_>) -> bool;
}

/// A worker's view of work that it does not take, and its ways to tell others of it. Methods with a
/// body are for sources that not every worker has.
pub trait Sees: Searcher {
    /// Whether it has spawned tasks.
    fn has_own_tasks(&self) -> bool {
        false
    }
    /// Whether a task has come from outside, or for it alone.
    fn is_handed_something(&self) -> bool {
        false
    }
    /// Makes private work of `victim` visible.
    fn expose(&self, victim: usize) -> bool;
    /// Line S4 of `sleep/README.md`: leaves a request with every worker but `except`.
    fn request_everywhere(&self, except: Option<usize>);
    /// Line S5: whether there is work that it could take.
    fn visible_work(&self) -> bool;
    /// Lines S5 and L3: whether another has private tasks that it should expose.
    fn private_work(&self) -> bool;
    /// Lines P2 to P5 for all visible work. Returns whether there is some.
    fn call_for_visible_work(&self) -> bool;
    /// Whether any worker neither sleeps nor searches.
    fn does_anybody_run(&self) -> bool;
    /// Whether its queue has more slots than it keeps for ever.
    fn keeps_memory(&self) -> bool {
        false
    }
    /// Gives the memory of the other slots back, if the queue is empty.
    fn gives_memory_back(&self) {}
}

/// The rules of a search: what it takes, and how it looks and sleeps.
pub trait SearchRules<W: Takes + ?Sized> {
    /// Called before each look, after `looks` in a row have found nothing. Returns the new number.
    fn prepare(&mut self, worker: &W, looks: u32, done: &dyn Fn() -> bool) -> u32;

    /// Whether it leaves the work in deques to others, looks only for work from outside and for
    /// work that only it may take, and then sleeps at once if there is none.
    fn stands_aside(&self, _: &W) -> bool {
        false
    }

    /// Looks once.
    fn find<'w>(
        &self,
        worker: &'w W,
        thief: Option<usize>,
        stands_aside: bool,
    ) -> Option<W::Work<'w>>;

    /// The first look that has found nothing, after a find or at the beginning.
    fn begin(&mut self, _: &W) {}

    /// The search ends after `looks` looks that found nothing: with `work`, which is run now, or
    /// because it is done.
    fn end(&mut self, worker: &W, work: Option<&W::Work<'_>>, looks: u32);

    /// Makes private work of others visible.
    fn expose(&self, worker: &W, thief: Option<usize>) -> bool;

    /// Whether it looks on by the clock. `Some(true)`: it looks on after its usual number of looks.
    /// `Some(false)`: it stops short of that number. Then the look before it sleeps sees private
    /// work, and exposes it afterwards.
    fn spins(&self, _: &W) -> Option<bool> {
        None
    }

    /// Sleeps, if there is still nothing. Returns the number of looks that count as made then, or
    /// none if it has slept for its whole time.
    fn sleep(&mut self, worker: &W, thief: Option<usize>, done: &dyn Fn() -> bool) -> Option<u32>;
}

/// A search under way.
pub struct SearchLoop<'w, W: Searcher, R> {
    rules: R,
    following: Option<Following<'w, W::Memory, W::Parking>>,
    looks: u32,
    way: W::GivesWay,
}

impl<'w, W: Searcher, R> SearchLoop<'w, W, R> {
    /// The search of a worker with nothing under way, after `looks` looks.
    pub fn idle(rules: R, looks: u32) -> Self {
        SearchLoop { rules, following: None, looks, way: W::GivesWay::default() }
    }

    /// The search of a waiting worker.
    pub fn wait(worker: &'w W, rules: R) -> Self {
        let following = Some(worker.sleep().follow(worker.index()));
        SearchLoop { rules, following, looks: 0, way: W::GivesWay::default() }
    }
}

impl<'w, W: Takes, R: SearchRules<W>> SearchLoop<'w, W, R> {
    /// The next work, which the worker runs before it asks again; none at the end, when the search
    /// is `done` or has slept for its whole time. `thief` returns the worker that runs what this
    /// one waits for, once that is known.
    pub fn next(
        &mut self,
        worker: &'w W,
        done: &dyn Fn() -> bool,
        thief: &dyn Fn() -> Option<usize>,
    ) -> Option<W::Work<'w>> {
        let SearchLoop { rules, following, looks, way } = self;
        while !done() {
            let thief = thief();
            if let Some(following) = following {
                following.set(thief);
            }
            *looks = rules.prepare(worker, *looks, done);
            let aside = rules.stands_aside(worker);
            if let Some(work) = rules.find(worker, thief, aside) {
                rules.end(worker, Some(&work), *looks);
                way.looked(true);
                *looks = 0;
                return Some(work);
            }
            way.looked(false);
            if *looks == 0 {
                rules.begin(worker);
            }
            *looks += 1;
            // Not before the looks that expose something.
            let over = *looks % LOOKS_BETWEEN_CLOCKS == 0
                && *looks != EAGER_LOOKS
                && *looks < SPIN_LOOKS
                && rules.spins(worker) == Some(false);
            let exposes = (*looks == EAGER_LOOKS || *looks == SPIN_LOOKS) && !aside;
            if aside || over {
                *looks = SPIN_LOOKS;
            }
            if exposes && rules.expose(worker, thief) {
                // There is something to steal now.
            } else if *looks < SPIN_LOOKS
                || !aside && !over && !way.is_contended() && rules.spins(worker) == Some(true)
            {
                // The last look is repeated, with its exposure.
                *looks = if *looks < SPIN_LOOKS { *looks } else { SPIN_LOOKS - 2 };
                if *looks < EAGER_LOOKS || !way.yields() {
                    (0..PAUSES_BETWEEN_LOOKS).for_each(|_| W::Memory::pause());
                }
            } else {
                *looks = rules.sleep(worker, thief, done)?;
            }
        }
        way.looked(true);
        rules.end(worker, None, *looks);
        None
    }
}

/// The rules by which a worker takes anything.
pub struct Unrestricted {
    /// True for a worker with nothing under way, whose only work is to look for work.
    idle: bool,
    nap: Duration,
}

impl Unrestricted {
    /// For a worker with nothing under way.
    pub fn idle() -> Unrestricted {
        Unrestricted { idle: true, nap: FIRST_NAP }
    }

    /// For a wait that may depend on any work.
    pub fn wait() -> Unrestricted {
        Unrestricted { idle: false, nap: FIRST_NAP }
    }
}

/// Sleeps until called, for a worker that begins asleep. Returns the number of looks that count as
/// made.
pub fn begin_asleep<W: Searcher>(worker: &W) -> u32 {
    let spin_time = worker.spin_time();
    spin_time.begin();
    spin_time.sleeps();
    let sleeping = worker.sleeps();
    worker.sleep().sleep_on(worker.index());
    drop(sleeping);
    spin_time.was_woken();
    1
}

impl<W: Takes + Sees> SearchRules<W> for Unrestricted {
    /// Rests between two steals of small tasks, as
    /// [`StealBackoff`](crate::worker::steal_backoff::StealBackoff) says.
    fn prepare(&mut self, worker: &W, looks: u32, done: &dyn Fn() -> bool) -> u32 {
        if self.idle && !worker.has_own_tasks() {
            if let Some(stolen) = worker.backoff().end() {
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
        if self.idle {
            if let Some(worked) = worker.spin_time().sleeps() {
                worker.wake_policy().wake_brought(worked);
            }
        }
        let mut private = false;
        let stands_aside = Cell::new(false);
        let look_again = || {
            worker.request_everywhere(Some(worker.index()));
            if done() || worker.is_handed_something() {
                return true;
            }
            // A worker that stands aside leaves the owners' tasks to the threads at work.
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
        // A worker that stands aside has not looked after a barrier.
        let longest = || if stands_aside.get() { FIRST_NAP } else { LONGEST_NAP };
        let time = Cell::new(Duration::ZERO);
        let nap = || {
            let nap = nap(worker, self.nap.min(longest()), unanswered, stands_aside.get())
                // Not at once: the next burst may come soon.
                .or_else(|| worker.keeps_memory().then_some(LONGEST_OWNERS_NAP))?;
            time.set(nap);
            Some(nap)
        };
        let slept = sleep.sleep(worker.index(), look_again, nap);
        drop(sleeping);
        if slept == Slept::ToTheEnd && time.get() >= LONGEST_OWNERS_NAP {
            worker.gives_memory_back();
        }
        let (looks, nap) = match slept {
            Slept::ToTheEnd => (SPIN_LOOKS - 1, (self.nap * 2).min(LONGEST_NAP)),
            Slept::Called => {
                if self.idle {
                    worker.spin_time().was_woken();
                }
                (1, FIRST_NAP)
            }
            // It exposes what it has seen at its next look.
            Slept::NotAtAll if private => (EAGER_LOOKS - 1, self.nap),
            Slept::NotAtAll => (1, FIRST_NAP),
        };
        self.nap = nap;
        Some(looks)
    }

    fn end(&mut self, worker: &W, work: Option<&W::Work<'_>>, looks: u32) {
        if looks != 0 {
            // An idle worker is done when its pool ends, so all workers are called.
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

/// A searcher has found something: lines L1 to L3. If it was the last one, and others sleep, no
/// searcher is left to expose the private tasks of an owner that does not come back.
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

/// The time of a nap, if there may be something to see after it. There are three cases. A worker
/// runs something. Or owners hesitate, so that a worker which soon runs something may put requests
/// off. Or the barrier is `unanswered`, so that no worker can expose private tasks. `longest` is
/// the time of this worker's next nap, and `stands_aside` says that it has not looked behind a
/// barrier.
fn nap<W: Sees>(
    worker: &W,
    longest: Duration,
    unanswered: bool,
    stands_aside: bool,
) -> Option<Duration> {
    // In this order: see "Requests that are put off" in `sleep/README.md`.
    let hesitate = worker.wake_policy().hesitates();
    let runs = worker.does_anybody_run();
    let alone = || !worker.sleep().is_anybody_napping();
    nap_time(longest, (runs, hesitate), unanswered, stands_aside, alone)
}

/// [`nap`], once it is known whether any worker runs something, and whether owners hesitate. `alone`
/// says whether no other worker naps.
fn nap_time(
    longest: Duration,
    runs_and_hesitate: (bool, bool),
    unanswered: bool,
    stands_aside: bool,
    alone: impl FnOnce() -> bool,
) -> Option<Duration> {
    match runs_and_hesitate {
        (true, false) => Some(longest),
        (true, true) => Some(longest.min(FIRST_NAP)),
        (false, true) if unanswered || stands_aside => Some(longest.min(LONGEST_OWNERS_NAP)),
        // One napper is enough: an owner puts nothing off while none naps. The end of a nap costs
        // as much as the wake that hesitation saves.
        (false, true) => alone().then_some(LONGEST_OWNERS_NAP),
        (false, false) => unanswered.then_some(longest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadPool;
    use crate::worker::WorkerThread;

    #[test]
    fn in_a_quiet_pool_whose_owners_hesitate_one_worker_naps_and_for_as_long_as_it_may() {
        let nap = |alone| nap_time(FIRST_NAP, (false, true), false, false, || alone);
        assert_eq!((nap(true), nap(false)), (Some(LONGEST_OWNERS_NAP), None));
    }

    #[test]
    fn a_worker_naps_whoever_else_does_if_it_has_not_looked_behind_a_barrier_or_one_runs() {
        let longest = LONGEST_NAP;
        let nap = |runs, hesitate, unanswered, stands_aside| {
            nap_time(longest, (runs, hesitate), unanswered, stands_aside, || false)
        };
        assert_eq!(nap(true, false, false, false), Some(longest));
        assert_eq!(nap(true, true, false, false), Some(FIRST_NAP));
        assert_eq!(nap(false, true, true, false), Some(LONGEST_OWNERS_NAP));
        assert_eq!(nap(false, true, false, true), Some(LONGEST_OWNERS_NAP));
        assert_eq!(nap(false, false, true, false), Some(longest));
        assert_eq!(nap(false, false, false, true), None);
    }

    /// With a guest in, of a pool of one.
    fn crowded(act: impl Fn(&WorkerThread) + Sync) {
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        pool.install(|| {
            WorkerThread::with(|local| {
                let local = local.unwrap();
                let place = local.shared.sleep.enter().unwrap();
                act(local);
                while !local.shared.sleep.leave(place, || ()) {}
            });
        });
    }

    #[test]
    fn only_a_worker_with_nothing_under_way_stands_aside() {
        crowded(|local| {
            assert!(Unrestricted::idle().stands_aside(local));
            assert!(!Unrestricted::wait().stands_aside(local), "it waits");
            crate::spawn(|| ());
            assert!(!Unrestricted::idle().stands_aside(local), "it has a task");
        });
    }

    /// The wait may be for that very work.
    #[test]
    fn a_wait_does_not_leave_work_in_deques_to_guests() {
        crowded(|local| {
            crate::spawn(|| ());
            local.spawns.share();
            local.sleep().search();
            // It looks again at once.
            assert_eq!(Unrestricted::wait().sleep(local, None, &|| false), Some(1));
            // A worker with nothing under way naps.
            assert_eq!(Unrestricted::idle().sleep(local, None, &|| false), Some(SPIN_LOOKS - 1));
            local.sleep().stop_search();
        });
    }
}
