//! The one loop of a worker: it looks for work and runs it, looks on for a while when there is none, and then sleeps, until
//! something is done.
//!
//! The loop and [what takes any work](super::unrestricted) are generic over the worker, a [`Searcher`]: a thread's
//! ([`WorkerThread`](crate::worker::WorkerThread)), or one on a processor in simulated time (`poach bench simulate --memory`). So the order of the looks, their
//! number, the pauses, the requests, the back-off, the naps and the protocol of sleep are the same source in both.

use poach_deque::split::{Claim, Context, Stack, Stolen};
use poach_memory::Memory;

use crate::pace::{EAGER_LOOKS, LOOKS_BETWEEN_CLOCKS, PAUSES_BETWEEN_LOOKS, SPIN_LOOKS};
use crate::sleep::clock::Clock;
use crate::sleep::follow::Following;
use crate::sleep::wake_policy::WakePolicy;
use crate::sleep::{Parking, Sleep};
use crate::worker::spin_time::SpinTime;
use crate::worker::steal_backoff::StealBackoff;

/// How a worker gives its processor away between two looks.
pub trait GivesWay: Default {
    /// Yields; or does nothing, and says so, while that would take long.
    fn yields(&mut self) -> bool;
    /// Whether the last time that it was to yield it did not.
    fn is_contended(&self) -> bool;
    /// The look after the last yield has found what it looks for, or nothing.
    fn looked(&mut self, found: bool);
}

/// One worker, as its search for work sees it.
pub trait Searcher {
    /// The memory that its pool's words are in.
    type Memory: Memory;
    /// Where it sleeps.
    type Parking: Parking;
    /// Its clock.
    type Clock: Clock;
    /// How it gives its processor away.
    type GivesWay: GivesWay;

    /// Its number.
    fn index(&self) -> usize;
    /// Who sleeps and who searches in its pool.
    fn sleep(&self) -> &Sleep<Self::Memory, Self::Parking>;
    /// When owners of its pool wake somebody.
    fn wake_policy(&self) -> &WakePolicy<Self::Memory, Self::Clock>;
    /// What its steals have brought.
    fn backoff(&self) -> &StealBackoff<Self::Clock>;
    /// How long it looks.
    fn spin_time(&self) -> &SpinTime<Self::Clock>;
    /// All others, in its order, begun anew.
    fn victims(&self) -> impl Iterator<Item = usize>;
    /// It sleeps or rests until the value is dropped.
    fn sleeps(&self) -> impl Sized;
    /// Whether the system has not yet said whether it has a process-wide barrier. In that time
    /// nobody exposes private tasks, and a worker naps where it would sleep.
    fn awaits_barrier(&self) -> bool {
        false
    }
}

/// Where a worker takes work from. The methods that have a body are for what not every worker has.
pub trait Takes: Searcher {
    /// Something to run.
    type Work<'w>
    where
        Self: 'w;

    /// The oldest fork of `victim`, by [`steal`]; as a `leap` if it is part of what this worker waits for.
    fn steal_fork(&self, victim: usize, leap: bool) -> Option<Self::Work<'_>>;
    /// Spawned tasks of `victim`.
    fn steal_tasks(&self, _victim: usize) -> Option<Self::Work<'_>> {
        None
    }
    /// Its next spawned task.
    fn own_task(&self) -> Option<Self::Work<'_>> {
        None
    }
    /// A task that it alone may take: at once, or when it has none of its own.
    fn handed_over(&self, _at_once: bool) -> Option<Self::Work<'_>> {
        None
    }
    /// A task from outside of the pool.
    fn injected(&self, _urgent: bool) -> Option<Self::Work<'_>> {
        None
    }
    /// Whether this is work of another worker's.
    fn is_stolen(work: &Self::Work<'_>) -> bool;
}

/// What a worker sees of the work that it does not take, and how it tells the others of it. The
/// methods that have a body are for what not every worker has.
pub trait Sees: Searcher {
    /// Whether it has spawned tasks.
    fn has_own_tasks(&self) -> bool {
        false
    }
    /// Whether something has come from outside, or for it alone.
    fn is_handed_something(&self) -> bool {
        false
    }
    /// Makes something visible that `victim` keeps private.
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
}

/// What a search takes, and how it looks and sleeps.
pub trait SearchRules<W: Takes + ?Sized> {
    /// Before each look, of which `looks` in a row have found nothing. How many those are now.
    fn prepare(&mut self, worker: &W, looks: u32, done: &dyn Fn() -> bool) -> u32;

    /// Whether it leaves to others what lies in their deques, looks for nothing else, and then sleeps at once.
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

    /// A look has found nothing, after one that did.
    fn begin(&mut self, _: &W) {}

    /// After so many looks that found nothing the search ends: with `work`, which is run now, or because it is done.
    fn end(&mut self, worker: &W, work: Option<&W::Work<'_>>, looks: u32);

    /// Makes something visible that others keep private.
    fn expose(&self, worker: &W, thief: Option<usize>) -> bool;

    /// Whether it looks on by the clock: if so, beyond the looks that it makes before it sleeps; if not, no
    /// longer, though it has not made them. What is private then is seen by the look before it sleeps, and exposed after it.
    fn spins(&self, _: &W) -> Option<bool> {
        None
    }

    /// Sleeps, if there is still nothing. How many looks count as made then, or none if it has slept for as long as it was to.
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
    /// Of a worker that has nothing under way, after so many looks.
    pub fn idle(rules: R, looks: u32) -> Self {
        SearchLoop { rules, following: None, looks, way: W::GivesWay::default() }
    }

    /// Of a worker that waits.
    pub fn wait(worker: &'w W, rules: R) -> Self {
        let following = Some(worker.sleep().follow(worker.index()));
        SearchLoop { rules, following, looks: 0, way: W::GivesWay::default() }
    }
}

impl<'w, W: Takes, R: SearchRules<W>> SearchLoop<'w, W, R> {
    /// The next work, which the worker runs before it asks again; none at the end, when it is `done` or the search has slept for
    /// as long as it was to. `thief` runs what this worker waits for, once it has said so.
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
                // Something to steal now.
            } else if *looks < SPIN_LOOKS
                || !aside && !over && !way.is_contended() && rules.spins(worker) == Some(true)
            {
                // The last look comes again, with its exposure.
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

/// Whom a wait for `thief` takes from: the thief, the worker that the thief waits for, and so on.
pub(super) fn chain<W: Searcher>(
    worker: &W,
    thief: Option<usize>,
) -> impl Iterator<Item = usize> + use<'_, W> {
    worker.sleep().chain(thief).take_while(|&link| link != worker.index())
}

/// A fork of `thief`, or of a worker that it waits for, and so on.
pub(super) fn steal_from_chain<W: Takes>(worker: &W, thief: Option<usize>) -> Option<W::Work<'_>> {
    chain(worker, thief).find_map(|link| worker.steal_fork(link, true))
}

/// Steals the oldest fork of this stack, and leaves a request where nothing is shared; where an attempt
/// fails, another thief's has succeeded.
pub fn steal<M: Memory, C: Context>(forks: &Stack<M, C>) -> Option<Stolen<'_, M>> {
    loop {
        match forks.steal() {
            Ok(stolen) => return Some(stolen),
            Err(Claim::Lost) => M::pause(),
            Err(_) => return None,
        }
    }
}
